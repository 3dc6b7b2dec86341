"""A push to a folder of this machine runs programs there as the user: never where an agent can write, never unseen."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from harness.executor import push
from tests.process.pushlib import HOOKS, Ground, git

REF = "refs/heads/x"


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    return Ground(tmp_path, monkeypatch)


def denied(ground: Ground, *words: str) -> str:
    """The reason for which a push is refused; nothing of any hook may have run."""
    tried = ground.push(*words, f"HEAD:{REF}")
    assert ground.hooks_that_ran() == set()
    assert tried.verdict.verdict == "deny", tried.output
    return tried.verdict.reason


# -- repositories of the agent ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        "{path}",
        "file://{path}",
        "file://localhost{path}",
        "./evil.git",
        "../s1/evil.git",
        "{path}/",
        "{base}/state/../state/worktrees/s1/evil.git",
    ],
)
def test_the_agents_own_repository_is_never_pushed_to(ground: Ground, form: str) -> None:
    evil = ground.bare(ground.tree.root / "evil.git", *HOOKS)
    assert "configured" in denied(ground, form.format(path=evil, base=ground.base))


def test_a_plain_name_is_a_remote_or_nothing(ground: Ground) -> None:
    ground.bare(ground.tree.root / "evil.git", *HOOKS)
    assert "there is no remote 'evil.git'" in denied(ground, "evil.git")


def test_a_remote_that_the_agent_configured_is_none(ground: Ground) -> None:
    evil = ground.bare(ground.tree.root / "evil.git", *HOOKS)
    git(ground.repo, "config", "extensions.worktreeConfig", "true")
    (ground.tree.private / "config.worktree").write_text(f'[remote "mine"]\n\turl = {evil}\n')
    (ground.tree.private / "config").write_text(f'[remote "mine"]\n\turl = {evil}\n')
    assert "there is no remote 'mine'" in denied(ground, "mine")


def test_configuration_included_from_where_the_agent_writes_is_not_heard(ground: Ground) -> None:
    evil = ground.bare(ground.tree.root / "evil.git", *HOOKS)
    (ground.tree.root / "team.gitconfig").write_text(f'[remote "mine"]\n\turl = {evil}\n')
    git(ground.repo, "config", "include.path", str(ground.tree.root / "team.gitconfig"))
    assert "there is no remote 'mine'" in denied(ground, "mine")


@pytest.mark.parametrize("kind", ["insteadOf", "pushInsteadOf"])
@pytest.mark.parametrize("address", ["https://team.invalid/evil.git", "git@team.invalid:evil.git"])
def test_an_address_that_the_users_rewrites_turn_into_a_folder_is_a_folder(
    ground: Ground, kind: str, address: str
) -> None:
    ground.bare(ground.tree.root / "evil.git", *HOOKS)
    ground.rewrite(f"{ground.tree.root}/", address.removesuffix("evil.git"), kind)
    assert str(ground.tree.root / "evil.git") in denied(ground, address)


def test_a_configured_remote_that_is_rewritten_to_where_the_agent_writes_is_refused(ground: Ground) -> None:
    ground.bare(ground.tree.root / "evil.git", *HOOKS)
    git(ground.repo, "remote", "add", "origin", "https://team.invalid/evil.git")
    ground.rewrite(f"{ground.tree.root}/", "https://team.invalid/")
    assert "an agent can write" in denied(ground, "origin")


@pytest.mark.parametrize("where", ["worktree", "sessions", "objects"])
def test_a_configured_remote_where_an_agent_can_write_is_refused(ground: Ground, where: str) -> None:
    folder = {
        "worktree": ground.tree.root,
        "sessions": ground.state / "sessions" / "s2" / "git",
        "objects": ground.tree.objects,
    }[where]
    evil = ground.bare(folder / "evil.git", *HOOKS)
    git(ground.repo, "remote", "add", "origin", str(evil))
    assert "an agent can write" in denied(ground, "origin")


def test_links_that_lead_in_or_through_are_refused(ground: Ground) -> None:
    evil = ground.bare(ground.tree.root / "evil.git", *HOOKS)
    ground.bare(ground.base / "own.git", *HOOKS)
    (ground.base / "into.git").symlink_to(evil)
    (ground.tree.root / "out.git").symlink_to(ground.base / "own.git")
    (ground.base / "through").symlink_to(ground.tree.root)
    for name, url in (("into", "into.git"), ("out", "state/worktrees/s1/out.git"), ("through", "through/out.git")):
        git(ground.repo, "remote", "add", name, str(ground.base / url))
        assert "an agent can write" in denied(ground, name)


@pytest.mark.parametrize(
    "part", ["hooks", "config", "pre-receive", "gitfile", "hooksPath", "globalHooksPath", "include"]
)
def test_no_part_of_a_configured_remote_may_come_from_the_agent(ground: Ground, part: str) -> None:
    own = ground.bare(ground.base / "own.git")
    theirs = ground.bare(ground.tree.root / "evil.git", *HOOKS)
    url = own
    match part:
        case "hooks":
            for sample in (own / "hooks").iterdir():
                sample.unlink()
            (own / "hooks").rmdir()
            (own / "hooks").symlink_to(theirs / "hooks")
        case "config":
            (own / "config").unlink()
            (own / "config").symlink_to(theirs / "config")
        case "pre-receive":
            (own / "hooks" / "pre-receive").symlink_to(theirs / "hooks" / "pre-receive")
        case "gitfile":
            url = ground.base / "checkout"
            url.mkdir()
            (url / ".git").write_text(f"gitdir: {theirs}\n")
        case "hooksPath":
            git(own, "config", "core.hooksPath", str(theirs / "hooks"))
        case "globalHooksPath":
            git(
                ground.home,
                "config",
                "--file",
                str(ground.home / ".gitconfig"),
                "core.hooksPath",
                str(theirs / "hooks"),
            )
        case "include":
            git(own, "config", "include.path", str(theirs / "config"))
    git(ground.repo, "remote", "add", "origin", str(url))
    assert "an agent can write" in denied(ground, "origin")


# -- local remotes of the user ---------------------------------------------------------------------


def test_a_local_remote_says_which_hooks_run_and_they_do(ground: Ground) -> None:
    own = ground.bare(ground.base / "own.git", "pre-receive", "post-update")
    git(ground.repo, "remote", "add", "origin", "../own.git")
    tried = ground.push("origin", f"HEAD:{REF}")
    assert tried.verdict.verdict == "ask"
    assert tried.action["url"] == str(own)
    assert tried.action["local"] == {"folder": str(own), "hooks": ["pre-receive", "post-update"], "programs": []}
    assert tried.stale == []
    assert tried.outcome is not None
    assert tried.outcome.status == "ok", tried.output
    assert ground.hooks_that_ran() == {"pre-receive", "post-update"}
    assert git(own, "rev-parse", REF) == ground.tree.base


def test_a_local_remote_without_hooks_runs_none_even_if_one_appears_at_the_last_moment(ground: Ground) -> None:
    own = ground.bare(ground.base / "own.git")
    git(ground.repo, "remote", "add", "origin", str(own))
    action, _ = ground.judged("origin", f"HEAD:{REF}")
    assert action["local"] == {"folder": str(own), "hooks": [], "programs": []}
    ground.hook(own / "hooks" / "post-receive")
    assert any("post-receive did not exist and now does" in text for text in ground.stale(action))
    outcome, text = ground.run(action)
    assert outcome.status == "refused"
    assert "is not what was shown" in text
    assert ground.hooks_that_ran() == set()


def test_a_push_without_hooks_runs_none_whatever_is_there(ground: Ground) -> None:
    own = ground.bare(ground.base / "own.git", *HOOKS)
    name, env = push.aimed(str(own), {"PATH": os.environ["PATH"], "HOME": str(ground.home)})
    for hooks, ran in ((False, set()), (True, set(HOOKS))):
        command = push.command(name, [[ground.tree.base, f"{REF}{hooks}", "absent"]], force=False, hooks=hooks)
        subprocess.run(command, cwd=ground.repo, env=env, check=True, capture_output=True)
        assert ground.hooks_that_ran() == ran


def test_another_hook_or_another_configuration_there_makes_the_approval_stale(ground: Ground) -> None:
    own = ground.bare(ground.base / "own.git", "update")
    git(ground.repo, "remote", "add", "origin", str(own))
    action, _ = ground.judged("origin", f"HEAD:{REF}")
    assert ground.stale(action) == []
    with (own / "hooks" / "update").open("a") as hook:
        hook.write("# more\n")
    assert ground.stale(action) == [f"{own}/hooks/update has other content than what was approved"]
    git(own, "config", "core.hooksPath", "/etc")
    assert any(str(own / "config") in text for text in ground.stale(action))


def test_settings_that_run_programs_there_are_named(ground: Ground) -> None:
    own = ground.bare(ground.base / "own.git")
    (ground.base / "hooks").mkdir()
    ground.hook(ground.base / "hooks" / "proc-receive")
    for key, value in (
        ("core.hooksPath", "../hooks"),
        ("core.fsmonitor", "/opt/watch"),
        ("core.alternateRefsCommand", "/opt/refs"),
        ("receive.procReceiveRefs", "refs/for"),
    ):
        git(own, "config", key, value)
    git(ground.repo, "remote", "add", "origin", str(own))
    action, _ = ground.judged("origin", f"HEAD:{REF}")
    assert action["local"] == {
        "folder": str(own),
        "hooks": ["proc-receive"],
        "programs": ["core.fsmonitor", "core.alternaterefscommand"],
    }


def test_a_remote_that_checks_out_what_is_pushed_is_left_to_the_human(ground: Ground) -> None:
    git(ground.base, "init", "-q", "-b", "main", "site")
    git(ground.base / "site", "config", "receive.denyCurrentBranch", "updateInstead")
    git(ground.repo, "remote", "add", "site", "../site")
    assert "updateInstead" in denied(ground, "site")


def test_a_checkout_can_be_a_remote_and_odd_files_in_its_place_cannot(ground: Ground) -> None:
    git(ground.base, "init", "-q", "-b", "main", "other")
    git(ground.repo, "remote", "add", "other", "../other")
    tried = ground.push("other", f"HEAD:{REF}")
    assert tried.action["url"] == str(ground.base / "other" / ".git")
    assert tried.outcome is not None
    assert tried.outcome.status == "ok", tried.output
    (ground.base / "other" / ".git" / "config").unlink()
    os.mkfifo(ground.base / "other" / ".git" / "config")
    assert "no regular file" in denied(ground, "other")
    git(ground.repo, "remote", "add", "gone", "../gone")
    assert "does not answer" in denied(ground, "gone")


def test_objects_are_never_taken_from_a_nested_repository(ground: Ground) -> None:
    own = ground.bare(ground.base / "own.git")
    git(ground.repo, "remote", "add", "origin", str(own))
    nested = ground.tree.root / "nested"
    git(ground.tree.root, "init", "-q", "nested")
    os.mkfifo(nested / ".git" / "shallow")
    action, _ = ground.judged("origin", f"HEAD:{REF}")
    outcome, text = ground.run({**action, "cwd": str(nested)})
    assert outcome.status == "ok", text
