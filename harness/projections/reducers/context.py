"""What these records change in the state: clearing, hand-offs, summaries and memories of the requests."""

from __future__ import annotations

from harness.events import types as t
from harness.projections.reducers.handlers import Handlers
from harness.projections.reducers.reply import replied
from harness.projections.state.session_state import SessionState

HANDLERS = Handlers()
_on = HANDLERS.on


@_on(t.ModelSummary)
def _summary(s: SessionState, r: t.Record, b: t.ModelSummary) -> None:
    s.context.wanted = False
    replied(s, r, b)


@_on(t.ContextCleared)
def _context_cleared(s: SessionState, r: t.Record, b: t.ContextCleared) -> None:
    s.context.tokens = b.after
    s.context.clearings = s.context.clearings + 1


@_on(t.ContextReset)
def _context_reset(s: SessionState, r: t.Record, b: t.ContextReset) -> None:
    s.context.tokens = b.after
    s.context.resets = s.context.resets + 1
    s.context.fresh = False
    s.memory.began_anew()


@_on(t.MemoryShown)
def _memory_shown(s: SessionState, r: t.Record, b: t.MemoryShown) -> None:
    s.memory.told(b)


@_on(t.ContextCompacted)
def _context_compacted(s: SessionState, r: t.Record, b: t.ContextCompacted) -> None:
    s.context.tokens = b.tokens_after
    s.context.compactions = s.context.compactions + 1


@_on(t.ContextWanted)
def _context_wanted(s: SessionState, r: t.Record, b: t.ContextWanted) -> None:
    s.context.wanted = s.context.wanted or not b.fresh
    s.context.fresh = s.context.fresh or b.fresh


@_on(t.ContextKept)
def _context_kept(s: SessionState, r: t.Record, b: t.ContextKept) -> None:
    s.context.wanted = False
    s.context.fresh = False
