"""The keeper's event loop: one thread, one selector, a few timers, connections with back-pressure.

Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.keeper.loop.connection import PAUSE_BYTES, QUEUE_BYTES, Conn
from harness.keeper.loop.timers import Turns
from harness.protocol.connection import frames
from harness.protocol.paths import FolderError, ensure_private

MAX_CONNECTIONS = 64
_FINAL_WRITE_S = 1.0


class Loop(Turns):
    """Serves one listening socket. The four hooks are set by whoever gives the frames a meaning."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self.conns: set[Conn] = set()
        self.on_frame: Callable[[Conn, bytes], None]
        self.on_closed: Callable[[Conn], None]
        self.after_turn: Callable[[], None]
        """Called once per turn, after all that was readable was handled and before anything is sent."""
        self.more: Callable[[], bool]
        """Asked after everything was sent: True when there is work that no event will announce."""
        self._listener: socket.socket | None = None
        self._inode = (0, 0)
        self.bind()

    # -- the socket's name -------------------------------------------------------------------------

    def bind(self) -> None:
        """Listen under our path, replacing whatever has the name now. Raises OSError."""
        fresh = frames.listen(self._path)
        fresh.setblocking(False)
        self._unlisten()
        self._listener = fresh
        self._inode = _inode(self._path)
        self._selector.register(fresh, selectors.EVENT_READ, self._accept)

    def rebind_if_lost(self) -> None:
        """Listen anew when our name vanished or belongs to another socket; its folder may have gone with it."""
        if _inode(self._path) != self._inode:
            try:
                ensure_private(self._path.parent)
                self.bind()
            except (OSError, FolderError) as exc:
                print(f"keeper: cannot listen at {self._path}: {exc}", file=sys.stderr, flush=True)

    def _unlisten(self) -> None:
        if self._listener is not None:
            self._selector.unregister(self._listener)
            self._listener.close()
            self._listener = None

    # -- turns -------------------------------------------------------------------------------------

    def run(self) -> None:
        """Serve until ``stopping``; then send what is queued (briefly) and close everything."""
        again = False
        while not self.stopping:
            self._turn(wait=not again)
            self.after_turn()
            self._send_all()
            again = self.more()
        self._finish()

    def _finish(self) -> None:
        self._unlisten()
        if _inode(self._path) == self._inode:
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()
        for conn in list(self.conns):
            with contextlib.suppress(OSError):
                conn.sock.settimeout(_FINAL_WRITE_S)
                for frame in conn.out:
                    conn.sock.sendall(frame)
            self.close(conn)
        self._selector.close()

    # -- connections -------------------------------------------------------------------------------

    def _accept(self, _mask: int) -> None:
        assert self._listener is not None
        try:
            sock, _ = self._listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        except OSError as exc:
            print(f"keeper: cannot accept a connection: {exc}", file=sys.stderr, flush=True)
            self._unlisten()
            self.call_later(1.0, self._listen_again)
            return
        sock.setblocking(False)
        if frames.peer(sock)[1] != os.getuid() or len(self.conns) >= MAX_CONNECTIONS:
            sock.close()
            return
        conn = Conn(sock)
        self.conns.add(conn)
        self._mask(conn, selectors.EVENT_READ)

    def _listen_again(self) -> None:
        if self._listener is None:
            self._inode = (0, 0)
            self.rebind_if_lost()
            if self._listener is None:
                self.call_later(1.0, self._listen_again)

    def _mask(self, conn: Conn, mask: int) -> None:
        if mask == conn.mask:
            return

        def ready(events: int) -> None:
            if events & selectors.EVENT_READ:
                self._readable(conn)

        if not conn.mask:
            self._selector.register(conn, mask, ready)
        elif not mask:
            self._selector.unregister(conn)
        else:
            self._selector.modify(conn, mask, ready)
        conn.mask = mask

    def _readable(self, conn: Conn) -> None:
        if conn.closed or conn.closing:
            return
        try:
            data = conn.read()
            if not data:
                self.close(conn)
                return
            for body in conn.decoder.feed(data):
                self.on_frame(conn, body)
                if _over(conn):
                    return
        except BlockingIOError:
            return
        except frames.FrameError as exc:
            conn.farewell("bad_frame", str(exc))
        except OSError:
            self.close(conn)

    def _send_all(self) -> None:
        for conn in list(self.conns):
            if conn.out:
                try:
                    conn.flush()
                except OSError:
                    self.close(conn)
                    continue
            if conn.out_bytes > QUEUE_BYTES:
                self.close(conn)
                continue
            if conn.closing:
                # One try is enough for a last word; whoever does not read it sees the end of the stream.
                self.close(conn)
                continue
            mask = selectors.EVENT_WRITE if conn.out else 0
            if conn.out_bytes < PAUSE_BYTES:
                mask |= selectors.EVENT_READ
            self._mask(conn, mask)

    def close(self, conn: Conn) -> None:
        """Close now; what is queued is dropped."""
        if conn.closed:
            return
        conn.closed = True
        self._mask(conn, 0)
        self.conns.discard(conn)
        conn.sock.close()
        self.on_closed(conn)


def _over(conn: Conn) -> bool:
    return conn.closed or conn.closing


def _inode(path: Path) -> tuple[int, int]:
    try:
        info: Any = path.stat()
    except OSError:
        return (-1, -1)
    return (info.st_dev, info.st_ino)
