"""What a judge's word makes of work that has passed everything else. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from harness.agents.steps import End, Judge, Park, Say, Turned
from harness.domain.states import ParkedFor, State
from harness.events.plan import evaluation_events as ev
from harness.events.plan.iteration_events import FAILED, PASSED

_MOST_SAID = 8000
_MOST_WHY = 500


@dataclass(frozen=True, slots=True)
class JudgeWant:
    """That a judge is wanted, how often it was asked since the newest instruction, and its word on this claim (None =
    not asked yet).
    """

    cycles: int
    cycle: int = 0
    heard: ev.EvaluationEnded | None = None


def settle(end: End, evaluation_loop: JudgeWant, *, last: bool) -> Judge | Say | Park | End:
    """What follows for work that would end so; ``last``: its agent may do nothing more."""
    heard = evaluation_loop.heard
    if last:
        return replace(
            end,
            outcome=State.FAILED,
            reason=f"{end.reason}; the judge was not asked any more",
            verified=False,
            still=False,
        )
    if heard is None:
        return Judge(evaluation_loop.cycle + 1)
    if heard.verdict == ev.SATISFIED:
        said = f"{end.reason}; the judge is satisfied (cycle {heard.cycle} of {heard.cycles})"
        return replace(end, reason=said, judged=True)
    if heard.verdict == ev.NEEDS_REVISION and heard.cycle < evaluation_loop.cycles:
        return Say(report(heard))
    return Park(ParkedFor.JUDGE, _asks(heard))


def of_task(over: Turned, evaluation_loop: JudgeWant, task: str, words: str) -> Judge | Say | Park | Turned:
    """What follows for a task that would be over so, when the judge looks at each; ``words``: the agent's."""
    heard = evaluation_loop.heard
    if heard is None:
        return Judge(evaluation_loop.cycle + 1, task)
    at = f"cycle {heard.cycle} of {heard.cycles}"
    if heard.verdict == ev.SATISFIED:
        return Turned(PASSED, f"{over.reason}; the judge is satisfied ({at})")
    if heard.verdict != ev.NEEDS_REVISION:
        return Park(ParkedFor.JUDGE, _asks(heard))
    if heard.cycle < evaluation_loop.cycles:
        return Say(report(heard))
    return Turned(FAILED, f"{over.reason}; the judge sends it back ({at})", words, _faults(heard)[:_MOST_WHY])


def report(heard: ev.EvaluationEnded) -> str:
    """What the agent is told of a verdict that sends the work back."""
    parts = [
        f"A judge who knows only the goal, the criteria and your change has looked at the work (cycle {heard.cycle} of"
        f" {heard.cycles}) and sends it back. Repair what it names; the checks must go on passing."
    ]
    parts += [f"- {one.criterion} does not hold: {one.reason}" for one in heard.findings if not one.holds]
    parts += [f"Drift from the goal: {heard.drift}"] if heard.drift else []
    parts += [heard.summary] if heard.summary else []
    return "\n\n".join(parts)[:_MOST_SAID]


def _asks(heard: ev.EvaluationEnded) -> str:
    how = {
        ev.NEEDS_REVISION: f"the judge sent the work back {heard.cycle} times and is not satisfied",
        ev.FAILED: "the judge says that going on makes no sense",
    }.get(heard.verdict, "the judge gave no verdict")
    return f"{how}\n{_faults(heard)}".strip()[:_MOST_SAID]


def _faults(heard: ev.EvaluationEnded) -> str:
    failing = [f"{one.criterion}: {one.reason}" for one in heard.findings if not one.holds]
    return "\n".join(filter(None, [heard.summary, *failing, f"drift: {heard.drift}" if heard.drift else ""]))
