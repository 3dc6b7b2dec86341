"""The verb ``policy``: check a file, explain a verdict, try a file over the past. Nothing of it changes anything."""

from __future__ import annotations

import argparse
import json

import msgspec

from app.cli.base import exits
from app.cli.base.arguments import Usage, text_of
from app.cli.base.context import Context
from app.cli.base.output import age, emit, safe, say
from app.client.replies import ask
from harness.domain.text.formatting import counted
from harness.views.policy_views import PolicyChecked, PolicyExplained, PolicyTried

_SHOWN = 40
"""Changed calls that are printed; ``--json`` has more."""


def policy(ctx: Context, args: argparse.Namespace) -> int:
    match args.what:
        case "check":
            return _check(ctx, args)
        case "explain":
            return _explain(ctx, args)
        case _:
            return _try(ctx, args)


def _check(ctx: Context, args: argparse.Namespace) -> int:
    file = args.file or str(ctx.folders.policy_file)
    there = args.file is not None or ctx.folders.policy_file.exists()
    if not there and not args.json:
        say(f"there is no {safe(file)}: the built-in policy is in force")
        return exits.OK
    with ctx.connect() as client:
        asked = {"text": text_of(file) if there else "", "source": file, "repository": args.repository}
        found = ask(client, PolicyChecked, "policy_check", **asked).check
    if args.json:
        emit(msgspec.to_builtins(found))
    elif found.problem:
        say(safe(found.problem))
    else:
        say(f"{safe(file)}: {counted(found.rules, 'rule')}")
        for line in found.ignored:
            say(f"  {safe(line)}")
    return exits.NO if found.problem or found.ignored else exits.OK


def _explain(ctx: Context, args: argparse.Namespace) -> int:
    asked: dict[str, object] = {"approval_id": args.action}
    if args.action == "-":
        try:
            asked = {"action": json.loads(text_of("-"))}
        except (ValueError, RecursionError) as exc:
            raise Usage(f"standard input is not JSON: {exc}") from exc
    with ctx.connect() as client:
        told = ask(client, PolicyExplained, "policy_explain", **asked).explanation
    if args.json:
        emit(msgspec.to_builtins(told))
        return exits.OK
    say(safe(told.title, 300))
    say(f"{safe(told.verdict)} by {safe(told.rule)}, {safe(told.risk)} risk: {safe(told.reason, 500)}")
    for line in told.why:
        say(f"  {safe(line, 500)}")
    for grant in told.grants:
        say(f"  your rule {safe(grant)} covers it")
    return exits.OK


def _try(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        trial = ask(client, PolicyTried, "policy_try", text=text_of(args.file), source=args.file).trial
    if args.json:
        emit(msgspec.to_builtins(trial))
        return exits.OK
    say(f"of {trial.looked_at} calls on record {sum(trial.counts.values())} would be judged otherwise than now")
    for change, count in sorted(trial.counts.items()):
        say(f"  {count:6}  {safe(change)}")
    for one in trial.changed[:_SHOWN]:
        how = f"{safe(one.now)} → {safe(one.tried)} by {safe(one.rule, 60)}"
        say(f"{age(one.ts):>5}  {safe(one.session, 24)} {safe(one.call_id)}  {how}: {safe(one.title, 200)}")
    left = sum(trial.counts.values()) - len(trial.changed[:_SHOWN])
    if left > 0:
        say(f"and {left} more")
    if trial.unread:
        say(f"not read, see watchfloor verify: {', '.join(safe(name, 24) for name in trial.unread)}")
    return exits.OK
