"""A brain's life: take up the log, carry out one step after the other, leave when there is nothing to think about.

Synchronous, one thread. Exit codes: 0 parked, ended or told to leave; 75 fenced or cut off from the keeper or (too
long) from the supervisor; 70 a defect of ours, which is put on record first when possible.
"""

from __future__ import annotations

import gc
import json
import random
import ssl
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

import anthropic
import httpx2
import msgspec

from harness.brain import conversation, decide, retry, stream
from harness.brain.accounts import Accounts, Outcome, Reservation
from harness.brain.errors import Conflict, Fenced, Interruption, NoSupervisor, Refused, Stopped
from harness.brain.session_log import Journal
from harness.brain.view import DamagedMessage
from harness.events import blocks, tools
from harness.events import types as t
from harness.events.framing import LogError
from harness.protocol.config import Credential

OK = 0
DEFECT = 70
AGAIN = 75
BLOB_FROM = 16 * 1024
_SUPERVISOR_S = 600.0
_UNKNOWN_S = 60.0
_FIRST_PAUSE_S = 0.5
_LONGEST_PAUSE_S = 15.0
_WAITS = frozenset(("no_space", "ledger", "held", "lost"))
"""Refusals of a reservation that end by themselves once something was mended; no request is sent meanwhile."""
_IDLE_S = 60.0
_MOST_TOKENS = 32_768
_CLAIM = 2000
_DAMAGE = (LogError, DamagedMessage, msgspec.DecodeError, conversation.Unanswered)


class Spec(msgspec.Struct, frozen=True):
    """What the nursery is told about one brain."""

    sid: str
    folder: str
    keeper_socket: str
    supervisor_socket: str
    gen: int
    secret: str
    credential: Credential
    model: str
    max_tokens: int = 8192
    endpoint: str = ""
    """The credential's short name: whose gate its requests pass."""
    deadlines: tuple[float, float, float] = (300.0, 300.0, 3600.0)

    def __repr__(self) -> str:
        return f"Spec({self.sid}, gen {self.gen})"


class Brain:
    """One incarnation. ``step`` carries out the next decision; everything it knows is in the journal's view."""

    def __init__(
        self, spec: Spec, journal: Journal, accounts: Accounts, client: anthropic.Anthropic, rng: random.Random
    ) -> None:
        self._spec = spec
        self._journal = journal
        self._accounts = accounts
        self._client = client
        self._rng = rng
        self._tools = conversation.cached_tools(tools.definitions())
        self._system = conversation.system_blocks()
        self._fixed_bytes = len(json.dumps([self._tools, self._system]).encode())
        self._counted: tuple[int, int | None] = (-1, None)
        self._patience = _FIRST_PAUSE_S

    def run(self) -> int:
        """Until there is nothing to do. Raises Interruption."""
        while True:
            self._reach_supervisor()
            code = self.step()
            if code is not None:
                return code

    def step(self) -> int | None:
        """Decide and act once; the exit code when the brain is to leave."""
        step = decide.next_step(self._journal.view)
        try:
            match step:
                case decide.Ask():
                    return self._ask(step)
                case decide.Propose():
                    self._append(
                        [self._proposal(call_id, call.tool, call.input, call.ref) for call_id, call in step.calls]
                    )
                case decide.Check():
                    head = self._journal.head
                    self._append(
                        [
                            self._proposal(f"c{head}.{i}", tools.CHECK, {"command": c}, "")
                            for i, c in enumerate(step.commands)
                        ],
                        head,
                    )
                case decide.Say():
                    self._append([t.UserMessage(text=step.text, origin="harness")])
                case decide.Abandon():
                    self._abandon(step.request)
                case decide.Wait():
                    self._journal.follow(_IDLE_S, self._accounts.link)
                case decide.Park():
                    breaker = [] if step.breaker is None else [step.breaker]
                    self._append([*breaker, t.SessionParked(why=step.why, detail=step.detail)])
                    return OK
                case decide.End():
                    self._append(
                        [
                            t.SessionEnded(
                                outcome=step.outcome, reason=step.reason, verified=step.verified, summary=step.summary
                            )
                        ]
                    )
                    return OK
                case decide.Leave():
                    return OK
                case _:
                    assert_never(step)
        except Conflict:
            self._journal.follow(1.0)
        except NoSupervisor:
            pass  # `run` looks for it again before the next step
        return None

    def _append(self, bodies: Sequence[t.Body], head: int | None = None) -> int:
        """Append on the log that was decided on, else Conflict."""
        return self._journal.append(bodies, expect=self._journal.head if head is None else head)

    def _reach_supervisor(self) -> None:
        """Come back only with a supervisor; nothing is appended meanwhile.

        Raises NoSupervisor, Fenced when trying is of no use any more.
        """
        pause = 0.05
        begun = time.monotonic()
        while not self._accounts.alive:
            try:
                self._accounts.connect()
            except (NoSupervisor, Refused) as exc:
                spent = time.monotonic() - begun
                if isinstance(exc, Refused) and spent > _UNKNOWN_S:
                    raise Fenced(f"the supervisor refuses this brain: {exc}") from exc
                if spent > _SUPERVISOR_S:
                    raise NoSupervisor(f"no supervisor for {spent:.0f} s: {exc}") from exc
                self._journal.follow(pause * self._rng.uniform(0.5, 1.0))
                pause = min(_LONGEST_PAUSE_S, pause * 2)
        problems = self._accounts.problems
        self._accounts.problems = []
        if problems:
            self._journal.append([t.HarnessNote(level="warning", text=text, component="brain") for text in problems])

    def _proposal(self, call_id: str, tool: str, given: dict[str, object], ref: str) -> t.ToolProposed:
        data = json.dumps(given, ensure_ascii=False).encode()
        claim = str(given.get("why", ""))[:_CLAIM]
        if len(data) <= BLOB_FROM:
            return t.ToolProposed(call_id=call_id, tool=tool, input=given, ref=ref, claim=claim)
        return t.ToolProposed(
            call_id=call_id,
            tool=tool,
            input_blob=self._journal.put_blob(data, "application/json"),
            ref=ref,
            claim=claim,
        )

    def _abandon(self, request: t.ModelRequest) -> None:
        self._accounts.settle(Reservation(request.reservation, request.reserved_nano), None)
        why = "the brain that sent this request is gone; its outcome is unknown"
        self._journal.append(
            [
                t.ModelFailed(
                    request_id=request.request_id, attempt=request.attempt, kind="cut", message=why, retry_in_s=0.0
                )
            ]
        )

    # -- one attempt -------------------------------------------------------------------------------

    def _ask(self, step: decide.Ask) -> int | None:
        try:
            admitted = self._accounts.admit(self._spec.endpoint)
        except Refused as exc:
            return self._no_money(exc)
        if admitted.held:  # the gate wakes the session when its turn comes
            self._append([t.SessionParked(why="limited", detail=admitted.held, since=admitted.since)])
            return OK
        if self._journal.follow(0.0):
            return None  # something was said while it waited
        head = self._journal.head
        view = self._journal.view
        talk = self._journal.talk.build(view)
        room = max(self._spec.max_tokens, min(_MOST_TOKENS, self._spec.max_tokens << step.room))
        model = self._spec.model
        request = stream.Request(model, room, self._system, self._tools, talk.encoded, step.finish)
        estimate = self._estimate(request, conversation.estimate(view, talk))
        request_id = step.request_id or f"r{head}.{self._spec.gen}"
        try:
            reservation = self._accounts.reserve(request_id, step.attempt, model, estimate, room)
        except Refused as exc:
            return self._no_money(exc)
        self._patience = _FIRST_PAUSE_S
        sent = t.ModelRequest(
            request_id=request_id,
            attempt=step.attempt,
            model=model,
            reservation=reservation.id,
            reserved_nano=reservation.nano,
            est_input=estimate,
            max_tokens=room,
            upto_seq=head,
            delivers=list(talk.delivers),
        )
        try:
            self._append([sent], head)
        except (Conflict, Refused):
            self._accounts.settle(reservation, t.Usage())
            raise
        self._answer(sent, reservation, request, admitted.probe)
        gc.collect()  # the SDK's objects of a request hold each other, and with them its whole body
        return None

    def _estimate(self, request: stream.Request, known: int | None) -> int:
        """Input tokens, never too few: from the newest reply's usage, else counted by the endpoint, else one per
        byte.
        """
        if known is not None:
            return known
        spoken = self._journal.view.newest_user_seq
        if self._counted[0] != spoken or self._counted[1] is None:
            self._counted = (
                spoken,
                stream.count_tokens(self._client, request) if not self._journal.view.failures else None,
            )
        counted = self._counted[1]
        return (
            self._fixed_bytes + conversation.size_bound(json.loads(request.messages))
            if counted is None
            else counted + counted // 20 + 64
        )

    def _no_money(self, exc: Refused) -> int | None:
        """The exit code after a park, or None when the refusal only has to be waited out: the supervisor says meanwhile
        what is in the way.
        """
        if exc.code in _WAITS:
            self._journal.follow(self._patience, self._accounts.link)
            self._patience = min(_LONGEST_PAUSE_S, self._patience * 2)
            return None
        why = exc.code if exc.code in ("cap", "paused") else "error"
        self._append([t.SessionParked(why=why, detail=str(exc))])
        return OK

    def _answer(self, sent: t.ModelRequest, reservation: Reservation, request: stream.Request, probe: bool) -> None:
        """Send, then put the reply or the failure on record, with what it cost.

        A complete reply is kept whatever happens around it.
        """
        key = self._spec.credential.key
        try:
            outcome = (
                stream.attempt(
                    self._client,
                    request,
                    self._watch,
                    stream.Deadlines(*self._spec.deadlines),
                    self._accounts.heard if probe else _nobody,
                )
                if key
                else retry.Failure("auth", "no API key is configured for this endpoint", usage=t.Usage())
            )
        except Stopped:
            self._accounts.settle(reservation, None)
            stopped = t.ModelFailed(
                request_id=sent.request_id,
                attempt=sent.attempt,
                kind="cut",
                message="stopped by the user during the reply",
            )
            self._journal.append([stopped])
            return
        if isinstance(outcome, stream.Reply):
            self._journal.append(self._reply(sent, outcome, reservation))
            return
        message = outcome.message.replace(key, "[the key]") if key else outcome.message
        told = Outcome(outcome.kind, message[:_CLAIM], outcome.retry_after_s, outcome.usage is not None)
        again = self._accounts.settle(reservation, outcome.usage, told).retry_in_s
        failed = t.ModelFailed(
            request_id=sent.request_id,
            attempt=sent.attempt,
            kind=outcome.kind,
            message=message,
            status=outcome.status,
            retry_in_s=again,
            usage=outcome.usage,
        )
        self._journal.append([failed])

    def _reply(self, sent: t.ModelRequest, reply: stream.Reply, reservation: Reservation) -> list[t.Body]:
        parts = blocks.parts_of(reply.content)
        data = msgspec.json.encode(parts)
        inline = len(data) <= BLOB_FROM
        blob = None if inline else self._journal.put_blob(data, "application/json")
        cost = self._accounts.settle(reservation, reply.usage, Outcome("ok", wait_s=reply.used_up_s))
        message = t.ModelMessage(
            request_id=sent.request_id,
            message_id=reply.message_id,
            model=reply.model,
            stop=blocks.STOPS[reply.stop_reason],
            usage=reply.usage,
            cost_nano=cost.nano,
            parts=parts if inline else None,
            parts_blob=blob,
            price_source=cost.source,
            ms=reply.ms,
        )
        if not reply.detail:
            return [message]
        return [
            message,
            t.HarnessNote(
                level="warning",
                text=f"the endpoint gave details on this stop: {reply.detail[:1000]}",
                component="brain",
            ),
        ]

    def _watch(self) -> None:
        """Called at every event of a stream: notice a lost keeper, a newer brain, a stop."""
        self._journal.follow(0.0)
        if self._journal.view.state.desired == "stopped":
            raise Stopped("stopped by the user")


def _nobody() -> None:
    return None


def run(spec: Spec, context: ssl.SSLContext) -> int:
    """Live one brain's life in this process; its exit code."""
    journal = Journal(Path(spec.folder))
    broken = None
    try:
        journal.load()
    except _DAMAGE as exc:
        journal.following = False
        broken = exc
    try:
        journal.join(Path(spec.keeper_socket), spec.gen, spec.secret)
    except Interruption as exc:
        return _say(spec, str(exc), AGAIN)
    try:
        if broken is not None:
            raise broken
        accounts = Accounts(Path(spec.supervisor_socket), spec.sid, spec.gen, spec.secret)
        try:
            client = stream.make_client(spec.credential.base_url, spec.credential.key, context)
        except (httpx2.InvalidURL, ValueError) as exc:
            why = f"the base URL {spec.credential.base_url!r} cannot be used: {exc}"
            return _record(spec, journal, [t.SessionParked(why="error", detail=why)], why, OK)
        return Brain(spec, journal, accounts, client, random.Random()).run()
    except Interruption as exc:
        return _say(spec, str(exc), AGAIN)
    except _DAMAGE as exc:
        return _record(
            spec,
            journal,
            [t.SessionParked(why="error", detail=f"the brain cannot go on with this log: {exc}"[:2000])],
            str(exc),
            OK,
        )
    except Exception as exc:
        traceback.print_exc()
        note = t.HarnessNote(
            level="error",
            text=f"the brain met a defect of its own: {type(exc).__name__}: {exc}"[:2000],
            component="brain",
        )
        return _record(spec, journal, [note], str(exc), DEFECT)
    finally:
        journal.close()


def _record(spec: Spec, journal: Journal, bodies: list[t.Body], said: str, code: int) -> int:
    journal.following = False
    try:
        journal.append(bodies)
    except (Interruption, Refused) as exc:
        return _say(spec, f"{said}; and it could not be put on record: {exc}", AGAIN)
    return _say(spec, said, code)


def _say(spec: Spec, text: str, code: int) -> int:
    print(f"brain of {spec.sid} (gen {spec.gen}): {text}", file=sys.stderr, flush=True)
    return code
