"""A context that never fills: whatever a session does, its requests stay within the working size, begin with the goal
in its own words, and know by name what the log knows of earlier.
"""

from __future__ import annotations

import json
import random
import re
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.agents import steps
from harness.brain import conversation, decide
from harness.brain.context import room
from harness.brain.context.clearing import cleared_input, cleared_result
from harness.brain.context.handoff import CARRIED_BYTES, MOST_BYTES, carried, handoff
from harness.brain.context.handoff_facts import CHECK, COMMIT, Facts
from harness.brain.context.sizes import Sizes, TurnSize, tokens
from harness.events import types as t
from harness.reports.describe import describe
from harness.simulator.script import earlier_turns, goal_of
from tests.unit.test_brain_loop import World, shape, text, use

GOAL = "  Make the *whole* suite pass.\n\tNothing else ™.  "
NAMED = re.compile(r" \[#(\d+)\]$")
FIXED = 4000
"""Tokens of the system prompt and the tools."""


def size_of(w: World) -> int:
    """Tokens of the next request, as a model would report them."""
    return FIXED + len(json.dumps(conversation.Talk().build(w.view).messages).encode()) // 4


def work(w: World, turn: int, rng: random.Random) -> int:
    """One turn of a coding agent; the size of the request that it took."""
    w.ask()
    size = size_of(w)
    bound = conversation.estimate(w.view, conversation.Talk().build(w.view))
    assert bound is None or bound >= size, "what is reserved covers what is sent"
    calls = [
        use(turn * 10, "write_file", path=f"src/m{turn % 7}.py", content=f"line {turn}\n" * rng.choice([3, 200, 900])),
        use(turn * 10 + 1, "exec", argv=["git", "commit", f"-m{turn}"] if turn % 6 == 5 else ["make", f"p{turn % 5}"]),
    ]
    said = len(json.dumps(calls)) // 4 + 60
    w.reply("tool_use", text(f"Now part {turn}."), *calls, usage=t.Usage(input=size, output=said))
    written, ran = w.propose()
    w.end(written, preview="created", files=[f"src/m{turn % 7}.py"])
    bad = rng.random() < 0.3
    if turn % 6 == 5 and not bad:
        w.put(t.WorkCommitted(head=f"{turn:040x}", before="0" * 40, commits=[t.Commit(f"{turn:07x}", f"Part {turn}")]))
    w.end(
        ran, "error" if bad else "ok", f"{'broken' if bad else 'built'} {turn}\n" * rng.choice([1, 80, 400]), int(bad)
    )
    return size


def long_work(turns: int, sizes: Sizes, **world: Any) -> tuple[World, list[int]]:
    w = World(goal=GOAL, checks=["make test", "make lint"], sizes=sizes, **world)
    rng = random.Random(7)
    return w, [work(w, turn, rng) for turn in range(turns)]


def changes(w: World) -> list[t.ContextCleared | t.ContextReset]:
    return [r.body for r in w.records if isinstance(r.body, (t.ContextCleared, t.ContextReset))]


def test_requests_stay_within_the_working_size_and_begin_with_the_goal() -> None:
    sizes = Sizes(working=24_000)
    w, seen = long_work(260, sizes)
    assert max(seen) <= sizes.working
    resets = [c for c in changes(w) if isinstance(c, t.ContextReset)]
    assert len(resets) >= 20
    messages = shape(w.view)
    assert messages[0]["content"][0]["text"] == GOAL
    assert messages[0]["content"][1]["text"].split("\n")[1:] == ["- make test", "- make lint"]
    assert messages[0]["content"][2]["text"] == resets[-1].handoff
    calls = [b["id"] for m in messages for b in m["content"] if b["type"] == "tool_use"]
    assert calls == [b["tool_use_id"] for m in messages for b in m["content"] if b["type"] == "tool_result"]
    shown = sum(m["role"] == "assistant" for m in messages)
    assert earlier_turns(messages) + shown == len(seen), "the hand-off says how much it stands for"
    assert goal_of(messages) == GOAL
    for change in changes(w):
        assert change.after < change.tokens
        assert change.tokens - change.after >= sizes.pays - 1, "each change pays for the cache that it breaks"


@pytest.mark.parametrize("window", [200_000, 1_000_000])
@pytest.mark.slow
def test_five_hundred_turns_overflow_no_window_and_stay_within_the_working_size(window: int) -> None:
    sizes = Sizes(window=window)
    w, seen = long_work(500, sizes)
    assert max(seen) <= sizes.working
    assert sum(isinstance(c, t.ContextReset) for c in changes(w)) >= 10
    assert not any(isinstance(r.body, t.ModelFailed) for r in w.records)


def test_every_line_of_a_hand_off_names_its_record() -> None:
    w, _ = long_work(120, Sizes(working=30_000))
    w.put(t.UserMessage(text="Leave the\nlicence alone.", origin="human"))
    for turn in range(200, 230):
        work(w, turn, random.Random(turn))
    last = next(r.body for r in reversed(w.records) if isinstance(r.body, t.ContextReset))
    lines = [line for line in last.handoff.split("\n") if line.startswith("- ")]
    assert len(lines) > 12
    assert "Leave the licence alone." in last.handoff
    for line in lines:
        named = NAMED.search(line)
        assert named is not None, line
        record = w.records[int(named[1])]
        told = line.removesuffix(named[0])
        data = json.dumps(msgspec.to_builtins(record.body))
        assert record.seq == int(named[1])
        match record.body:
            case t.SessionIntent():
                assert "not run yet: make" in told
            case t.UserMessage(text=said):
                assert " ".join(said.split()) in told
            case t.ToolEnded(status=status):
                path = re.match(r"- (src/m\d\.py) \(write_file\)", told)
                assert path[1] in data if path else status in ("ok", "error")
                assert "git commit" not in told or ("exit 1" in told) == (status == "error")
                assert ("broken" in data) == ("broken" in told)
            case t.WorkCommitted(commits=[one]):
                assert told == f"- {one.id} {one.subject}"
            case t.ModelMessage():
                assert "Now part" in told
                assert re.search(r"Now part \d+", told)[0] in data  # type: ignore[index]
            case other:
                raise AssertionError(f"{line}: {other}")


PLAN = t.PlanLoaded(
    path="prd.json",
    form="tasks",
    entries=[
        t.PlanEntry("US-1", "Parse", ["one"]),
        t.PlanEntry("US-2", "Page", ["two"]),
        t.PlanEntry("US-3", "Ship", []),
    ],
)


def handed(*bodies: t.Body) -> dict[str, int]:
    """What the hand-off after these records says, each line with the record that it names, by its place among them."""
    w = World(goal=GOAL)
    first = w.view.state.seq + 1
    w.put(*bodies)
    made = handoff(w.view.facts, w.view.state, w.view.state.seq + 1, 0)
    found = {}
    for said in made.split("\n"):
        if (named := NAMED.search(said)) is not None:
            found[said.removesuffix(named[0])] = int(named[1]) - first
    return found


def test_a_hand_off_says_where_the_plan_stands_and_what_was_tried_in_vain() -> None:
    told = handed(
        PLAN,
        t.PlanUpdated(call_id="c1.0", steps=["read", "write"]),
        t.PlanUpdated(call_id="c2.0", trigger="assumption", reason="the API has no paging", steps=["page by hand"]),
        t.PlanUpdated(call_id="c3.0", entry="US-2", note="the port is 8080"),
        t.PlanUpdated(call_id="c4.0", entry="US-3", state="blocked", reason="the key is missing"),
        t.PlanFlipped(entry="US-1", passes=True, why="one passed", calls=[]),
        t.ApproachFailed(entry="US-2", what="I asked for all pages at once", why="two (exit 1)"),
    )
    assert told == {
        "- US-2: “the port is 8080”": 3,
        "- US-3 is blocked: “the key is missing”": 4,
        "- 1 of 3 entries of prd.json pass; the harness sets that by their criteria: leave the file as it is": 5,
        "- next: US-2: Page": 5,
        "- 1. page by hand": 2,
        "- assumed, and proved wrong: “the API has no paging”": 2,
        "- US-2: “I asked for all pages at once”: two (exit 1)": 6,
    }


def test_a_hand_off_names_the_entry_at_hand_and_nothing_that_is_no_longer_so() -> None:
    given_out = t.IterationStarted(n=4, entry="US-3", attempt=2, digest="")
    blocked = t.PlanUpdated(call_id="c4.0", entry="US-3", state="blocked", reason="the key is missing")
    told = handed(PLAN, blocked, given_out)
    assert told["- at hand: US-3, attempt 2"] == 2
    assert not any("blocked" in line or "next:" in line for line in told)
    told = handed(PLAN, t.PlanUpdated(call_id="c1.0", entry="US-2", state="in_progress"))
    assert told["- at hand: US-2"] == 1
    verdict = t.CheckVerdict(call_id="c7.0", command="two", passed=False)
    told = handed(
        PLAN,
        t.IterationStarted(n=4, entry="US-2", attempt=1, digest=""),
        verdict,
        t.IterationEnded(n=4, entry="US-2", outcome="failed"),
    )
    assert told["- next: US-1: Parse"] == 0
    assert told["- US-2 failed"] == 3


def judged(*commands: str, bad: str = "") -> list[t.Body]:
    """Each of the checks run, ended and judged."""
    made: list[t.Body] = []
    for n, command in enumerate(commands):
        code = int(command == bad)
        made += [
            t.ToolProposed(call_id=f"c9.{n}", tool="check", ref="", input={"command": command}),
            t.ToolEnded(call_id=f"c9.{n}", status="error" if code else "ok", exit_code=code),
            t.CheckVerdict(call_id=f"c9.{n}", command=command, passed=not code),
        ]
    return made


def test_every_criterion_has_its_own_state_however_many_and_however_alike() -> None:
    checks = [f"{'x' * 400} {n}" for n in range(40)]
    w = World(goal=GOAL, checks=checks)
    first = w.view.state.seq + 1
    w.put(*judged(*checks[:39], bad=checks[7]))
    made = handoff(w.view.facts, w.view.state, w.view.state.seq + 1, 0)
    assert f"- fails (exit 1): {checks[7]} [#{first + 3 * 7 + 2}]" in made
    assert f"- not run yet: {checks[39]} [#0]" in made
    assert f"- passes: {checks[38]} [#{first + 3 * 38 + 2}]" in made
    assert len(made.encode()) <= MOST_BYTES


def test_a_criterion_that_exits_with_0_and_does_not_count_does_not_pass_in_a_hand_off() -> None:
    w = World(goal=GOAL, checks=["pytest"])
    run, ended, _ = judged("pytest")
    seq = w.put(run, ended, t.CheckVerdict(call_id="c9.0", command="pytest", passed=False, why="0 tests ran"))
    assert f"- fails (0 tests ran): pytest [#{seq}]" in handoff(w.view.facts, w.view.state, seq + 1, 0)


def test_with_a_task_at_hand_a_hand_off_names_its_criteria_and_not_those_of_all_tasks() -> None:
    w = World(goal=GOAL, checks=["one", "two", "lint"])
    w.put(PLAN, t.IterationStarted(n=1, entry="US-2", attempt=1, digest=""))
    made = handoff(w.view.facts, w.view.state, w.view.state.seq + 1, 0)
    assert "not run yet: two" in made
    assert "not run yet: lint" in made
    assert "not run yet: one" not in made


def start(call_id: str, *names: str, snapshot: str = "s1") -> t.ToolStarted:
    return t.ToolStarted(
        call_id=call_id, action_hash="", effect="contained", snapshot=snapshot, worked=len(names), worked_names=[*names]
    )


def test_files_that_commands_changed_are_named_by_the_state_before_the_next_call() -> None:
    told = handed(
        start("c1.0"),
        start("c2.0", "src/made by sh.py", "src/b.py"),
        t.ToolProposed(call_id="c3.0", tool="write_file", ref="t", input={"path": "src/b.py", "content": ""}),
        start("c4.0", snapshot=""),
        start("c5.0", "src/b.py"),
    )
    assert told == {"- src/made by sh.py (seen changed)": 1, "- src/b.py (seen changed)": 4}


def committed(*subjects: str) -> t.WorkCommitted:
    return t.WorkCommitted(head="1" * 40, before="0" * 40, commits=[t.Commit("7dec9de", one) for one in subjects])


@pytest.mark.parametrize(
    ("command", "seen", "boundary"),
    [
        ("make release", committed("Release it"), COMMIT),
        ("git commit -m done || true", None, ""),
        ("grep -r 'git commit' docs", None, ""),
        ("git reset --hard HEAD~1", committed(), ""),
    ],
)
def test_a_commit_ends_a_task_and_the_context_begins_anew_when_it_is_worth_it(
    command: str, seen: t.WorkCommitted | None, boundary: str
) -> None:
    """What the repository has counts, whatever the command is called."""
    sizes = Sizes(working=40_000)
    w = World(goal=GOAL, sizes=sizes)
    for turn in range(6):
        w.ask()
        w.reply("tool_use", use(turn, "read_file", path=f"a{turn}"), usage=t.Usage(input=4000 * turn, output=1))
        w.end(w.propose()[0], preview="y" * 12_000)
    w.ask()
    w.reply("tool_use", use(99, "shell", script=command), usage=t.Usage(input=20_000, output=1))
    w.end(w.propose()[0])
    if seen is not None:
        w.put(seen)
    assert w.view.facts.boundary == boundary
    step = w.step()
    assert isinstance(step, decide.Shrink) == bool(boundary)
    if isinstance(step, decide.Shrink):
        assert isinstance(step.change, t.ContextReset)
        assert COMMIT in step.change.trigger
        assert "Release it" in step.change.handoff
        w.put(step.change)
        assert w.view.facts.boundary == ""
        assert isinstance(w.step(), decide.Ask)


def test_a_check_that_counts_ends_a_task() -> None:
    facts = Facts()
    facts.advance(record(4, t.CheckVerdict(call_id="c2.0", command="make", passed=False, why="0 tests ran")))
    assert facts.boundary == ""
    facts.advance(record(5, t.CheckVerdict(call_id="c3.0", command="make", passed=True)))
    assert facts.boundary == CHECK


def record(seq: int, body: t.Body) -> t.Record:
    return t.Record(seq, "2026-11-21T03:00:00.000Z", "test", 0, body)


def test_what_cannot_fit_is_never_sent() -> None:
    w = World(goal="x" * 900_000, model="somebody-else")
    step = w.step()
    assert isinstance(step, steps.Park)
    assert "over the 176,463 that somebody-else can be sent" in step.detail


def test_a_flood_of_results_is_shown_in_parts_and_fits() -> None:
    w = World(goal=GOAL)
    w.ask()
    w.reply("tool_use", *(use(i) for i in range(120)), usage=t.Usage(input=5000, output=9000))
    for call_id in w.propose():
        w.end(call_id, preview=f"{call_id} " * 1500)
    w.ask()
    assert size_of(w) < 40_000
    results = [b for b in shape(w.view)[-1]["content"] if b["type"] == "tool_result"]
    assert len(results) == 120
    assert all("read_output with call" in b["content"] for b in results)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30).map(lambda s: s * 30)
INPUTS = st.dictionaries(
    st.sampled_from(["path", "content", "old", "new", "script", "argv", "limit", "all"]),
    TEXTS | st.integers() | st.booleans() | st.lists(TEXTS, max_size=5),
)


@given(INPUTS)
def test_a_cleared_input_is_short_of_the_same_shape_and_stays_as_it_is(given_input: dict[str, Any]) -> None:
    short = cleared_input(given_input)
    assert short.keys() == given_input.keys()
    assert all(type(short[name]) is type(value) for name, value in given_input.items())
    assert cleared_input(short) == short
    assert all(len(json.dumps(value, ensure_ascii=False).encode()) < 900 for value in short.values())


@given(TEXTS)
def test_a_cleared_result_says_how_to_read_it(output: str) -> None:
    short = cleared_result(output, "c12.0")
    assert len(short.encode()) <= 400
    assert short == output or (f"{len(output.encode())} bytes" in short and "call c12.0" in short)
    assert cleared_result(short, "c12.0") == short


@given(
    st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 100)), max_size=30),
    st.integers(0, 1_200_000),
    st.sampled_from(["", COMMIT]),
    st.integers(0, 3),
    st.sampled_from([200_000, 1_000_000]),
)
def test_a_change_pays_or_is_forced(
    turns: list[tuple[int, int]], now: int, boundary: str, overflows: int, window: int
) -> None:
    held = [TurnSize(seq, size, size * share // 100) for seq, (size, share) in enumerate(turns)]
    sizes = Sizes(window=window)
    change = room.due(room.Measure(now, held, boundary, overflows), sizes)
    if change is None:
        assert now <= sizes.most
        return
    if isinstance(change, room.Full):
        assert now > sizes.most
        assert len(held) <= 1
        return
    assert now >= sizes.boundary_at or overflows
    assert change.after <= change.tokens == now
    if isinstance(change, room.Reset):
        assert any(size.seq == change.keep for size in held), "it begins with a turn of the model"
        if not overflows and now <= sizes.most:
            assert tokens(held[: change.keep]) - room.HANDOFF_TOKENS >= sizes.pays
            assert len(held) - change.keep <= room.KEEP_TURNS


HOSTILE = st.text(max_size=80).map(lambda s: s * 20)


@given(st.lists(st.tuples(HOSTILE, HOSTILE), max_size=60), st.lists(HOSTILE, max_size=3))
def test_a_hand_off_is_bounded_and_no_quoted_line_passes_for_its_own(
    calls: list[tuple[str, str]], checks: list[str]
) -> None:
    w = World(goal=GOAL, checks=[c for c in checks if c.strip()])
    facts = w.view.facts
    seq = w.view.state.seq
    for said, gave in calls:
        seq += 2
        facts.advance(record(seq, t.UserMessage(text=said, origin="human")))
        facts.asked["c1.0"] = facts.asked.get("c1.0") or _asked(said)
        facts.advance(
            record(seq + 1, t.ToolEnded(call_id="c1.0", status="error", preview=gave, files_changed=[said[:50]]))
        )
    goes = calls[0][0] if calls else "x"
    made = handoff(facts, w.view.state, seq + 9, 0)
    assert len(made.encode("utf-8", "replace")) <= MOST_BYTES
    facts.advance(record(seq + 3, t.IterationEnded(n=1, entry=goes, outcome="failed", reason=goes)))
    left = carried(facts)
    assert len(left.encode("utf-8", "replace")) <= CARRIED_BYTES
    assert all(NAMED.search(line) for line in left.split("\n") if line.startswith("- "))
    own = [line for line in made.split("\n") if line.startswith("- ")]
    criteria = len(w.view.state.checks)
    assert all(NAMED.search(line) for line in own[criteria:])


def _asked(said: str) -> Any:
    from harness.brain.context.handoff_facts import Asked, line

    return Asked("exec", line(said))


def test_a_change_has_words_and_counts() -> None:
    w, _ = long_work(30, Sizes(working=30_000))
    context = w.view.state.context
    assert context.clearings + context.resets == len(changes(w)) > 0
    cleared = t.ContextCleared(before=3, tokens=48_000, after=12_000, trigger="48,000 tokens are 60 %")
    line = describe(record(9, cleared))
    assert (line.kind, line.summary) == (
        "context",
        "older outputs and inputs cleared, 48,000 → about 12,000 tokens: 48,000 tokens are 60 %",
    )


def test_a_reply_without_a_word_is_no_turn_to_begin_anew_at() -> None:
    w = World(goal=GOAL)
    w.ask()
    spoken = w.reply("end_turn", text("word " * 400))
    w.put(t.UserMessage(text="go on", origin="human"))
    w.ask()
    w.reply("end_turn", text(" \n"))
    w.put(t.UserMessage(text="are you there?", origin="human"))
    assert [size.seq for size in w.view.sizes] == [spoken]
    w.put(t.ContextReset(keep=spoken, handoff="So it was.", tokens=900, after=400, trigger="a test"))
    w.ask()
    w.reply("end_turn", text("yes"))
    w.put(t.UserMessage(text="good", origin="human"))
    roles = [m["role"] for m in shape(w.view)]
    assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    assert "are you there?" in json.dumps(shape(w.view))


def test_before_a_reply_has_measured_it_a_request_counts_with_its_tools_and_criteria() -> None:
    w = World(goal="g" * 4000, checks=["true " * 200])
    sizes = Sizes(window=3000, output=0, fixed=1500)
    assert w.view.measure().now == 1250
    assert isinstance(decide.next_step(w.view, replace(sizes, fixed=1400)), decide.Ask)
    parked = decide.next_step(w.view, replace(sizes, fixed=1520))
    assert isinstance(parked, steps.Park)
    assert "about 2,770 tokens, over the 2,760" in parked.detail
    w.ask()
    w.reply("tool_use", use(1))
    assert w.view.measure(1500).now == w.view.measure().now, "what a reply has measured has them already"


@given(st.integers(1, 200_000), st.integers(0, 200_000), st.integers(1, 32_768))
def test_a_longer_reply_than_usual_is_asked_for_only_where_the_window_has_room_for_it(
    window: int, now: int, wanted: int
) -> None:
    sizes = Sizes(window=window, output=min(8192, wanted))
    reply = sizes.reply(wanted, now)
    assert sizes.output <= reply <= wanted
    assert reply == sizes.output or now + reply <= window
