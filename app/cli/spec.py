"""The verb that reads a specification before an agent does: which of its criteria no machine can decide."""

from __future__ import annotations

import argparse

from app.cli import exits
from app.cli.context import Context
from app.cli.given import Usage, bytes_of
from app.cli.output import emit, safe, say
from harness.plan import spec
from harness.plan.criteria import FORMS, Criterion, Problem
from harness.plan.formats import MAX_BYTES, BadPlan


def check(ctx: Context, args: argparse.Namespace) -> int:
    """Exit code 0 when every criterion is decided by a machine and there is one, else 1."""
    try:
        lines = spec.check(bytes_of(args.file, MAX_BYTES))
    except BadPlan as exc:
        raise Usage(f"{args.file}: {exc}") from exc
    bad = [line for line in lines if isinstance(line.found, Problem)]
    if args.json:
        for line in lines:
            emit({"where": line.where, "text": line.found.text, **_verdict(line.found)})
        return exits.NO if bad or not lines else exits.OK
    for line in lines:
        if isinstance(line.found, Problem):
            say(f"{safe(line.where)}: {safe(line.found.text, 300)}")
            say(f"    {safe(line.found.why, 300)}")
            if line.found.hint:
                say(f"    better: {safe(line.found.hint, 300)}")
    if not lines:
        say("it holds no criterion")
    if bad or not lines:
        say("\n    ".join(["a machine decides what is worded like one of these:", *FORMS]))
    if not lines:
        return exits.NO
    say(f"{len(lines) - len(bad)} of {len(lines)} criteria are decided by a command, a file or a request")
    return exits.NO if bad else exits.OK


def _verdict(found: Criterion | Problem) -> dict[str, object]:
    if isinstance(found, Problem):
        return {"decided": False, "why": found.why, "instead": found.instead}
    return {"decided": True, "kind": found.kind, "command": found.command}
