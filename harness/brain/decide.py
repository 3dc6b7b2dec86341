"""The decision: what a brain does next, from the view alone. Pure; the shell in `main.py` carries it out and asks
again.

Every step is safe to decide twice: a brain that dies between a decision and its record is woken on the same log and
decides the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from harness.brain import prompt
from harness.brain.retry import AT_THE_GATE, too_long
from harness.brain.view import IDLE_POINTS, CallFact, ModelTurn, View
from harness.events import asking, said
from harness.events import types as t
from harness.events.endpoints import ITEM_KINDS
from harness.events.request import Request

SAME_CALLS = 5
"""Breaker: the same call so often in a row."""
TOOL_ERRORS = 10
"""Breaker: so many tool errors in a row."""
IDLE_TURNS = 20
"""Breaker: so many turns in which no file, commit or check changed, three times as many with commands."""
_MAX_PAUSES = 8
_MAX_CUT_CALLS = 3
_MAX_OVERFLOWS = 3
_MOST_ROOM = 2
_CHECK_OUTPUT = 4000
_SUMMARY = 4000
_NOT_RUN = ("denied", "refused", "cancelled")
HUMAN_KINDS: dict[str, str] = {Request.CAP: "cap"}
"""Why a session parks, by the kind of request that it waits for; ``approval`` for every other kind."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Send the conversation, once the gate lets it through. ``finish``: the last reply, without tools."""

    attempt: int = 1
    request_id: str = ""
    finish: bool = False
    room: int = 0
    """How often the output limit is doubled for this attempt."""


@dataclass(frozen=True, slots=True)
class Propose:
    """Calls of the newest reply that are not in the log yet, with their ids."""

    calls: tuple[tuple[str, said.Call], ...]


@dataclass(frozen=True, slots=True)
class Check:
    """Done criteria to run as calls like any other."""

    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Say:
    """A message of the harness to the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Abandon:
    """An attempt of an earlier brain that nobody will hear the end of."""

    request: t.ModelRequest


@dataclass(frozen=True, slots=True)
class Wait:
    """Something runs, or the supervisor has to act: the next record decides."""

    why: str


@dataclass(frozen=True, slots=True)
class Park:
    """Leave no process behind; ``why`` as in `SessionParked` (and ``breaker``, with the breaker that opened)."""

    why: str
    detail: str = ""
    breaker: t.BreakerOpened | None = None


@dataclass(frozen=True, slots=True)
class End:
    """The session is over."""

    outcome: str
    reason: str
    verified: bool = False
    summary: str = ""


@dataclass(frozen=True, slots=True)
class Leave:
    """Exit without a record: somebody else has said all there is to say."""

    why: str


Step: TypeAlias = Ask | Propose | Check | Say | Abandon | Wait | Park | End | Leave


def next_step(v: View) -> Step:
    """What follows from the log. Never `Ask` while the user wants anything but ``running`` or while a call is open."""
    s = v.state
    if s.ended is not None:
        return Leave("the session has ended")
    if s.desired == "stopped":
        return Leave("stopped by the user")
    if s.request is not None:
        return Abandon(s.request)
    if s.desired != "running":
        return Park("paused", s.desired_reason or "paused by you")
    if s.intent is None or s.created is None:
        return Wait("the worktree is being made")
    last = v.last_model
    if last is not None and last.stop == said.CALLS and not v.finished and last.seq > v.continued_seq:
        missing = tuple((last.call_id(i), use) for i, use in enumerate(last.calls) if last.call_id(i) not in v.calls)
        if missing:
            return Propose(missing)
    if v.open_calls():
        return _outstanding(v)
    if (
        waiting := next((a for a in s.approvals.values() if not a.call_id and a.kind not in ITEM_KINDS), None)
    ) is not None:
        return Park(HUMAN_KINDS.get(waiting.kind, "approval"), waiting.title)
    if last is not None and v.finished:
        return _done(v, last)
    return _trouble(v) or _turn(v, last)


def _outstanding(v: View) -> Step:
    asked = {a.call_id for a in v.state.approvals.values() if a.call_id}
    calls = v.state.calls.open.values()
    if all(c.call_id in asked and c.stage in ("asked", "in_doubt") for c in calls):
        return Park("approval", f"{len(calls)} call{'s' if len(calls) > 1 else ''} waiting for your decision")
    cap = next((a for a in v.state.approvals.values() if a.kind == Request.CAP), None)
    if cap is not None and all(c.stage in ("proposed", "asked", "in_doubt") for c in calls):
        return Park("cap", cap.title)  # nothing is judged while a cap is reached, so nothing runs either
    return Wait("calls are running or being judged")


def _ask(v: View) -> Ask:
    last = v.last_model
    failures = v.failures
    return Ask(
        attempt=len(failures) + 1,
        request_id=failures[0].body.request_id if failures else "",
        finish=v.finish_seq >= 0,
        room=min(_MOST_ROOM, v.cut_calls + (last is not None and last.stop == said.LENGTH)),
    )


def _trouble(v: View) -> Step | None:
    """What the failures since the last reply (or park) ask for."""
    if not v.failures:
        return None
    newest = v.failures[-1]
    last = newest.body
    if last.kind in AT_THE_GATE:
        return _ask(v)
    if too_long(last.kind, last.message):
        return (
            _ask(v)
            if v.overflows < _MAX_OVERFLOWS
            else Park("error", f"the conversation does not fit the model's window: {last.message}")
        )
    if last.kind in ("max_tokens", "too_large"):
        if v.cut_calls >= _MAX_CUT_CALLS:
            return Park("error", f"{v.cut_calls} replies in a row could not be used; the last: {last.message}")
        cut = prompt.CUT_CALL if last.kind == "max_tokens" else prompt.TOO_LARGE
        return Say(cut) if v.newest_user_seq < newest.seq else _ask(v)
    return Park("error", f"{last.kind}: {last.message}")


def _turn(v: View, last: ModelTurn | None) -> Step:
    """What the newest reply asks for, all its calls answered."""
    if last is None or v.newest_user_seq > last.seq or v.finish_seq >= 0:
        return _ask(v)
    match last.stop:
        case said.CALLS:
            return _breaker(v) or _ask(v)
        case said.DONE:
            return _done(v, last)
        case said.PAUSED | said.LENGTH if v.pauses >= _MAX_PAUSES:
            return Park("error", f"{v.pauses} replies in a row stopped early ({last.stop})")
        case said.LENGTH:
            return Say(prompt.CUT_TEXT)
        case said.PAUSED:
            return _ask(v)
        case said.WINDOW if v.overflows < _MAX_OVERFLOWS:
            return _ask(v)
        case _ if v.parked_seq > last.seq:
            return _ask(v)
        case said.WINDOW:
            return Park("error", "the conversation does not fit the model's window even without old tool results")
        case said.REFUSED:
            return Park("refusal", _text(last)[:_SUMMARY] or "it gave no reason")
        case other:
            return Park("error", f"the reply stopped for a reason nobody here knows: {other}")


def _breaker(v: View) -> Park | None:
    for opens, count, kind, detail in (
        (v.same_calls >= SAME_CALLS, v.same_calls, "same_call", "the agent made the same call again and again"),
        (v.errors_in_row >= TOOL_ERRORS, v.errors_in_row, "tool_errors", "one tool call after the other failed"),
        (
            v.idle_points >= IDLE_TURNS * IDLE_POINTS,
            v.idle_turns,
            "no_progress",
            "many turns went by and no file, commit or check changed",
        ),
    ):
        if opens:
            return Park(
                "breaker",
                f"{detail} ({count} in a row)",
                breaker=t.BreakerOpened(kind=kind, count=count, detail=detail),
            )
    return None


def _text(turn: ModelTurn) -> str:
    return said.text_of(turn.parts)


def _done(v: View, last: ModelTurn) -> Step:
    """The agent says it is finished (or had its last reply): the commands decide.

    What they cannot decide and it asks waits for the answer.
    """
    summary = _text(last)[:_SUMMARY]
    why = "finished up at its cap; " if v.finished else ""
    commands = tuple(v.state.checks)
    question = "" if v.finished else asking.asked(_text(last))
    if not commands:
        return (
            Park("question", asking.words(_text(last)))
            if question
            else End("done", f"{why}no check was given", False, summary)
        )
    results = _check_results(v, last)
    for command, (fact, ended) in results.items():
        if ended.status in _NOT_RUN and fact.result_seq > v.lease_seq:
            return Park("error", f"the check {command!r} could not run ({ended.status}): {ended.preview[:500]}")
    ran = {c: e for c, (_, e) in results.items() if e.status not in _NOT_RUN}
    if missing := tuple(c for c in commands if c not in ran):
        return Check(missing)
    failing = [c for c in commands if not _passed(ran[c])]
    if not failing:
        asks = f"; its reply ends in a question: {question}" if question else ""
        return End("done", f"{why}{len(commands)} of {len(commands)} checks passed{asks}", True, summary)
    names = ", ".join(f"{c} ({_outcome(ran[c])})" for c in failing)[:500]
    if v.finished:
        return End("failed", f"{why}{len(failing)} of {len(commands)} checks fail: {names}", False, summary)
    if question:
        return Park("question", asking.words(_text(last)))
    if v.rounds >= v.state.max_rounds:
        return End(
            "failed",
            f"{len(failing)} of {len(commands)} checks still fail after {v.rounds} rounds: {names}",
            False,
            summary,
        )
    return Say(_report(failing, len(commands), ran, v.state.max_rounds - v.rounds))


def _check_results(v: View, last: ModelTurn) -> dict[str, tuple[CallFact, t.ToolEnded]]:
    """The newest result of each check proposed since the reply (or since the session goes on); one without a known
    outcome counts as not run.
    """
    since = max(last.seq, v.continued_seq)
    return {
        f.command: (f, f.result)
        for f in v.calls.values()
        if f.command and f.seq > since and isinstance(f.result, t.ToolEnded)
    }


def _passed(ended: t.ToolEnded) -> bool:
    return ended.status == "ok" and ended.exit_code == 0


def _outcome(ended: t.ToolEnded) -> str:
    return ended.status if ended.exit_code is None else f"exit {ended.exit_code}"


def _report(failing: list[str], total: int, ran: dict[str, t.ToolEnded], left: int) -> str:
    share = max(500, _CHECK_OUTPUT * 3 // max(3, len(failing)))
    parts = [
        f"{len(failing)} of {total} done criteria fail ({left} more round{'s' if left != 1 else ''} left). Repair the"
        " work, not the criteria."
    ]
    for command in failing:
        out = ran[command].preview.strip()
        shown = (
            out
            if len(out) <= share
            else f"{out[: share // 4]}\n[… {len(out) - share} characters left out …]\n{out[-(share - share // 4) :]}"
        )
        parts.append(f"$ {command}\n[{_outcome(ran[command])}]\n{shown or '(no output)'}")
    return "\n\n".join(parts)
