"""What a keeper does for its peers: the operations, and who may ask for them. Standard library only.

Appends of one turn share one write and one fdatasync; every other operation first lets those finish, so that it sees,
and answers after, everything that was asked before it.
"""

from __future__ import annotations

import base64
import binascii
import os
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeVar

from harness.eventlog import blobs
from harness.eventlog.writer import LogError, NoSpace, Poisoned
from harness.keeper.calls import spool, standby
from harness.keeper.calls.gate import CallGate
from harness.keeper.log import append_rules
from harness.keeper.log.appender import Appender, Record
from harness.keeper.log.leases import Authority
from harness.keeper.loop import requests
from harness.keeper.loop.connection import Asker, Conn
from harness.keeper.loop.errors import OpError
from harness.keeper.loop.event_loop import Loop
from harness.keeper.loop.fault_points import Faults
from harness.keeper.snapshot_ops import StateOps
from harness.keeper.subscriptions import Feeds
from harness.linux.proc import Identity
from harness.protocol.connection import frames
from harness.protocol.connection.op import BadArgument, Op, Yes, reader
from harness.protocol.keeper_requests import (
    Append,
    Appended,
    BrainHello,
    KeeperHello,
    KeeperSizes,
    Ping,
    ProcessMemory,
    PutBlob,
    Stats,
    Stored,
    Subscribe,
    Subscribed,
    SupervisorHello,
    ViewerHello,
    WaitsFor,
)
from harness.protocol.paths import SessionFolder

BATCH_RECORDS = 64
SHUTDOWN_S = 10.0
KEEP_S = 6.0
"""Seconds that a keeper that was told to end leaves its supervisor to keep the state of the worktree."""
ALL = ("supervisor", "brain", "viewer")
WRITERS = ("supervisor", "brain")
SUPERVISOR = ("supervisor",)
Asked = TypeVar("Asked", bound=Op[object])
_of_supervisor = reader(SupervisorHello)
_of_brain = reader(BrainHello)
_of_viewer = reader(ViewerHello)


class KeeperOps:
    """The authority over one session: epoch of its supervisor, lease of its brain, order of its records, gate of its
    calls.
    """

    def __init__(
        self, loop: Loop, journal: Appender, folder: SessionFolder, sid: str, me: Identity, faults: Faults
    ) -> None:
        self._loop = loop
        self._journal = journal
        self._folder = folder
        self._sid = sid
        self._me = me
        st = os.stat(folder.root)
        self._place = (st.st_dev, st.st_ino)
        """Which folder this keeper keeps, whatever its name becomes: a copy of it has another number."""
        self._feeds = Feeds(journal)
        self._supervisor: Conn | None = None
        self._authority = Authority(journal, self.write)
        self._waiting: list[tuple[Asker, Appended]] = []
        self._sync = False
        self._shutdown: list[Asker] | None = None
        self._keeps = False
        """The supervisor makes a checkpoint when it hears that this keeper ends."""
        self._awaited = False
        """It was told, and is not done yet."""
        self._gate = CallGate(loop, journal, folder, sid, faults, self.write, self._call_over)
        self.beside = self._gate.beside
        self.states = StateOps(self._gate)
        self._gate.resume()
        loop.on_frame = self._frame
        loop.on_closed = self._gone
        loop.after_turn = self._turn
        loop.more = self._sent

    # -- frames in, replies out --------------------------------------------------------------------

    def _frame(self, conn: Conn, body: bytes) -> None:
        message = frames.parse(body)
        asker = Asker(conn, message.get("id"))
        try:
            reply = self._asked(asker, message)
        except (OpError, BadArgument) as exc:
            asker.told(exc if isinstance(exc, OpError) else OpError("bad_request", str(exc)))
            if not conn.role:
                conn.closing = True
        except NoSpace as exc:
            asker.told(OpError("no_space", exc.what, "free some space, then ask again"))
        except Poisoned as exc:
            asker.told(OpError("poisoned", str(exc)))
        except Exception:
            # One request must not cost the session its keeper: say so here, keep the trace for people, let this peer
            # start over.
            import traceback

            traceback.print_exc()
            asker.told(OpError("internal", "the keeper failed at this request; see keeper.err in the session's folder"))
            conn.closing = True
        else:
            if reply is not None:
                asker.told(reply)

    def _asked(self, asker: Asker, message: Mapping[str, object]) -> object | None:
        """The reply, None when it comes later. Raises OpError, BadArgument, NoSpace, Poisoned."""
        op = message.get("op")
        role = asker.conn.role
        if not role:
            if op != "hello":
                raise OpError("hello_first", "the first request of a connection must be hello")
            self.flush()
            return self._hello(asker.conn, message)
        served = OPERATIONS.get(str(op))
        if served is None:
            raise OpError("unknown_op", f"there is no operation {str(op)[:40]!r}")
        if role not in served.roles:
            raise OpError("forbidden", f"{op} is not for a {role}")
        if op != Append.OP:
            self.flush()
        return served.handle(self, asker, message)

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
        self._waiting = [(asker, reply) for asker, reply in self._waiting if asker.conn is not conn]
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
            for asker, reply in waiting:
                asker.told(reply)
            self._feeds.publish(fresh)
            return
        for asker, _ in waiting:
            asker.told(refusal)

    def write(self, kind: str, data: dict[str, object]) -> None:
        """One durable record of the keeper's own. Raises OpError, NoSpace, Poisoned."""
        self.flush()
        self._feeds.publish(self._journal.write(kind, data))

    # -- who is there ------------------------------------------------------------------------------

    def _hello(self, conn: Conn, message: Mapping[str, object]) -> KeeperHello:
        if message.get("proto") != frames.PROTOCOL:
            raise OpError(
                "proto",
                f"this keeper speaks protocol {frames.PROTOCOL}, not {message.get('proto')!r}",
                "restart the session's keeper",
            )
        match message.get("role"):
            case "supervisor":
                self._hello_of_supervisor(conn, _of_supervisor(message))
            case "brain":
                said = _of_brain(message)
                self._authority.check(said.gen, said.secret, frames.peer(conn.sock)[0])
                conn.gen = self._journal.memory.gen
            case "viewer":
                _of_viewer(message)
            case role:
                raise OpError("bad_request", f"role {str(role)[:40]!r} is not supervisor, brain or viewer")
        conn.role = str(message["role"])
        journal = self._journal
        return KeeperHello(
            sid=self._sid,
            pid=self._me.pid,
            start=self._me.start,
            boot=self._me.boot,
            head=journal.written,
            hash=journal.hash,
            poisoned=journal.poisoned,
            epoch=self._authority.epoch,
            gen=journal.memory.gen,
            running=tuple(self._gate.running),
            folder=self._place,
        )

    def _hello_of_supervisor(self, conn: Conn, said: SupervisorHello) -> None:
        if said.folder is not None and said.folder != self._place:
            raise OpError(
                "foreign",
                "this keeper keeps a session of the same id in another state folder",
                "each fleet needs a runtime folder of its own",
            )
        self._new_supervisor(conn, said.epoch)
        self._keeps = said.keeps

    def _new_supervisor(self, conn: Conn, epoch: int) -> None:
        self._authority.take_over(epoch)
        if self._supervisor is not None:
            old = self._supervisor
            self._supervisor = None
            self._gate.forget_queue()
            old.farewell("stale_epoch", f"a supervisor of epoch {epoch} took over")
        self._supervisor = conn

    def _lease(self, asker: Asker, lease: requests.GrantLease) -> Yes:
        if self._shutdown is not None:
            raise OpError("shutting_down", "this keeper is about to end")
        if self._authority.grant(lease):
            self._close_brains()
        return Yes()

    def _lease_end(self, asker: Asker, lease: requests.EndLease) -> Yes:
        self._authority.end(lease)
        self._close_brains()
        return Yes()

    def _close_brains(self) -> None:
        for conn in self._loop.conns:
            if conn.role == "brain":
                conn.farewell("stale_lease", f"generation {conn.gen} no longer holds the lease")

    # -- records -----------------------------------------------------------------------------------

    def _append(self, asker: Asker, wanted: Append) -> None:
        conn = asker.conn
        records = append_rules.records(self._journal.memory, conn.role, wanted.records)
        if wanted.expect is not None and wanted.expect != self._journal.head:
            raise OpError(
                "conflict",
                f"the log ends at record {self._journal.head}, not at {str(wanted.expect)[:40]}",
                "read on, then decide again",
            )
        first, last = self._journal.stage(records, actor=conn.role, gen=conn.gen)
        self._waiting.append((asker, Appended(first, last, self._journal.hash)))
        self._sync = self._sync or wanted.cls != "C"
        if self._journal.staged >= BATCH_RECORDS:
            self.flush()
        self._follow(records)

    def _follow(self, records: list[Record]) -> None:
        """What records of others lead to, once they are answered."""
        expected = False
        for kind, data in records:
            if kind in ("tool.judged", "tool.proposed"):
                expected = expected or standby.leads_to_the_sandbox(kind, data)
            elif kind == "user.message" and data.get("origin", "human") == "human":
                self._loop.call_later(0, self._gate.waits.spoken)
            elif kind == "tool.resolved":
                self.flush()
                spool.clean(self._folder, set(self._journal.memory.calls.open))
        if expected:
            self._loop.call_later(0, self._gate.expect)

    def _blob(self, asker: Asker, payload: PutBlob) -> Stored:
        try:
            data = base64.b64decode(payload.data, validate=True)
        except (binascii.Error, ValueError) as exc:
            raise OpError("bad_request", f"data is not base64: {exc}") from exc
        try:
            sha, size = blobs.put(self._folder.blobs, data)
        except NoSpace:
            raise
        except OSError as exc:
            raise OpError("io", f"the payload cannot be stored: {exc.strerror or exc}") from exc
        return Stored(sha, size)

    def _subscribe(self, asker: Asker, wanted: Subscribe) -> None:
        if wanted.after > self._journal.written or wanted.after < -1:
            raise OpError(
                "conflict",
                f"the log ends at record {self._journal.written}, there is no record {wanted.after} to go on from",
            )
        asker.told(Subscribed(self._journal.written))
        self._feeds.subscribe(asker.conn, wanted.after)

    def _stats(self, asker: Asker, wanted: Stats) -> KeeperSizes:
        """Sizes of this process, which nobody else of this user may look into."""
        sizes: dict[str, int] = {}
        with open("/proc/self/smaps_rollup", encoding="utf-8") as file:
            for line in file:
                name, _, rest = line.partition(":")
                if name in ("Pss", "Rss", "Private_Dirty"):
                    sizes[name.lower()] = int(rest.split()[0]) * 1024
        return KeeperSizes(self._journal.written, len(self._loop.conns), ProcessMemory(**sizes))

    # -- calls -------------------------------------------------------------------------------------

    def _execute(self, asker: Asker, wanted: requests.Execute) -> None:
        if self._shutdown is not None:
            raise OpError("shutting_down", "this keeper is about to end")
        if asker.conn is not self._supervisor:
            raise OpError("stale_epoch", "only the supervisor of the present epoch may execute")
        self._gate.limits = wanted.limits
        self._gate.vault.limits = wanted.undo_limits or self._gate.vault.limits
        self._gate.job_limits = wanted.jobs or self._gate.job_limits
        self._gate.execute(wanted.call_id, asker.told)

    def _ping(self, asker: Asker, wanted: Ping) -> WaitsFor:
        return WaitsFor(self._gate.vault.waits or None, self._gate.lacks or None)

    def _undo(self, asker: Asker, wanted: requests.UndoCall) -> None:
        if self._shutdown is not None:
            raise OpError("shutting_down", "this keeper is about to end")
        self._gate.undo(wanted, asker.told)

    def _cancel(self, asker: Asker, wanted: requests.CancelCall) -> Yes:
        self._gate.cancel(wanted.call_id)
        return Yes()

    def _cancel_job(self, asker: Asker, wanted: requests.CancelJob) -> Yes:
        job = self._gate.jobs.now.get(wanted.job)
        if job is None:
            raise OpError("not_running", f"job {wanted.job[:40]} does not run")
        job.stop("cancelled")
        return Yes()

    def _call_over(self) -> None:
        if self._shutdown is not None and not self._gate.jobs.now and not self._awaited:
            self._finish()

    # -- the end -----------------------------------------------------------------------------------

    def _end(self, asker: Asker, wanted: requests.Shutdown) -> None:
        self._shutdown = [*(self._shutdown or []), asker]
        self._awaited = False
        self._leave(kill=wanted.kill)

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
        for asker in self._shutdown or []:
            asker.told(Yes())
        self._gate.vault.stop()
        self._gate.ready.drop()
        self._loop.stopping = True


class _Served(NamedTuple):
    """An operation: who may ask for it, and who carries it out; None when the reply comes later."""

    roles: tuple[str, ...]
    handle: Callable[[KeeperOps, Asker, Mapping[str, object]], object | None]


def _served(
    roles: tuple[str, ...], kind: type[Asked], handle: Callable[[KeeperOps, Asker, Asked], object | None]
) -> tuple[str, _Served]:
    read = reader(kind)
    return kind.OP, _Served(roles, lambda keeper, asker, message: handle(keeper, asker, read(message)))


OPERATIONS = dict(
    (
        _served(WRITERS, Append, KeeperOps._append),
        _served(WRITERS, PutBlob, KeeperOps._blob),
        _served(ALL, Subscribe, KeeperOps._subscribe),
        _served(ALL, Ping, KeeperOps._ping),
        _served(ALL, Stats, KeeperOps._stats),
        _served(SUPERVISOR, requests.GrantLease, KeeperOps._lease),
        _served(SUPERVISOR, requests.EndLease, KeeperOps._lease_end),
        _served(SUPERVISOR, requests.Execute, KeeperOps._execute),
        _served(SUPERVISOR, requests.CancelCall, KeeperOps._cancel),
        _served(SUPERVISOR, requests.CancelJob, KeeperOps._cancel_job),
        _served(SUPERVISOR, requests.TakeState, lambda keeper, asker, wanted: keeper.states.take(asker, wanted)),
        _served(SUPERVISOR, requests.StatesKept, lambda keeper, asker, wanted: keeper.states.kept(asker, wanted)),
        _served(SUPERVISOR, requests.ExportState, lambda keeper, asker, wanted: keeper.states.export(asker, wanted)),
        _served(SUPERVISOR, requests.UndoCall, KeeperOps._undo),
        _served(SUPERVISOR, requests.Shutdown, KeeperOps._end),
    )
)
"""Made once by the fork server: a keeper that made its own had 0.2 MB more of its own."""
