"""The epoch: a number that only grows, durable before anything is done in its name.

A lost one is found again where that is certain.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

from harness.eventlog.framing import BadLine
from harness.eventlog.regular_files import opened
from harness.linux import own_file
from harness.linux.durable import replace_file
from harness.protocol import locks
from harness.protocol.connection import frames
from harness.protocol.connection.blocking import Connection
from harness.protocol.connection.exchange import Ended
from harness.protocol.connection.op import BadArgument, reader
from harness.protocol.connection.transport import UnixSocket
from harness.protocol.keeper_requests import KeeperHello, ViewerHello
from harness.protocol.paths import Folders

_GRANTED = re.compile(rb'"type":"lease\.granted"[^\n]*?"epoch":(\d+)')
_ANSWER_S = 3.0


class EpochUnknown(Exception):
    """The epoch is lost and cannot be found again; the message says why and what to do."""


def advance(folders: Folders) -> int:
    """The next epoch, durable. Raises EpochUnknown, OSError."""
    path = folders.state / "epoch"
    try:
        epoch = int(own_file.read(path))
    except FileNotFoundError:
        epoch = _found(folders, f"{path} is missing")
    except ValueError:
        epoch = _found(folders, f"{path} does not hold a number")
    replace_file(path, f"{epoch + 1}\n".encode())
    return epoch + 1


def _found(folders: Folders, why: str) -> int:
    """The highest epoch that any keeper or log knows: every keeper that lives must have said its own."""
    known = [_served(folders), *(_of_keeper(folders, sid, why) for sid in locks.kept(folders))]
    for log in folders.sessions.glob("*/log"):
        known += named_in(log)
    epoch = max(known)
    if epoch:
        print(
            f"supervisor: {why}; the highest epoch that any keeper or log knows is {epoch}, so it goes on from there",
            flush=True,
        )
    return epoch


def _of_keeper(folders: Folders, sid: str, why: str) -> int:
    folder = folders.session(sid)
    try:
        with contextlib.closing(Connection(UnixSocket(folder.keeper_socket).open(_ANSWER_S))) as connection:
            reply = connection.call(ViewerHello.OP, _ANSWER_S, frames.members(ViewerHello()))
        return reader(KeeperHello)(reply).epoch
    except (OSError, Ended, BadArgument) as exc:
        pid = locks.holder(folder.lock)
        how = f"it {exc}" if isinstance(exc, Ended) else str(exc)
        raise EpochUnknown(
            f"{why}, and the keeper of session {sid}{f' (process {pid})' if pid else ''}, which may know a higher epoch"
            f" than any log, does not answer ({how}); let it"
            f" answer{f' (kill -CONT {pid} where it is stopped)' if pid else ''} or end it, then try again; nothing was"
            " started"
        ) from exc


def named_in(log: Path) -> Iterator[int]:
    """The epochs that the leases in a log name."""
    for segment in sorted(log.glob("*.jsonl")):
        with contextlib.suppress(BadLine), opened(segment) as f:  # what is no file holds no record
            for line in f:
                if (m := _GRANTED.search(line)) is not None:
                    yield int(m[1])


def _served(folders: Folders) -> int:
    try:
        return int(json.loads(own_file.read(folders.runtime / "supervisor.json"))["epoch"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
