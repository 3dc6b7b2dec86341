"""Jobs without a process: their output in pieces, lines that fit, what the fold says and what follows from it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from harness.agents import done, readiness
from harness.agents.steps import Park, Say
from harness.domain.calls import job_words
from harness.domain.text import output_lines
from harness.domain.text.formatting import stretch
from harness.events import types as t
from harness.executor import job_log
from harness.projections import apply
from harness.projections.state import jobs
from harness.projections.state.row_state import Liveness
from harness.views import rows
from harness.views.session_views import RUNNING

BITS = st.sampled_from([b"a", b"b", b"ab", b" ", b"."])


@given(pattern=st.text("ab.*", min_size=1, max_size=6), line=st.lists(BITS, max_size=12).map(b"".join))
def test_a_pattern_fits_what_its_parts_stand_in_one_behind_the_other(pattern: str, line: bytes) -> None:
    if not pattern.strip("*"):
        return
    by_the_book = ".*".join(re.escape(part) for part in pattern.split("*"))
    assert output_lines.Pattern.of(pattern).fits(line) == bool(re.search(by_the_book.encode(), line))


@given(st.text("*\n", max_size=3) | st.just("x" * (output_lines.MAX_PATTERN + 1)) | st.just("a\nb"))
def test_a_pattern_that_names_nothing_in_one_line_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match=r"names nothing|over the limit|several lines"):
        output_lines.Pattern.of(pattern)


@given(st.lists(st.binary(max_size=40) | st.just(b"x" * 5000), max_size=12))
def test_however_it_is_cut_the_same_lines_come_out(chunks: list[bytes]) -> None:
    whole = b"".join(chunks)
    piecewise = output_lines.Lines()
    found = [line for chunk in chunks for line in piecewise.feed(chunk)]
    assert all(len(line) <= output_lines.LONGEST for line in found)
    put_together = b"".join([*found, *piecewise.feed(b"\n")])
    assert put_together == whole.replace(b"\n", b"")


@given(st.binary(max_size=6000))
def test_the_newest_lines_are_few_and_short(tail: bytes) -> None:
    text = output_lines.newest(tail)
    assert text.count("\n") < output_lines.NEWEST_LINES
    assert len(text.encode("utf-8", "replace")) <= output_lines.NEWEST_BYTES + 4 * 300


@st.composite
def _outputs(draw: DrawFn) -> list[bytes]:
    sizes = draw(st.lists(st.integers(0, 3 * job_log.PIECE), min_size=1, max_size=5))
    return [bytes([at % 251]) * size for at, size in enumerate(sizes)]


@settings(max_examples=30)
@given(chunks=_outputs())
def test_a_log_keeps_its_beginning_and_its_newest_part_each_byte_in_its_place(
    tmp_path_factory: pytest.TempPathFactory, chunks: list[bytes]
) -> None:
    base = tmp_path_factory.mktemp("log") / "j1"
    log = job_log.Writer(base, 3 * job_log.PIECE)
    for chunk in chunks:
        assert log.append(chunk) == len(chunk)
    log.close()
    whole = b"".join(chunks)
    assert log.total == len(whole)
    kept = sum(job_log.piece(base, number).stat().st_size for number in job_log.pieces(base))
    assert kept <= 3 * job_log.PIECE
    at = 0
    missing = 0
    while (part := job_log.read(base, at, 100_000)).data:
        assert part.data == whole[part.offset : part.end]
        missing += part.missing
        at = part.end
    assert at == len(whole)
    assert missing == len(whole) - kept
    tail = job_log.tail(base, 1000)
    assert tail.data == whole[-1000:]
    assert tail.end == len(whole)
    told = job_log.whole(base)
    assert (b"are not kept" in told) == bool(missing)


def test_a_stretch_of_time_has_two_units() -> None:
    said = [stretch(seconds) for seconds in (0, 59, 60, 3601, 7800, 86_400, 273_600, -5)]
    assert said == ["0s", "59s", "1m", "1h", "2h 10m", "1d", "3d 4h", "0s"]


def _records(*bodies: t.Body) -> list[t.Record]:
    return [t.Record(seq, f"2026-01-01T00:00:{seq:02d}Z", "keeper", 0, body) for seq, body in enumerate(bodies)]


STARTED = t.JobStarted(clock=0.0, job="j1", call_id="c1.0", what="make train", limit_s=60, grace_s=10)
ENDED = t.JobEnded(job="j1", status="error", exit_code=2, ms=7_800_000, last="no memory", printed=900)


def test_an_end_that_no_result_told_is_told_once_by_a_message() -> None:
    state = apply.fold(_records(STARTED, ENDED))
    assert not state.jobs.running
    said = readiness.news(state)
    assert isinstance(said, Say)
    assert said.jobs == ("j1",)
    assert said.text.startswith("job j1 failed, exit code 2, after 2h 10m\nits last lines:\nno memory")
    told = t.UserMessage(text=said.text, origin="harness", jobs=list(said.jobs))
    assert readiness.news(apply.fold(_records(STARTED, ENDED, told))) is None


def test_an_end_that_a_result_tells_is_no_news() -> None:
    ended = t.JobEnded(job="j1", status="ok", told="c2.0")
    assert readiness.news(apply.fold(_records(STARTED, ended))) is None


def test_a_session_whose_one_open_call_waits_for_a_job_is_parked_for_it() -> None:
    wait = t.JobWaiting(call_id="c2.0", job="j1", words="job j1: make train")
    before = (
        STARTED,
        t.ToolProposed(call_id="c2.0", tool="job", ref="r", input={"action": "wait"}),
        t.ToolJudged(call_id="c2.0", action_hash="h", verdict="allow", rule="r", reason="", policy="p", action={}),
        t.ToolStarted(call_id="c2.0", action_hash="h", effect="read"),
    )
    assert not isinstance(readiness.outstanding(apply.fold(_records(*before))), Park)
    assert readiness.outstanding(apply.fold(_records(*before, wait))) == Park("job", "job j1: make train")
    over = t.ToolEnded(call_id="c2.0", status="ok")
    after = apply.fold(_records(*before, wait, t.SessionParked(why="job"), over))
    assert readiness.outstanding(after) is None
    assert after.jobs.heard


def test_nothing_is_checked_and_nothing_is_done_while_a_job_runs() -> None:
    claim = done.Claim("All of it works.")
    waits = done.settle(claim, done.Evidence(("pytest",), at_work="job j1: make train"))
    assert waits == Park("job", "job j1: make train")
    assert isinstance(done.settle(claim, done.Evidence(("pytest",))), done.Check)
    assert not isinstance(done.settle(done.Claim("bye", last=True), done.Evidence(("x",), at_work="job j1")), Park)


def test_a_lost_job_is_told_with_what_not_to_expect() -> None:
    text = job_words.ended(job_words.JobEnd("j1", "lost", note="its keeper ended"))
    assert "is lost" in text
    assert "not run again by itself" in text


def test_the_row_of_a_session_that_waits_says_for_what_and_since_when_the_job_runs() -> None:
    intent = t.SessionIntent(name="n", goal="g", repo="/r", branch="b", worktree="/w", model="m")
    created = t.SessionCreated(base="0" * 40, worktree="/w", branch="b")
    state = apply.fold(_records(intent, created, STARTED, t.SessionParked(why="job", detail="earlier words")))
    row = rows.row("s", state, Liveness(keeper=True, brain=False))
    assert (row.state, row.group, row.detail) == ("running", RUNNING, "job j1: make train")
    assert (row.since, row.jobs) == ("2026-01-01T00:00:02Z", {"j1": "make train"})
    thinking = rows.row("s", state, Liveness(keeper=True, brain=True))
    assert thinking.detail == "thinking"
    printed = rows.row("s", state, Liveness(keeper=True, brain=False, printed="epoch 3 of 9"))
    assert printed.detail == "job j1: make train · epoch 3 of 9"
    beside = rows.row("s", state, Liveness(keeper=True, brain=True, printed="epoch 3 of 9"))
    assert beside.detail == "thinking; job: epoch 3 of 9"


@given(st.binary(max_size=400))
def test_the_newest_line_of_an_output_is_one_line_that_says_something(tail: bytes) -> None:
    found = output_lines.last(tail)
    assert "\n" not in found
    assert "\r" not in found
    assert bool(found) == bool(tail.decode("utf-8", "replace").strip())


def test_the_newest_line_of_a_progress_bar_is_what_it_shows_now() -> None:
    assert output_lines.last(b"begun\n 10%\r 20%\r 30% \n\n") == "30%"


def test_several_jobs_are_named_in_one_line() -> None:
    both = jobs.JobState()
    both.started("", STARTED)
    both.started("", t.JobStarted(clock=0.0, job="j2", call_id="c1.1", what="serve"))
    assert both.words() == "2 jobs: j1, j2"
    assert both.grace_s == 10
    assert jobs.JobState().grace_s == 0
