"""The supervisor's connection to one keeper."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.events import types as t
from harness.protocol.connection.transport import UnixSocket
from harness.protocol.keeper_requests import Append, KeeperHello, NewRecord, SupervisorHello, lines_of
from harness.supervisor.base.errors import OpError
from harness.supervisor.processes.peer_link import Peer


class KeeperLink(Peer):
    """Appends, pushes of the log's lines, and whatever else a keeper does for its supervisor."""

    def __init__(
        self,
        sid: str,
        on_lines: Callable[[list[str]], None],
        on_lost: Callable[[], None],
        on_ending: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(f"keeper {sid}", self._pushed, on_lost)
        self.sid = sid
        self.hello: KeeperHello | None = None
        self._on_lines = on_lines
        self._on_ending = on_ending

    def _pushed(self, message: dict[str, object]) -> None:
        if message.get("push") == "events":
            self._on_lines(lines_of(message))
        elif message.get("push") == "ending":
            self._on_ending()

    async def open(self, path: Path, folder: tuple[int, int], epoch: int, budget: float) -> KeeperHello:
        """Connect and say hello to the keeper of this session folder (device, inode) within ``budget`` seconds.

        Raises OSError (nobody there), LinkLost, OpError (``stale_epoch``, ``identity``, ``foreign``).
        """
        sock = UnixSocket(path).open(min(budget, 0.5))
        await self.attach(sock)
        try:
            hello = await self.ask(SupervisorHello(epoch, folder, keeps=True), budget)
        except OpError:
            self.close()
            raise
        if hello.sid != self.sid:
            self.close()
            raise OpError("identity", f"the keeper at {path.name} says it keeps {hello.sid[:20]}")
        self.hello = hello
        return hello

    async def append(self, bodies: list[t.Body], cls: str) -> int:
        """Append records; returns the sequence number of the last one once they are durable as ``cls`` says."""
        done = await self.ask(Append(tuple(NewRecord(body.TYPE, body) for body in bodies), cls))
        return done.last
