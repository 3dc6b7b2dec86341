"""What is due after an agent's edits: the configured commands, once for all edits of a reply, and then their words,
once. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from harness.domain.states import Desired
from harness.domain.text.formatting import whole_output
from harness.projections.state.iterations import Chore
from harness.projections.state.session_state import SessionState

_MOST = 6000
"""Characters that are told of all hooks together."""


@dataclass(frozen=True, slots=True)
class Run:
    """Run these commands in the sandbox, each within so many seconds."""

    commands: tuple[str, ...]
    seconds: int


@dataclass(frozen=True, slots=True)
class Tell:
    """Say this to the agent; so many of them failed."""

    text: str
    failed: int


@dataclass(frozen=True, slots=True)
class Look:
    """Compare the worktree with this state of it, to see whether commands changed something."""

    since: str


Due: TypeAlias = Run | Look | Tell


def due(s: SessionState) -> Due | None:
    """What the supervisor does before the next request; None when there is nothing."""
    if s.intent is None or s.ended is not None or s.desired != Desired.RUNNING or s.finish_up is not None:
        return None
    if s.calls.open or s.request is not None:
        return None
    ways = s.intent.ways
    if s.hooks.edited and ways.hooks:
        return Run(tuple(ways.hooks), ways.hook_s)
    if s.hooks.since:
        return Look(s.hooks.since)
    speaking = [chore for chore in s.hooks.ended if not chore.good or chore.output.strip()]
    return Tell(words(speaking), sum(not one.good for one in speaking)) if speaking else None


def words(chores: list[Chore]) -> str:
    """What hooks have to say, bounded: the end of each output."""
    share = _MOST // len(chores)
    parts = [f"$ {one.command}\n[{one.how}]\n{_end(one, share)}" for one in chores]
    return "\n\n".join(["Run by the harness after your edits; files may have been changed by it.", *parts])


def _end(chore: Chore, share: int) -> str:
    """The end of its output, and how the agent reads the rest."""
    text = chore.output.strip()
    shown = text[-share:] or "(no output)"
    cut = len(text) > share or chore.size > len(chore.output.encode("utf-8", "replace"))
    return f"{shown}\n{whole_output(chore.call_id, chore.size)}" if cut else shown
