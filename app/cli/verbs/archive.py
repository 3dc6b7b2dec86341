"""Verbs on removed sessions: ``ls --archived``, ``purge``, and finding the log of one."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.cli.base import exits
from app.cli.base.arguments import Refused
from app.cli.base.context import Context
from app.cli.base.offline_fleet import OfflineReader
from app.cli.base.output import age, emit, emit_all, safe, say, table, warn
from app.cli.base.several import each
from app.client.replies import ask
from app.review import review_store
from app.terminal import check
from harness.domain.text.formatting import spend_cell
from harness.projections.salvage import salvage
from harness.projections.state.session_state import SessionState
from harness.protocol.client import Client, SupervisorError
from harness.views.archived import Archived, fitting
from harness.views.replies import ArchivedSessions, SessionShown

_LIST = "list them with: watchfloor ls --archived"
_PURGE_S = 640.0
"""Longest wait for a deletion: payloads may be many."""


def _archived(client: Client | OfflineReader) -> list[Archived]:
    return ask(client, ArchivedSessions, "archived").rows


def ls(ctx: Context, args: argparse.Namespace) -> int:
    """What is kept of removed sessions, the latest first."""
    with ctx.look() as client:
        notes = _archived(client)
    if args.json:
        emit_all(msgspec.to_builtins(notes))
        return exits.OK
    if not notes:
        say("nothing is archived; watchfloor rm ID puts an ended session here")
        return exits.OK
    body = [
        (
            one.sid,
            safe(one.name, 24),
            safe(one.state),
            age(one.archived),
            spend_cell(one.spent_nano, one.unknown_nano),
            _told(one),
        )
        for one in notes
    ]
    for line in table(("ID", "NAME", "ENDED", "REMOVED", "SPENT", "GOAL"), body, width=ctx.width):
        say(line)
    say("read one: watchfloor logs ID; delete one for good: watchfloor purge ID")
    return exits.OK


def _told(one: Archived) -> str:
    return safe(one.unread or one.goal, 200)


def purge(ctx: Context, args: argparse.Namespace) -> int:
    """Delete logs for good; all are looked up before the first is deleted, so a wrong one changes nothing."""
    with ctx.connect() as client:
        client.wait_up_to(_PURGE_S)
        notes = _archived(client)
        named = [_one(client, fitting(notes, text, whole=True), text) for text in dict.fromkeys(args.ids)]
        wanted = list({one.sid: one for one in named}.values())
        if not args.yes:
            _agreed(wanted, ask_here=check.there() and not args.json)

        def purged(sid: str) -> None:
            client.call("purge", sid=sid)
            review_store.forget(ctx.folders.state, sid)
            if args.json:
                emit({"sid": sid, "purged": True})
            else:
                say(f"purged {sid}: its log and payloads are deleted")

        return each(((one.sid, one.sid) for one in wanted), purged)


def _agreed(wanted: list[Archived], *, ask_here: bool) -> None:
    """Name what would be deleted and have it agreed to. Raises Refused when it is not."""
    tell = say if ask_here else warn
    for one in wanted:
        spent = spend_cell(one.spent_nano, one.unknown_nano)
        tell(f"{one.sid}  {safe(one.name, 24)}  {spent}, removed {age(one.archived)} ago: {_told(one)}")
    whose = "its log and payloads are" if len(wanted) == 1 else f"the logs and payloads of all {len(wanted)} are"
    if not ask_here:
        raise Refused(f"nothing was deleted: {whose} to be deleted for good; say so with --yes")
    try:
        agreed = input(f"{whose} deleted for good, nothing brings them back. Type yes to delete: ").strip()
    except EOFError:
        agreed = ""
    if agreed.lower() != "yes":
        raise Refused("nothing was deleted")


def _one(client: Client, found: list[Archived], text: str) -> Archived:
    """Raises SupervisorError ``not_found``, ``ambiguous``, ``not_archived``."""
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(one.sid for one in found[:8])
        raise SupervisorError("ambiguous", f"{text!r} is the name of {len(found)}: {ids}", "give the whole id")
    try:
        client.call("session", sid=text)
    except SupervisorError:
        told = f"no session {text!r} is archived"
        raise SupervisorError("not_found", told, f"give a whole id or name; {_LIST}") from None
    raise SupervisorError("not_archived", f"{text!r} is not archived", f"remove it first: watchfloor rm {text}")


@dataclass(frozen=True, slots=True)
class Found:
    """Where a session's log lies; ``shown`` None: it was removed, so it has ended."""

    folder: Path
    shown: SessionShown | None = None

    @property
    def ended(self) -> bool:
        return self.shown is None or self.shown.row.ended


def session(client: Client | OfflineReader, wanted: str) -> Found:
    """A session, also a removed one. Raises SupervisorError."""
    try:
        shown = ask(client, SessionShown, "session", sid=wanted)
        return Found(Path(shown.folder), shown)
    except SupervisorError as exc:
        if exc.code != "not_found":
            raise
        found = fitting(_archived(client), wanted)
        if len(found) > 1:
            ids = ", ".join(one.sid for one in found[:8])
            raise SupervisorError(
                "ambiguous", f"{wanted!r} fits {len(found)} archived sessions: {ids}", "use more of the id"
            ) from exc
        if not found:
            raise
        return Found(Path(found[0].folder))


def state(client: Client | OfflineReader, wanted: str) -> tuple[SessionState, Path]:
    """What a session has come to, and its folder; a removed one by its archived log, as far as that can be read.

    Raises SupervisorError.
    """
    found = session(client, wanted)
    folder = found.folder
    if found.shown is not None:
        return msgspec.convert(found.shown.state, SessionState), folder
    if not (folder / "log").is_dir():
        raise SupervisorError(
            "not_found", f"{wanted!r} was removed, and its log lies on another machine", "ask there: watchfloor logs ID"
        )
    folded, problem = salvage(folder / "log")
    if problem:
        warn(f"watchfloor: {safe(problem)}")
    return folded, folder
