"""What is due next for a session's thinking, from what its log says alone. Pure: `sessions.brains` carries it out
and asks again.

A park stands until it is answered: nobody wakes a brain before, whoever died around it, because the rule looks at
the log and at nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from harness.domain.calls.approval_kind import CAME_OF_IT, LAST_CALL, RESUMED, Request
from harness.domain.decision import Decision
from harness.domain.states import Desired, ParkedFor
from harness.plan import gates
from harness.projections.state.session_state import SessionState
from harness.reports import question_detector
from harness.supervisor.fleet.call_records import Track

BLOCKING = RESUMED | {
    Request.CAP,
    Request.QUESTION,
    Request.REFUSAL,
    Request.PROTECTED,
    Request.GATE,
    Request.PLAN,
}
"""Kinds of requests that a session waits for with all its thinking."""
_NO_REQUEST = frozenset(
    (ParkedFor.APPROVAL, ParkedFor.CAP, ParkedFor.PAUSED, ParkedFor.LIMITED, ParkedFor.AUTH, ParkedFor.JOB)
)
"""Parks whose request was made before them, that end by themselves, or whose request is the gate's, one for the whole
fleet.
"""


@dataclass(frozen=True, slots=True)
class Ask:
    """The newest park has no request yet: put this one into the queue."""

    kind: str
    title: str
    detail: dict[str, object]
    options: tuple[str, ...] = ("retry", "stop")


@dataclass(frozen=True, slots=True)
class Wake:
    """There is something to think about and nobody thinks."""


@dataclass(frozen=True, slots=True)
class Nothing:
    """Somebody thinks, something runs, or a person decides: the next record says more."""


Due: TypeAlias = Ask | Wake | Nothing


def due(s: SessionState, track: Track) -> Due:
    """The one rule of parking and waking. When an endpoint may be asked again is for its gate to say."""
    if (
        s.intent is None
        or s.created is None
        or s.ended is not None
        or s.quarantined is not None
        or s.desired != Desired.RUNNING
    ):
        return Nothing()
    asked = _request(s)
    if asked is not None and not _answered(track, asked.kind):
        return Nothing() if any(a.kind == asked.kind for a in s.approvals.values()) else asked
    if gates.closed(s) is not None:
        return Nothing()
    if s.lease is not None or s.calls.open or any(a.kind in BLOCKING for a in s.approvals.values()):
        return Nothing()
    if s.parked is not None and s.parked.why == ParkedFor.JOB and s.jobs.running and not s.jobs.heard:
        return Nothing()  # a job's end, or words to the agent, are what it waits for
    return Wake()


def _request(s: SessionState) -> Ask | None:
    """What the park that holds now must ask; None when none holds, or when it needs no request of its own."""
    if s.parked is None or s.parked.why in _NO_REQUEST:
        return None
    why = s.parked.why
    detail = s.parked.detail
    if why == ParkedFor.QUESTION:
        checks = {"checks": s.parked.verdict or f"{s.checks_passed} of {len(s.checks)} pass"} if s.checks else {}
        return Ask(
            Request.QUESTION,
            question_detector.asked(detail) or "it asks you",
            {"asks": detail, **checks},
            ("answer", "done", "stop"),
        )
    if why == ParkedFor.BREAKER:
        title, _, rest = detail.partition("\n")
        call, _, end = rest.partition("\n")
        return Ask(
            Request.QUESTION,
            title or "a breaker opened: the agent goes in circles",
            {LAST_CALL: call, CAME_OF_IT: end},
            ("answer", "retry", "stop"),
        )
    if why == ParkedFor.JUDGE:
        title, _, rest = detail.partition("\n")
        return Ask(Request.QUESTION, title, {"judge": rest}, ("answer", "retry", "done", "stop"))
    if why == ParkedFor.REFUSAL:
        return Ask(Request.REFUSAL, detail.partition("\n")[0], {"asks": detail}, ("answer", "retry", "stop"))
    if why == ParkedFor.HISTORY:
        return Ask(Request.HISTORY, detail, {"part": "model"}, _ways(s, Decision.FRESH, Decision.RETRY))
    if why == ParkedFor.BILL:
        return Ask(Request.BILL, detail, {"part": "model"}, (Decision.BELIEVE, Decision.RETRY, Decision.STOP))
    return Ask(
        Request.RESTART,
        detail or "the model cannot be reached",
        {"part": "model", "failures": s.failures_in_row},
        _ways(s, Decision.RETRY, Decision.FRESH),
    )


def _ways(s: SessionState, *ways: Decision) -> tuple[Decision, ...]:
    """These ways on, and to stop; beginning anew only where there was something to leave behind."""
    return (*(way for way in ways if way != Decision.FRESH or s.context.tokens), Decision.STOP)


def _answered(track: Track, kind: str) -> bool:
    """True when the newest park was asked about, by a request of its own or by one that it found open (whether that is
    open yet is another matter), or resumed since where that is the answer.
    """
    return track.parked_seq <= track.asked_seq.get(kind, -1) or (
        kind in RESUMED and track.resumed_seq > track.parked_seq
    )


@dataclass(slots=True)
class Falls:
    """Brains in a row that died and did nothing.

    Trying again costs nothing but a fork, so it never ends; what was asked and paid for is counted apart.
    """

    count: int = 0
    paid: int = 0

    def add(self, *, worked: bool, paid: bool) -> None:
        """One more death; ``worked``: that brain did something first; ``paid``: a request of its own was under way."""
        if worked:
            self.count = 0
            self.paid = 0
        self.count += 1
        self.paid += paid

    @property
    def pause_s(self) -> float:
        """Seconds before the next try: 0.2 s, four times as long each time, five minutes at most."""
        return min(300.0, 0.2 * 4.0 ** min(8, max(0, self.count - 1)))

    @property
    def lasting(self) -> bool:
        """True when it has gone on for minutes: then somebody should look."""
        return self.count >= 6

    @property
    def too_dear(self) -> bool:
        """True when too many replies in a row were paid for and lost: only then a person must decide."""
        return self.paid >= 6
