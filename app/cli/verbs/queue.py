"""Verbs on the queue: approvals, approve, reject, deny, answer, defer."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Unpack

import msgspec

from app.cli.base import exits
from app.cli.base.arguments import Refused, Usage
from app.cli.base.context import Context
from app.cli.base.output import age, emit, emit_all, safe, say, table
from app.cli.base.several import each
from app.client import requests
from app.client.replies import Asked, ask
from app.client.requests import WithDecision
from app.presenters import queue_outcome
from harness.domain import problems
from harness.domain.calls.approval_kind import SPOKEN, Request
from harness.domain.calls.cap_request import CapRequest
from harness.domain.decision import PERMITS, Decision
from harness.protocol.client import Client, SupervisorError, Unreachable
from harness.tools import person_tool
from harness.views import attention
from harness.views.replies import Approval, ApprovalList, Changes, Decided, Outcome, Sessions, SessionShown
from harness.views.session_views import ApprovalView
from widgets.queue.queue_groups import QueueItem, items

_HASH = 12
"""Hexadecimal digits of an action hash that name it well enough: the request's id names the action, the hash shows that
its card was read.
"""
_CAREFUL = ("high", "critical")
_REFUSALS: dict[str, str] = {Decision.DENY: "refuse it:", Decision.STOP: "stop it:"}
"""What denying is, by the options of a request, the mildest first."""


def approvals(ctx: Context, args: argparse.Namespace) -> int:
    if args.id is not None:
        return _card(ctx, args)
    if args.names:
        with ctx.reach() as client:
            for view in ask(client, ApprovalList, "approvals").approvals:
                say(view.approval_id)
        return exits.OK
    with ctx.look() as client:
        waiting = ask(client, ApprovalList, "approvals").approvals
        hanging = attention.items(ask(client, Sessions, "sessions").rows, ())
    if args.json:
        emit_all(msgspec.to_builtins([*waiting, *hanging]))
        return exits.OK
    if not waiting and not hanging:
        say("nothing waits for you")
        return exits.OK
    if waiting:
        _table(ctx, waiting)
    for item in hanging:
        said = f"{safe(item.session_name, 24)} {problems.request(item.kind)}: {safe(item.title, 300)}"
        later = f"; put off until {safe(item.deferred)}" if item.deferred else ""
        say(f"{said}; {_help(item)}{later}")
    return exits.OK


def _table(ctx: Context, waiting: list[ApprovalView]) -> None:
    """Those that are alike stand below the first of them."""
    everything = {a.alike for a in waiting if a.alike}
    body = [
        (
            item.view.approval_id,
            safe(item.view.session_name, 24),
            safe(problems.request(item.view.kind)),
            item.view.risk,
            age(item.view.ts),
            "|".join(item.view.options),
            _alike(item) + safe(item.view.title, 300),
        )
        for item in items(waiting, everything, "")
    ]
    for line in table(("ID", "SESSION", "KIND", "RISK", "AGE", "OPTIONS", "WHAT"), body, width=max(ctx.width, 120)):
        say(line)


def _alike(item: QueueItem) -> str:
    if item.inside:
        return "└ "
    return f"{item.size} alike: " if item.size > 1 else ""


def _whole(client: Asked, view: ApprovalView) -> ApprovalView:
    """The request with the whole comparison in place of what a card shows of it."""
    parts: list[str] = []
    before = ""
    offset = 0
    while True:
        piece = ask(client, Changes, "changes", approval_id=view.approval_id, offset=offset)
        if before not in ("", piece.sha256):
            raise Refused("the file changed while it was read; run this again")
        before = piece.sha256
        parts.append(piece.text)
        offset += len(piece.text)
        if not piece.text or offset >= piece.characters:
            break
    return msgspec.structs.replace(view, diff="".join(parts))


def _card(ctx: Context, args: argparse.Namespace) -> int:
    """The whole card of one request as text, and what approving it takes."""
    from widgets.card.card_text import card, shown_hash, wrap

    with ctx.look() as client:
        view = _item(client, args.id)
        told: dict[str, object] = msgspec.to_builtins(view)
        if args.whole and view.diff:
            view = _whole(client, view)
    lines, _ = card(view).lines(unfolded=args.facts or args.json)
    if args.json:
        emit(
            {
                "action_hash": "",
                **told,
                "card": [line.text for line in lines],
                "shown_hash": shown_hash(view),
            }
        )
        return exits.OK
    for line in lines:
        # On a terminal a long line is wrapped here, with a mark, so that its rest cannot pass for a line of its own.
        for mark, part in wrap(line, ctx.width) if sys.stdout.isatty() else [("", line.text)]:
            say(mark + part)
    say()
    for choice in _choices(view):
        say(choice)
    return exits.OK


def _choices(view: ApprovalView) -> list[str]:
    """What can be typed about a request, and last the hash of its action; nothing about a session that hangs, whose
    card says what to do.
    """
    if attention.session_of(view.approval_id):
        return []
    hashed = f" --hash {safe(view.action_hash[:_HASH])}" if view.action_hash else ""
    approve = f"watchfloor approve {safe(view.approval_id)}{hashed}"
    if view.kind == Request.CAP:
        lines = [f"raise it:    {approve} --raise-to X", f"finish up:   {approve} --finish"]
    elif view.kind in SPOKEN:
        lines = [f"answer it:   watchfloor answer {safe(view.approval_id)} TEXT"]
        if offered := person_tool.choices(view.detail):
            span = "1" if len(offered) == 1 else f"1 to {len(offered)}"
            lines.append(f"choose one:  watchfloor answer {safe(view.approval_id)} N   (N is {span})")
        lines += [f"finished:    {approve} --choose done"] if "done" in view.options else []
        lines += [f"try again:   {approve}"] if "retry" in view.options else []
    elif Decision.ALLOW in view.options:
        lines = [f"approve it:  {approve}"]
    elif "retry" in view.options:
        lines = [f"try again:   {approve}"]
        lines += [f"begin anew:  {approve} --choose fresh"] if Decision.FRESH in view.options else []
        lines += [f"believe it:  {approve} --choose believe"] if Decision.BELIEVE in view.options else []
    else:
        lines = [f"settle it:   {approve} --choose {safe('|'.join(view.options))}"]
    if found := next((option for option in _REFUSALS if option in view.options), ""):
        lines.append(f"{_REFUSALS[found]:<13}watchfloor deny {safe(view.approval_id)} REASON")
    return [*lines, f"hash         {safe(view.action_hash)}"] if view.action_hash else lines


def _item(client: Asked, item_id: str) -> ApprovalView:
    """A request, or a session that hangs, by its id in the queue."""
    sid = attention.session_of(item_id)
    if not sid:
        return ask(client, Approval, "approval", approval_id=item_id).approval
    found = attention.held(ask(client, SessionShown, "session", sid=sid).row)
    if found is None:
        raise Refused(f"{safe(sid)} does not hang any more; see how it is: watchfloor ls")
    return found


def _find(client: Client, approval_id: str) -> ApprovalView:
    """A request by its id. Raises Refused for a session that hangs, which takes no decision."""
    view = _item(client, approval_id)
    if attention.session_of(approval_id):
        raise Refused(f"{safe(view.session_name)} asks nothing, so nothing is decided; {_help(view)}")
    return view


def _help(item: ApprovalView) -> str:
    """What to do about a session that hangs, with the command where there is one."""
    command = f" ({safe(str(item.detail[attention.COMMAND]))})" if attention.COMMAND in item.detail else ""
    return f"{safe(str(item.detail[attention.DO]))}{command}"


def _decide(
    ctx: Context,
    client: Client,
    view: ApprovalView,
    decision: str,
    args: argparse.Namespace,
    **more: Unpack[WithDecision],
) -> int:
    decided = ask(client, Decided, "decide", **requests.decide(ctx.folders, view, decision, **more))
    became = _became(client, view) if decision in PERMITS and view.call_id else None
    if args.json:
        emit(
            {
                "decision_id": decided.decision_id,
                "decision": decision,
                "title": view.title,
                "risk": view.risk,
                "action_hash": view.action_hash,
                **({} if became is None else msgspec.to_builtins(became)),
            }
        )
    else:
        named = f" (action {safe(view.action_hash[:_HASH])})" if view.action_hash else ""
        as_given = ", as you edited it" if decision == "allow_edited" else ""
        ends = f"; {safe(queue_outcome.words(became))}" if became is not None else ""
        say(f"{safe(decision)} for {safe(view.session_name)}: {safe(view.title, 300)}{named}{as_given}{ends}")
    if became is not None and became.became == queue_outcome.STALE:
        raise SupervisorError("stale", *queue_outcome.stale(became))
    return exits.OK


def _became(client: Client, view: ApprovalView) -> Outcome | None:
    """What became of it; None when nobody can say any more, which takes nothing from the decision."""
    try:
        return ask(client, Outcome, "outcome", sid=view.sid, approval_id=view.approval_id, call_id=view.call_id)
    except (SupervisorError, Unreachable):
        return None


def seen(view: ApprovalView, given: str | None, decision: str) -> None:
    """Raise Refused unless the hash that was given, which high and critical risk need, is the hash of this request's
    action.
    """
    if decision in _REFUSALS:
        return
    if not view.action_hash:
        if given is not None:
            raise Usage("--hash: this request runs nothing, so there is no hash of it; leave --hash out")
        return
    look = f"read the card first: watchfloor approvals {view.approval_id}"
    if given is None:
        if view.risk in _CAREFUL:
            raise Refused(
                f"this is of {view.risk} risk and is not approved unseen; {look}, then give --hash as it is printed at"
                " the end"
            )
        return
    digits = given.strip().lower()
    if len(digits) < _HASH or any(c not in "0123456789abcdef" for c in digits):
        raise Usage(
            f"--hash must be at least {_HASH} hexadecimal digits, as printed by: watchfloor approvals"
            f" {view.approval_id}"
        )
    if not view.action_hash.startswith(digits):
        raise Refused(
            "stale: that is not the hash of what would run now; nothing was approved. Look again: watchfloor approvals"
            f" {view.approval_id}"
        )


def _cap_value(view: ApprovalView, text: str) -> int:
    said = CapRequest.of(view.detail)
    try:
        return int(text) if said is None else requests.amount(said.cap, text)
    except ValueError as exc:
        raise Usage(f"--raise-to: {exc}") from exc


def approve(ctx: Context, args: argparse.Namespace) -> int:
    edited: dict[str, object] | None = None
    if args.edit is not None:
        try:
            edited = json.loads(args.edit)
        except (ValueError, RecursionError) as exc:
            raise Usage(f"--edit is not JSON: {exc}") from exc
        if not isinstance(edited, dict):
            raise Usage("--edit must be a JSON object: the tool's whole input")
    ids = list(dict.fromkeys(args.ids))
    with ctx.connect() as client:
        views = [_find(client, one) for one in ids]
        if len(views) > 1:
            _together(args, views)
        chosen = [(view, *_chosen(args, view, edited)) for view in views]
        for view, decision, _ in chosen:
            seen(view, args.hash, decision)
        return each(
            ((view.approval_id, (view, decision, more)) for view, decision, more in chosen),
            lambda one: _decide(ctx, client, one[0], one[1], args, **one[2]),
        )


def _together(args: argparse.Namespace, views: list[ApprovalView]) -> None:
    """Raise Usage or Refused unless each of these can be approved plainly beside the others, by its own action."""
    alone = {
        "--hash": args.hash,
        "--edit": args.edit,
        "--raise-to": args.raise_to,
        "--finish": args.finish or None,
        "--choose": args.choose,
    }
    if given := [name for name, value in alone.items() if value is not None]:
        raise Usage(f"{given[0]} is about one request; give it with one ID")
    for view in views:
        if view.risk in _CAREFUL:
            raise Refused(
                f"{view.approval_id} is of {view.risk} risk and is approved alone; nothing was approved. Read it:"
                f" watchfloor approvals {view.approval_id}"
            )


def _chosen(args: argparse.Namespace, view: ApprovalView, edited: dict[str, object] | None) -> tuple[str, WithDecision]:
    """The decision that the arguments name, and what goes with it. Raises Usage."""
    if edited is not None:
        return Decision.ALLOW_EDITED, {"edited": edited}
    if args.raise_to is not None:
        return "raise", {"value": _cap_value(view, args.raise_to)}
    if args.finish:
        return "finish", {}
    if args.choose is not None:
        return str(args.choose), {}
    if view.kind == Request.CAP:
        raise Usage("a cap is not approved: choose --raise-to X, --finish, or reject it to stop the session")
    positive = next((o for o in (Decision.ALLOW, Decision.RETRY) if o in view.options), None)
    if positive is None:
        raise Usage(f"this request has no plain approval; choose one with --choose: {', '.join(view.options)}")
    return positive, {}


def reject(ctx: Context, args: argparse.Namespace) -> int:
    return _refuse(ctx, args, args.ids, args.reason)


def deny(ctx: Context, args: argparse.Namespace) -> int:
    return _refuse(ctx, args, args.ids, args.reason)


def _refuse(ctx: Context, args: argparse.Namespace, ids: list[str], reason: str) -> int:
    """Refuse each of them; all are looked at before the first is decided, so a wrong one changes nothing.

    Raises Usage.
    """
    if not reason.strip():
        raise Usage("the reason is empty; the agent reads it, so say why")
    with ctx.connect() as client:
        decided = [(view, _negative(view)) for view in (_meant_by(client, ids, one) for one in dict.fromkeys(ids))]
        return each(
            ((view.approval_id, (view, negative)) for view, negative in decided),
            lambda one: _decide(ctx, client, *one, args, message=reason),
        )


def _meant_by(client: Client, ids: list[str], one: str) -> ApprovalView:
    """The request of this name; of what is most likely a word of an unquoted reason that is said."""
    try:
        return _find(client, one)
    except SupervisorError as exc:
        if one == ids[0]:
            raise
        hint = f"a reason of several words stands in quotes: watchfloor deny {safe(ids[0])} REASON"
        raise SupervisorError(exc.code, exc.message, hint) from exc


def _negative(view: ApprovalView) -> str:
    negative = next((o for o in (Decision.DENY, Decision.STOP, Decision.FAILED) if o in view.options), None)
    if negative is None:
        raise Usage(
            f"{view.approval_id} cannot be refused; choose one of: {', '.join(view.options)} with approve --choose"
        )
    return negative


def answer(ctx: Context, args: argparse.Namespace) -> int:
    if args.text is None and args.option is None:
        raise Usage("an answer needs a TEXT, or --option N to choose one of the answers that the request offers")
    with ctx.connect() as client:
        view = _find(client, args.id)
        if args.option is not None and (problem := person_tool.unchosen(view.detail, args.option)):
            raise Usage(f"--option: {problem}; see them: watchfloor approvals {view.approval_id}")
        text, option = (args.text, args.option) if args.option is not None else _meant(view, args.text)
        code = _decide(ctx, client, view, "answer", args, message=text, value=option)
        if option is not None and not args.json:
            say(f"chosen: {option}, {safe(person_tool.choices(view.detail)[option - 1], 300)}")
        return code


def _meant(view: ApprovalView, text: str) -> tuple[str | None, int | None]:
    """(words, the number of an option) of what was typed; the same reading as on the screen."""
    if not text.strip():
        return text, None
    try:
        meant = person_tool.read(text, len(person_tool.choices(view.detail)))
    except ValueError as exc:
        raise Usage(f"{exc}; see them: watchfloor approvals {view.approval_id}") from exc
    return (text, None) if meant.number is None else (None, meant.number)


def defer(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        found = [_find(client, one) for one in dict.fromkeys(args.ids)]

        def deferred(view: ApprovalView) -> None:
            client.call("defer", approval_id=view.approval_id)
            if args.json:
                emit({"ok": True})
            else:
                say(f"deferred: {safe(view.title, 300)} stays open at the end of the queue")

        return each(((view.approval_id, view) for view in found), deferred)
