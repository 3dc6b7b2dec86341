"""Client of a fork server: a fork server that we exec once and that forks small processes on request."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable

from harness.linux.proc import Identity, identify, look
from harness.protocol.connection.op import Op
from harness.protocol.spawning import Spawned
from harness.supervisor.base.errors import LinkLost
from harness.supervisor.base.threads import at_home
from harness.supervisor.processes.peer_link import Peer

_PASS = (
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "LANG",
    "TZ",
    "TMPDIR",
    "WATCHFLOOR_STATE",
    "WATCHFLOOR_RUNTIME",
    "WATCHFLOOR_CONFIG",
)
_NETWORK = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
)


_LOOK_S = 0.5
_STOPPED_LOOKS = 4
"""Looks in a row that find a fork server stopped, after which it is replaced: it holds nothing that another one lacks.
"""


def scrubbed(network: bool) -> dict[str, str]:
    """The environment of a fork server: named variables only, so that no key can be among them."""
    names = (*_PASS, *_NETWORK) if network else _PASS
    env = {k: os.environ[k] for k in names if k in os.environ}
    env.setdefault("LANG", "C.UTF-8")
    return env


class ForkServer:
    """Starts its process when first needed and again when it has died."""

    def __init__(
        self, module: str, *, network: bool, isolated: bool, on_push: Callable[[dict[str, object]], None]
    ) -> None:
        self._module = module
        self._network = network
        self._isolated = isolated
        self._on_push = on_push
        self._peer: Peer | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._starting = asyncio.Lock()

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.poll() is None else None

    async def ensure(self) -> Peer:
        """The connection to a running fork_server. Raises OSError when it cannot be started."""
        async with self._starting:
            if self._peer is not None and self._peer.alive:
                return self._peer
            self._reap()
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
            with theirs:
                self._process = await at_home(self._start, theirs.fileno())
            peer = Peer(self._module, self._on_push, self._lost)
            await peer.attach(ours)
            self._peer = peer
            return peer

    def _start(self, fd: int) -> subprocess.Popen[bytes]:
        flags = ["-P", "-s", "-E"] if self._isolated else ["-P", "-s"]
        return subprocess.Popen(
            [sys.executable, *flags, "-m", self._module, "--fd", str(fd)],
            env=scrubbed(self._network),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[fd],
            start_new_session=True,
            cwd="/",
        )

    def _lost(self) -> None:
        self._peer = None

    def _reap(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._process = None

    async def spawn(self, wanted: Op[Spawned], wait: float = 20.0) -> Identity:
        """Fork one process. Raises OpError when refused; a fork server that died, or stays stopped, is started again
        once.
        """
        for attempt in (1, 2):
            peer = await self.ensure()
            looking = asyncio.create_task(self._end_if_stopped(self._process))
            try:
                made = await peer.ask(wanted, wait)
                return Identity(made.pid, made.start, made.boot)
            except LinkLost:
                peer.abort()
                if attempt == 2:
                    raise
            finally:
                looking.cancel()
        raise AssertionError("unreachable")

    async def _end_if_stopped(self, process: subprocess.Popen[bytes] | None) -> None:
        who = identify(process.pid) if process is not None else None
        found = 0
        while process is not None and who is not None:
            await asyncio.sleep(_LOOK_S)
            seen = look(who)
            found = found + 1 if seen is not None and seen.stopped else 0
            if found == _STOPPED_LOOKS:
                print(f"supervisor: {self._module} was stopped and is replaced", file=sys.stderr, flush=True)
                process.kill()
                return

    async def close(self) -> None:
        """End the fork server; what it forked lives on."""
        if self._peer is not None:
            self._peer.close()
            self._peer = None
        process = self._process
        self._process = None
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                await at_home(process.wait, 3)
            if process.poll() is None:
                process.kill()
                await at_home(process.wait)
