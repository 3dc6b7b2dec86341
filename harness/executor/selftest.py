"""Does the sandbox hold on this machine? Forbidden acts are really tried, inside a sandbox built exactly as for a
session.

``python -m harness.executor.selftest [--json]`` ends with 0 when the sandbox works, else with 1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from harness.domain.actions.action import ExecAction
from harness.domain.text.display_safe import to_display
from harness.executor import spawn
from harness.linux.proc import identify
from harness.protocol.paths import SessionFolder
from harness.sandbox import bubblewrap, cgroups, enforcement, landlock, limits, probe
from harness.tools import registry

TIMEOUT_S = 30.0
CANARY = "WATCHFLOOR_SELFTEST_CANARY"
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_SHOWN = "/opt/watchfloor/harness"
"""Where the probe finds our code inside; no other call is shown it."""


class _Ground:
    """A repository, a session's worktree, and things on the host that must stay out of reach."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.worktree = base / "state" / "worktrees" / "selftest"
        self.folder = SessionFolder(base / "state" / "sessions" / "selftest", base / "run" / "keepers" / "k.sock")
        self.secret = base / "state" / "ledger"
        self.beside = base / "beside"
        repo = base / "repo"
        self.common = repo / ".git"
        self.private = self.folder.git
        self.folder.spool.mkdir(parents=True)
        self.worktree.parent.mkdir(parents=True)
        self.secret.write_text("secret\n")
        git = [
            "git",
            "-c",
            "core.hooksPath=/dev/null",
            "-c",
            "user.name=Watchfloor",
            "-c",
            "user.email=selftest@watchfloor.invalid",
        ]
        env = {
            "PATH": os.environ.get("PATH", "/usr/bin:/bin"),
            "HOME": str(base),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": "/dev/null",
        }
        for args in (
            ["init", "-q", "-b", "main", str(repo)],
            ["-C", str(repo), "commit", "-q", "--allow-empty", "-m", "start"],
            ["-C", str(repo), "worktree", "add", "-q", "--detach", str(self.worktree)],
        ):
            subprocess.run([*git, *args], env=env, check=True, capture_output=True, text=True, timeout=TIMEOUT_S)
        self.own = self.common / "worktrees" / "selftest"
        shutil.copytree(self.own, self.private)
        (self.private / "objects-private").mkdir()

    def action(self, given: probe.Given) -> ExecAction:
        """The probe as a session's exec call."""
        binds = [(str(self.common), str(self.common), "ro"), (str(self.private), str(self.own), "rw")]
        binds += [(os.path.join(_OURS, name), f"{_SHOWN}/{name}", "ro") for name in ("sandbox", "linux")]
        extra = {
            "GIT_OBJECT_DIRECTORY": f"{self.own}/objects-private",
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f"{self.common}/objects",
        }
        worktree = str(self.worktree)
        return ExecAction(
            call="selftest",
            tool=registry.EXEC,
            cwd=worktree,
            argv=(bubblewrap.base_python(), "-I", "-S", f"{_SHOWN}/sandbox/probe.py", json.dumps(given._asdict())),
            env=bubblewrap.environment(worktree, extra),
            sandbox=bubblewrap.profile(worktree, [], [], binds),
        )


def run(call: spawn.Spawn, timeout_s: float = TIMEOUT_S) -> tuple[spawn.CallOutcome, bytes, bool]:
    """Run one call to its end as the keeper does: (outcome, output, something still held the output a second after the
    end).
    """
    out_r, out_w = os.pipe2(os.O_CLOEXEC)
    res_r, res_w = os.pipe2(os.O_CLOEXEC)
    try:
        try:
            pid = spawn.start(call, out_w, res_w)
        finally:
            os.close(out_w)
            os.close(res_w)
        end = time.monotonic() + timeout_s
        status = None
        output = bytearray()
        result = bytearray()
        open_ends = {out_r: output, res_r: result}
        for fd in open_ends:
            os.set_blocking(fd, False)
        while open_ends or status is None:
            if status is None:
                done, value = os.waitpid(pid, os.WNOHANG)
                if done:
                    status = value
                    end = time.monotonic() + 1.0
            for fd, buffer in list(open_ends.items()):
                with contextlib.suppress(BlockingIOError):
                    if chunk := os.read(fd, 65536):
                        buffer += chunk
                    else:
                        del open_ends[fd]
            if time.monotonic() > end:
                if status is None:
                    spawn.stop(call, pid, force=True)
                    _, status = os.waitpid(pid, 0)
                break
            select.select(list(open_ends), [], [], 0.005)
        return spawn.outcome(call, status, bytes(result)), bytes(output), bool(open_ends)
    finally:
        os.close(out_r)
        os.close(res_r)


@contextlib.contextmanager
def _listeners(ground: _Ground) -> Iterator[probe.Given]:
    """Real servers and a real process on the host for the probe to reach for."""
    abstract = f"watchfloor-selftest-{secrets.token_hex(6)}"
    inside = ground.worktree / "host.sock"
    # It reads from a pipe that only we hold, so it ends with us, however we end.
    target = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with contextlib.ExitStack() as stack:
        stack.callback(target.wait)
        stack.callback(target.kill)
        tcp = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        unix = stack.enter_context(socket.socket(socket.AF_UNIX))
        folder = os.open(inside.parent, os.O_PATH | os.O_DIRECTORY)
        stack.callback(os.close, folder)
        unix.bind(f"/proc/self/fd/{folder}/{inside.name}")
        unix.listen()
        hidden = stack.enter_context(socket.socket(socket.AF_UNIX))
        hidden.bind("\0" + abstract)
        hidden.listen()
        canary = secrets.token_hex(16)
        os.environ[CANARY] = canary
        stack.callback(os.environ.pop, CANARY, None)
        yield probe.Given(
            worktree=str(ground.worktree),
            common=str(ground.common),
            home=os.path.expanduser("~"),
            secret=str(ground.secret),
            beside=str(ground.beside),
            unix=inside.name,
            abstract=abstract,
            port=tcp.getsockname()[1],
            pid=target.pid,
            canary=canary,
        )


def check(allowed: limits.Limits = limits.DEFAULT) -> dict[str, Any]:
    """Try everything once (about a quarter of a second).

    Gives ``{ok, reason, bwrap, origin, version, landlock_abi, seccomp, tests: [{name, ok, detail}], limits: [{what,
    limit, how, holds, hard}]}``, the last for calls with the limits ``allowed``; never raises for a sandbox that does
    not work, but says so in ``reason``.
    """
    report: dict[str, object] = {
        "ok": False,
        "reason": "",
        "bwrap": "",
        "origin": "",
        "version": "",
        "landlock_abi": landlock.abi(),
        "seccomp": False,
        "tests": [],
        "limits": [],
    }
    try:
        bwrap = bubblewrap.find()
    except bubblewrap.SandboxUnavailable as exc:
        return {**report, "reason": str(exc)}
    report |= {"bwrap": bwrap.path, "origin": bwrap.origin, "version": bwrap.version}
    base = Path(tempfile.mkdtemp(prefix="watchfloor-selftest-")).resolve()
    try:
        return report | _tried(_Ground(base), allowed)
    except subprocess.CalledProcessError as exc:
        return {**report, "reason": f"git does not work: {str(exc.stderr).strip()[:300]}"}
    except (OSError, subprocess.TimeoutExpired, spawn.SpawnError) as exc:
        return {**report, "reason": f"the self-test could not be carried out: {exc}"}
    finally:
        shutil.rmtree(base, ignore_errors=True)


def _no_group() -> str:
    """Why calls get no cgroup of their own here, or nothing when they do."""
    try:
        cgroups.look()
    except cgroups.NotDelegated as exc:
        return str(exc)
    return ""


_SIGNAL = "signal a process outside"
_DAEMON = "leave a daemon behind"
_WRITE = "write in the worktree"
_ONLY_HOST = frozenset({"write outside the worktree", "write to the home folder", "write to the state folder", _DAEMON})
"""What may go well for the call as long as the host shows nothing of it."""


def _repository(ground: _Ground) -> tuple[bytes, bytes]:
    return (ground.common / "config").read_bytes(), (ground.common / "refs" / "heads" / "main").read_bytes()


def _unchanged(ground: _Ground, home: str, before: tuple[bytes, bytes]) -> dict[str, bool]:
    """What counts for writes is the host afterwards: one that only reached the sandbox's own /tmp changed nothing."""
    config, branch = _repository(ground)
    return {
        "write outside the worktree": not ground.beside.exists(),
        "write to the home folder": not Path(home, ".watchfloor-selftest").exists(),
        "write to the state folder": ground.secret.read_text() == "secret\n",
        "write the repository's configuration": config == before[0],
        "write a hook of the repository": not (ground.common / "hooks" / "post-checkout").exists(),
        "move another branch of the repository": branch == before[1],
    }


class Tried(NamedTuple):
    """One act: whether it went as it must, and what was seen."""

    name: str
    ok: bool
    detail: str


def _judged(results: Mapping[str, tuple[bool, str]], unchanged: Mapping[str, bool]) -> list[Tried]:
    """A line for each act: those that must fail or change nothing, and those that must go well."""
    tests: list[Tried] = []
    for name in probe.FORBIDDEN:
        went, detail = results.get(name, (True, "was not tried"))
        ok = unchanged.get(name, True) and (not went or name in _ONLY_HOST)
        if went and ok:
            detail = "reached only the sandbox's own temporary files"
        if name == _DAEMON:
            detail = "it ended with its call" if unchanged[name] else "it outlived its call"
        tests.append(Tried(name, ok, detail))
    for name in probe.ALLOWED:
        went, detail = results.get(name, (False, "was not tried"))
        tests.append(Tried(name, went, detail))
    return tests


def _tried(ground: _Ground, allowed: limits.Limits) -> dict[str, object]:
    before = _repository(ground)
    with _listeners(ground) as given:
        outcome, output, survivors = run(
            spawn.command(ground.action(given), ground.folder, ground.folder.spool / "1", allowed)
        )
        alive = identify(given.pid) is not None
    try:
        said = json.loads(output.splitlines()[-1])
    except (IndexError, ValueError):
        text = output.decode("utf-8", "replace").strip()[-400:]
        return {
            "reason": (
                f"the sandboxed call did not run ({outcome.status}, exit code {outcome.exit_code}):"
                f" {text or outcome.note}"
            )
        }
    results: dict[str, tuple[bool, str]] = {
        name: (bool(went), str(detail)) for name, (went, detail) in said["results"].items()
    }
    tests = _judged(results, _unchanged(ground, given.home, before) | {_SIGNAL: alive, _DAEMON: not survivors})
    if not (ground.worktree / "from-inside").exists():
        tests = [test._replace(ok=False) if test.name == _WRITE else test for test in tests]
    held = enforcement.as_dicts(enforcement.report(allowed, said["bounds"], _no_group(), root=os.getuid() == 0))
    failed = [test.name for test in tests if not test.ok]
    reason = "" if said["seccomp"] else "the system-call filter is not in force"
    if failed:
        reason = f"the sandbox does not hold: {'; '.join(failed)}"
    return {
        "ok": not reason,
        "reason": reason,
        "seccomp": bool(said["seccomp"]),
        "tests": [test._asdict() for test in tests],
        "limits": held,
    }


def main(argv: list[str] | None = None) -> int:
    """Command line; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m harness.executor.selftest", description="Try forbidden acts inside the sandbox."
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument(
        "--limits", default="null", help="the limits of a call as JSON, by the names of [limits] in config.toml"
    )
    given = parser.parse_args(argv)
    as_json = given.json
    try:
        allowed = limits.from_wire(json.loads(given.limits))
    except ValueError as exc:
        parser.error(f"--limits: {exc}")
    # so that its folder and its processes are taken away
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    report = check(allowed)
    if as_json:
        print(json.dumps(report, ensure_ascii=False))
        return 0 if report["ok"] else 1
    for test in report["tests"]:
        print(f"{'ok  ' if test['ok'] else 'FAIL'}  {test['name']}: {to_display(test['detail'])}")
    for hold in report["limits"]:
        print(
            f"{'ok  ' if hold['holds'] else 'NONE'}  limit of {hold['what']}: {hold['limit']};"
            f" {to_display(hold['how'])}"
        )
    verdict = "works" if report["ok"] else "DOES NOT WORK"
    print(
        f"sandbox {verdict}: {report['bwrap'] or 'no bwrap'} {report['version']}, Landlock ABI"
        f" {report['landlock_abi']}. {to_display(report['reason'])}"
    )
    return 0 if report["ok"] else 1


if __name__ == "__main__":
    sys.exit(main())
