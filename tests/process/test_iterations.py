"""A plan worked through one task after the other on a real fleet, with what surrounds the tasks: a project's rules."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.events import types as t
from tests.fleetlib import Fleet, fleet, git, make_repository, play

pytestmark = pytest.mark.timeout(300)


HOOKS = """
[hooks]
after_edit = ["echo hooked; exit 3"]
"""
LOUD = """
[hooks]
after_edit = ["seq -f 'hook %g' 1 4000"]
"""


@pytest.fixture(scope="module")
def f() -> Iterator[Fleet]:
    with fleet(config=HOOKS) as made:
        yield made


def write(path: str, content: str = "done\n") -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


def bodies(f: Fleet, sid: str, kind: type[t.Body]) -> list[Any]:
    return [r.body for r in f.records(sid) if isinstance(r.body, kind)]


def test_rules_of_the_project_nearest_to_the_edit_are_read_before_the_next_request(f: Fleet) -> None:
    files = {"AGENTS.md": "Root.\n", "a/b/AGENTS.md": "Near.\n", "a/c/AGENTS.md": "Sibling.\n"}
    repo = make_repository(f.root / "ruled", files)
    sid = f.launch(play([write("a/b/x.txt")], "Done."), repo=repo)
    f.wait_state(sid, "done", "failed", "waiting")
    command = ("exec", {"argv": ["sh", "-c", "echo x > a/c/by-command.txt"]})
    other = f.launch(play([command], [("exec", {"argv": ["true"]})], "Done."), repo=repo)
    f.wait_state(other, "done", "failed", "waiting")
    assert [b.path for b in bodies(f, other, t.RulesRead)] == ["AGENTS.md", "a/c/AGENTS.md"], "what a command edited"
    records = f.records(sid)
    read = {r.body.path: (r.seq, r.body.text) for r in records if isinstance(r.body, t.RulesRead)}
    asked = [r.seq for r in records if isinstance(r.body, t.ModelRequest)]
    assert {path: text for path, (_, text) in read.items()} == {"AGENTS.md": "Root.\n", "a/b/AGENTS.md": "Near.\n"}
    assert read["AGENTS.md"][0] < asked[0] < read["a/b/AGENTS.md"][0] < asked[1]
    (told,) = bodies(f, sid, t.HooksEnded)
    assert (told.failed, "hooked" in told.text, "[exit 3]" in told.text) == (1, True, True)
    assert next(r.seq for r in records if isinstance(r.body, t.HooksEnded)) < asked[1], "in the next request"
    assert f.violations() == []


def test_what_checks_and_hooks_print_can_be_read_whole_by_the_call_that_is_named() -> None:
    with fleet(config=LOUD) as loud:
        sid = loud.launch("It asks for the rest.", checks=("seq -f 'check %g' 1 4000; false",))
        loud.wait_event_count(sid, "check.verdict", 2)
        told = [b.text for b in bodies(loud, sid, t.HooksEnded)] + [
            b.text for b in bodies(loud, sid, t.UserMessage) if "done criteria fail" in b.text
        ]
        assert "hook 4000" in told[0]
        assert "check 4000" in told[1]
        assert not any(f"{what} 2000" in text for text in told for what in ("hook", "check"))
        shown = [b.preview for b in bodies(loud, sid, t.ToolEnded)]
        assert any(text.startswith("     1\thook 1\n(lines 1 to 1 of 4000") for text in shown), shown
        assert any(text.startswith("     1\tcheck 1\n(lines 1 to 1 of 4000") for text in shown), shown


PLAN = {
    "project": "Notes",
    "branchName": "ralph/notes",
    "userStories": [
        {"id": "US-001", "title": "First", "acceptanceCriteria": ["File `one.txt` exists"], "passes": False},
        {
            "id": "US-002",
            "title": "Second",
            "description": "So that there are two.",
            "acceptanceCriteria": ["File `two.txt` exists"],
            "passes": False,
        },
        {"id": "US-003", "title": "Third", "acceptanceCriteria": ["File `notes.txt` exists"], "passes": True},
    ],
}


def test_a_plan_is_worked_through_task_by_task_each_in_a_context_of_its_own(f: Fleet) -> None:
    files = {
        "prd.json": json.dumps(PLAN),
        "notes.txt": "keep\n",
        "init.sh": "echo the place is not ready; test -e ready.txt\n",
    }
    older = json.dumps(PLAN | {"branchName": "ralph/older plan"}, indent=1)
    log = "# Ralph Progress Log\nStarted: then\n---\n## then - US-009\n- It was done.\n---\n"
    repo = make_repository(f.root / "planned", files | {"prd.json": older, "progress.txt": log})
    (repo / "prd.json").write_text(files["prd.json"])
    git(repo, "commit", "-qam", "Another plan")
    cut = write("progress.txt", "- mine alone\n")
    work = play([write("ready.txt"), write("one.txt"), write("two.txt"), cut], "Done.")
    sid = f.launch(work, repo=repo, more=("--plan", "prd.json"))
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], row["verified"], row["plan_passed"]) == ("done", True, 3)
    begun = bodies(f, sid, t.IterationStarted)
    assert [(b.n, b.entry, b.attempt) for b in begun] == [(1, "US-001", 1), (2, "US-002", 1)]
    assert "First of all: init.sh fails (exit 1)" in begun[0].digest
    assert "the place is not ready" in begun[0].digest
    assert "init.sh" not in begun[1].digest
    assert "- US-002: Second\n  So that there are two.\n" in begun[1].digest
    assert "- not run yet: File `two.txt` exists\n" in begun[1].digest
    assert "Another plan" in begun[1].digest, "the newest commits are told"
    assert [(b.entry, b.outcome) for b in bodies(f, sid, t.IterationEnded)] == [
        ("US-001", "passed"),
        ("US-002", "passed"),
    ]
    records = f.records(sid)
    first = next(r.seq for r in records if isinstance(r.body, t.IterationStarted))
    rechecked = [r.seq for r in records if isinstance(r.body, t.CheckVerdict) and "notes.txt" in r.body.command]
    assert rechecked[0] < first, "what passed was looked at before new work"
    assert first < next(r.seq for r in records if isinstance(r.body, t.ModelRequest))
    branch = row["branch"]
    subjects = git(repo, "log", "--format=%s", f"main..{branch}").splitlines()
    assert "First" in subjects, "a task that passed is committed, by its name"
    assert "US-001 of prd.json: passed" in git(repo, "log", "--format=%b", f"main..{branch}")
    assert json.loads(git(repo, "show", f"{branch}:prd.json"))["userStories"][0]["passes"] is True
    assert git(repo, "show", f"{branch}:two.txt") == "done\n"
    (archived,) = bodies(f, sid, t.PlanArchived)
    assert archived.folder.endswith("-older-plan")
    assert git(repo, "show", f"{branch}:{archived.folder}/prd.json") == older
    assert git(repo, "show", f"{branch}:{archived.folder}/progress.txt") == log
    first_note, second_note = bodies(f, sid, t.ProgressKept)
    assert first_note.did == second_note.did == ["earlier entries were removed or changed"]
    assert (first_note.by_harness, second_note.by_harness) == (False, True)
    progress = (Path(row["worktree"]) / "progress.txt").read_text()
    assert progress.startswith("# Ralph Progress Log\nStarted: 20")
    assert "US-009" not in progress
    assert progress.index("- mine alone") < progress.index("- US-002\n")
    assert "- mine alone" in begun[1].digest
    assert f.violations() == []


def test_hooks_run_after_a_command_that_edits_and_not_after_one_that_looks(f: Fleet) -> None:
    edits = ("exec", {"argv": ["sh", "-c", "echo x > by-command.txt"]})
    sid = f.launch(play([edits], [("exec", {"argv": ["ls"]})], "Done."), name="commands")
    f.wait_state(sid, "done", "failed", "waiting")
    assert [(b.changed, b.names) for b in bodies(f, sid, t.EditsLooked)] == [(True, ["by-command.txt"]), (False, [])]
    (told,) = bodies(f, sid, t.HooksEnded)
    assert "hooked" in told.text
    asked = [r.seq for r in f.records(sid) if isinstance(r.body, t.ModelRequest)]
    assert asked[0] < next(r.seq for r in f.records(sid) if isinstance(r.body, t.HooksEnded)) < asked[1]
    assert f.violations() == []


def test_an_init_sh_that_a_task_makes_runs_before_the_next_one(f: Fleet) -> None:
    repo = make_repository(f.root / "later", {"prd.json": json.dumps(PLAN), "notes.txt": "keep\n"})
    work = play([write("init.sh", "echo ready > ready.txt\n"), write("one.txt"), write("two.txt")], "Done.")
    sid = f.launch(work, repo=repo, more=("--plan", "prd.json"))
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], row["verified"]) == ("done", True), row["detail"]
    assert [b.path for b in bodies(f, sid, t.SetupFound)] == ["init.sh"]
    kinds = (t.IterationStarted, t.IterationEnded)
    told = [
        r.body.TYPE if isinstance(r.body, kinds) else "setup"
        for r in f.records(sid)
        if isinstance(r.body, kinds)
        or (isinstance(r.body, t.ToolProposed) and (r.body.input or {}).get("chore") == "setup")
    ]
    begun = t.IterationStarted.TYPE
    over = t.IterationEnded.TYPE
    assert told == [begun, over, "setup", begun, over]
    assert (Path(row["worktree"]) / "ready.txt").read_text() == "ready\n"
    assert f.violations() == []


WORDS = [{"id": f"US-00{n}", "title": "Nice", "acceptanceCriteria": ["It is nice"], "passes": False} for n in (1, 2)]
COMPILES = "python3 -c \"compile(open('app.py').read(), 'app.py', 'exec')\""


def test_a_task_that_breaks_a_check_of_the_session_is_not_over(f: Fleet) -> None:
    files = {"prd.json": json.dumps({"project": "P", "userStories": WORDS}), "app.py": "x = 1\n"}
    repo = make_repository(f.root / "broken", files)
    once = ("shell", {"script": "test -e seen || { touch seen; echo 'x = (' > app.py; }"})
    work = play([once], "Done.", [write("app.py", "x = 2\n")], "Repaired.")
    sid = f.launch(work, repo=repo, checks=(COMPILES, "test -e later.txt"), more=("--plan", "prd.json"))
    f.wait_event_count(sid, "iteration.ended", 2)
    told = [b.text for b in bodies(f, sid, t.UserMessage) if "done criteria fail" in b.text]
    assert "Passed before this task" in told[0]
    assert "SyntaxError" in told[0]
    assert [(b.entry, b.outcome) for b in bodies(f, sid, t.IterationEnded)] == [
        ("US-001", "undecided"),
        ("US-002", "undecided"),
    ], "a check that never passed holds no task up"
    records = f.records(sid)
    over = [r.seq for r in records if isinstance(r.body, t.IterationEnded)]
    seen = [
        (r.seq, r.body.passed) for r in records if isinstance(r.body, t.CheckVerdict) and r.body.command == COMPILES
    ]
    assert [passed for seq, passed in seen if seq < over[0]] == [False, True]
    assert [passed for seq, passed in seen if over[0] < seq < over[1]] == [True]
    f.run("stop", sid)


def test_an_entry_is_not_set_while_its_task_breaks_a_check_of_the_session(f: Fleet) -> None:
    story = {"id": "US-001", "title": "One", "acceptanceCriteria": ["File `one.txt` exists"], "passes": False}
    files = {"prd.json": json.dumps({"project": "P", "userStories": [story]}), "app.py": "x = 1\n"}
    repo = make_repository(f.root / "set", files)
    work = play([write("one.txt"), write("app.py", "x = (\n")], "Done.", [write("app.py", "x = 2\n")], "Repaired.")
    sid = f.launch(work, repo=repo, checks=(COMPILES,), more=("--plan", "prd.json"))
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], row["plan_passed"]) == ("done", 1)
    records = f.records(sid)
    (flip,) = [r.seq for r in records if isinstance(r.body, t.PlanFlipped)]
    (fails,) = [r.seq for r in records if isinstance(r.body, t.CheckVerdict) and not r.body.passed]
    assert fails < flip
