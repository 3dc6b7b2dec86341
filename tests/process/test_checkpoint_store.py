"""Checkpoints in the store of a session: each holds on to nothing but its files and the branch, and goes alone; nothing
of it is in the repository, and nothing that goes from there takes it away.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.workspace.export import checkpoint_store as stores
from harness.workspace.export.checkpoint_store import Store
from harness.workspace.git.run import Git
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree.worktrees import Start, create
from tests.fleetlib import git
from tests.process.undolib import repository

CHANCE = "the bytes of a file that nobody committed, and somebody else did\n"
ME = ("-c", "user.name=Test", "-c", "user.email=test@example.invalid")


def begun(tmp_path: Path, name: str = "s1", start: Start | None = None) -> tuple[Worktree, Store]:
    """A session on the repository below ``tmp_path``, which is made when there is none."""
    repo = tmp_path / "repo"
    if not repo.exists():
        repository(repo, {"a.txt": "alpha\n", "b.txt": "beta\n"})
    folder = tmp_path / "sessions" / name
    tree = create(repo, tmp_path / "trees" / name, f"watchfloor/{name}", folder / "git" / "private", start)
    return tree, Store(name, folder / "checkpoints.git")


def streamed(tree: Worktree, body: str, ground: str = "", message: str = "m", parent: str = "") -> Path:
    stream = tree.private.parent / "stream"
    stream.write_text(stores.head(parent or tree.base, message) + (ground or "deleteall\n") + body + "\ndone\n")
    return stream


def kept(tree: Worktree, store: Store, number: int, body: str, ground: str = "", message: str = "m") -> str:
    return store.keep(tree, number, tree.base, streamed(tree, body, ground, message))


def file(name: str, text: str) -> str:
    return f'M 100644 inline "{name}"\ndata {len(text)}\n{text}\n'


def committed(repo: Path, name: str, text: str) -> str:
    """A commit over HEAD that no ref holds, with one file more."""
    (repo / name).write_text(text)
    git(repo, "checkout", "-q", "--detach")
    git(repo, "add", "-f", name)
    git(repo, *ME, "commit", "-qm", name)
    made = git(repo, "rev-parse", "HEAD").strip()
    git(repo, "checkout", "-q", "main")
    return made


def collect(repo: Path) -> None:
    """What a person's git deletes at most."""
    git(repo, "reflog", "expire", "--expire=now", "--all")
    git(repo, "gc", "-q", "--prune=now")


def everything(folder: Path) -> str:
    """All objects of a repository, those that nothing leads to as well."""
    args = ("git", "cat-file", "--batch-all-objects", "--batch", "--unordered")
    return subprocess.run(args, cwd=folder, check=True, capture_output=True).stdout.decode("latin-1")


def test_a_ref_is_replaced_thinned_and_removed(tmp_path: Path) -> None:
    tree, store = begun(tmp_path)
    inner = Git(store.folder)
    first = kept(tree, store, 1, file("a.txt", "A\n"), message="évil\nfrom HEAD\nname")
    assert inner.names("ls-tree", "-r", "-z", "--name-only", first) == ["a.txt"]
    assert inner.text("log", "-1", "--format=%B", first).strip() == "?vil?from HEAD?name"
    other = kept(tree, store, 1, file("a.txt", "B\n"))
    assert inner.commit(store.ref(1)) == other, "what an attempt that died left is taken over"
    second = kept(tree, store, 2, file("c", "c"), store.ground(tree.common, other))
    assert inner.names("ls-tree", "-r", "-z", "--name-only", second) == ["a.txt", "c"]
    assert inner.text("rev-parse", f"{second}^") == tree.base, "it does not hold the one before"
    their_tree, theirs = begun(tmp_path, "s2")
    third = kept(their_tree, theirs, 1, "")
    assert store.ground(tree.common, "0" * 40) == ""
    assert store.drop(tree.common, {2}) == 1
    assert store.standing() == [store.ref(2)]
    assert store.drop(tree.common) == 1
    assert store.standing() == []
    assert Git(theirs.folder).commit(theirs.ref(1)) == third
    assert git(tree.repo, "for-each-ref", "--format=%(refname)", "refs/watchfloor").split() == [
        "refs/watchfloor/under/s2/1"
    ]
    assert [path.name for path in tree.common.iterdir() if "crash" in path.name] == []


def test_nothing_of_one_is_in_the_repository(tmp_path: Path) -> None:
    tree, store = begun(tmp_path)
    before = everything(tree.common)
    commit = kept(tree, store, 1, file(".env", "secret") + file("a.txt", "alpha\n"))
    assert everything(tree.common) == before
    assert git(store.folder, "show", f"{commit}:.env") == "secret", "a person's git reads it where it is"
    assert git(store.folder, "show", f"{commit}:a.txt") == "alpha\n", "and what it borrows"
    assert not store.folder.stat().st_mode & 0o077


@pytest.mark.parametrize("packed", [False, True])
def test_whatever_goes_from_the_repository_takes_nothing_of_it_away(tmp_path: Path, packed: bool) -> None:
    tree, store = begun(tmp_path)
    side = committed(tree.repo, "by-chance", CHANCE)
    if packed:
        git(tree.repo, "repack", "-adkq")
    same = file("mine", CHANCE)
    stands = store.keep(tree, 1, side, streamed(tree, file("x", "x") + file("by-chance", "other"), parent=side))
    commit = kept(tree, store, 2, same + file("a.txt", "alpha\n"))

    git(tree.repo, "update-ref", "-d", f"refs/heads/{tree.branch}")
    collect(tree.repo)
    git(store.folder, "fsck", "--strict")
    assert git(store.folder, "show", f"{commit}:mine") == CHANCE
    assert git(store.folder, "show", f"{stands}^:by-chance") == CHANCE

    store.drop(tree.common, {2})
    collect(tree.repo)
    assert Git(tree.common).commit(side) is None, "what stood under one that went is let go"
    assert git(store.folder, "show", f"{commit}:mine") == CHANCE
    git(tree.repo, "update-ref", f"refs/heads/{tree.branch}", tree.base)
    begin = Start(tree.base, tree.base, commit, store.objects)
    child, _ = begun(tmp_path, "s2", begin)
    assert (child.root / "mine").read_text() == CHANCE
    assert store.ground(tree.common, stands) == "", "nothing begins from one whose ground is gone"


@pytest.mark.parametrize("kind", ["sha256", "shallow", "borrowing", "name"])
def test_any_repository_has_them(tmp_path: Path, kind: str) -> None:
    main = repository(tmp_path / "main", {"a.txt": "alpha\n"})
    committed(main, "b.txt", "beta\n")
    git(main, "checkout", "-q", "-B", "main", "HEAD@{1}")
    repo = tmp_path / "repo"
    if kind == "sha256":
        git(tmp_path, "init", "-q", "-b", "main", "--object-format=sha256", str(repo))
        (repo / "a.txt").write_text("alpha\n")
        git(repo, "add", ".")
        git(repo, *ME, "commit", "-qm", "start")
    elif kind == "shallow":
        git(tmp_path, "clone", "-q", "--depth=1", f"file://{main}", str(repo))
    elif kind == "borrowing":
        git(tmp_path, "clone", "-q", "--shared", str(main), str(repo))
    else:
        repo = tmp_path / 'od:d "name" é' / "repo"
        repo.parent.mkdir()
        git(tmp_path, "clone", "-q", str(main), str(repo))
    folder = repo.parent / "sessions" / "s1"
    tree = create(repo, repo.parent / "trees" / "s1", "watchfloor/s1", folder / "git" / "private")
    store = Store("s1", folder / "checkpoints.git")
    first = kept(tree, store, 1, file("a.txt", "alpha\n") + file("n", "new"))
    commit = kept(tree, store, 2, file("m", "more"), store.ground(tree.common, first))
    assert git(store.folder, "show", f"{commit}:a.txt", f"{commit}:n", f"{commit}:m") == "alpha\nnewmore"
    child = create(
        repo,
        repo.parent / "trees" / "s2",
        "watchfloor/s2",
        folder.with_name("s2") / "git" / "private",
        Start(tree.base, tree.base, commit, store.objects),
    )
    assert (child.root / "m").read_text() == "more"


def test_many_become_one_pack_without_those_that_went(tmp_path: Path) -> None:
    tree, store = begun(tmp_path)
    commit = ""
    for number in range(1, 20):
        ground = store.ground(tree.common, commit) if commit else ""
        commit = kept(tree, store, number, file(f"f{number}", f"text {number}"), ground)
        store.drop(tree.common, {number, number - 1})
        store.tidy(tree)
    assert [path.suffix for path in sorted((store.objects / "pack").iterdir())].count(".pack") <= 17
    git(store.folder, "fsck", "--strict")
    for number in range(1, 20):
        assert git(store.folder, "show", f"{commit}:f{number}") == f"text {number}"
    assert store.drop(tree.common) == 2
    assert store.standing() == []
    first = kept(tree, store, 20, file("z", "z"))
    for number in range(21, 40):
        kept(tree, store, number, file("z", f"z{number}"))
        store.drop(tree.common, {20})
        store.tidy(tree)
    assert "text 1" not in everything(store.folder), "what went takes no room"
    assert git(store.folder, "show", f"{first}:z") == "z"


def test_what_a_killed_git_leaves_stands_in_nobodys_way(tmp_path: Path) -> None:
    tree, store = begun(tmp_path)
    kept(tree, store, 1, file("a", "a"))
    (store.folder / "refs/watchfloor/checkpoints/s1/2.lock").write_bytes(b"")
    (store.folder / "HEAD").unlink()
    assert store.drop(tree.common, {1}) == 0, "a store that was only half made holds none"
    second = kept(tree, store, 2, file("b", "b"))
    assert git(store.folder, "rev-parse", store.ref(2)).strip() == second
