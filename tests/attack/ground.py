"""A session on a host full of things to reach: real worktree, real keeper, real calls, secrets and listeners
outside.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from harness.domain.actions.action import action_hash
from harness.eventlog import blobs
from harness.policy.build import build_action
from harness.protocol.config.sections import SandboxConfig
from harness.protocol.paths import CHECKPOINTS, ensure_private
from harness.sandbox import bubblewrap
from harness.workspace.export import checkpoint_store
from harness.workspace.facts.gather import gather
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree import worktrees
from tests.attack.model import Inside, Result
from tests.attack.watch import Doors, Victim, Watch
from tests.process.keeperlib import Keepers, Link

SID = "attacked00"
CANARY = "WATCHFLOOR_ATTACK_CANARY"
DRIVER = Path(__file__).with_name("inside.py")
TIMEOUT_S = 180
IDENTITY = ("-c", "user.name=Me", "-c", "user.email=me@example.invalid", "-c", "commit.gpgsign=false")


def git(folder: Path, *args: str) -> str:
    """The user's own git, which obeys nobody's configuration but the repository's."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
    }
    done = subprocess.run(["git", *IDENTITY, *args], cwd=folder, env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _repository(path: Path) -> Path:
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    for name, text in {"README.md": "# Thing\n", "src/a.txt": "alpha\n", "tool": "#!/bin/sh\necho fine\n"}.items():
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(text)
    (path / "tool").chmod(0o755)
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "start")
    return path


class Ground:
    """``base`` holds everything; ``given`` is what the attacker knows."""

    def __init__(self, base: Path) -> None:
        self.base = base
        token = secrets.token_hex(8)
        self.tokens = {
            name: f"canary-{name.replace(' ', '-')}-{secrets.token_hex(12)}"
            for name in ("environment", "memory", "descriptor")
        }
        os.environ[CANARY] = self.tokens["environment"]
        for name in ("state", "run", "config", "home", "beside"):
            ensure_private(base / name)
        self.repo = _repository(base / "repo")
        guarded = self._secrets()
        fd = os.open(base / "beside" / "descriptor", os.O_RDONLY)
        os.set_inheritable(fd, True)
        self._fd = fd
        self.keepers = Keepers(base, dict(os.environ))
        self.folder = self.keepers.folder(SID)
        self.tree = worktrees.create(
            self.repo, base / "state" / "worktrees" / SID, f"watchfloor/{SID}", self.folder.git / "private"
        )
        other = worktrees.create(
            self.repo,
            base / "state" / "worktrees" / "other00000",
            "watchfloor/other",
            base / "state/sessions/other00000/git/private",
        )
        self._plant(other.root / "notes.txt", "other session")
        self._keep(other)
        self.keeper = 0
        self.number = 0
        self.seen = 0
        self._start()
        self.victim = Victim(self.tokens["memory"])
        self.doors = Doors(base / "run", self.tree.root, token)
        guarded += [other.root, *self.doors.paths.values(), self.repo / ".git" / "hooks", self.repo / ".git" / "config"]
        guarded += [
            self.repo / ".git" / name
            for name in ("refs/heads/main", "HEAD", "worktrees/other00000", "credentials", "config.bak")
        ]
        guarded += [self.repo / name for name in ("README.md", "src", "tool")]
        self.targets = [
            base / "beside/secret.txt",
            base / "home/.ssh/id_rsa",
            base / "config/key",
            base / "state/ledger/000001.jsonl",
        ]
        self.targets += [
            other.root / "notes.txt",
            self.repo / "README.md",
            self.repo / ".git/config",
            self.repo / ".git/refs/heads/main",
        ]
        self.watch = Watch(guarded, self.victim, self.doors, base)
        self.watch.canaries = {name: text.encode() for name, text in self.tokens.items()}
        self.given: dict[str, Any] = {
            "worktree": str(self.tree.root),
            "targets": [str(path) for path in self.targets],
            "beside": str(base / "beside"),
            "state": str(base / "state"),
            "run": str(base / "run"),
            "repo": str(self.repo),
            "admin": str(self.tree.admin),
            "home": str(base / "home"),
            "sockets": [*map(str, self.doors.paths.values()), str(self.folder.keeper_socket), str(self.doors.inside)],
            "abstract": self.doors.abstract,
            "port": self.doors.port,
            "victim": self.victim.pid,
            "keeper": self.keeper,
            "suite": os.getpid(),
            "bwrap": str(self.tree.root / ".attack" / "bwrap"),
        }

    def _plant(self, path: Path, name: str) -> None:
        token = f"canary-{name.replace(' ', '-')}-{secrets.token_hex(12)}"
        self.tokens[name] = token
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_text(token + "\n")

    def _keep(self, tree: Worktree) -> None:
        """A checkpoint of another session on the repository, with what nobody committed."""
        folder = tree.private.parent.parent
        text = (tree.root / "notes.txt").read_text()
        stream = self.base / "stream"
        changes = f'deleteall\nM 100644 inline "notes.txt"\ndata {len(text)}\n{text}\ndone\n'
        stream.write_text(checkpoint_store.head(tree.base, "kept") + changes)
        checkpoint_store.Store(folder.name, folder / CHECKPOINTS).keep(tree, 1, tree.base, stream)
        stream.unlink()

    def _secrets(self) -> list[Path]:
        base = self.base
        for name, where in (
            ("file beside", "beside/secret.txt"),
            ("ssh key", "home/.ssh/id_rsa"),
            ("api key", "config/key"),
            ("ledger", "state/ledger/000001.jsonl"),
            ("git credentials", "repo/.git/credentials"),
            ("git backup", "repo/.git/config.bak"),
        ):
            self._plant(base / where, name)
        self.tokens["git token"] = f"canary-git-token-{secrets.token_hex(12)}"
        git(self.repo, "config", "http.extraHeader", f"Authorization: {self.tokens['git token']}")
        (base / "beside" / "descriptor").write_text(self.tokens["descriptor"])
        return [base / "beside", base / "home", base / "config", base / "state" / "ledger"]

    def _start(self) -> None:
        self.keeper = int(self.keepers.spawn(SID)["pid"])
        self.link: Link = self.keepers.supervisor(SID, epoch=self.number + 1)
        self.link.call("subscribe", after=0)

    def revive(self) -> None:
        """Another keeper after the last one was killed."""
        self._start()

    # -- calls -------------------------------------------------------------------------------------

    def action(self, tool: str, given: dict[str, Any], tree: Worktree | None = None) -> dict[str, Any]:
        """The action that the supervisor would build and record."""
        self.number += 1
        facts = gather(
            tree or self.tree,
            tool,
            given,
            SandboxConfig(),
            map(str, (self.base / "state", self.base / "run", self.base / "config")),
        )
        return build_action(SID, f"c0.{self.number}", f"toolu_{self.number}", tool, given, facts).to_wire()

    def allow(self, action: dict[str, Any]) -> str:
        """Put the call and an allow verdict on record; its id."""
        call = str(action["call"])
        judged = {
            "call_id": call,
            "action_hash": action_hash(action),
            "verdict": "allow",
            "rule": "attack",
            "reason": "",
            "policy": "p",
            "action": action,
        }
        self.link.append(
            ("tool.proposed", {"call_id": call, "ref": "u", "tool": action["tool"], "input": {}}),
            ("tool.judged", judged),
        )
        return call

    def ended(self, call: str) -> dict[str, Any]:
        """The call's ``tool.ended``, waited for."""
        while True:
            for push in self.link.pushes:
                for line in push.get("lines", []):
                    if '"type":"tool.ended"' in line and (record := json.loads(line))["data"]["call_id"] == call:
                        self.link.pushes.clear()
                        return dict(record["data"])
            if self.link.ended:
                raise ConnectionError("the keeper is gone")
            self.link.pushes.clear()
            self.link.read_some()

    def output(self, ended: dict[str, Any]) -> bytes:
        """All that a call said, and what stands in its record."""
        whole = json.dumps(ended, ensure_ascii=False).encode("utf-8", "surrogatepass")
        if ref := ended.get("output"):
            whole += blobs.get(self.folder.blobs, ref["sha"])
        return whole

    def call(self, tool: str, input: dict[str, Any], tree: Worktree | None = None) -> dict[str, Any]:  # noqa: A002
        """Run one call through the keeper; its ``tool.ended``."""
        call = self.allow(
            self.action(tool, {"timeout_s": TIMEOUT_S, **input} if tool in ("exec", "shell") else input, tree)
        )
        self.link.call("execute", call_id=call)
        return self.ended(call)

    def batch(self, attempts: list[Inside]) -> tuple[list[Result], bytes]:
        """Carry out attempts of one access in one call: what each said, and everything that came out."""
        folder = self.tree.root / ".attack"
        folder.mkdir(exist_ok=True)
        (folder / "inside.py").write_bytes(DRIVER.read_bytes())
        (folder / "batch.json").write_text(json.dumps([{"name": a.name, "code": a.code} for a in attempts]))
        (folder / "given.json").write_text(json.dumps(self.given))
        shutil.copy(bubblewrap.find().path, self.given["bwrap"])
        self.link.pushes.clear()
        argv = [
            bubblewrap.base_python(),
            "-I",
            "-S",
            ".attack/inside.py",
            ".attack/batch.json",
            ".attack/given.json",
            ".attack/results",
        ]
        ended = self.call(
            "exec", {"argv": argv, **({"access": attempts[0].access} if attempts[0].access != "sandbox" else {})}
        )
        output = self.output(ended) + self._harvest()
        found = {}
        with suppress(OSError, ValueError):
            found = {line["name"]: line for line in map(json.loads, (folder / "results").read_text().splitlines())}
        if not found and ended["status"] == "refused":
            raise RuntimeError(f"the sandbox could not be built: {ended['preview']}")
        return [self._result(attempt, found.get(attempt.name)) for attempt in attempts], output

    @staticmethod
    def _result(attempt: Inside, line: dict[str, Any] | None) -> Result:
        if line is None:
            return Result(attempt.name, "refused", "it took its own call down")
        detail = str(line["detail"])
        if detail.startswith("BROKEN"):
            raise RuntimeError(f"the attempt {attempt.name!r} is broken: {detail}")
        return Result(attempt.name, "escaped" if line["went"] and attempt.claim else "refused", detail)

    def _harvest(self) -> bytes:
        """What regular files of the worktree hold now: a secret that was copied in is a secret that was read."""
        data = b""
        for folder, _, names in os.walk(self.tree.root):
            for name in names:
                path = Path(folder, name)
                with suppress(OSError):
                    if (
                        stat.S_ISREG((info := path.lstat()).st_mode)
                        and info.st_size < 1 << 20
                        and name not in ("inside.py", "given.json", "bwrap")
                    ):
                        data += path.read_bytes()
        return data

    def tidy(self) -> None:
        """The worktree as it was at the start."""
        for entry in os.scandir(self.tree.root):
            if entry.name == ".git":
                continue
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)
                for folder, inner, _ in os.walk(entry.path):
                    for name in inner:
                        if not os.path.islink(path := Path(folder, name)):
                            path.chmod(0o700)
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
        for name in ("README.md", "src/a.txt", "tool"):
            (self.tree.root / name).parent.mkdir(exist_ok=True)
            shutil.copy(self.repo / name, self.tree.root / name)

    def close(self) -> None:
        self.keepers.close()
        self.victim.close()
        self.doors.close()
        os.close(self._fd)


@contextmanager
def ground() -> Iterator[Ground]:
    """A ground in a folder of its own, which is taken away at the end."""
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="wf-attack-")))
    try:
        made = Ground(base)
        try:
            yield made
        finally:
            made.close()
    finally:
        shutil.rmtree(base, ignore_errors=True)
