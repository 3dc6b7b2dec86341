"""A fleet that is stopped, or must not be driven, read from its files: its logs are folded from the disk, and
no process is started.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from harness.domain.states import Desired
from harness.eventlog.reader import read
from harness.events.types import Record, decode
from harness.offline import ledger
from harness.projections import score
from harness.projections.salvage import salvage
from harness.projections.state.row_state import Liveness
from harness.projections.state.session_state import SessionState
from harness.protocol.client import SupervisorError
from harness.protocol.paths import Folders
from harness.protocol.session_names import OtherHost, SessionName
from harness.reports import briefing, receipts
from harness.views import checkpoint_views
from harness.views.approval_views import as_recorded
from harness.views.archived import fitting, listed, said_of
from harness.views.replies import ApprovalList, ArchivedSessions, Sessions, SessionShown
from harness.views.rows import row
from harness.views.score_views import Scores, SessionScore
from harness.views.session_views import ERRORS, ApprovalView, SessionRow

_NAMES = {"approval": "the card of a request", "changes": "the card of a request", "diff": "a comparison"}
"""What an operation gives, where that is not its name."""


class OfflineReader:
    """Answers what the verbs that only look ask of a supervisor, in the same shapes."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._ledger = ledger.Ledger(folders)

    def __enter__(self) -> OfflineReader:
        return self

    def __exit__(self, *_: object) -> None:
        return

    def wait_up_to(self, seconds: float) -> None:
        """Nothing here is waited for."""

    def call(self, op: str, **arguments: object) -> dict[str, object]:
        """The reply. Raises SupervisorError for what only a supervisor can do."""
        made: dict[str, object] = msgspec.to_builtins(self._answer(op, arguments))
        return made

    def _answer(self, op: str, arguments: Mapping[str, object]) -> msgspec.Struct:
        if op == "sessions":
            rows = [made for made, _ in self._read()]
            return Sessions(rows=rows, fleet=self._ledger.fleet(rows))
        if op == "session":
            return self._session(str(arguments.get("sid", "")))
        if op == "archived":
            return ArchivedSessions(rows=listed(self._folders.archive))
        if op == "costs":
            return self._ledger.costs((made, state.usage) for made, state in self._read())
        if op == "score":
            return Scores(scores=self._scores(arguments))
        if op == "brief":
            return self._brief(*self._chosen(arguments)[0], str(arguments.get("since", "")))
        if op == "approvals":
            asked = [view for made, state in self._read() for view in _open(made, state)]
            return ApprovalList(approvals=sorted(asked, key=lambda a: (a.deferred is not None, a.ts, a.sid, a.seq)))
        if op == "receipts":
            return self._receipts(self._chosen(arguments)[0][0])
        if op == "checkpoints":
            return checkpoint_views.listed(self._chosen(arguments)[0][1].checkpoints)
        self._chosen(arguments)
        raise SupervisorError("foreign", f"{_NAMES.get(op, op)} needs a supervisor, and none drives this state folder")

    def _read(self) -> list[tuple[SessionRow, SessionState]]:
        root = self._folders.sessions
        names = (
            sorted(p.name for p in root.iterdir() if p.is_dir() and not p.name.startswith(".")) if root.is_dir() else []
        )
        return [self._one(name) for name in names]

    def _one(self, sid: str) -> tuple[SessionRow, SessionState]:
        state, problem = salvage(self._folders.session(sid).log)
        made = row(sid, state, Liveness(), money=self._ledger.money(sid))
        if problem:
            made = msgspec.structs.replace(made, state="failed", group=ERRORS, detail=problem)
        elif not state.terminal:
            made = msgspec.structs.replace(made, detail=f"not driven; its log says: {made.detail}")
        return made, state

    def _chosen(self, arguments: Mapping[str, object]) -> list[tuple[SessionRow, SessionState]]:
        """The session that is asked about, else all."""
        return [self._find(str(arguments["sid"]))] if arguments.get("sid") else self._read()

    def _records(self, sid: str) -> Iterator[Record]:
        return map(decode, read(self._folders.session(sid).log))

    def _scores(self, arguments: Mapping[str, object]) -> list[SessionScore]:
        try:
            chosen = self._chosen(arguments)
        except SupervisorError as exc:
            kept = fitting(listed(self._folders.archive), str(arguments["sid"]))
            if exc.code != "not_found" or len(kept) != 1:
                raise
            return [_score(kept[0].sid, kept[0].name, map(decode, read(Path(kept[0].folder) / "log")))]
        return [_score(made.sid, made.name, self._records(made.sid)) for made, _ in chosen]

    def _brief(self, made: SessionRow, state: SessionState, since: str) -> briefing.Briefed:
        told = briefing.brief(briefing.follow(self._records(made.sid)), since)
        return briefing.Briefed(sid=made.sid, name=made.name, upcoming="", brief=told)

    def _receipts(self, made: SessionRow) -> receipts.Receipts:
        history = receipts.History()
        for record in self._records(made.sid):
            history.take(record)
        return receipts.Receipts(sid=made.sid, name=made.name, receipts=receipts.receipts(history))

    def _find(self, wanted: str) -> tuple[SessionRow, SessionState]:
        try:
            wanted = SessionName.parse(wanted).own()
        except OtherHost as exc:
            raise SupervisorError(
                "other_host", str(exc), "leave the machine out to mean a session of this one"
            ) from exc
        found = self._read()
        fits = (
            [x for x in found if x[0].sid == wanted]
            or [x for x in found if x[0].name == wanted]
            or [x for x in found if wanted and x[0].sid.startswith(wanted)]
        )
        if len(fits) != 1:
            if not fits and (gone := said_of(self._folders.archive, wanted)):
                raise SupervisorError("not_found", *gone)
            why = f"{wanted!r} fits {len(fits)} sessions" if fits else f"no session {wanted!r}"
            raise SupervisorError("ambiguous" if fits else "not_found", why, "list them with: watchfloor ls")
        return fits[0]

    def _session(self, wanted: str) -> SessionShown:
        made, state = self._find(wanted)
        folder = str(self._folders.session(made.sid).root)
        return SessionShown(row=made, state=msgspec.to_builtins(state), approvals=[], folder=folder)


def _open(made: SessionRow, state: SessionState) -> list[ApprovalView]:
    """Its open requests as they are recorded: what would happen is looked up by a supervisor alone."""
    if state.terminal or state.desired == Desired.STOPPED:
        return []
    return [as_recorded(made.sid, state, one) for one in state.approvals.values()]


def _score(sid: str, name: str, records: Iterator[Record]) -> SessionScore:
    figures = score.score(score.tally(records))
    return SessionScore(**msgspec.structs.asdict(figures), sid=sid, name=name, artifacts=None)
