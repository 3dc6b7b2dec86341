"""The socket: who may connect, frames to operations, pushes to subscribers.

What an operation does is in the `…_ops` beside it, joined in `client_ops` and `brain_ops`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from harness.events import types as t
from harness.protocol.connection import frames
from harness.protocol.connection.aio import Wire as AnyWire
from harness.protocol.connection.exchange import Answering, Ended, Incoming
from harness.protocol.connection.struct_json import STRUCT_JSON
from harness.supervisor.base.errors import LinkLost, OpError, refusal
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session
from harness.supervisor.fleet.thinking import Brain
from harness.views.replies import DONE, ApprovalsPush, Done, RowsPush

PUSH_INTERVAL = 0.04
QUEUE_LIMIT = 4 << 20
MAX_CLIENTS = 256
_SELF_CHECK = 1.0
_LAST_S = 2.0

Fields = Mapping[str, object]
"""What came with a request: anything, until it was looked at."""
Reply = msgspec.Struct
"""What is answered or pushed: a record, whose fields are those of the frame."""
Wire = AnyWire[Incoming]


class Connection:
    """One client: its credentials and what it subscribed to."""

    def __init__(self, wire: Wire, answering: Answering) -> None:
        self.wire = wire
        self.answering = answering
        self.by = t.By()
        self.greeted = False
        self.subscribed = False
        self.watching = True
        """Somebody is in front of it, as far as it knows; a screen says when not (``watching``)."""
        self.behind = False
        self.session: Session | None = None
        self.brain: Brain | None = None


Handler = Callable[[Connection, Fields], Awaitable[Reply]]


class Feed(Protocol):
    """Where pushes come from."""

    def rows(self, changed: set[str] | None) -> RowsPush:
        """The ``rows`` push for these sessions, or for all."""

    async def approvals(self) -> ApprovalsPush:
        """The ``approvals`` push."""


class Server:
    """Listens, checks the peer's uid, runs operations, pushes changes coalesced.

    A slow client never holds up another.
    """

    def __init__(self, path: Path, fleet: Fleet, handlers: dict[str, Handler], feed: Feed) -> None:
        self._path = path
        self._handlers = handlers
        self._feed = feed
        self._connections: dict[Wire, Connection] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._inode = (0, 0)
        self._closing = False
        self._changed: set[str] = set()
        self._event = asyncio.Event()
        self._followed = False
        """Somebody subscribed and was there when last looked: for nobody else is noted what changes."""
        fleet.observe(self._note)

    def _note(self, session: Session) -> None:
        if self._followed:
            self._changed.add(session.sid)
            self._event.set()

    # -- life --------------------------------------------------------------------------------------

    async def listen(self) -> None:
        """Bind the socket (mode 0600) and accept. Raises OSError."""
        sock = frames.listen(self._path)
        sock.setblocking(False)
        self._inode = self._look()
        self._server = await asyncio.get_running_loop().create_unix_server(self._accept, sock=sock)

    def _accept(self) -> Wire:
        answering = Answering(STRUCT_JSON)
        return AnyWire(answering.take, lambda wire, request: self._asked(wire, answering, request), self._lost)

    def _look(self) -> tuple[int, int]:
        try:
            st = self._path.stat()
        except OSError:
            return (0, 0)
        return (st.st_dev, st.st_ino)

    async def guard(self, make_place: Callable[[], Awaitable[None]]) -> None:
        """Bind again when our socket file vanished or was replaced, until cancelled; ``make_place`` makes its folder
        again first.

        Raises OSError, FolderError when that fails: a supervisor that nobody can reach must not stay.
        """
        while True:
            await asyncio.sleep(_SELF_CHECK)
            if self._look() != self._inode and not self._closing:
                await make_place()
                old = self._server
                self._server = None
                if old is not None:
                    old.close()
                await self.listen()
                print("supervisor: the socket file was gone; it is made again", file=sys.stderr, flush=True)

    def deaf(self) -> None:
        """Stop listening and unlink our own socket file; who is connected is answered until `close`, new work is
        refused.
        """
        self._closing = True
        if self._server is not None:
            self._server.close()
        if self._look() == self._inode:
            with contextlib.suppress(OSError):
                os.unlink(self._path)

    async def close(self) -> None:
        """Answer what was asked, send what waits, then drop every client; one that does not read is dropped after a
        moment.
        """
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_LAST_S)
        wires = [connection.wire for connection in self._connections.values()]
        for wire in wires:
            wire.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_S):
                for wire in wires:
                    await wire.gone.wait()
        for wire in wires:
            if not wire.gone.is_set():
                wire.abort()

    # -- requests ----------------------------------------------------------------------------------

    def _admit(self, wire: Wire, answering: Answering) -> Connection | None:
        connection = self._connections.get(wire)
        if connection is not None:
            return connection
        sock = wire.transport.get_extra_info("socket") if wire.transport is not None else None
        if sock is None or len(self._connections) >= MAX_CLIENTS:
            wire.abort()
            return None
        pid, uid, _ = frames.peer(sock)
        if uid != os.getuid():
            wire.abort()
            return None
        connection = Connection(wire, answering)
        self._connections[wire] = connection
        connection.by = t.By(client="", uid=uid, pid=pid)
        return connection

    def _lost(self, wire: Wire) -> None:
        self._connections.pop(wire, None)

    def _asked(self, wire: Wire, answering: Answering, request: Incoming) -> None:
        connection = self._admit(wire, answering)
        if connection is None:
            return
        task = asyncio.get_running_loop().create_task(self._answer(connection, request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, connection: Connection, request: Incoming) -> None:
        answering = connection.answering
        number = request.number
        op = request.op
        error: dict[str, str]
        try:
            frame = answering.reply(number, await self._run(connection, op, request.message))
        except OpError as exc:
            frame = answering.refuse(number, exc.to_wire())
        except LinkLost as exc:
            error = {
                "code": "lost",
                "message": str(exc),
                "hint": "it may be done all the same: look at the session before you ask again",
            }
            frame = answering.refuse(number, error)
        except frames.Oversize:
            error = {"code": "too_large", "message": f"the answer to {op} is larger than a frame"}
            frame = answering.refuse(number, error)
        except Exception as exc:
            if (lacks := refusal(exc)) is not None:
                error = lacks.to_wire()
            else:
                traceback.print_exc(file=sys.stderr)
                error = {"code": "internal", "message": f"{op}: {type(exc).__name__}: {exc}"}
            frame = answering.refuse(number, error)
        with contextlib.suppress(Ended):
            connection.wire.send(frame)

    async def _run(self, connection: Connection, op: str, message: Fields) -> Reply:
        handler = self._handlers.get(op)
        if self._closing:
            raise OpError("stopping", "the supervisor is stopping", "the next command starts it again")
        if handler is None:
            raise OpError(
                "unknown_op", f"there is no operation {op[:40]!r}", "client and supervisor may have different versions"
            )
        if not connection.greeted:
            if op not in ("hello", "brain_hello"):
                raise OpError("hello_first", "say hello first")
            if message.get("proto", frames.PROTOCOL) != frames.PROTOCOL:
                raise OpError(
                    "protocol",
                    f"this supervisor speaks protocol {frames.PROTOCOL}, not {message.get('proto')!r}",
                    "use the same version on both sides",
                )
            connection.greeted = True
            connection.by = msgspec.structs.replace(connection.by, client=str(message.get("client", "brain"))[:40])
        return await handler(connection, message)

    async def subscribe(self, connection: Connection) -> Done:
        """Everything as it is first, then changes."""
        connection.subscribed = True
        self._followed = True
        self._push(connection, self._feed.rows(None))
        self._push(connection, await self._feed.approvals())
        return DONE

    @property
    def looked_at(self) -> bool:
        """Somebody follows what changes, and is there to see it."""
        return any(connection.subscribed and connection.watching for connection in self._connections.values())

    # -- pushes ------------------------------------------------------------------------------------

    def nudge(self) -> None:
        """Something other than a session changed: send the totals to every subscriber."""
        if self._followed:
            self._event.set()

    async def push(self) -> None:
        """Send what changed to every subscriber, at most 25 times a second, until cancelled.

        Begun again it sends everything once.
        """
        last_approvals: ApprovalsPush | None = None
        everything = True
        self._event.set()
        while True:
            await self._event.wait()
            self._event.clear()
            await asyncio.sleep(PUSH_INTERVAL)
            changed = self._changed
            self._changed = set()
            listeners = [c for c in self._connections.values() if c.subscribed]
            if not listeners:
                self._followed = False
                last_approvals = None
                everything = False
                continue
            rows = self._feed.rows(None if everything else changed)
            approvals = await self._feed.approvals()
            for connection in listeners:
                self._push(connection, rows)
                if approvals != last_approvals:
                    self._push(connection, approvals)
            last_approvals = approvals
            everything = False

    def _push(self, connection: Connection, message: Reply) -> None:
        """A client that does not read gets nothing more until its queue has drained, then everything at once."""
        wire = connection.wire
        if wire.closed:
            return
        if wire.queued() > QUEUE_LIMIT:
            if not connection.behind:
                connection.behind = True
                asyncio.get_running_loop().call_later(0.5, self._resync, connection)
            return
        if connection.behind:
            return
        with contextlib.suppress(Ended):
            wire.send(connection.answering.push(message))

    def _resync(self, connection: Connection) -> None:
        if connection.wire.closed:
            return
        if connection.wire.queued() > 0:
            asyncio.get_running_loop().call_later(0.5, self._resync, connection)
            return
        connection.behind = False
        task = asyncio.get_running_loop().create_task(self._resend(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _resend(self, connection: Connection) -> None:
        await self.subscribe(connection)
