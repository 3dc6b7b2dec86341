"""Where the sending of a session's work stands. Pure; the fold holds a `PullState`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import msgspec

from harness.domain.outcomes import PASSES
from harness.events.body import Body
from harness.events.calls.call_events import ToolEnded, ToolProposed, ToolStarted
from harness.events.work import pull_events as p


class PlanEntryLine(msgspec.Struct, frozen=True):
    """An entry of the plan as a request for review names it."""

    id: str
    title: str
    passes: bool


class CheckLine(msgspec.Struct, frozen=True):
    """A check, whether it passed, and how that compares with its result before the work."""

    command: str
    passed: bool
    outcome: str = PASSES


class PullView(msgspec.Struct, frozen=True, kw_only=True):
    """What a request for review is made of; every text is untrusted. ``commits`` are subjects, oldest first, the first
    fifty of ``count``; ``proof``: what shows that it is done (`outcomes`); ``loose``: files that are committed first,
    with that commit among ``commits`` and ``head`` empty, as it is not made; ``seen``: what a person looked at, as it
    has to be named next (`Diff.seen`), empty when nobody named it.
    """

    sid: str
    name: str
    goal: str
    remote: str
    url: str
    branch: str
    head: str
    count: int
    proof: str
    commits: list[str] = []
    plan: list[PlanEntryLine] = []
    checks: list[CheckLine] = []
    loose: list[str] = []
    seen: str = ""


@dataclass(frozen=True, slots=True)
class PullState:
    """``open`` is the push under way, ``ended`` the newest that is over; ``address`` the newest request's."""

    open: p.PullStarted | None = None
    call_id: str = ""
    status: str = ""
    preview: str = ""
    ended: p.PullEnded | None = None
    address: str = ""

    def words(self) -> str:
        """What a row says of it; empty when there is nothing to say."""
        if self.open is not None:
            return f"pushing {self.open.branch} to {self.open.remote}"
        if self.address:
            return f"request {self.address}"
        if self.ended is None:
            return ""
        where = f"{self.ended.branch} to {self.ended.remote}"
        return f"pushed {where}" if self.ended.outcome == p.PUSHED else f"did not push {where}: {self.ended.why}"


def after(known: PullState, b: Body) -> PullState:
    """What is known after one more record."""
    match b:
        case p.PullStarted():
            return PullState(b, address=known.address)
        case p.PullEnded():
            return PullState(None, ended=b, address=known.address)
        case p.PullOpened():
            return replace(known, address=b.address)
        case ToolProposed() if known.open is not None and b.by_pull:
            return replace(known, call_id=b.call_id)
        case ToolEnded() if known.call_id and known.call_id == b.call_id:
            return replace(known, status=b.status, preview=b.preview)
    return known


def pushes(known: PullState, b: Body) -> bool:
    """True for what begins after a session's end because a person has it pushed."""
    return isinstance(b, ToolProposed | ToolStarted) and bool(known.call_id) and b.call_id == known.call_id
