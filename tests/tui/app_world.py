"""A small supervisor for the screen's tests: real session logs, the real fold, the real socket protocol; it decides
nothing by itself.

`beside` serves a scene to a program of its own, for the terminal tests, and writes every request it gets to
``ROOT/calls.jsonl``.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec

from harness.domain.actions.action import action_hash
from harness.domain.problems import HELD
from harness.eventlog.reader import read
from harness.eventlog.writer import LogWriter
from harness.events import message_parts
from harness.events import types as t
from harness.plan.board import board, checks
from harness.projections.apply import advance
from harness.projections.state.alarm_state import until
from harness.projections.state.row_state import Liveness
from harness.projections.state.session_state import SessionState
from harness.protocol import identity
from harness.protocol.connection import frames
from harness.protocol.connection.exchange import Answering
from harness.protocol.paths import STOPPING, Folders, ensure_private
from harness.reports import briefing, receipts
from harness.supervisor.base.errors import OpError
from harness.supervisor.serving import log_reading
from harness.supervisor.serving.ops.briefing_ops import Gathered, read_on
from harness.views.replies import Outcome
from harness.views.rows import row
from harness.views.session_views import ERRORS, ApprovalView, FleetView, SessionRow, counted, standing
from tests.tui.grants_world import Granting
from tests.tui.memory_world import Refused, Remembering
from tests.tui.taking_world import Taken

NANO = 1_000_000_000


def folders(root: Path) -> Folders:
    """Fresh folders under ``root``."""
    made = Folders(root / "state", root / "run", root / "config")
    for path in (made.state, made.runtime, made.config, made.sessions):
        ensure_private(path)
    return made


@dataclass
class Session:
    """One session: its writer, its fold, who is alive."""

    sid: str
    writer: LogWriter
    state: SessionState = field(default_factory=SessionState)
    live: Liveness = field(default_factory=lambda: Liveness(True, True))
    views: dict[str, ApprovalView] = field(default_factory=dict)
    diff: dict[str, Any] = field(default_factory=lambda: {"files": [], "patch": ""})

    def row(self) -> SessionRow:
        return row(self.sid, self.state, self.live)


class World(Remembering, Granting, Taken):
    """A fleet of sessions behind a supervisor socket."""

    def __init__(self, folders_: Folders, calls_file: Path | None = None) -> None:
        Remembering.__init__(self)
        Granting.__init__(self)
        Taken.__init__(self)
        self.folders = folders_
        self.sessions: dict[str, Session] = {}
        self.calls: list[dict[str, Any]] = []
        self.refuse: dict[str, dict[str, str]] = {}
        self.starts = ["main", "topic"]
        self.unbound: list[dict[str, Any]] = []
        self.warnings: list[str] = []
        """What the supervisor says beside a launch."""
        self.whole: dict[str, str] = {}
        self.piece = 1 << 20
        self.points: dict[str, list[dict[str, Any]]] = {}
        self.held: dict[str, asyncio.Event] = {}
        self.removed_nano = 0
        self.fleet: dict[str, Any] = {
            "spent_today_nano": 1_240_000_000,
            "day_cap_nano": 50 * NANO,
            "epoch": 3,
            "sandbox": "ok",
        }
        self.watching = True
        self._calls_file = calls_file
        self._server: asyncio.Server | None = None
        self._writers: dict[asyncio.StreamWriter, bool] = {}
        self._number = itertools.count(1)
        self._queue: set[asyncio.Task[None]] = set()

    # -- making sessions ---------------------------------------------------------------------------

    def add(
        self,
        name: str,
        *bodies: t.Body,
        goal: str = "Make the tests pass.",
        cap_usd: float | None = 2.0,
        checks: Sequence[str] = ("pytest -q",),
        repo: str = "/home/you/shop",
    ) -> Session:
        number = next(self._number)
        sid = f"{number:010d}".replace("0", "a").replace("1", "b").replace("8", "c").replace("9", "d")
        folder = self.folders.session(sid)
        folder.log.mkdir(parents=True)
        folder.blobs.mkdir()
        session = Session(sid, LogWriter.open(folder.log, sid))
        self.sessions[sid] = session
        caps = t.Caps(usd_nano=None if cap_usd is None else int(cap_usd * NANO))
        self.log(
            session,
            t.SessionIntent(
                name=name,
                goal=goal,
                repo=repo,
                branch=f"watchfloor/{sid}",
                worktree=str(self.folders.worktrees / sid),
                model="claude-sonnet-5-5",
                checks=list(checks),
                caps=caps,
            ),
            t.KeeperStarted(pid=10, start=1, boot="b"),
            t.SessionCreated(base="0" * 40, worktree=str(self.folders.worktrees / sid), branch=f"watchfloor/{sid}"),
            *bodies,
        )
        return session

    def log(self, session: Session, *bodies: t.Body) -> None:
        """Append to the real log and fold what was written."""
        after = session.writer.head
        for body in bodies:
            session.writer.append(body.TYPE, msgspec.to_builtins(body), actor="harness")
        session.writer.commit(False)
        for line in read(self.folders.session(session.sid).log, after):
            advance(session.state, t.decode(line))

    def ask(self, session: Session, action: dict[str, Any] | None = None, **fields: Any) -> ApprovalView:
        """Append a request to the log and open it."""
        number = next(self._number)
        approval_id = f"a{number:07d}".replace("0", "b").replace("1", "c").replace("8", "d").replace("9", "e")
        state = session.state
        call_id = ""
        if action is not None:
            call_id = f"c{state.seq + 1}.0"
            action = action | {"session": session.sid, "call": call_id}
            fields.setdefault("title", "git push origin main")
            self.log(
                session,
                t.ToolProposed(call_id=call_id, tool=str(action["tool"]), ref="toolu_1", input=action.get("input")),
                t.ToolJudged(
                    call_id=call_id,
                    action_hash=action_hash(action),
                    verdict="ask",
                    rule="push",
                    reason="it leaves the sandbox",
                    policy="p1",
                    action=action,
                ),
            )
        kind = str(fields.get("kind", "tool"))
        options = list(fields.get("options", ["allow", "allow_edited", "deny", "answer", "stop"]))
        title = str(fields.get("title", "something"))
        risk = str(fields.get("risk", "high"))
        digest = action_hash(action) if action is not None else ""
        self.log(
            session,
            t.ApprovalRequested(
                approval_id=approval_id,
                kind=kind,
                title=title,
                options=options,
                call_id=call_id,
                action_hash=digest,
                risk=risk,
            ),
        )
        view = ApprovalView(
            approval_id=approval_id,
            sid=session.sid,
            session_name=session.state.name,
            kind=kind,
            title=title,
            options=options,
            risk=risk,
            ts=str(fields.get("ts") or session.state.last_ts),
            seq=session.state.seq,
            call_id=call_id,
            tool=str(action["tool"]) if action else "",
            action_hash=digest,
            action=action,
            effects=list(action.get("effects", [])) if action else [],
            rule=str(fields.get("rule", "leaves-the-sandbox")) if action else "",
            reason="it leaves the sandbox" if action else "",
            claim=str(fields.get("claim", "")),
            diff=str(fields.get("diff", "")),
            detail=dict(fields.get("detail", {})),
            repo="/home/you/shop",
            branch=f"watchfloor/{session.sid}",
            alike=str(fields.get("alike", "")),
            same=str(fields.get("same", "")),
        )
        session.views[approval_id] = view
        return view

    # -- what clients get --------------------------------------------------------------------------

    def rows(self) -> list[SessionRow]:
        return [s.row() for s in self.sessions.values()]

    def approvals(self) -> list[ApprovalView]:
        return sorted((v for s in self.sessions.values() for v in s.views.values()), key=lambda v: v.ts)

    def fleet_view(self) -> FleetView:
        return counted(msgspec.convert(self.fleet, FleetView), map(standing, self.rows()))

    def _rows_push(self, rows: Sequence[SessionRow], gone: Sequence[str] = ()) -> dict[str, Any]:
        return {
            "push": "rows",
            "rows": msgspec.to_builtins(rows),
            "gone": list(gone),
            "fleet": msgspec.to_builtins(self.fleet_view()),
        }

    def _approvals_push(self) -> dict[str, Any]:
        return {"push": "approvals", "approvals": msgspec.to_builtins(self.approvals())}

    def push_rows(self, *sessions: Session, gone: Sequence[str] = ()) -> None:
        rows = [s.row() for s in sessions] if sessions or gone else self.rows()
        self._push(self._rows_push(rows, gone))

    def push_approvals(self) -> None:
        self._push(self._approvals_push())

    def _push(self, message: dict[str, Any]) -> None:
        for writer, subscribed in self._writers.items():
            if subscribed:
                writer.write(frames.encode(message))

    def of(self, op: str) -> list[dict[str, Any]]:
        """The requests of one kind that were received."""
        return [call for call in self.calls if call["op"] == op]

    # -- the socket --------------------------------------------------------------------------------

    async def __aenter__(self) -> World:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()
        for session in self.sessions.values():
            session.writer.close()

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._client, sock=frames.listen(self.folders.supervisor_socket))

    def stopped_on_purpose(self) -> None:
        """Leave the marks of a supervisor that somebody asked to stop: no screen starts another one."""
        (self.folders.runtime / "supervisor.json").write_text('{"pid": 1}')
        (self.folders.runtime / STOPPING).write_text("1")

    async def stop(self) -> None:
        """Die: the socket vanishes and every connection is cut."""
        if self._server is not None:
            self._server.close()
            for writer in list(self._writers):
                writer.close()
            await asyncio.sleep(0)
            self.folders.supervisor_socket.unlink(missing_ok=True)
            self._server = None

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers[writer] = False
        greeted = False
        answering = Answering()
        try:
            while data := await reader.read(1 << 16):
                for request in answering.take(data):
                    if request.op in self.held:
                        await self.held[request.op].wait()
                    greeted = greeted or request.op == "hello"
                    reply = (
                        self._reply(request.message, writer) if greeted else _error("hello_first", "say hello first")
                    )
                    writer.write(frames.encode({"id": request.number, **reply}))
                    await writer.drain()
        except (OSError, frames.FrameError):
            return
        finally:
            self._writers.pop(writer, None)
            writer.close()

    def _reply(self, request: dict[str, Any], writer: asyncio.StreamWriter) -> dict[str, Any]:
        op = request["op"]
        self.calls.append(request)
        if self._calls_file is not None:
            with self._calls_file.open("a", encoding="utf-8") as out:
                out.write(json.dumps(request) + "\n")
        if op in self.refuse:
            return {"ok": False, "error": self.refuse[op]}
        handler = getattr(self, f"_op_{op}", None)
        if handler is None:
            return _error("unknown_op", f"there is no operation {op!r}")
        try:
            reply = handler(request, writer)
        except Refused as exc:
            return _error(exc.code, str(exc))
        return {"ok": True, **(reply or {})}

    def _find(self, r: dict[str, Any]) -> Session:
        """The session that is asked for. Raises Refused."""
        session = self.sessions.get(r["sid"])
        if session is None:
            raise Refused("not_found", f"no session {r['sid']!r}")
        return session

    def _open(self, r: dict[str, Any], code: str) -> tuple[Session, ApprovalView]:
        """The open request that is asked for, and its session. Raises Refused."""
        for session in self.sessions.values():
            if (view := session.views.get(r["approval_id"])) is not None:
                return session, view
        raise Refused(code, f"request {r['approval_id']!r} is not open")

    def asked(self, r: dict[str, Any]) -> ApprovalView:
        view = self._open(r, "not_open")[1]
        if r["action_hash"] != view.action_hash:
            raise Refused("stale", "what you made a rule of is not what would run now")
        return view

    @staticmethod
    def _refuse_ended(session: Session, wanted: str = "running") -> None:
        if session.state.terminal or (session.state.desired == "stopped" and wanted != "stopped"):
            raise Refused("ended", f"{session.state.name} has ended")

    def _op_hello(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        return {
            "proto": 1,
            "epoch": self.fleet["epoch"],
            "version": "0.1.0",
            "pid": os.getpid(),
            "state": identity.who(self.folders.state),
        }

    def _op_subscribe(self, r: dict[str, Any], w: asyncio.StreamWriter) -> None:
        """Everything as it is first, then changes."""
        self._writers[w] = True
        w.write(frames.encode(self._rows_push(self.rows())))
        w.write(frames.encode(self._approvals_push()))

    def _op_watching(self, r: dict[str, Any], w: asyncio.StreamWriter) -> None:
        self.watching = r["watched"]

    def _op_sessions(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        return {"rows": msgspec.to_builtins(self.rows()), "fleet": msgspec.to_builtins(self.fleet_view())}

    def _op_session(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        s = self._find(r)
        return {
            "row": msgspec.to_builtins(s.row()),
            "state": msgspec.to_builtins(s.state),
            "approvals": msgspec.to_builtins(list(s.views.values())),
            "folder": str(self.folders.session(s.sid).root),
        }

    def _op_approvals(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        return {"approvals": msgspec.to_builtins(self.approvals())}

    def _op_approval(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        return {"approval": msgspec.to_builtins(self._open(r, "not_found")[1])}

    def _op_changes(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        if not isinstance(r["offset"], int):
            raise Refused("bad_request", "offset must be a whole number of characters")
        _, view = self._open(r, "not_found")
        whole = self.whole.get(view.approval_id, view.diff)
        piece = whole[r["offset"] :][: self.piece]
        return {
            "text": piece,
            "offset": r["offset"],
            "characters": len(whole),
            "sha256": sha256(whole.encode()).hexdigest(),
        }

    def _op_undo_points(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        return {"points": self.points.get(self._find(r).sid, []), "store_bytes": 5 << 20}

    def _op_undo(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        """Go back as the real one does: what came after is marked as undone, and the undo is a state of its own."""
        points = self.points.get(self._find(r).sid, [])
        at = next((i for i, p in enumerate(points) if p["call_id"] == r["to"]), None)
        if at is None:
            raise Refused("not_found", f"there is no call {r['to']}, so there is nothing to undo")
        points[: at + 1] = [p | {"undone": True} for p in points[: at + 1]]
        undo_id = f"u{len(points)}"
        changed = points[at]["changed"]
        points.insert(0, point(undo_id, "undo", f"undo of {r['to']} and all after it", changed=changed))
        return {
            "undo_id": undo_id,
            "to": r["to"],
            "title": points[at + 1]["title"],
            "restored": changed,
            "removed": 1,
            "refused": [],
            "before": f"k{len(points)}",
            "commits": [],
            "more_commits": 0,
            "refused_count": 0,
        }

    def _op_desire(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        session = self._find(r)
        if r["state"] not in ("running", "paused", "stopped"):
            raise Refused("bad_request", f"a session cannot be wanted {r['state']!r}")
        self._refuse_ended(session, r["state"])
        self.log(session, t.SessionDesired(state=r["state"], reason=r.get("reason", "")))
        self.push_rows(session)
        asked = next((view.title for view in session.views.values()), "")
        waits = f"{session.state.name} still waits for your answer: {asked}"
        return {"note": waits if asked and r["state"] == "running" else ""}

    def _op_decide(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        session, view = self._open(r, "not_open")
        if r["decision"] not in view.options:
            raise Refused("bad_option", f"{r['decision']!r} is not an answer to this request")
        if view.action_hash and r["action_hash"] != view.action_hash:
            raise Refused("stale", "what you decided on is not what would run now")
        del session.views[view.approval_id]
        data = {k: r[k] for k in ("decision", "message", "edited", "value", "shown_hash") if r.get(k) is not None}
        self.log(
            session,
            t.ApprovalDecided(
                approval_id=view.approval_id,
                decision_id="d1",
                call_id=view.call_id,
                action_hash=view.action_hash,
                **data,
            ),
        )
        self.push_rows(session)
        self.push_approvals()
        return {"decision_id": "d1"}

    def _op_outcome(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        call = self._find(r).state.calls.open.get(r["call_id"])
        return msgspec.structs.asdict(Outcome(became="ended" if call is None else "pending"))

    def _op_defer(self, r: dict[str, Any], w: asyncio.StreamWriter) -> None:
        session, view = self._open(r, "not_open")
        session.views[view.approval_id] = msgspec.structs.replace(view, deferred="")
        self.push_approvals()

    def _op_snooze(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        session = self._find(r)
        raised = list(session.state.alarms.raised)
        if session.row().group == ERRORS and not raised:
            raised.append(HELD)
        if not raised:
            raise Refused("no_alarm", f"{session.state.name} has no alarm to put off")
        put_off = t.AlarmSnoozed(alarms=raised, until=until(time.time(), r["seconds"]))
        self.log(session, put_off)
        self.push_rows(session)
        return {"name": session.state.name, "alarms": raised, "until": put_off.until}

    def _op_job_cancel(self, r: dict[str, Any], w: asyncio.StreamWriter) -> None:
        session = self._find(r)
        if r["job"] not in session.state.jobs.running:
            raise Refused("not_found", f"job {r['job']} of {session.state.name} does not run")

    def _op_say(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        session = self._find(r)
        if not r["text"].strip():
            raise Refused("bad_request", "the message is empty")
        self._refuse_ended(session)
        self.log(session, t.UserMessage(text=r["text"]))
        self.push_rows(session)
        return {"note": ""}

    def _op_continue(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        session = self._find(r)
        if not session.state.terminal:
            raise Refused("not_ended", f"{session.state.name} has not ended")
        self.log(
            session,
            t.SessionContinued(rounds=r.get("rounds", 0)),
            *([t.UserMessage(text=r["text"])] if r["text"] else []),
        )
        self.push_rows(session)
        return {"sid": session.sid, "name": session.state.name}

    def _op_remove(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        session = self._find(r)
        if not session.state.terminal:
            raise Refused("busy", f"{session.state.name} has not ended")
        self.sessions.pop(session.sid).writer.close()
        self.push_rows(gone=[session.sid])
        return {"kept": [], "lost": [], "checkpoints": 0, "archived": True}

    def _op_launch(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        if not r["goal"].strip():
            raise Refused("bad_goal", "the goal is empty")
        if not Path(r["repo"]).is_dir():
            raise Refused("no_repo", f"{r['repo']} does not exist")
        session = self.add(r.get("name") or "session", goal=r["goal"])
        self.push_rows(session)
        return {"sid": session.sid, "name": session.state.name, "warnings": self.warnings, "masked": []}

    def _op_starts(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        if not Path(r["repo"]).is_dir():
            raise Refused("no_repo", f"{r['repo']} does not exist")
        return {"starts": self.starts}

    def _op_phrases(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        if not Path(r["repo"]).is_dir():
            raise Refused("no_repo", f"{r['repo']} does not exist")
        return {"unbound": self.unbound, "file": "", "offered": {}, "bound": {}}

    def _op_read(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        session = self._find(r)
        piece = log_reading.lines(self.folders.session(session.sid), r["from_seq"], r["most_bytes"])
        return msgspec.structs.asdict(piece)

    def _op_blob(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        session = self._find(r)
        try:
            piece = log_reading.blob(self.folders.session(session.sid), r["sha"], r["offset"], r["most"])
        except OpError as exc:
            raise Refused(exc.code, str(exc)) from exc
        return msgspec.structs.asdict(piece)

    def _op_plan(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        state = self._find(r).state
        return {"plan": msgspec.to_builtins(board(state)), "checks": msgspec.to_builtins(checks(state))}

    def _op_timeline(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        return {"stretches": msgspec.to_builtins(self._find(r).state.stretches.all)}

    def _op_diff(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        session = self._find(r)
        return {"touches": [], **session.diff, "truncated": False, "seen": self.seen(session.sid)}

    def seen(self, sid: str) -> str:
        """What somebody who reads the diff of a session has seen."""
        return sha256(repr(self.sessions[sid].diff).encode()).hexdigest()

    def _op_brief(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        session = self._find(r)
        known = read_on(self.folders.session(session.sid).log, Gathered(), session.state.seq)
        told = msgspec.to_builtins(briefing.brief(known.course, str(r.get("since", ""))))
        return {"sid": session.sid, "name": session.state.name, "upcoming": "", "brief": told}

    def _op_receipts(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        session = self._find(r)
        known = read_on(self.folders.session(session.sid).log, Gathered(), session.state.seq)
        found = msgspec.to_builtins(receipts.receipts(known.history))
        return {"sid": session.sid, "name": session.state.name, "receipts": found}

    def _op_costs(self, r: dict[str, Any], w: asyncio.StreamWriter) -> dict[str, Any]:
        usage = {"input": 1200, "cache_read": 34000, "output": 900}
        unknown = {"unknown_nano": 0, "unknown_tokens": 0}
        figures = {"reserved_nano": 0, **unknown, "usage": usage, "cache_hit": 0.91, "price_source": "list"}
        sessions = [
            {
                "sid": x.sid,
                "name": x.name,
                "model": x.model,
                "state": x.state,
                "cap_nano": x.cap_nano,
                "spent_nano": x.spent_nano,
                "requests": x.requests,
                "tokens": x.tokens,
                **figures,
            }
            for x in self.rows()
        ]
        day = {"day": "2026-11-21", "nano": 1_240_000_000, "reserved_nano": 0, "tokens": 36_100, "requests": 12}
        day |= unknown
        return {
            "fleet": msgspec.to_builtins(self.fleet_view()),
            "sessions": sessions,
            "removed": {"spent_nano": self.removed_nano, "requests": 0, "tokens": 0, **figures},
            "days": [day],
        }


def _error(code: str, message: str) -> dict[str, Any]:
    return {"ok": False, "error": {"code": code, "message": message}}


# -- scenes ----------------------------------------------------------------------------------------

PUSH: dict[str, Any] = {
    "v": 1,
    "tool": "exec",
    "ref": "toolu_1",
    "kind": "push",
    "argv": ["git", "push", "origin", "HEAD:refs/heads/main"],
    "input_sha": "0" * 64,
    "input": {"argv": ["git", "push", "origin", "HEAD:refs/heads/main"], "access": "network"},
    "cwd": "/state/worktrees/x",
    "timeout_s": 120,
    "access": "push",
    "outside": [],
    "env": {"PATH": "/usr/bin:/bin"},
    "sandbox": {"read": ["/usr"], "write": ["/state/worktrees/x"], "binds": [], "network": True, "sandboxed": True},
    "remote": "origin",
    "url": "/srv/git/shop.git",
    "refspecs": [["9" * 40, "refs/heads/main", "8" * 40]],
    "pre": {"files": {}, "head": "9" * 40},
    "effects": ["push:origin refs/heads/main"],
}


def point(call_id: str, tool: str, title: str, *, changed: int = 0, age: float = 60.0, **more: Any) -> dict[str, Any]:
    """A state of a worktree that can be had back, as the supervisor lists it."""
    known = {"snapshot": "s" * 40, "left_out": 0, "undone": False, "expired": False, "yours": 0}
    return {"call_id": call_id, "tool": tool, "title": title, "ts": stamp(age), "changed": changed, **known, **more}


def work(step: int = 0, *, cost: float = 0.04) -> list[t.Body]:
    """One turn of an agent: a request, a reply, a call and its result."""
    call = f"c{step * 10 + 1000}.0"
    digest = "f" * 64
    return [
        t.ModelRequest(
            request_id=f"r{step}",
            attempt=1,
            model="claude-sonnet-5-5",
            reservation=f"v{step}",
            reserved_nano=50_000_000,
            est_input=9000,
            max_tokens=8192,
            upto_seq=1,
        ),
        t.ModelMessage(
            request_id=f"r{step}",
            message_id=f"m{step}",
            model="claude-sonnet-5-5",
            stop="calls",
            usage=t.Usage(input=900, cache_read=8000, output=300),
            cost_nano=int(cost * NANO),
            parts=[
                message_parts.Text("The cart total ignores the discount; I will look at src/cart.py and repair it.")
            ],
        ),
        t.ToolProposed(call_id=call, tool="exec", ref="toolu_1", input={"argv": ["pytest", "-q"]}),
        t.ToolJudged(
            call_id=call,
            action_hash=digest,
            verdict="allow",
            rule="inside-the-sandbox",
            reason="contained",
            policy="p1",
        ),
        t.ToolStarted(call_id=call, action_hash=digest, effect="contained"),
        t.ToolEnded(call_id=call, status="ok", preview="12 passed in 0.40s", exit_code=0, ms=412),
    ]


def crowd(world: World, number: int = 12) -> None:
    """A busy floor: waiting, running, done and failed sessions."""
    names = [
        "cart-discount",
        "fix-flaky-login",
        "release-notes",
        "search-index",
        "rate-limits",
        "csv-export",
        "dark-mode",
        "slow-query",
        "retry-queue",
        "i18n-dates",
        "audit-log",
        "upgrade-deps",
    ]
    for index in range(number):
        name = names[index % len(names)] + (f"-{index // len(names) + 1}" if index >= len(names) else "")
        session = world.add(
            name,
            t.LeaseGranted(gen=1, epoch=3),
            t.UserMessage(text="Make the tests pass.", origin="goal"),
            *work(index, cost=0.05 * (index % 7 + 1)),
        )
        if index % 6 == 0:
            world.ask(
                session, PUSH, title="git push origin main", claim="All tests pass; publishing the fix as you asked."
            )
        elif index % 6 == 1:
            call = f"c{index * 10 + 1005}.0"
            world.log(session, t.ToolProposed(call_id=call, tool="exec", ref="toolu_1", input={"argv": ["pytest"]}))
        elif index % 6 == 2:
            session.live = Liveness(True, False)
            world.log(session, t.SessionEnded(outcome="done", verified=True, reason="all checks pass"))
        elif index % 6 == 3:
            world.log(
                session,
                t.ModelRequest(
                    request_id="z",
                    attempt=1,
                    model="claude-sonnet-5-5",
                    reservation="v",
                    reserved_nano=1,
                    est_input=1,
                    max_tokens=1,
                    upto_seq=1,
                ),
            )
        elif index % 12 == 4:
            session.live = Liveness(True, False)
            world.log(session, t.BudgetReached(cap="session.usd", used=1_990_000_000, limit=2 * NANO, need=60_000_000))
            world.ask(
                session,
                kind="cap",
                title="session cap of $2 reached",
                options=["raise", "finish", "stop"],
                risk="medium",
                detail={"cap": "session.usd", "used": 1_990_000_000, "limit": 2 * NANO, "need": 60_000_000},
            )
        elif index % 12 == 10:
            world.log(session, t.Quarantined(part="brain", reason="exit code 1", restarts=3))


# The payloads of the self-approval exploit: each makes some terminal answer, and the answers arrive as key presses.
PAYLOADS = (
    "\x1b]4;5;rgb:aa/aa/aa\x07\x1b]4;5;?\x07",
    "\x1b]11;?\x1b\\",
    "\x1b[c",
    "\x1bP$qm\x1b\\",
    "\x1bP+q61\x1b\\",
    "\x1b[21t",
    "\x1b]52;c;?\x07",
    "\x9b6n",
    "\x9d11;?\x9c",
    "\x1b[6n",
    "\x1b]0;\x19\x19\x07\x1b[21t",
    "\x1b[200~\x19\x1b[201~",
    "[@click=app.do('app.detach')]x[/]",
    "[bold]x[/bold] \u202egnp.exe\u2066 \u200b\u200d zero",
)


def hostile(world: World) -> None:
    """Every payload as session name, goal, text of the model, tool output, approval title, claim and diff."""
    for index, payload in enumerate(PAYLOADS):
        session = world.add(
            f"n{index}{payload}",
            t.LeaseGranted(gen=1, epoch=3),
            t.UserMessage(text=payload, origin="goal"),
            t.HarnessNote(level="warning", text=payload, component=payload),
            goal=payload,
            checks=[payload],
            repo=f"/home/you/{payload}",
        )
        action = PUSH | {
            "argv": ["git", "push", payload],
            "cwd": f"/x/{payload}",
            "remote": payload,
            "url": payload,
            "effects": [f"push:{payload}"],
        }
        action["input"] = {"argv": ["git", "push", payload]}
        diff = f"--- a/{payload}\n+++ b/{payload}\n@@ -1 +1 @@\n-{payload}\n+{payload}\n"
        world.ask(session, action, title=payload, claim=payload, diff=diff)
        session.diff = {"files": [{"path": payload, "status": payload, "added": 1, "removed": 1}], "patch": diff}
        worktree = world.folders.worktrees / session.sid
        worktree.mkdir(parents=True)
        (worktree / "PLAN.md").write_text(f"# {payload}\n- [ ] {payload}\n", "utf-8")
        (worktree / "progress.txt").write_text(payload + "\n", "utf-8")
        (worktree / "prd.json").write_text(
            json.dumps({"userStories": [{"id": payload, "title": payload, "passes": False}]}), "utf-8"
        )
    world.fleet["sandbox"] = PAYLOADS[0]
    world.fleet["warnings"] = [PAYLOADS[1]]


SCENES = {"empty": lambda world: None, "crowd": crowd, "crowd50": lambda world: crowd(world, 50), "hostile": hostile}


@contextlib.contextmanager
def beside(root: Path, scene: str) -> Iterator[None]:
    """A scene that is served by a thread: for a test that waits, and does not await."""
    ready: Future[Callable[[], object]] = Future()
    thread = threading.Thread(target=asyncio.run, args=(_serve(root, scene, ready),), name="world")
    thread.start()
    end = ready.result()
    try:
        yield
    finally:
        end()
        thread.join()


async def _serve(root: Path, scene: str, ready: Future[Callable[[], object]]) -> None:
    """Serve until what ``ready`` gets is called."""
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    try:
        world = World(folders(root), root / "calls.jsonl")
        SCENES[scene](world)
        async with world:
            ready.set_result(lambda: loop.call_soon_threadsafe(over.set))
            await over.wait()
    except BaseException as exc:
        if ready.done():
            raise
        ready.set_exception(exc)


def stamp(seconds_ago: float) -> str:
    """A log timestamp so many seconds back."""
    return datetime.fromtimestamp(time.time() - seconds_ago, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
