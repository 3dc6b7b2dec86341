"""A plan worked through one task after the other: which one is next, what its context begins with, and how it all ends
by itself, whatever the model says.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agents import steps
from harness.agents.agent_loop import turned
from harness.brain import decide
from harness.events import types as t
from harness.events.plan import evaluation_events, iteration_events
from harness.plan import due, hooks, iterations
from harness.plan.board import board
from harness.plan.digest import MOST_BYTES, Around, digest
from harness.plan.files.formats import read
from harness.plan.iterations import Begin, Note, Prepare, Recheck
from harness.projections.state.iterations import Chore
from harness.protocol.config import choices
from harness.tools import registry
from tests.unit.test_brain_loop import World, shape, text, use

GOAL = "  Build *all* of it.\n\tNothing else.  "
Truth = Callable[[str], int]

Kind = TypeVar("Kind", bound=t.Body)


class Planned(World):
    """A log in memory with a plan, and what a supervisor does for it. ``truth`` is the exit code of a command now."""

    def __init__(
        self,
        *entries: t.PlanEntry,
        truth: Truth,
        setup: str = "",
        fresh: str = "per-task",
        judge: t.JudgeWanted | None = None,
        phases: tuple[t.PlanPhase, ...] = (),
        **ways: Any,
    ) -> None:
        checks = [command for entry in entries for command in entry.checks]
        super().__init__(goal=GOAL, checks=checks, max_rounds=2, ways=t.Ways(fresh=fresh, **ways), judge=judge)
        self.truth = truth
        self.by_command = False
        """Whether commands of the agent change files."""
        loaded = t.PlanLoaded(
            path="prd.json",
            form="tasks",
            entries=list(entries),
            phases=list(phases),
            setup=setup,
            progress="progress.txt",
        )
        self.put(loaded)
        self.put(t.UserMessage(text="What done means is in prd.json.", origin="harness"))

    def run(self, tool: str, *given: dict[str, object]) -> None:
        """The harness's own calls, to their end."""
        head = self.view.state.seq
        for index, one in enumerate(given):
            self.put(t.ToolProposed(call_id=f"c{head}.{index}", tool=tool, ref="", input=one))
        for index, one in enumerate(given):
            code = self.truth(str(one["command"]))
            self.end(f"c{head}.{index}", "ok" if code == 0 else "error", f"exit {code} of {one['command']}", code)

    def serve(self) -> None:
        """What a supervisor does until nothing is due."""
        while True:
            s = self.view.state
            for flip in due.due(s):
                self.put(t.PlanFlipped(entry=flip.entry, passes=flip.passes, why=flip.why, calls=list(flip.calls)))
            match hooks.due(s):
                case hooks.Run() as after:
                    self.run(registry.CHORE, *({"chore": "hook", "command": command} for command in after.commands))
                    continue
                case hooks.Look():
                    self.put(t.EditsLooked(changed=self.by_command))
                    continue
                case hooks.Tell() as after:
                    self.put(t.HooksEnded(text=after.text, failed=after.failed))
                    continue
            match iterations.due(s):
                case None:
                    return
                case Prepare() as found:
                    self.run(registry.CHORE, {"chore": found.kind, "command": found.command})
                case Recheck() as found:
                    self.run(registry.CHECK, *({"command": command} for command in found.commands))
                case Note() as found:
                    self.put(t.ProgressKept(path="progress.txt", n=found.ended.n, sha="0" * 64))
                case Begin() as found:
                    page = digest(s, found, Around(("abc123 A commit",), "noted"))
                    self.put(
                        t.ContextReset(keep=s.seq + 1, handoff="", tokens=9, after=3, trigger="iteration"),
                        t.IterationStarted(n=found.n, entry=found.entry, attempt=found.attempt, digest=page),
                    )

    def turn(self, *said: dict[str, object]) -> decide.Step:
        """One reply that claims to be done, and everything that follows without the model."""
        self.serve()
        self.ask()
        self.reply("end_turn", *said)
        return self.settle()

    def settle(self) -> decide.Step:
        """Until the model is to be asked, or nobody any more."""
        while True:
            self.serve()
            step = self.step()
            match step:
                case steps.Check():
                    self.run(registry.CHECK, *({"command": command} for command in step.commands))
                case steps.Say():
                    self.put(t.UserMessage(text=step.text, origin="harness"))
                case steps.Turned():
                    self.put(*turned(self.view.state, step))
                case steps.Wait():
                    raise AssertionError(f"nobody does what is waited for: {step.why}")
                case _:
                    return step

    def all(self, kind: type[Kind]) -> list[Kind]:
        return [r.body for r in self.records if isinstance(r.body, kind)]

    def request_text(self) -> str:
        return "\n".join(str(block.get("text", "")) for m in shape(self.view) for block in m["content"])


def entry(
    name: str, *checks: str, priority: int = 0, passes: bool = False, undecided: int = 0, phase: str = ""
) -> t.PlanEntry:
    return t.PlanEntry(name, f"Title of {name}", list(checks), undecided, passes, phase, priority=priority)


def begun(w: Planned) -> list[str]:
    return [b.entry for b in w.all(t.IterationStarted) if isinstance(b, t.IterationStarted)]


def good(_: str) -> int:
    return 0


def bad(_: str) -> int:
    return 1


def replan(w: Planned) -> None:
    """Put the replans that are due on record, as a supervisor does."""
    owed = list(w.view.state.course.owed)
    w.put(*(t.PlanUpdated(trigger=one.trigger, reason=one.reason, about=one.about) for one in owed))


DONE = text("Done, everything passes.")


def test_ralph_loop_the_second_request_holds_no_message_of_the_first() -> None:
    w = Planned(entry("A", "make a"), entry("B", "make b"), truth=good)
    w.serve()
    w.ask()
    w.reply("tool_use", text("first words"), use(1, "exec", argv=["one"]))
    w.end(w.propose()[0], preview="first output")
    assert isinstance(w.turn(DONE), decide.Ask)
    assert begun(w) == ["A", "B"]
    (only,) = shape(w.view)
    first, criteria, handed, task = (block["text"] for block in only["content"])
    assert (first, task) == (GOAL, w.view.task)
    assert criteria.startswith("Done criteria")
    assert handed == w.view.handoff
    assert "first words" not in handed
    assert "first output" not in handed
    assert "Done, everything passes" not in handed
    assert "first" not in w.view.task
    assert "B: Title of B" in w.view.task


def test_a_task_is_handed_what_is_known_of_those_before_each_line_with_its_record() -> None:
    w = Planned(entry("A", "make a"), entry("B", "make b"), truth=good)
    w.serve()
    w.ask()
    assert not w.view.handoff, "nothing came before the first"
    w.reply("tool_use", use(1, "exec", argv=["make", "fast"]), use(2, "exec", argv=["make", "old"]))
    works, fails = w.propose()
    w.end(works, files=[])
    w.end(fails, "error", "no rule", 2)
    w.put(
        t.ApprovalRequested(approval_id="a1", kind="tool", title="push?", options=["deny"]),
        t.ApprovalDecided(approval_id="a1", decision_id="d", decision="deny", message="not before Friday"),
    )
    w.turn(DONE)
    told = {}
    for line in w.view.handoff.split("\n"):
        if not line.startswith("- "):
            continue
        said, _, named = line.rpartition(" [#")
        told[said] = w.records[int(named.removesuffix("]"))].type
    assert told == {
        "- A passed: 1 of 1 checks passed: 1 now passes": "iteration.ended",
        "- the person chose deny: not before Friday": "approval.decided",
        "- `make old`: “exit 2: no rule”": "tool.ended",
        "- `make fast`": "tool.ended",
    }


def test_ralph_iterations_whose_tool_crashes_are_failed_ones_and_ten_crashes_in_one_open_a_breaker() -> None:
    """The loop that this follows reports ten normal iterations."""
    w = Planned(entry("A", "make a"), truth=bad, fresh="per-iteration", attempts=10)
    step: decide.Step = decide.Ask()
    while isinstance(step, decide.Ask):
        w.serve()
        w.ask()
        w.reply("tool_use", use(len(w.records), "exec", argv=["crash"]))
        w.end(w.propose()[0], "error", "boom", 1)
        replan(w)
        step = w.turn(DONE)
    assert isinstance(step, steps.End)
    assert (step.outcome, step.verified) == ("failed", False)
    ends = [b.outcome for b in w.all(t.IterationEnded) if isinstance(b, t.IterationEnded)]
    assert ends == ["failed"] * 10
    w = Planned(entry("A", "make a"), truth=bad)
    w.serve()
    while isinstance(step := w.step(), decide.Ask):
        w.request(step)
        w.reply("tool_use", use(len(w.records), "exec", argv=["crash", str(len(w.records))]))
        w.end(w.propose()[0], "error", "boom", 1)
        w.serve()
        replan(w)
    assert isinstance(step, steps.Park)
    assert step.breaker is not None
    assert (step.breaker.kind, step.breaker.count) == ("tool_errors", 10)


def test_prd_json_the_lowest_priority_that_does_not_pass_comes_first() -> None:
    entries = [entry("A", "a"), entry("B", "b", priority=2), entry("C", "c", priority=1), entry("D", "d", passes=True)]
    w = Planned(*entries, truth=good)
    while isinstance(w.turn(DONE), decide.Ask):
        pass
    assert begun(w) == ["C", "B", "A"]


def test_startup_ritual_a_passed_entry_that_broke_is_flipped_before_new_work() -> None:
    w = Planned(entry("OLD", "old", passes=True), entry("NEW", "new"), truth=lambda c: int(c == "old"))
    w.serve()
    kinds = [r.type for r in w.records]
    assert kinds.index("plan.flipped") < kinds.index("iteration.started")
    assert begun(w) == ["OLD"], "it is due again, and stands first"
    assert "fails: old" in w.view.task


def test_startup_ritual_the_digest_says_what_the_log_and_the_plan_say() -> None:
    w = Planned(entry("OK", "ok", passes=True), entry("A", "make a"), entry("B", "make b"), truth=good)
    w.put(t.UserMessage(text="Use\ntabs.", origin="human"))
    w.put(t.ApprovalRequested(approval_id="a1", kind="tool", title="May it push?", options=["allow"]))
    w.serve()
    for told in ("work on A of prd.json", "- not run yet: make a", "“Use tabs.”", "- May it push?", "1 of 3 entries"):
        assert told in w.view.task
    for told in ("- B: Title of B", "- abc123 A commit", "  noted"):
        assert told in w.view.task


@pytest.mark.parametrize("count", [3, 90, 5000])
def test_startup_ritual_the_page_says_how_many_criteria_of_the_task_it_leaves_out(count: int) -> None:
    w = Planned(*(entry(f"E{n}", f"make {n}") for n in range(20)), truth=good)
    w.serve()
    criteria = [f"It is nice {n} {'x' * 300}" for n in range(count)]
    story = {"id": "E0", "title": "t", "acceptanceCriteria": criteria, "passes": False}
    plan = read(json.dumps({"userStories": [story]}).encode())
    page = digest(w.view.state, Begin("E0", 1, 1), Around(entry=plan.entries[0]))
    shown = page.count("- no command decides: It is nice")
    assert f"- no command decides: {criteria[0]}" in page
    assert (f"- and {count - shown} more\n" in page) == (shown < count)
    assert "- and 7 more\n" in page or shown < count, "of the plan, too"
    assert len(page.encode()) <= MOST_BYTES


def test_startup_ritual_steps_of_the_phase_and_what_is_blocked_stand_on_the_page_of_the_next_task() -> None:
    w = Planned(entry("A", "make a"), entry("B", "make b"), entry("C", "make c"), truth=good)
    w.serve()
    seq = w.put(t.PlanUpdated(call_id="c1.0", steps=["page by hand", "test it"]))
    w.put(t.PlanUpdated(call_id="c2.0", entry="C", state="blocked", reason="the key is missing"))
    assert isinstance(w.turn(DONE), decide.Ask)
    assert begun(w) == ["A", "B"]
    assert f"Your steps for this phase:\n- 1. page by hand [#{seq}]\n- 2. test it [#{seq}]" in w.view.task
    assert "- C: Title of C (blocked: “the key is missing”)" in w.view.task


def test_startup_ritual_the_page_has_the_task_in_the_words_of_the_plan_also_what_no_command_decides() -> None:
    example = (Path(__file__).parents[1] / "data" / "plans" / "ralph-prd.json").read_bytes()
    first = read(example).entries[0]
    story = replace(first, criteria=(*first.criteria, "Run `make test` - exits with code 0"))
    w = Planned(t.PlanEntry(story.id, story.title, ["make test"], 3), truth=good)
    page = digest(w.view.state, Begin(story.id, 1, 1), Around(entry=story))
    for told in (
        "- US-001: Add priority field to database\n  As a developer, I need to store task priority so it persists",
        "- no command decides: Add priority column to tasks table: 'high' | 'medium' | 'low' (default 'medium')\n",
        "- no command decides: Generate and run migration successfully\n",
        "- no command decides: Typecheck passes\n",
        "- not run yet: Run `make test` - exits with code 0\n",
    ):
        assert told in page
    assert "more that no command decides" not in page


def test_init_sh_that_fails_is_the_first_task_and_runs_again_until_it_works() -> None:
    broken = [1]
    w = Planned(
        entry("A", "make a"), entry("B", "make b"), truth=lambda c: broken[0] * ("init.sh" in c), setup="init.sh"
    )
    w.serve()
    w.ask()
    assert "First of all: init.sh fails (exit 1)" in w.request_text()
    assert "exit 1 of sh ./init.sh" in w.request_text()
    w.reply("end_turn", DONE)
    broken[0] = 0
    w.settle()
    assert begun(w) == ["A", "B"]
    assert "init.sh" not in w.view.task
    chores = [b for b in w.all(t.ToolProposed) if isinstance(b, t.ToolProposed) and b.tool == registry.CHORE]
    assert len(chores) == 2


def test_failed_approaches_are_records_that_the_next_attempt_is_shown() -> None:
    w = Planned(entry("A", "make a"), truth=bad, attempts=2)
    for _ in range(2):
        assert isinstance(w.turn(text("I tried the quick way.")), decide.Ask)
    (first,) = w.all(t.ApproachFailed)
    assert isinstance(first, t.ApproachFailed)
    assert first.what == "I tried the quick way."
    assert "make a (exit 1): exit 1 of make a" in first.why
    assert "attempt 2 of it" in w.view.task
    assert "“I tried the quick way.”: make a (exit 1)" in w.view.task
    seq = next(r.seq for r in w.records if isinstance(r.body, t.ApproachFailed))
    assert f"[#{seq}]" in w.view.task


def test_failed_approaches_are_shown_to_the_next_attempt_at_that_entry_and_on_no_other_page() -> None:
    w = Planned(entry("A", "make a"), entry("B", "make b"), truth=lambda c: int(c == "make a"), attempts=2)
    while begun(w) != ["A", "A", "B"]:
        assert isinstance(w.turn(text("I tried the quick way.")), decide.Ask)
        if len(begun(w)) < 3:
            assert ("quick way" in w.view.task) == (len(begun(w)) == 2), (
                "the second attempt is shown the first one's note"
            )
    assert "quick way" not in w.view.task


@pytest.mark.parametrize(("fresh", "claims"), [("per-task", 6), ("per-iteration", 3)])
def test_a_model_that_always_says_done_comes_to_an_end(fresh: str, claims: int) -> None:
    w = Planned(entry("A", "make a"), entry("B", "make b"), truth=lambda c: int(c == "make a"), fresh=fresh)
    said = 0
    step: decide.Step = decide.Ask()
    while isinstance(step, decide.Ask):
        step = w.turn(DONE)
        said += 1
    assert isinstance(step, steps.End)
    assert (step.outcome, step.verified) == ("failed", False)
    assert "stuck: A" in step.reason
    assert begun(w) == ["A", "A", "A", "B"]
    assert said == claims + 1
    assert not w.view.state.plan.passes["A"]  # type: ignore[union-attr]


def test_all_passed_ends_the_run_verified_and_what_no_check_decides_does_not() -> None:
    w = Planned(entry("A", "make a"), truth=good)
    end = w.turn(DONE)
    assert isinstance(end, steps.End)
    assert (end.outcome, end.verified) == ("done", True)
    w = Planned(entry("A", "make a"), entry("B", undecided=1), truth=good)
    w.turn(DONE)
    end = w.turn(DONE)
    assert isinstance(end, steps.End)
    assert (end.outcome, end.verified, begun(w)) == ("done", False, ["A", "B"])


def test_what_no_check_decides_is_not_in_progress_once_its_task_is_over() -> None:
    w = Planned(entry("A", undecided=1), entry("B", undecided=2), truth=good)
    w.turn(DONE)
    assert begun(w) == ["A", "B"]
    plan = board(w.view.state)
    assert plan is not None
    assert [(one.id, one.state, one.claimed) for one in plan.entries] == [
        ("A", "pending", True),
        ("B", "in_progress", False),
    ]
    assert plan.at == "B"
    w.turn(DONE)
    plan = board(w.view.state)
    assert plan is not None
    assert {(one.state, one.claimed) for one in plan.entries} == {("pending", True)}
    assert (plan.at, plan.next) == ("", "")


def test_refused_asked_and_capped_end_in_a_question_for_the_person() -> None:
    w = Planned(entry("A", "make a"), truth=bad)
    w.serve()
    w.ask()
    w.reply("refusal", text("I will not."))
    refused = w.step()
    assert isinstance(refused, steps.Park)
    assert refused.why == "refusal"
    w = Planned(entry("A", "make a"), truth=bad)
    asked = w.turn(text("Which of the two files shall I keep?"))
    assert isinstance(asked, steps.Park)
    assert asked.why == "question"
    w = Planned(entry("A", "make a"), truth=bad)
    w.serve()
    w.put(t.FinishUp(allowance_nano=1))
    end = w.turn(DONE)
    assert isinstance(end, steps.End)
    assert end.outcome == "failed"


def test_a_question_at_a_task_whose_checks_pass_is_asked_and_the_plan_goes_on_with_the_answer() -> None:
    w = Planned(entry("A", "make a"), entry("B", "make b"), truth=good)
    asked = w.turn(text("It is there. Which of the two names shall the next file have?"))
    assert isinstance(asked, steps.Park)
    assert (asked.why, asked.verdict, asked.verified) == ("question", "1 of 1 checks of A passed", False)
    assert "Which of the two names" in asked.detail
    assert begun(w) == ["A"]
    w.put(t.SessionParked(why=asked.why, detail=asked.detail), t.UserMessage(text="The first.", origin="human"))
    replan(w)
    w.turn(DONE)
    end = w.turn(DONE)
    assert isinstance(end, steps.End)
    assert (end.outcome, end.verified, begun(w)) == ("done", True, ["A", "B"])


def test_a_person_who_lets_it_go_on_gives_new_attempts() -> None:
    w = Planned(entry("A", "make a"), truth=bad, attempts=1)
    w.turn(DONE)
    end = w.turn(DONE)
    assert isinstance(end, steps.End)
    w.put(t.SessionEnded(outcome=end.outcome, reason=end.reason), t.SessionContinued())
    w.put(t.UserMessage(text="Try the other door.", origin="human"))
    w.serve()
    assert begun(w) == ["A", "A"]
    assert "Try the other door." in w.request_text()


def test_goal_is_byte_equal_after_twenty_tasks() -> None:
    w = Planned(*(entry(f"E{n}", f"make {n}") for n in range(21)), truth=good)
    while isinstance(w.turn(DONE), decide.Ask):
        assert shape(w.view)[0]["content"][0]["text"] == GOAL
    assert len(w.all(t.ContextReset)) == 21


def test_never_leaves_the_order_to_the_agent() -> None:
    w = Planned(entry("A", "make a"), entry("B", "make b"), truth=good, fresh="never")
    assert isinstance(w.turn(DONE), steps.End)
    assert not begun(w)


@pytest.mark.parametrize("fresh", iteration_events.FRESH)
def test_no_entry_passes_whose_phase_waits_for_a_persons_word(fresh: str) -> None:
    phases = t.PlanPhase("build"), t.PlanPhase("ship", "it goes out"), t.PlanPhase("after")
    shared = [entry("A", "make", phase="build"), entry("B", "make", phase="ship"), entry("C", "make", phase="after")]
    w = Planned(*shared, truth=good, fresh=fresh, phases=phases)
    w.serve()
    w.ask()
    w.reply("end_turn", DONE)
    check = w.step()
    assert isinstance(check, steps.Check)
    w.run(registry.CHECK, *({"command": command} for command in check.commands))
    w.serve()
    assert w.step() == steps.Wait("a person is asked about a gate of its plan")
    assert w.view.state.plan is not None
    assert w.view.state.plan.passes == {"A": True, "B": False, "C": False}
    w.put(t.GateOpened(phase="ship"))
    end = w.settle()
    assert all(w.view.state.plan.passes.values())
    assert isinstance(end, steps.End)
    assert end.verified


def test_the_configuration_knows_the_same_ways() -> None:
    assert choices.FRESH == iteration_events.FRESH
    assert choices.JUDGE_AT == (evaluation_events.AT_END, evaluation_events.AT_TASK)


COMMANDS = [f"make {n}" for n in range(5)]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_whatever_checks_say_the_plan_comes_to_an_end_within_its_attempts(data: st.DataObject) -> None:
    entries = [
        entry(f"E{n}", *data.draw(st.lists(st.sampled_from(COMMANDS), max_size=2, unique=True)), priority=n % 3)
        for n in range(data.draw(st.integers(1, 4)))
    ]
    decided = [e if e.checks else entry(e.id, undecided=1) for e in entries]
    codes = st.sampled_from([0, 0, 1])
    w = Planned(*decided, truth=lambda _: data.draw(codes), attempts=2)
    claims = 0
    step: decide.Step = decide.Ask()
    while isinstance(step, decide.Ask):
        step = w.turn(DONE)
        claims += 1
        assert claims <= 2 * 2 * len(entries) + 4
        assert len(w.view.task.encode()) <= MOST_BYTES
        assert not isinstance(step, decide.Ask) or shape(w.view)[0]["content"][0]["text"] == GOAL
    assert isinstance(step, steps.End)
    tried = begun(w)
    assert all(tried.count(e.id) <= 2 for e in decided)
    verdicts = w.view.state.plan
    assert verdicts is not None
    assert step.outcome == "failed" or all(verdicts.passes[e.id] or e.undecided for e in decided)


@given(st.lists(st.text(min_size=1, max_size=3000), min_size=1, max_size=40), st.text(max_size=20_000))
def test_a_digest_is_bounded_and_keeps_the_task(titles: list[str], progress: str) -> None:
    entries = [t.PlanEntry(f"E{n}", title, [f"make {title}"], 0, False) for n, title in enumerate(titles)]
    w = Planned(*entries, truth=good)
    page = digest(w.view.state, Begin("E0", 1, 1), Around((), progress))
    assert len(page.encode("utf-8", "replace")) <= MOST_BYTES
    assert "work on E0 of prd.json" in page
    assert "\nThe task:\n- E0: " in page


def chores(w: Planned, kind: str) -> list[str]:
    asked = [b.input or {} for b in w.all(t.ToolProposed) if isinstance(b, t.ToolProposed) and b.tool == registry.CHORE]
    return [str(one["command"]) for one in asked if one["chore"] == kind]


def test_commit_per_unit_of_work_names_the_entry_and_no_title_is_run() -> None:
    hostile = t.PlanEntry("US-1", "It's $(rm -rf ~); `x`\nline two", ["make a"])
    w = Planned(hostile, entry("B", "make b"), truth=good, commit=True)
    while isinstance(w.turn(DONE), decide.Ask):
        pass
    first, second = chores(w, "commit")
    assert shlex.split(first)[-2].startswith("It's $(rm -rf ~); `x` line two\n\nUS-1 of prd.json: passed")
    assert "B of prd.json: passed" in second
    kinds = [(r.type, getattr(r.body, "entry", "")) for r in w.records]
    assert [kind for kind, _ in kinds].index("progress.kept") < kinds.index(("iteration.started", "B"))
    assert kinds.index(("iteration.ended", "US-1")) < kinds.index(("iteration.started", "B"))
    w = Planned(entry("A", "make a"), truth=bad, commit=True, attempts=1)
    w.turn(DONE)
    w.turn(DONE)
    assert not chores(w, "commit"), "what does not hold is not committed"


def test_hooks_after_edits_run_once_for_a_reply_and_are_told_once() -> None:
    w = Planned(entry("A", "make a"), truth=lambda c: int(c == "lint"), hooks=["fmt", "lint"])
    w.serve()
    w.ask()
    w.reply("tool_use", use(1, "write_file", path="x", content="1"), use(2, "write_file", path="y", content="2"))
    for call_id in w.propose():
        w.end(call_id, files=["x"])
    assert isinstance(w.step(), steps.Wait)
    w.serve()
    assert chores(w, "hook") == ["fmt", "lint"]
    assert w.request_text().count("[exit 1]\nexit 1 of lint") == 1
    w.ask()
    w.reply("tool_use", use(3, "exec", argv=["true"]))
    w.end(w.propose()[0])
    w.serve()
    assert chores(w, "hook") == ["fmt", "lint"], "nothing was edited since"
    assert len(w.all(t.HooksEnded)) == 1


def test_hooks_run_after_commands_that_changed_files_and_not_after_others() -> None:
    w = Planned(entry("A", "make a"), truth=good, hooks=["fmt"])
    w.serve()
    for changes, ran in ((False, 0), (True, 1), (False, 1)):
        w.by_command = changes
        w.ask()
        w.reply("tool_use", use(1, "exec", argv=["sed", "-i", "s/a/b/", "x"]), use(2, "shell", script="ls"))
        for call_id in w.propose():
            w.put(t.ToolStarted(call_id=call_id, action_hash="", effect="contained", snapshot="s1.0"))
            w.end(call_id)
        assert isinstance(w.step(), steps.Wait), "nobody thinks on before it was looked at"
        w.serve()
        assert len(chores(w, "hook")) == ran
    assert [b.changed for b in w.all(t.EditsLooked)] == [False, True, False], "once for all commands of a reply"
    plain = Planned(entry("A", "make a"), truth=good)
    plain.serve()
    plain.ask()
    plain.reply("tool_use", use(1, "exec", argv=["true"]))
    (call_id,) = plain.propose()
    plain.put(t.ToolStarted(call_id=call_id, action_hash="", effect="contained", snapshot="s1.0"))
    plain.end(call_id)
    plain.serve()
    assert not plain.all(t.EditsLooked), "nobody asked for hooks"


def test_hooks_run_after_a_job_that_changed_files_once_it_has_ended() -> None:
    w = Planned(entry("A", "make a"), truth=good, hooks=["fmt"])
    w.serve()
    w.ask()
    w.reply("tool_use", use(1, "shell", script="make", job=True))
    (call_id,) = w.propose()
    w.put(
        t.ToolStarted(call_id=call_id, action_hash="", effect="contained", snapshot="s1.0"),
        t.JobStarted(clock=0.0, job="j1", call_id=call_id, what="make", limit_s=60, grace_s=1, log_bytes=1),
    )
    w.end(call_id)
    w.serve()
    assert not chores(w, "hook"), "it wrote nothing yet"
    w.ask()
    w.reply("tool_use", use(2, "write_file", path="x", content="1"))
    w.end(w.propose()[0], files=["x"])
    w.serve()
    assert len(chores(w, "hook")) == 1
    w.by_command = True
    w.put(t.JobEnded(job="j1", status="ok", exit_code=0, ms=1))
    assert hooks.due(w.view.state) == hooks.Look("s1.0")
    w.serve()
    assert [b.changed for b in w.all(t.EditsLooked)] == [False, True]
    assert len(chores(w, "hook")) == 2


def setup_of(w: Planned) -> t.ToolProposed:
    """The one call that made the place ready."""
    (found,) = [
        b for b in w.all(t.ToolProposed) if b.tool == registry.CHORE and (b.input or {}).get("chore") == "setup"
    ]
    return found


def test_an_init_sh_that_comes_later_runs_before_the_next_task() -> None:
    w = Planned(entry("A", "make a"), entry("B", "make b"), truth=good)
    w.serve()
    assert not chores(w, "setup")
    w.put(t.SetupFound(path="init.sh"))
    w.serve()
    assert not chores(w, "setup"), "not in the midst of a task"
    w.turn(DONE)
    assert chores(w, "setup") == ["sh ./init.sh"]
    kinds = [type(r.body) for r in w.records if isinstance(r.body, t.IterationStarted) or r.body == setup_of(w)]
    assert kinds == [t.IterationStarted, t.ToolProposed, t.IterationStarted]


def test_what_init_sh_printed_can_be_read_whole_when_the_page_shows_its_end() -> None:
    w = Planned(entry("A", "make a"), truth=good, setup="init.sh")
    w.put(
        t.ToolProposed(call_id="c9.0", tool=registry.CHORE, ref="", input={"chore": "setup", "command": "sh ./init.sh"})
    )
    w.put(
        t.ToolEnded(
            call_id="c9.0",
            status="error",
            exit_code=1,
            preview="\n".join(map(str, range(2000))),
            output=t.BlobRef("0" * 64, 99_000),
        )
    )
    page = digest(w.view.state, Begin("A", 1, 1), Around())
    assert "  1999\n  [99000 bytes in all; read_output with call c9.0 shows them]" in page


@given(st.lists(st.text(max_size=9000), min_size=1, max_size=8))
def test_what_hooks_say_is_bounded(outputs: list[str]) -> None:
    said = hooks.words([Chore("hook", "fmt", "error", 1, output) for output in outputs])
    assert len(said) <= 6000 + 100 * (len(outputs) + 1)


def test_a_blocked_task_ends_and_the_next_one_begins() -> None:
    w = Planned(entry("A", "make a"), entry("B", "make b"), truth=lambda c: int(c == "make a"))
    w.serve()
    w.ask()
    w.put(t.PlanUpdated(entry="A", state="blocked", reason="the key is missing"))
    w.reply("end_turn", DONE)
    assert isinstance(w.settle(), decide.Ask)
    assert begun(w) == ["A", "B"]
    end = w.turn(DONE)
    assert isinstance(end, steps.End)
    assert "stuck: A" in end.reason


def test_failed_approaches_that_the_agent_tells_of_are_shown_too() -> None:
    w = Planned(entry("A", "make a"), truth=bad, attempts=2)
    w.serve()
    w.ask()
    w.put(t.PlanUpdated(trigger="assumption", reason="the API has no paging"))
    w.put(t.PlanUpdated(entry="A", note="page by hand"))
    w.reply("end_turn", DONE)
    w.settle()
    w.turn(DONE)
    assert "attempt 2 of it" in w.view.task
    assert "“the API has no paging”: assumed, and proved wrong" in w.view.task
    assert "What you noted of it:\n- “page by hand”" in w.view.task
