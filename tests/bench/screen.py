"""A program in a real pseudo-terminal: what it painted and when."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time


class Screen:
    """Runs ``argv`` in a PTY; bytes are kept until the next `clear`."""

    def __init__(self, argv: list[str], env: dict[str, str], columns: int = 120, rows: int = 40) -> None:
        self.started = time.perf_counter()
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execvpe(argv[0], argv, env)
        self.seen = bytearray()

    def pump(self, timeout: float) -> bool:
        """Read what is there within ``timeout`` seconds; False when nothing came."""
        ready, _, _ = select.select([self.fd], [], [], timeout)
        if not ready:
            return False
        try:
            self.seen += os.read(self.fd, 1 << 16)
        except OSError:
            return False
        return True

    def until(self, needle: bytes, timeout: float = 30.0) -> float:
        """Seconds since start when ``needle`` had arrived."""
        deadline = time.perf_counter() + timeout
        while needle not in self.seen:
            if time.perf_counter() > deadline:
                raise TimeoutError(f"{needle!r} was not painted; the screen said: {bytes(self.seen[-2000:])!r}")
            self.pump(0.05)
        return time.perf_counter() - self.started

    def quiet(self, seconds: float, limit: float = 10.0) -> None:
        """Read until nothing arrived for ``seconds``."""
        deadline = time.perf_counter() + limit
        while self.pump(seconds) and time.perf_counter() < deadline:
            pass

    def send(self, keys: bytes) -> None:
        os.write(self.fd, keys)

    def close(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.close(self.fd)
        os.waitpid(self.pid, 0)
