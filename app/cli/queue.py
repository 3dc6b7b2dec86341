"""Verbs on the queue: approvals, approve, reject, answer, defer."""

from __future__ import annotations

import argparse
import json
from typing import Any

from app.cli import context, exits
from app.cli.context import Context
from app.cli.output import age, emit, safe, say, table
from app.cli.sessions import Usage
from harness.events.views import ApprovalView
from harness.protocol import config as configuration
from harness.protocol.client import Client


def approvals(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        reply = client.call("approvals")
    if args.json:
        for item in reply["approvals"]:
            emit(item)
        return exits.OK
    waiting = context.approvals(reply)
    if not waiting:
        say("nothing waits for you")
        return exits.OK
    body = [(a.approval_id, safe(a.session_name, 24), a.kind, a.risk, age(a.ts), "|".join(a.options), safe(a.title, 300)) for a in waiting]
    for line in table(("ID", "SESSION", "KIND", "RISK", "AGE", "OPTIONS", "WHAT"), body, width=max(ctx.width, 120)):
        say(line)
    return exits.OK


def _find(client: Client, approval_id: str) -> ApprovalView:
    return context.convert(client.call("approval", approval_id=approval_id)["approval"], ApprovalView)


def _decide(client: Client, view: ApprovalView, decision: str, args: argparse.Namespace, **more: Any) -> int:
    reply = client.call("decide", approval_id=view.approval_id, decision=decision, action_hash=view.action_hash, **more)
    if args.json:
        emit({"decision_id": reply["decision_id"], "decision": decision})
    else:
        say(f"{safe(decision)}: {safe(view.title, 300)}")
    return exits.OK


def _cap_value(view: ApprovalView, text: str) -> int:
    cap = str(view.detail.get("cap", ""))
    try:
        if cap.endswith(".usd"):
            return configuration.usd_to_nano(text)
        return configuration.seconds(text) if cap.endswith(".wall") and not text.isdigit() else int(text)
    except ValueError as exc:
        raise Usage(f"--raise-to: {exc}") from exc


def approve(ctx: Context, args: argparse.Namespace) -> int:
    edited: dict[str, Any] | None = None
    if args.edit is not None:
        try:
            edited = json.loads(args.edit)
        except ValueError as exc:
            raise Usage(f"--edit is not JSON: {exc}") from exc
        if not isinstance(edited, dict):
            raise Usage("--edit must be a JSON object: the tool's whole input")
    with ctx.connect() as client:
        view = _find(client, args.id)
        if edited is not None:
            return _decide(client, view, "allow_edited", args, edited=edited)
        if args.raise_to is not None:
            return _decide(client, view, "raise", args, value=_cap_value(view, args.raise_to))
        if args.finish:
            return _decide(client, view, "finish", args)
        if args.choose is not None:
            return _decide(client, view, args.choose, args)
        if view.kind == "cap":
            raise Usage("a cap is not approved: choose --raise-to X, --finish, or reject it to stop the session")
        positive = next((o for o in ("allow", "retry") if o in view.options), None)
        if positive is None:
            raise Usage(f"this request has no plain approval; choose one with --choose: {', '.join(view.options)}")
        return _decide(client, view, positive, args, **_key(ctx, view))


def _key(ctx: Context, view: ApprovalView) -> dict[str, Any]:
    """Retrying after an authentication failure hands over the key as it is now."""
    if view.kind != "auth":
        return {}
    found = configuration.credential(configuration.load(ctx.folders))
    return {"credential": {"base_url": found.base_url, "key": found.key}} if found else {}


def reject(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        view = _find(client, args.id)
        negative = next((o for o in ("deny", "stop", "failed") if o in view.options), None)
        if negative is None:
            raise Usage(f"this request cannot be refused; choose one of: {', '.join(view.options)} with approve --choose")
        return _decide(client, view, negative, args, message=args.reason)


def answer(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        return _decide(client, _find(client, args.id), "answer", args, message=args.text)


def defer(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        client.call("defer", approval_id=args.id)
    if args.json:
        emit({"ok": True})
    else:
        say("deferred: it stays open at the end of the queue")
    return exits.OK
