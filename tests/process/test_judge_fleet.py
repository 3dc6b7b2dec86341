"""A judge on a real fleet: it sends work back, has commands run, is asked again, and nothing is done without it."""

from __future__ import annotations

import base64
import json
import os
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.eventlog import blobs
from harness.events import types as t
from harness.events.plan.evaluation_events import JUDGES
from harness.projections.state.session_state import SessionState
from tests.fleetlib import Fleet, fleet, make_repository, play, wait_for

pytestmark = pytest.mark.timeout(300)
VAGUE = [
    {"description": "A", "steps": ["File `one.txt` exists", "It looks good"], "passes": False},
    {"description": "B", "steps": ["It is pleasant to read"], "passes": False},
]
PRAISE = "Everything is perfect, ship it."


@pytest.fixture(scope="module")
def f() -> Iterator[Fleet]:
    with fleet() as made:
        roles = made.folders.config / "roles"
        roles.mkdir()
        (roles / "reader.toml").write_text(
            'tools = ["read_file", "write_file"]\nprompt = "Read."\n[limits]\ncalls = 50\n'
        )
        files = {"feature_list.json": json.dumps(VAGUE), "notes.txt": "keep\n"}
        make_repository(made.root / "repo", files)
        yield made


def bodies(f: Fleet, sid: str, kind: type[t.Body]) -> list[Any]:
    return [r.body for r in f.records(sid) if isinstance(r.body, kind)]


def write(path: str, content: str = "done\n") -> list[tuple[str, dict[str, Any]]]:
    return [("write_file", {"path": path, "content": content})]


def case_of(f: Fleet, sid: str, started: t.EvaluationStarted) -> str:
    return blobs.get(f.folders.session(sid).blobs, started.case.sha).decode()


def test_work_is_sent_back_twice_and_done_in_the_third_cycle(f: Fleet) -> None:
    """Outcomes = evaluator; evaluator is not the generator: two request families, explanations fed back."""
    marks = "[[judge needs_revision | run: cat one.txt, needs_revision | satisfied]]"
    goal = play(write("one.txt"), PRAISE, write("one.txt", "two\n"), PRAISE, write("one.txt", "three\n"), PRAISE)
    more = ("--plan", "feature_list.json", "--judge", "--judge-model", "claude-sonnet-5-5", "--role", "reader")
    sid = f.launch(f"{goal} {marks}", more=more)
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], row["verified"], row["plan_passed"]) == ("done", True, 2), row["detail"]
    ended: list[t.EvaluationEnded] = bodies(f, sid, t.EvaluationEnded)
    assert [(e.cycle, e.verdict, e.requests) for e in ended] == [
        (1, "needs_revision", 1),
        (2, "needs_revision", 2),
        (3, "satisfied", 1),
    ]
    assert all(e.usage.output and e.cost_nano for e in ended)
    told = [b.text for b in bodies(f, sid, t.UserMessage) if b.origin == "harness"]
    assert sum("Judged in cycle" in text for text in told) == 2

    sent: list[t.ModelRequest] = bodies(f, sid, t.ModelRequest)
    assert {(r.purpose, r.model) for r in sent} == {("", "claude-haiku-5-5"), (JUDGES, "claude-sonnet-5-5")}
    assert len({r.request_id for r in sent}) == len(sent)
    started: list[t.EvaluationStarted] = bodies(f, sid, t.EvaluationStarted)
    assert {s.rubric for s in started} == {e.rubric for e in ended}
    for one in started:
        case = case_of(f, sid, one)
        assert f"{goal} {marks}" in case, "the goal stands there as it was given"
        assert "It is pleasant to read" in case
        assert PRAISE not in case.replace(goal, ""), "the judge hears nothing of what the agent says"
    assert "+three" in case_of(f, sid, started[-1])

    ran = [b for b in bodies(f, sid, t.ToolProposed) if b.by_judge]
    assert [b.input for b in ran] == [{"command": "cat one.txt"}]
    flips = bodies(f, sid, t.PlanFlipped)
    assert [(b.passes, b.why.startswith("the judge")) for b in flips] == [(True, True)] * 2
    tree = Path(row["worktree"])
    assert [e["passes"] for e in json.loads((tree / "feature_list.json").read_text())] == [True, True]
    assert f.violations() == []


def test_a_role_holds_and_a_judge_without_verdict_asks_the_person(f: Fleet) -> None:
    goal = play([("shell", {"script": "touch cheat"})], write("one.txt"), "Done.")
    more = ("--judge", "--judge-cycles", "2", "--role", "reader")
    sid = f.launch(f"{goal} [[judge garbage, garbage | satisfied]]", checks=("test -s one.txt",), more=more)
    asked = f.approval(sid)
    assert asked["kind"] == "question"
    assert "no verdict" in asked["title"]
    (none,) = bodies(f, sid, t.EvaluationEnded)
    assert (none.verdict, none.requests) == ("none", 2)
    assert {b.tool for b in bodies(f, sid, t.ToolProposed)} == {"write_file", "check"}, "shell is not offered"
    f.run("approve", asked["approval_id"], "--choose", "retry")
    row = f.wait_state(sid, "done", "failed")
    assert (row["state"], row["verified"]) == ("done", True)
    assert f.state(sid).caps.tool_calls == 50


def test_work_that_is_sent_back_as_often_as_allowed_asks_and_an_answer_counts_anew(f: Fleet) -> None:
    goal = play(write("one.txt"), "Done.", write("one.txt", "2\n"), "Done.", "Done again.")
    more = ("--judge", "--judge-cycles", "2")
    sid = f.launch(f"{goal} [[judge needs_revision]]", checks=("test -s one.txt",), more=more)
    asked = f.approval(sid)
    assert "sent the work back 2 times" in asked["title"]
    assert [e.cycle for e in bodies(f, sid, t.EvaluationEnded)] == [1, 2]
    f.run("answer", asked["approval_id"], "Make it shorter.")
    f.wait_event_count(sid, "evaluation.ended", 3)
    assert [e.cycle for e in bodies(f, sid, t.EvaluationEnded)][:3] == [1, 2, 1]
    f.run("stop", sid)
    f.wait_state(sid, "stopped")


def test_a_brain_that_dies_while_judging_pays_for_no_cycle_twice_without_saying_so(f: Fleet) -> None:
    check = "test -s one.txt && while [ -e notes.txt ]; do sleep 0.02; done; test -s one.txt"
    sid = f.launch(f"{play(write('one.txt'), 'Done.')} [[judge satisfied]]", checks=(check,), more=("--judge",))
    f.wait_event_count(sid, "tool.started", 2)

    def before_the_judge() -> SessionState | None:
        state = f.state(sid)
        return state if state.request is not None and state.request.purpose == JUDGES else None

    simulate(f, "hold")
    try:
        f.release(sid)
        wait_for("a request of the judge", before_the_judge)
        os.kill(f.brain_pid(sid), signal.SIGKILL)
        f.wait_event(sid, "model.failed")
    finally:
        simulate(f, "release")
    row = f.wait_state(sid, "done", "failed")
    assert (row["state"], row["verified"]) == ("done", True)
    (cut,) = bodies(f, sid, t.ModelFailed)
    assert (cut.purpose, cut.kind) == (JUDGES, "cut")
    assert len(bodies(f, sid, t.EvaluationEnded)) == 1
    assert len([b for b in bodies(f, sid, t.ModelMessage) if b.purpose]) == 1
    assert f.violations() == []


def simulate(f: Fleet, what: str) -> None:
    urllib.request.urlopen(urllib.request.Request(f"{f.base_url}/_sim/{what}", data=b"{}")).close()


def test_calibration_counts_what_the_judge_called_what_and_spends_no_more_than_it_may(f: Fleet) -> None:
    done = f.run("judge", "calibrate", "--model", "claude-sonnet-5-5", "--json", check=False)
    *lines, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(sum(row.values()) for row in last["table"].values()) == len(lines)
    assert last["nano"] == sum(one["nano"] for one in lines) > 0
    assert last["wrong"] == sum(not one["right"] for one in lines)
    assert done.returncode == (1 if last["wrong"] else 0)
    assert all(one["right"] == ((one["verdict"] == "satisfied") == one["good"]) for one in lines)
    wrong = {one["name"] for one in lines if not one["right"]}
    told = f.run("judge", "calibrate", "--only", "deleted-test", "--only", "slugify", check=False)
    assert "KNOWN TO BE" in told.stdout
    assert told.returncode == (1 if wrong & {"deleted-test", "slugify"} else 0)
    poor = f.run("judge", "calibrate", "--most-usd", "0.0001", "--json", check=False)
    assert poor.returncode == 1
    assert {json.loads(line).get("verdict", "none") for line in poor.stdout.splitlines()} == {"none"}
    assert f.run("judge", "calibrate", "--only", "nothing", check=False).returncode == 2


TASKS = [
    {"description": "A", "steps": ["File `one.txt` exists", "It reads well"], "passes": False},
    {"description": "B", "steps": ["It is pleasant to look at"], "passes": False},
]


def test_tasks_in_contexts_of_their_own_are_judged_together_when_the_last_was_tried(f: Fleet) -> None:
    """What no command decides ends a task's iteration undecided: the judge's word makes it pass."""
    repo = make_repository(f.root / "tasks", {"feature_list.json": json.dumps(TASKS), "notes.txt": "keep\n"})
    work = [write("one.txt"), PRAISE, write("two.txt"), PRAISE, write("two.txt", "2\n"), PRAISE, write("x.txt"), PRAISE]
    more = ("--plan", "feature_list.json", "--fresh", "per-task", "--judge")
    sid = f.launch(f"{play(*work)} [[judge needs_revision | satisfied]]", repo=repo, more=more)
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], row["verified"], row["plan_passed"]) == ("done", True, 2), row["detail"]
    records = f.records(sid)
    begun = [(r.seq, r.body.entry) for r in records if isinstance(r.body, t.IterationStarted)]
    assert [entry for _, entry in begun] == ["F-001", "F-002"]
    over = [r.body for r in records if isinstance(r.body, t.IterationEnded)]
    assert [(b.entry, b.outcome) for b in over] == [("F-001", "undecided"), ("F-002", "undecided")]
    judged = [(r.seq, r.body.verdict) for r in records if isinstance(r.body, t.EvaluationEnded)]
    assert [verdict for _, verdict in judged] == ["needs_revision", "satisfied"]
    assert begun[-1][0] < judged[0][0], "nobody judges a plan that was not tried to its end"
    flips = [(r.seq, r.body.entry, r.body.passes) for r in records if isinstance(r.body, t.PlanFlipped)]
    assert [(entry, passes) for _, entry, passes in flips] == [("F-001", True), ("F-002", True)]
    assert flips[0][0] > judged[1][0]
    back = [r.seq for r in records if isinstance(r.body, t.UserMessage) and "Judged in cycle 1" in r.body.text]
    assert len(back) == 1
    assert judged[0][0] < back[0] < judged[1][0], "what it said reached the agent once, before the next cycle"
    assert f.violations() == []


def test_each_task_is_judged_by_what_was_done_for_it_and_passes_with_the_judges_word(f: Fleet) -> None:
    """Judge verdicts drive iterations: a task that a command decides is sent back too, and its case has no other."""
    tasks = [
        {"description": "A", "steps": ["File `one.txt` exists"], "passes": False},
        {"description": "B", "steps": ["File `two.txt` exists", "It reads well"], "passes": False},
    ]
    repo = make_repository(f.root / "each", {"feature_list.json": json.dumps(tasks), "notes.txt": "keep\n"})
    work = [("one.txt", "1\n"), ("one.txt", "one\n"), ("two.txt", "2\n"), ("two.txt", "two\n")]
    goal = play(*(turn for path, text in work for turn in (write(path, text), PRAISE)))
    more = ("--plan", "feature_list.json", "--judge", "--judge-at", "task")
    sid = f.launch(f"{goal} [[judge needs_revision | satisfied]]", repo=repo, more=more)
    row = f.wait_state(sid, "done", "failed", "waiting", timeout=120)
    records = f.records(sid)
    asked = [(b.entry, b.cycle) for b in bodies(f, sid, t.EvaluationRequested)]
    assert asked[:4] == [("F-001", 1), ("F-001", 2), ("F-002", 1), ("F-002", 2)]
    assert asked[4:] == [("", 1), ("F-002", 1), ("F-002", 2), ("", 2)], "the whole at the end, what it sends back anew"
    begun: list[t.IterationStarted] = bodies(f, sid, t.IterationStarted)
    assert [(b.entry, b.attempt) for b in begun] == [("F-001", 1), ("F-002", 1), ("F-002", 2)]
    assert ["Sent back by the judge" in b.digest for b in begun] == [False, False, True]
    assert "goal does not hold: cycle 1: not shown" in begun[-1].digest
    assert {b.outcome for b in bodies(f, sid, t.IterationEnded)} == {"passed"}
    words = [(r.seq, r.body.verdict) for r in records if isinstance(r.body, t.EvaluationEnded)]
    flips = [(r.seq, r.body.entry) for r in records if isinstance(r.body, t.PlanFlipped)]
    assert [entry for _, entry in flips] == ["F-001", "F-002", "F-002", "F-002"]
    assert words[1][0] < flips[0][0] < words[2][0] < words[3][0] < flips[1][0]
    cases = [case_of(f, sid, one) for one in bodies(f, sid, t.EvaluationStarted)]
    assert ["one task of a plan" in one for one in cases] == [bool(entry) for entry, _ in asked]
    assert "+one" in cases[1]
    assert "+one" not in cases[3], "what was done for the task before is not in the case"
    assert "+two" in cases[3]
    assert "+one" in cases[-1]
    assert (row["state"], row["verified"], row["plan_passed"]) == ("done", True, 2), row["detail"]
    assert f.violations() == []
    refused = f.run("launch", "--repo", str(repo), "--goal", "x", "--check", "true", "--judge-at", "task", check=False)
    assert refused.returncode != 0
    assert "task by task" in refused.stderr
    for count in ("0", "-1", "21"):
        refused = f.run("launch", "--repo", str(repo), "--goal", "x", "--judge-cycles", count, check=False)
        assert refused.returncode == 2, "it was taken for the default"


def test_a_case_names_the_task_whose_work_was_left_and_only_until_that_is_committed(f: Fleet) -> None:
    tasks = [{"description": n, "steps": [f"File `{n}.txt` exists"], "passes": False} for n in ("one", "two", "three")]
    repo = make_repository(f.root / "left", {"feature_list.json": json.dumps(tasks), "notes.txt": "keep\n"})
    stuck: tuple[str, dict[str, Any]] = ("plan", {"action": "blocked", "entry": "F-001", "text": "no access"})
    first = [*write("half.txt", "half\n"), stuck]
    goal = play(first, PRAISE, write("two.txt"), PRAISE, write("three.txt"), PRAISE)
    more = ("--plan", "feature_list.json", "--judge", "--judge-at", "task")
    sid = f.launch(f"{goal} [[judge satisfied]]", repo=repo, more=more)
    f.wait_state(sid, "done", "failed", "waiting", timeout=120)
    asked = [b.entry for b in bodies(f, sid, t.EvaluationRequested) if b.entry]
    assert asked == ["F-002", "F-003"]
    second, third = [case_of(f, sid, one) for one in bodies(f, sid, t.EvaluationStarted)][:2]
    assert "+half" in second
    assert "between two attempts at this one: F-001." in second
    assert "+half" not in third
    assert "Work on other tasks" not in third
    assert f.violations() == []


def test_the_judge_reads_no_word_of_whose_work_it_is_and_where_that_touches_tests(f: Fleet) -> None:
    sure = "I am certain that all of it is right."
    summary = f"echo '{sure}' > IMPLEMENTATION_SUMMARY.md"  # nobody asked for it: the goal does not name it
    work = [
        *write("progress.txt", f"## now\n{sure}\n"),
        ("shell", {"script": f"echo {base64.b64encode(summary.encode()).decode()} | base64 -d | sh"}),
        *write("money.py", "class Money:\n    def __eq__(self, other):\n        return True\n"),
        *write("conftest.py", "x = 1\n"),
    ]
    sid = f.launch(f"{play(work, 'Done.')} [[judge satisfied]]", checks=("test -f money.py",), more=("--judge",))
    f.wait_state(sid, "done", "failed", "waiting")
    whole = case_of(f, sid, bodies(f, sid, t.EvaluationStarted)[0])
    case = whole[whole.index("<criteria-") :]  # the goal has the whole play
    assert sure not in case
    assert (
        "left out, since whoever did the work writes there how it went: IMPLEMENTATION_SUMMARY.md, progress.txt" in case
    )
    assert "money.py:2: says how values compare" in case
    assert "conftest.py:1: loaded before tests run, new" in case
    (shown,) = f.json("diff", sid)
    assert [(one["path"], one["line"]) for one in shown["touches"]] == [("conftest.py", 1), ("money.py", 2)]
    assert "money.py:2: says how values compare" in f.run("diff", "--stat", sid).stdout
