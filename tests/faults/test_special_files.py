"""Pipes, devices, sockets, files without end, loops and links to secrets in place of each file that the harness reads
of a session.

No reader waits, and none brings what lies behind a link into anything that is stored or shown.
"""

from __future__ import annotations

import os
import shutil
import socket
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.domain.actions.action import from_wire
from harness.executor import preconditions
from harness.linux import safe_files
from harness.protocol.config.sections import SandboxConfig
from harness.supervisor.calls import doubt
from harness.supervisor.calls.queue import cards
from harness.workspace.facts import gather as gather_facts
from harness.workspace.git import processes
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.private_git import private_gitdir
from harness.workspace.tree import diff, remove, worktrees

CANARY = "canary-7f3a"
SECRET = f"-----BEGIN OPENSSH PRIVATE KEY-----\n{CANARY}\n-----END OPENSSH PRIVATE KEY-----\n"
PACK = f"objects/pack/pack-{'1' * 40}"
PRIVATE = (
    *(
        "HEAD",
        "index",
        "commondir",
        "gitdir",
        "ORIG_HEAD",
        "MERGE_HEAD",
        "COMMIT_EDITMSG",
        "config.worktree",
        "logs",
        "logs/HEAD",
        "refs",
        "refs/heads/x",
    ),
    *("packed-refs", ".HEAD.new"),
)
OBJECTS = (
    "objects/info",
    "objects/info/alternates",
    "objects/info/.alternates.new",
    "objects/pack",
    f"{PACK}.pack",
    f"{PACK}.idx",
    "objects/ab",
    f"objects/ab/{'2' * 38}",
)
WORKTREE = ("a.txt", "new.txt", ".gitignore", "src", "src/.gitignore", ".gitattributes", ".gitmodules", "..git.new")
OURS = (".git", "../../private", "../../objects", "../../workspace.json", "../../published", "../../dotgit")
"""What an agent cannot reach; a human, a disk or an approved command can still damage it."""


def device(path: Path) -> None:
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 9))


def sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def listening(path: Path) -> None:
    here = os.getcwd()
    with socket.socket(socket.AF_UNIX) as sock:
        os.chdir(path.parent)  # the name of a socket is short
        try:
            sock.bind(path.name)
        finally:
            os.chdir(here)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


KINDS: dict[str, Callable[[Path], None]] = {
    "pipe": os.mkfifo,
    "device": device,
    "sparse": sparse,
    "socket": listening,
    "loop": loop,
    "folder": Path.mkdir,
    "garbage": lambda path: path.write_bytes(b"\xff\0ref: \xfe" * 100) and None,
}


class World:
    """One session's worktree with its private git folder, and a secret beside."""

    def __init__(self, root: Path) -> None:
        self.secret = root / "id_rsa"
        self.secret.write_text(SECRET)
        repo = root / "repo"
        repo.mkdir()
        self._git(repo, "init", "-q", "-b", "main")
        (repo / "a.txt").write_text("alpha\n")
        (repo / "src").mkdir()
        (repo / "src" / "b.txt").write_text("beta\n")
        self._git(repo, "add", "-A")
        self._git(repo, "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "start")
        self.git = root / "session" / "git"
        self.git.mkdir(parents=True)
        self.tree = worktrees.create(repo, root / "worktrees" / "s", "watchfloor/s", self.git / "private")
        self.head = self.tree.base

    @staticmethod
    def _git(folder: Path, *args: str) -> None:
        subprocess.run(
            ["git", *args],
            cwd=folder,
            check=True,
            env={"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"},
        )

    def place(self, name: str) -> Path:
        if name in WORKTREE or name == ".git":
            return self.tree.root / name
        if name.startswith("../../"):
            return self.git / name.removeprefix("../../")
        return self.git / ("private" if not name.startswith("objects") else "") / name

    def readers(self) -> dict[str, Callable[[], object]]:
        """Everything of the harness that reads a session's folders outside the sandbox."""
        tree = self.tree
        root = str(self.tree.root)
        write = from_wire(
            {"kind": "file", **{"tool": "write_file", "cwd": root, "path": "a.txt", "content_sha": "0" * 64}}
        )
        edit = from_wire({"kind": "file", "tool": "edit_file", "cwd": root, "path": "new.txt"})
        pre = {
            "files": {name: "" for name in WORKTREE},
            "head": "",
            "worktree": {},
            "url": "",
            "refs": {"refs/heads/x": ""},
        }
        binds = [[str(tree.private), str(tree.admin), "rw"]]
        action = {
            "kind": "exec",
            "tool": "exec",
            "argv": ["true"],
            "cwd": root,
            "remote": "origin",
            "sandbox": {"worktree": root, "binds": binds},
            "pre": pre,
        }
        gather = {
            tool: (tool, given)
            for tool, given in (
                ("read_file", {"path": "a.txt"}),
                ("write_file", {"path": "new.txt", "content": "x"}),
                ("exec", {"argv": ["cat", *WORKTREE], "access": "network"}),
                ("shell", {"script": "sh src/b.txt && cat new.txt"}),
            )
        }
        found: dict[str, Callable[[], object]] = {
            f"facts of {name}": lambda g=given: gather_facts.gather(tree, g[0], g[1], SandboxConfig())
            for name, given in gather.items()
        }
        return found | {
            "recheck": lambda: preconditions.difference(
                {"head": self.head, "files": {"a.txt": "x"}}, preconditions.observe(from_wire(action))
            ),
            "head": lambda: (preconditions.head(root, binds), private_gitdir.agent_head(tree)),
            "open": lambda: worktrees.open_worktree(tree.private),
            "prepare": lambda: private_gitdir.prepare(tree),
            "publish": lambda: private_gitdir.publish(tree),
            "diff": lambda: diff.diff(tree),
            "unpushed": lambda: remove.unpushed(tree),
            "card of a write": lambda: cards.diff(write, {"content": "new\n"}),
            "card of an edit": lambda: cards.diff(edit, {"old": "a", "new": "b"}),
            "doubt of a write": lambda: doubt.file_outcome(write, {}),
            "doubt of an edit": lambda: doubt.file_outcome(edit, {"old": "a", "new": "b"}),
        }


def told(reader: Callable[[], object]) -> str:
    """What a reader gives or says: a value, or an error that its callers expect. Its children have three seconds."""
    try:
        with processes.within(processes.Limit(3.0)):
            return repr(reader())
    except (WorkspaceError, OSError) as exc:
        return str(exc)


def damaged(world: World, name: str, put: Callable[[Path], None]) -> Callable[[], None]:
    """Put something in place of a file, keeping what was there; gives the way back."""
    path = world.place(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = world.git.parent / f"aside-{path.name}"
    there = os.path.lexists(path)
    if there:
        path.rename(aside)
    put(path)

    def mend() -> None:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
        if there:
            aside.rename(path)

    return mend


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World(tmp_path_factory.mktemp("special"))


@pytest.mark.parametrize("name", [*PRIVATE, *OBJECTS, *WORKTREE, *OURS])
def test_no_reader_waits_for_what_lies_in_place_of(world: World, name: str) -> None:
    for kind, make in KINDS.items():
        try:
            for reader in world.readers().values():
                mend = damaged(world, name, make)
                try:
                    told(reader)
                finally:
                    mend()
        except PermissionError:
            assert kind == "device"
            continue
    assert private_gitdir.publish(world.tree) == private_gitdir.Published(world.head, False), (
        "mended, it works as before"
    )


@pytest.mark.parametrize("name", [*PRIVATE, *OBJECTS, *WORKTREE, *OURS])
def test_no_reader_brings_out_a_secret_behind_a_link_in_place_of(world: World, name: str) -> None:
    forms = {
        "key": SECRET,
        "ref": f"ref: {CANARY}\n",
        "refs": f"ref: refs/heads/{CANARY}\n",
        "gitdir": f"gitdir: /{CANARY}\n",
        "lines": f"{CANARY}\n" * 3,
    }
    for form, text in forms.items():
        world.secret.write_text(text)
        for what, reader in world.readers().items():
            mend = damaged(world, name, lambda path: path.symlink_to(world.secret))
            try:
                assert CANARY not in told(reader), (form, what)
            finally:
                mend()
    folder = world.secret.parent
    for what, reader in world.readers().items():
        mend = damaged(world, name, lambda path: path.symlink_to(folder))
        try:
            assert CANARY not in told(reader), ("folder", what)
        finally:
            mend()


def test_a_head_that_is_no_commit_is_never_repeated(world: World) -> None:
    binds = [[str(world.tree.private), str(world.tree.admin), "rw"]]
    for text in (
        CANARY,
        f"ref: {CANARY}",
        f"ref: refs/heads/../../../{CANARY}",
        "a" * 39,
        "a" * 41,
        f"{'a' * 40} {CANARY}",
        f"{'a' * 40}\n{CANARY}",
    ):
        mend = damaged(world, "HEAD", lambda path, text=text: path.write_text(text) and None)
        try:
            seen = preconditions.head(str(world.tree.root), binds)
            assert seen in (preconditions.NO_COMMIT, preconditions.ABSENT), text
            assert CANARY not in str(preconditions.difference({"head": "a" * 40}, {"head": seen}))
        finally:
            mend()


def test_a_ref_below_a_linked_folder_of_the_private_git_folder_is_not_followed(world: World, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("c" * 40 + "\n")
    binds = [[str(world.tree.private), str(world.tree.admin), "rw"]]
    (world.tree.private / "refs").mkdir(exist_ok=True)
    mends = [
        damaged(world, "refs/heads", lambda path: path.symlink_to(tmp_path)),
        damaged(world, "HEAD", lambda path: path.write_text("ref: refs/heads/x\n") and None),
    ]
    try:
        assert preconditions.head(str(world.tree.root), binds) == preconditions.NO_COMMIT
    finally:
        for mend in reversed(mends):
            mend()


def test_many_large_files_are_read_together_up_to_a_limit(tmp_path: Path) -> None:
    names = [f"{number:02}" for number in range(40)]
    for name in names:
        with (tmp_path / name).open("wb") as file:
            file.truncate(200 << 20)
    found = preconditions.file_states({name: str(tmp_path / name) for name in names})
    assert len(found["00"]) == 64
    assert all(found[name].startswith("large: ") for name in names[2:])
    assert found == preconditions.file_states({name: str(tmp_path / name) for name in reversed(names)}), (
        "the order of the names decides, nothing else"
    )


def test_reading_is_bounded_and_names_what_it_met(tmp_path: Path) -> None:
    for kind, make in KINDS.items():
        path = tmp_path / kind
        try:
            make(path)
        except PermissionError:
            assert kind == "device"
            continue
        if kind == "garbage":
            continue
        with pytest.raises(OSError) as met:
            safe_files.read(path)
        assert kind in str(met.value)
