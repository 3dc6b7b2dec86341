"""The tool ``plan`` and what the harness itself sees of a course that does not hold: answered and put on record here,
for neither has an effect outside the log.
"""

from __future__ import annotations

from harness.domain.calls.call_lifecycle import Call
from harness.domain.calls.call_states import CallEnd
from harness.events import types as t
from harness.plan.answer import answer
from harness.supervisor.fleet.session import Session


async def answered(session: Session, call: Call, given: dict[str, object]) -> None:
    """Answer a call of the tool. Raises OpError, LinkLost."""
    found = answer(session.state, call.call_id, given)
    ended = t.ToolEnded(call_id=call.call_id, status=CallEnd.OK if found.good else CallEnd.ERROR, preview=found.text)
    # whoever died between the two records finds the first one, and writes the second alone
    written = session.state.course.call_id == call.call_id
    await session.append(*([found.record] if found.record is not None and not written else []), ended)


async def step(session: Session) -> None:
    """Put each replan on record that the log asks for, once. Raises OpError, LinkLost."""
    owed = session.state.course.owed
    if owed and not session.state.terminal:
        await session.append(
            *(t.PlanUpdated(trigger=one.trigger, reason=one.reason, about=one.about) for one in list(owed))
        )
