"""The bridge from the supervisor's socket to the screen: pushes become a frozen snapshot and dirty bits; it never gives
up reconnecting.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from app.client import snapshot as models
from app.client import start_supervisor
from app.client.replies import read
from app.client.snapshot import Dirty, FirstLook, Link, Snapshot
from harness.protocol import identity
from harness.protocol.async_client import AsyncClient
from harness.protocol.client import Mute, SupervisorError, Unreachable, abandoned
from harness.protocol.connection import frames
from harness.protocol.connection.transport import Transport, UnixSocket
from harness.protocol.paths import FolderError, Folders
from harness.views.replies import Hello

T = TypeVar("T")
_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 2.0
_CALL_TIMEOUT_S = 20.0
_HEIR_S = 1.0
"""Seconds that a guardian, which a leaving supervisor starts and gives its keys, has to show itself."""
_LONGEST_PAUSE_S = 60.0
"""Between two starts of a supervisor that does not come up."""


class Patience(msgspec.Struct, frozen=True):
    """Seconds between two questions whether the supervisor is there, and without an answer until the screen says so."""

    pulse_s: float = 3.0
    mute_s: float = 5.0


PATIENCE = Patience()


class Feed:
    """Owns the connection, at first that of ``first``. ``wake`` is called (on the loop) whenever `dirty` became
    non-empty.
    """

    def __init__(
        self,
        folders: Folders,
        wake: Callable[[], None],
        first: FirstLook | None = None,
        patience: Patience = PATIENCE,
        transport: Transport | None = None,
    ) -> None:
        self.folders = folders
        self.transport: Transport = transport or UnixSocket(folders.supervisor_socket)
        self.snapshot = first.snapshot if first is not None else Snapshot()
        self._given = first.client if first is not None else None
        self._told = self._given is not None
        self.dirty = Dirty.NOTHING  # a screen shows all of the snapshot when it appears
        self._wake = wake
        self._patience = patience
        self._client: AsyncClient | None = None
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._start_wanted = False
        self._pid = 0
        self._next_start = 0.0
        self._pause = 1.0
        self._alone_since = 0.0
        self.told_watched = True

    def start(self) -> None:
        """Begin connecting; call once, on the running loop."""
        self._task = asyncio.create_task(self._run(), name="feed")

    async def aclose(self) -> None:
        """End the connection; the fleet goes on."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._client is not None:
            await self._client.close()
        if self._given is not None:
            self._given.close()

    def take_dirty(self) -> Dirty:
        """What changed since the last call."""
        dirty = self.dirty
        self.dirty = Dirty.NOTHING
        return dirty

    def reconnect(self, *, start: bool = False) -> None:
        """Try again at once; with ``start`` also start a supervisor when nobody answers."""
        self._start_wanted = self._start_wanted or start
        self._hurry.set()

    async def tell_watched(self, watched: bool) -> None:
        """Have the supervisor know whether somebody is in front of this screen; on every new connection it believes so
        (``told_watched``).
        """
        client = self._client
        if client is None:
            return
        self.told_watched = watched
        with contextlib.suppress(SupervisorError, Unreachable):  # an older one calls nobody while a screen is open
            await client.call("watching", _CALL_TIMEOUT_S, watched=watched)

    async def call(self, op: str, **arguments: object) -> Mapping[str, object]:
        """One request. Raises SupervisorError (refused) or Unreachable (no connection, or no answer in time)."""
        return await self.call_within(_CALL_TIMEOUT_S, op, **arguments)

    async def reply(self, kind: type[T], op: str, **arguments: object) -> T:
        """As `call`, read as what a reply to it is; one that is not is refused as any other."""
        return read(kind, op, await self.call(op, **arguments))

    async def reply_within(self, seconds: float, kind: type[T], op: str, /, **arguments: object) -> T:
        """As `reply`, for what may take so long."""
        return read(kind, op, await self.call_within(seconds, op, **arguments))

    async def call_within(self, seconds: float, op: str, /, **arguments: object) -> Mapping[str, object]:
        """As `call`, for what may take so long."""
        if self._client is None and self.snapshot.live:
            await asyncio.sleep(_FIRST_WAIT_S)  # the first frame is shown a moment before the connection stands
        client = self._client
        if client is None or self.snapshot.link.state == "mute":
            raise Unreachable("the supervisor is not answering; nothing was sent")
        return await client.call(op, seconds, **arguments)

    # -- the connection ----------------------------------------------------------------------------

    async def _run(self) -> None:
        wait = _FIRST_WAIT_S
        while True:
            try:
                self._client = await self._connect()
                wait = _FIRST_WAIT_S
                self._alone_since = 0.0
                await self._follow(self._client)
                why = "supervisor not answering, reconnecting"
            except (Unreachable, SupervisorError, OSError, frames.FrameError) as exc:
                why = f"supervisor not answering, reconnecting ({str(exc).splitlines()[0]})"
            except (msgspec.ValidationError, KeyError, TypeError) as exc:
                why = f"the supervisor sent something this screen does not understand ({exc}); is it another version?"
            await self._drop(why)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._hurry.wait()
            self._hurry.clear()
            if self._start_wanted or await self._nobody_will():
                self._start_wanted = False
                await self._start_supervisor()
            wait = min(_LONGEST_WAIT_S, wait * 2)

    async def _nobody_will(self) -> bool:
        """True when this screen has to start the supervisor: it is gone, its guardian too, and nobody stopped it on
        purpose.
        """
        if not await asyncio.to_thread(abandoned, self.folders):
            self._alone_since = 0.0
            return False
        now = time.monotonic()
        self._alone_since = self._alone_since or now
        return now - self._alone_since >= _HEIR_S and now >= self._next_start

    async def _connect(self) -> AsyncClient:
        client = await self._greeted()
        self.told_watched = True
        try:
            self._pid = read(Hello, "hello", client.hello).pid
            if other := identity.other_fleet(client.hello.get("state"), self.folders.state):
                raise Unreachable(f"the supervisor there drives {other}, which is another fleet")
        except BaseException:
            await client.close()
            raise
        return client

    async def _greeted(self) -> AsyncClient:
        given = self._given
        self._given = None
        if given is not None:
            return await AsyncClient.take_over(given)
        self._told = False
        try:
            return await AsyncClient.connect(self.transport, name="tui")
        except Mute as exc:
            raise Unreachable("it accepted the connection but does not speak") from exc
        except Unreachable as exc:
            if isinstance(exc.__cause__, OSError):
                raise exc.__cause__ from None  # its words alone leave room in the banner for what to press
            raise

    async def _follow(self, client: AsyncClient) -> None:
        pushes = client.pushes()
        known = self.snapshot
        if not self._told:
            await client.call("subscribe")
            known = Snapshot(link=Link("live", ""))
            missing = set(models.WHOLE)
            while missing:
                push = await anext(pushes, None)
                if push is None:
                    return
                known, _ = models.applied(known, push)
                missing.discard(push["push"])
        self._told = False
        self._take(known, Dirty.EVERYTHING)
        pulse = asyncio.create_task(self._pulse(client))
        try:
            async for push in pushes:
                self._take(*models.applied(self.snapshot, push))
        finally:
            pulse.cancel()

    async def _pulse(self, client: AsyncClient) -> None:
        """Ask now and then whether it is there, until the connection ends: one that is stopped closes nothing."""
        while True:
            await asyncio.sleep(self._patience.pulse_s)
            since = time.strftime("%H:%M:%S")
            answer = asyncio.ensure_future(client.call("hello", proto=frames.PROTOCOL, client="tui"))
            try:
                if not (await asyncio.wait({answer}, timeout=self._patience.mute_s))[0]:
                    who = f" (process {self._pid})" if self._pid else ""
                    self._set(
                        Dirty.LINK | Dirty.FLEET,
                        link=Link("mute", f"the supervisor does not answer since {since}{who}"),
                    )
                await answer
            except SupervisorError:
                pass  # a refusal is an answer
            except Unreachable:
                return  # whoever follows it says so
            finally:
                answer.cancel()
            if self.snapshot.link.state == "mute":
                self._set(Dirty.LINK | Dirty.FLEET, link=Link("live", ""))

    async def _drop(self, why: str) -> None:
        client = self._client
        self._client = None
        if client is not None:
            await client.close()
        state = "lost" if self.snapshot.link.state in ("live", "lost", "mute") else "connecting"
        self._set(Dirty.LINK | Dirty.FLEET, link=Link(state, why))

    async def _start_supervisor(self) -> None:
        self._set(Dirty.LINK, link=Link(self.snapshot.link.state, "starting the supervisor"))
        try:
            await asyncio.to_thread(lambda: start_supervisor.supervisor(self.folders, name="tui").close())
            self._pause = 1.0
        except (Unreachable, SupervisorError, FolderError, OSError) as exc:
            self._next_start = time.monotonic() + self._pause
            self._pause = min(_LONGEST_PAUSE_S, self._pause * 2)
            self._set(Dirty.LINK, link=Link("lost", str(exc).splitlines()[0]))

    def _set(self, dirty: Dirty, **changed: object) -> None:
        self._take(msgspec.structs.replace(self.snapshot, **changed), dirty)

    def _take(self, snapshot: Snapshot, dirty: Dirty) -> None:
        if dirty:
            self.snapshot = snapshot
            self.dirty |= dirty
            self._wake()
