"""The verbs about rules: ``grants``, ``grant``, ``revoke``. What a rule covers is an agent's text: all of it passes the
display function.
"""

from __future__ import annotations

import argparse
import time

import msgspec

from app.cli.base import exits
from app.cli.base.arguments import Usage
from app.cli.base.context import Context
from app.cli.base.output import age, emit, safe, say, table, warn
from app.cli.verbs.queue import seen
from app.client import requests
from app.client.replies import ask
from app.presenters import grant_lines
from harness.domain.text.formatting import counted, local, who
from harness.views.grant_views import Granted, GrantList, GrantPreview, GrantPreviewed
from harness.views.replies import Approval, Sessions

_SHOWN = 10
"""Past requests that a preview prints; ``--json`` has all of them."""


def grants(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        every = args.all or bool(args.id)
        found = ask(client, GrantList, "grants", ended=every).grants
        names = {row.sid: row.name for row in ask(client, Sessions, "sessions").rows}
    if args.id:
        found = [grant for grant in found if grant.grant == args.id]
        if not found:
            warn(f"watchfloor grants: there is no rule {args.id[:40]!r}; see them: watchfloor grants --all")
            return exits.NOT_FOUND
    if args.json:
        for grant in found:
            emit(msgspec.to_builtins(grant))
        return exits.OK
    if args.id:
        for label, text in grant_lines.facts(found[0], names, time.time()):
            say(f"{label:>9}  {safe(text, 1000)}")
        return exits.OK
    if not found:
        say("no rule stands: every request that leaves the sandbox asks")
        return exits.OK
    body = [
        (
            grant.grant,
            grant_lines.state(grant),
            grant.scope + (", critical" if grant.typed else ""),
            grant_lines.used(grant),
            grant_lines.last_use(grant, time.time()),
            safe(local(grant.expires)),
            f"{age(grant.ts)} ago, {safe(who(grant.by.client), 30)}",
            safe("; ".join(grant.words), 300),
        )
        for grant in found
    ]
    for line in table(
        ("RULE", "STATE", "SCOPE", "USED", "LAST USE", "UNTIL", "MADE", "COVERS"), body, width=max(ctx.width, 100)
    ):
        say(line)
    return exits.OK


def grant(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        view = ask(client, Approval, "approval", approval_id=args.id).approval
        try:
            wish = requests.grant(
                view,
                scope=args.scope,
                expires=args.expires,
                count=str(args.count),
                first=str(args.first),
                under=args.under,
                typed=args.typed,
            )
        except requests.Unusable as exc:
            raise Usage(f"--{exc.field}: {exc}") from exc
        if args.preview:
            return _preview(ask(client, GrantPreviewed, "grant_preview", **wish).preview, args)
        seen(view, args.hash, "allow")
        done = ask(client, Granted, "grant", **wish)
    made = done.grant
    if args.json:
        emit({"grant": msgspec.to_builtins(made), "decided": done.decided})
        return exits.OK
    calls = counted(made.count, "call")
    say(f"rule {made.grant} stands for this {made.scope}, {calls}, until {safe(local(made.expires))}")
    for line in made.words:
        say(f"  {safe(line, 300)}")
    say(f"open requests decided by it: {done.decided}; take it back: watchfloor revoke {made.grant}")
    return exits.OK


def _preview(shown: GrantPreview, args: argparse.Namespace) -> int:
    if args.json:
        emit(msgspec.to_builtins(shown))
        return exits.NO if shown.problem else exits.OK
    if shown.problem:
        say(f"no rule can be made: {safe(shown.problem)}")
        return exits.NO
    say("it would cover what is exactly so:")
    for line in shown.words:
        say(f"  {safe(line, 300)}")
    if shown.critical:
        say("this is critical: it needs the session's name, --typed NAME")
    say(f"of {shown.looked_at} past and open requests it would have covered {len(shown.past)}:")
    for one in shown.past[:_SHOWN]:
        say(f"  {age(one.ts):>5}  {safe(one.decision):10}  {safe(one.session, 24)}  {safe(one.title, 200)}")
    if len(shown.past) > _SHOWN:
        say(f"  and {len(shown.past) - _SHOWN} more")
    return exits.OK


def revoke(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        client.call("revoke", grant=args.id, why=args.why)
    if args.json:
        emit({"grant": args.id, "revoked": True})
    else:
        say(f"rule {safe(args.id)} is revoked; what it covered asks again")
    return exits.OK
