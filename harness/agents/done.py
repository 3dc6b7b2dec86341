"""When work counts as done: decided here alone, for every agent, from what the harness saw and never from what the
agent says. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from harness.agents import judged
from harness.agents.judged import JudgeWant
from harness.agents.steps import Check, End, Judge, Park, Say, Turned
from harness.checks import missing_program
from harness.domain import outcomes
from harness.domain.calls.call_states import NOT_RUN, CallEnd
from harness.domain.outcomes import NOW_PASSES, STILL_PASSES
from harness.domain.states import ParkedFor, State
from harness.domain.text.formatting import counted, whole_output
from harness.events import types as t
from harness.events.plan.iteration_events import BLOCKED, FAILED, PASSED, UNDECIDED
from harness.plan.files.criteria import spoken
from harness.projections.state.protected_files import some
from harness.reports import question_detector, verdicts

_CHECK_OUTPUT = 4000
_SUMMARY = 4000
_WHY = 500
_NOBODY = "no check decides it; the agent says that it is done"
_SHOW = (
    "Nothing but your word says that this is done (request {n} of {total} for evidence). Are you really done? Go"
    " through the goal point by point and look at what is there now. Then answer with evidence: what you ran and what"
    " it printed, which files you looked at, and what is left or uncertain. Do first what is missing. What only the"
    " person can decide, ask."
)


@dataclass(frozen=True, slots=True)
class Claim:
    """The agent has nothing more to do, in its own words; ``last`` when it was told to finish up."""

    words: str
    last: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """How the newest run of a criterion since the claim ended, and the supervisor's word on whether that counts;
    ``ours`` when that was under the present lease.
    """

    ended: t.ToolEnded
    verdict: t.CheckVerdict | None = None
    ours: bool = True

    @property
    def passed(self) -> bool:
        ended_well = self.ended.status == CallEnd.OK and self.ended.exit_code == 0
        return ended_well and self.verdict is not None and self.verdict.passed

    @property
    def outcome(self) -> str:
        if self.verdict is not None and self.verdict.why:
            return self.verdict.why
        return self.ended.status if self.ended.exit_code is None else f"exit {self.ended.exit_code}"


@dataclass(frozen=True, slots=True)
class Asked:
    """How often the agent is asked for evidence where nothing else decides, how often it was, and how many calls it
    ran since.
    """

    rounds: int = 0
    times: int = 0
    calls: int = 0

    @property
    def told(self) -> str:
        """What came of it, behind what says that nothing else decides; empty when it was not asked."""
        if not self.times:
            return ""
        since = f"after {counted(self.calls, 'more call')}" if self.calls else "and ran nothing more"
        return f"; asked for evidence {counted(self.times, 'time')}, the agent says that it is done {since}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the harness saw: its criteria, the results of those that ran, and how many rounds of them there were.

    ``put_back`` are protected files that the agent changed since it last spoke, ``kept`` a person's words to that.
    """

    commands: tuple[str, ...]
    results: Mapping[str, Result] = field(default_factory=dict)
    rounds: int = 0
    max_rounds: int = 1
    put_back: tuple[str, ...] = ()
    kept: str = ""
    evaluation_loop: JudgeWant | None = None
    """The judge that is to be satisfied too, with the entry at hand where there is one."""
    undecided: int = 0
    """Entries of the plan that no check decides: the work is not verified by those that pass."""
    task: str = ""
    """The entry at hand, when the plan is worked through one after the other; the criteria are its own then, and
    ``undecided`` how many of them no command decides.
    """
    beside: tuple[str, ...] = ()
    """The session's own checks, which run at the end of a task too."""
    passed_before: frozenset[str] = frozenset()
    """Those of them that passed before: a task that breaks one is not over."""
    blocked: str = ""
    """Why the entry at hand cannot be worked on, in the agent's words."""
    stuck: tuple[str, ...] = ()
    """Entries that were tried as often as they may be."""
    held: bool = False
    """All criteria of the entry at hand held before the work, and no person lets it pass."""
    masked: tuple[str, ...] = ()
    """Those of the criteria that hide their exit codes and decide nothing, also where a person lets them count."""
    trusted: tuple[str, ...] = ()
    """Those of them that a person lets count."""
    tried: tuple[str, ...] = ()
    """What the agent said in the attempt at hand, each reply in short."""
    evidence: Asked = Asked()
    at_work: str = ""
    """Which jobs still run, in words: nothing is checked while they may change what is looked at."""

    @property
    def decided(self) -> bool:
        """Something of the criteria decides, or a person lets it count."""
        return not set(self.masked).difference(self.trusted).issuperset(self.commands)


def settle(claim: Claim, seen: Evidence) -> Check | Judge | Say | Park | Turned | End:
    """What follows from a claim: criteria to run, their failures to tell, a judge to ask, a question for a person, or
    the end.
    """
    question = "" if claim.last else question_detector.asked(claim.words)
    asks = Park(ParkedFor.QUESTION, question_detector.words(claim.words))
    summary = claim.words[:_SUMMARY]
    why = "finished up at its cap; " if claim.last else ""
    total = len(seen.commands)
    if seen.at_work and not claim.last:
        return asks if question else Park(ParkedFor.JOB, seen.at_work)
    if seen.task and seen.blocked and not claim.last:
        return asks if question else Turned(BLOCKED, seen.blocked)
    if not seen.commands and seen.task and not seen.beside:
        over = Turned(UNDECIDED, _NOBODY + seen.evidence.told)
        return asks if question else _more_evidence(claim, seen) or _turned(over, claim, seen)
    if not seen.commands and seen.stuck:
        return _stuck(seen, "no check was given", summary)
    if not seen.commands and not seen.beside:
        end = End(State.DONE, f"{why}no check was given{seen.evidence.told}", summary=summary)
        return asks if question else _more_evidence(claim, seen) or _judged(end, claim, seen)
    deciding = {c: r for c, r in seen.results.items() if c in seen.commands or c in seen.passed_before}
    not_run = {c: why for c, r in deciding.items() if (why := _not_run(c, r.ended))}
    for command, why in not_run.items():
        if seen.results[command].ours:
            return Park(ParkedFor.ERROR, f"the check {command!r} could not run{why}")
    ran = {c: r for c, r in seen.results.items() if c not in not_run}
    if missing := tuple(c for c in (*seen.commands, *seen.beside) if c not in ran):
        return Check(missing)
    failing = [c for c in seen.commands if not ran[c].passed]
    broken = [c for c in seen.beside if c in seen.passed_before and not ran[c].passed]
    total += len(broken)
    failing += broken
    if not failing and seen.task and question:
        return replace(asks, verdict=f"{total} of {total} checks of {seen.task} passed")
    if not failing and seen.task:
        open_still = seen.undecided or seen.held or not seen.commands or not seen.decided
        outcome = UNDECIDED if open_still else PASSED
        if not seen.commands:
            return _turned(Turned(outcome, _NOBODY), claim, seen)
        return _turned(Turned(outcome, f"{total} of {total} checks passed{_told(ran)}{_masked(seen)}"), claim, seen)
    if not failing and seen.stuck:
        return _stuck(seen, f"{total} of {total} checks passed", summary)
    if not failing:
        also = f"; put back before: {some(list(seen.put_back))}" if seen.put_back else ""
        also = _masked(seen) + also
        if seen.undecided:
            also = f"; {counted(seen.undecided, 'entry', 'entries')} of its plan decided by no check{also}"
        also = _told(ran) + also
        proving = {c: r for c, r in ran.items() if c not in seen.masked and not seen.undecided}
        known = _outcomes(proving)
        verified = NOW_PASSES in known
        still = bool(known) and set(known) == {STILL_PASSES}
        if question:
            return _asks_beside(asks, f"all checks passed ({total} of {total}){also}", seen, verified, still)
        if not seen.decided and (more := _more_evidence(claim, seen)) is not None:
            return more
        said = f"{why}{total} of {total} checks passed{also}{'' if seen.decided else seen.evidence.told}"
        return _judged(End(State.DONE, said, verified=verified, still=still, summary=summary), claim, seen)
    names = ", ".join(f"{c} ({ran[c].outcome})" for c in failing)[:500]
    if claim.last:
        return End(State.FAILED, f"{why}{len(failing)} of {total} checks fail: {names}", summary=summary)
    if question:
        return asks
    if seen.task and seen.rounds >= seen.max_rounds:
        ends = [text for text in ran[failing[0]].ended.preview.split("\n") if text.strip()]
        why = f"{names}: {ends[-1] if ends else 'no output'}"[:_WHY]
        return Turned(FAILED, f"{len(failing)} of {total} checks fail: {names}", _gist(claim.words, seen.tried), why)
    if seen.stuck:
        return _stuck(seen, f"{len(failing)} of {total} checks fail: {names}", summary)
    if seen.rounds >= seen.max_rounds:
        said = f"{len(failing)} of {total} checks still fail after {seen.rounds} rounds: {names}"
        return End(State.FAILED, said, summary=summary)
    return Say(_report(failing, total, ran, seen))


def _more_evidence(claim: Claim, seen: Evidence) -> Say | None:
    """The next request for evidence where nothing but the agent's word says that the work is done."""
    asked = seen.evidence
    if claim.last or seen.evaluation_loop is not None or asked.times >= asked.rounds:
        return None
    return Say(_SHOW.format(n=asked.times + 1, total=asked.rounds), evidence=True)


def _not_run(command: str, ended: t.ToolEnded) -> str:
    """Why a check said nothing of the work, behind the words that it could not run; empty when it did."""
    if ended.status in NOT_RUN:
        return f" ({ended.status}): {ended.preview[:500]}"
    if lacking := missing_program.missing(command, ended.exit_code, ended.preview):
        return (
            f": there is no program {lacking} where checks run; install it for the whole machine and retry, or stop the"
            " session and continue it with another check"
        )
    return ""


def _outcomes(ran: Mapping[str, Result]) -> list[str]:
    """How each of these stands against what it said before the work."""
    return [r.verdict.outcome for r in ran.values() if r.verdict is not None]


def _masked(seen: Evidence) -> str:
    """Which checks hide their exit codes, behind what passed."""
    by_word = [spoken(one) for one in seen.masked if one in seen.trusted]
    told = [spoken(one) for one in seen.masked if one not in seen.trusted]
    parts = [f"; hides its exit code and decides nothing: {some(told)}" if told else ""]
    parts.append(f"; counts by your word, although it hides its exit code: {some(by_word)}" if by_word else "")
    return "".join(parts)[:_WHY]


def _told(ran: Mapping[str, Result]) -> str:
    """How many of them now pass, and how many still do, behind what passed."""
    said = outcomes.told(_outcomes(ran))
    return f": {said}" if said else ""


def _asks_beside(asks: Park, verdict: str, seen: Evidence, verified: bool, still: bool) -> Park:
    """A question although all checks passed: its answer may change the work, so no judge is asked before it."""
    if seen.evaluation_loop is not None:
        return replace(asks, verdict=f"{verdict}; the judge was not asked")
    return replace(asks, verdict=verdict, verified=verified, still=still)


def _stuck(seen: Evidence, checks: str, summary: str) -> End:
    return End(State.FAILED, f"stuck: {some(list(seen.stuck))} tried as often as allowed; {checks}", summary=summary)


def _turned(over: Turned, claim: Claim, seen: Evidence) -> Judge | Say | Park | Turned:
    return (
        over
        if seen.evaluation_loop is None
        else judged.of_task(over, seen.evaluation_loop, seen.task, _gist(claim.words, seen.tried))
    )


def _gist(words: str, tried: Sequence[str] = ()) -> str:
    """What was tried, in the agent's words over the whole attempt: the last ones are often no more than a yes."""
    flat = " ".join(words[: 4 * _WHY].split())
    before = [one for one in tried if not flat.startswith(one)]
    told = " … ".join(filter(None, (*before, flat)))
    return told[:_WHY] or "it gave no words"


def _judged(end: End, claim: Claim, seen: Evidence) -> Judge | Say | Park | End:
    return end if seen.evaluation_loop is None else judged.settle(end, seen.evaluation_loop, last=claim.last)


def _report(failing: list[str], total: int, ran: Mapping[str, Result], seen: Evidence) -> str:
    share = max(500, _CHECK_OUTPUT * 3 // max(3, len(failing)))
    left = seen.max_rounds - seen.rounds
    parts = [
        f"{len(failing)} of {total} done criteria fail ({counted(left, 'more round')} left). Repair the"
        " work, not the criteria."
    ]
    if seen.put_back:
        parts.append(
            "Files that decide whether the work is done are not yours to change, and have been put back as they were at"
            f" the start: {some(list(seen.put_back))}."
        )
    if seen.kept:
        parts.append(f"The person who decides on them says: {seen.kept}")
    if broken := [spoken(c) for c in failing if c in seen.beside]:
        parts.append(f"Passed before this task, and must again before it is over: {some(broken)}.")
    parts.extend(f"$ {spoken(c)}\n[{ran[c].outcome}]\n{_shown(ran[c].ended, share)}" for c in failing)
    return "\n\n".join(parts)


def _shown(ended: t.ToolEnded, share: int) -> str:
    """The beginning and the end of an output, and how the agent reads the rest."""
    out = verdicts.plain(ended.preview).strip()
    if ended.output is None and len(out) <= share:
        return out or "(no output)"
    if len(out) > share:
        out = f"{out[: share // 4]}\n[…]\n{out[-(share - share // 4) :]}"
    return f"{out}\n{whole_output(ended.call_id, ended.size)}"
