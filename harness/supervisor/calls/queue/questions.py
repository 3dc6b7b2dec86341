"""Questions to the person: the tool ``ask_person``, a call that a person's words end, and a reply that ends in one.

Nothing runs for such a call, and all of it is on record, so whoever dies meanwhile finds the question asked, and the
answer given, once.
"""

from __future__ import annotations

from harness.domain.calls.approval_kind import Request
from harness.domain.calls.call_states import CallEnd, CallStage
from harness.domain.decision import Decision
from harness.domain.states import State
from harness.domain.text import fields
from harness.events import types as t
from harness.projections.state.session_state import OpenApproval, SessionState
from harness.supervisor.base import ids
from harness.supervisor.base.errors import OpError
from harness.supervisor.calls.on_record import input_of
from harness.supervisor.fleet.session import Session
from harness.tools import person_tool

OPTIONS = (Decision.ANSWER, Decision.DENY, Decision.STOP)


async def ask(session: Session, call_id: str) -> None:
    """Put the question of an allowed call to the person, once. Raises OpError, LinkLost."""
    call = session.state.calls.open.get(call_id)
    known = session.track.calls.get(call_id)
    if call is None or known is None or call.stage != CallStage.JUDGED:
        return
    given = await input_of(session, known.proposed)
    assert isinstance(given, dict)
    await session.append(request(call_id, given))


def request(call_id: str, given: dict[str, object]) -> t.ApprovalRequested:
    """The request that a valid input asks for."""
    question = str(given["question"]).strip()
    title = person_tool.title(question)
    detail: dict[str, object] = {} if title == question else {"asks": question}
    if offered := fields.texts(given, "options"):
        detail[person_tool.CHOICES] = [option.strip() for option in offered]
    return t.ApprovalRequested(
        approval_id=ids.approval_id(),
        kind=Request.QUESTION,
        title=title,
        options=list(OPTIONS),
        call_id=call_id,
        risk="low",
        detail=detail,
    )


def words_of(asked: OpenApproval, message: str, number: int | None) -> str:
    """What an answer says: its own words, or the option that its number names.

    Raises OpError ``bad_value``, ``bad_request``.
    """
    if number is None:
        if not message.strip():
            raise OpError("bad_request", "an answer needs a text: the agent reads it at its next turn")
        return message
    if problem := person_tool.unchosen(asked.detail, number):
        raise OpError("bad_value", problem)
    chosen = person_tool.choices(asked.detail)[number - 1]
    return f"{chosen}\n{message}" if message.strip() else chosen


def outcome(call_id: str, decision: str, message: str) -> t.ToolEnded:
    """How the call ends: with the answer, or with the word that there is none."""
    if decision == Decision.ANSWER:
        return t.ToolEnded(call_id=call_id, status=CallEnd.OK, preview=message)
    said = f": {message}" if message else "."
    return t.ToolEnded(
        call_id=call_id,
        status=CallEnd.DENIED,
        preview=f"The person does not answer this{said} Decide yourself, and say what you decided.",
    )


def taken(s: SessionState, asked: OpenApproval) -> t.SessionEnded:
    """The end of a session whose reply asks and whose work the person takes as finished: verified when its park says
    so and nothing was undone since, for then every check passed on just this work.
    """
    words = str(asked.detail.get("asks", ""))
    passed = s.parked if s.parked is not None and s.parked.verdict and s.checks_passed == len(s.checks) else None
    said = f"{s.checks_passed} of {len(s.checks)} checks pass" if s.checks else ""
    if passed is not None:
        said = passed.verdict
    reason = "; ".join(filter(None, ("you took it as finished", said)))
    return t.SessionEnded(
        outcome=State.DONE,
        reason=reason,
        verified=passed is not None and passed.verified,
        still=passed is not None and passed.still,
        summary=words,
    )
