"""Events of the conversation: what the person said, what was asked of the model, what it replied."""

from __future__ import annotations

from harness.events.body import BlobRef, Body, By, Usage
from harness.events.message_parts import Part


class UserMessage(Body, frozen=True, kw_only=True):
    """Text given to the model as the user's turn: ``goal``, ``human`` (typed by the user), ``harness`` (failed checks,
    nudges). ``jobs`` are those whose ends it tells; ``evidence``: it asks for evidence that the work is done.
    """

    TYPE = "user.message"
    text: str
    origin: str = "human"
    by: By = By()
    jobs: list[str] = []
    evidence: bool = False


class ModelRequest(Body, frozen=True, kw_only=True):
    """One attempt is about to be sent; its worst case is reserved under ``reservation``.

    ``delivers`` are call ids whose results it carries; ``layers`` says about how many tokens of it are what, and
    ``working`` within how many it is kept; ``memory`` is the record that names the memories in it, -1 without any.
    ``purpose``: empty for a turn, ``summary`` for what `ModelSummary` answers, ``judge``, ``planner`` or ``evaluator``
    for a request of theirs.
    """

    TYPE = "model.request"
    request_id: str
    attempt: int
    model: str
    reservation: str
    reserved_nano: int
    est_input: int
    max_tokens: int
    upto_seq: int
    delivers: list[str] = []
    layers: dict[str, int] = {}
    working: int = 0
    memory: int = -1
    purpose: str = ""

    def lost(self, usage: Usage | None, cost_nano: int, price_source: str) -> ModelFailed:
        """Its end when the brain that sent it is gone; ``usage`` when its reply was settled before it was recorded, for
        that price.
        """
        outcome = "its outcome is unknown" if usage is None else "its reply was paid and is lost"
        why = f"the brain that sent this request is gone; {outcome}"
        return ModelFailed(
            request_id=self.request_id,
            attempt=self.attempt,
            kind="cut",
            message=why,
            retry_in_s=0.0,
            usage=usage,
            cost_nano=cost_nano if usage is not None else 0,
            price_source=price_source if usage is not None else "",
            purpose=self.purpose,
        )


class ModelMessage(Body, frozen=True, kw_only=True):
    """A complete reply, every call of it whole; ``stop`` is one of `said.STOPS`.

    Its parts stand inline or in a blob (a JSON array). ``compaction`` is the part of ``usage`` that the endpoint took
    to summarise by itself what came before. ``doubt``: what of the usage that the endpoint reported cannot be; the most
    that it may have been stands in its place.
    """

    TYPE = "model.message"
    request_id: str
    message_id: str
    model: str
    stop: str
    usage: Usage
    cost_nano: int
    parts: list[Part] | None = None
    parts_blob: BlobRef | None = None
    price_source: str = ""
    ms: int = 0
    purpose: str = ""
    compaction: Usage | None = None
    doubt: str = ""

    @property
    def context(self) -> Usage:
        """What the reply itself read and said: the size of its context."""
        return self.usage if self.compaction is None else self.usage - self.compaction


class ModelFailed(Body, frozen=True, kw_only=True):
    """An attempt ended without a usable reply. ``usage`` is what it surely took, ``cost_nano`` what that cost;
    usage None = nobody knows, so the ledger counts it in full and the log's own sums leave it out.

    ``kind``: an `AttemptKind`, or a word that another version writes.
    """

    TYPE = "model.failed"
    request_id: str
    attempt: int
    kind: str
    message: str
    status: int = 0
    retry_in_s: float | None = None
    usage: Usage | None = None
    cost_nano: int = 0
    price_source: str = ""
    purpose: str = ""
    bytes: int = 0
    """Of a request that the endpoint refused for its length."""

    @property
    def known(self) -> Usage:
        """What it surely took, as far as that has a price: older logs say the tokens alone."""
        return self.usage if self.usage is not None and self.price_source else Usage()
