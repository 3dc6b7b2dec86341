"""Where a supervisor lives: it leaves when its state folder is gone, and makes its runtime folder again."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import Callable

from harness.linux.durable import replace_file
from harness.linux.proc import identify
from harness.protocol import identity
from harness.protocol.paths import Folders, ensure_private
from harness.supervisor.base.threads import at_home
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.sessions.keepers import Keepers

_SELF_CHECK = 5.0


class OwnPlace:
    """``lock``: the descriptor of the supervisor's lock in the state folder; ``leave`` is called when that is gone."""

    def __init__(
        self, folders: Folders, epoch: int, lock: int, fleet: Fleet, keepers: Keepers, leave: Callable[[], None]
    ) -> None:
        self._folders = folders
        self._epoch = epoch
        self._lock = lock
        self._fleet = fleet
        self._keepers = keepers
        self._leave = leave

    def ready(self) -> None:
        """Say in the runtime folder who serves. Raises OSError."""
        who = identify(os.getpid())
        assert who is not None
        text = json.dumps({"pid": who.pid, "start": who.start, "boot": who.boot, "epoch": self._epoch})
        replace_file(self._folders.runtime / "supervisor.json", f"{text}\n".encode())

    async def watch(self) -> None:
        """Leave when our state folder was removed or replaced: nothing we could do would be for anybody."""
        while True:
            await asyncio.sleep(_SELF_CHECK)
            if await self._lost():
                return

    async def _lost(self) -> bool:
        mine = os.fstat(self._lock)
        try:
            there = await at_home(os.stat, self._folders.supervisor_lock)
        except FileNotFoundError:
            there = None
        if there is not None and (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino):
            return False
        print(
            f"supervisor: the state folder {self._folders.state} was removed or replaced; leaving",
            file=sys.stderr,
            flush=True,
        )
        self._leave()
        return True

    async def make_again(self) -> None:
        """Make the runtime folder again as it was, after a logout or a cleaner took it, and let the keepers listen in
        it. Raises OSError, FolderError.
        """
        if await self._lost():  # it may have lain in there, and nothing makes that anew
            return

        def folders() -> None:
            for folder in (self._folders.runtime, self._folders.keeper_sockets):
                ensure_private(folder)
            identity.claim_runtime(self._folders)
            self.ready()

        await at_home(folders)
        for session in self._fleet:
            if session.link is not None:
                with contextlib.suppress(ProcessLookupError):
                    self._keepers.call_back(session.state)
