"""The demo's own fleet: its folders, repository, simulator and four sessions, and how all of it ends."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness.domain.text.display_safe import to_display
from harness.linux.proc import command, identify
from harness.protocol.client import SupervisorError, Unreachable, ensure_supervisor
from harness.protocol.paths import Folders, ensure_private

PYTHON = (sys.executable, "-P", "-s", "-m")
BRANCH = "docs/unreleased"


class DemoError(Exception):
    """The demo cannot go on; the message says what happened and where to look."""


@dataclass(frozen=True, slots=True)
class Part:
    """One session of the demo. ``capped``: it is meant to run into its cap."""

    name: str
    goal: str
    checks: tuple[str, ...]
    model: str
    cap_usd: str
    capped: bool = False
    more: tuple[str, ...] = ()
    """Further arguments of ``watchfloor launch``."""


PARTS = (
    Part(
        "features",
        "Implement everything that SPEC.md asks for, until all tests pass and none is skipped. Commit the work.",
        ("python3 -m unittest -q", "python3 tools/spec_status.py"),
        "claude-sonnet-5-5",
        "1.00",
    ),
    Part(
        "repair",
        "A failing test stands in this repository: python3 -m unittest -q. Find the cause and repair it without"
        " changing the test. Commit the repair.",
        ("python3 -m unittest -q",),
        "claude-haiku-5-5",
        "0.50",
    ),
    Part(
        "changelog",
        f"Add an entry on the README to the changelog, commit it, and push it to origin as refs/heads/{BRANCH} for"
        " review.",
        ("python3 tools/check_changelog.py",),
        "claude-sonnet-5-5",
        "0.50",
    ),
    Part(
        "survey",
        "Make a survey of this code base: every question that comes up, with notes in NOTES.md. Take your time.",
        (),
        "claude-sonnet-5-5",
        "0.20",
        capped=True,
    ),
)


_DEMOS = "watchfloor-demo"


def base(folders: Folders) -> Path:
    """Where demos live: beside the user's own state folder, also when the state folder in use is a demo's own."""
    own = folders.state.parent
    return own.parent if own.parent.name == _DEMOS else own / _DEMOS


def fresh(where: Path) -> Demo:
    """A demo in a new folder. Raises FolderError when it cannot be made."""
    ensure_private(where)
    name = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{secrets.token_hex(2)}"
    demo = Demo(where / name)
    for folder in (demo.root, demo.folders.state, demo.folders.runtime, demo.folders.config):
        ensure_private(folder)
    return demo


def found(where: Path) -> list[Demo]:
    """All demos whose folders exist, oldest first."""
    return [Demo(p) for p in sorted(where.iterdir()) if p.is_dir()] if where.is_dir() else []


@dataclass(frozen=True, slots=True)
class Demo:
    """One demo by its folder."""

    root: Path

    @property
    def folders(self) -> Folders:
        return Folders(self.root / "state", self.root / "state" / "run", self.root / "config")

    @property
    def repo(self) -> Path:
        return self.root / "tally"

    @property
    def remote(self) -> Path:
        return self.root / "remote" / "tally.git"

    @property
    def ready_file(self) -> Path:
        return self.root / "simulator.json"

    @property
    def env(self) -> dict[str, str]:
        """The environment in which the ordinary command line works on this fleet; no key of the user's gets in."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("ANTHROPIC_", "WATCHFLOOR_"))}
        f = self.folders
        return kept | {
            "WATCHFLOOR_STATE": str(f.state),
            "WATCHFLOOR_RUNTIME": str(f.runtime),
            "WATCHFLOOR_CONFIG": str(f.config),
        }

    def build(self, maker: str = "harness.simulator.demo") -> None:
        """Make the repository, and whatever else the maker's module makes beside it. Raises DemoError."""
        made = subprocess.run(
            [*PYTHON, maker, str(self.repo), str(self.remote)],
            capture_output=True,
            text=True,
            check=False,
        )
        if made.returncode != 0:
            raise DemoError(made.stderr.strip() or "the demo repository could not be made")

    def start_simulator(self, speed: float) -> None:
        """Start the model server detached and write the configuration that names it.

        It ends by itself once the fleet is gone.
        """
        key_file = self.folders.config / "key"
        key_file.touch(mode=0o600)
        key_file.write_text(f"sk-demo-{secrets.token_hex(16)}\n", "utf-8")
        options = ["--ready-file", str(self.ready_file), "--key-file", str(key_file), "--speed", str(speed)]
        with (self.root / "simulator.log").open("ab") as log:
            process = subprocess.Popen(
                [*PYTHON, "harness.simulator", *options, "--exit-without", str(self.folders.supervisor_socket)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.env,
                start_new_session=True,
            )
        if (
            not wait_until(lambda: self.ready_file.exists() or process.poll() is not None, 60)
            or not self.ready_file.exists()
        ):
            raise DemoError(f"the simulator did not start; see {self.root / 'simulator.log'}")
        self.folders.config_file.write_text(
            f'[model]\ndefault = "claude-sonnet-5-5"\nbase_url = "{self.base_url}"\napi_key_file ='
            f' "{key_file}"\nmax_tokens = 4096\n\n[caps]\nsession_usd = "1.00"\nday_usd = "5.00"\n',
            "utf-8",
        )

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.simulator()['port']}"

    def simulator(self) -> dict[str, int]:
        """Port, process number and start of the model server. Raises FileNotFoundError before it is ready."""
        ready: dict[str, int] = json.loads(self.ready_file.read_text("utf-8"))
        return ready

    def watchfloor(self, *args: str) -> list[dict[str, Any]]:
        """Run one verb of the ordinary command line with ``--json``; its lines. Raises DemoError with what it said."""
        done = subprocess.run(
            [*PYTHON, "app.main", *args, "--json"],
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise DemoError(
                f"watchfloor {' '.join(args)} exited with {done.returncode}: {(done.stderr or done.stdout).strip()}"
            )
        return [json.loads(line) for line in done.stdout.splitlines()]

    def launch(self, part: Part) -> str:
        """Launch one session the way a user would; its id."""
        args = [
            "launch",
            "--repo",
            str(self.repo),
            "--goal",
            part.goal,
            "--name",
            part.name,
            "--model",
            part.model,
            "--cap-usd",
            part.cap_usd,
        ]
        for check in part.checks:
            args += ["--check", check]
        return str(self.watchfloor(*args, *part.more)[0]["sid"])

    def stop(self) -> list[int]:
        """End the fleet and its simulator; the pids that would not end within 20 s. Raises DemoError."""
        self._end_simulator()
        try:
            # keepers may live on without a supervisor: only a supervisor can end them in good order
            if self.processes():
                with ensure_supervisor(self.folders) as client:
                    client.wait_up_to(240.0)
                    client.call("shutdown", sessions="stop")
        except (Unreachable, SupervisorError) as exc:
            raise DemoError(f"{self.root}: cannot end the fleet: {exc}") from exc
        wait_until(lambda: not self.processes(), 20)
        return self.processes()

    def _end_simulator(self) -> None:
        try:
            ready = self.simulator()
            if _runs(ready):
                os.kill(ready["pid"], signal.SIGTERM)
        except (FileNotFoundError, ProcessLookupError):
            return
        wait_until(lambda: _reaped(ready["pid"]) or not _runs(ready), 10)

    def processes(self) -> list[int]:
        """Living processes that belong to this demo: named by command line, environment, working folder or an open
        file.
        """
        needle = str(self.root)
        return [
            pid
            for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
            if pid != os.getpid() and _mentions(pid, needle)
        ]


def _mentions(pid: int, needle: str) -> bool:
    process = Path("/proc") / str(pid)
    with contextlib.suppress(OSError):
        if process.stat().st_uid != os.getuid() or identify(pid) is None:
            return False
        if needle.encode() in (process / "cmdline").read_bytes() + (process / "environ").read_bytes():
            return True
        if os.readlink(process / "cwd").startswith(needle):
            return True
        for fd in os.listdir(process / "fd"):
            with contextlib.suppress(OSError):
                if os.readlink(process / "fd" / fd).startswith(needle):
                    return True
    return False


def named(pids: list[int]) -> str:
    """Processes for a person: number and command line, which is untrusted text."""
    commands = ((pid, b" ".join(command(pid)).decode("utf-8", "replace")) for pid in pids)
    said = [f"{pid} ({to_display(words, limit=80)})" for pid, words in commands if words]
    return ", ".join(said) or "nobody any more"


def _runs(ready: dict[str, Any]) -> bool:
    """True while the very simulator lives that said it is ready."""
    who = identify(ready["pid"])
    return who is not None and who.start == ready["start"]


def _reaped(pid: int) -> bool:
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    return False


def wait_until(condition: Callable[[], object], seconds: float) -> bool:
    """Poll until the condition holds; False when it did not in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.03)
    return True
