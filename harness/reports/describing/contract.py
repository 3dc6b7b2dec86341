"""One line for each record of: the contract that is agreed before work."""

from __future__ import annotations

from harness.domain.text.formatting import counted, usd
from harness.domain.text.line import first, size
from harness.events import types as t
from harness.reports.describing.line import Describers, Line

DESCRIBERS = Describers()
_on = DESCRIBERS.on


@_on(t.ContractOpened)
def _opened(b: t.ContractOpened) -> Line:
    return Line("contract", f"{b.model} plans as {b.role}, {b.evaluator} is to agree: {size(b.brief.bytes)}", "dim")


@_on(t.ContractDrafted)
def _drafted(b: t.ContractDrafted) -> Line:
    answers = f", in answer to: {first('; '.join(b.answers))}" if b.answers else ""
    return Line("contract", f"draft {b.n}, {size(b.text.bytes)}{answers}", "info")


@_on(t.ContractAgreed)
def _agreed(b: t.ContractAgreed) -> Line:
    unmet = f"; not met: {first('; '.join(b.objections))}" if b.objections else ""
    drafts = counted(b.drafts, "draft")
    return Line(
        "contract",
        f"agreed after {drafts}: {b.text.sha[:12]}, {size(b.text.bytes)}{unmet} · {usd(b.cost_nano)}",
        "warn" if b.objections else "good",
    )
