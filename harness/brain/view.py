"""The brain's view of a session: what the log says about the conversation, folded record by record. Data only, no I/O.

`SessionState` (the one fold) answers what the session is; this adds what a conversation needs: turns, calls with their
results, and the counters behind limits. Everything is derived, so a brain that dies takes nothing with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.brain import conversation_turns
from harness.brain.api import refusals
from harness.brain.circles import Circles
from harness.brain.context import compaction, project_rules
from harness.brain.context.handoff import carried
from harness.brain.context.handoff_facts import Facts
from harness.brain.context.results import told
from harness.brain.context.room import Measure
from harness.brain.context.sizes import PER_TOKEN, TurnSize, shown, tokens
from harness.brain.conversation_turns import DROPPED, CallFact, DamagedMessage, FailedTry, LoadBlob, ModelTurn, UserTurn
from harness.brain.review.agreement import Agreement
from harness.brain.review.allowance import Spent
from harness.brain.review.evaluation_loop import EvaluationLoop
from harness.domain.calls.attempt import NO_REPLY, OVERFLOWS, REFUSED, AttemptKind
from harness.domain.calls.call_states import NOT_RUN, CallEnd
from harness.domain.decision import Decision
from harness.domain.states import Desired, ParkedFor
from harness.eventlog.framing import LogError
from harness.events import message_parts
from harness.events import types as t
from harness.events.conversation.memory_events import NOW
from harness.plan import contract
from harness.projections.state import course
from harness.projections.state.session_state import SessionState

REBOOT = "reboot"
"""Component of the notes of a keeper that the model reads too."""
_TRIED = 6
_MOST_TRIED = 160
"""Replies of an attempt that are remembered in short, and characters of each."""


@dataclass(slots=True)
class View:
    """Everything `decide.next_step` and `conversation.Talk` look at. Built only by `take`."""

    state: SessionState = field(default_factory=SessionState)
    turns: list[ModelTurn | UserTurn] = field(default_factory=list)
    models: list[ModelTurn] = field(default_factory=list)
    calls: dict[str, CallFact] = field(default_factory=dict)
    newest_user_seq: int = -1
    """Seq of the newest user turn, -1 when only the goal was said."""
    criteria: tuple[str, ...] = ()
    """The done criteria that a person gave."""
    facts: Facts = field(default_factory=Facts)
    sizes: list[TurnSize] = field(default_factory=list)
    """Of the replies that the context shows, oldest first."""
    measured: int = 0
    """Tokens of the context as the newest reply used it, or as the newest change of it foresaw; 0 = nobody knows."""
    fresh: int = 0
    """Bytes said since."""
    keep: int = -1
    """The context shows what was said from this record on, behind ``handoff``; -1 = from the beginning."""
    handoff: str = ""
    summary: str = ""
    """What a model wrote of the turns before ``keep``, as it is shown."""
    compactions: int = 0
    """Since the newest call that came to its end."""
    unsummed_seq: int = -1
    """The newest summary that could not be used."""
    begins_seq: int = -1
    """The newest record that changed what a request begins with (`context.layers`)."""
    rules: str = ""
    """The project's rules as the context began with them; what came since stands among the turns."""
    task: str = ""
    """The page of the task at hand, when the plan is worked through one after the other."""
    memory: str = ""
    """What requests show of memory."""
    memory_seq: int = -1
    """The record that names these memories; -1 when there are none."""
    memory_next: str | None = None
    """What they show from the next new beginning of the context on; None = the same."""
    memory_next_seq: int = -1
    changed_seq: int = -1
    """The newest change of the context."""
    model: str = ""
    failures: list[FailedTry] = field(default_factory=list)
    cut_calls: int = 0
    pauses: int = 0
    parked_seq: int = -1
    lease_seq: int = -1
    referred_seq: int = -1
    """The newest park that asked a person about the judge."""
    finish_seq: int = -1
    asked_seq: int = -1
    """The newest request for a reply of the agent's own."""
    human_seq: int = -1
    """The newest words of a person."""
    continued_seq: int = -1
    rounds: int = 0
    """Rounds of checks since the newest instruction: the goal, words of a human, or being continued."""
    round_of: int = -1
    evidence_asked: int = 0
    """How often it was asked for evidence since the newest instruction."""
    evidence_calls: int = 0
    """Calls that the agent ran since it was asked."""
    overflows: int = 0
    overflow_seq: int = -1
    overflow: str = ""
    """What was refused for its length, in words."""
    refused_bytes: int = 0
    """Of the shortest request that was refused for its bytes; 0 = none was."""
    refused_seq: int = -1
    """The newest refusal of what was said so far; -1 when a reply came since."""
    refused: str = ""
    """The endpoint's words of that."""
    retry_seq: int = -1
    """Where a person newly wanted the same tried again."""
    began_alone: bool = False
    """It began anew by itself, and no person has answered anything since."""
    longest: int = 0
    """The longest reply that may be asked for, where the endpoint refused a longer one; 0 = nobody knows."""
    doubts: int = 0
    """Replies in a row whose reported usage cannot be."""
    doubt: str = ""
    """The newest of that, in words; empty when there was none, and no person was told."""
    believes: bool = False
    """A person wants to hear no more of that."""
    empties: int = 0
    """Replies in a row that ended their turn without a word or a call."""
    cleared_before: int = 0
    circles: Circles = field(default_factory=Circles)
    tried: list[str] = field(default_factory=list)
    """What the agent said in its replies since the task at hand began, each in short, the newest last."""
    evaluation_loop: EvaluationLoop = field(default_factory=EvaluationLoop)
    agreement: Agreement = field(default_factory=Agreement)
    spent: Spent = field(default_factory=Spent)
    contract: str = ""
    """What was agreed on before the work, as requests show it."""

    @property
    def last_model(self) -> ModelTurn | None:
        return self.models[-1] if self.models else None

    @property
    def finished(self) -> bool:
        """True when the one last reply of a session that was told to finish up has come: to a request of then."""
        return self.finish_seq >= 0 and bool(self.models) and self.models[-1].seq > self.asked_seq > self.finish_seq

    @property
    def lowered(self) -> bool:
        """True when the newest refusal of a setting named the longest reply, and no request has followed since."""
        if not self.failures or self.failures[-1].body.kind != AttemptKind.SETTING:
            return False
        return refusals.most_output(self.failures[-1].body.message) == self.longest > 0

    @property
    def unheard(self) -> bool:
        """True when a person said something after the newest reply was asked for and before it came."""
        return bool(self.models) and self.asked_seq < self.human_seq < self.models[-1].seq

    def measure(self, fixed: int = 0) -> Measure:
        """What the next request would have; ``fixed``: tokens of what every request has, which the newest reply has
        measured with the rest.
        """
        overflows = self.overflows if self.overflow_seq > self.changed_seq else 0
        now = (self.measured or fixed + tokens(self.sizes)) + self.fresh // PER_TOKEN
        carried = (_bytes(self.handoff) + _bytes(self.summary)) // PER_TOKEN
        outgrown = self.facts.midway and not self.facts.boundary and self.unsummed_seq < self.changed_seq
        return Measure(
            now, self.sizes, self.facts.boundary, overflows, outgrown, self.state.context.wanted, carried, self.overflow
        )

    def forget(self) -> None:
        """Drop what was said before the newest reply, and its calls: no decision looks at it, and `conversation.Talk`
        holds it in its own form.
        """
        last = self.last_model
        if last is not None:
            self.turns = [turn for turn in self.turns if turn.seq >= last.seq]
            self.models = self.models[-1:]
            self.calls = {
                call_id: fact for call_id, fact in self.calls.items() if fact.seq >= last.seq or fact.result is None
            }

    def take(self, r: t.Record, load: LoadBlob) -> None:
        """Apply one record, which ``state`` has folded already, in place.

        Raises DamagedMessage when a reply or a summary is neither inline nor in a readable blob.
        """
        self.facts.advance(r)
        self.spent.take(r.body)
        if isinstance(r.body, t.ModelMessage):
            self.doubts = self.doubts + 1 if r.body.doubt else 0
            self.doubt = r.body.doubt or self.doubt
        if self.evaluation_loop.take(r, lambda body, seq: conversation_turns.parts_of(seq, body, load)):
            return
        if self.agreement.take(r, lambda body, seq: conversation_turns.parts_of(seq, body, load)):
            return
        body = r.body
        match body:
            case t.ToolProposed() | t.ToolStarted() | t.ToolEnded() | t.ToolResolved() | t.CheckVerdict():
                self._of_call(r, body)
            case t.ModelRequest() | t.ModelMessage() | t.ModelFailed() | t.ModelSummary():
                self._of_model(r, body, load)
            case t.ContextCleared():
                self._cleared(r, body)
            case t.ContextReset():
                self._reset(r, body)
            case t.ContextCompacted():
                self._compacted(r, body, load)
            case t.SessionIntent() | t.SessionParked() | t.SessionContinued() | t.SessionDesired():
                self._of_session(r, body)
            case t.BillsBelieved():
                self.believes = True
            case t.FinishUp():
                self.finish_seq = r.seq
            case t.CapsRaised():
                self.finish_seq = -1  # to go on is another answer than to finish up
            case t.LeaseGranted():
                self.lease_seq = r.seq
            case t.BreakerOpened():
                self._begin_anew()
            case _:
                self._told(r, body, load)

    def _of_session(
        self, r: t.Record, body: t.SessionIntent | t.SessionParked | t.SessionContinued | t.SessionDesired
    ) -> None:
        match body:
            case t.SessionDesired():
                if body.state == Desired.RUNNING and body.reason == Decision.RETRY:
                    self.retry_seq = r.seq
            case t.SessionIntent():
                self.model = body.model
                self.criteria = tuple(body.checks)
                self.fresh += _bytes(body.goal) + sum(map(_bytes, body.checks))
            case t.SessionParked():
                self._forget_trouble(r)
                if body.why != ParkedFor.LIMITED:
                    self.began_alone = False
                    self.doubts = 0
                    self.empties = 0
                if body.why == ParkedFor.JUDGE:
                    self.referred_seq = r.seq
            case t.SessionContinued():
                if body.checks is not None:
                    self.criteria = tuple(body.checks)
                    self.begins_seq = r.seq
                self._forget_trouble(r)
                self._begin_anew()
                self._new_instruction()
                self.continued_seq = r.seq
                self.began_alone = False
                self.finish_seq = -1

    def _of_model(
        self, r: t.Record, body: t.ModelRequest | t.ModelMessage | t.ModelFailed | t.ModelSummary, load: LoadBlob
    ) -> None:
        match body:
            case t.ModelRequest():
                if not body.purpose:
                    self.asked_seq = r.seq
            case t.ModelMessage():
                self._model(r, body, load)
            case t.ModelFailed():
                self._failed(r, body)
            case t.ModelSummary():
                self._summed(r, body)

    def _told(self, r: t.Record, body: t.Body, load: LoadBlob) -> None:
        """What the model reads beside its own replies and their calls."""
        match body:
            case t.UserMessage():
                self._user(r, body)
            case t.PlanUpdated() if text := course.news(body):
                self._news(r, text)
            case t.HarnessNote() if body.component == REBOOT:
                self._news(r, body.text)
            case t.HooksEnded():
                self._news(r, body.text)
            case t.RulesRead():
                self._ruled(r, body)
            case t.MemoryShown():
                self.memory_next = body.text
                self.memory_next_seq = r.seq if body.memories else -1
                if body.at == NOW:
                    self.begins_seq = r.seq
                    self._remember()
            case t.ContractAgreed() if body is self.state.contract.agreed:
                self._agreed(r, body, load)
            case t.IterationStarted():
                self._next_task(r, body)
            case _:
                pass

    def _news(self, r: t.Record, text: str) -> None:
        """The harness says something among the turns."""
        self.turns.append(UserTurn(r.seq, text, "harness"))
        self.fresh += _bytes(text)

    def _next_task(self, r: t.Record, body: t.IterationStarted) -> None:
        self.tried = []
        self.task = body.digest
        self.handoff = carried(self.facts)
        self.begins_seq = r.seq
        self.fresh += _bytes(body.digest) + _bytes(self.handoff)
        self.newest_user_seq = r.seq
        self._begin_anew()
        self._new_instruction()

    def _agreed(self, r: t.Record, body: t.ContractAgreed, load: LoadBlob) -> None:
        try:
            text = load(body.text).decode("utf-8", "replace")
        except (LogError, OSError, ValueError) as exc:
            raise DamagedMessage(
                f"the contract agreed at seq {r.seq} cannot be read from its blob {body.text.sha[:12]}: {exc}"
            ) from exc
        self.contract = contract.layer(contract.shown(text, body.objections))
        self.begins_seq = r.seq
        self.fresh += _bytes(self.contract)

    def _user(self, r: t.Record, body: t.UserMessage) -> None:
        if body.origin == "goal" and self.state.intent is not None and body.text == self.state.intent.goal:
            return
        self.turns.append(UserTurn(r.seq, body.text, body.origin))
        self.fresh += _bytes(body.text)
        self.newest_user_seq = r.seq
        if body.evidence:
            self.evidence_asked += 1
            self.evidence_calls = 0
        if body.origin == "human":
            self.human_seq = r.seq
            self.began_alone = False
            self._begin_anew()
            self._new_instruction()

    def _begin_anew(self) -> None:
        """The breakers count from here."""
        self.circles.begin_anew()
        self.compactions = 0

    def _new_instruction(self) -> None:
        """Rounds of checks and of evidence count from here."""
        self.evidence_asked = 0
        self.rounds = 0
        self.round_of = -1

    def _forget_trouble(self, r: t.Record) -> None:
        """Failures count from here."""
        self.parked_seq = r.seq
        self.failures = []
        self.cut_calls = 0
        self.pauses = 0
        self.overflows = 0

    def _model(self, r: t.Record, body: t.ModelMessage, load: LoadBlob) -> None:
        parts = conversation_turns.parts_of(r.seq, body, load)
        calls = message_parts.calls_of(parts)
        turn = ModelTurn(r.seq, body.stop, body.context, tuple(parts), calls)
        self.turns.append(turn)
        self.models.append(turn)
        self.facts.replied(r.seq, parts)
        words = " ".join(message_parts.text_of(parts)[:_MOST_TRIED].split())
        if words and words not in self.tried:
            self.tried = [*self.tried, words][-_TRIED:]
        self.measured = body.context.total
        self.fresh = 0
        seen = [] if body.stop in DROPPED or turn.only_thought else shown(parts, body.stop == message_parts.CALLS)
        if seen:
            size = TurnSize(r.seq)
            size.add_parts(seen)
            self.sizes.append(size)
        self.failures = []
        self.cut_calls = 0
        self.refused_seq = -1
        self.empties = self.empties + 1 if turn.empty else 0
        self.pauses = self.pauses + 1 if body.stop in (message_parts.PAUSED, message_parts.LENGTH) else 0
        if body.stop == message_parts.WINDOW:
            self._overflow(r)
            return
        self.overflows = 0
        if body.stop == message_parts.CALLS:
            self.circles.asked(calls)

    def _failed(self, r: t.Record, body: t.ModelFailed) -> None:
        self.failures.append(FailedTry(r.seq, r.ts, body))
        self.cut_calls += body.kind in NO_REPLY
        if body.kind in OVERFLOWS or body.kind in REFUSED:
            self.refused_seq = r.seq
            self.refused = body.message
        if body.kind in OVERFLOWS:
            self._overflow(r, body.bytes)
        elif body.kind == AttemptKind.SETTING:
            self.longest = refusals.most_output(body.message) or self.longest

    def _overflow(self, r: t.Record, size: int = 0) -> None:
        self.overflows += 1
        self.overflow_seq = r.seq
        self.overflow = f"the endpoint refused {size:,} bytes" if size else ""
        if size:
            self.refused_bytes = min(size, self.refused_bytes or size)

    def _ruled(self, r: t.Record, body: t.RulesRead) -> None:
        if self.models:
            self._news(r, project_rules.news(body))
        else:
            self._rules_anew()

    def _rules_anew(self) -> None:
        before = _bytes(self.rules)
        self.rules = project_rules.layer(self.state.rules.read.values())
        self.fresh += max(0, _bytes(self.rules) - before)

    def _cleared(self, r: t.Record, body: t.ContextCleared) -> None:
        self.cleared_before = max(self.cleared_before, body.before)
        for size in self.sizes:
            if size.seq < body.before:
                size.clear()
        self._changed(r, body.after)

    def _reset(self, r: t.Record, body: t.ContextReset) -> None:
        self.summary = ""
        self.began_alone = self.began_alone or body.refused
        self._anew(r, body.keep, body.handoff, body.after)

    def _compacted(self, r: t.Record, body: t.ContextCompacted, load: LoadBlob) -> None:
        try:
            text = load(body.summary).decode("utf-8", "replace")
        except (LogError, OSError, ValueError) as exc:
            raise DamagedMessage(
                f"the summary at seq {r.seq} cannot be read from its blob {body.summary.sha[:12]}: {exc}"
            ) from exc
        self.summary = compaction.shown(text, body.through_seq)
        self.compactions += 1
        self._anew(r, body.through_seq + 1, body.handoff, body.tokens_after)

    def _anew(self, r: t.Record, keep: int, handoff: str, after: int) -> None:
        self.begins_seq = r.seq
        self.keep = keep
        self.handoff = handoff
        self.sizes = [size for size in self.sizes if size.seq >= keep]
        self._changed(r, after)
        self._rules_anew()
        self._remember()

    def _remember(self) -> None:
        if self.memory_next is not None:
            self.fresh += max(0, _bytes(self.memory_next) - _bytes(self.memory))
            self.memory = self.memory_next
            self.memory_seq = self.memory_next_seq
            self.memory_next = None

    def _summed(self, r: t.Record, body: t.ModelSummary) -> None:
        self.failures = []
        if body.why:
            self.unsummed_seq = r.seq

    def _changed(self, r: t.Record, after: int) -> None:
        self.changed_seq = r.seq
        self.measured = after
        self.fresh = 0

    def _of_call(
        self, r: t.Record, body: t.ToolProposed | t.ToolStarted | t.ToolEnded | t.ToolResolved | t.CheckVerdict
    ) -> None:
        match body:
            case t.ToolProposed():
                self._proposed(r, body)
            case t.ToolStarted():
                self.circles.started(body)
            case t.ToolEnded():
                self._ended(r, body)
            case t.ToolResolved():
                if body.resolution != "confirmed_not_done":
                    self._finish_call(r, body.call_id, body)
            case t.CheckVerdict():
                if (fact := self.calls.get(body.call_id)) is not None:
                    fact.verdict = body

    def _proposed(self, r: t.Record, body: t.ToolProposed) -> None:
        if body.not_of_agent:
            return
        command = str((body.input or {}).get("command", "")) if body.by_harness else ""
        last = self.last_model
        of = last.seq if last is not None and not body.by_harness else -1
        self.calls[body.call_id] = CallFact(r.seq, of, command)
        if body.by_harness and last is not None and self.round_of != last.seq:
            self.round_of = last.seq
            self.rounds = self.rounds + 1

    def _ended(self, r: t.Record, body: t.ToolEnded) -> None:
        fact = self.calls.get(body.call_id)
        if fact is None:
            return
        self._finish_call(r, body.call_id, body)
        if fact.command:
            self.circles.checked(fact.command, body.exit_code)
            return
        self.evidence_calls += body.status not in NOT_RUN
        self.compactions = 0 if body.status == CallEnd.OK else self.compactions
        self.circles.ended(body)

    def _finish_call(self, r: t.Record, call_id: str, result: t.ToolEnded | t.ToolResolved) -> None:
        fact = self.calls.get(call_id)
        if fact is not None and fact.result is None:
            if isinstance(result, t.ToolEnded):
                fact.ended = result
            else:
                fact.resolved = result
            fact.result_seq = r.seq
            last = self.last_model
            if last is not None and self.sizes and self.sizes[-1].seq == last.seq == fact.of:
                text, _ = told(result, len(last.calls))
                self.sizes[-1].add_result(text, call_id)
                self.fresh += _bytes(text)


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
