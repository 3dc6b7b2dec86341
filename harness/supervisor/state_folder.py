"""Taking a state folder: it is private, ours to drive, of a version that is known, and nobody else's while we live."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from harness.linux import own_file
from harness.linux.durable import replace_file
from harness.protocol import identity, locks
from harness.protocol.paths import STATE_VERSION, Folders, ensure_private
from harness.supervisor.guardian import EXIT_OTHER_LIVES, EXIT_REFUSED

LOCK_WAIT = 3.0


class Refused(Exception):
    """This supervisor must not run here; the message says why and what to do. ``code`` is the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def check_version(state: Path) -> None:
    """Refuse a state folder that a newer version wrote; mark a new one as ours (``VERSION``: ``{"format": N}``).

    Raises Refused, OSError.
    """
    path = state / "VERSION"
    try:
        found = json.loads(own_file.read(path))["format"]
    except FileNotFoundError:
        replace_file(path, json.dumps({"format": STATE_VERSION}).encode() + b"\n")
        return
    except (ValueError, KeyError, TypeError) as exc:
        told = (
            f'{path} does not say which version wrote this folder; if it is Watchfloor\'s, put {{"format":'
            f" {STATE_VERSION}}} there"
        )
        raise Refused(told, EXIT_REFUSED) from exc
    if not isinstance(found, int) or found > STATE_VERSION:
        raise Refused(
            f"the state folder {state} was written by a newer Watchfloor (state version {found}, this program knows"
            f" {STATE_VERSION}); upgrade watchfloor or set WATCHFLOOR_STATE to another folder",
            EXIT_REFUSED,
        )


def take_lock(path: Path) -> int:
    """Hold the supervisor's lock for the life of this process; a dying predecessor gets three seconds.

    Raises Refused.
    """
    fd = locks.take(path, LOCK_WAIT)
    if fd is None:
        raise Refused(f"another supervisor holds {path}", EXIT_OTHER_LIVES)
    return fd


def prepare(folders: Folders) -> int:
    """Make the folders private, see that they are ours to drive, take the lock; the lock's descriptor.

    Raises Refused, FolderError, OSError.
    """
    ensure_private(folders.state)
    if (foreign := identity.look(folders.state)) is not None:
        raise identity.ForeignState(foreign)
    for folder in (folders.runtime, folders.sessions, folders.worktrees, folders.archive, folders.keeper_sockets):
        ensure_private(folder)
    # without a configuration folder there are only the defaults, and nothing to watch
    with contextlib.suppress(OSError):
        folders.config.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_version(folders.state)
    lock = take_lock(folders.supervisor_lock)
    try:
        if identity.read(folders.state) is None:
            identity.write(folders.state)
        identity.claim_runtime(folders)
    except BaseException:
        os.close(lock)
        raise
    return lock
