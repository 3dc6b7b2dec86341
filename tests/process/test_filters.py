"""Files behind filters: a session has what they hold, and commits what the filter makes of them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from harness.domain.denied import Denied
from harness.workspace.clone.repository_notes import look
from harness.workspace.git.errors import CannotKeep
from harness.workspace.git.run import head_commit, open_repository
from harness.workspace.merge import checkout, merge
from harness.workspace.merge.checkout import CannotMove
from harness.workspace.merge.merge import MergeRequest, MergeResult
from harness.workspace.private_git.private_gitdir import Worktree, publish
from harness.workspace.tree.diff import diff
from harness.workspace.tree.worktrees import create
from tests.fleetlib import fleet, play
from tests.process.test_workspace_worktrees import agent, git, repository, session

pytestmark = pytest.mark.sandbox
RAW = "raw " * 5000


def pointer(text: str) -> str:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{digest}\nsize {len(text)}\n"


def stored(repo: Path, text: str) -> Path:
    digest = hashlib.sha256(text.encode()).hexdigest()
    return repo / ".git" / "lfs" / "objects" / digest[:2] / digest[2:4] / digest


def put(repo: Path, text: str) -> None:
    stored(repo, text).parent.mkdir(parents=True, exist_ok=True)
    stored(repo, text).write_text(text)


@pytest.fixture
def lfs(tmp_path: Path) -> Path:
    """A repository in git-lfs's format, without that program; one object is here and one is not."""
    repo = repository(
        tmp_path / "repo",
        **{
            ".gitattributes": "*.bin filter=lfs -text\n",
            "a.bin": pointer(RAW),
            "far.bin": pointer("far"),
            "b.txt": "b",
        },
    )
    put(repo, RAW)
    git(repo, "config", "filter.lfs.clean", "git-lfs clean -- %f")
    git(repo, "config", "filter.lfs.smudge", "git-lfs smudge -- %f")
    git(repo, "config", "filter.lfs.process", "git-lfs filter-process")
    git(repo, "config", "filter.lfs.required", "true")
    return repo


def notes(repo: Path) -> str:
    found = open_repository(repo)
    return "\n".join(look(found, head_commit(found)))


def said(tree: Worktree, path: str) -> str:
    return git(tree.repo, "show", f"{tree.branch}:{path}") + "\n"


def test_lfs_content_that_is_here_lies_in_the_worktree_and_pointers_are_committed(lfs: Path, tmp_path: Path) -> None:
    assert "1 file (a.bin) behind the filter lfs: the session has what they hold" in notes(lfs)
    assert "1 file (far.bin) behind the filter lfs, and what they hold is not in your clone" in notes(lfs)
    assert "lfs pull" in notes(lfs)
    tree = session(tmp_path, lfs)
    assert (tree.root / "a.bin").read_text() == RAW
    assert (tree.root / "far.bin").read_text() == pointer("far")
    assert agent(tree, "git status --porcelain; git diff --stat; git add -A; git diff --cached --stat") == ""
    assert (diff(tree).files, merge.uncommitted(tree, tree.base)) == ((), ())
    agent(tree, "echo new >>a.bin; echo more >c.bin; echo b >b.txt; git add -A; git commit -qm work")
    assert publish(tree).moved
    assert said(tree, "a.bin") == pointer(f"{RAW}new\n")
    assert said(tree, "c.bin") == pointer("more\n")
    assert stored(lfs, "more\n").read_text() == "more\n"
    assert merge.uncommitted(tree, git(lfs, "rev-parse", tree.branch)) == ()
    assert agent(tree, "git checkout -q HEAD~ -- a.bin; git status --porcelain; head -c 7 a.bin") == "M  a.bin\nraw raw"
    agent(tree, "git checkout -q HEAD -- a.bin")
    assert (tree.root / "a.bin").read_text() == f"{RAW}new\n"


def test_what_was_made_of_a_file_is_not_believed_of_other_content(lfs: Path, tmp_path: Path) -> None:
    tree = session(tmp_path, lfs)
    other = hashlib.sha256(b"other").hexdigest()
    made = tree.private.parent / "filtered" / "new"
    made.mkdir(parents=True)
    (made / other).write_text(pointer(RAW))
    (tree.root / "a.bin").write_text("other")
    assert merge.uncommitted(tree, tree.base) == ("a.bin",)


def test_an_object_that_is_not_what_its_name_says_is_neither_laid_nor_carried(lfs: Path, tmp_path: Path) -> None:
    stored(lfs, RAW).write_text("bad " * 5000)
    tree = session(tmp_path, lfs)
    assert (tree.root / "a.bin").read_text() == pointer(RAW)
    agent(tree, "echo more >c.bin; git add c.bin; git commit -qm c")
    made = (
        tree.private.parent / "filtered" / "lfs" / stored(lfs, "more\n").relative_to(lfs / ".git" / "lfs" / "objects")
    )
    made.chmod(0o600)
    made.write_text("less\n")
    publish(tree)
    assert not stored(lfs, "more\n").exists()


def move(tree: Worktree) -> None:
    wish = MergeRequest("merge", tree.repo)
    seen, place = merge.survey(tree, "s1", wish)
    assert place is not None
    found = merge.make(tree, place, seen.head, wish, "s1", "goal", merge.Rules(), None)
    assert isinstance(found, MergeResult)
    checkout.move(place, place.onto, found.commit, "m1", tree.private.parent)


def test_the_checks_of_a_merge_have_the_content(lfs: Path, tmp_path: Path) -> None:
    tree = session(tmp_path, lfs)
    agent(tree, "echo more >c.bin; git add c.bin; git commit -qm c")
    head = publish(tree).head
    (tmp_path / "merge").mkdir()
    merge.lay_out(tree, head, tmp_path / "merge" / "tree")
    assert (tmp_path / "merge/tree/a.bin").read_text() == RAW
    assert (tmp_path / "merge/tree/c.bin").read_text() == "more\n"


def test_advice_says_merge_only_of_pointers(lfs: Path, tmp_path: Path) -> None:
    tree = session(tmp_path, lfs)
    agent(tree, "echo more >c.bin; git add c.bin; git commit -qm c")
    with pytest.raises(CannotMove, match=r"c\.bin goes through the filter lfs.*git -C \S+ merge "):
        move(tree)
    agent(tree, "echo raw >d.bin; git -c filter.lfs.clean=cat -c filter.lfs.required=false add d.bin; git commit -qm d")
    assert publish(tree).moved
    with pytest.raises(
        CannotMove, match=r"d\.bin goes through the filter lfs.*: cp \S+d\.bin \S+d\.bin, then"
    ) as refused:
        move(tree)
    assert " merge " not in str(refused.value)


def test_what_the_person_commits_for_a_session_is_never_raw(lfs: Path, tmp_path: Path) -> None:
    tree = session(tmp_path, lfs)
    (tree.root / "a.bin").write_text("changed")
    with pytest.raises(CannotKeep, match=r"a\.bin goes through the filter lfs.*continue"):
        merge.commit_all(tree, "all")


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A repository with filters of its own, required, whose program keeps what the files hold beside the repository."""
    repo = repository(tmp_path / "repo")
    for name, text in (
        ("clean", 's=$(sha256sum); s=${s%% *}; echo "kept $s"'),
        ("smudge", f"read -r _ s; cat '{tmp_path}/kept/'$s"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
        git(repo, "config", f"filter.own.{name}", f"{tmp_path}/{name}")
    git(repo, "config", "filter.own.required", "true")
    (repo / ".gitattributes").write_text("*.dat filter=own\n")
    (repo / "a.dat").write_text(RAW)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "two")
    return repo


def test_a_filter_of_ones_own_gives_what_the_checkout_holds_and_commits_no_raw_content(
    own: Path, tmp_path: Path
) -> None:
    assert "1 file (a.dat) behind the filter own: the session has what they hold here" in notes(own)
    tree = session(tmp_path, own)
    assert (tree.root / "a.dat").read_text() == RAW
    assert agent(tree, "git status --porcelain; git mv a.dat b.dat; git commit -qm moved; git status --porcelain") == ""
    publish(tree)
    assert said(tree, "b.dat").startswith("kept ")
    out = agent(tree, "echo x >c.dat; git add c.dat || echo refused", ok=False)
    assert "its filter does not work in the sandbox" in out
    assert "refused" in out
    with pytest.raises(CannotMove, match=r"b\.dat goes through the filter own.*git -C \S+ merge "):
        move(tree)


def test_a_filter_whose_program_is_in_the_sandbox_cleans_there(own: Path, tmp_path: Path) -> None:
    git(own, "config", "filter.own.clean", "sed s/raw/kept/")
    git(own, "config", "filter.own.smudge", "sed s/kept/raw/")
    (own / "a.dat").write_text("raw\n")
    git(own, "commit", "-qam", "sed")
    tree = session(tmp_path, own)
    assert (tree.root / "a.dat").read_text() == "raw\n"
    agent(tree, "echo raw2 >a.dat; git commit -qam more; git status --porcelain")
    head = publish(tree).head
    assert said(tree, "a.dat") == "kept2\n"
    assert merge.uncommitted(tree, head) == ()
    agent(tree, "git checkout -q HEAD~ -- a.dat; cat a.dat")
    with pytest.raises(CannotMove, match=r"a\.dat goes through the filter own.*: cp "):
        move(tree)


@pytest.mark.parametrize("how", ["changed", "away", "linked"])
def test_what_the_checkout_has_otherwise_is_not_taken_for_the_commits(own: Path, tmp_path: Path, how: str) -> None:
    if how == "changed":
        (own / "a.dat").write_text("mine, in no commit")
    else:
        (own / "a.dat").unlink()
    if how == "linked":
        os.symlink("/etc/passwd", own / "a.dat")
    assert "1 file (a.dat) behind the filter own, and what they hold is not" in notes(own)
    tree = session(tmp_path, own)
    assert (tree.root / "a.dat").read_text().startswith("kept ")
    assert agent(tree, "touch a.dat; git status --porcelain; rm a.dat; git checkout -- a.dat; git status -s") == ""


def test_what_is_committed_encrypted_stays_closed(own: Path, tmp_path: Path) -> None:
    git(own, "config", "filter.own.clean", "printf 'CRYPT\\0'; tr a-z b-za")
    git(own, "config", "filter.own.smudge", "tail -c +7 | tr b-za a-z")
    (own / "a.dat").write_text("hidden\n")
    git(own, "commit", "-qam", "closed")
    assert "1 file (a.dat) behind the filter own, and what they hold is not in your checkout" in notes(own)
    tree = session(tmp_path, own)
    assert (tree.root / "a.dat").read_bytes() == b"CRYPT\0ijeefo\n"
    assert agent(tree, "touch a.dat; git status --porcelain; git add -A; git status -s") == ""


def test_no_program_of_a_filter_runs_outside(own: Path, tmp_path: Path) -> None:
    for name in ("clean", "smudge"):
        git(own, "config", f"filter.own.{name}", f"touch '{tmp_path}/ran'; cat")
    notes(own)
    tree = session(tmp_path, own)
    (tree.root / "a.dat").write_text("other")
    diff(tree)
    agent(tree, "git commit -qam other")
    publish(tree)
    assert not (tmp_path / "ran").exists()


def test_a_command_that_may_hold_a_secret_is_not_shown(own: Path, tmp_path: Path) -> None:
    git(own, "config", "filter.own.clean", "openssl enc -pass pass:hunter2")
    tree = session(tmp_path, own)
    assert "hunter2" not in agent(tree, "cat $GIT_CONFIG_GLOBAL ${GIT_CONFIG_GLOBAL%gitconfig}filters/config")


def test_what_a_role_denies_is_in_no_store_of_its_filters(lfs: Path, tmp_path: Path) -> None:
    (lfs / "open.bin").write_text(pointer("open"))
    put(lfs, "open")
    git(lfs, "config", "--unset", "filter.lfs.process")
    git(lfs, "config", "filter.lfs.clean", "cat")
    git(lfs, "add", "open.bin")
    git(lfs, "commit", "-qm", "open")
    place = (tmp_path / "state/worktrees/s1", "watchfloor/s1", tmp_path / "state/sessions/s1/git/private")
    tree = create(lfs, *place, denied=Denied(paths=("a.bin",)))
    assert (tree.root / "open.bin").read_text() == "open"
    out = agent(tree, "rm open.bin; git checkout -q HEAD -- open.bin; cat open.bin")
    assert out == "open"
    assert "raw raw" not in agent(tree, "grep -r 'raw raw' ${GIT_CONFIG_GLOBAL%/gitconfig} || :")


def test_a_session_with_lfs_is_checked_on_content_and_its_own_files_are_no_change(lfs: Path) -> None:
    with fleet() as f:
        turn = [("shell", {"script": "echo more >c.bin; git add -A; git commit -qm c"})]
        checks = ("grep -q raw a.bin", "grep -q more c.bin")
        sid = f.launch(play(turn, "Done."), repo=lfs, checks=checks)
        f.wait_state(sid, "done")
        out = f.run("merge", sid, check=False)
        assert "c.bin goes through the filter lfs" in out.stdout + out.stderr
        branch = f.json("ls")[0]["branch"]
        assert git(lfs, "show", f"{branch}:c.bin").startswith("version https://git-lfs")
        shown = f.run("diff", sid).stdout
        assert "c.bin" in shown
        assert "a.bin" not in shown
