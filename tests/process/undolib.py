"""One real session for tests of undo: its worktree, private git folder and keeper, calls in the real sandbox, and all
that must come back.
"""

from __future__ import annotations

import itertools
import os
import stat
import subprocess
from pathlib import Path
from typing import Any

from harness.policy.build import build_action
from harness.protocol.config.sections import SandboxConfig
from harness.protocol.connection import frames
from harness.workspace.facts.gather import Kept, gather
from harness.workspace.git.scratch import real_objects
from harness.workspace.tree import worktrees
from tests.process.keeperlib import SID, Keepers, Link, allowed

GIT = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_OPTIONAL_LOCKS": "0",
    "LC_ALL": "C.UTF-8",
}
_ME = ("-c", "user.name=Test", "-c", "user.email=test@example.invalid")
State = dict[bytes, tuple[object, ...]]


def repository(folder: Path, files: dict[str, bytes | str]) -> Path:
    """A repository with one commit of these files."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode() if isinstance(text, str) else text)
    for args in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-q", "-m", "start")):
        subprocess.run(["git", *_ME, *args], cwd=folder, env=GIT, check=True, capture_output=True)
    return folder


def dump(folder: Path) -> State:
    """A folder's own mode and everything below it that an undo promises to bring back: kind, mode, content, target.

    Names are bytes.
    """
    found: State = {b"": (stat.S_IMODE(folder.lstat().st_mode),)}
    top = os.fsencode(folder)
    pending = [top]
    while pending:
        here = pending.pop()
        for name in os.listdir(here):
            path = here + b"/" + name
            info = os.lstat(path)
            key = path[len(top) + 1 :]
            mode = stat.S_IMODE(info.st_mode)
            if stat.S_ISLNK(info.st_mode):
                found[key] = ("link", os.readlink(path))
            elif stat.S_ISREG(info.st_mode):
                found[key] = ("file", mode, _content(path, mode))
            else:
                found[key] = (stat.S_IFMT(info.st_mode), mode)
                if stat.S_ISDIR(info.st_mode):
                    pending.append(path)
    return found


def _content(path: bytes, mode: int) -> bytes:
    if os.geteuid() == 0 or mode & 0o400:
        return Path(os.fsdecode(path)).read_bytes()
    os.chmod(path, mode | 0o400)
    try:
        return Path(os.fsdecode(path)).read_bytes()
    finally:
        os.chmod(path, mode)


class Session:
    """A session whose calls are made by the test: the keeper, the sandbox, the vault and git are the real ones."""

    def __init__(self, fleet: Keepers, repo: Path, sid: str = SID, **spawn: Any) -> None:
        self.fleet = fleet
        self.repo = repo
        self.sid = sid
        folder = fleet.folder(sid)
        self.tree = worktrees.create(
            repo, fleet.folders.state / "worktrees" / sid, f"watchfloor/{sid}", folder.git / "private"
        )
        self.root = self.tree.root
        self._numbers = itertools.count(1)
        self._start(1, spawn)

    def again(self, epoch: int, **spawn: Any) -> None:
        """A new keeper for the session whose keeper is gone."""
        self._start(epoch, spawn)

    def _start(self, epoch: int, spawn: dict[str, Any]) -> None:
        self.pid = int(self.fleet.spawn(self.sid, **spawn)["pid"])
        self.link: Link = self.fleet.supervisor(self.sid, epoch=epoch)
        self.link.call("subscribe", after=-1)
        self._records: list[dict[str, Any]] = []
        self._seen = 0

    def action(self, script: str, kept: Kept | None = None) -> dict[str, Any]:
        """The action of a shell call, built as the supervisor builds it."""
        given = {"script": script}
        facts = gather(self.tree, "shell", given, SandboxConfig(), (), kept or Kept())
        return build_action(self.sid, f"c{next(self._numbers)}.0", "toolu_1", "shell", given, facts).to_wire()

    def begin(self, script: str, **arguments: Any) -> tuple[str, int]:
        """Ask for a call and do not wait: its id and the number of the request."""
        what = self.action(script)
        self.link.append(*allowed(what))
        return what["call"], self.link.send("execute", call_id=what["call"], **arguments)

    def run(self, script: str, **arguments: Any) -> tuple[str, dict[str, Any]]:
        """Run a script in the sandbox to its end; its call and the record of its start."""
        call_id, number = self.begin(script, **arguments)
        assert self.link.reply(number).get("started") is True
        self.ended(call_id)
        return call_id, self.one("tool.started", call_id=call_id)

    def ended(self, call_id: str) -> dict[str, Any]:
        """The record of a call's end, once there is one."""
        return self.wait("tool.ended", call_id=call_id)

    def wait(self, kind: str, **fields: str) -> dict[str, Any]:
        """The newest record of that type with these fields, once there is one.

        Raises ConnectionError when the keeper is gone before.
        """
        while (found := self.find(kind, **fields)) is None:
            if self.link.ended:
                raise ConnectionError("the keeper closed the connection")
            self.link.read_some()
        return found

    def find(self, kind: str, **fields: str) -> dict[str, Any] | None:
        """The newest record of that type with these fields among those that the keeper pushed, or None."""
        pushes = self.link.pushes[self._seen :]
        self._seen = len(self.link.pushes)
        self._records += [
            frames.parse(line.encode()) for push in pushes if push["push"] == "events" for line in push["lines"]
        ]
        bodies = (r["data"] for r in reversed(self._records) if r["type"] == kind)
        return next((b for b in bodies if all(b.get(name) == value for name, value in fields.items())), None)

    def one(self, kind: str, **fields: str) -> dict[str, Any]:
        found = self.find(kind, **fields)
        assert found is not None, f"there is no {kind} with {fields}"
        return found

    def ask_undo(self, snapshot: str, call_id: str = "c1.0") -> tuple[str, int]:
        """Ask for an undo and do not wait: its id and the number of the request."""
        undo_id = f"u{next(self._numbers)}"
        return undo_id, self.link.send(
            "undo", undo_id=undo_id, call_id=call_id, snapshot=snapshot, by={"client": "test", "uid": os.getuid()}
        )

    def undo(self, snapshot: str, call_id: str = "c1.0") -> dict[str, Any]:
        """Bring a state back; the keeper's answer."""
        _, number = self.ask_undo(snapshot, call_id)
        return self.link.reply(number)

    # -- what is so --------------------------------------------------------------------------------

    def files(self) -> State:
        """The worktree without its ``.git`` file, which the agent cannot write."""
        return {name: value for name, value in dump(self.root).items() if name != b".git"}

    def state(self) -> tuple[State, State, dict[str, bytes]]:
        """All that must come back: the worktree, the private git folder byte for byte, and what git says of both."""
        said = {what: self.git(*what.split()) for what in _LOOKS}
        return self.files(), dump(self.tree.private), said

    def git(self, *args: str) -> bytes:
        """What git says inside, asked from outside: the same folders, without a sandbox."""
        env = {
            **GIT,
            "GIT_DIR": str(self.tree.private),
            "GIT_COMMON_DIR": str(self.tree.common),
            "GIT_WORK_TREE": str(self.root),
            "GIT_OBJECT_DIRECTORY": str(self.tree.objects),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(real_objects(self.tree.common)),
        }
        done = subprocess.run(["git", *args], cwd=self.root, env=env, capture_output=True)
        return done.stdout + (b"" if done.returncode == 0 else b"failed: %d %s" % (done.returncode, done.stderr))


_LOOKS = (
    "rev-parse HEAD",
    "status --porcelain=v2 -z --ignored --untracked-files=all",
    "rev-list --objects HEAD",
    "diff --cached --binary",
    "reflog show HEAD",
    "stash list",
)
