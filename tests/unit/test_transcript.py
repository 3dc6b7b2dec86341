"""The transcript: total on anything a log can hold, rows named by what began them, and what they say in words."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.events import message_parts
from harness.events import types as t
from harness.reports import call_words, verdicts
from harness.reports.call_words import Bit, Change
from harness.reports.describe import describe
from harness.reports.record_detail import facts
from harness.reports.transcript import PAGE, Page
from harness.reports.transcript_row import Kind, Row, Stage
from harness.tools import summary
from tests.unit.test_events_fold import KINDS, line, make
from widgets.log.milestones import MILESTONES

TS = "2026-11-22T17:46:01.671Z"
USAGE = t.Usage(input=1, output=1)


def records(bodies: Iterable[t.Body], first: int = 0) -> list[t.Record]:
    return [t.Record(seq, TS, "test", 0, body) for seq, body in enumerate(bodies, first)]


def paged(log: list[t.Record]) -> list[Page]:
    """Every page of a log, each computed by itself."""
    pages = []
    for number in range(-(-len(log) // PAGE)):
        page = Page(number)
        while page.wants(len(log)):
            page.take(log[page.next])
        pages.append(page)
    return pages


def rows(*bodies: t.Body) -> list[Row]:
    return [row for page in paged(records(bodies)) for row in page.rows]


def any_log(seed: int, length: int) -> list[t.Record]:
    """Records of all kinds, in an order that no session would write."""
    rng = random.Random(seed)
    log = []
    for seq in range(length):
        kind = rng.choice(KINDS)
        data = make(rng, t.TYPES[kind])
        if kind == "tool.proposed":
            data["tool"] = rng.choice(["exec", "check", "read_file", "search", "edit_file", "other"])
        log.append(t.decode(line(seq, kind, data)))
    return log


def says(text: str = "", stop: str = message_parts.CALLS, **fields: Any) -> t.ModelMessage:
    fields.setdefault("parts", [message_parts.Text(text), message_parts.Call("u", "exec", {})] if text else [])
    return t.ModelMessage(request_id="r", message_id="m", model="x", stop=stop, usage=USAGE, cost_nano=1, **fields)


def call(ident: str, tool: str, **data: object) -> t.ToolProposed:
    return t.ToolProposed(call_id=ident, tool=tool, input=dict(data), ref="u")


def started(ident: str) -> t.ToolStarted:
    return t.ToolStarted(call_id=ident, action_hash="h", effect="contained")


def ended(ident: str, preview: str = "", status: str = "ok", code: int | None = 0, ms: int = 400) -> t.ToolEnded:
    return t.ToolEnded(call_id=ident, status=status, preview=preview, exit_code=code, ms=ms)


def test_every_mark_is_of_something_that_happens() -> None:
    rng = random.Random(1)
    happens = [t.decode(line(0, kind, make(rng, t.TYPES[kind]))) for kind in KINDS for _ in range(20)]
    assert set(MILESTONES) <= {describe(record).kind for record in happens}
    assert all(len(mark) == 1 for mark, _ in MILESTONES.values())


# -- on anything -----------------------------------------------------------------------------------


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(1, 700))
def test_any_log_becomes_rows_that_are_named_by_their_records(seed: int, length: int) -> None:
    log = any_log(seed, length)
    for page in paged(log):
        seqs = [row.seq for row in page.rows]
        assert seqs == sorted(set(seqs)), "one row a record, in order"
        assert all(page.first <= seq < page.stop for seq in seqs)
        assert all(row.seq == row.records[0] and list(row.records) == sorted(row.records) for row in page.rows)
        proposed = [r.seq for r in log[page.first : page.stop] if isinstance(r.body, t.ToolProposed)]
        held = Counter(seq for row in page.rows for seq in row.records)
        assert all(held[seq] == 1 for seq in proposed), "no call is lost, none stands twice"


@pytest.mark.slow
@given(st.integers(0, 2**32), st.integers(1, 600), st.integers(0, 600))
def test_a_page_that_was_looked_at_early_becomes_what_it_is_at_the_end(seed: int, length: int, early: int) -> None:
    log = any_log(seed, length)
    page = Page(0)
    for head in (min(early, length), length):
        while page.wants(head):
            page.take(log[page.next])
    assert page.rows == paged(log)[0].rows


def test_a_commit_of_the_harness_is_named_by_its_title() -> None:
    command = "git add -A && { git diff --cached --quiet || git commit -q -m 'Do a, it'\"'\"'s b\n\nUS-1 passed'; }"
    assert summary.what("chore", {"chore": "commit", "command": command}) == "commit: Do a, it's b"
    assert summary.what("chore", {"chore": "commit", "command": "git commit -m 'cut"}) == "git commit -m 'cut"
    assert summary.what("chore", {"chore": "setup", "command": "sh ./init.sh -m x"}) == "sh ./init.sh -m x"


@given(st.text(max_size=300), st.text(max_size=300))
def test_what_an_edit_changes_is_counted_exactly(old: str, new: str) -> None:
    changed = call_words.change("edit_file", {"path": "a", "old": old, "new": new})
    before = Counter(old.splitlines())
    after = Counter(new.splitlines())
    assert changed.added == (after - before).total()
    assert changed.removed == (before - after).total()
    assert sum(bit.role == "add" for bit in changed.lines) <= 3
    assert sum(bit.role == "remove" for bit in changed.lines) <= 3
    assert all(bit.text in (after if bit.role == "add" else before) for bit in changed.lines)


@given(st.text())
def test_any_output_has_an_end_and_perhaps_a_verdict(output: str) -> None:
    assert len(verdicts.verdict(output)) <= 300
    assert all(line.strip() for line in verdicts.tail(output))


# -- what rows say ---------------------------------------------------------------------------------


def test_reads_fold_into_one_row_until_something_else_happens() -> None:
    made = rows(
        says("I look around."),
        call("c1.0", "read_file", path="a.py"),
        call("c1.1", "read_file", path="b.py"),
        started("c1.0"),
        ended("c1.0", "1\n2"),
        started("c1.1"),
        ended("c1.1", "1"),
        says(),
        call("c7.0", "search", pattern="x|y"),
        ended("c7.0", "a.py:1:x"),
        says("Found."),
        call("c10.0", "read_file", path="c.py"),
    )
    assert [(row.kind, row.what, row.result, row.stage) for row in made] == [
        (Kind.PROSE, "I look around.", "", Stage.NONE),
        (Kind.CALL, "read 2 files, searched once", "a.py, b.py, x|y", Stage.OK),
        (Kind.PROSE, "Found.", "", Stage.NONE),
        (Kind.CALL, "read c.py", "", Stage.PROPOSED),
    ]
    assert made[1].seq == 1


def test_a_read_that_fails_is_named_among_the_others() -> None:
    made = rows(
        call("c0.0", "read_file", path="a.py"),
        call("c0.1", "read_file", path="gone.py"),
        ended("c0.0", "1"),
        ended("c0.1", "there is no file gone.py", "error", 1),
    )
    assert made[0].result == "a.py, gone.py (there is no file gone.py)"
    assert made[0].stage is Stage.FAILED


def test_a_call_goes_through_its_stages_in_one_row() -> None:
    bodies: list[t.Body] = [call("c0.0", "exec", argv=["git", "push", "origin", "main"], access="network")]
    seen = []
    for body in (
        t.ApprovalRequested(approval_id="a1", kind="tool", title="push to origin", options=["allow"], call_id="c0.0"),
        t.ApprovalDecided(approval_id="a1", decision_id="d1", decision="allow", call_id="c0.0"),
        started("c0.0"),
        ended("c0.0", "To /srv/x.git\n*\t337ef7d:refs/heads/main\t[new branch]\nDone\n"),
    ):
        bodies.append(body)
        (row,) = rows(*bodies)
        seen.append((row.stage, row.result, row.since, row.spool))
    assert row.what == "git push origin main · network"
    assert row.ms == 400
    assert seen == [
        (Stage.ASKED, "asks you: push to origin", "", ""),
        (Stage.PROPOSED, "you decided: allow", "", ""),
        (Stage.RUNNING, "", TS, "c0.0-1"),
        (Stage.OK, "main [new branch] · you allowed it", "", ""),
    ]


def test_tests_are_told_by_their_verdict_and_other_failures_by_their_last_lines() -> None:
    tests, script = rows(
        call("c0.0", "exec", argv=["pytest", "-q"]),
        ended("c0.0", "F..\nE   assert 1 == 2\n1 failed, 2 passed in 0.40s\n", "error", 1),
        call("c2.0", "shell", script="set -e\nmake all\nmake install\n"),
        ended("c2.0", "cc x.c\nx.c:1: error: no\nmake: *** [x] Error 1\n\nstop\n", "error", 2),
    )
    assert (tests.result, tests.more) == ("1 failed, 2 passed in 0.40s", ())
    assert script.what == "make all … (+2 lines)"
    assert script.result == "exit 2"
    assert [bit.text for bit in script.more] == ["x.c:1: error: no", "make: *** [x] Error 1", "stop"]


def test_edits_show_their_first_lines_and_how_a_plan_moved() -> None:
    edit, plan, whole = rows(
        call("c0.0", "edit_file", path="a.py", old="x = 1\ny = 2\n", new="x = 1\ny = 3\nz = 4\n"),
        call("c0.1", "edit_file", path="PLAN.md", old="- [ ] one\n", new="- [x] one\n"),
        call("c0.2", "write_file", path="prd.json", content='{"passes": true}\n{"passes": false}'),
    )
    assert (edit.what, edit.added, edit.removed) == ("edit a.py", 2, 1)
    assert edit.more == (Bit("remove", "y = 2"), Bit("add", "y = 3"), Bit("add", "z = 4"))
    assert (plan.result, whole.result) == ("+1 done", "1/2 done")
    assert call_words.change("exec", {"argv": ["x"]}) == Change()


def test_a_file_that_is_written_anew_counts_what_changed_in_it() -> None:
    content = "one\ntwo\nTHREE\nfour\n"
    said_by_end = "replaced a.py (4 lines, 19 bytes; +1 -1 at 3)"
    anew, same, new, blob, torn = rows(
        call("c0.0", "write_file", path="a.py", content=content),
        ended("c0.0", said_by_end),
        call("c1.0", "write_file", path="a.py", content=content),
        ended("c1.0", "replaced a.py (4 lines, 19 bytes; +0 -0)"),
        call("c2.0", "write_file", path="a.py", content=content),
        ended("c2.0", "created x; +9 -9 at 1) (4 lines, 19 bytes)"),
        t.ToolProposed(call_id="c3.0", tool="write_file", ref="u", input_blob=t.BlobRef("0" * 64, 99_999)),
        ended("c3.0", said_by_end),
        call("c4.0", "write_file", path="a.py", content=content),
        ended("c4.0", "replaced a.py (4 lines, 19 bytes; +1 -0 at 9)"),
    )
    assert (anew.added, anew.removed, anew.more) == (1, 1, (Bit("add", "THREE"),))
    assert (same.added, same.removed, same.more) == (0, 0, ())
    assert (new.added, new.removed) == (4, 0)
    assert (blob.added, blob.removed, blob.more) == (1, 1, ())
    assert (torn.added, torn.more) == (1, ())


def test_refusals_doubts_and_denials_say_why() -> None:
    made = rows(
        call("c0.0", "exec", argv=["x"]),
        ended("c0.0", "denied: not today\n", "denied", None),
        call("c2.0", "exec", argv=["y"]),
        started("c2.0"),
        t.ToolInDoubt(call_id="c2.0", why="the keeper died"),
        t.ToolResolved(call_id="c2.0", resolution="confirmed_done"),
        call("c6.0", "exec", argv=["z"]),
        t.ToolEnded(call_id="c6.0", status="timeout", limit="timeout_s", ms=9000),
    )
    assert [(row.stage, row.result) for row in made] == [
        (Stage.STOPPED, "denied: denied: not today"),
        (Stage.OK, "confirmed done"),
        (Stage.FAILED, "timed out at the limit of timeout_s"),
    ]


def test_a_call_whose_input_is_in_a_blob_says_what_its_action_is_about() -> None:
    (row,) = rows(
        t.ToolProposed(call_id="c0.0", tool="write_file", ref="u", input_blob=t.BlobRef("0" * 64, 99_999)),
        t.ToolJudged(
            call_id="c0.0",
            action_hash="h",
            verdict="allow",
            rule="r",
            reason="",
            policy="p",
            action={"path": "big.json", "env": {"A": "B"}},
        ),
        ended("c0.0"),
    )
    assert row.what == "write big.json"


def test_a_request_without_a_call_is_a_row_that_its_answer_ends() -> None:
    asked = t.ApprovalRequested(approval_id="a1", kind="cap", title="$1 of $1 used", options=["raise"])
    (row,) = rows(asked)
    assert (row.stage, row.label, row.what) == (Stage.ASKED, "cap reached", "$1 of $1 used")
    (row,) = rows(asked, t.ApprovalDecided(approval_id="a1", decision_id="d", decision="raise"))
    assert (row.stage, row.result) == (Stage.NONE, "you decided: raise")


def test_failed_requests_in_a_row_are_one_row() -> None:
    fails = [t.ModelFailed(request_id="r", attempt=n, kind="overloaded", message="busy") for n in (1, 2, 3)]
    first, told = rows(*fails, t.UserMessage(text="go on", origin="human"))
    assert (first.label, first.result, first.records) == ("no reply", "3 times", (0, 1, 2))
    assert (told.kind, told.label, told.what) == (Kind.TOLD, "you", "go on")


def test_a_reply_that_was_cut_says_so_and_one_in_a_blob_is_read_or_named() -> None:
    (cut,) = rows(says("I begin", message_parts.LENGTH))
    assert (cut.what, cut.result) == ("I begin", "(length)")
    stored = says(parts=None, parts_blob=t.BlobRef("0" * 64, 20_000))
    (named,) = rows(stored)
    assert "20,000 bytes" in named.what
    page = Page(0)
    page.take(records([stored])[0], "All of it.")
    assert page.rows[0].what == "All of it."


def test_what_a_machine_needs_has_no_row() -> None:
    assert (
        rows(
            t.WorkCommitted(head="1" * 40, before="0" * 40, commits=[t.Commit("1111111", "Add it")]),
            t.KeeperStarted(pid=1, start=1, boot="b"),
            t.LeaseGranted(gen=1, epoch=1),
            t.LeaseEnded(gen=1, reason="parked", exit_code=0),
            t.SessionParked(why="approval"),
            t.CheckVerdict(call_id="c0.0", command="pytest", passed=True),
        )
        == []
    )


def test_a_long_call_of_an_earlier_page_is_finished_by_a_later_one() -> None:
    notes = [t.HarnessNote(level="info", text=str(n)) for n in range(PAGE)]
    log = records([call("c0.0", "exec", argv=["sleep", "9"]), *notes, ended("c0.0", "done")])
    first, second = paged(log)
    assert first.rows[0].stage is Stage.OK
    assert first.rows[0].result == "done"
    assert len(second.rows) == 1


@pytest.mark.parametrize(
    ("output", "how"),
    [
        ("....\n4 passed in 0.12s\n", "4 passed in 0.12s"),
        (
            "=== 1 failed, 2 passed, 1 skipped in 1.20s (0:00:01) ===",
            "1 failed, 2 passed, 1 skipped in 1.20s (0:00:01)",
        ),
        ("no tests ran in 0.01s", "no tests ran in 0.01s"),
        ("Ran 19 tests in 0.005s\n\nFAILED (failures=6, skipped=9)\n", "19 tests: FAILED (failures=6, skipped=9)"),
        ("Ran 1 test in 0.005s\n\nOK\n", "1 test: OK"),
        ("test result: ok. 5 passed; 0 failed; 0 ignored", "ok. 5 passed; 0 failed; 0 ignored"),
        ("Tests:       1 failed, 2 passed, 3 total\nTime: 1 s", "1 failed, 2 passed, 3 total"),
        ("  12 passing (1s)\n  1 failing\n", "12 passing, 1 failing"),
        ("ok  \tx/a\t0.1s\nFAIL\tx/b\t0.2s\nFAIL\n", "1 package ok, 1 failed"),
        ("OK\n", ""),
        ("2 passed the exam", ""),
        ("50 %\r100 %\r\n\x1b[32m3 passed\x1b[0m in 0.10s\n", "3 passed in 0.10s"),
    ],
)
def test_the_verdicts_of_common_runners(output: str, how: str) -> None:
    assert verdicts.verdict(output) == how


def check(ident: str, command: str) -> t.ToolProposed:
    return t.ToolProposed(call_id=ident, tool="check", input={"command": command}, ref="")


def checked(ident: str, command: str, code: int = 0, *, counts: bool | None = None, why: str = "") -> list[t.Body]:
    passed = code == 0 if counts is None else counts
    verdict = t.CheckVerdict(call_id=ident, command=command, passed=passed, why=why)
    return [check(ident, command), started(ident), ended(ident, code=code), verdict]


def test_checks_that_follow_each_other_are_one_row_that_names_those_that_fail() -> None:
    bodies = [body for n in range(42) for body in checked(f"c{n}.0", f"test -s f{n}", int(n == 7))]
    log = records([says("Done."), *bodies])
    _, row = (row for page in paged(log) for row in page.rows)
    assert (row.kind, row.label, row.what, row.stage) == (Kind.CALL, "check", "42 criteria", Stage.FAILED)
    assert row.result == "41 passed, 1 failed"
    assert row.more == (Bit("quiet", "failed: test -s f7 · exit 1"),)
    assert row.ms == 42 * 400
    assert row.records == tuple(range(1, len(log)))


def test_a_check_that_exits_with_0_and_does_not_count_is_not_one_that_passed() -> None:
    nothing = checked("c1.0", "pytest", counts=False, why="no test ran")
    (alone,) = rows(*nothing)
    assert (alone.what, alone.stage, alone.result) == ("pytest", Stage.FAILED, "no test ran")
    (both,) = rows(*checked("c0.0", "make"), *nothing)
    assert (both.stage, both.result) == (Stage.FAILED, "1 passed, 1 failed")
    assert both.more == (Bit("quiet", "failed: pytest · no test ran"),)


def test_a_row_of_checks_says_how_far_it_is_and_ends_with_what_comes_between() -> None:
    first = checked("c0.0", "make")
    (row,) = rows(*first, check("c1.0", "pytest"), started("c1.0"))
    assert (row.what, row.stage, row.result) == ("2 criteria", Stage.RUNNING, "1 passed, 1 runs")
    assert (row.since, row.spool) == (TS, "c1.0-1")
    own, said_between, other = rows(*first, says("Again."), *checked("c1.0", "pytest"))
    assert (own.what, said_between.kind, other.what) == ("make", Kind.PROSE, "pytest")
    assert [row.what for row in rows(*first, call("c1.0", "exec", argv=["make"]))] == ["make", "make"]


def test_many_failing_checks_name_the_first_few_and_count_the_rest() -> None:
    (row,) = rows(*(body for n in range(9) for body in checked(f"c{n}.0", f"test -s f{n}", 1)))
    assert len(row.more) == 6
    assert row.more[-1].text == "(+4 more)"


def test_the_verdict_on_a_check_of_an_earlier_page_is_said_in_its_row() -> None:
    notes = [t.HarnessNote(level="info", text=str(n)) for n in range(PAGE - 3)]
    log = records([*notes, *checked("c0.0", "pytest", counts=False, why="no test ran")])
    first, _ = paged(log)
    assert (first.rows[-1].stage, first.rows[-1].result) == (Stage.FAILED, "no test ran")


def test_two_reads_of_one_tool_name_it_once() -> None:
    both = [call("c0.0", "read_file", path="a.py"), call("c0.1", "read_file", path="b.py")]
    (done,) = rows(*both, ended("c0.0", "a"), ended("c0.1", "b"))
    assert done.what == "read a.py, b.py"
    (mixed,) = rows(both[0], call("c0.1", "search", pattern="x"), ended("c0.0", "a"), ended("c0.1", "b"))
    assert mixed.what.startswith("read a.py, ")
    assert "x" in mixed.what
    assert mixed.what.count("read") == 1


def test_a_request_does_not_repeat_the_file_of_its_row() -> None:
    asked = t.ApprovalRequested(
        approval_id="a1", kind="tool", title="write_file /etc/hosts", options=["allow"], call_id="c0.0"
    )
    (row,) = rows(call("c0.0", "write_file", path="/etc/hosts", content="x\n"), asked)
    assert (row.what, row.result) == ("write /etc/hosts", "asks you")


def test_a_task_that_passed_is_one_row_and_one_that_did_not_says_why() -> None:
    flipped = t.PlanFlipped(entry="US-7", passes=True, why="1 of 1 checks passed", calls=["c9.0"])
    passed = t.IterationEnded(n=7, entry="US-7", outcome="passed", reason="1 of 1 checks passed")
    noted = t.ProgressKept(path="progress.txt", n=7, sha="ab", by_harness=True)
    assert [row.label for row in rows(flipped, passed, noted)] == ["plan"]
    failed = t.IterationEnded(n=7, entry="US-7", outcome="failed", reason="2 checks fail")
    own = t.ProgressKept(path="progress.txt", n=7, sha="ab")
    assert [(row.label, "2 checks fail" in row.what) for row in rows(failed, own)] == [
        ("task", True),
        ("progress", False),
    ]


def test_an_output_is_shown_whole_and_without_its_colours() -> None:
    (record,) = records([t.ToolEnded(call_id="c0.0", status="ok", preview="\x1b[1;31mred\x1b[0m\n\x1b[2Jrest", ms=1)])
    assert ("output", "red\n\x1b[2Jrest") in facts([record]), "only colours go; what moves the cursor stays to be seen"
