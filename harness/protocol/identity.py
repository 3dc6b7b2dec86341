"""Which folder a state folder is. A copy, a moved or a restored one is recognised, so that it never drives what the
original drives.

Standard library only. The mark is a file in the state folder; `judge` compares it with what the folder looks like now.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from pathlib import Path
from typing import NamedTuple

from harness.linux import durable, own_file
from harness.linux.proc import boot_id
from harness.protocol.connection import frames
from harness.protocol.paths import FolderError, Folders

NAME = "IDENTITY"
OWNER = "owner.json"
"""In the runtime folder: whose sockets these are."""
_FORMAT = 1
_HINT = (
    "it can be looked at (watchfloor ls, show, logs, cost, verify); nothing in it runs. To go on with it here:"
    " watchfloor adopt"
)


class Mark(NamedTuple):
    """What a state folder is known by.

    ``mark`` is the inode of the mark's own file: restoring files into the same folder changes it.
    """

    machine: str
    boot: str
    path: str
    device: int
    filesystem: int
    inode: int
    mark: int


class Foreign(NamedTuple):
    """A state folder that is not the one of its mark, which stood at ``path``, and must not be driven as it is.

    ``moved``: it is that very folder, so the processes that it names are its own; otherwise they may be the original's.
    """

    path: str
    why: str
    moved: bool = False
    hint: str = _HINT


class ForeignState(FolderError):
    """This state folder is not the one that was driven; it can be looked at."""

    def __init__(self, foreign: Foreign) -> None:
        super().__init__(f"{foreign.why}\n{foreign.hint}")
        self.foreign = foreign


def machine() -> str:
    """A name for this machine, the same for its life; empty when it has none.

    Not the machine's id itself, which is nobody's business.
    """
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        try:
            text = Path(path).read_text("ascii").strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text:
            return hashlib.sha256(b"watchfloor/machine\0" + text.encode()).hexdigest()[:32]
    return ""


def _boot() -> str:
    try:
        return boot_id()
    except OSError:
        return ""


def observe(state: Path) -> Mark:
    """The folder as it is now. Raises OSError."""
    real = os.path.realpath(state)
    st = os.stat(real)
    try:
        own = os.stat(os.path.join(real, NAME), follow_symlinks=False).st_ino
    except FileNotFoundError:
        own = 0
    return Mark(machine(), _boot(), real, st.st_dev, os.statvfs(real).f_fsid, st.st_ino, own)


def read(state: Path) -> Mark | None:
    """The mark that was written; None when there is none. Raises ValueError when it cannot be understood, OSError."""
    try:
        raw = json.loads(own_file.read(state / NAME))
    except FileNotFoundError:
        return None
    except ValueError as exc:
        raise ValueError(f"{state / NAME} is not JSON: {exc}") from exc
    kinds = {name: int for name in Mark._fields} | {"machine": str, "boot": str, "path": str}
    if not isinstance(raw, dict) or any(not isinstance(raw.get(name), kind) for name, kind in kinds.items()):
        raise ValueError(f"{state / NAME} does not name a folder")
    return Mark(**{name: raw[name] for name in kinds})


def same_folder(known: Mark, seen: Mark) -> bool:
    """True when both are one folder.

    Device numbers may change with a reboot or a mount, so they count only where nothing better does.
    """
    disk = known.device == seen.device or (known.filesystem == seen.filesystem != 0) or known.boot != seen.boot
    return known.inode == seen.inode and disk


def judge(known: Mark, seen: Mark) -> Foreign | None:
    """None when the folder is the one that was marked."""
    moved = known.machine in ("", seen.machine) or not seen.machine
    moved = moved and same_folder(known, seen) and known.mark == seen.mark
    if moved and known.path == seen.path:
        return None
    why = (
        f"the state folder {seen.path} is not the one of its mark ({known.path}): it was copied, moved, put back from a"
        " backup or brought from another machine"
    )
    return Foreign(known.path, why, moved)


def look(state: Path) -> Foreign | None:
    """What is wrong with driving this folder; None when nothing is, or when it has no mark yet. Raises FolderError."""
    try:
        known = read(state)
        if known is None:
            return None
        return judge(known, observe(state))
    except ValueError as exc:
        return Foreign("", f"nobody can say whose state this is: {exc}")
    except OSError as exc:
        raise FolderError(f"cannot look at {exc.filename or state}: {exc.strerror or exc}") from exc


def write(state: Path) -> None:
    """Mark this folder as it is now, durably. Raises OSError."""
    real = Path(os.path.realpath(state))
    with durable.swapping(real / NAME, real / f".{NAME}.part") as fd:
        made = observe(real)._replace(mark=os.fstat(fd).st_ino)
        durable.write_all(fd, (json.dumps({"format": _FORMAT, **made._asdict()}) + "\n").encode("ascii"))
    durable.sync_folder(real)


def who(state: Path) -> dict[str, str | int]:
    """The state folder as a supervisor names it to its clients: its real path and number."""
    real = os.path.realpath(state)
    st = os.stat(real)
    return {"path": real, "device": st.st_dev, "inode": st.st_ino}


def other_fleet(told: object, state: Path) -> str:
    """The state folder a process named as its own, by path, when that is not ``state``; empty when it is, or when it
    names none. A folder that is not there yet is no other fleet's.
    """
    if not isinstance(told, dict) or not isinstance(told.get("path"), str):
        return ""
    if told["path"] != os.path.realpath(state):
        return str(told["path"])
    try:
        mine = who(state)
    except OSError:
        return ""
    return (
        ""
        if (told.get("device"), told.get("inode")) == (mine["device"], mine["inode"])
        else f"another folder that was at {told['path']} before"
    )


def _living(folders: Folders) -> str:
    """Who listens in the runtime folder, and what to do about it; empty when nobody does."""
    found = {}
    for path in (folders.supervisor_socket, *sorted(folders.keeper_sockets.glob("*.sock"))):
        with contextlib.suppress(OSError), frames.connect(path, 1.0) as sock:
            what = "the supervisor" if path == folders.supervisor_socket else f"the keeper of session {path.stem}"
            pid = frames.peer(sock)[0]
            found[pid] = f"{what} (process {pid})"
    if not found:
        return ""
    end = f"end them (kill {' '.join(map(str, found))})"
    return f"{'; '.join(found.values())}; {end}, or put that folder back in its place, then try again"


def replaced(told: object, folders: Folders) -> str:
    """What to do when a process named our state folder's path and means the folder that was there before; empty when it
    does not, or when nothing of it runs.
    """
    real = os.path.realpath(folders.state)
    if not isinstance(told, dict) or told.get("path") != real or not other_fleet(told, folders.state):
        return ""
    living = _living(folders)
    why = f"the state folder {real} was replaced by another one while processes of the one before it run"
    return f"{why}: {living}" if living else ""


def bereft(folders: Folders) -> str:
    """What to do when processes of this state folder run that is not there any more: made anew, it would stand in the
    way of the one that was moved. Empty when none do.
    """
    real = os.path.realpath(folders.state)
    try:
        told = None if os.path.lexists(real) else json.loads(own_file.read(folders.runtime / OWNER))
    except (OSError, ValueError):
        return ""
    living = _living(folders) if isinstance(told, dict) and told.get("path") == real else ""
    return f"the state folder {real} is gone while processes of it run: {living}" if living else ""


def claim_runtime(folders: Folders) -> None:
    """Make the runtime folder ours: its sockets lead to our processes only.

    Raises FolderError while the state folder it belonged to is there, or any process listens in it that cannot be ours.
    """
    path = folders.runtime / OWNER
    mine = who(folders.state)
    try:
        told = json.loads(own_file.read(path))
    except (FileNotFoundError, ValueError):
        told = None
    except OSError as exc:
        raise FolderError(f"cannot read {path}: {exc.strerror or exc}") from exc
    if told == mine:
        return
    # then it came along with a copy, and no socket did
    inside = os.path.realpath(folders.runtime).startswith(f"{mine['path']}/")
    if not inside and isinstance(told, dict) and other_fleet(told, folders.state):
        if why := replaced(told, folders):
            raise FolderError(why)
        owner = str(told["path"])
        ids = (told.get("device"), told.get("inode"))
        try:
            st = os.stat(owner)
            there = (st.st_dev, st.st_ino) == ids != (mine["device"], mine["inode"])
        except OSError:
            there = False
        if there or _living(folders):
            raise FolderError(
                f"the runtime folder {folders.runtime} belongs to the fleet in {owner}, so nothing is started for"
                f" {mine['path']}; set WATCHFLOOR_RUNTIME to another folder, or do not set it (then it lies inside the"
                " state folder)"
            )
    durable.swap_file(path, (json.dumps(mine) + "\n").encode())
