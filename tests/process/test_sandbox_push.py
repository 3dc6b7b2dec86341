"""Real pushes to real bare repositories: exactly what was shown arrives, and nothing the repository configures takes
part.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.domain.actions.action import from_wire
from harness.executor import push, spawn
from harness.executor.selftest import run
from harness.protocol.paths import SessionFolder

REF = "refs/heads/x"


def git(folder: Path, *args: str) -> str:
    env = {"PATH": os.environ["PATH"], "HOME": str(folder.parent), "GIT_CONFIG_NOSYSTEM": "1"}
    settings = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.hooksPath=/dev/null"]
    return subprocess.run(
        ["git", *settings, *args], cwd=folder, env=env, check=True, capture_output=True, text=True
    ).stdout.strip()


class Ground:
    def __init__(self, base: Path) -> None:
        self.base = base
        self.home = base / "home"
        self.remote = base / "remote.git"
        self.repo = base / "repo"
        self.worktree = base / "state" / "worktrees" / "s1"
        self.folder = SessionFolder(base / "state" / "sessions" / "s1", base / "run" / "keepers" / "k.sock")
        for path in (self.home, self.repo, self.worktree.parent, self.folder.spool):
            path.mkdir(parents=True)
        git(base, "init", "-q", "--bare", str(self.remote))
        git(self.repo, "init", "-q", "-b", "main")
        self.commit("one")
        git(self.repo, "remote", "add", "origin", str(self.remote))
        git(self.repo, "worktree", "add", "-q", "--detach", str(self.worktree))

    def commit(self, message: str, folder: Path | None = None) -> str:
        git(folder or self.repo, "commit", "-q", "--allow-empty", "-m", message)
        return git(folder or self.repo, "rev-parse", "HEAD")

    def action(self, sha: str, old: str, **fields: Any) -> dict[str, Any]:
        env = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        base = {
            "v": 1,
            "call": "c1.0",
            "tool": "exec",
            "kind": "push",
            "access": "push",
            "cwd": str(self.worktree),
            "env": env,
        }
        url = fields.get("url", str(self.remote))
        named = {"address": url, "base": str(self.repo), "pushurl": False, "configured": True}
        local = {"folder": url, "hooks": [], "programs": []}
        from_here = {"named": named, "local": local, "repository": str(self.repo / ".git")}
        shown = {"remote": "origin", "url": url, "refspecs": [[sha, REF, old]], **from_here}
        return {**base, "sandbox": {"worktree": str(self.worktree)}, **shown, **fields}

    def push(self, action: dict[str, Any]) -> tuple[spawn.CallOutcome, str]:
        outcome, output, _ = run(spawn.command(from_wire(action), self.folder, self.folder.spool / "1"))
        assert os.listdir(self.folder.spool) == []
        return outcome, output.decode()

    def there(self) -> str:
        return push.remote_refs(str(self.remote), [REF], {})[REF]


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def test_a_push_arrives_and_is_seen(ground: Ground) -> None:
    first = git(ground.repo, "rev-parse", "HEAD")
    action = ground.action(first, "absent")
    assert push.probe(from_wire(action)) == "not_done"
    outcome, text = ground.push(action)
    assert outcome.status == "ok", text
    assert ground.there() == first
    assert push.probe(from_wire(action)) == "done"
    second = ground.commit("two")
    assert ground.push(ground.action(second, first))[0].status == "ok"
    assert ground.there() == second
    assert push.probe(from_wire(action)) == "unknown"
    assert push.probe(from_wire({**action, "url": str(ground.base / "nowhere")})) == "unknown"


def test_a_remote_that_moved_is_left_alone(ground: Ground) -> None:
    first = git(ground.repo, "rev-parse", "HEAD")
    ground.push(ground.action(first, "absent"))
    second = ground.commit("two")
    outcome, text = ground.push(ground.action(second, "absent"))
    assert outcome.status == "refused"
    assert f"{REF} on the remote was absent and is now {first}" in text
    assert ground.there() == first


def test_only_an_approved_force_replaces_commits(ground: Ground) -> None:
    first = ground.commit("first")
    ground.push(ground.action(first, "absent"))
    git(ground.repo, "reset", "-q", "--hard", "HEAD~1")
    other = ground.commit("other")
    outcome, text = ground.push(ground.action(other, first))
    assert outcome.status == "error"
    assert "rejected" in text
    assert ground.there() == first
    assert ground.push(ground.action(other, first, force=True))[0].status == "ok"
    assert ground.there() == other


def test_nothing_the_repository_configures_takes_part(ground: Ground) -> None:
    marker = ground.base / "ran"
    script = ground.base / "evil.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\nexit 0\n")
    script.chmod(0o755)
    hooks = ground.repo / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for hook in ("pre-push", "reference-transaction", "post-checkout"):
        (hooks / hook).symlink_to(script)
    evil = ground.base / "evil.git"
    git(ground.base, "init", "-q", "--bare", str(evil))
    for key in (
        "core.fsmonitor",
        "core.sshCommand",
        "core.askPass",
        "core.pager",
        "core.editor",
        "credential.helper",
        "gpg.program",
        "core.gitProxy",
        "core.alternateRefsCommand",
    ):
        git(ground.repo, "config", key, str(script))
    for key, value in (
        ("core.hooksPath", str(hooks)),
        (f"url.{evil}.insteadOf", str(ground.remote)),
        (f"url.{evil}.pushInsteadOf", str(ground.remote)),
        ("remote.origin.pushurl", str(evil)),
        ("remote.origin.receivepack", str(script)),
        ("push.gpgSign", "true"),
        ("alias.push", f"!{script}"),
        ("uploadpack.packObjectsHook", str(script)),
    ):
        git(ground.repo, "config", key, value)
    sha = git(ground.repo, "rev-parse", "HEAD")
    outcome, text = ground.push(ground.action(sha, "absent"))
    assert outcome.status == "ok", text
    assert not marker.exists()
    assert ground.there() == sha
    assert git(evil, "for-each-ref") == ""


def test_an_unreachable_remote_is_a_clear_refusal(ground: Ground) -> None:
    sha = git(ground.repo, "rev-parse", "HEAD")
    outcome, text = ground.push(ground.action(sha, "absent", url=str(ground.base / "nowhere.git")))
    assert outcome.status == "refused"
    assert "the remote does not answer" in text


@pytest.mark.parametrize(
    ("url", "specs", "words"),
    [
        ("ext::sh -c x", [["a" * 40, REF, "absent"]], "the address"),
        ("--upload-pack=x", [["a" * 40, REF, "absent"]], "the address"),
        ("", [["a" * 40, REF, "absent"]], "the address"),
        ("fd::7", [["a" * 40, REF, "absent"]], "the address"),
        ("ext://x", [["a" * 40, REF, "absent"]], "helper program"),
        ("file:///srv/x", [["a" * 40, REF, "absent"]], "from the root"),
        ("../x", [["a" * 40, REF, "absent"]], "from the root"),
        ("/r", [], "nothing to push"),
        ("/r", [["HEAD", REF, "absent"]], "full commit id"),
        ("/r", [["a" * 40, "x", "absent"]], "full ref name"),
        ("/r", [["a" * 40, "refs/heads/a:refs/heads/b", "absent"]], "full ref name"),
        ("/r", [["a" * 40, "refs/heads/../x", "absent"]], "full ref name"),
        ("/r", [["a" * 40, REF, "old"]], "neither"),
    ],
)
def test_what_is_not_an_exact_push_is_refused(url: str, specs: list[list[str]], words: str) -> None:
    with pytest.raises(push.PushError, match=words):
        push.check(url, specs)


def test_addresses_that_people_use_pass() -> None:
    for url in ("https://example.org/x.git", "git@example.org:x.git", "ssh://[::1]:22/x", "/srv/git/x.git"):
        push.check(url, [["a" * 40, REF, "absent"]])
