"""Which folder a state folder is. A copy, a moved or a restored one is recognised, so that it never drives what the
original drives.

Standard library only. The mark is a file in the state folder; `judge` compares it with what the folder looks like now.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
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
_ADOPT = "if nothing else drives its sessions: watchfloor adopt"


class Mark(NamedTuple):
    """What a state folder is known by.

    ``mark`` is the inode of the mark's own file: restoring files into the same folder changes it.
    """

    fleet: str
    machine: str
    boot: str
    path: str
    device: int
    filesystem: int
    inode: int
    mark: int


class Foreign(NamedTuple):
    """A state folder that must not be driven as it is.

    ``kind``: copy, moved, restored, machine, alias, damaged; ``why`` and ``hint`` are for people.
    """

    kind: str
    path: str
    why: str
    hint: str


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


def observe(state: Path, fleet: str = "") -> Mark:
    """The folder as it is now. Raises OSError."""
    real = os.path.realpath(state)
    st = os.stat(real)
    try:
        own = os.stat(os.path.join(real, NAME), follow_symlinks=False).st_ino
    except FileNotFoundError:
        own = 0
    return Mark(fleet, machine(), _boot(), real, st.st_dev, os.statvfs(real).f_fsid, st.st_ino, own)


def read(state: Path) -> Mark | None:
    """The mark that was written; None when there is none. Raises ValueError when it cannot be understood, OSError."""
    try:
        raw = json.loads(own_file.read(state / NAME))
    except FileNotFoundError:
        return None
    except ValueError as exc:
        raise ValueError(f"{state / NAME} is not JSON: {exc}") from exc
    kinds = {
        "fleet": str,
        "machine": str,
        "boot": str,
        "path": str,
        "device": int,
        "filesystem": int,
        "inode": int,
        "mark": int,
    }
    if not isinstance(raw, dict) or any(not isinstance(raw.get(name), kind) for name, kind in kinds.items()):
        raise ValueError(f"{state / NAME} does not name a folder")
    return Mark(**{name: raw[name] for name in kinds})


def same_folder(known: Mark, seen: Mark) -> bool:
    """True when both are one folder.

    Device numbers may change with a reboot or a mount, so they count only where nothing better does.
    """
    disk = known.device == seen.device or (known.filesystem == seen.filesystem != 0) or known.boot != seen.boot
    return known.inode == seen.inode and disk


def judge(known: Mark, seen: Mark, original_there: bool) -> Foreign | None:
    """None when the folder is the one that was marked; otherwise what it is instead.

    ``original_there``: the marked one still has its place.
    """
    look = "it can be looked at (watchfloor ls, show, logs, cost, verify); nothing in it runs"
    adopt = f"{look}. To go on with it here: watchfloor adopt"
    if known.machine and seen.machine and known.machine != seen.machine:
        return Foreign(
            "machine",
            known.path,
            f"the state folder {seen.path} was made on another machine (there it was {known.path})",
            adopt,
        )
    if same_folder(known, seen) and known.mark == seen.mark:
        if known.path == seen.path:
            return None
        if original_there:
            hint = f"use it by that name: WATCHFLOOR_STATE={known.path}"
            return Foreign(
                "alias", known.path, f"the state folder {seen.path} is {known.path} under another name", hint
            )
        return Foreign("moved", known.path, f"the state folder {seen.path} was moved here from {known.path}", adopt)
    if known.path == seen.path:
        why = (
            f"the state folder {seen.path} was put back from a copy: what happened after the copy was made is not in it"
        )
        return Foreign("restored", known.path, why, adopt)
    where = "which is still there" if original_there else "which is gone"
    return Foreign("copy", known.path, f"the state folder {seen.path} is a copy of {known.path}, {where}", adopt)


def look(state: Path) -> Foreign | None:
    """What is wrong with driving this folder; None when nothing is, or when it has no mark yet. Raises FolderError."""
    try:
        known = read(state)
        if known is None:
            return None
        return judge(known, observe(state), _there(known))
    except ValueError as exc:
        return Foreign(
            "damaged",
            "",
            f"nobody can say whose state this is: {exc}",
            _ADOPT,
        )
    except OSError as exc:
        raise FolderError(f"cannot look at {exc.filename or state}: {exc.strerror or exc}") from exc


def _there(known: Mark) -> bool:
    """True while the marked folder, or another with its mark, still stands at its path."""
    place = Path(known.path)
    try:
        other = read(place)
        return (other is not None and other.fleet == known.fleet) or same_folder(known, observe(place))
    except (OSError, ValueError):
        return False


def write(state: Path, fleet: str = "") -> Mark:
    """Mark this folder as it is now, durably, as ``fleet`` or as a new one. Raises OSError."""
    real = Path(os.path.realpath(state))
    with durable.swapping(real / NAME, real / f".{NAME}.part") as fd:
        made = observe(real, fleet or secrets.token_hex(16))._replace(mark=os.fstat(fd).st_ino)
        durable.write_all(fd, (json.dumps({"format": _FORMAT, **made._asdict()}) + "\n").encode("ascii"))
    durable.sync_folder(real)
    return made


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


def _listening(folders: Folders) -> dict[int, str]:
    """Processes that listen in the runtime folder: what each is, in words, by its number."""
    found = {}
    for path in (folders.supervisor_socket, *sorted(folders.keeper_sockets.glob("*.sock"))):
        with contextlib.suppress(OSError), frames.connect(path, 1.0) as sock:
            found[frames.peer(sock)[0]] = (
                "the supervisor" if path == folders.supervisor_socket else f"the keeper of session {path.stem}"
            )
    return found


def replaced(told: object, folders: Folders) -> str:
    """What to do when a process named our state folder's path and means the folder that was there before; empty when it
    does not.
    """
    real = os.path.realpath(folders.state)
    if not isinstance(told, dict) or told.get("path") != real or not other_fleet(told, folders.state):
        return ""
    why = f"the state folder {real} was replaced by another one while processes of the one before it run"
    found = _listening(folders)
    return f"{why}: {_ending(found)}" if found else f"{why}; try again"


def _ending(found: dict[int, str]) -> str:
    """Who lives on without its state folder, and what to do."""
    named = "; ".join(f"{what} (process {pid})" for pid, what in found.items())
    end = f"end them (kill {' '.join(map(str, found))})"
    return f"{named}; {end}, or put that folder back in its place, then try again"


def bereft(folders: Folders) -> str:
    """What to do when processes of this state folder run that is not there any more: made anew, it would stand in the
    way of the one that was moved. Empty when none do.
    """
    real = os.path.realpath(folders.state)
    try:
        told = None if os.path.lexists(real) else json.loads(own_file.read(folders.runtime / OWNER))
    except (OSError, ValueError):
        return ""
    found = _listening(folders) if isinstance(told, dict) and told.get("path") == real else {}
    return f"the state folder {real} is gone while processes of it run: {_ending(found)}" if found else ""


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
        owner = str(told["path"])
        living = _listening(folders)
        if living and (why := replaced(told, folders)):
            raise FolderError(why)
        try:
            st = os.stat(owner)
            there = (st.st_dev, st.st_ino) == (told.get("device"), told.get("inode")) and (st.st_dev, st.st_ino) != (
                mine["device"],
                mine["inode"],
            )
        except OSError:
            there = False
        if there or living:
            raise FolderError(
                f"the runtime folder {folders.runtime} belongs to the fleet in {owner}, so nothing is started for"
                f" {mine['path']}; set WATCHFLOOR_RUNTIME to another folder, or do not set it (then it lies inside the"
                " state folder)"
            )
    durable.swap_file(path, (json.dumps(mine) + "\n").encode())
