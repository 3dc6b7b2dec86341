"""Removing a session's worktree: what is not provably somewhere else stops it, and what is kept comes back byte for
byte.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

from harness.linux import durable
from harness.workspace.git.discard import discard
from harness.workspace.git.errors import CannotKeep, DamagedWorktree, UnsavedWork
from harness.workspace.private_git.private_gitdir import Worktree, publish
from harness.workspace.tree import remove, worktrees
from tests.process.gittraps import ENV, base_repository, commit_as_agent, git, session

KEPT = "refs/watchfloor/kept/s1"


@pytest.fixture
def tree(tmp_path: Path) -> Worktree:
    return session(tmp_path, base_repository(tmp_path / "repo"))


def nested(folder: Path) -> str:
    """A repository with a commit; returns it."""
    return git(base_repository(folder), "rev-parse", "HEAD")


def shown(tree: Worktree, path: str, ref: str = KEPT) -> bytes:
    return subprocess.run(
        ["git", "cat-file", "blob", f"{ref}:{path}"], cwd=tree.repo, env=ENV, check=True, capture_output=True
    ).stdout


def refused(tree: Worktree) -> UnsavedWork:
    with pytest.raises(UnsavedWork) as caught:
        remove.remove(tree, "s1")
    assert tree.root.is_dir()
    return caught.value


@pytest.mark.parametrize(
    "how",
    [
        "untracked",
        "gitlink",
        "gitlink-changed",
        "in-ignored-folder",
        "deep",
        "gitfile",
        "only-git",
        "over-tracked-files",
    ],
)
def test_a_nested_repository_is_work_and_is_kept_whole(tmp_path: Path, tree: Worktree, how: str) -> None:
    place = {"in-ignored-folder": "node_modules/x/sub", "deep": "a/b/c/sub"}.get(how, "sub")
    folder = tree.root / place
    if how == "over-tracked-files":
        folder.mkdir()
        (folder / "mine").write_text("tracked\n")
        commit_as_agent(tree, "sub/mine")
        git(folder, "init", "-q")
        commit = ""
    else:
        commit = nested(folder)
    if how.startswith("gitlink"):
        commit_as_agent(tree, f"160000,{commit},sub")
    if how == "gitlink-changed":
        (folder / "a.txt").write_text("changed\n")
    if how == "gitfile":
        (folder / ".git").rename(tree.root / "far.git")
        (folder / ".git").write_text("gitdir: ../far.git\n")
    if how == "only-git":
        for path in folder.iterdir():
            if path.name != ".git":
                path.unlink()
    (tree.root / ".gitignore").write_text("node_modules/\n")
    commit_as_agent(tree, ".gitignore")
    found = refused(tree)
    assert f"{place}/" in found.nested
    assert f"{place}/" in str(found)
    before = {p.relative_to(tree.root): p.read_bytes() for p in folder.rglob("*") if p.is_file() and not p.is_symlink()}
    assert remove.remove(tree, "s1", force_keep=True) == [KEPT]
    back = tmp_path / "back"
    git(tree.repo, "worktree", "add", "-q", str(back), KEPT)
    with tarfile.open(back / place / ".git.watchfloor.tar") as archive:
        archive.extractall(back / place, filter="data")
    (back / place / ".git.watchfloor.tar").unlink()
    assert {
        p.relative_to(back): p.read_bytes() for p in (back / place).rglob("*") if p.is_file() and not p.is_symlink()
    } == before
    if commit:
        assert git(back / place, "rev-parse", "HEAD") == commit
        git(back / place, "fsck", "--strict")
    git(tree.repo, "fsck", "--strict")


def fall_once_it_is_kept(tree: Worktree, monkeypatch: pytest.MonkeyPatch) -> None:
    """A removal that dies between keeping the work and saying so."""
    (tree.root / "new.txt").write_text("new\n")

    def fall(_path: Path, _data: bytes) -> None:
        raise OSError("the machine falls")

    with monkeypatch.context() as patched:
        patched.setattr(durable, "write_file", fall)
        with pytest.raises(OSError, match="the machine falls"):
            remove.remove(tree, "s1", force_keep=True)


def test_a_removal_that_fell_once_its_work_was_kept_keeps_it_once(
    tree: Worktree, monkeypatch: pytest.MonkeyPatch
) -> None:
    fall_once_it_is_kept(tree, monkeypatch)
    assert shown(tree, "new.txt") == b"new\n"
    assert remove.remove(tree, "s1", force_keep=True) == [KEPT]
    assert git(tree.repo, "for-each-ref", "--format=%(refname)", "refs/watchfloor/kept").split() == [KEPT]


def test_what_was_written_since_a_removal_fell_is_kept_as_well(tree: Worktree, monkeypatch: pytest.MonkeyPatch) -> None:
    fall_once_it_is_kept(tree, monkeypatch)
    (tree.root / "new.txt").write_text("newer\n")
    assert remove.remove(tree, "s1", force_keep=True) == [f"{KEPT}-2"]
    assert shown(tree, "new.txt", f"{KEPT}-2") == b"newer\n"
    assert shown(tree, "new.txt") == b"new\n"


def test_an_empty_git_folder_in_a_folder_is_no_work(tree: Worktree) -> None:
    (tree.root / "empty" / ".git").mkdir(parents=True)
    os.mkfifo(tree.root / "empty" / "pipe")
    assert remove.remove(tree, "s1") == []


def test_ignored_files_are_work_and_what_can_be_made_again_is_not(tree: Worktree) -> None:
    (tree.root / ".gitignore").write_text("*.log\n.env\nbuild/\n*.pyc\n")
    commit_as_agent(tree, ".gitignore")
    for path in ("build/out.o", "node/__pycache__/m.pyc", ".cache/v/x", "src/__pycache__/n.pyc"):
        (tree.root / path).parent.mkdir(parents=True, exist_ok=True)
        (tree.root / path).write_text("made\n")
    (tree.root / ".cache" / ".gitignore").write_text("*\n")
    assert remove.unpushed(tree) == 0
    publish(tree)
    git(tree.repo, "merge", "-q", tree.branch)
    (tree.root / ".env").write_text("KEY=1\n")
    (tree.root / "deep").mkdir()
    (tree.root / "deep" / "x.log").write_text("l\n")
    found = refused(tree)
    assert found.ignored == [".env", "deep/x.log"]
    assert found.files == []
    assert "2 ignored files (.env, deep/x.log) (5 files in ignored folders go in any case)" in str(found)
    assert remove.remove(tree, "s1", force_keep=True) == [KEPT]
    assert shown(tree, ".env") == b"KEY=1\n"
    assert "build" not in git(tree.repo, "ls-tree", "-r", "--name-only", KEPT)


def test_only_what_can_be_made_again_does_not_stop_a_removal(tree: Worktree) -> None:
    (tree.root / ".pytest_cache").mkdir()
    (tree.root / ".pytest_cache" / ".gitignore").write_text("# made by pytest\n*\n")
    (tree.root / ".pytest_cache" / "v").write_text("x")
    (tree.root / "pkg" / "__pycache__").mkdir(parents=True)
    (tree.root / "pkg" / "__pycache__" / "a.pyc").write_bytes(b"\0")
    assert remove.remove(tree, "s1") == []


def test_bytes_modes_links_and_odd_names_are_kept_as_they_lie(tree: Worktree) -> None:
    (tree.root / ".gitattributes").write_text("*.txt text eol=lf\n*.enc working-tree-encoding=UTF-16\n")
    content = {
        b"mixed.txt": b"a\r\nb\n\r\r\n",
        b"bad.enc": b"\xff\xfe\x00",
        b"quo\"te\\ \n new": b"1",
        b"\xff\xfe": b"no utf-8",
        b":(top)x": b"colon",
        b"empty": b"",
    }  # fmt: skip
    for name, data in content.items():
        with open(os.path.join(os.fsencode(tree.root), name), "wb") as file:
            file.write(data)
    (tree.root / "run").write_text("#!/bin/sh\n")
    (tree.root / "run").chmod(0o755)
    (tree.root / "b.txt").unlink()
    (tree.root / "link").symlink_to("/etc/shadow")
    (tree.root / ".GIT").mkdir()
    (tree.root / ".GIT" / "config").write_text("hidden\n")
    (tree.root / ".git ").write_text("one\n")
    (tree.root / ".git:").write_text("two\n")
    os.mkfifo(tree.root / "pipe")
    assert remove.remove(tree, "s1", force_keep=True) == [KEPT]
    out = subprocess.run(
        ["git", "ls-tree", "-r", "-z", KEPT], cwd=tree.repo, env=ENV, check=True, capture_output=True
    ).stdout
    entries = {line.partition(b"\t")[2]: line.split() for line in out.split(b"\0") if line}
    for name, data in content.items():
        blob = subprocess.run(
            ["git", "cat-file", "blob", entries[name][2]], cwd=tree.repo, env=ENV, check=True, capture_output=True
        ).stdout
        assert blob == data, name
    assert entries[b"run"][0] == b"100755"
    assert (entries[b"link"][0], shown(tree, "link")) == (b"120000", b"/etc/shadow")
    assert not {b"b.txt", b"pipe"} & entries.keys()
    with tarfile.open(fileobj=io.BytesIO(shown(tree, ".GIT.watchfloor.tar"))) as archive:
        assert archive.getnames() == [".GIT", ".GIT/config"]
    assert {b".git_.watchfloor.tar", b".git_.watchfloor-2.tar"} <= entries.keys()
    git(tree.repo, "fsck", "--strict")


def test_what_was_staged_by_hand_is_kept_too(tree: Worktree) -> None:
    (tree.root / "a.txt").write_text("staged only\n")
    git(tree.root, "add", "a.txt")
    (tree.root / "a.txt").write_text("a\n")
    assert refused(tree).files == ["a.txt"]
    remove.remove(tree, "s1", force_keep=True)
    assert shown(tree, "a.txt", f"{KEPT}^2") == b"staged only\n"


@pytest.mark.parametrize("where", ["pushed", "remote", "branch", "tag", "nowhere", "another-commit"])
def test_a_commit_is_saved_when_it_is_provably_elsewhere(tree: Worktree, where: str) -> None:
    (tree.root / "a.txt").write_text("work\n")
    commit = commit_as_agent(tree, "a.txt")
    publish(tree)
    if where in ("remote", "branch", "tag"):
        git(
            tree.repo,
            "update-ref",
            {"remote": "refs/remotes/o/x", "branch": "refs/heads/x", "tag": "refs/tags/x"}[where],
            commit,
        )
    known = {"pushed": [commit, "not a commit", "f" * 40], "another-commit": [tree.base]}.get(where, [])
    if where in ("nowhere", "another-commit"):
        with pytest.raises(UnsavedWork, match="1 commit that is"):
            remove.remove(tree, "s1", pushed=known)
        assert git(tree.repo, "rev-parse", tree.branch) == commit
    else:
        assert remove.remove(tree, "s1", pushed=known) == []


def test_a_worktree_that_was_deleted_by_hand_still_has_its_commits(tree: Worktree) -> None:
    (tree.root / "a.txt").write_text("work\n")
    commit = commit_as_agent(tree, "a.txt")
    shutil.rmtree(tree.root)
    with pytest.raises(UnsavedWork, match="1 commit that is"):
        remove.remove(tree, "s1")
    assert remove.remove(tree, "s1", force_keep=True) == [KEPT]
    assert git(tree.repo, "rev-parse", KEPT) == commit


@pytest.mark.parametrize("damage", ["head-gone", "head-garbage", "head-link", "objects-gone", "head-folder"])
def test_a_damaged_git_folder_stops_a_removal_and_can_be_kept(tree: Worktree, damage: str) -> None:
    (tree.root / "a.txt").write_text("work\n")
    commit_as_agent(tree, "a.txt")
    head = tree.private / "HEAD"
    if damage == "objects-gone":
        shutil.rmtree(tree.objects)
        tree.objects.mkdir()
    else:
        head.unlink()
    if damage == "head-garbage":
        head.write_text("garbage\n")
    elif damage == "head-link":
        head.symlink_to("/etc/passwd")
    elif damage == "head-folder":
        head.mkdir()
    with pytest.raises(UnsavedWork, match="could not be brought into the repository"):
        remove.remove(tree, "s1")
    assert remove.remove(tree, "s1", force_keep=True) == [KEPT]
    assert shown(tree, "a.txt") == b"work\n"
    with tarfile.open(fileobj=io.BytesIO(shown(tree, "private.watchfloor.tar"))) as archive:
        assert "private/config" in archive.getnames()
    assert b"root:" not in shown(tree, "private.watchfloor.tar")


def test_too_much_to_keep_is_refused_and_nothing_is_lost(tree: Worktree) -> None:
    (tree.root / "small").write_text("s")
    with open(tree.root / "sparse", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(CannotKeep, match=r"sparse \(1024\.0 GiB\)"):
        remove.remove(tree, "s1", force_keep=True)
    assert (tree.root / "small").exists()
    assert git(tree.repo, "for-each-ref", "refs/watchfloor") == ""
    (tree.root / "sparse").unlink()
    nested(tree.root / "sub")
    with open(tree.root / "sub" / ".git" / "huge", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(CannotKeep, match=r"sub/\.git/huge"):
        remove.remove(tree, "s1", force_keep=True)
    assert (tree.root / "small").exists()


def test_a_kept_ref_of_an_earlier_attempt_is_never_replaced(tree: Worktree) -> None:
    git(tree.repo, "update-ref", KEPT, tree.base)
    (tree.root / "n").write_text("n")
    assert remove.remove(tree, "s1", force_keep=True) == [f"{KEPT}-2"]
    assert git(tree.repo, "rev-parse", KEPT) == tree.base


DYING = """
import os, sys
from pathlib import Path
from harness.linux import durable
from harness.workspace.tree import remove, worktrees
from harness.workspace.git.discard import discard

private, left, calls = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]

def dying(real):
    def die(*args, **given):
        global left
        left -= (private.parent / "leaving").exists()
        if left < 0:
            os.kill(os.getpid(), 9)
        return real(*args, **given)
    return die

for call in calls:
    setattr(os, call, dying(getattr(os, call)))
remove.remove(worktrees.open_worktree(private), "s1", force_keep=True)
"""


@pytest.mark.parametrize("call", ["mkdir", "rename", "unlink", "rmdir"])
def test_a_removal_that_is_killed_is_finished_by_the_next(tree: Worktree, call: str) -> None:
    (tree.root / "n").write_text("n")
    died = subprocess.run([sys.executable, "-c", DYING, str(tree.private), "0", call], check=False)
    assert died.returncode == -9
    assert remove.remove(worktrees.open_worktree(tree.private), "s1", force_keep=True)[0].startswith(KEPT)
    assert shown(tree, "n") == b"n"
    assert not tree.root.exists()
    assert list(tree.root.parent.glob("[.]discarded*")) == []
    assert list(tree.private.parent.iterdir()) == []
    assert git(tree.repo, "for-each-ref", "--format=%(refname)", "refs/heads") == "refs/heads/main"
    assert len(git(tree.repo, "worktree", "list").splitlines()) == 1


def test_a_removal_that_is_killed_again_and_again_gets_to_its_end(tree: Worktree) -> None:
    (tree.root / "n").write_text("n")
    dying = [sys.executable, "-c", DYING, str(tree.private), "7", "mkdir", "rename", "unlink", "rmdir"]
    codes = [subprocess.run(dying, check=False).returncode]
    while codes[-1] == -9 and remove.removed(tree.private) is None:
        codes.append(subprocess.run(dying, check=False).returncode)
    assert set(codes[:-1]) == {-9}
    assert codes[-1] in (0, -9)
    assert not tree.root.exists()
    assert shown(tree, "n") == b"n"


def test_a_removal_that_died_at_its_last_step_is_over(tree: Worktree) -> None:
    assert remove.removed(tree.private) is None
    remove.remove(tree, "s1")
    assert remove.removed(tree.private) == []
    (tree.private.parent / "leaving").write_text(f"{tree.base}\n{KEPT}")
    with pytest.raises(DamagedWorktree):
        worktrees.open_worktree(tree.private)
    assert remove.removed(tree.private) == [KEPT]


def _dig(folder: Path) -> None:
    """Put a file 3,000 folders below this one."""
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("d" * 20, dir_fd=fd)
        below = os.open("d" * 20, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(os.open("work", os.O_WRONLY | os.O_CREAT, 0o600, dir_fd=fd))
    os.close(fd)


def test_a_very_deep_folder_is_removed(tree: Worktree) -> None:
    _dig(tree.root)
    found = refused(tree)
    assert len(found.files) == 1
    with pytest.raises(CannotKeep, match="cannot be read"):
        remove.remove(tree, "s1", force_keep=True)
    shutil.move(tree.root / ("d" * 20), tree.root.parent / "aside")
    discard(tree.root.parent / "aside")
    assert remove.remove(tree, "s1") == []
