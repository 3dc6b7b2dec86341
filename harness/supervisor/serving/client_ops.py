"""What clients may ask of the supervisor: the table of all operations, joined from the concepts' own.

Refusals are OpError values.
"""

from __future__ import annotations

import os
from functools import partial
from importlib.metadata import version

from harness.protocol import identity
from harness.protocol.connection import frames
from harness.supervisor.base.errors import OpError
from harness.supervisor.serving.finding import find
from harness.supervisor.serving.fleet_feed import FleetFeed
from harness.supervisor.serving.ops.alarm_ops import AlarmOps
from harness.supervisor.serving.ops.approval_ops import ApprovalOps
from harness.supervisor.serving.ops.archive_ops import ArchiveOps
from harness.supervisor.serving.ops.briefing_ops import BriefingOps
from harness.supervisor.serving.ops.checkpoint_ops import CheckpointOps
from harness.supervisor.serving.ops.fleet_ops import FleetOps
from harness.supervisor.serving.ops.grant_ops import GrantOps
from harness.supervisor.serving.ops.job_ops import JobOps
from harness.supervisor.serving.ops.lifecycle_ops import WishOps
from harness.supervisor.serving.ops.memory_ops import MemoryOps
from harness.supervisor.serving.ops.merge_ops import MergeOps
from harness.supervisor.serving.ops.plan_ops import PlanOps
from harness.supervisor.serving.ops.policy_ops import PolicyOps
from harness.supervisor.serving.ops.pull_ops import PullOps
from harness.supervisor.serving.ops.reading_ops import ReadingOps
from harness.supervisor.serving.ops.score_ops import ScoreOps
from harness.supervisor.serving.ops.session_ops import SessionOps
from harness.supervisor.serving.ops.timeline_ops import TimelineOps
from harness.supervisor.serving.ops.undo_ops import UndoOps
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler, Server
from harness.supervisor.sessions.halt import Halt
from harness.views.replies import DONE, Done, Halted, Hello


class ClientOps:
    """The table of operations; what concerns the connection and the supervisor itself is answered here."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts
        self.feed = FleetFeed(parts)
        self.server: Server | None = None
        self._state = identity.who(parts.folders.state)
        self._version = version("watchfloor")

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        p = self._p
        named = partial(find, p)
        return {
            "hello": self.hello,
            "subscribe": self.subscribe,
            "watching": self.watching,
            "shutdown": self.shutdown,
            **FleetOps(p, self.feed).table(),
            **SessionOps(p, named).table(),
            **WishOps(p).table(),
            **ReadingOps(p, named).table(),
            **ApprovalOps(p).table(),
            **UndoOps(p, named).table(),
            **ArchiveOps(p).table(),
            **CheckpointOps(p, named).table(),
            **GrantOps(p).table(),
            **JobOps(p).table(),
            **MemoryOps(p).table(),
            **MergeOps(p, named).table(),
            **PlanOps(named).table(),
            **PolicyOps(p).table(),
            **PullOps(p, named).table(),
            **TimelineOps(named).table(),
            **AlarmOps(self._p, named).table(),
            **ScoreOps(p, named).table(),
            **BriefingOps(p, named).table(),
        }

    async def hello(self, c: Connection, m: Fields) -> Hello:
        """Say who answers: protocol, epoch, version, state folder."""
        return Hello(
            proto=frames.PROTOCOL, epoch=self._p.epoch, version=self._version, pid=os.getpid(), state=self._state
        )

    async def subscribe(self, c: Connection, m: Fields) -> Done:
        """Push rows and open requests to this client from now on, first as they are, then as they change."""
        assert self.server is not None
        return await self.server.subscribe(c)

    async def watching(self, c: Connection, m: Fields) -> Done:
        """Say whether somebody is in front of this client's screen; while nobody is, notices go out."""
        c.watching = m.get("watched") is not False
        return DONE

    async def shutdown(self, c: Connection, m: Fields) -> Halted:
        """Stop the supervisor, and with ``sessions`` = ``stop`` every session first."""
        what = text_of(m, "sessions") or "leave"
        if what not in ("leave", "stop"):
            raise OpError("bad_request", f"sessions can be left or stopped, not {what!r}")
        unrecorded = (
            await Halt(self._p.folders, self._p.fleet, self._p.conductor, self._p.launcher).run(c.by)
            if what == "stop"
            else []
        )
        await self._p.stop()
        return Halted(unrecorded=unrecorded)
