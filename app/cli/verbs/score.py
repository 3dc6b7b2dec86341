"""The verb that shows how well sessions worked, in figures that can be compared between runs."""

from __future__ import annotations

import argparse

import msgspec

from app.cli.base import bundle_source, exits
from app.cli.base.context import Context
from app.cli.base.output import emit, safe, say, table
from app.client.replies import ask
from harness.domain.outcomes import PROOFS
from harness.domain.text.formatting import counted, stretch, usd
from harness.views.score_views import Scores, SessionScore

_PATIENCE_S = 120.0
_HEADS = (
    "NAME",
    "OUTCOME",
    "POINTS",
    "PASSED",
    "STEPS",
    "REPLANS",
    "RECOVERED",
    "$/PASSED",
    "TOK/PASSED",
    "CACHE",
    "ASKED",
    "BLOCKED",
    "FALSE DONE",
    "VIOLATIONS",
    "NOW PASS",
    "STILL PASS",
    "RESETS",
)


def score(ctx: Context, args: argparse.Namespace) -> int:
    with bundle_source.look(ctx, args.ids) as (client, ids):
        client.wait_up_to(_PATIENCE_S)
        asked = [{"sid": sid} for sid in ids] or [{}]
        found = [one for given in asked for one in ask(client, Scores, "score", **given).scores]
    if args.json:
        for one in found:
            emit(msgspec.to_builtins(one))
        return exits.OK
    if not found:
        say("no session yet")
        return exits.OK
    for line in table(_HEADS, [_row(one) for one in found], width=max(ctx.width, 160)):
        say(line)
    if len(args.ids) == 1:
        _whole(found[0])
    return exits.OK


def _row(one: SessionScore) -> tuple[str, ...]:
    per = one.nano_per_criterion
    tokens = one.tokens_per_criterion
    return (
        safe(one.name, 24),
        safe(one.outcome or "-") + (f", {PROOFS[one.proof]}" if one.proof else ""),
        f"{one.points:g}/{sum(phase.of for phase in one.phases)}",
        f"{one.passed}/{one.criteria}",
        f"{one.steps:,}",
        f"{one.replans:,}",
        f"{one.recovered}/{one.failures}",
        "-" if per is None else usd(round(per)),
        "-" if tokens is None else f"{tokens:,.0f}",
        "-" if one.cache_hit is None else f"{one.cache_hit:.0%}",
        f"{one.interrupts:,}",
        stretch(one.blocked_seconds),
        f"{one.false_claims}/{one.claims}",
        f"{one.violations:,}",
        f"{one.now_passing:,}",
        f"{one.still_passing:,}",
        f"{one.resets:,}",
    )


def _whole(one: SessionScore) -> None:
    """Phases, and what it made."""
    for phase in one.phases:
        name = safe(phase.name, 60) or "the plan"
        say(f"  {name}: {phase.points:g} of {phase.of} points")
    made = one.artifacts
    if not made:
        return
    are = "is another" if made.count == 1 else "are others"
    say(f"  {counted(made.count, 'file')} {are} than at the start (commit {safe(made.commit[:12])}):")
    for file in made.files:
        digest = file.sha256[:16] or "gone"
        say(f"    {safe(file.how)} {safe(digest):16} {file.bytes:>10,}  {safe(file.path, 200)}")
