"""The built-in agent: a conversation with a model behind the Messages API, kept nowhere but in the session's log."""

from __future__ import annotations

import contextlib
import gc
import ssl
import time
from collections.abc import Callable
from functools import partial

import anthropic
import httpx2

from harness.agents.agent import Agent, Doing
from harness.agents.agent_context import AgentContext
from harness.agents.agent_spec import Spec
from harness.agents.errors import CannotGoOn, Conflict, Refused, Stopped
from harness.agents.steps import Again, Park, Step, Wait
from harness.agents.supervisor_requests import Reservation
from harness.brain import conversation, reply_records, view_memory
from harness.brain.api import retry, stream
from harness.brain.api.request_draft import Draft
from harness.brain.conversation_turns import DamagedMessage
from harness.brain.decide import Abandon, Ask, Shrink, Sum, next_step, too_big, within
from harness.brain.drafting import Drafting
from harness.brain.keeping import keep
from harness.brain.review import agreement, allowance, evaluation_loop
from harness.brain.review.agreement import Agree, AskAuthor, KeepDraft
from harness.brain.review.allowance import Cost
from harness.brain.review.evaluation_loop import AskJudge, Conclude
from harness.brain.view import View
from harness.domain.calls.attempt import NO_REPLY, AttemptKind
from harness.domain.states import Desired, ParkedFor
from harness.events import messages_api
from harness.events import types as t
from harness.events.plan.evaluation_events import JUDGES
from harness.protocol.config.api_key import DEFAULT_BASE_URL
from harness.roles import pinned

_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 15.0
_MONEY_PARKS = {"cap": ParkedFor.CAP, "paused": ParkedFor.PAUSED}
"""Why it leaves, by the code of a refused reservation."""
_WAITS = frozenset(("no_space", "ledger", "held", "lost"))
"""Refusals of a reservation that end by themselves once something was mended; no request is sent meanwhile."""
REMEMBER_EVERY = 500
"""Records: fewer are read faster than what is known is written."""
_YOUNG = 1
_OLDEST = 2
"""Generations of the garbage collector."""
_THOROUGH = 8
"""Requests, after which everything is looked through."""
Make = Callable[[int, bool], Draft | None]
"""What is to be sent, drafted at that head of the log; None when its size is known only once the endpoint may be asked,
and the second argument says that it may not yet.
"""


class BuiltIn(Agent):
    """Everything it knows is in its view of the log, and in the conversation made of that."""

    def __init__(self, spec: Spec, agent_context: AgentContext, context: ssl.SSLContext) -> None:
        self._spec = spec
        self._desk = agent_context
        self._context = context
        self._drafting = Drafting(spec, agent_context)
        self._connected: anthropic.Anthropic | None = None
        self._view = View(state=agent_context.session)
        self._talk = conversation.Talk()
        self._patience = _FIRST_PAUSE_S
        self._remembered = -1
        self._reply: stream.Progress | None = None
        self._litter = False
        self._tidied = 0

    # -- what it is told ---------------------------------------------------------------------------

    def feed(self, record: t.Record) -> None:
        try:
            self._view.take(record, self._desk.read_blob)
        except DamagedMessage as exc:
            raise CannotGoOn(f"the brain cannot go on with this log: {exc}") from exc
        if isinstance(record.body, t.ModelMessage) and not record.body.purpose:
            with contextlib.suppress(conversation.Unanswered):  # told when it is needed: then nothing can be sent
                self._talk.take(self._view)
                self._view.forget()
                self._remember(record.seq)

    def _remember(self, seq: int) -> None:
        """Now and then; a reply that was just taken in is all there is beside the conversation."""
        if not self._desk.live or seq - self._remembered < REMEMBER_EVERY:
            return
        self._remembered = seq
        known = view_memory.encode(self._view, self._talk)
        if known is not None:
            self._desk.remember(view_memory.VERSION, known)

    def memory(self) -> str:
        return view_memory.VERSION

    def recall(self, known: bytes) -> bool:
        found = view_memory.decode(known, self._desk.session)
        if found is None:
            return False
        self._view, self._talk = found
        self._remembered = self._desk.head
        return True

    def say(self, record: t.Record) -> None:
        self.feed(record)

    def decide(self, record: t.Record) -> None:
        self.feed(record)

    # -- its life ----------------------------------------------------------------------------------

    def start(self) -> None:
        credential = self._spec.credential
        try:
            self._connected = stream.make_client(credential.base_url, credential.key, self._context)
        except (httpx2.InvalidURL, ValueError) as exc:
            raise CannotGoOn(f"the base URL {credential.base_url!r} cannot be used: {exc}") from exc
        self._drafting.start(self._connected)

    def resume(self) -> None:
        self.start()
        request = self._desk.session.request
        if request is not None and self._desk.session.ended is None and self._desk.session.desired != Desired.STOPPED:
            self._abandon(request)

    def park(self) -> None:
        if self._connected is not None:
            self._connected.close()

    def stop(self) -> None:
        if self._reply is not None:
            raise Stopped("stopped by the user")

    def state(self) -> Doing | None:
        reply = self._reply
        if reply is None:
            return None
        if not reply.bytes:
            return Doing("waiting for the first word", "the request is sent, nothing came yet", reply.begun)
        quiet = time.monotonic() - reply.newest
        evidence = f"{reply.bytes:,} bytes of the reply came, the newest {quiet:.0f} s ago"
        return Doing(f"replying, {reply.bytes / 1024:.1f} KiB so far", evidence, reply.begun)

    def propose(self) -> Step:
        try:
            step = next_step(self._view, self._drafting.sizes)
            match step:
                case Ask() | Sum():
                    return self._ask(step)
                case AskJudge():
                    started = self._desk.session.judging.started
                    assert started is not None
                    case = partial(self._drafting.for_the_judge, step, started, self._view)
                    return self._post(lambda head, admitted: case(head) if admitted else None, step, started.model)
                case Conclude():
                    self._desk.append([step.ended])
                    return Again()
                case AskAuthor():
                    opened = self._desk.session.contract.opened
                    assert opened is not None
                    brief = partial(self._drafting.for_an_author, step, opened, self._view)
                    model = step.model(opened)
                    return self._post(lambda head, admitted: brief(head) if admitted else None, step, model)
                case KeepDraft():
                    text = self._desk.put_blob(step.text.encode("utf-8", "replace"), "text/markdown")
                    self._desk.append([t.ContractDrafted(n=step.n, text=text, answers=list(step.answers))])
                    return Again()
                case Agree():
                    self._desk.append([step.agreed])
                    return Again()
                case Abandon():
                    self._abandon(step.request)
                    return Again()
                case Shrink():
                    self._desk.append([step.change])
                    return Again()
                case Wait():
                    self._tidy()
                    return step
                case _:
                    return step
        except conversation.Unanswered as exc:
            raise CannotGoOn(f"the brain cannot go on with this log: {exc}") from exc

    def _tidy(self) -> None:
        """The SDK's objects of a request hold each other, and with them its whole body: let go of them while nobody
        waits. What outlived a request is looked through only now and then, since there is more of it every turn.
        """
        if self._litter:
            self._litter = False
            self._tidied += 1
            gc.collect(_OLDEST if self._tidied % _THOROUGH == 0 else _YOUNG)

    def _abandon(self, request: t.ModelRequest) -> None:
        known = self._desk.accounts.settle(Reservation(request.reservation, request.reserved_nano), None)
        self._desk.append_anyway([request.lost(known.usage, known.nano, known.source)])

    # -- one attempt -------------------------------------------------------------------------------

    def _ask(self, step: Ask | Sum) -> Step:
        draft = partial(self._drafting.for_the_agent, step, self._view, self._talk)
        return self._post(draft, step, self._spec.model)

    def _post(self, make: Make, step: Ask | Sum | AskJudge | AskAuthor, model: str) -> Step:
        """Pay for one attempt of what ``make`` drafts for ``model`` at the head of the log, and send it.

        Usually one exchange with the supervisor lets it through and pays; what the endpoint is to count first is paid
        for in a second one.
        """
        agent_context = self._desk
        self._tidy()
        head = agent_context.head
        try:
            draft = make(head, False)
            if draft is not None and (made := self._too_big(step, draft)) is not None:
                return made
            admitted = agent_context.accounts.admit(self._spec.endpoint, model, None if draft is None else draft.worst)
            if admitted.held:  # the gate wakes the session when its turn comes
                return Park(ParkedFor.LIMITED, admitted.held, since=admitted.since)
            learned = isinstance(step, (Ask, Sum)) and not admitted.probe and self._drafting.learn(self._view)
            if (
                agent_context.follow(0.0) or learned
            ):  # something was said while it waited, or there is another room than it was
                if admitted.reservation is not None:
                    agent_context.accounts.settle(admitted.reservation, t.Usage())
                return Again()
            if draft is None:
                draft = make(head, True)
                assert draft is not None
                if (made := self._too_big(step, draft)) is not None:
                    return made
            if draft.unfit:
                return self._unsent(step, draft.unfit)
            reservation = admitted.reservation or agent_context.accounts.reserve(draft.worst)
        except Refused as exc:
            return self._no_money(exc)
        request = draft.request
        self._patience = _FIRST_PAUSE_S
        worst = Cost(reservation.nano, (draft.estimate + request.max_tokens) * draft.readings)
        if why := self._over(draft.purpose, worst):
            agent_context.accounts.settle(reservation, t.Usage())
            return Park(ParkedFor.JUDGE if draft.purpose == JUDGES else ParkedFor.ERROR, why)
        sent = draft.as_sent(reservation, head)
        try:
            agent_context.append([sent], head)
        except (Conflict, Refused):
            agent_context.accounts.settle(reservation, t.Usage())
            raise
        self._send(sent, reservation, request, admitted.probe, step)
        self._litter = True
        return Again()

    def _too_big(self, step: Ask | Sum | AskJudge | AskAuthor, draft: Draft) -> Step | None:
        """What comes before a request of the agent that the endpoint refuses for its bytes, as it refused another."""
        if not isinstance(step, (Ask, Sum)):
            return None
        sizes = self._drafting.sizes
        most = within(self._view, sizes).bytes
        if not most or (size := len(stream.encoded(draft.request)[0])) < most:
            return None
        made = too_big(self._view, sizes, size)
        if isinstance(made, Park):
            return made
        self._desk.append([made.change])
        return Again()

    def _unsent(self, step: Ask | Sum | AskJudge | AskAuthor, why: str) -> Step:
        """What follows for a judge or an author who cannot be sent what it is to read."""
        if isinstance(step, AskAuthor):
            return agreement.unfit(step, why)
        started = self._desk.session.judging.started
        assert started is not None
        self._desk.append([evaluation_loop.unfit(self._view.evaluation_loop, started, why).ended])
        return Again()

    def _over(self, purpose: str, worst: Cost) -> str:
        """Why the role that would speak may not spend so much more; empty when it may, and for the agent itself."""
        part = allowance.PART.get(purpose)
        if part is None:
            return ""
        role = pinned.of(self._desk.session.intent, part)
        return allowance.refusal(role, self._view.spent.of(part), worst)

    @property
    def _client(self) -> anthropic.Anthropic:
        assert self._connected is not None
        return self._connected

    def _no_money(self, exc: Refused) -> Step:
        """A park, or asking again when the refusal only has to be waited out: the supervisor says meanwhile what is in
        the way.
        """
        if exc.code in _WAITS:
            self._desk.follow(self._patience, self._desk.accounts.link)
            self._patience = min(_LONGEST_PAUSE_S, self._patience * 2)
            return Again()
        return Park(_MONEY_PARKS.get(exc.code, ParkedFor.ERROR), str(exc))

    def _send(
        self,
        sent: t.ModelRequest,
        reservation: Reservation,
        request: stream.AttemptRequest,
        probe: bool,
        step: Ask | Sum | AskJudge | AskAuthor,
    ) -> None:
        """Send, then put the reply or the failure on record, with what it cost.

        A complete reply is kept whatever happens around it.
        """
        agent_context = self._desk
        try:
            outcome = self._attempt(request, probe, sent.est_input)
        except Stopped:
            agent_context.append_anyway([reply_records.stopped(agent_context, sent, reservation)])
            return
        if isinstance(outcome, stream.ModelReply):
            if isinstance(step, Sum):
                agent_context.append_anyway(reply_records.summary(agent_context, sent, outcome, reservation, step))
            else:
                parts = messages_api.parts_of(outcome.content)
                doubted = "" if self._view.doubt else self._spec.credential.base_url or DEFAULT_BASE_URL
                keep(
                    agent_context,
                    self._view,
                    reply_records.replied(agent_context, sent, outcome, parts, reservation, doubted),
                    parts,
                )
            return
        if isinstance(step, Sum) and outcome.usage is not None and outcome.kind in NO_REPLY:
            agent_context.append_anyway(
                [reply_records.no_summary(agent_context, sent, outcome.message, outcome.usage, reservation)]
            )
            return
        if outcome.bytes:
            self._drafting.refused(outcome.bytes, sent.model)
        agent_context.append_anyway(
            [reply_records.failure(agent_context, sent, outcome, reservation, self._spec.credential.key)]
        )

    def _attempt(self, request: stream.AttemptRequest, probe: bool, reserved: int) -> stream.ModelReply | retry.Failure:
        if not self._spec.credential.key:
            return retry.Failure(AttemptKind.AUTH, "no API key is configured for this endpoint", usage=t.Usage())
        self._reply = stream.Progress(time.monotonic())
        try:
            return stream.attempt(
                self._client,
                request,
                self._desk.look,
                stream.Deadlines(*self._spec.deadlines),
                self._desk.accounts.heard if probe else _nobody,
                self._reply,
                reserved,
            )
        finally:
            self._reply = None


def _nobody() -> None:
    return None
