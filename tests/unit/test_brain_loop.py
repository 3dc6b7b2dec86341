"""The decision function against random worlds: whatever the model, the tools, the human and crashes do, the rules of
the loop hold.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from hashlib import sha256
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.agents import steps
from harness.brain import conversation, decide, view_memory
from harness.brain.context.sizes import Sizes
from harness.brain.view import View
from harness.domain.calls.attempt import AT_THE_GATE
from harness.events import message_parts
from harness.events import messages_api as blocks
from harness.events import types as t
from harness.projections import apply
from harness.simulator import validate
from tests.logs import checked_before

TS = "2026-11-21T03:00:00.000Z"


class World:
    """A log in memory: records pass through their JSON form, as on disk."""

    def __init__(
        self,
        *,
        checks: list[str] | None = None,
        goal: str = "make it work",
        max_rounds: int = 3,
        evidence_rounds: int = 0,
        model: str = "claude-sonnet-4-6",
        sizes: Sizes | None = None,
        ways: t.Ways | None = None,
        judge: t.JudgeWanted | None = None,
    ) -> None:
        self.sizes = sizes
        self.records: list[t.Record] = []
        self.view = View()
        self.lean = View()
        self.talk = conversation.Talk()
        self.blobs: dict[str, bytes] = {}
        intent = t.SessionIntent(
            name="n",
            goal=goal,
            repo="/r",
            branch="b",
            worktree="/w",
            model=model,
            checks=checks or [],
            max_rounds=max_rounds,
            evidence_rounds=evidence_rounds,
            ways=ways or t.Ways(),
            judge=judge,
        )
        self.put(intent)
        self.put(t.SessionCreated(base="0" * 40, worktree="/w", branch="b"))
        self.gen = 0
        self.lease()

    def put(self, *bodies: t.Body) -> int:
        for body in bodies:
            wire = msgspec.json.encode(t.to_wire(body)["data"])
            decoded = msgspec.json.decode(wire, type=type(body))
            record = t.Record(self.view.state.seq + 1, TS, "test", 0, decoded)
            self.records.append(record)
            own = isinstance(decoded, t.ModelMessage) and not decoded.purpose
            foreseen = self.foreseen(decoded, record.seq) if isinstance(decoded, t.ModelMessage) and own else ()
            for view in (self.view, self.lean):
                apply.advance(view.state, record)
                view.take(record, lambda ref: self.blobs[ref.sha])
            if own:
                step = decide.next_step(self.view, self.sizes)
                assert foreseen == (step.calls if isinstance(step, steps.Propose) else ()), "kept with its reply"
            if isinstance(body, t.ModelMessage):
                with contextlib.suppress(conversation.Unanswered):
                    self.talk.take(self.lean)
                    self.lean.forget()
                    self.relieve()
        last = self.view.state.seq
        state = self.view.state
        if state.created is not None and (lacking := state.before.lacking(state.criteria)):
            self.put(*checked_before(*lacking))
        return last

    def foreseen(self, reply: t.ModelMessage, seq: int) -> tuple[tuple[str, message_parts.Call], ...]:
        """The calls that are put on record with a reply."""
        parts = reply.parts
        if parts is None:
            assert reply.parts_blob is not None
            try:
                parts = message_parts.decode(self.blobs[reply.parts_blob.sha])
            except ValueError:
                return ()  # damaged: the view says so
        return decide.proposals(self.view, reply, parts, seq)

    def relieve(self) -> None:
        """Another brain goes on with what this one remembered."""
        known = view_memory.encode(self.lean, self.talk)
        if known is not None:
            found = view_memory.decode(known, self.lean.state)
            assert found is not None
            self.lean, self.talk = found

    def lease(self) -> None:
        self.gen += 1
        self.put(t.LeaseGranted(gen=self.gen, epoch=1))

    def step(self) -> decide.Step:
        step = decide.next_step(self.view, self.sizes)
        assert decide.next_step(self.lean, self.sizes) == step, "what a brain forgets decides nothing"
        return step

    def ask(self) -> None:
        step = self.step()
        while isinstance(step, (decide.Shrink, decide.Sum)):
            if isinstance(step, decide.Sum):
                self.summarise(step)
            else:
                self.put(step.change)
            step = self.step()
        assert isinstance(step, decide.Ask), step
        self.request(step)

    def summarise(self, step: decide.Sum, why: str = "") -> None:
        """The model's summary is used, or not."""
        assert self.talk.build(self.lean, "sum up") == conversation.Talk().build(self.view, "sum up")
        data = f"summary {self.view.state.seq}".encode()
        ref = t.BlobRef(sha256(data).hexdigest(), len(data))
        self.blobs[ref.sha] = data
        answered = t.ModelSummary(
            request_id="s", message_id="m", model="m", usage=t.Usage(input=9, output=9), cost_nano=1, why=why
        )
        change = step.change
        compacted = t.ContextCompacted(
            through_seq=change.keep - 1,
            handoff=step.handoff,
            summary=ref,
            tokens_before=change.tokens,
            tokens_after=change.after + len(data),
            trigger=change.trigger,
        )
        self.put(answered, *([] if why else [compacted]))

    def request(self, step: decide.Ask) -> t.ModelRequest:
        whole = conversation.Talk().build(self.view)
        assert self.talk.build(self.lean) == whole, "kept turn by turn, a conversation is what it is when built anew"
        body = t.ModelRequest(
            request_id=step.request_id or f"r{self.view.state.seq}",
            attempt=step.attempt,
            model="m",
            reservation="x",
            reserved_nano=1,
            est_input=1,
            max_tokens=100,
            upto_seq=self.view.state.seq,
        )
        self.put(body)
        return body

    def reply(self, reason: str, *content: dict[str, Any], usage: t.Usage | None = None) -> int:
        return self.put(
            t.ModelMessage(
                request_id="r",
                message_id="m",
                model="m",
                stop=blocks.STOPS.get(reason, reason),
                usage=usage or t.Usage(input=10, output=5),
                cost_nano=1,
                parts=blocks.parts_of(content or [{"type": "text", "text": "hm"}]),
            )
        )

    def fail(self, kind: str, message: str = "no", retry_in_s: float | None = None) -> None:
        self.put(t.ModelFailed(request_id="r1", attempt=1, kind=kind, message=message, retry_in_s=retry_in_s))

    def propose(self) -> list[str]:
        step = self.step()
        assert isinstance(step, steps.Propose), step
        for call_id, use in step.calls:
            self.put(t.ToolProposed(call_id=call_id, tool=use.tool, input=use.input, ref=use.ref))
        return [call_id for call_id, _ in step.calls]

    def end(
        self,
        call_id: str,
        status: str = "ok",
        preview: str = "fine",
        exit_code: int | None = 0,
        files: list[str] | None = None,
    ) -> None:
        self.put(
            t.ToolEnded(call_id=call_id, status=status, preview=preview, exit_code=exit_code, files_changed=files or [])
        )
        if (check := self.view.state.unjudged.get(call_id)) is not None:
            passed = status == "ok" and exit_code == 0
            before = self.view.state.before.word(check.command)
            self.put(t.CheckVerdict(call_id=call_id, command=check.command, passed=passed, before=before))

    def check(self, *codes: int) -> None:
        step = self.step()
        assert isinstance(step, steps.Check), step
        head = self.view.state.seq
        ids = [f"c{head}.{i}" for i in range(len(step.commands))]
        for call_id, command in zip(ids, step.commands, strict=True):
            self.put(t.ToolProposed(call_id=call_id, tool="check", ref="", input={"command": command}))
        for call_id, code in zip(ids, codes, strict=True):
            self.end(call_id, "ok" if code == 0 else "error", "\x1b[1;31mboom\x1b[0m" if code else "", code)


def use(number: int, name: str = "exec", **given: Any) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": f"toolu_{number}",
        "name": name,
        "input": given or {"argv": ["true", str(number)]},
    }


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def shape(view: View) -> list[dict[str, Any]]:
    """The messages, after the vendor's own shape rules were applied to them."""
    messages = conversation.Talk().build(view).messages
    tools = conversation.cached_tools([{"name": "exec", "description": "x", "input_schema": {"type": "object"}}])
    body = {
        "model": "claude-sonnet-4-6",
        "max_tokens": 100,
        "messages": messages,
        "system": conversation.system_blocks("work"),
        "tools": tools,
    }
    validate.check(body)
    marks = sum("cache_control" in b for m in messages for b in m["content"]) + 2
    assert marks <= 4
    return messages


# -- random worlds ---------------------------------------------------------------------------------

REASONS = (
    "end_turn",
    "tool_use",
    "tool_use",
    "tool_use",
    "max_tokens",
    "refusal",
    "model_context_window_exceeded",
    "stop_sequence",
)
FAILS = (
    "auth",
    "rate_limit",
    "spend_limit",
    "overloaded",
    "server",
    "network",
    "cut",
    "invalid",
    "max_tokens",
    "too_large",
    "unusable",
    "model_unknown",
    "redirect",
    "detour",
)


class Play:
    """Drives a world with drawn choices and checks the rules at every step."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw = data.draw
        self.world = World(checks=self.draw(st.sampled_from(([], ["a"], ["a", "b"]))))
        self.delivered: set[str] = set()
        self.proposed: set[str] = set()
        self.uses = 0
        self.over = False

    def act(self) -> None:
        self.outside()
        w = self.world
        step = self.world.step()
        s = w.view.state
        match step:
            case decide.Ask():
                assert s.desired == "running"
                assert not w.view.state.calls.open
                assert s.request is None
                self.asked(step)
            case steps.Propose():
                assert s.desired == "running"
                last = w.view.last_model
                assert last is not None
                assert last.stop == "calls"
                keep = self.draw(st.integers(1, len(step.calls)))  # a crash may leave only the beginning of a batch
                for call_id, one in step.calls[:keep]:
                    assert call_id not in self.proposed
                    self.proposed.add(call_id)
                    w.put(t.ToolProposed(call_id=call_id, tool=one.tool, input=one.input, ref=one.ref))
            case steps.Check():
                head = s.seq
                for i, command in enumerate(step.commands):
                    assert command in s.checks
                    w.put(t.ToolProposed(call_id=f"c{head}.{i}", tool="check", ref="", input={"command": command}))
            case steps.Say():
                assert s.desired == "running"
                w.put(t.UserMessage(text=step.text, origin="harness"))
            case decide.Shrink():
                assert step.change.after <= step.change.tokens
                w.put(step.change)
            case decide.Abandon():
                w.put(
                    t.ModelFailed(
                        request_id=step.request.request_id, attempt=1, kind="cut", message="gone", retry_in_s=0.0
                    )
                )
            case steps.Wait():
                assert w.view.state.calls.open
                self.tool_world()
            case steps.Park():
                w.put(*([step.breaker] if step.breaker else []), t.SessionParked(why=step.why, detail=step.detail))
                self.woken()
            case steps.End():
                assert step.verified == (step.outcome == "done" and bool(s.checks))
                self.over = True
            case steps.Leave():
                self.over = True

    def asked(self, step: decide.Ask) -> None:
        w = self.world
        messages = shape(w.view)
        assert messages[0]["content"][0]["text"] == "make it work"
        results = [b["tool_use_id"] for m in messages for b in m["content"] if b["type"] == "tool_result"]
        uses = [b["id"] for m in messages for b in m["content"] if b["type"] == "tool_use"]
        assert results == uses
        assert len(set(results)) == len(results)
        w.request(step)
        outcome = self.draw(st.sampled_from(("reply", "reply", "reply", "fail", "crash")))
        if outcome == "crash":
            w.lease()
        elif outcome == "fail":
            kind = self.draw(st.sampled_from(FAILS))
            w.fail(
                kind,
                self.draw(st.sampled_from(("no", "prompt is too long: 9 > 8"))),
                self.draw(st.sampled_from((None, 0.0, 1.0, 99.0))),
            )
        else:
            reason = self.draw(st.sampled_from(REASONS))
            blocks = [text(self.draw(st.sampled_from(("hello", "", " "))))]
            if reason == "tool_use":
                for _ in range(self.draw(st.integers(1, 3))):
                    self.uses += 1
                    blocks.append(use(self.uses, argv=[self.draw(st.sampled_from("ab"))]))
            w.reply(reason, *blocks, usage=t.Usage(input=self.draw(st.sampled_from((10, 700_000, 950_000))), output=5))

    def tool_world(self) -> None:
        w = self.world
        call = self.draw(st.sampled_from(sorted(w.view.state.calls.open.values(), key=lambda c: c.call_id)))
        if call.stage in ("proposed", "decided"):
            if call.stage == "decided" and not call.allowed_by:
                w.end(call.call_id, "denied", "not now", None)
            elif call.stage == "decided":
                w.put(t.ToolStarted(call_id=call.call_id, action_hash="h", effect="contained"))
            else:
                verdict = self.draw(st.sampled_from(("allow", "ask")))
                w.put(
                    t.ToolJudged(
                        call_id=call.call_id, action_hash="h", verdict=verdict, rule="r", reason="", policy="p"
                    )
                )
                if verdict == "ask":
                    w.put(
                        t.ApprovalRequested(
                            approval_id=f"a{w.view.state.seq}",
                            kind="tool",
                            title="?",
                            options=["allow"],
                            call_id=call.call_id,
                            action_hash="h",
                        )
                    )
        elif call.stage == "judged":
            w.put(t.ToolStarted(call_id=call.call_id, action_hash="h", effect="contained"))
        elif call.stage == "started":
            if self.draw(st.booleans()):
                code = self.draw(st.sampled_from((0, 1)))
                w.end(
                    call.call_id,
                    self.draw(st.sampled_from(("ok", "error", "timeout"))),
                    "x" * 5000,
                    code,
                    self.draw(st.sampled_from(([], ["f"]))),
                )
            else:
                w.put(t.ToolInDoubt(call_id=call.call_id, why="keeper died"))
        elif call.stage == "in_doubt":
            resolution = self.draw(
                st.sampled_from(("confirmed_done", "confirmed_not_done", "unknown_told_model", "failed"))
            )
            w.put(t.ToolResolved(call_id=call.call_id, resolution=resolution))
        else:
            self.decide()

    def decide(self) -> None:
        w = self.world
        for a in list(w.view.state.approvals.values()):
            decision = self.draw(st.sampled_from(("allow", "deny")))
            w.put(
                t.ApprovalDecided(
                    approval_id=a.approval_id, decision_id="d", decision=decision, call_id=a.call_id, action_hash="h"
                )
            )

    def woken(self) -> None:
        self.decide()
        if self.world.view.state.desired == "paused":
            self.world.put(t.SessionDesired(state="running"))
        self.world.lease()

    def outside(self) -> None:
        event = self.draw(st.sampled_from(("", "", "", "", "", "", "say", "pause", "finish")))
        if event == "say":
            self.world.put(t.UserMessage(text="and please", origin="human"))
        elif event == "pause":
            self.world.put(t.SessionDesired(state="paused"))
        elif event == "finish" and self.draw(st.integers(0, 5)) == 0:
            self.world.put(t.FinishUp(allowance_nano=5))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
@pytest.mark.slow
def test_the_rules_hold_in_every_world(data: st.DataObject) -> None:
    play = Play(data)
    for _ in range(60):
        if play.over:
            break
        play.act()


# -- named cases -----------------------------------------------------------------------------------


def test_without_checks_the_agents_word_ends_it_unverified() -> None:
    w = World()
    w.ask()
    w.reply("end_turn", text("all done"))
    assert w.step() == steps.End("done", "no check was given", summary="all done")


def test_checks_decide_and_failures_go_back_to_the_model() -> None:
    w = World(checks=["make test", "make lint", "make test"])
    w.ask()
    w.reply("end_turn", text("done"))
    w.check(1, 0)
    step = w.step()
    assert isinstance(step, steps.Say)
    assert "$ make test\n[exit 1]\nboom" in step.text
    assert "make lint" not in step.text
    w.put(t.UserMessage(text=step.text, origin="harness"))
    w.ask()
    w.reply("end_turn", text("now it is"))
    w.check(0, 0)
    assert w.step() == steps.End("done", "2 of 2 checks passed: 2 now pass", verified=True, summary="now it is")


def test_rounds_are_bounded() -> None:
    w = World(checks=["false"], max_rounds=2)
    for round_number in (1, 2):
        w.ask()
        w.reply("end_turn")
        w.check(1)
        step = w.step()
        if round_number == 1:
            assert isinstance(step, steps.Say)
            w.put(t.UserMessage(text=step.text, origin="harness"))
    assert isinstance(step, steps.End)
    assert step.outcome == "failed"
    assert "after 2 rounds" in step.reason


def test_a_check_that_could_not_run_parks_and_is_tried_again_by_the_next_brain() -> None:
    w = World(checks=["x"])
    w.ask()
    w.reply("end_turn")
    step = w.step()
    assert isinstance(step, steps.Check)
    call = f"c{w.view.state.seq}.0"
    w.put(t.ToolProposed(call_id=call, tool="check", ref="", input={"command": "x"}))
    w.end(call, "refused", "no sandbox", None)
    assert isinstance(parked := w.step(), steps.Park)
    assert parked.why == "error"
    w.put(t.SessionParked(why="error"))
    w.lease()
    assert w.step() == steps.Check(("x",))


def test_everything_waits_for_a_human_then_park_else_wait() -> None:
    w = World()
    w.ask()
    w.reply("tool_use", use(1), use(2))
    first, second = w.propose()
    assert isinstance(w.step(), steps.Wait)
    for i, call in enumerate((first, second)):
        w.put(
            t.ToolJudged(
                call_id=call, action_hash="h", verdict="ask" if i == 0 else "allow", rule="r", reason="", policy="p"
            )
        )
    w.put(
        t.ApprovalRequested(
            approval_id="a1", kind="tool", title="push?", options=["allow", "deny"], call_id=first, action_hash="h"
        )
    )
    assert isinstance(w.step(), steps.Wait)
    w.put(t.ToolStarted(call_id=second, action_hash="h", effect="contained"))
    w.end(second)
    step = w.step()
    assert isinstance(step, steps.Park)
    assert step.why == "approval"


@pytest.mark.parametrize("kind", ["invalid", "refused", "other"])
def test_failures_of_the_conversation_park_at_once(kind: str) -> None:
    w = World()
    w.ask()
    w.fail(kind, "the reason")
    step = w.step()
    assert isinstance(step, steps.Park)
    assert step.why == "error"
    assert "the reason" in step.detail


@pytest.mark.parametrize("kind", sorted(AT_THE_GATE))
def test_trouble_of_the_endpoint_never_ends_a_session(kind: str) -> None:
    """However often it fails, the next thing is to ask again: when, and whether a person has to act first, is for the
    gate to say.
    """
    w = World()
    for number in range(1, 40):
        step = w.step()
        assert isinstance(step, decide.Ask)
        assert step.attempt == number
        w.request(step)
        w.fail(kind, retry_in_s=None)


def test_the_request_of_the_endpoint_holds_nobody() -> None:
    w = World()
    w.put(t.ApprovalRequested(approval_id="a1", kind="auth", title="no key", options=["retry", "stop"]))
    assert w.step() == decide.Ask()
    w.put(t.ApprovalRequested(approval_id="a2", kind="question", title="?", options=["answer"]))
    assert isinstance(w.step(), steps.Park)


def test_refusal_parks_and_its_text_leaves_the_conversation() -> None:
    w = World()
    w.ask()
    w.reply("refusal", text("I will not"))
    step = w.step()
    assert step == steps.Park("refusal", "I will not")
    w.put(t.SessionParked(why="refusal"))
    w.lease()
    assert w.step() == decide.Ask()
    assert len(shape(w.view)) == 1


@pytest.mark.parametrize("kind", ["max_tokens", "too_large", "unusable"])
def test_cut_calls_get_a_nudge_and_more_room_then_park(kind: str) -> None:
    w = World()
    for number in range(1, 4):
        step = w.step()
        assert isinstance(step, decide.Ask)
        assert step.room == min(2, number - 1)
        w.request(step)
        w.fail(kind)
        if number < 3:
            nudge = w.step()
            assert isinstance(nudge, steps.Say)
            w.put(t.UserMessage(text=nudge.text, origin="harness"))
    assert isinstance(w.step(), steps.Park)


def test_who_wrote_a_call_that_cannot_be_used_reads_why() -> None:
    w = World()
    w.ask()
    w.fail("unusable", "the input of exec is not valid JSON")
    step = w.step()
    assert isinstance(step, steps.Say)
    assert "the input of exec is not valid JSON" in step.text


def test_pause_turn_is_resent_unchanged() -> None:
    w = World()
    w.ask()
    w.reply("pause_turn", text("one moment"))
    assert w.step() == decide.Ask()
    assert conversation.Talk().build(w.view).messages[-1] == {"role": "assistant", "content": [text("one moment")]}


@pytest.mark.parametrize("between", ["", "ok", "error"])
def test_three_denials_in_a_row_wait_for_a_person(between: str) -> None:
    w = World()
    for turn, status in enumerate(["denied", "denied", between, "denied", "denied", "denied"]):
        if status:
            step = w.step()
            assert isinstance(step, decide.Ask), f"{turn} is too early"
            w.request(step)
            w.reply("tool_use", use(turn, argv=[str(turn)]))
            for call in w.propose():
                w.end(call, status, f"Denied by you:\n\x1b[31mno {turn}", 1)
            if status == "denied" and turn == 3 and not between:
                break
    step = w.step()
    assert isinstance(step, steps.Park)
    assert (step.why, step.breaker and (step.breaker.kind, step.breaker.count)) == ("breaker", ("denials", 3))
    assert f"no {5 if between else 3}" in step.detail
    assert "\n" not in step.detail
    assert step.breaker is not None
    w.put(step.breaker, t.SessionParked(why="breaker", detail=step.detail))
    w.lease()
    assert isinstance(w.step(), decide.Ask), "the count begins anew"


@pytest.mark.parametrize("kind", ["same_call", "tool_errors", "no_progress"])
def test_breakers_open_once_and_start_anew(kind: str) -> None:
    w = World()
    turns = 0
    while isinstance(step := w.step(), decide.Ask):
        w.request(step)
        turns += 1
        w.reply("tool_use", use(turns, argv=["x"]) if kind == "same_call" else use(turns, "read_file", path=str(turns)))
        for call in w.propose():
            if kind == "tool_errors":
                w.end(call, "error", "no", 1)
            else:
                w.end(call, files=["f"] if kind == "same_call" else None)
    assert isinstance(step, steps.Park)
    assert step.why == "breaker"
    _, call, came = step.detail.split("\n")
    assert call == ("x" if kind == "same_call" else f"read {turns}")
    assert came == {"same_call": "fine", "tool_errors": "no", "no_progress": "1 line"}[kind]
    assert step.breaker is not None
    assert step.breaker.kind == kind
    assert turns == {"same_call": 5, "tool_errors": 10, "no_progress": 20}[kind]
    w.put(step.breaker, t.SessionParked(why="breaker"))
    w.put(t.ApprovalRequested(approval_id="a1", kind="question", title="go on?", options=["answer"]))
    assert isinstance(w.step(), steps.Park)
    w.put(t.ApprovalDecided(approval_id="a1", decision_id="d", decision="answer"))
    w.lease()
    assert w.step() == decide.Ask()


@pytest.mark.parametrize("length", [2, 3, 5])
def test_calls_that_alternate_are_a_circle_also_when_they_change_files(length: int) -> None:
    w = World()
    turns = 0
    while isinstance(step := w.step(), decide.Ask):
        w.request(step)
        w.reply("tool_use", use(turns, argv=["sh", "-c", f"echo {turns % length} > x"]))
        turns += 1
        for call in w.propose():
            w.end(call, files=["x"])
    assert isinstance(step, steps.Park)
    assert step.breaker is not None
    assert (step.breaker.kind, step.breaker.count, turns) == ("circle", 6, 6 * length)
    w.put(step.breaker, t.SessionParked(why="breaker"))
    w.lease()
    assert isinstance(w.step(), decide.Ask), "the count begins anew"


def test_the_same_test_between_edits_that_differ_is_no_circle() -> None:
    w = World()
    for turn in range(15):
        step = w.step()
        assert isinstance(step, decide.Ask), turn
        w.request(step)
        w.reply("tool_use", use(2 * turn, argv=["edit", str(turn)]), use(2 * turn + 1, argv=["pytest"]))
        for call in w.propose():
            w.end(call, files=["x"])


def test_turns_with_commands_may_change_files_unseen_and_weigh_less() -> None:
    w = World()
    turns = 0
    while isinstance(step := w.step(), decide.Ask):
        w.request(step)
        turns += 1
        w.reply("tool_use", use(turns))
        for call in w.propose():
            w.end(call)
    assert turns == 60


def test_finish_up_is_one_last_reply_without_tools() -> None:
    w = World(checks=["a"])
    w.ask()
    w.reply("tool_use", use(1))
    (call,) = w.propose()
    w.end(call)
    w.put(t.FinishUp(allowance_nano=5))
    step = w.step()
    assert isinstance(step, decide.Ask)
    assert step.finish
    assert "last reply" in shape(w.view)[-1]["content"][-1]["text"]
    w.request(step)
    w.reply("end_turn", text("half of it is done"))
    w.check(1)
    end = w.step()
    assert isinstance(end, steps.End)
    assert (end.outcome, end.verified, end.summary) == ("failed", False, "half of it is done")


def test_a_raise_after_finish_up_goes_on_within_the_new_cap_alone() -> None:
    w = World(checks=["a"])
    w.ask()
    w.reply("tool_use", use(1))
    (call,) = w.propose()
    w.end(call)
    w.put(t.FinishUp(allowance_nano=5), t.CapsRaised(caps=t.Caps(usd_nano=9)))
    step = w.step()
    assert isinstance(step, decide.Ask)
    assert not step.finish
    assert w.view.state.finish_up is None


@pytest.mark.parametrize("when", ["before the request", "while it is asked", "after the reply"])
def test_what_is_said_while_it_finishes_up_has_its_last_reply_too(when: str) -> None:
    w = World(checks=["a"])
    w.ask()
    w.reply("tool_use", use(1))
    (call,) = w.propose()
    w.end(call)
    w.put(t.FinishUp(allowance_nano=5))
    said = (t.UserMessage(text="and the tests?", origin="human"), t.FinishUp(allowance_nano=9))
    if when == "before the request":
        w.put(*said)
    w.ask()
    if when == "while it is asked":
        w.put(*said)
    w.reply("end_turn", text("half of it is done"))
    if when == "after the reply":
        w.put(*said)
    step = w.step()
    if when != "before the request":
        assert isinstance(step, decide.Ask)
        assert step.finish
        assert "and the tests?" in json.dumps(shape(w.view))
        w.request(step)
        w.reply("end_turn", text("no tests yet"))
    w.check(1)
    end = w.step()
    assert isinstance(end, steps.End)
    assert end.summary == ("half of it is done" if when == "before the request" else "no tests yet")


def test_what_is_said_while_its_closing_reply_is_on_its_way_is_answered() -> None:
    w = World()
    w.ask()
    w.put(t.UserMessage(text="and the tests?", origin="human"))
    w.reply("end_turn", text("all done"))
    step = w.step()
    assert isinstance(step, steps.Say)
    w.put(t.UserMessage(text=step.text, origin="harness"))
    w.ask()
    w.reply("end_turn", text("the tests too"))
    end = w.step()
    assert isinstance(end, steps.End)
    assert end.summary == "the tests too"


@pytest.mark.parametrize("state", ["paused", "stopped"])
def test_nothing_is_proposed_or_asked_against_the_users_will(state: str) -> None:
    w = World()
    w.ask()
    w.reply("tool_use", use(1))
    w.put(t.SessionDesired(state=state))
    assert isinstance(w.step(), steps.Park if state == "paused" else steps.Leave)


def test_an_attempt_of_a_dead_brain_is_given_up_first() -> None:
    w = World()
    w.ask()
    w.lease()
    step = w.step()
    assert isinstance(step, decide.Abandon)
    w.put(t.ModelFailed(request_id=step.request.request_id, attempt=1, kind="cut", message="gone", retry_in_s=0.0))
    again = w.step()
    assert again == decide.Ask(attempt=2, request_id=step.request.request_id)


def test_a_window_overflow_clears_more_each_time_then_parks() -> None:
    w = World()
    for number in range(1, 9):
        w.ask()
        w.reply("tool_use", use(number))
        for call in w.propose():
            w.end(call, preview="y" * 4000, files=["f"])
    sizes = []
    for _ in range(4):
        w.ask()
        sizes.append(conversation.size_bound(shape(w.view)))
        w.fail("too_long", "prompt is too long: 210000 tokens > 200000 maximum")
    assert sizes[2] < 2000 < sizes[1] < 8000 < 8 * 4000 < sizes[0]
    assert sizes[3] < sizes[2], "only the hand-off is left"
    assert isinstance(w.step(), steps.Park)


def turns_until_no_progress(w: World, one_turn: Callable[[int], None], most: int = 100) -> int:
    """How many turns go by until the breaker opens; ``most`` when it does not."""
    for turn in range(most):
        step = w.step()
        if isinstance(step, steps.Park):
            assert step.breaker is not None
            assert step.breaker.kind == "no_progress"
            return turn
        assert isinstance(step, decide.Ask)
        w.request(step)
        one_turn(turn)
    return most


def played(
    w: World, name: str, *, worked: int = 0, files: list[str] | None = None, snapshot: bool = True
) -> Callable[[int], None]:
    """A turn with one call, before which the keeper saw ``worked`` names changed."""

    def one_turn(turn: int) -> None:
        w.reply("tool_use", use(turn, name, path=str(turn)) if name.endswith("file") else use(turn))
        for call in w.propose():
            kept = {"snapshot": f"s{turn}.aa", "worked": worked} if snapshot else {}
            w.put(t.ToolJudged(call_id=call, action_hash="h", verdict="allow", rule="r", reason="", policy="p"))
            w.put(t.ToolStarted(call_id=call, action_hash="h", effect="contained", **kept))
            w.end(call, files=files)

    return one_turn


@pytest.mark.parametrize(
    ("name", "worked", "files", "snapshot", "turns"),
    [
        ("exec", 1, None, True, 100),  # a command that edits with sed or commits
        ("exec", 0, None, True, 60),
        ("exec", 0, None, False, 60),
        ("write_file", 1, ["f"], True, 100),
        ("write_file", 0, ["f"], True, 20),  # the same content again and again
        ("write_file", 0, ["f"], False, 100),  # no state is kept: its own word is all there is
        ("read_file", 0, None, False, 20),
    ],
)
def test_progress_is_what_changed_and_not_what_a_tool_is_called(
    name: str, worked: int, files: list[str] | None, snapshot: bool, turns: int
) -> None:
    w = World()
    assert turns_until_no_progress(w, played(w, name, worked=worked, files=files, snapshot=snapshot)) == turns


@pytest.mark.parametrize(("codes", "opens"), [((1, 1, 1, 1, 1, 1), True), ((1, 2, 1, 2, 1, 2), False)])
def test_a_check_with_another_result_is_progress_and_the_same_result_is_none(
    codes: tuple[int, ...], opens: bool
) -> None:
    w = World(checks=["pytest"], max_rounds=9)
    opened = False
    for code in codes:
        opened = opened or turns_until_no_progress(w, played(w, "exec"), 14) < 14
        if opened:
            break
        w.ask()
        w.reply("end_turn", text("done"))
        w.check(code)
        said = w.step()
        assert isinstance(said, steps.Say)
        w.put(t.UserMessage(text=said.text, origin="harness"))
    assert opened == opens


def test_a_reboot_is_told_to_the_model_once() -> None:
    w = World()
    w.ask()
    w.reply("tool_use", use(1))
    (call,) = w.propose()
    w.put(t.HarnessNote(level="warning", text="The machine was started anew.", component="reboot"))
    w.end(call)
    assert w.step() == decide.Ask()
    assert [b["type"] for b in shape(w.view)[-1]["content"]] == ["tool_result", "text"]
    assert shape(w.view)[-1]["content"][1]["text"] == "The machine was started anew."
    w.ask()
    w.reply("end_turn", text("done"))
    w.put(t.HarnessNote(level="warning", text="of no concern to it", component="workspace"))
    assert isinstance(w.step(), steps.End)
    assert sum("started anew" in str(message) for message in conversation.Talk().build(w.view).messages) == 1
