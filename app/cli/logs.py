"""The verb ``logs``: a session's records in words or as they are, and following them to the session's end."""

from __future__ import annotations

import argparse
import select
import sys
from pathlib import Path

from app.cli import exits
from app.cli.context import Context
from app.cli.output import escaped, safe, say
from harness.events import types
from harness.events.describe import describe
from harness.events.reader import Tail
from harness.protocol import locks

_POLL_MS = 100


def logs(ctx: Context, args: argparse.Namespace) -> int:
    """Print the log; ``--follow`` goes on until the session has ended and its log is closed, or nobody reads what is
    printed.
    """
    with ctx.look() as client:
        reply = client.call("session", sid=args.id)
    folder = Path(reply["folder"])
    lock = ctx.folders.session(folder.name).lock
    ended = bool(reply["state"].get("ended"))
    tail = Tail(folder / "log", after=args.after)
    while True:
        closed = not locks.held(lock)  # looked at before the log is, so that nothing is written after what is read then
        lines = tail.poll(1 << 20)
        for line in lines:
            record = types.decode(line)
            if isinstance(record.body, (types.SessionEnded, types.LeaseGranted)):  # what thinks again has not ended
                ended = isinstance(record.body, types.SessionEnded)
            _print(record, line, as_json=args.json)
        if lines or tail.waiting:
            continue
        if not args.follow or (ended and closed) or not folder.exists() or _reader_gone():
            return exits.OK


def _print(record: types.Record, line: bytes, *, as_json: bool) -> None:
    if as_json:
        say(escaped(line.decode("utf-8", "replace")))
        return
    told = describe(record)
    say(f"{record.seq:>6}  {safe(record.ts[11:19])}  {safe(told.kind):<10}  {safe(told.summary)}")


def _reader_gone() -> bool:
    """Wait a moment for more; True when the other end of our output was closed meanwhile, which only a write would tell
    otherwise.
    """
    watch = select.poll()
    watch.register(sys.stdout.fileno(), 0)
    return any(what & (select.POLLERR | select.POLLHUP) for _, what in watch.poll(_POLL_MS))
