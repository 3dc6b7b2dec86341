"""Clients of the supervisor's socket: blocking (standard library) and asyncio. Also: start the supervisor when nobody answers."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

from harness.protocol import frames
from harness.protocol.paths import FolderError, Folders, ensure_private


class SupervisorError(Exception):
    """The supervisor refused: ``code`` for programs, the message (and ``hint``) for people."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(f"{message}\n{hint}" if hint else message)
        self.code, self.message, self.hint = code, message, hint


class Unreachable(Exception):
    """No supervisor answers at the socket; the message says what was tried."""


def _raise(reply: dict[str, Any]) -> dict[str, Any]:
    if reply.get("ok"):
        return reply
    error = reply.get("error") or {}
    raise SupervisorError(str(error.get("code", "error")), str(error.get("message", "the supervisor refused without a reason")), str(error.get("hint", "")))


class Client:
    """One blocking connection. Not thread-safe. Use as a context manager."""

    def __init__(self, path: Path, *, name: str = "cli", timeout: float = 30.0) -> None:
        self._ids = itertools.count(1)
        self._decoder = frames.Decoder()
        self._ready: list[bytes] = []
        try:
            self._sock = frames.connect(path, timeout)
        except OSError as exc:
            raise Unreachable(f"no supervisor answers at {path}: {exc.strerror or exc}") from exc
        try:
            self.hello = self.call("hello", proto=frames.PROTOCOL, client=name)
        except BaseException:
            self._sock.close()
            raise

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._sock.close()

    def wait_up_to(self, seconds: float) -> None:
        """How long each of the next replies may take."""
        self._sock.settimeout(seconds)

    def _next(self) -> dict[str, Any]:
        while not self._ready:
            try:
                data = self._sock.recv(1 << 18)
            except TimeoutError as exc:
                raise Unreachable("the supervisor did not answer in time") from exc
            except OSError as exc:
                raise Unreachable(f"the connection to the supervisor broke: {exc.strerror or exc}") from exc
            if not data:
                raise Unreachable("the supervisor closed the connection")
            self._ready.extend(self._decoder.feed(data))
        return frames.parse(self._ready.pop(0))

    def call(self, op: str, **arguments: Any) -> dict[str, Any]:
        """Send one request and wait for its reply. Raises SupervisorError or Unreachable."""
        number = next(self._ids)
        try:
            self._sock.sendall(frames.encode({"id": number, "op": op, **arguments}))
        except OSError as exc:
            raise Unreachable(f"the connection to the supervisor broke: {exc.strerror or exc}") from exc
        while True:
            message = self._next()
            if message.get("id") == number:
                return _raise(message)

    def pushes(self) -> Iterator[dict[str, Any]]:
        """Iterate over pushed messages for ever (after ``subscribe``)."""
        while True:
            message = self._next()
            if "push" in message:
                yield message


class AsyncClient:
    """One asyncio connection: concurrent requests, one stream of pushes."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._pushes: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, path: Path, *, name: str = "tui", patience: float = 5.0) -> AsyncClient:
        """Raises Unreachable when nobody answers, SupervisorError when the supervisor refuses."""
        try:
            sock = frames.connect(path, patience)
        except OSError as exc:
            raise Unreachable(f"no supervisor answers at {path}: {exc.strerror or exc}") from exc
        sock.setblocking(False)
        reader, writer = await asyncio.open_unix_connection(sock=sock, limit=1 << 18)
        client = cls(reader, writer)
        try:
            await asyncio.wait_for(client.call("hello", proto=frames.PROTOCOL, client=name), patience)
        except TimeoutError as exc:
            await client.close()
            raise Unreachable("the supervisor did not answer in time") from exc
        except BaseException:
            await client.close()
            raise
        return client

    async def _read(self) -> None:
        failure = "the supervisor closed the connection"
        try:
            while (body := await frames.read_frame(self._reader)) is not None:
                message = frames.parse(body)
                if "push" in message:
                    self._pushes.put_nowait(message)
                elif (future := self._waiting.pop(int(message.get("id", 0)), None)) is not None and not future.done():
                    future.set_result(message)
        except (OSError, frames.FrameError) as exc:
            failure = f"the connection to the supervisor broke: {exc}"
        finally:
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(Unreachable(failure))
            self._waiting.clear()
            self._pushes.put_nowait(None)

    async def call(self, op: str, **arguments: Any) -> dict[str, Any]:
        """Send one request and wait for its reply. Raises SupervisorError or Unreachable."""
        if self._task.done():
            raise Unreachable("the supervisor closed the connection")
        number = next(self._ids)
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            self._writer.write(frames.encode({"id": number, "op": op, **arguments}))
            await self._writer.drain()
        except OSError as exc:
            self._waiting.pop(number, None)
            raise Unreachable(f"the connection to the supervisor broke: {exc}") from exc
        return _raise(await future)

    async def pushes(self) -> AsyncIterator[dict[str, Any]]:
        """Pushed messages until the connection ends."""
        while (message := await self._pushes.get()) is not None:
            yield message

    async def close(self) -> None:
        self._task.cancel()
        self._writer.close()
        with contextlib.suppress(asyncio.CancelledError, OSError):
            await self._task
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()


def alive(folders: Folders, timeout: float = 2.0) -> bool:
    """True when a supervisor answers a hello."""
    try:
        Client(folders.supervisor_socket, timeout=timeout).close()
    except (Unreachable, SupervisorError):
        return False
    return True


_LOG_BYTES = 4 * 1024 * 1024
"""A supervisor's log larger than this is put aside (one old one is kept) when the next guardian starts."""
_SCRUB = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OPENAI_API_KEY", "GEMINI_API_KEY")


def spawn_guardian(folders: Folders, drop: tuple[str, ...] = ()) -> int:
    """Start the guardian (parent of the supervisor) detached from this terminal, without any key in its environment; its pid."""
    for folder in (folders.state, folders.runtime):
        ensure_private(folder)
    env = {k: v for k, v in os.environ.items() if k not in _SCRUB and k not in drop}
    env |= {"WATCHFLOOR_STATE": str(folders.state), "WATCHFLOOR_RUNTIME": str(folders.runtime), "WATCHFLOOR_CONFIG": str(folders.config)}
    try:
        if folders.supervisor_log.exists() and folders.supervisor_log.stat().st_size > _LOG_BYTES:
            folders.supervisor_log.replace(folders.supervisor_log.with_suffix(".log.1"))
        log = os.open(folders.supervisor_log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as exc:
        raise FolderError(f"cannot write {folders.supervisor_log}: {exc.strerror}") from exc
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        return os.posix_spawn(
            sys.executable,
            [sys.executable, "-P", "-s", "-m", "harness.supervisor.guardian"],
            env,
            file_actions=[(os.POSIX_SPAWN_DUP2, null, 0), (os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)],
            setsid=True,
        )
    finally:
        os.close(log)
        os.close(null)


def ensure_supervisor(folders: Folders, *, name: str = "cli", timeout: float = 15.0, drop: tuple[str, ...] = ()) -> Client:
    """A connection to the running supervisor, starting it first when nobody answers.

    Raises Unreachable (with the last lines of the supervisor's log) when it does not come up, FolderError on unusable folders.
    """
    with contextlib.suppress(Unreachable):
        return Client(folders.supervisor_socket, name=name)
    offset = folders.supervisor_log.stat().st_size if folders.supervisor_log.exists() else 0
    guardian = spawn_guardian(folders, drop)
    deadline = time.monotonic() + timeout
    while time.monotonic() < deadline:
        with contextlib.suppress(Unreachable):
            return Client(folders.supervisor_socket, name=name)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(guardian, os.WNOHANG)
        if refused := _refusal(folders, offset):
            raise Unreachable(refused)
        time.sleep(0.02)
    raise Unreachable(f"the supervisor did not start within {timeout:.0f} s; see {folders.supervisor_log}")


def _refusal(folders: Folders, offset: int) -> str:
    """The reason a supervisor gave up for good: a line that begins with ``refused: `` in its log."""
    try:
        with folders.supervisor_log.open("rb") as f:
            f.seek(offset)
            text = f.read(1 << 16).decode("utf-8", "replace")
    except OSError:
        return ""
    for line in reversed(text.splitlines()):
        if line.startswith("refused: "):
            return line.removeprefix("refused: ")
    return ""
