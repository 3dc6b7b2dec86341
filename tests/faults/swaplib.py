"""Everything that can be swapped in a worktree between the question and the start, and what must not be noticed."""

from __future__ import annotations

import ctypes
import mmap
import os
import random
import shutil
import stat
from collections.abc import Callable
from dataclasses import dataclass

from tests.faults.swapworld import FILES, LARGE, LINKS, ODD, World, remove

SHADOWS = (
    b"conftest.py",
    b"sitecustomize.py",
    b"os.py",
    b"GNUmakefile",
    b"bin/touch",
    b"pack/__init__.py",
    b".env",
    b"helper/__init__.py",
    ODD + b".new",
)
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("./run",),
    ("./tool",),
    ("/bin/sh", "run"),
    ("/bin/sh", "place/a/script.sh"),
    ("/bin/sh", "-c", 'PATH="./bin:$PATH" step'),
)
SLOWER: tuple[tuple[str, ...], ...] = (("make", "-s"), ("/usr/bin/python3", "main.py"))
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Swap:
    """What was done. ``named`` are texts of which a difference must hold one; none = the world is as it was shown."""

    kind: str
    named: tuple[str, ...] = ()


def shown(name: bytes) -> str:
    """A name as a difference spells it."""
    return name.decode("utf-8", "backslashreplace")


def _other(path: bytes) -> bytes:
    """Other content of the same length."""
    with open(path, "rb") as file:
        data = bytearray(file.read())
    data[-2] ^= 1
    return bytes(data)


def _write(path: bytes, data: bytes) -> None:
    with open(path, "r+b") as file:
        file.write(data)
        file.truncate()


# -- what changes the world ------------------------------------------------------------------------


def _content(w: World, dice: random.Random) -> tuple[bytes, ...]:
    name = dice.choice(sorted(FILES))
    _write(w.at(name), _other(w.at(name)) if dice.random() < 0.5 else dice.randbytes(dice.randrange(1, 9000)))
    return (name,)


def _by_rename(w: World, dice: random.Random) -> tuple[bytes, ...]:
    name = dice.choice(sorted(FILES))
    shutil.copy(w.at(name), w.beside + b"/new")
    _write(w.beside + b"/new", _other(w.at(name)))
    os.replace(w.beside + b"/new", w.at(name))
    return (name,)


def _disguised(w: World, dice: random.Random) -> tuple[bytes, ...]:
    """Same size, same times, and sometimes by exchange of two files."""
    name = dice.choice(sorted(FILES))
    info = os.stat(w.at(name))
    if dice.random() < 0.5:
        _write(w.at(name), _other(w.at(name)))
        os.utime(w.at(name), ns=(info.st_atime_ns, info.st_mtime_ns))
        return (name,)
    shutil.copy2(w.at(name), w.at(b"new"))
    _write(w.at(b"new"), _other(w.at(name)))
    os.utime(w.at(b"new"), ns=(info.st_atime_ns, info.st_mtime_ns))
    assert _libc.renameat2(-100, w.at(b"new"), -100, w.at(name), 2) == 0
    os.unlink(w.at(b"new"))
    return (name,)


def _mapped(w: World, dice: random.Random) -> tuple[bytes, ...]:
    name = dice.choice(sorted(FILES))
    with open(w.at(name), "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[-2] ^= 1
    return (name,)


def _shadow(w: World, dice: random.Random) -> tuple[bytes, ...]:
    name = dice.choice(SHADOWS)
    os.makedirs(os.path.dirname(w.at(name)), exist_ok=True)
    with open(w.at(name), "wb") as file:
        file.write(dice.randbytes(dice.randrange(0, 200)))
    return (name,)


def _thing(w: World, dice: random.Random) -> tuple[bytes, ...]:
    """A new folder, pipe or dangling link."""
    name = dice.choice((b"new", b"place/new", b"bin/new", ODD + b"2"))
    dice.choice((os.mkdir, os.mkfifo, lambda path: os.symlink(b"nowhere", path)))(w.at(name))
    return (name,)


def _deleted(w: World, dice: random.Random) -> tuple[bytes, ...]:
    name = dice.choice([*sorted(FILES), *LINKS, b"large", b"pack", b"place", b"ignored", b"twin"])
    remove(w.at(name))
    return (name,)


def _renamed(w: World, dice: random.Random) -> tuple[bytes, ...]:
    name = dice.choice([*sorted(FILES), *LINKS, b"large", b"pack", b"place/a", b"ignored/deps"])
    os.rename(w.at(name), w.at(b"moved"))
    return name, b"moved"


def _exchanged(w: World, dice: random.Random) -> tuple[bytes, ...]:
    one, two = dice.sample(sorted(FILES), 2)
    assert _libc.renameat2(-100, w.at(one), -100, w.at(two), 2) == 0
    return one, two


def _permissions(w: World, dice: random.Random) -> tuple[bytes, ...]:
    name = dice.choice([*sorted(FILES), b"pack", b"place/a", b"large"])
    os.chmod(w.at(name), stat.S_IMODE(os.stat(w.at(name)).st_mode) ^ dice.choice((0o001, 0o020, 0o010, 0o4000)))
    return name, b"twin"


def _retargeted(w: World, dice: random.Random) -> tuple[bytes, ...]:
    name = dice.choice(sorted(LINKS))
    remove(w.at(name))
    os.symlink(dice.choice((b"bin/step", b"place/b", w.beside, b"/bin/true", b"nowhere")), w.at(name))
    return (name,)


def _link_for_file(w: World, dice: random.Random) -> tuple[bytes, ...]:
    name = dice.choice(sorted(FILES))
    os.rename(w.at(name), w.beside + b"/kept")
    os.symlink(w.beside + b"/kept", w.at(name))
    return (name,)


def _through_a_hard_link(w: World, dice: random.Random) -> tuple[bytes, ...]:
    name = dice.choice(sorted(FILES))
    other = w.beside + b"/hard"
    remove(other)
    os.link(w.at(name), other)
    _write(other, _other(other))
    remove(other)
    return (name,)


def _through_the_twin(w: World, dice: random.Random) -> tuple[bytes, ...]:
    _write(w.at(b"twin"), dice.randbytes(5))
    return (b"data",)


def _kind(w: World, dice: random.Random) -> tuple[bytes, ...]:
    name = dice.choice([*sorted(FILES), b"pack", b"bin", b"place/a"])
    was_folder = os.path.isdir(w.at(name))
    remove(w.at(name))
    if was_folder:
        with open(w.at(name), "wb") as file:
            file.write(b"x")
    else:
        os.mkdir(w.at(name))
    return (name,)


def _large(w: World, dice: random.Random) -> tuple[bytes, ...]:
    """A file whose content is not kept: its size and times are put back."""
    info = os.stat(w.at(b"large"))
    with open(w.at(b"large"), "r+b") as file:
        file.seek(dice.randrange(LARGE - 8))
        file.write(dice.randbytes(4))
    os.utime(w.at(b"large"), ns=(info.st_atime_ns, info.st_mtime_ns))
    return (b"large",)


def _deep(w: World, dice: random.Random) -> tuple[bytes, ...]:
    w.deep(dice.randbytes(5))
    return (b"leaf.sh",)


def _ignored(w: World, dice: random.Random) -> tuple[bytes, ...]:
    name = dice.choice((b"ignored/deps/index.js", b"ignored/deps/new.js", b"ignored/new"))
    with open(w.at(name), "wb") as file:
        file.write(dice.randbytes(20))
    return (name,)


# -- what leaves it as it was shown ----------------------------------------------------------------


def _and_back(w: World, dice: random.Random) -> tuple[bytes, ...]:
    name = dice.choice(sorted(FILES))
    with open(w.at(name), "rb") as file:
        data = file.read()
    mode = stat.S_IMODE(os.stat(w.at(name)).st_mode)
    if name == b"data":
        _write(w.at(name), _other(w.at(name)))
    else:
        remove(w.at(name))
        os.mkdir(w.at(name))
        remove(w.at(name))
        with open(w.at(name), "xb"):
            os.chmod(w.at(name), mode)
    _write(w.at(name), data)
    return ()


def _moved_and_back(w: World, dice: random.Random) -> tuple[bytes, ...]:
    name = dice.choice([*sorted(FILES), *LINKS, b"pack", b"place/a", b"ignored"])
    os.rename(w.at(name), w.beside + b"/away")
    os.symlink(b"/bin/true", w.at(name))
    os.unlink(w.at(name))
    os.rename(w.beside + b"/away", w.at(name))
    return ()


def _touched(w: World, dice: random.Random) -> tuple[bytes, ...]:
    name = dice.choice([*sorted(FILES), b"pack", b"place/a"])
    info = os.stat(w.at(name))
    os.chmod(w.at(name), stat.S_IMODE(info.st_mode) ^ 0o011)
    os.chmod(w.at(name), stat.S_IMODE(info.st_mode))
    os.utime(w.at(name), ns=(dice.randrange(1 << 60), dice.randrange(1 << 60)))
    return ()


def _remade_folder(w: World, dice: random.Random) -> tuple[bytes, ...]:
    """The same content in a folder of its own number."""
    shutil.copytree(os.fsdecode(w.at(b"place")), os.fsdecode(w.beside + b"/place"))
    remove(w.at(b"place"))
    shutil.move(os.fsdecode(w.beside + b"/place"), os.fsdecode(w.at(b"place")))
    return ()


Change = Callable[[World, random.Random], tuple[bytes, ...]]
CHANGES: dict[str, Change] = {
    "content": _content,
    "by rename": _by_rename,
    "same size and times": _disguised,
    "written through a mapping": _mapped,
    "a file that shadows": _shadow,
    "a new thing": _thing,
    "deleted": _deleted,
    "renamed": _renamed,
    "two exchanged": _exchanged,
    "permissions": _permissions,
    "a link retargeted": _retargeted,
    "a link in place of a file": _link_for_file,
    "through a hard link outside": _through_a_hard_link,
    "through a hard link inside": _through_the_twin,
    "another kind of thing": _kind,
    "a file too large to keep": _large,
    "at the end of a deep path": _deep,
    "in an ignored folder": _ignored,
}
HARMLESS: dict[str, Change] = {
    "nothing": lambda _w, _dice: (),
    "there and back": _and_back,
    "moved and back": _moved_and_back,
    "touched": _touched,
    "a folder made again": _remade_folder,
}


# -- the folder it runs in, and the session's git --------------------------------------------------

PLACE = b"place/a"
_COMMIT = "the session's commit"


def _place_is_a_link(w: World, dice: random.Random) -> tuple[str, ...]:
    """With the same content behind it, outside or inside."""
    target = w.beside + b"/target" if dice.random() < 0.5 else w.at(b"place/b")
    if target.startswith(w.beside):
        shutil.copytree(os.fsdecode(w.at(PLACE)), os.fsdecode(target))
    remove(w.at(PLACE))
    os.symlink(target, w.at(PLACE))
    return (shown(PLACE),)


def _above_is_a_link(w: World, _dice: random.Random) -> tuple[str, ...]:
    shutil.copytree(os.fsdecode(w.at(b"place")), os.fsdecode(w.beside + b"/target"))
    remove(w.at(b"place"))
    os.symlink(w.beside + b"/target", w.at(b"place"))
    return ("place",)


def _another_place(w: World, dice: random.Random) -> tuple[str, ...]:
    """Another folder, which may have got the number of the old one."""
    script = FILES[PLACE + b"/script.sh"] if dice.random() < 0.5 else "true\n"
    remove(w.at(PLACE))
    os.mkdir(w.at(PLACE))
    with open(w.at(PLACE + b"/script.sh"), "w") as file:
        file.write(script)
    return (shown(PLACE + b"/script.sh"),) if script == "true\n" else ()


def _commit_moved(w: World, dice: random.Random) -> tuple[str, ...]:
    head = w.private / "HEAD"
    commit = f"{dice.getrandbits(160):040x}\n"
    how = dice.randrange(4)
    if how == 0:
        head.write_text(commit)
    elif how == 1:
        (w.private / "refs/heads/other").mkdir(parents=True)
        (w.private / "refs/heads/other/x").write_text(commit)
        head.write_text("ref: refs/heads/other/x\n")
    elif how == 2:
        head.unlink()
    else:
        head.write_text("nonsense\n")
    return (_COMMIT,)


def _another_git(w: World, dice: random.Random) -> tuple[str, ...]:
    """Git's own entrance to the worktree leads to a repository with the same commit, and with settings of its own."""
    remove(w.at(b".git"))
    other = w.at(b".git") if dice.random() < 0.5 else w.beside + b"/other.git"
    os.makedirs(other + b"/refs")
    with open(other + b"/HEAD", "wb") as file:
        file.write(w.head)
    if other.startswith(w.beside):
        with open(w.at(b".git"), "wb") as file:
            file.write(b"gitdir: " + other + b"\n")
    return (_COMMIT,)


Place = Callable[[World, random.Random], tuple[str, ...]]
PLACES: dict[str, Place] = {
    "a link for its folder": _place_is_a_link,
    "a link above its folder": _above_is_a_link,
    "another folder": _another_place,
}
GIT: dict[str, Place] = {"the commit moved": _commit_moved, "another .git": _another_git}


def swap(w: World, dice: random.Random) -> Callable[[], Swap]:
    """One swap, chosen by ``dice``; what it returns carries it out.

    The command and its folder are chosen before it is shown.
    """
    what = dice.random()
    if what < 0.12:
        kind = dice.choice(sorted(HARMLESS))
        return lambda: Swap(kind, tuple(map(shown, HARMLESS[kind](w, dice))))
    if what < 0.8:
        kind = dice.choice(sorted(CHANGES))
        return lambda: Swap(kind, tuple(map(shown, CHANGES[kind](w, dice))))
    table = PLACES if what < 0.9 else GIT
    kind = dice.choice(sorted(table))
    return lambda: Swap(kind, table[kind](w, dice))


def runs_in(dice: random.Random) -> tuple[tuple[str, ...], str]:
    """A command that rests on the worktree, and the folder it is asked to run in."""
    if dice.random() < 0.3:
        return ("/bin/sh", "script.sh"), os.fsdecode(PLACE)
    return dice.choice(SLOWER if dice.random() < 0.15 else COMMANDS), ""
