"""Verbs on sessions: launch, ls, show, say, cost, pause, resume, stop, rm, attach."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import msgspec

from app.cli.base import context, exits, phrase_questions
from app.cli.base.arguments import Usage, as_written
from app.cli.base.context import Context
from app.cli.base.output import age, emit, emit_all, safe, say, table
from app.cli.base.several import each
from app.client import requests
from app.client.replies import ask
from harness.domain import outcomes, problems
from harness.domain.cap import OF_SESSION, Cap
from harness.domain.settings import amounts
from harness.domain.text.formatting import cap_text, counted, spend, spend_cell, usd
from harness.events.body import Caps
from harness.protocol.config import config as configuration
from harness.views.cost_views import Costs, Paid, SessionPaid
from harness.views.launch_request import LaunchRequest
from harness.views.replies import ArchivedSessions, Launched, Removed, Said, Sessions, SessionShown, Wished
from harness.views.session_views import GROUPS, SessionRow

_NONE = "none"
"""Of a session without a criterion."""
REMOVE_S = 640.0
"""Longest wait for a removal: a worktree may be large."""


def launch(ctx: Context, args: argparse.Namespace) -> int:
    cfg = configuration.load(ctx.folders)
    goal = as_written(args.goal_file, "--goal-file: ") if args.goal_file else args.goal
    if not goal.strip():
        raise Usage("the goal is empty; say what the agent should achieve")
    request = requested(args, cfg, goal, commands(args.check))  # what is refused is refused before anything is asked
    checks = request.checks or _asked(args)
    request = msgspec.structs.replace(request, checks=checks)
    with ctx.connect() as client:
        if request.plan and _with_a_person(args):
            request = phrase_questions.asked(client, request)
        made = ask(client, Launched, "launch", **msgspec.to_builtins(request))
    if args.json:
        emit(msgspec.to_builtins(made))
    else:
        say(f"launched {safe(made.name)} ({made.sid}); watch it: watchfloor attach {made.sid}")
        for text in made.warnings:
            say(safe(text))
        if request.caps is not None and request.caps.usd_nano == 0:
            say("its cap of $0.00 spends nothing, so it asks you at once; --cap-usd none lifts it")
        if not (checks or _decided(args)):
            say("no criterion was given: it ends on the agent's word, and stays marked; give --check or --plan")
    return exits.OK


def requested(args: argparse.Namespace, cfg: configuration.Config, goal: str, checks: list[str]) -> LaunchRequest:
    """What a command line asks for. Raises Usage, ConfigError."""
    wish = LaunchRequest(
        repo=str(Path(args.repo).absolute()),
        goal=goal,
        checks=checks,
        name=args.name or "",
        model=args.model or "",
        caps=Caps(**caps_typed(args, cfg)),
        plan=args.plan,
        fresh=args.fresh,
        plan_from_goal=args.plan_from_goal,
        accept_plan=args.yes_plan,
        gates=args.gate,
        phrases=_phrases(args.phrase),
        accept_phrases=args.accept_phrases,
        protect=args.protect,
        may_change=[*args.may_change, *(["**"] if args.may_change_tests else [])],
        role=args.role,
        review=args.review,
        judge=args.judge,
        judge_model=args.judge_model,
        judge_cycles=args.judge_cycles,
        judge_at=args.judge_at,
        evidence_rounds=args.evidence_rounds,
        start=_start(args.branch),
    )
    return requests.launch(cfg, wish)


def _start(given: str | None) -> str:
    if given is not None and not given.strip():
        raise Usage("--branch takes the name of a branch, tag or commit")
    return given or ""


def _phrases(given: list[str]) -> dict[str, str]:
    """Phrases with their commands, each as ``TEXT=CMD``; an empty command takes a binding back. Raises Usage."""
    try:
        return requests.phrases(given)
    except ValueError as exc:
        raise Usage(f"--phrase {exc}") from exc


def _decided(args: argparse.Namespace) -> bool:
    """True when something other than checks decides when it is done, or nothing shall."""
    judged = args.judge or args.review or args.judge_model or args.judge_cycles or args.judge_at
    return bool(args.plan or args.plan_from_goal or judged or args.no_criterion)


def _asked(args: argparse.Namespace) -> list[str]:
    """The criterion of a launch that has none, asked for once where there is a person to ask."""
    if _decided(args) or not _with_a_person(args):
        return []
    say("Nothing says when this is done. A command that must exit with 0 decides it;")
    say(f"without one the agent's word alone does, and the session stays marked {_NONE}.")
    try:
        command = input("Command (empty: none): ").strip()
    except EOFError:
        return []
    return [command] if command else []


def _with_a_person(args: argparse.Namespace) -> bool:
    """Whether somebody can be asked something."""
    return not args.json and args.goal_file != "-" and sys.stdin.isatty() and sys.stdout.isatty()


def caps_typed(args: argparse.Namespace, cfg: configuration.Config) -> dict[str, int]:
    """The caps of a launch as they were typed, else as configured. Raises Usage."""
    typed = {cap: getattr(args, cap.option[2:].replace("-", "_")) for cap in OF_SESSION}
    given = {cap.field: _cap_value(cap, value) for cap, value in typed.items() if value is not None}
    return requests.caps_of(cfg, given)


def _cap_value(cap: Cap, typed: str | int) -> int | None:
    """A cap as it was typed; none of that kind for ``none``. Raises Usage."""
    try:
        if isinstance(typed, int):
            return amounts.counted(typed)
        return None if cap.in_usd and typed == "none" else requests.amount(cap, typed)
    except ValueError as exc:
        raise Usage(f"{cap.option}: {exc}") from exc


def commands(checks: list[str]) -> list[str]:
    """The checks as they were typed. Raises Usage."""
    if not all(command.strip() for command in checks):
        raise Usage("--check is empty; give a command that must exit with 0")
    return checks


_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
"""Names that no shell reads as anything else."""


def _names(ctx: Context, *, archived: bool) -> int:
    with ctx.reach() as client:
        rows = ask(client, ArchivedSessions, "archived").rows if archived else ask(client, Sessions, "sessions").rows
        for row in rows:
            say(safe(row.sid))
            if _PLAIN.fullmatch(row.name):
                say(row.name)
    return exits.OK


def ls(ctx: Context, args: argparse.Namespace) -> int:
    if args.names:
        return _names(ctx, archived=args.archived)
    if args.archived:
        from app.cli.verbs import archive

        return archive.ls(ctx, args)
    with ctx.look() as client:
        reply = ask(client, Sessions, "sessions")
    if args.json:
        emit_all(msgspec.to_builtins(reply.rows))
        return exits.OK
    rows = reply.rows
    if not rows:
        say("no sessions yet; start one: watchfloor launch --repo DIR --goal TEXT --check CMD")
        return exits.OK
    rows.sort(key=lambda r: (GROUPS.index(r.group) if r.group in GROUPS else len(GROUPS), r.created))
    body = [
        (
            r.sid,
            safe(r.name, 24),
            r.state,
            age(r.since),
            f"{spend_cell(r.spent_nano, r.unknown_nano)}/{cap_text(r.cap_nano)}",
            _counted(r),
            safe(r.detail, 200),
        )
        for r in rows
    ]
    for line in table(("ID", "NAME", "STATE", "FOR", "SPENT/CAP", "CHECKS", "DETAIL"), body, width=ctx.width):
        say(line)
    for line in context.endpoints(reply.fleet):
        say(line)
    return exits.OK


def _counted(row: SessionRow) -> str:
    if row.checks_total:
        still = f" {row.still_passing} still" if row.still_passing else ""
        return f"{row.checks_passed}/{row.checks_total}{still}"
    return _NONE if row.no_criterion else "-"


def _checks(row: SessionRow) -> str:
    if row.no_criterion:
        return "no criterion: its agent's word alone says when it is done"
    if not row.checks_total:
        return "none yet"
    shown = [outcomes.NOW_PASSES] * row.now_passing + [outcomes.STILL_PASSES] * row.still_passing
    told = outcomes.told(shown)
    masked = f"; {row.masked} of them hide their exit code and decide nothing" if row.masked else ""
    return f"{row.checks_passed} of {row.checks_total} pass" + (f": {told}" if told else "") + masked


def show(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.look() as client:
        shown = ask(client, SessionShown, "session", sid=args.id)
    if args.json:
        emit(msgspec.to_builtins(shown))
        return exits.OK
    row = shown.row
    facts = [
        ("name", safe(row.name)),
        ("state", f"{row.state} for {age(row.since)}: {safe(row.detail)}"),
        ("because", f"{safe(row.evidence)} ({safe(row.source)})"),
        *([("proof", f"{outcomes.PROOFS[row.proof]}: {outcomes.MEANS[row.proof]}")] if row.proof else []),
        *([("next", safe(row.next))] if row.next else []),
        *([("you can", safe(": ".join(filter(None, (row.do, row.command)))))] if row.do else []),
        ("goal", safe(row.goal, 600)),
        ("repository", safe(row.repo)),
        ("branch", safe(row.branch)),
        ("worktree", safe(row.worktree)),
        *([("runs in", safe(row.folder))] if row.folder else []),
        ("model", safe(row.model) + (f" ({safe(row.price)})" if row.price else "")),
        (
            "spent",
            (
                f"{spend(row.spent_nano, row.unknown_nano, usd)} of {cap_text(row.cap_nano)},"
                f" {counted(row.tokens, 'token')} in {counted(row.requests, 'request')},"
                f" {counted(row.tool_calls, 'tool call')}"
            ),
        ),
        ("checks", _checks(row)),
        *([("plan", f"{row.plan_passed} of {row.plan_total} entries pass")] if row.plan_total else []),
        *([("context", safe(row.context))] if row.context else []),
        *(("", f"{safe(name)}: {tokens:,} tokens") for name, tokens in row.layers.items() if tokens),
        ("log", safe(shown.folder)),
    ]
    for label, text in facts:
        say(f"{label:>10}  {text}")
    for approval in shown.approvals:
        say(
            f"{'waits':>10}  {approval.approval_id}  {safe(problems.request(approval.kind))}:"
            f" {safe(approval.title, 300)}"
        )
    return exits.OK


def message(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        note = ask(client, Said, "say", **requests.say(args.id, args.text)).note
    return _done(args, note or "the agent reads it at its next turn")


_DAYS = 14


def _removed(gone: Paid) -> list[SessionPaid]:
    """One line for what removed sessions had spent: without it the sessions would not add up to the fleet."""
    if not (gone.spent_nano or gone.reserved_nano):
        return []
    return [SessionPaid(sid="-", name="(removed)", **msgspec.structs.asdict(gone))]


def cost(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.look() as client:
        costs = ask(client, Costs, "costs")
    if args.json:
        emit(msgspec.to_builtins(costs))
        return exits.OK
    body = [
        (
            s.sid,
            safe(s.name, 24),
            safe(s.model, 24),
            usd(s.spent_nano - s.unknown_nano),
            usd(s.reserved_nano),
            usd(s.unknown_nano),
            f"{s.tokens - s.unknown_tokens:,}",
            "-" if s.cache_hit is None else f"{s.cache_hit:.1%}",
            safe(s.price_source),
        )
        for s in (*costs.sessions, *_removed(costs.removed))
    ]
    head = ("ID", "NAME", "MODEL", "SPENT", "RESERVED", "UNKNOWN", "TOKENS", "CACHE", "PRICE")
    for line in table(head, body, width=ctx.width):
        say(line)
    for d in costs.days[-_DAYS:]:
        held = f", {usd(d.reserved_nano)} reserved" if d.reserved_nano else ""
        sent = f"{counted(d.tokens - d.unknown_tokens, 'token')} in {counted(d.requests, 'request')}"
        say(f"{safe(d.day)}  {spend(d.nano, d.unknown_nano, usd)}  {sent}{held}")
    say(context.money(costs.fleet))
    return exits.OK


_STATES = {"pause": "paused", "resume": "running", "stop": "stopped"}


_BECOMES = {
    "pause": "it pauses at its next turn",
    "resume": "it goes on",
    "stop": "it stops; its work stays",
}


def desire(ctx: Context, args: argparse.Namespace) -> int:
    """Say what is wanted of each session. All are looked up before the first is told, so a wrong name changes
    nothing.
    """
    with ctx.connect() as client:
        found = [ask(client, SessionShown, "session", sid=one).row for one in dict.fromkeys(args.ids)]

        def told(row: SessionRow) -> None:
            request = requests.desire(ctx.folders, row.sid, _STATES[args.verb], args.reason)
            note = ask(client, Wished, "desire", **request).note
            _done(args, f"{safe(note)} (watchfloor approvals)" if note else f"{safe(row.name)}: {_BECOMES[args.verb]}")

        return each(((row.name, row) for row in found), told)


def remove(ctx: Context, args: argparse.Namespace) -> int:
    """Archive each session. A wrong name changes nothing."""
    with ctx.connect() as client:
        client.wait_up_to(REMOVE_S)
        rows = [ask(client, SessionShown, "session", sid=one).row for one in dict.fromkeys(args.ids)]

        def remove_one(row: SessionRow) -> None:
            gone = ask(client, Removed, "remove", sid=row.sid, force_keep=args.keep_as_ref, force=args.force)
            _removed_one(args, row, gone, named=len(rows) > 1)

        return each(((row.name, row) for row in rows), remove_one)


def _removed_one(args: argparse.Namespace, row: SessionRow, gone: Removed, *, named: bool) -> None:
    if args.json:
        emit({"sid": row.sid, **msgspec.to_builtins(gone)})
        return
    whose = f"{safe(row.name)}: " if named else ""
    say(f"{whose}removed" + (f"; kept {', '.join(safe(k) for k in gone.kept)}" if gone.kept else ""))
    if gone.archived:
        say("  its log and costs stay: watchfloor ls --archived")
    for text in gone.lost:
        say(f"  not saved: {safe(text)}")
    if gone.checkpoints:
        say(f"  gone with it: {counted(gone.checkpoints, 'checkpoint')}")


def _done(args: argparse.Namespace, text: str) -> int:
    if args.json:
        emit({"ok": True})
    else:
        say(text)
    return exits.OK
