"""What a keeper does for its peers: the operations, and who may ask for them. Standard library only.

Appends of one turn share one write and one fdatasync; every other operation first lets those finish, so that it sees,
and answers after, everything that was asked before it.
"""

from __future__ import annotations

import base64
import binascii
import os
import sys
from collections.abc import Callable
from typing import Any

from harness.events import blobs, tools
from harness.events.log import LogError, NoSpace, Poisoned
from harness.hands import limits
from harness.linux.proc import Identity
from harness.protocol import frames
from harness.protocol.paths import SessionFolder
from harness.session import may_append, spool
from harness.session.appender import Journal
from harness.session.authority import Authority
from harness.session.call_gate import Gate, JobLimits
from harness.session.errors import Answer, OpError
from harness.session.event_loop import Loop
from harness.session.fault import Faults
from harness.session.feeds import Feeds
from harness.session.request_fields import number, text
from harness.session.state_ops import StateOps
from harness.session.wire import Conn

BATCH_RECORDS = 64
SHUTDOWN_S = 10.0
KEEP_S = 6.0
"""Seconds that a keeper that was told to end leaves its supervisor to keep the state of the worktree."""


class Ops:
    """The authority over one session: epoch of its supervisor, lease of its brain, order of its records, gate of its
    calls.
    """

    def __init__(
        self, loop: Loop, journal: Journal, folder: SessionFolder, sid: str, me: Identity, faults: Faults
    ) -> None:
        self._loop = loop
        self._journal = journal
        self._folder = folder
        self._sid = sid
        self._me = me
        st = os.stat(folder.root)
        self._place = [st.st_dev, st.st_ino]
        """Which folder this keeper keeps, whatever its name becomes: a copy of it has another number."""
        self._feeds = Feeds(journal)
        self._supervisor: Conn | None = None
        self._authority = Authority(journal, self.write)
        self._waiting: list[tuple[Conn, dict[str, Any]]] = []
        self._sync = False
        self._shutdown: list[tuple[Conn, object]] | None = None
        self._keeps = False
        """The supervisor makes a checkpoint when it hears that this keeper ends."""
        self._awaited = False
        """It was told, and is not done yet."""
        self._gate = Gate(loop, journal, folder, sid, faults, self.write, self._call_over)
        self.beside = self._gate.beside
        states = StateOps(self._gate)
        self._undo_limits = states.limits
        self._ops: dict[str, tuple[tuple[str, ...], Callable[[Conn, dict[str, Any]], dict[str, Any] | None]]] = {
            "append": (("supervisor", "brain"), self._append),
            "blob": (("supervisor", "brain"), self._blob),
            "subscribe": (("supervisor", "brain", "viewer"), self._subscribe),
            "ping": (("supervisor", "brain", "viewer"), self._ping),
            "stats": (("supervisor", "brain", "viewer"), self._stats),
            "lease": (("supervisor",), self._lease),
            "lease_end": (("supervisor",), self._lease_end),
            "execute": (("supervisor",), self._execute),
            "cancel": (("supervisor",), self._cancel),
            "cancel_job": (("supervisor",), self._cancel_job),
            "snapshot": (("supervisor",), states.snapshot),
            "snapshots": (("supervisor",), states.snapshots),
            "export": (("supervisor",), states.export),
            "undo": (("supervisor",), self._undo),
            "shutdown": (("supervisor",), self._end),
        }
        self._gate.resume()
        loop.on_frame = self._frame
        loop.on_closed = self._gone
        loop.after_turn = self._turn
        loop.more = self._sent

    # -- frames in, replies out --------------------------------------------------------------------

    def _frame(self, conn: Conn, body: bytes) -> None:
        message = frames.parse(body)
        asked = message.get("id")
        try:
            op = message.get("op")
            if not conn.role:
                if op != "hello":
                    raise OpError("hello_first", "the first request of a connection must be hello")
                self.flush()
                reply: dict[str, Any] | None = self._hello(conn, message)
            else:
                roles, handle = self._ops.get(str(op), ((), self._append))
                if not roles:
                    raise OpError("unknown_op", f"there is no operation {str(op)[:40]!r}")
                if conn.role not in roles:
                    raise OpError("forbidden", f"{op} is not for a {conn.role}")
                if op != "append":
                    self.flush()
                reply = handle(conn, message)
        except OpError as exc:
            _refuse(conn, asked, exc)
            if not conn.role:
                conn.closing = True
            return
        except NoSpace as exc:
            _refuse(conn, asked, OpError("no_space", exc.what, "free some space, then ask again"))
            return
        except Poisoned as exc:
            _refuse(conn, asked, OpError("poisoned", str(exc)))
            return
        except Exception:
            # One request must not cost the session its keeper: say so here, keep the trace for people, let this peer
            # start over.
            import traceback

            traceback.print_exc()
            _refuse(
                conn,
                asked,
                OpError("internal", "the keeper failed at this request; see keeper.err in the session's folder"),
            )
            conn.closing = True
            return
        if reply is not None:
            conn.send({"id": asked, "ok": True, **reply})

    def _turn(self) -> None:
        self.flush()
        try:
            self._feeds.pump()
        except LogError as exc:
            print(f"keeper: {exc}", file=sys.stderr, flush=True)
            for conn in list(self._loop.conns):
                if conn.tail is not None:
                    self._feeds.drop(conn)
                    conn.farewell("damaged", str(exc))

    def _sent(self) -> bool:
        """Everybody was answered: do what nobody waits for. True while a subscriber has room for more history."""
        self._journal.settle()
        return self._feeds.hungry()

    def _gone(self, conn: Conn) -> None:
        self._feeds.drop(conn)
        self._waiting = [(c, reply) for c, reply in self._waiting if c is not conn]
        if conn is self._supervisor:
            self._supervisor = None
            self._gate.forget_queue()
            self._no_longer_awaited()

    def flush(self) -> None:
        """Commit what was appended, then answer, then push.

        A batch that did not reach the disk is refused as a whole.
        """
        if not self._journal.staged:
            return
        waiting = self._waiting
        self._waiting = []
        sync = self._sync
        self._sync = False
        try:
            fresh = self._journal.commit(sync)
        except NoSpace as exc:
            refusal = OpError("no_space", exc.what, "free some space, then ask again")
        except Poisoned as exc:
            refusal = OpError("poisoned", str(exc), "check the disk, then restart the session's keeper")
        else:
            for conn, reply in waiting:
                conn.send(reply)
            self._feeds.publish(fresh)
            return
        for conn, reply in waiting:
            _refuse(conn, reply["id"], refusal)

    def write(self, kind: str, data: dict[str, Any]) -> None:
        """One durable record of the keeper's own. Raises OpError, NoSpace, Poisoned."""
        self.flush()
        self._feeds.publish(self._journal.write(kind, data))

    # -- who is there ------------------------------------------------------------------------------

    def _hello(self, conn: Conn, message: dict[str, Any]) -> dict[str, Any]:
        if message.get("proto") != frames.PROTOCOL:
            raise OpError(
                "proto",
                f"this keeper speaks protocol {frames.PROTOCOL}, not {message.get('proto')!r}",
                "restart the session's keeper",
            )
        role = message.get("role")
        if role == "supervisor":
            wanted = message.get("folder")
            if isinstance(wanted, list) and wanted != self._place:
                raise OpError(
                    "foreign",
                    "this keeper keeps a session of the same id in another state folder",
                    "each fleet needs a runtime folder of its own",
                )
            self._new_supervisor(conn, number(message, "epoch"))
            self._keeps = message.get("keeps") is True
        elif role == "brain":
            self._authority.check(number(message, "gen"), text(message, "secret"))
            conn.gen = self._journal.memory.gen
        elif role != "viewer":
            raise OpError("bad_request", f"role {str(role)[:40]!r} is not supervisor, brain or viewer")
        conn.role = str(role)
        journal = self._journal
        return {
            "sid": self._sid,
            "pid": self._me.pid,
            "start": self._me.start,
            "boot": self._me.boot,
            "head": journal.written,
            "hash": journal.hash,
            "poisoned": journal.poisoned,
            "epoch": self._authority.epoch,
            "gen": journal.memory.gen,
            "running": self._gate.running,
            "folder": self._place,
        }

    def _new_supervisor(self, conn: Conn, epoch: int) -> None:
        self._authority.take_over(epoch)
        if self._supervisor is not None:
            old = self._supervisor
            self._supervisor = None
            self._gate.forget_queue()
            old.farewell("stale_epoch", f"a supervisor of epoch {epoch} took over")
        self._supervisor = conn

    def _lease(self, conn: Conn, message: dict[str, Any]) -> dict[str, Any]:
        if self._shutdown is not None:
            raise OpError("shutting_down", "this keeper is about to end")
        if self._authority.grant(message):
            self._close_brains()
        return {}

    def _lease_end(self, conn: Conn, message: dict[str, Any]) -> dict[str, Any]:
        self._authority.end(message)
        self._close_brains()
        return {}

    def _close_brains(self) -> None:
        for conn in self._loop.conns:
            if conn.role == "brain":
                conn.farewell("stale_lease", f"generation {conn.gen} no longer holds the lease")

    # -- records -----------------------------------------------------------------------------------

    def _append(self, conn: Conn, message: dict[str, Any]) -> None:
        sync = message.get("cls", "A")
        if sync not in ("A", "B", "C"):
            raise OpError("bad_request", f"durability class {str(sync)[:40]!r} is not A, B or C")
        records = may_append.records(self._journal.memory, conn.role, message.get("records"))
        expect = message.get("expect")
        if expect is not None and expect != self._journal.head:
            raise OpError(
                "conflict",
                f"the log ends at record {self._journal.head}, not at {str(expect)[:40]}",
                "read on, then decide again",
            )
        first, last = self._journal.stage(records, actor=conn.role, gen=conn.gen)
        self._waiting.append(
            (conn, {"id": message.get("id"), "ok": True, "first": first, "last": last, "hash": self._journal.hash})
        )
        self._sync = self._sync or sync != "C"
        if self._journal.staged >= BATCH_RECORDS:
            self.flush()
        self._tidy(records)
        if any(kind == "user.message" and data.get("origin", "human") == "human" for kind, data in records):
            self._loop.call_later(0, self._gate.waits.spoken)
        if any(leads_to_the_fence(kind, data) for kind, data in records):
            self._loop.call_later(0, self._gate.expect)  # once this is answered

    def _tidy(self, records: list[tuple[str, dict[str, Any]]]) -> None:
        if any(kind == "tool.resolved" for kind, _ in records):
            self.flush()
            spool.clean(self._folder, set(self._journal.memory.calls.open))

    def _blob(self, conn: Conn, message: dict[str, Any]) -> dict[str, Any]:
        try:
            data = base64.b64decode(text(message, "data"), validate=True)
        except (binascii.Error, ValueError) as exc:
            raise OpError("bad_request", f"data is not base64: {exc}") from exc
        try:
            sha, size = blobs.put(self._folder.blobs, data)
        except NoSpace:
            raise
        except OSError as exc:
            raise OpError("io", f"the payload cannot be stored: {exc.strerror or exc}") from exc
        return {"sha": sha, "bytes": size}

    def _subscribe(self, conn: Conn, message: dict[str, Any]) -> None:
        after = number(message, "after")
        if after > self._journal.written or after < -1:
            raise OpError(
                "conflict", f"the log ends at record {self._journal.written}, there is no record {after} to go on from"
            )
        conn.send({"id": message.get("id"), "ok": True, "head": self._journal.written})
        self._feeds.subscribe(conn, after)

    def _stats(self, conn: Conn, message: dict[str, Any]) -> dict[str, Any]:
        """Sizes of this process, which nobody else of this user may look into."""
        sizes: dict[str, int] = {}
        with open("/proc/self/smaps_rollup", encoding="ascii") as file:
            for line in file:
                name, _, rest = line.partition(":")
                if name in ("Pss", "Rss", "Private_Dirty"):
                    sizes[name.lower()] = int(rest.split()[0]) * 1024
        return {"head": self._journal.written, "connections": len(self._loop.conns), "memory": sizes}

    # -- calls -------------------------------------------------------------------------------------

    def _execute(self, conn: Conn, message: dict[str, Any]) -> dict[str, Any] | None:
        if self._shutdown is not None:
            raise OpError("shutting_down", "this keeper is about to end")
        if conn is not self._supervisor:
            raise OpError("stale_epoch", "only the supervisor of the present epoch may execute")
        try:
            self._gate.limits = limits.from_wire(message.get("limits"))
        except ValueError as exc:
            raise OpError("bad_request", str(exc)) from exc
        self._undo_limits(message)
        self._gate.job_limits = _job_limits(message.get("jobs"), self._gate.job_limits)
        self._gate.execute(text(message, "call_id"), self._answer(conn, message))
        return None

    def _ping(self, conn: Conn, message: dict[str, Any]) -> dict[str, Any]:
        told = {"waits": self._gate.vault.waits, "lacks": self._gate.lacks}
        return {name: words for name, words in told.items() if words}

    def _undo(self, conn: Conn, message: dict[str, Any]) -> None:
        if self._shutdown is not None:
            raise OpError("shutting_down", "this keeper is about to end")
        undo: dict[str, Any] = {name: text(message, name) for name in ("undo_id", "call_id", "snapshot")}
        undo["by"] = message.get("by")
        self._gate.undo(undo, self._answer(conn, message))

    def _answer(self, conn: Conn, message: dict[str, Any]) -> Answer:
        asked = message.get("id")

        def answer(reply: dict[str, Any] | OpError) -> None:
            if isinstance(reply, OpError):
                _refuse(conn, asked, reply)
            else:
                conn.send({"id": asked, "ok": True, **reply})

        return answer

    def _cancel(self, conn: Conn, message: dict[str, Any]) -> dict[str, Any]:
        self._gate.cancel(text(message, "call_id"))
        return {}

    def _cancel_job(self, conn: Conn, message: dict[str, Any]) -> dict[str, Any]:
        name = text(message, "job")
        job = self._gate.jobs.now.get(name)
        if job is None:
            raise OpError("not_running", f"job {name[:40]} does not run")
        job.stop("cancelled")
        return {}

    def _call_over(self) -> None:
        if self._shutdown is not None and not self._gate.jobs.now and not self._awaited:
            self._finish()

    # -- the end -----------------------------------------------------------------------------------

    def _end(self, conn: Conn, message: dict[str, Any]) -> None:
        self._shutdown = [*(self._shutdown or []), (conn, message.get("id"))]
        self._awaited = False
        self._leave(kill=message.get("kill") is True)

    def told_to_end(self) -> None:
        """End as a signal asks: the running call is cancelled and recorded, the supervisor has a few seconds to keep
        what changed, then the log is closed.
        """
        if self._supervisor is not None and self._keeps and self._shutdown is None:
            self._awaited = True
            self._supervisor.send({"push": "ending"})
            self._loop.call_later(KEEP_S, self._no_longer_awaited)
        self.terminate()

    def terminate(self) -> None:
        """End: the running call is cancelled and recorded, then the log is closed."""
        self._shutdown = self._shutdown or []
        self._leave(kill=True)

    def _no_longer_awaited(self) -> None:
        if self._awaited:
            self._awaited = False
            self._leave(kill=True)

    def _leave(self, *, kill: bool) -> None:
        self._gate.forget_queue()
        if kill:
            self._gate.cancel_all()
        if not self._gate.running and not self._gate.jobs.now and not self._awaited:
            self._finish()
        elif kill:
            self._loop.call_later(SHUTDOWN_S + self._gate.job_limits.grace_s, self._finish)

    def _finish(self) -> None:
        if self._loop.stopping:
            return
        self.flush()
        for conn, asked in self._shutdown or []:
            conn.send({"id": asked, "ok": True})
        self._gate.vault.stop()
        self._gate.ready.drop()
        self._loop.stopping = True


def _refuse(conn: Conn, asked: object, exc: OpError) -> None:
    conn.send({"id": asked, "ok": False, "error": exc.body()})


def _job_limits(value: object, before: JobLimits) -> JobLimits:
    """The limits of ``[jobs]`` that a request names; without them those of before. Raises OpError."""
    if value is None:
        return before
    if not isinstance(value, dict):
        raise OpError("bad_request", "jobs must be an object")
    return JobLimits(at_once=number(value, "at_once"), grace_s=number(value, "grace_s"))


def leads_to_the_fence(kind: str, data: dict[str, Any]) -> bool:
    """A call that may run was judged, or one is proposed that most likely may: what contains itself is not asked
    about.
    """
    if kind == "tool.judged":
        return data.get("verdict") == "allow"
    given = data.get("input")
    inside = not isinstance(given, dict) or given.get("access", "fence") == "fence"
    return kind == "tool.proposed" and inside and tools.starts_process(str(data.get("tool")))
