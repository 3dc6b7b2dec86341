"""Drafts of what is to be sent next: for the agent itself, its judge, and the authors of its contract; with what the
endpoint says of their models.
"""

from __future__ import annotations

import json
from dataclasses import replace

import anthropic

from harness.agents.agent_context import AgentContext
from harness.agents.agent_spec import Spec
from harness.agents.errors import CannotGoOn
from harness.brain import conversation, model_limits
from harness.brain.api import own_means, stream
from harness.brain.api.own_means import Own
from harness.brain.api.request_draft import Draft
from harness.brain.context import compaction
from harness.brain.context.sizes import PER_TOKEN, Sizes
from harness.brain.conversation import Talk
from harness.brain.decide import Ask, Sum
from harness.brain.review import agreement, evaluation_loop
from harness.brain.review.agreement import AskAuthor
from harness.brain.review.evaluation_loop import AskJudge
from harness.brain.view import View
from harness.domain import request_layers
from harness.domain.model_limits import UNTOLD, ModelLimits
from harness.eventlog.framing import LogError
from harness.events import messages_api
from harness.events import types as t
from harness.events.plan.contract_events import PLANS
from harness.events.plan.evaluation_events import JUDGES
from harness.roles import pinned
from harness.roles.role import JUDGE, PLANNER, WORKER

_MOST_TOKENS = 32_768
SUMMARY = "summary"
"""Purpose of a request that asks for one."""


class Drafting:
    """Of one session; to be started once there is a client to ask the endpoint with."""

    def __init__(self, spec: Spec, agent_context: AgentContext) -> None:
        self._spec = spec
        self._desk = agent_context
        self._own = Own(spec.api_clearing, spec.api_compaction, spec.api_memory)
        self._client: anthropic.Anthropic | None = None
        self._tools: list[messages_api.Block] = []
        self._prompt = ""
        self._fixed_bytes = 0
        self._counted: tuple[int, int | None] = (-1, None)
        self._told = None if spec.limits is None else ModelLimits(*spec.limits)
        self._theirs: dict[str, ModelLimits] = {}
        """Of those who judge or write contracts."""
        self._sizes = model_limits.sizes(spec, self._told or UNTOLD)

    def start(self, client: anthropic.Anthropic) -> None:
        """What every request of the agent begins with."""
        self._client = client
        role = pinned.of(self._desk.session.intent, WORKER)
        ours = role.offered()
        self._tools = own_means.offered(self._own, ours)
        self._prompt = role.prompt
        fixed = [conversation.cached_tools(ours), conversation.system_blocks(role.prompt)]
        self._fixed_bytes = len(json.dumps(fixed).encode())

    @property
    def sizes(self) -> Sizes:
        """Of the agent's context."""
        return replace(self._sizes, fixed=self._fixed_bytes // PER_TOKEN)

    # -- drafts ------------------------------------------------------------------------------------

    def for_the_agent(self, step: Ask | Sum, view: View, talk: Talk, head: int, admitted: bool) -> Draft | None:
        """None when its size is known only once the endpoint may be asked, and it was not ``admitted`` yet."""
        summary = isinstance(step, Sum)
        hour = self._spec.cache_hour and not isinstance(step, Sum) and not step.finish  # nothing follows the last word
        said = talk.build(view, compaction.REQUEST if summary else "", hour=hour)
        room = min(compaction.MOST_TOKENS, self._room(Ask(), view)) if isinstance(step, Sum) else self._room(step, view)
        no_tools = isinstance(step, Sum) or step.finish
        request = stream.AttemptRequest(
            self._spec.model,
            room,
            conversation.system_blocks(self._prompt, hour=hour),
            conversation.cached_tools(self._tools, hour=hour),
            said.encoded,
            no_tools,
            own=replace(self._own, compact_from=0) if summary else self._own,
        )
        known = conversation.estimate(view, said)
        if known is None and not admitted:
            return None
        return Draft(
            request,
            self._estimate(request, view) if known is None else known,
            step.request_id or f"r{head}.{self._spec.gen}",
            step.attempt,
            purpose=SUMMARY if summary else "",
            delivers=[] if summary else list(said.delivers),
            layers={request_layers.INSTRUCTIONS: self._fixed_bytes // PER_TOKEN, **said.layers},
            working=self._sizes.room,
            memory=-1 if summary else view.memory_seq,
            hour=hour,
        )

    def for_the_judge(self, step: AskJudge, started: t.EvaluationStarted, view: View, head: int) -> Draft:
        """Its case and what was said since."""
        case = self._shown(started.case, "the case for the judge")
        prompt_of_judge = pinned.of(self._desk.session.intent, JUDGE).prompt
        room = self._longest(started.model)
        request = evaluation_loop.request(
            prompt_of_judge, started.model, started.criteria, case, view.evaluation_loop.replies, room
        )
        draft = self._aside(request, step.request_id or f"j{head}.{self._spec.gen}", step.attempt, JUDGES)
        least = evaluation_loop.least_answer(started.criteria)
        if draft.unfit or least <= room:
            return draft
        return replace(
            draft, unfit=f"an answer to its {len(started.criteria):,} criteria has more than {room:,} tokens"
        )

    def for_an_author(self, step: AskAuthor, opened: t.ContractOpened, view: View, head: int) -> Draft:
        """For who drafts a contract, or looks at the draft."""
        brief = self._shown(opened.brief, "the brief for the contract")
        role = pinned.of(self._desk.session.intent, PLANNER if step.purpose == PLANS else JUDGE)
        longest = self._longest(step.model(opened))
        request = agreement.request(step, role.prompt, opened, brief, view.agreement.talk, longest)
        return self._aside(request, step.request_id or f"c{head}.{self._spec.gen}", step.attempt, step.purpose)

    def _shown(self, ref: t.BlobRef, what: str) -> str:
        try:
            return self._desk.read_blob(ref).decode("utf-8", "replace")
        except (LogError, OSError, ValueError) as exc:
            raise CannotGoOn(f"{what} cannot be read: {exc}") from exc

    def _aside(self, request: stream.AttemptRequest, request_id: str, attempt: int, purpose: str) -> Draft:
        """A request of somebody else than the agent, with an estimate that is never too low."""
        counted = stream.count_tokens(self._asking, request)
        bound = evaluation_loop.most_tokens(request)
        most = bound if counted is None else counted + counted // 20 + evaluation_loop.SCHEMA_TOKENS
        size = bound // PER_TOKEN if counted is None else counted
        unfit = model_limits.unfit(request.model, size, request.max_tokens, self._limits_of(request.model))
        return Draft(request, most, request_id, attempt, purpose=purpose, unfit=unfit)

    # -- sizes -------------------------------------------------------------------------------------

    def learn(self, view: View) -> bool:
        """Ask the endpoint once what the model takes, while it answers; whether a context has another size then."""
        if self._told is not None or view.failures or not self._spec.credential.key:
            return False
        self._told = self._asked(self._spec.model)
        before = self._sizes
        self._sizes = model_limits.sizes(self._spec, self._told)
        return self._sizes != before

    def refused(self, size: int, model: str) -> None:
        """The endpoint refused a request of so many bytes for its length."""
        self._desk.accounts.tell_limits(model, ModelLimits(bytes=size))

    def _asked(self, model: str) -> ModelLimits:
        """What the endpoint says of a model now, told to those that follow."""
        told = model_limits.ask(self._asking, model)
        if told is not None:
            self._desk.accounts.tell_limits(model, told)
        return told or UNTOLD

    def _longest(self, model: str) -> int:
        """The longest reply that a judge or an author may be asked for, whose model may be another one than ours."""
        return model_limits.longest(self._spec.max_tokens, self._limits_of(model))

    def _limits_of(self, model: str) -> ModelLimits:
        """What the endpoint says of the model of a judge or an author, asked once."""
        if model == self._spec.model and self._told is not None:
            return self._told
        if model not in self._theirs and self._spec.credential.key:
            self._theirs[model] = self._asked(model)
        return self._theirs.get(model, UNTOLD)

    def _room(self, step: Ask, view: View) -> int:
        wanted = max(self._spec.max_tokens, min(_MOST_TOKENS, self._spec.max_tokens << step.room))
        longest = model_limits.longest(self._sizes.reply(wanted, view.measure().now), self._told or UNTOLD)
        return min(longest, view.longest or longest)

    def _estimate(self, request: stream.AttemptRequest, view: View) -> int:
        """Input tokens, never too few, of what no reply has measured: counted by the endpoint, else one per byte."""
        spoken = view.newest_user_seq
        if self._counted[0] != spoken or self._counted[1] is None:
            self._counted = (
                spoken,
                stream.count_tokens(self._asking, request) if not view.failures else None,
            )
        counted = self._counted[1]
        return (
            self._fixed_bytes + conversation.size_bound(json.loads(request.messages))
            if counted is None
            else counted + counted // 20 + 64
        )

    @property
    def _asking(self) -> anthropic.Anthropic:
        assert self._client is not None
        return self._client
