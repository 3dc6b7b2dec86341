"""Events that say what a request shows of the log from now on; the log itself stays as it is."""

from __future__ import annotations

from harness.events.body import BlobRef, Body, By, Usage


class ContextCleared(Body, frozen=True, kw_only=True):
    """Results and large inputs of turns before record ``before`` are shown in their short forms from now on.

    ``tokens`` were measured when it was decided, ``after`` is foreseen; ``trigger`` says why in words.
    """

    TYPE = "context.cleared"
    before: int
    tokens: int
    after: int
    trigger: str


class ContextReset(Body, frozen=True, kw_only=True):
    """The context begins anew: the goal, this hand-off, then what was said from record ``keep`` on; ``refused``: by
    itself, because the endpoint refused what was said before.
    """

    TYPE = "context.reset"
    keep: int
    handoff: str
    tokens: int
    after: int
    trigger: str
    refused: bool = False


class ContextWanted(Body, frozen=True, kw_only=True):
    """A person wants the context compacted before the next turn; ``fresh``: that it begins anew with a hand-off."""

    TYPE = "context.wanted"
    by: By = By()
    fresh: bool = False


class ModelSummary(Body, frozen=True, kw_only=True):
    """The reply to a request that asked for a summary, and what it cost; ``why`` it is not used, empty when it is."""

    TYPE = "model.summary"
    request_id: str
    message_id: str
    model: str
    usage: Usage
    cost_nano: int
    price_source: str = ""
    ms: int = 0
    why: str = ""


class ContextCompacted(Body, frozen=True, kw_only=True):
    """The context begins anew: the goal, this hand-off, the model's ``summary`` of what was said up to record
    ``through_seq``, then what was said since.

    ``tokens_before`` were measured when it was decided, ``tokens_after`` is foreseen; ``trigger`` says why in words.
    """

    TYPE = "context.compacted"
    through_seq: int
    handoff: str
    summary: BlobRef
    tokens_before: int
    tokens_after: int
    trigger: str


class ContextKept(Body, frozen=True, kw_only=True):
    """No compaction was made, although a person wanted one: nothing could become shorter."""

    TYPE = "context.kept"
    why: str
