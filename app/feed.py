"""The bridge from the supervisor's socket to the screen: pushes become a frozen snapshot and dirty bits; it never gives
up reconnecting.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec

from app import models, start
from app.models import Dirty, Link, Snapshot
from harness.protocol import frames, identity
from harness.protocol.client import AsyncClient, SupervisorError, Unreachable, abandoned
from harness.protocol.paths import FolderError, Folders

_FIRST_WAIT_S = 0.1
_LONGEST_WAIT_S = 2.0
_CALL_TIMEOUT_S = 20.0
_PULSE_S = 3.0
"""Seconds between two questions whether it is there."""
_MUTE_S = 5.0
"""Seconds without an answer until the screen says so."""
_HEIR_S = 1.0
"""Seconds that a guardian, which a leaving supervisor starts and gives its keys, has to show itself."""
_LONGEST_PAUSE_S = 60.0
"""Between two starts of a supervisor that does not come up."""


class Feed:
    """Owns the connection. ``wake`` is called (on the loop) whenever `dirty` became non-empty."""

    def __init__(self, folders: Folders, wake: Callable[[], None], first: Snapshot | None = None) -> None:
        self.folders = folders
        self.snapshot = first or Snapshot()
        self.dirty = Dirty.NOTHING  # a screen shows all of the snapshot when it appears
        self._wake = wake
        self._client: AsyncClient | None = None
        self._task: asyncio.Task[None] | None = None
        self._hurry = asyncio.Event()
        self._start_wanted = False
        self._pid = 0
        self._next_start = 0.0
        self._pause = 1.0
        self._alone_since = 0.0

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

    def take_dirty(self) -> Dirty:
        """What changed since the last call."""
        dirty = self.dirty
        self.dirty = Dirty.NOTHING
        return dirty

    def reconnect(self, *, start: bool = False) -> None:
        """Try again at once; with ``start`` also start a supervisor when nobody answers."""
        self._start_wanted = self._start_wanted or start
        self._hurry.set()

    async def call(self, op: str, **arguments: Any) -> dict[str, Any]:
        """One request. Raises SupervisorError (refused) or Unreachable (no connection, or no answer in time)."""
        if self._client is None and self.snapshot.live:
            await asyncio.sleep(_FIRST_WAIT_S)  # the first frame is shown a moment before the connection stands
        client = self._client
        if client is None or self.snapshot.link.state == "mute":
            raise Unreachable("the supervisor is not answering; nothing was sent")
        try:
            return await asyncio.wait_for(client.call(op, **arguments), _CALL_TIMEOUT_S)
        except TimeoutError as exc:
            raise Unreachable(f"the supervisor did not answer {op!r} in time; it may still do it") from exc

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
                await asyncio.wait_for(self._hurry.wait(), wait)
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
        # The connect itself may wait for a full backlog, so it is done beside the loop.
        sock = await asyncio.to_thread(frames.connect, self.folders.supervisor_socket, 5.0)
        sock.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=sock, limit=1 << 18)
        client = AsyncClient(reader, writer)
        try:
            hello = await asyncio.wait_for(client.call("hello", proto=frames.PROTOCOL, client="tui"), 5.0)
            self._pid = int(hello.get("pid", 0))
            if other := identity.other_fleet(hello.get("state"), self.folders.state):
                raise Unreachable(f"the supervisor there drives {other}, which is another fleet")
        except BaseException as exc:
            await client.close()
            if isinstance(exc, TimeoutError):
                raise Unreachable("it accepted the connection but does not speak") from exc
            raise
        return client

    async def _follow(self, client: AsyncClient) -> None:
        await client.call("subscribe")
        first = await client.call("sessions")
        waiting = await client.call("approvals")
        self._set(
            Dirty.EVERYTHING,
            rows=models.rows_of(first["rows"]),
            fleet=models.fleet_of(first["fleet"]),
            approvals=models.approvals_of(waiting["approvals"]),
            link=Link("live", ""),
        )
        pulse = asyncio.create_task(self._pulse(client))
        try:
            async for push in client.pushes():
                self._apply(push)
        finally:
            pulse.cancel()

    async def _pulse(self, client: AsyncClient) -> None:
        """Ask now and then whether it is there, until the connection ends: one that is stopped closes nothing."""
        while True:
            await asyncio.sleep(_PULSE_S)
            since = time.strftime("%H:%M:%S")
            answer = asyncio.ensure_future(client.call("hello", proto=frames.PROTOCOL, client="tui"))
            try:
                if not (await asyncio.wait({answer}, timeout=_MUTE_S))[0]:
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

    def _apply(self, push: dict[str, Any]) -> None:
        kind = push["push"]
        if kind == "rows":
            changed: dict[str, Any] = {}
            dirty = Dirty.NOTHING
            if push.get("rows") or push.get("gone"):
                changed["rows"] = models.merge(self.snapshot.rows, push)
                dirty |= Dirty.ROWS
            if "fleet" in push:
                changed["fleet"] = models.fleet_of(push["fleet"])
                dirty |= Dirty.FLEET
            if dirty:
                self._set(dirty, **changed)
        elif kind == "approvals":
            self._set(Dirty.APPROVALS, approvals=models.approvals_of(push["approvals"]))

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
            await asyncio.to_thread(lambda: start.supervisor(self.folders, name="tui").close())
            self._pause = 1.0
        except (Unreachable, SupervisorError, FolderError, OSError) as exc:
            self._next_start = time.monotonic() + self._pause
            self._pause = min(_LONGEST_PAUSE_S, self._pause * 2)
            self._set(Dirty.LINK, link=Link("lost", str(exc).splitlines()[0]))

    def _set(self, dirty: Dirty, **changed: Any) -> None:
        self.snapshot = replace(self.snapshot, **changed)
        self.dirty |= dirty
        self._wake()
