"""What happened since a person looked: known logs give known lines, and reading on gives what reading at once does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.verbs.brief import markdown, text
from app.client import last_seen
from app.presenters.since_last_seen import EMPTY, Told
from app.review.pull_text import code
from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import zoned
from harness.events import types as t
from harness.reports.briefing import (
    ANOMALY,
    COMMIT,
    COURSE,
    DECIDED,
    KEPT,
    NEEDS,
    PASSED,
    RESTART,
    Brief,
    Briefing,
    Figures,
    Line,
    brief,
    follow,
)
from harness.views.session_views import ERRORS, NEEDS_YOU, RUNNING, SessionRow, TroubleView

START = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
CENT = 10_000_000
OLD = "a" * 40
NEW = "7dec9de" + "b" * 33
PLAN = t.PlanLoaded(path="prd.json", form="tasks", entries=[t.PlanEntry("E1", "parse", ["one"])])
CREATED = t.SessionCreated(base=OLD, worktree="/w", branch="b")
BY = t.By(client="tui")


def stamp(seconds: int) -> str:
    return (START + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def log(*bodies: t.Body) -> list[t.Record]:
    """One record every ten seconds."""
    return [t.Record(seq, stamp(seq * 10), "x", 0, body) for seq, body in enumerate(bodies)]


def told(*bodies: t.Body, since: int = 0) -> Brief:
    return brief(follow(log(*bodies)), stamp(since))


def kinds(made: Brief) -> list[tuple[int, str]]:
    return [(line.seq, line.kind) for line in made.lines]


def said(nano: int = CENT, purpose: str = "") -> t.ModelMessage:
    return t.ModelMessage(
        request_id="r",
        message_id="m",
        model="opus",
        stop="calls",
        usage=t.Usage(input=1),
        cost_nano=nano,
        purpose=purpose,
    )


def request(name: str = "a2222222") -> t.ApprovalRequested:
    return t.ApprovalRequested(approval_id=name, kind="tool", title="git push", options=["allow"], call_id="c1.0")


def decided(name: str = "a2222222", decision: str = "allow") -> t.ApprovalDecided:
    return t.ApprovalDecided(approval_id=name, decision_id="d", decision=decision, by=BY)


def verdict(command: str, passed: bool) -> t.CheckVerdict:
    return t.CheckVerdict(call_id="c9.0", command=command, passed=passed)


def judged(word: str, drift: str = "") -> t.EvaluationEnded:
    return t.EvaluationEnded(cycle=1, cycles=3, model="opus", rubric="r", verdict=word, summary="so", drift=drift)


def checkpoint(head: str) -> t.CheckpointCreated:
    return t.CheckpointCreated(
        checkpoint_id="k1", label="", why="end", through_seq=0, snapshot="s", commit="c", head=head
    )


def committed(*subjects: str, more: int = 0) -> t.WorkCommitted:
    commits = [t.Commit(f"{n}dec9de", subject) for n, subject in enumerate(subjects)]
    return t.WorkCommitted(head=NEW, before=OLD, commits=commits, more=more)


def test_an_evening_in_lines() -> None:
    made = told(
        PLAN,
        t.KeeperStarted(pid=1, start=1, boot="b"),
        said(),
        t.PlanFlipped(entry="E1", passes=True, why="one exits with 0", calls=[]),
        committed("Mention the tests"),
        t.RatchetViolation(violation_id="v", call_id="c2.0", files=[]),
        request(),
        decided(),
        t.KeeperStarted(pid=2, start=2, boot="b", recovered=True),
        said(),
        request("a3333333"),
        t.SessionEnded(outcome="done", verified=True),
    )
    assert kinds(made) == [(3, PASSED), (4, COMMIT), (5, ANOMALY), (7, DECIDED), (8, RESTART), (11, COURSE)]
    assert made.lines[3].text == "a2222222 allowed by you, on the screen · wants to: git push · risk medium (#6)"
    assert [(line.seq, line.kind) for line in made.needs] == [(10, NEEDS)]
    assert made.figures == Figures(
        records=True,
        replies=2,
        spent_nano=2 * CENT,
        passed=1,
        commits=1,
        asked=2,
        decided=1,
        restarts=1,
        anomalies=1,
    )


@pytest.mark.parametrize("how", ["changed", "deleted", "replaced", "shadows", "touched"])
def test_each_kind_of_violation_is_one_line_that_names_it(how: str) -> None:
    file = t.RatchetViolation(violation_id="v", call_id="c", files=[t.ViolatedFile("tests/test_a.py", how)])
    plan = t.PlanRestored(call_id="c", did=["E1 was removed"])
    for bodies, named in (([file], "tests/test_a.py"), ([plan], "E1 was removed")):
        (line,) = told(*bodies).lines
        assert (line.kind, named in line.text) == (ANOMALY, True), line


def test_only_what_is_not_older_counts_but_an_open_request_stays() -> None:
    bodies = (request(), said(), t.SessionEnded(outcome="done"), said(), t.BreakerOpened(kind="errors", count=5))
    made = told(*bodies, since=30)
    assert kinds(made) == [(4, ANOMALY)]
    assert (made.figures.spent_nano, made.figures.asked) == (CENT, 0)
    assert [line.seq for line in made.needs] == [0]
    nothing = told(*bodies, since=41)
    assert nothing.figures == Figures()
    assert nothing.lines == ()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (judged("satisfied"), PASSED),
        (judged("satisfied", drift="another goal"), ANOMALY),
        (judged("needs_revision"), ANOMALY),
        (judged("none"), ANOMALY),
        (t.PlanFlipped(entry="E1", passes=False, why="", calls=[]), ANOMALY),
        (t.PlanRestored(call_id="c1.0", did=["it"]), ANOMALY),
        (
            t.AlarmRaised(alarm="silent", words="nothing came of it for 30m", value=1800, limit=1800, evidence=[3]),
            ANOMALY,
        ),
        (t.AlarmCleared(alarm="silent", why="it is over"), COURSE),
        (t.AlarmSnoozed(alarms=["silent"], until=stamp(99), by=BY), DECIDED),
        (t.PlanUpdated(entry="E1", state="blocked", reason="no key"), ANOMALY),
        (t.ToolInDoubt(call_id="c1.0", why="killed"), ANOMALY),
        (t.SessionEnded(outcome="failed"), ANOMALY),
        (t.HarnessNote(level="error", text="x"), ANOMALY),
        (t.LeaseEnded(gen=1, reason="killed", exit_code=-9), RESTART),
        (t.Quarantined(part="brain", reason="r", restarts=3), RESTART),
        (t.SessionDesired(state="paused", by=BY), DECIDED),
        (t.UserMessage(text="go on", by=BY), DECIDED),
    ],
)
def test_what_deserves_a_line(body: t.Body, kind: str) -> None:
    made = told(body)
    assert kinds(made) == [(0, kind)]
    assert made.lines[0].text


@pytest.mark.parametrize(
    "body",
    [
        t.LeaseEnded(gen=1, reason="parked", exit_code=0),
        t.HarnessNote(level="info", text="x"),
        t.UserMessage(text="checks failed", origin="harness"),
        t.KeeperStarted(pid=1, start=1, boot="b"),
        t.PlanUpdated(entry="E1", state="in_progress"),
        verdict("make test", False),
        t.Unknown(type="?", data={}),
    ],
)
def test_what_deserves_none(body: t.Body) -> None:
    assert told(body).lines == ()


def test_a_check_is_told_of_when_its_verdict_changes_and_of_a_plan_by_its_entry() -> None:
    made = told(PLAN, verdict("mine", True), verdict("mine", True), verdict("mine", False), verdict("one", True))
    assert kinds(made) == [(1, PASSED), (3, ANOMALY)]


def test_a_keeper_that_comes_to_an_ended_session_is_no_restart() -> None:
    comes = t.KeeperStarted(pid=2, start=2, boot="b")
    ended = t.SessionEnded(outcome="done", verified=True)
    merged = t.MergeEnded(merge_id="m1", outcome="merged", into="main")
    told = brief(follow(log(comes, ended, comes, merged, comes, t.SessionContinued(rounds=0), ended)), "")
    assert told.figures.restarts == 0
    undone = t.UndoEnded(undo_id="u1", call_id="c1.0")
    often = brief(follow(log(comes, ended, comes, undone, comes, undone, comes)), "")
    assert often.figures.restarts == 0
    again = log(comes, ended, comes, undone, comes, t.SessionContinued(rounds=0), comes, ended)
    assert brief(follow(again), "").figures.restarts == 1, "the one of a session that is at work"
    assert brief(follow(log(comes, comes, ended)), "").figures.restarts == 1


def test_a_line_says_a_thing_once() -> None:
    intent = t.SessionIntent(name="n", goal="Port\nit", repo="/r", branch="b", worktree="/w", model="opus")
    made = told(intent, verdict("make test", True), t.SessionEnded(outcome="failed", reason="no"))
    assert [line.text for line in made.lines] == ["launched: Port it", "passes: make test", "failed: no"]


def test_each_commit_is_a_line_as_the_repository_has_it_and_what_a_call_prints_is_none() -> None:
    made = told(CREATED, committed("Add it", "Test it", more=3), checkpoint(NEW))
    assert [line.text for line in made.lines] == [
        "0dec9de Add it",
        "1dec9de Test it",
        "and 3 commits before these",
    ]
    assert made.figures.commits == 5
    forged = t.ToolProposed(call_id="c1.0", tool="shell", ref="t", input={"script": "git commit -m x"})
    printed = t.ToolEnded(call_id="c1.0", status="ok", preview="[wf/n 7dec9de] made up")
    assert kinds(told(CREATED, forged, printed)) == []
    (back,) = told(committed()).lines
    assert back.text == f"its branch stands at {NEW[:12]}, before at {OLD[:12]}"


def test_what_was_paid_is_told_whole_and_only_replies_are_replies() -> None:
    cut = t.ModelFailed(
        request_id="r", attempt=1, kind="cut", message="", usage=t.Usage(output=1), cost_nano=40, price_source="list"
    )
    late = t.ModelSettled(request_id="r", reservation="v", usage=t.Usage(), cost_nano=3, recorded_nano=5)
    before = brief(follow(log(said())), "").figures
    made = brief(follow(log(said(), cut, late)), "").figures
    assert (made.replies, made.spent_nano - before.spent_nano) == (before.replies, 38)


def test_what_follows_from_a_decision_is_no_decision_of_its_own() -> None:
    made = told(request(), decided(decision="stop"), t.SessionDesired(state="stopped", by=BY), t.UserMessage(text="x"))
    assert kinds(made) == [(1, DECIDED)]
    later = told(request(), decided(), said(), t.SessionDesired(state="paused", by=BY))
    assert kinds(later) == [(1, DECIDED), (3, DECIDED)]


def test_the_newest_lines_are_kept_and_it_says_so() -> None:
    course = follow(log(*[t.BreakerOpened(kind="errors", count=5)] * (KEPT + 3)))
    made = brief(course, "")
    assert (len(made.lines), made.lines[0].seq, made.forgotten) == (KEPT, 3, True)
    assert not brief(course, stamp(30)).forgotten


BODIES: list[t.Body] = [
    PLAN,
    CREATED,
    checkpoint(NEW),
    checkpoint(OLD),
    committed("Mention the tests"),
    said(),
    said(purpose="judge"),
    request(),
    request("a3333333"),
    decided(),
    t.SessionDesired(state="stopped", by=BY),
    t.ApprovalWithdrawn(approval_id="a3333333", why=""),
    t.ApprovalStale(approval_id="a2222222", call_id="c1.0", difference=["head"]),
    t.KeeperStarted(pid=1, start=1, boot="b"),
    verdict("mine", True),
    verdict("mine", False),
    judged("needs_revision"),
    t.SessionEnded(outcome="failed"),
    t.SessionContinued(by=BY),
    t.Unknown(type="?", data={}),
]


@given(st.lists(st.sampled_from(BODIES), max_size=60), st.lists(st.integers(0, 60), max_size=4), st.integers(0, 600))
def test_however_a_log_is_cut_it_tells_the_same(bodies: list[t.Body], cuts: list[int], since: int) -> None:
    records = log(*bodies)
    whole = follow(records)
    made = Briefing()
    at = 0
    for cut in [*sorted(cuts), len(records)]:
        made = follow(records[at:cut], made)
        at = max(at, cut)
    assert made == whole
    got = brief(whole, stamp(since))
    assert all(line.ts >= stamp(since) and records[line.seq].ts == line.ts for line in got.lines)
    assert all(isinstance(records[line.seq].body, t.ApprovalRequested) for line in got.needs)
    assert got.figures.spent_nano == CENT * sum(
        isinstance(r.body, t.ModelMessage) for r in records if r.ts >= stamp(since)
    )


HOSTILE = "x\x1b[2J`](http://e.vil) \u202e<b>\n# no"


def shown(name: str, line: str) -> list[Told]:
    row = SessionRow("s", name, "waiting", "needs you", "d", "", next=line, do=line, last_ts=stamp(0), seq=1)
    made = Brief(Figures(records=True), (Line(1, stamp(0), ANOMALY, line),), (Line(0, stamp(0), NEEDS, line),), 1)
    return [Told(row, made, upcoming=line), Told(row, Brief(Figures(), (), (), -1), problem=line)]


@given(st.one_of(st.just(HOSTILE), st.text()))
def test_no_text_of_others_acts_on_a_terminal_or_as_markup(hostile: str) -> None:
    for form in (text, markdown):
        wrong = (TroubleView("f", "h", "n", cause=hostile),)
        for line in form(shown(hostile, hostile), stamp(0), START, wrong):
            assert line.isprintable(), repr(line)
    span = code(hostile)
    sandbox = span.partition(" ")[0]
    inside = span.removeprefix(f"{sandbox} ").removesuffix(f" {sandbox}")
    assert inside == to_display(hostile)
    assert set(sandbox) == {"`"}
    assert sandbox not in inside, "it cannot end its span"


def test_what_needs_a_person_stands_first_and_each_line_names_its_record() -> None:
    lines = list(text(shown("maker", "why"), stamp(0), START + timedelta(hours=9)))
    assert lines[0] == f"Since 9h ago ({zoned(stamp(0))}): 1 of 2 sessions moved · 1 needs you"
    assert [line.split()[0] for line in lines[3:5]] == [NEEDS, ANOMALY]
    assert "maker#0" in lines[3]
    assert "maker#1" in lines[4]


def test_what_failed_or_rings_is_counted_ranked_and_says_what_to_do_however_old_it_is() -> None:
    def one(name: str, group: str, made: Brief = EMPTY, put_off: str = "") -> Told:
        row = SessionRow(name, name, "x", group, "d", "", do=f"mend {name}", last_ts=stamp(0), seq=1, put_off=put_off)
        return Told(row, made)

    moved = Brief(Figures(records=True), (Line(1, stamp(0), COURSE, "launched"),), (), 1)
    asks = Brief(Figures(records=True), (), (Line(0, stamp(0), NEEDS, "a push"),), 1)
    every = [one("runs", RUNNING, moved), one("old", ERRORS), one("asks", NEEDS_YOU, asks), one("idle", RUNNING)]
    every.append(one("later", ERRORS, put_off=stamp(99)))
    lines = list(text(every, stamp(0), START))
    assert lines[0].endswith("2 of 5 sessions moved · 2 need you")
    assert [line.split()[0] for line in lines if "(" in line][1:] == ["asks", "old", "runs"]
    assert [line.strip() for line in lines if "you: " in line] == ["you: mend asks", "you: mend old"]
    assert "nothing new: idle, later" in lines


def test_what_is_wrong_with_the_fleet_itself_stands_on_top() -> None:
    wrong = (TroubleView("fleet", "disk almost full", "they wait", do="free some space", cause="9 MiB left"),)
    assert list(text([], stamp(0), START, wrong))[1] == "  fleet: disk almost full: 9 MiB left; free some space"
    assert list(markdown([], stamp(0), START, wrong))[2] == (
        "- **fleet** disk almost full: ` 9 MiB left `; free some space"
    )


def test_the_time_of_the_last_look_is_kept_whole_or_not_at_all(tmp_path: Path) -> None:
    assert last_seen.last(tmp_path) == ""
    last_seen.remember(tmp_path, stamp(5))
    assert last_seen.last(tmp_path) == stamp(5)
    assert [p.name for p in tmp_path.iterdir()] == [last_seen.FILE]
    (tmp_path / last_seen.FILE).write_text("soon\x1b[2J")
    assert last_seen.last(tmp_path) == ""
    last_seen.remember(tmp_path / "gone", stamp(6))
    assert last_seen.last(tmp_path / "gone") == ""
