"""The decision: what a brain does next, from the view alone. Pure; `builtin.py` and the host carry it out and ask
again.

Every step is safe to decide twice: a brain that dies between a decision and its record is woken on the same log and
decides the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from harness.agents import done, readiness, steps
from harness.agents.judged import JudgeWant
from harness.agents.steps import Park, Propose, Say, Wait
from harness.brain import prompt
from harness.brain.circles import IDLE_POINTS
from harness.brain.context import compaction, room
from harness.brain.context.handoff import handoff
from harness.brain.context.sizes import Sizes
from harness.brain.conversation_turns import FailedTry, ModelTurn
from harness.brain.review import agreement, evaluation_loop
from harness.brain.view import View
from harness.domain.calls.attempt import AT_THE_GATE, NO_REPLY, OVERFLOWS, REFUSED
from harness.domain.calls.call_id import name_call
from harness.domain.states import ParkedFor
from harness.events import message_parts
from harness.events import types as t
from harness.plan import already, draft, iterations, session_checks, stakes
from harness.projections.state.evaluation import JudgeStage
from harness.projections.state.protected_files import some

SAME_CALLS = 5
"""Breaker: the same call so often in a row."""
ROUNDS = 6
"""Breaker: the same few calls in turn, so often."""
TOOL_ERRORS = 10
"""Breaker: so many tool errors in a row."""
DENIALS = 3
"""Breaker: so many denied calls in a row, for an agent that looks for a way around an answer."""
IDLE_TURNS = 20
"""Breaker: so many turns in which no file, commit or check changed, three times as many with commands."""
DOUBTS = 3
"""So many replies in a row with a usage that cannot be, and a person is asked."""
_MAX_EMPTIES = 2
_MAX_PAUSES = 8
_MAX_CUT_CALLS = 3
_MAX_OVERFLOWS = 3
_MOST_ROOM = 2
_MOST_DENIAL = 300
_MOST_SAID = 4000


@dataclass(frozen=True, slots=True)
class Ask:
    """Send the conversation, once the gate lets it through. ``finish``: the last reply, without tools."""

    attempt: int = 1
    request_id: str = ""
    finish: bool = False
    room: int = 0
    """How often the output limit is doubled for this attempt."""


@dataclass(frozen=True, slots=True)
class Abandon:
    """An attempt of an earlier brain that nobody will hear the end of."""

    request: t.ModelRequest


@dataclass(frozen=True, slots=True)
class Shrink:
    """Make room in the context before the next request, or say why none is made."""

    change: t.ContextCleared | t.ContextReset | t.ContextKept


@dataclass(frozen=True, slots=True)
class Sum:
    """Ask the model for a summary with which the context begins anew. ``change`` lacks only that: its tokens
    afterwards are without it.
    """

    change: room.Compact
    handoff: str
    attempt: int = 1
    request_id: str = ""


Step: TypeAlias = (
    Ask | Abandon | Shrink | Sum | evaluation_loop.AskJudge | evaluation_loop.Conclude | agreement.Step | steps.Step
)


def next_step(v: View, sizes: Sizes | None = None) -> Step:
    """What follows from the log. Never `Ask` while the user wants anything but ``running``, while a call is open, or
    with a context beyond its ``sizes``.
    """
    step = _next(v)
    if v.doubts >= DOUBTS and not v.believes and isinstance(step, (Ask, evaluation_loop.AskJudge, agreement.AskAuthor)):
        why = f"{v.doubts} replies in a row came with a usage that cannot be; the newest: {v.doubt[:_MOST_DENIAL]}"
        return Park(ParkedFor.BILL, why)
    if not isinstance(step, Ask):
        return step
    known = within(v, sizes or Sizes(window=prompt.context_window(v.model)))
    return _anew(v, known) or _fitting(v, known, step)


def within(v: View, sizes: Sizes) -> Sizes:
    """These sizes, with what the log says of the endpoint's own limits."""
    return replace(sizes, bytes=min((size for size in (sizes.bytes, v.refused_bytes) if size), default=0))


def too_big(v: View, sizes: Sizes, size: int) -> Shrink | Park:
    """What comes before a request of so many bytes, of which the endpoint refused as many or fewer."""
    most = within(v, sizes).bytes
    why = f"{size:,} bytes, and the endpoint refused {most:,}"
    change = room.forced(v.measure(sizes.fixed), why) or (_without(v, sizes.fixed, why) if v.sizes else None)
    return _shrink(v, change) or Park(
        ParkedFor.ERROR,
        f"the goal and the newest words make a request of {why}; nothing more can be taken away: launch it with a"
        " shorter goal that names files, or with another endpoint",
    )


def _anew(v: View, sizes: Sizes) -> Step | None:
    """A context without what was said so far, before anything is sent: because a person wants that, or because what
    was refused stands in it.
    """
    if v.state.context.fresh:
        made = _shrink(v, _without(v, sizes.fixed, "you wanted it")) if v.sizes else None
        return made or Shrink(t.ContextKept(why="nothing was said in it that it could do without"))
    if v.failures or not v.sizes or v.refused_seq <= max(v.changed_seq, v.retry_seq):
        return None  # what follows from failures says `_trouble`
    return _alone(v, sizes.fixed)


def _alone(v: View, fixed: int = 0) -> Shrink:
    """It begins anew by itself."""
    change = _without(v, fixed, f"the endpoint refused what was said before: {v.refused[:_MOST_DENIAL]}")
    return Shrink(_reset(v, change, refused=True))


def _without(v: View, fixed: int, trigger: str) -> room.Reset:
    last = v.last_model
    return room.without(v.measure(fixed), v.keep if last is None else last.seq + 1, trigger)


def _reset(v: View, c: room.Reset, *, refused: bool = False) -> t.ContextReset:
    text = handoff(v.facts, v.state, c.keep, sum(size.seq >= c.keep for size in v.sizes))
    return t.ContextReset(keep=c.keep, handoff=text, tokens=c.tokens, after=c.after, trigger=c.trigger, refused=refused)


def _shrink(v: View, change: room.Change | None) -> Shrink | None:
    """The record of a change that no model has a part in."""
    match change:
        case room.Clear() as c:
            return Shrink(t.ContextCleared(before=c.before, tokens=c.tokens, after=c.after, trigger=c.trigger))
        case room.Reset() as c:
            return Shrink(_reset(v, c))
        case _:
            return None


def proposals(
    v: View, reply: t.ModelMessage, parts: Sequence[message_parts.Part], seq: int
) -> tuple[tuple[str, message_parts.Call], ...]:
    """The calls that `next_step` would propose if this reply stood on record at ``seq``, right behind all that was
    seen; none when that is for it to say.
    """
    s = v.state
    if (
        reply.purpose
        or reply.stop != message_parts.CALLS
        or v.finish_seq >= 0
        or readiness.over(s)
        or readiness.held(s)
    ):
        return ()
    return tuple((name_call(seq, i), call) for i, call in enumerate(message_parts.calls_of(parts)))


def _fitting(v: View, sizes: Sizes, ask: Ask) -> Step:
    if v.compactions >= compaction.IN_A_ROW and not ask.finish:
        return _in_vain(v.compactions)
    measure = v.measure(sizes.fixed)
    due = room.due(replace(measure, outgrown=False, wanted=False) if ask.finish else measure, sizes)
    if (made := _shrink(v, due)) is not None:
        return made
    match due:
        case None if v.state.context.wanted and not ask.finish:
            return Shrink(t.ContextKept(why="a summary would not make it shorter"))
        case None:
            return ask
        case room.Compact() as c:
            replies = sum(size.seq >= c.keep for size in v.sizes)
            return Sum(c, handoff(v.facts, v.state, c.keep, replies), ask.attempt, ask.request_id)
        case _:
            assert isinstance(due, room.Full)
            full = due
            return Park(
                ParkedFor.ERROR,
                f"the goal and the newest words have about {full.tokens:,} tokens, over the {full.most:,} that"
                f" {v.model} can be sent; nothing more can be taken away: launch it with a shorter goal that names"
                " files, or with a model of a larger window",
            )


def _in_vain(count: int) -> Park:
    detail = "its context was summarised again and again, and no call came to its end between"
    return Park(
        ParkedFor.BREAKER,
        f"{detail} ({count} in a row)",
        breaker=t.BreakerOpened(kind="compaction", count=count, detail=detail),
    )


def _next(v: View) -> Step:
    s = v.state
    over = readiness.over(s)
    if over is not None:
        return over
    if s.request is not None:
        return Abandon(s.request)
    held = readiness.held(s)
    if held is not None:
        return held
    last = v.last_model
    if last is not None and last.stop == message_parts.CALLS and not v.finished and last.seq > v.continued_seq:
        missing = tuple((last.call_id(i), use) for i, use in enumerate(last.calls) if last.call_id(i) not in v.calls)
        if missing:
            return Propose(missing)
    waits = readiness.outstanding(s)
    if waits is not None:
        return waits
    before_the_judge = evaluation_loop.next_step(v.evaluation_loop, s.judging) if v.finish_seq < 0 else None
    if before_the_judge is not None:
        return before_the_judge
    before_work = agreement.next_step(v.agreement, s.contract) if v.finish_seq < 0 else None
    if before_work is not None:
        return before_work
    if last is not None and v.finished:
        return _done(v, last)
    if (news := readiness.news(s)) is not None:
        return news
    return _trouble(v) or _turn(v, last)


def _ask(v: View) -> Ask:
    last = v.last_model
    failures = v.failures
    return Ask(
        attempt=len(failures) + 1,
        request_id=failures[0].body.request_id if failures else "",
        finish=v.finish_seq >= 0,
        room=min(_MOST_ROOM, v.cut_calls + (last is not None and last.stop == message_parts.LENGTH)),
    )


def _trouble(v: View) -> Step | None:
    """What the failures since the last reply (or park) ask for."""
    if not v.failures:
        return None
    newest = v.failures[-1]
    last = newest.body
    if last.kind in AT_THE_GATE:
        return _ask(v)
    if last.kind in OVERFLOWS or last.kind in REFUSED:
        return _refused(v, newest)
    if v.lowered and len(v.failures) < _MAX_OVERFLOWS:
        return _ask(v)
    if last.kind in NO_REPLY:
        if v.cut_calls >= _MAX_CUT_CALLS:
            return Park(ParkedFor.ERROR, f"{v.cut_calls} replies in a row could not be used; the last: {last.message}")
        return Say(prompt.discarded(last.kind, last.message)) if v.newest_user_seq < newest.seq else _ask(v)
    return Park(ParkedFor.ERROR, f"{last.kind}: {last.message}")


def _refused(v: View, newest: FailedTry) -> Step:
    """What follows when the endpoint refuses what was said, or how much: room is made for what is too long; what is
    refused for another reason begins anew by itself once; then a person is asked.
    """
    long = newest.body.kind in OVERFLOWS
    if v.changed_seq > newest.seq or (long and v.sizes and v.overflows < _MAX_OVERFLOWS):
        return _ask(v)
    if v.sizes and not v.began_alone:
        return _alone(v)
    said = newest.body.message
    if v.sizes:
        why = "the conversation is too long for the endpoint" if long else "the endpoint refuses the conversation"
        return Park(ParkedFor.HISTORY, f"{why}: {said}")
    why = "the endpoint takes no request as long" if long else "the endpoint refuses the request"
    return Park(ParkedFor.ERROR, f"{why}, though nothing that was said before stands in it: {said}")


def _turn(v: View, last: ModelTurn | None) -> Step:
    """What the newest reply asks for, all its calls answered."""
    if last is None or v.newest_user_seq > last.seq or v.finish_seq >= 0:
        return _ask(v)
    match last.stop:
        case message_parts.CALLS:
            return _breaker(v) or _ask(v)
        case message_parts.DONE if last.empty and not v.unheard:
            return _empty(v)
        case message_parts.DONE:
            return Say(prompt.UNHEARD) if v.unheard else _done(v, last)
        case message_parts.PAUSED | message_parts.LENGTH if v.pauses >= _MAX_PAUSES:
            return Park(ParkedFor.ERROR, f"{v.pauses} replies in a row stopped early ({last.stop})")
        case message_parts.LENGTH:
            return Say(prompt.CUT_TEXT)
        case message_parts.PAUSED:
            return _ask(v)
        case message_parts.WINDOW if v.overflows < _MAX_OVERFLOWS:
            return _ask(v)
        case _ if v.parked_seq > last.seq:
            return _ask(v)
        case message_parts.WINDOW:
            return Park(
                ParkedFor.ERROR, "the conversation does not fit the model's window even without old tool results"
            )
        case message_parts.REFUSED:
            return Park(ParkedFor.REFUSAL, message_parts.text_of(last.parts)[:_MOST_SAID] or "it gave no reason")
        case other:
            return Park(ParkedFor.ERROR, f"the reply stopped for a reason nobody here knows: {other}")


def _empty(v: View) -> Step:
    """A turn that ended without a word or a call is no claim that the work is done."""
    if v.empties <= _MAX_EMPTIES:
        return Say(prompt.EMPTY)
    return Park(
        ParkedFor.ERROR,
        f"{v.empties} replies in a row said nothing and called nothing, though it was asked to go on: the work may not"
        " be finished",
    )


def _breaker(v: View) -> Park | None:
    c = v.circles
    evidence = () if c.denied_in_row >= DENIALS else (c.last_call, c.last_end)
    rounds, length = c.rounds()
    circle = f"the agent made the same {length} calls in turn, again and again"
    denied = f"its calls are denied, the last one: {' '.join(c.denied_why.split())[:_MOST_DENIAL]}"
    for opens, count, kind, detail in (
        (c.denied_in_row >= DENIALS, c.denied_in_row, "denials", denied),
        (c.same_calls >= SAME_CALLS, c.same_calls, "same_call", "the agent made the same call again and again"),
        (rounds >= ROUNDS, rounds, "circle", circle),
        (c.errors_in_row >= TOOL_ERRORS, c.errors_in_row, "tool_errors", "one tool call after the other failed"),
        (
            c.idle_points >= IDLE_TURNS * IDLE_POINTS,
            c.idle_turns,
            "no_progress",
            "many turns went by and no file, commit or check changed",
        ),
    ):
        if opens:
            return Park(
                ParkedFor.BREAKER,
                "\n".join((f"{detail} ({count} in a row)", *evidence)),
                breaker=t.BreakerOpened(kind=kind, count=count, detail=detail),
            )
    return None


def _done(v: View, last: ModelTurn) -> Step:
    """The agent says it is finished, or had its last reply."""
    if draft.writing(v.state) and not v.finished:
        return Wait("its plan is being looked at")
    commands = tuple(v.state.checks)
    ratchet = v.state.ratchet
    put_back = tuple(path for path in ratchet.paths if ratchet.seq > last.seq and path not in ratchet.accepted)
    plan = v.state.plan
    if plan is not None and plan.did_seq > last.seq:
        put_back = (*put_back, f"{plan.path} ({some(plan.did)})")
    at = v.state.iterations
    task = plan.entries.get(at.entry) if plan is not None and not v.finished else None
    if task is not None:
        commands = tuple(task.checks)
    beside = session_checks.own(v.state) if task is not None else ()
    undecided = plan.undecided + stakes.blind(v.state, plan) if plan is not None else 0
    results = {command: result for command, result in _results(v, last).items() if command in (*commands, *beside)}
    reason = ratchet.reason if put_back else ""
    seen = done.Evidence(
        commands,
        results,
        v.rounds,
        iterations.rounds(v.state),
        put_back,
        reason,
        undecided=undecided if task is None else task.undecided,
        task="" if task is None else task.id,
        blocked=plan.work.standing[task.id].blocked if plan is not None and task is not None else "",
        beside=tuple(command for command in beside if command not in commands),
        passed_before=session_checks.passed_before(v.state) if task is not None else frozenset(),
        stuck=iterations.stuck(v.state),
        at_work=v.state.jobs.words() if v.state.jobs.running else "",
        held=task is not None and plan is not None and already.held(v.state, task.id),
        tried=tuple(v.tried),
        masked=tuple(command for command in commands if v.state.masking.hides(command)),
        trusted=tuple(ratchet.trusted),
        evidence=done.Asked(v.state.intent.evidence_rounds, v.evidence_asked, v.evidence_calls)
        if v.state.intent is not None
        else done.Asked(),
        evaluation_loop=_court(v, last, "" if task is None else task.id),
    )
    return done.settle(done.Claim(message_parts.text_of(last.parts), v.finished), seen)


def _court(v: View, last: ModelTurn, task: str) -> JudgeWant | None:
    """Who is to be satisfied with the task at hand, or else with the whole; None when nobody is."""
    judging = v.state.judging
    if judging.wanted is None or (task and not judging.each_task):
        return None
    since = max(last.seq, v.continued_seq, v.state.ratchet.brought_seq)
    known = judging.stage is JudgeStage.ENDED and judging.seq > since and judging.entry == task
    heard = judging.ended if known else None
    again = v.referred_seq > judging.seq  # a person heard its word and wants it to look again
    return JudgeWant(iterations.looks(v.state), judging.looked(task), None if again else heard)


def _results(v: View, last: ModelTurn) -> dict[str, done.Result]:
    """The newest result of each check proposed since the reply (or since the session goes on); one without a known
    outcome counts as not run.
    """
    since = max(last.seq, v.continued_seq, v.state.ratchet.brought_seq)
    return {
        f.command: done.Result(f.result, f.verdict, ours=f.result_seq > v.lease_seq)
        for f in v.calls.values()
        if f.command and f.seq > since and isinstance(f.result, t.ToolEnded)
    }
