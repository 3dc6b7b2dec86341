"""Putting a reply on record, and with it the calls that it asks for."""

from __future__ import annotations

from collections.abc import Sequence

from harness.agents.agent_context import AgentContext
from harness.agents.errors import Conflict, Refused
from harness.brain.decide import proposals
from harness.brain.view import View
from harness.events import message_parts
from harness.events import types as t


def keep(agent_context: AgentContext, view: View, reply: Sequence[t.Body], parts: Sequence[message_parts.Part]) -> None:
    """Append the reply, whose first record is its `ModelMessage`, and the calls in its ``parts``: all at once, unless
    something was said meanwhile or nobody is there to judge them. Then the reply stands alone, and its calls are
    decided anew. Raises Interruption.
    """
    message = reply[0]
    assert isinstance(message, t.ModelMessage)
    head = (
        agent_context.head
    )  # before any input is stored: meanwhile the log may move, and with it the names of the calls
    asked = proposals(view, message, list(parts), head + 1) if agent_context.accounts.alive else ()
    if asked:
        calls = [agent_context.proposal(call_id, call.tool, call.input, call.ref) for call_id, call in asked]
        try:
            agent_context.append([*reply, *calls], head)
            return
        except (Conflict, Refused):
            pass  # nothing of it is in the log
    agent_context.append_anyway(reply)
