"""A user's repository with a session in it, and pushes made as the supervisor and the keeper make them."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.domain.actions.action import from_wire
from harness.executor import preconditions, spawn
from harness.executor.selftest import run
from harness.policy.build import build_action
from harness.policy.decide import Verdict, decide
from harness.policy.policy_file import default_policy
from harness.protocol.config.sections import SandboxConfig
from harness.protocol.paths import SessionFolder
from harness.workspace.facts.gather import gather
from harness.workspace.tree import worktrees

HOOKS = ("pre-receive", "update", "post-receive", "post-update", "reference-transaction")
ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


def git(folder: Path, *args: str) -> str:
    command = ["git", "-c", "user.name=Me", "-c", "user.email=me@here", "-c", "core.hooksPath=/dev/null", *args]
    return subprocess.run(command, cwd=folder, env=ENV, check=True, capture_output=True, text=True).stdout.strip()


@dataclass(frozen=True)
class Attempt:
    """What became of one push: the judged action, the verdict, and, when it was not denied, what running it gave."""

    action: dict[str, Any]
    verdict: Verdict
    stale: list[str]
    outcome: spawn.CallOutcome | None
    output: str


class Ground:
    """A repository of the user at ``repo``, a session ``s1`` in it, and the user's home with his git configuration."""

    def __init__(self, base: Path, monkeypatch: Any) -> None:
        self.base = base
        self.home = base / "home"
        self.repo = base / "repo"
        self.state = base / "state"
        self.ran = base / "ran"
        for folder in (self.home, self.repo, self.ran):
            folder.mkdir()
        git(self.repo, "init", "-q", "-b", "main")
        git(self.repo, "commit", "-q", "--allow-empty", "-m", "one")
        self.folder = SessionFolder(self.state / "sessions" / "s1", base / "run" / "keepers" / "k.sock")
        root = self.state / "worktrees" / "s1"
        self.tree = worktrees.create(self.repo, root, "watchfloor/s1", self.folder.git / "private")
        self.folder.spool.mkdir(parents=True)
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)

    def bare(self, path: Path, *hooks: str) -> Path:
        """A bare repository whose ``hooks`` leave a file behind when they run."""
        path.parent.mkdir(parents=True, exist_ok=True)
        git(path.parent, "init", "-q", "--bare", str(path))
        for name in hooks:
            self.hook(path / "hooks" / name)
        return path

    def hook(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\ntouch '{self.ran}/{path.name}'\n")
        path.chmod(0o755)

    def hooks_that_ran(self) -> set[str]:
        return {entry.name for entry in self.ran.iterdir()}

    def rewrite(self, base: str, prefix: str, kind: str = "insteadOf") -> None:
        """An address rewrite in the user's own git configuration."""
        git(self.home, "config", "--file", str(self.home / ".gitconfig"), "--add", f"url.{base}.{kind}", prefix)

    def judged(self, *words: str) -> tuple[dict[str, Any], Verdict]:
        given = {"argv": ["git", "push", *words]}
        facts = gather(self.tree, "exec", given, SandboxConfig(), (str(self.state),))
        action = build_action("s1", "c1.0", "toolu_1", "exec", given, facts)
        return action.to_wire(), decide(action, default_policy())

    def run(self, action: dict[str, Any]) -> tuple[spawn.CallOutcome, str]:
        outcome, output, survivors = run(spawn.command(from_wire(action), self.folder, self.folder.spool / "1"))
        assert not survivors
        return outcome, output.decode()

    def push(self, *words: str) -> Attempt:
        """Judge a push and, unless it is denied, run it as if a human had allowed it."""
        action, verdict = self.judged(*words)
        if verdict.verdict == "deny":
            return Attempt(action, verdict, [], None, "")
        return Attempt(action, verdict, self.stale(action), *self.run(action))

    @staticmethod
    def stale(action: dict[str, Any]) -> list[str]:
        """What the gate would find changed."""
        return preconditions.difference(action["pre"], preconditions.observe(from_wire(action)))
