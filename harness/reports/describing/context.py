"""One line for each record of: what the requests show of the log: clearing, hand-offs, summaries, memories."""

from __future__ import annotations

from harness.domain.text.line import first
from harness.events import types as t
from harness.reports.describing import memory_words
from harness.reports.describing.line import Describers, Line, paid

DESCRIBERS = Describers()
_on = DESCRIBERS.on


@_on(t.ContextCleared)
def _context_cleared(b: t.ContextCleared) -> Line:
    return Line("context", f"older outputs and inputs cleared, {_context(b.tokens, b.after, b.trigger)}", "dim")


@_on(t.ContextReset)
def _context_reset(b: t.ContextReset) -> Line:
    return Line("context", f"begins anew with a hand-off, {_context(b.tokens, b.after, b.trigger)}", "info")


@_on(t.ContextCompacted)
def _context_compacted(b: t.ContextCompacted) -> Line:
    how = _context(b.tokens_before, b.tokens_after, b.trigger)
    return Line("context", f"begins anew with a hand-off and a summary, {how}", "info")


@_on(t.ContextWanted)
def _context_wanted(b: t.ContextWanted) -> Line:
    what = "to begin anew with a hand-off" if b.fresh else "to be compacted before the next turn"
    return Line("context", what, "info")


@_on(t.ContextKept)
def _context_kept(b: t.ContextKept) -> Line:
    return Line("context", f"left as it is: {first(b.why)}", "dim")


@_on(t.ModelSummary)
def _summary(b: t.ModelSummary) -> Line:
    what = f"a summary that is not used: {first(b.why)}" if b.why else "a summary of its task"
    return Line(
        "summary", f"{what} · {b.usage.output:,} out · {paid(b.cost_nano, b.price_source)}", "warn" if b.why else "dim"
    )


@_on(t.MemoryChanged)
def _memory_changed(b: t.MemoryChanged) -> Line:
    return Line("memory", memory_words.changed(b), "info")


@_on(t.MemoryShown)
def _memory_shown(b: t.MemoryShown) -> Line:
    return Line("memory", memory_words.shown(b), "dim")


def _context(tokens: int, after: int, trigger: str) -> str:
    return f"{tokens:,} → about {after:,} tokens: {first(trigger)}"
