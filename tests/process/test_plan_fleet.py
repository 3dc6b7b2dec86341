"""A session with a plan, on a real fleet: its criteria are run, and what was seen of them sets `passes`."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.events import types as t
from tests.fleetlib import KEY, Fleet, fleet, make_repository, play, wait_for

pytestmark = pytest.mark.timeout(300)
PLAN = {
    "project": "Notes",
    "x-kept": [1, {"two": None}],
    "userStories": [
        {
            "id": "US-001",
            "title": "First",
            "acceptanceCriteria": ["File `one.txt` contains `done`", "Run `test -s one.txt` - exits with code 0"],
            "priority": 1,
            "passes": False,
            "notes": "",
        },
        {"id": "US-002", "title": "Second", "acceptanceCriteria": ["File `two.txt` exists"], "passes": False},
        {"id": "US-003", "title": "Third", "acceptanceCriteria": ["File `notes.txt` exists"], "passes": True},
    ],
}
TEXT = json.dumps(PLAN, indent=3)
FILES = {"prd.json": TEXT, "notes.txt": "keep\n"}
MORE = ("--plan", "prd.json", "--fresh", "never")


def write(path: str, content: str = "done\n") -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


@pytest.fixture(scope="module")
def f() -> Iterator[Fleet]:
    with fleet() as made:
        make_repository(made.root / "repo", FILES)
        yield made


def bodies(f: Fleet, sid: str, kind: type[t.Body]) -> list[Any]:
    return [r.body for r in f.records(sid) if isinstance(r.body, kind)]


def plan_of(f: Fleet, sid: str) -> str:
    return (Path(f.row(sid)["worktree"]) / "prd.json").read_text()


def passing(*ids: str) -> str:
    text = TEXT
    for name in ids:
        at = text.index('"passes": false', text.index(name))
        text = text[:at] + '"passes": true' + text[at + len('"passes": false') :]
    return text


def test_exits_with_code_0_keeps_passes_false_while_the_command_fails_whatever_the_model_says(f: Fleet) -> None:
    files = {"prd.json": json.dumps({"userStories": [{**PLAN["userStories"][0], "title": "Never"}]}, indent=2)}
    repo = make_repository(f.root / "never", files)
    sid = f.launch(
        play("All criteria hold.", "It is done.", "Every test passes."), repo=repo, more=("--plan", "prd.json")
    )
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], row.get("verified", False), row.get("plan_passed", 0)) == ("failed", False, 0)
    assert plan_of(f, sid) == files["prd.json"]
    assert not bodies(f, sid, t.PlanFlipped)
    assert f.violations() == []


def test_a_toy_task_needs_no_configuration() -> None:
    """One command, a key and an endpoint in the environment."""
    with fleet() as bare:
        bare.folders.config_file.unlink()
        bare.env |= {"ANTHROPIC_BASE_URL": bare.base_url, "ANTHROPIC_API_KEY": KEY}
        sid = bare.launch(play([write("one.txt")], "Done."), checks=("test -s one.txt",))
        row = bare.wait_state(sid, "done", "failed", "waiting")
        assert (row["state"], row["verified"]) == ("done", True)


SERVED = [
    {"id": "A", "title": "Page", "acceptanceCriteria": ["GET /page.html returns 200"], "passes": False},
    {"id": "B", "title": "Text", "acceptanceCriteria": ["GET /a returns 200 and contains `two`"], "passes": False},
]


def test_a_request_is_asked_of_what_init_sh_starts_in_the_sandbox_whatever_its_port(f: Fleet) -> None:
    """A model that says done keeps what is not so from passing; no port is named, and the server takes any."""
    server = "python3 -m http.server 0 --bind ::1 >/dev/null 2>&1 &\npython3 -m http.server 0 -d other &\nwait\n"
    files = {"prd.json": json.dumps({"userStories": SERVED}), "init.sh": server, "other/a": "one\n"}
    repo = make_repository(f.root / "served", files)
    goal = play([write("other/a", "one, two\n")], "Done.", [write("page.html")], "Now it is.")
    sid = f.launch(goal, repo=repo, more=MORE)
    row = f.wait_state(sid, "done", "failed")
    assert (row["state"], row["verified"], row["plan_passed"]) == ("done", True, 2)
    verdicts = [(v.command.split("\n")[0], v.passed) for v in bodies(f, sid, t.CheckVerdict)]
    page, text = (f"# {one['acceptanceCriteria'][0]}" for one in SERVED)
    assert verdicts == [(page, False), (text, True), (page, True), (text, True)]
    failed = next(b for b in bodies(f, sid, t.ToolEnded) if "page.html: 404" in b.preview)
    assert failed.exit_code == 1
    asked = [b for b in bodies(f, sid, t.UserMessage) if "done criteria fail" in b.text]
    assert len(asked) == 1
    assert f.violations() == []


def test_a_plan_is_done_when_its_criteria_hold_and_only_passes_changed(f: Fleet) -> None:
    sid = f.launch(play([write("one.txt"), write("two.txt")], "Done."), more=MORE)
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], row["verified"], row["checks_total"]) == ("done", True, 4)
    assert (row["plan_passed"], row["plan_total"]) == (3, 3)
    assert plan_of(f, sid) == passing("US-001", "US-002")
    flips = bodies(f, sid, t.PlanFlipped)
    assert [(b.entry, b.passes) for b in flips] == [("US-001", True), ("US-002", True)]
    proposed = {b.call_id for b in bodies(f, sid, t.ToolProposed)}
    assert all(b.calls and set(b.calls) <= proposed for b in flips)
    shown = json.loads(f.run("plan", sid, "--json").stdout)
    assert f.call("plan", sid=sid)["plan"] == shown
    assert [(e["id"], e["state"], e["attempts"]) for e in shown["entries"]] == [
        ("US-001", "passed", 1),
        ("US-002", "passed", 1),
        ("US-003", "passed", 0),
    ]
    verdicts = {r.seq for r in f.records(sid) if isinstance(r.body, t.CheckVerdict)}
    assert {seq for entry in shown["entries"] for seq in entry["evidence"]} == verdicts
    assert f.violations() == []


def test_what_passed_and_fails_now_passes_no_more(f: Fleet) -> None:
    remove = ("shell", {"script": "rm notes.txt"})
    sid = f.launch(play([remove, write("one.txt")], "Done."), more=MORE)
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert row["state"] == "failed"
    (first, *_) = [b for b in bodies(f, sid, t.PlanFlipped) if b.entry == "US-003"]
    assert not first.passes
    assert "notes.txt" in first.why
    assert json.loads(plan_of(f, sid))["userStories"][2]["passes"] is False


def test_an_agent_keeps_its_course_and_is_told_when_it_does_not_hold(f: Fleet) -> None:
    failing = ("exec", {"argv": ["false"]})
    start = ("plan", {"action": "start", "entry": "US-001"})
    later = ("plan", {"action": "blocked", "entry": "US-002", "text": "no second one"})
    wrong = ("plan", {"action": "replan", "text": "one is enough", "steps": ["write one"]})
    sid = f.launch(
        play([start, failing, failing, failing, later, wrong, write("one.txt"), write("two.txt")], "Done."), more=MORE
    )
    assert f.wait_state(sid, "done", "failed", "waiting")["state"] == "done"
    records = f.records(sid)
    updates = {r.seq: r.body for r in records if isinstance(r.body, t.PlanUpdated)}
    assert [(b.trigger, b.entry, b.state) for b in updates.values()] == [
        ("", "US-001", "in_progress"),
        ("tool_failure", "", ""),
        ("", "US-002", "blocked"),
        ("assumption", "", ""),
    ]
    ((told, seen),) = [(seq, b.about) for seq, b in updates.items() if b.about >= 0]
    assert told < min(r.seq for r in records if isinstance(r.body, t.ModelRequest) and r.seq > seen)
    answers = [r.body.preview for r in records if isinstance(r.body, t.ToolEnded)]
    assert any(text.startswith("US-001 is in progress: First") for text in answers)
    assert f.violations() == []


def test_a_phase_with_a_gate_does_not_start_without_a_decision(f: Fleet) -> None:
    stories = [
        {"id": "A", "title": "Build", "acceptanceCriteria": ["File `one.txt` exists"], "passes": False},
        {"id": "B", "title": "Ship", "acceptanceCriteria": ["File `two.txt` exists"], "passes": False, "phase": "ship"},
    ]
    repo = make_repository(f.root / "gated", {"prd.json": json.dumps({"userStories": stories})})
    done = f.run("launch", "--repo", str(repo), "--goal", "x", "--plan", "prd.json", "--gate", "sail=x", check=False)
    assert (done.returncode, "no phase 'sail'" in done.stderr) == (5, True)
    assert "a --gate does not fit prd.json" in done.stderr
    goal = play([write("one.txt")], "Done.", [write("two.txt")], "Done.")
    sid = f.launch(goal, repo=repo, more=(*MORE, "--gate", "ship=it goes out"))
    first = f.approval(sid)
    assert (first["kind"], first["detail"]["name"], first["detail"]["done"]) == ("gate", "ship", "✔ A Build")
    waits = " still waits for your answer: ship begins only with your word: it goes out (watchfloor approvals)"
    assert waits in f.run("resume", sid).stdout, "it does not go on"
    f.run("reject", first["approval_id"], "--reason", "not today")
    f.wait_state(sid, "parked")
    assert waits in f.run("resume", sid).stdout, "nor does it when the gate was refused"
    again = f.approval(sid)
    assert [b for b in bodies(f, sid, t.ToolProposed) if b.tool == "write_file"][1:] == []
    (told,) = f.json("brief", sid)[0]["sessions"]
    assert told["upcoming"] == "B Ship"
    assert next(line["text"] for line in told["lines"] if line["kind"] == "passed").startswith("plan: A passes")
    assert [line["text"].split()[0] for line in told["needs"]] == [again["approval_id"]]
    f.approve(again["approval_id"])
    assert f.wait_state(sid, "done", "failed")["state"] == "done"
    opened, kept = f.json("receipts", sid)
    assert (kept["decision"], opened["decision"], opened["outcome"]) == ("deny", "allow", "effect")
    assert [step["stage"] for step in opened["steps"]] == ["asked", "decided", "taken", "delivered", "effect"]
    kinds = [r.body for r in f.records(sid) if isinstance(r.body, t.PhaseBegun | t.GateOpened)]
    assert [(type(b).__name__, b.phase) for b in kinds] == [
        ("PhaseBegun", ""),
        ("GateOpened", "ship"),
        ("PhaseBegun", "ship"),
    ]
    assert f.violations() == []


def test_three_sessions_in_three_states_stand_once_each_and_what_is_answered_leaves(f: Fleet) -> None:
    asks = f.launch(play("Which of the two shall I take?", "Done."), name="asks")
    fails = f.launch(play("Done."), name="fails", checks=("false",))
    ends = f.launch(play([write("one.txt")], "Done."), name="ends")
    three = {asks: "needs you", fails: "errors", ends: "to review"}

    def groups() -> dict[str, str]:
        rows = [row for row in f.json("ls") if row["sid"] in three]
        assert len(rows) == 3, "each stands there once"
        return {row["sid"]: row["group"] for row in rows}

    def waiting() -> list[str]:
        return [a["sid"] for a in f.requests() if a["sid"] in three]

    wait_for("each in its group", lambda: groups() == three)
    assert waiting() == [asks]
    f.run("answer", f.approval(asks)["approval_id"], "The first.")
    assert asks not in waiting()
    f.wait_state(asks, "done")
    assert groups()[asks] != "needs you"


OPEN_POLICY = """
[[rule]]
name = "everything"
verdict = "allow"
effect = "*"
"""


@pytest.mark.sandbox
def test_inside_a_phase_its_kinds_of_effect_and_its_sum_ask_whatever_the_policy_allows() -> None:
    with fleet(policy=OPEN_POLICY) as f:
        stories = [
            {"id": "A", "title": "Build", "acceptanceCriteria": ["File `one.txt` exists"], "passes": False},
            {"id": "B", "title": "Ship", "acceptanceCriteria": ["File `two.txt` exists"], "passes": False}
            | {"phase": "ship", "gate": "on: external message, delete, spend above $0.000001"},
        ]
        make_repository(f.root / "repo", {"prd.json": json.dumps({"userStories": stories})})
        tell = ("exec", {"argv": ["true"], "access": "network", "hosts": ["x.test"]})
        sid = f.launch(play([tell, write("one.txt")], "Done.", [tell, write("two.txt")], "Done."), more=MORE)
        sum_reached = f.approval(sid)
        assert (sum_reached["kind"], sum_reached["detail"]["gate"]) == ("gate", "spend above $0.000001")
        spent = sum(b.cost_nano or 0 for b in bodies(f, sid, t.ModelMessage))
        assert spent > 1000
        f.approve(sum_reached["approval_id"])
        asked = f.approval(sid)
        assert (asked["kind"], asked["detail"]["rule"]) == ("tool", "the gate of ship")
        assert "each external message in ship" in asked["detail"]["reason"]
        assert [b.rule for b in bodies(f, sid, t.ToolJudged) if b.effects] == ["everything", "the gate of ship"]
        assert [b for b in bodies(f, sid, t.ToolStarted) if b.call_id == asked["call_id"]] == []
        refused = f.run("grant", asked["approval_id"], check=False)
        assert (refused.returncode != 0, "each such call of this phase" in refused.stderr) == (True, True)
        f.approve(asked["approval_id"])
        assert f.wait_state(sid, "done", "failed")["state"] == "done"
        assert f.violations() == []


@pytest.mark.sandbox
def test_a_gate_on_deletions_asks_while_files_are_too_large_for_undo() -> None:
    with fleet(policy=OPEN_POLICY) as f:
        story = {"id": "A", "title": "Build", "acceptanceCriteria": ["File `one.txt` exists"], "passes": False}
        plan = json.dumps({"userStories": [story | {"phase": "ship", "gate": "on: delete"}]})
        make_repository(f.root / "repo", {"prd.json": plan, "large.bin": "\0" * (65 << 20)})
        run = ("shell", {"script": "rm -f large.bin"})
        steps = [run, write("small.txt"), write("large.bin"), ("read_file", {"path": "large.bin"}), write("one.txt")]
        sid = f.launch(play(steps, "Done."), more=MORE)
        for tool in ("shell", "write_file"):
            asked = f.approval(sid)
            assert (asked["kind"], asked["detail"]["rule"]) == ("tool", "the gate of ship")
            assert "each delete in ship" in asked["detail"]["reason"]
            proposed = {b.call_id: b.tool for b in bodies(f, sid, t.ToolProposed)}
            assert proposed[asked["call_id"]] == tool
            if tool == "shell":
                f.run("deny", asked["approval_id"], "keep it")
            else:
                f.approve(asked["approval_id"])
        assert f.wait_state(sid, "done", "failed")["state"] == "done"
        assert f.violations() == []


def test_a_plan_is_written_first_and_counts_once_a_person_accepts_it(f: Fleet) -> None:
    entry = {"description": "One", "steps": ["File `one.txt` exists"], "passes": False}
    vague, good, cheat = (
        write("feature_list.json", json.dumps([entry | more]))
        for more in ({"steps": ["It works"]}, {}, {"passes": True, "steps": []})
    )
    ready = write("init.sh", "echo the place is ready\n")
    goal = play([vague], "Written.", [good, ready], "Written.", [write("one.txt"), cheat], "Done.")
    sid = f.launch(goal, more=("--plan-from-goal",))
    card = f.approval(sid)
    assert (card["kind"], card["detail"]["entries"], card["options"]) == (
        "plan",
        "F-001 One\n  - File `one.txt` exists  (test -e one.txt)",
        ["allow", "deny", "stop"],
    )
    assert not f.row(sid).get("no_criterion", False)
    assert [b for b in bodies(f, sid, t.ToolProposed) if b.input.get("path") == "one.txt"] == []
    f.approve(card["approval_id"])
    row = f.wait_state(sid, "done", "failed")
    assert (row["state"], row["verified"], row["plan_passed"], row["plan_total"]) == ("done", True, 1, 1)
    assert json.loads(plan_of_repo(f, sid, "feature_list.json")) == [entry | {"passes": True}]
    drafts = bodies(f, sid, t.PlanDrafted)
    assert [(b.count, len(b.problems), b.sent_back) for b in drafts] == [(1, 1, True), (1, 0, False)]
    assert bodies(f, sid, t.PlanRestored)
    records = f.records(sid)
    began = next(r.seq for r in records if isinstance(r.body, t.IterationStarted))
    prepared = [r.seq for r in records if isinstance(r.body, t.ToolEnded) and "the place is ready" in r.body.preview]
    assert len(prepared) == 1, "what was written to make the place ready is run, once"
    assert prepared[0] < began
    again = f.run("launch", "--repo", str(f.repository()), "--goal", "x", "--plan-from-goal", "prd.json", check=False)
    assert (again.returncode, "is there already" in again.stderr) == (5, True)
    assert f.violations() == []


EMPTY = ("Run `true` - exits with code 0", "File `notes.txt` exists", "Run `echo ok` - prints `ok`")


@pytest.mark.parametrize("criterion", EMPTY)
def test_an_entry_that_holds_before_the_work_asks_and_is_never_verified_by_itself(criterion: str, f: Fleet) -> None:
    entry = {"category": "c", "description": "Payment works", "steps": [criterion], "passes": False}
    goal = play([write("feature_list.json", json.dumps([entry]))], "Written.", "Done.")
    sid = f.launch(goal, more=("--plan-from-goal", "--yes-plan"))
    card = f.approval(sid)
    assert card["kind"] == "plan"
    assert f"- {criterion}" in card["detail"]["entries"]
    assert "[already holds]" in card["detail"]["entries"]
    assert "F-001" in card["detail"]["warning"]
    for more in ((), ("--facts",), ("--whole",)):
        assert criterion.replace("`", "") in f.run("approvals", card["approval_id"], *more).stdout.replace("`", "")
    f.approve(card["approval_id"])
    row = f.wait_state(sid, "done", "failed")
    assert (row["state"], row.get("verified", False), row["plan_passed"]) == ("done", False, 1)
    assert "a person said that it may" in bodies(f, sid, t.PlanFlipped)[0].why


def test_entries_of_a_given_plan_that_hold_before_the_work_ask_once(f: Fleet) -> None:
    stories = [
        {"id": "US-1", "title": "Kept", "acceptanceCriteria": ["File `notes.txt` exists"], "passes": False},
        {"id": "US-2", "title": "New", "acceptanceCriteria": ["File `new.txt` exists"], "passes": False},
    ]
    repo = make_repository(f.root / "held", {"prd.json": json.dumps({"userStories": stories}), "notes.txt": "keep\n"})
    sid = f.launch(play([write("new.txt")], "Done."), repo=repo, more=MORE)
    card = f.approval(sid)
    assert (card["kind"], "US-1" in card["title"], "US-2" in card["detail"]["entries"]) == ("plan", True, False)
    assert bodies(f, sid, t.ModelRequest) == []
    f.run("reject", card["approval_id"], "--reason", "it shows nothing")
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], row.get("verified", False), row["plan_passed"]) == ("done", False, 1)
    assert [b.entry for b in bodies(f, sid, t.PlanFlipped)] == ["US-2"]


def test_a_launch_without_a_criterion_asks_once_and_stays_marked(f: Fleet) -> None:
    given = ("launch", "--repo", str(f.repository()), "--goal", play("Done, and nobody decides."))
    asked = on_a_terminal(f, *given, answer="test -s one.txt\n")
    assert asked.count("Command (empty: none)") == 1
    refused = on_a_terminal(f, *given, "--cap-usd", "1e99", answer="true\n", ends=2)
    assert "Command" not in refused, "what is refused is refused before anything is asked"
    silent = f.run(*given)
    assert "no criterion was given" in silent.stdout
    assert "criterion" not in f.run(*given, "--no-criterion").stdout
    rows = f.json("ls")
    assert sorted(row.get("no_criterion", False) for row in rows if row["goal"] == given[-1]) == [False, True, True]
    assert " none " in f.run("ls").stdout
    marked = next(row["sid"] for row in rows if row.get("no_criterion"))
    assert "no criterion" in f.run("show", marked).stdout


def on_a_terminal(f: Fleet, *args: str, answer: str, ends: int = 0) -> str:
    """What a verb says to a person at a terminal who answers so."""
    ours, theirs = pty.openpty()
    os.write(ours, answer.encode())
    command = [sys.executable, "-m", "app.main", *args]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=f.env) as process:
        assert process.wait(60) == ends
    os.close(theirs)
    said = os.read(ours, 1 << 16).decode()
    os.close(ours)
    return said


CHEATS = {
    "sets it itself": [write("prd.json", TEXT.replace("false", "true"))],
    "removes an entry": [write("prd.json", json.dumps(PLAN | {"userStories": []}))],
    "deletes it": [("shell", {"script": "git rm -q prd.json"})],
    "puts a folder in its place": [("shell", {"script": "rm prd.json; mkdir prd.json; touch prd.json/a"})],
    "puts a link in its place": [("shell", {"script": "mv prd.json x.json; ln -s x.json prd.json"})],
    "weakens a criterion": [write("prd.json", TEXT.replace("File `two.txt` exists", "File `notes.txt` exists"))],
}


@pytest.mark.parametrize("way", CHEATS)
def test_an_agent_that_changes_the_plan_passes_nothing(way: str, f: Fleet) -> None:
    sid = f.launch(play(CHEATS[way], "Done. Everything passes."), more=MORE)
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert row["state"] == "failed"
    assert (row["plan_passed"], row["plan_total"]) == (1, 3)
    assert plan_of(f, sid) == TEXT
    assert bodies(f, sid, t.PlanRestored)
    told = [b.text for b in bodies(f, sid, t.UserMessage) if b.origin == "harness"]
    assert any("prd.json (" in text for text in told)


def test_a_plan_that_no_check_decides_wholly_is_not_verified(f: Fleet) -> None:
    vague = [{"description": "A", "steps": ["File `one.txt` exists", "It looks good"], "passes": False}]
    repo = make_repository(f.root / "vague", {"feature_list.json": json.dumps(vague)})
    more = ("--plan", "feature_list.json")
    sid = f.launch(play([write("one.txt")], "Done."), repo=repo, more=more)
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], row.get("verified", False)) == ("done", False)
    assert "entry of its plan decided by no check" in row["detail"]
    assert plan_of_repo(f, sid, "feature_list.json") == json.dumps(vague)


def test_a_plan_of_which_nothing_is_decided_is_said_at_launch_and_stays_marked(f: Fleet) -> None:
    repo = make_repository(f.root / "undecided", {"prd.json": json.dumps({"userStories": [UNDECIDED]})})
    launch = ("launch", "--repo", str(repo), "--plan", "prd.json", "--goal", play("Done."))
    assert "no criterion of prd.json is decided by a command" in f.run(*launch, "--name", "by-word").stdout
    assert "no criterion" not in f.run(*launch, "--name", "by-judge", "--judge").stdout
    row = f.wait_state("by-word", "done")
    assert (row.get("verified", False), row["no_criterion"]) == (False, True)
    assert "no criterion" in f.run("show", "by-word").stdout


UNDECIDED = {"id": "A", "title": "A", "acceptanceCriteria": ["It works"], "passes": False}


def plan_of_repo(f: Fleet, sid: str, name: str) -> str:
    return (Path(f.row(sid)["worktree"]) / name).read_text()


@pytest.mark.parametrize("plan", ["none.json", "notes.txt", "../prd.json"])
def test_what_is_no_plan_is_said_before_anything_is_made(plan: str, f: Fleet) -> None:
    done = f.run("launch", "--repo", str(f.repository()), "--goal", "x", "--plan", plan, check=False)
    assert done.returncode == 5
    assert "is no plan" in done.stderr
