"""The verb ``logs``: a session's records in words or as they are, following them to the session's end, and what is
kept beside them.
"""

from __future__ import annotations

import argparse
import re
from datetime import UTC, datetime
from pathlib import Path

from app.cli.base import bundle_source, exits
from app.cli.base.arguments import Usage
from app.cli.base.context import Context
from app.cli.base.log_filter import Last, Wanted, wanted
from app.cli.base.output import escaped, raw, reader_gone, safe, say
from app.cli.verbs import archive
from app.client import records
from app.client.replies import ask
from harness.domain.text.formatting import local
from harness.events import types
from harness.protocol.client import Client
from harness.protocol.paths import SessionFolder
from harness.reports.describe import describe
from harness.views.replies import SessionShown

_POLL_MS = 100
_SHA = re.compile("[0-9a-f]{64}")
_CLOCK = "%H:%M:%S"


def logs(ctx: Context, args: argparse.Namespace) -> int:
    """Print the log; ``--follow`` goes on until the session has ended and its log is closed, or nobody reads what is
    printed. ``--payload`` prints one payload instead.
    """
    if args.payload and not _SHA.fullmatch(args.payload):
        raise Usage("--payload takes a SHA-256 of 64 digits in hex, as a record names it")
    if args.tail is not None and args.tail < 0:
        raise Usage("--tail takes how many records, 0 or more")
    try:
        chosen = wanted(args.since, args.kind, datetime.now(UTC))
    except ValueError as exc:
        raise Usage(str(exc)) from exc
    if (file := bundle_source.file_of(args.id)) is not None:
        with bundle_source.reader(file) as (reader, sid):
            folder = Path(ask(reader, SessionShown, "session", sid=sid).folder)
            return _show(records.DiskRecords(SessionFolder(folder, folder / "none"), args.after), chosen, args, True)
    with ctx.look() as client:
        found = archive.session(client, args.id)
        folder = found.folder
        ended = found.ended
        if isinstance(client, Client) and not records.readable(client.transport, folder):
            return _show(records.AskedRecords(client, folder.name, args.after), chosen, args, ended)
    on_disk = SessionFolder(folder, ctx.folders.session(folder.name).keeper_socket)
    return _show(records.DiskRecords(on_disk, args.after), chosen, args, ended)


def _show(source: records.RecordSource, chosen: Wanted, args: argparse.Namespace, ended: bool) -> int:
    if args.payload:
        raw(source.payload(args.payload))
        return exits.OK
    last = Last(args.tail)
    while True:
        piece = source.read()
        for line in piece.lines:
            record = types.decode(line)
            if isinstance(record.body, (types.SessionEnded, types.LeaseGranted)):  # what thinks again has not ended
                ended = isinstance(record.body, types.SessionEnded)
            if chosen.shows(record):
                for shown in last.pass_on(record, line):
                    _print(*shown, as_json=args.json)
        if piece.lines or piece.more:
            continue
        for shown in last.caught_up():
            _print(*shown, as_json=args.json)
        if not args.follow or (ended and piece.closed) or piece.gone or reader_gone(_POLL_MS):
            return exits.OK


def _print(record: types.Record, line: bytes, *, as_json: bool) -> None:
    if as_json:
        say(escaped(line.decode("utf-8", "replace")))
        return
    told = describe(record)
    say(f"{record.seq:>6}  {safe(local(record.ts, _CLOCK))}  {safe(told.kind):<10}  {safe(told.summary)}")
