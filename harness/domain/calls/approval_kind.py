"""What a request in the queue is about, as logs and sockets spell it. Pure, standard library only."""

from __future__ import annotations

from enum import StrEnum


class Request(StrEnum):
    """The kind of a request to the person. A record may hold a kind that is none of these: it is shown, and equals
    none.
    """

    TOOL = "tool"
    """A call asks to leave the sandbox."""
    CAP = "cap"
    """A cap is reached."""
    AUTH = "auth"
    """An endpoint refuses its key."""
    ENDPOINT = "endpoint"
    """An endpoint refuses for another reason that only a person can mend."""
    IN_DOUBT = "in_doubt"
    """A call started, and nobody saw how it ended."""
    QUESTION = "question"
    """The agent's reply ends by asking."""
    REFUSAL = "refusal"
    """The model refused."""
    HISTORY = "history"
    """An endpoint refuses what was said so far."""
    BILL = "bill"
    """An endpoint reports again and again a usage that cannot be."""
    RESTART = "restart"
    """A part of the session failed too often."""
    GATE = "gate"
    """A phase of the plan may not begin, or go on, without a person's word."""
    PLAN = "plan"
    """The session wrote a plan from its goal, and work on it has not begun."""
    PROTECTED = "protected"
    """Files that decide whether the work is done were changed by the agent."""


AT_RISK = frozenset((Request.TOOL, Request.IN_DOUBT, Request.PROTECTED))
"""Those of which a yes can do harm, so that how much is said; any other only waits."""
SPOKEN = frozenset((Request.QUESTION, Request.REFUSAL))
"""Those that words to the agent answer: whatever is said to the session answers them too."""
RESUMED = frozenset((Request.RESTART, Request.HISTORY, Request.BILL))
"""Those that resuming the session answers as well."""
LAST_CALL = "the call"
CAME_OF_IT = "what came of it"
"""What the question about an agent that goes in circles says of its newest call, each a line."""
