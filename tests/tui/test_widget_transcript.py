"""The transcript on real logs: what stands on the screen at four sizes, while the log grows, is cut, and is hostile."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from harness.eventlog import blobs
from harness.eventlog.writer import LogWriter
from harness.events import message_parts
from harness.events import types as t
from harness.reports.transcript import Page
from tests.tui.app_world import PAYLOADS
from tests.tui.painted import painted
from tests.unit.test_transcript import any_log, call, ended, says, started
from widgets.base.cells import wrap
from widgets.log.log_rows import on_disk
from widgets.log.transcript import Transcript
from widgets.log.transcript_lines import lines
from widgets.log.transcript_spool import newest_output

SIZES = [(60, 20), (80, 24), (120, 40), (200, 50)]
LONG = "I repaired the total of the cart: it ignored the discount, and each rounding lost a cent. " * 3


class Host(App[None]):
    def __init__(self, folder: Path | None, *, compact: bool = False) -> None:
        super().__init__()
        self.folder = folder
        self.compact = compact
        self.opened: list[Transcript.Opened] = []

    def compose(self) -> ComposeResult:
        yield Transcript(compact=self.compact)

    def on_mount(self) -> None:
        self.view.set_log(on_disk(self.folder) if self.folder is not None else None)
        self.view.focus()

    @property
    def view(self) -> Transcript:
        return self.query_one(Transcript)

    def on_transcript_opened(self, message: Transcript.Opened) -> None:
        self.opened.append(message)


def grid(app: App[None]) -> list[str]:
    return [strip.text for strip in painted(app.screen)]


def write(log: LogWriter, *bodies: t.Body) -> None:
    for body in bodies:
        log.append(body.TYPE, msgspec.to_builtins(body), actor="test")
    log.commit(sync=False)


def turn(number: int) -> list[t.Body]:
    """What one turn of an agent leaves in a log."""
    ident = f"c{number * 10}.0"
    return [
        says(f"Step {number}."),
        call(ident, "exec", argv=["make", f"step{number}"]),
        started(ident),
        ended(ident, f"made step {number}\n"),
    ]


@pytest.fixture
def log(tmp_path: Path) -> LogWriter:
    folder = tmp_path / "log"
    folder.mkdir(mode=0o700)
    return LogWriter.open(folder, "abcdefghij", segment_bytes=50_000)


async def until(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    while not condition():
        await pilot.pause(0.01)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("compact", [False, True])
async def test_a_turn_reads_as_rows_at_every_size(
    tmp_path: Path, log: LogWriter, size: tuple[int, int], compact: bool
) -> None:
    write(
        log,
        t.UserMessage(text="Repair the cart.", origin="goal"),
        call("c1.0", "read_file", path="a.py"),
        call("c1.1", "read_file", path="b.py"),
        call("c1.2", "read_file", path="c.py"),
        *(ended(f"c1.{n}", "1\n2") for n in range(3)),
        says(LONG),
        call("c9.0", "edit_file", path="a.py", old="x = 1\n", new="x = 2\ny = 3\n"),
        ended("c9.0", "edited"),
        call("c11.0", "exec", argv=["pytest", "-q"]),
        started("c11.0"),
        ended("c11.0", "F\n1 failed, 3 passed in 0.40s\n", "error", 1, ms=4100),
    )
    app = Host(tmp_path / "log", compact=compact)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        shown = grid(app)
        assert all(cell_len(line) == size[0] for line in shown)
        text = "\n".join(shown)
        for piece in ("goal: Repair the cart.", "✓ read 3 files  a.py, b.py, c.py", "✓ edit a.py  +2 -1", "- x = 1"):
            assert piece in text
        verdict = next(line for line in shown if "✗ pytest -q" in line)
        assert "1 failed, 3 passed in 0.40s" in verdict
        assert verdict.rstrip("▐ ").endswith("4.1s")
        words = " ".join(text.replace("▐", " ").split())
        assert " ".join(LONG.split()) in words, "prose is whole, broken between words"
    log.close()


@pytest.mark.parametrize("size", SIZES)
async def test_it_opens_at_the_end_follows_and_scrolls_by_rows(
    tmp_path: Path, log: LogWriter, size: tuple[int, int]
) -> None:
    for number in range(300):
        write(log, *turn(number))
    app = Host(tmp_path / "log")
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        assert "make step299" in grid(app)[-1]
        write(log, *turn(300))
        app.view.sync()
        await pilot.pause()
        assert "make step300" in grid(app)[-1]
        await pilot.press("pageup", "pageup")
        before = grid(app)
        assert not app.view.follow
        write(log, *turn(301))
        app.view.sync()
        await pilot.pause()
        assert [line[:-1] for line in grid(app)] == [line[:-1] for line in before], "a reader is not moved"
        await pilot.press("home")
        assert "Step 0." in "\n".join(grid(app)[:3])
        await pilot.press(*["down"] * 3)
        row = app.view.cursor_row
        assert row is not None
        assert row.what == "make step1"
        await pilot.press("up", "enter")
        assert [(m.row.what, len(m.records)) for m in app.opened] == [("Step 1.", 1)]
        await pilot.press("end")
        assert app.view.follow
        assert "make step301" in grid(app)[-1]
    log.close()


async def test_scrolling_on_to_the_end_follows_again(tmp_path: Path, log: LogWriter) -> None:
    for number in range(60):
        write(log, *turn(number))
    app = Host(tmp_path / "log", compact=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        before = grid(app)
        app.view.action_page(-1)
        app.view.action_page(-1)
        await pilot.pause()
        assert not app.view.follow
        assert grid(app) != before
        for _ in range(3):
            app.view.action_page(1)
        await pilot.pause()
        assert app.view.follow
        assert grid(app) == before
    log.close()


async def test_every_row_is_met_once_going_up_and_going_down(tmp_path: Path, log: LogWriter) -> None:
    for number in range(90):
        write(log, *turn(number), t.LeaseGranted(gen=number + 1, epoch=1))
    app = Host(tmp_path / "log")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        up = []
        while (row := app.view.cursor_row) is not None and (not up or up[-1] != row.seq):
            up.append(row.seq)
            app.view.action_cursor(-1)
        down = [up[-1]]
        while not app.view.follow:
            app.view.action_cursor(1)
            row = app.view.cursor_row
            assert row is not None
            down.append(row.seq)
        assert up == sorted(up, reverse=True)
        assert len(up) == 180
        assert list(dict.fromkeys(down)) == up[::-1]
    log.close()


async def test_a_call_that_runs_shows_its_newest_lines_and_a_clock(tmp_path: Path, log: LogWriter) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    write(log, call("c0.0", "exec", argv=["pytest"]), started("c0.0"))
    (spool / "c0.0-1.out").write_text("one\ntwo\nthree\n10 %\r61 %\nlast\x1b[2J\n", "utf-8")
    app = Host(tmp_path / "log", compact=True)
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        app.view.tick()
        await until(pilot, lambda: "last" in "\n".join(grid(app)))
        shown = grid(app)
        assert "▶ pytest" in shown[0]
        assert ":" in shown[0].split()[-1]
        assert [line.strip() for line in shown[1:4]] == ["three", "61 %", "last␛[2J"]
        write(log, ended("c0.0", "12 passed in 0.40s\n"))
        app.view.sync()
        await pilot.pause()
        assert [line.split() for line in grid(app)[:2]] == [["✓", "pytest", "12", "passed", "in", "0.40s", "0.4s"], []]
    log.close()


def test_output_is_read_from_ordinary_files_of_calls_only(tmp_path: Path) -> None:
    (tmp_path / "secret.out").write_text("no", "utf-8")
    os.symlink(tmp_path / "secret.out", tmp_path / "c1.0-1.out")
    os.mkfifo(tmp_path / "c2.0-1.out")
    assert newest_output(tmp_path, "c1.0-1") == ()
    assert newest_output(tmp_path, "c2.0-1") == ()
    assert newest_output(tmp_path, "secret") == ()
    assert newest_output(tmp_path, "c3.0-1") == ()
    (tmp_path / "c4.0-1.out").write_bytes(b"x" * 9000 + b"\na\n\n" + b"b\n")
    assert newest_output(tmp_path, "c4.0-1") == ("a", "b")


async def test_a_reply_beside_the_log_is_read_from_there(tmp_path: Path, log: LogWriter) -> None:
    whole = msgspec.json.encode([message_parts.Text("All of it."), message_parts.Call("u", "exec", {})])
    sha, size = blobs.put(tmp_path / "blobs", whole)
    write(log, says(parts=None, parts_blob=t.BlobRef(sha, size)), says(parts=None, parts_blob=t.BlobRef("0" * 64, 9)))
    app = Host(tmp_path / "log", compact=True)
    async with app.run_test(size=(60, 20)) as pilot:
        await pilot.pause()
        assert grid(app)[0].strip() == "All of it."
        assert "9 bytes whose text cannot be read" in grid(app)[1]
    log.close()


async def test_what_is_wrong_with_a_log_is_said(tmp_path: Path, log: LogWriter) -> None:
    write(log, says("One."), says("Two."), says("Three."))
    log.close()
    (segment,) = (tmp_path / "log").glob("*.jsonl")
    data = segment.read_bytes()
    segment.write_bytes(data.replace(b'"Two."', b'"Tw\xffo"'))
    app = Host(tmp_path / "log", compact=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert [line.strip() for line in grid(app)[:3]] == [
            "One.",
            "· damaged: record 1 cannot be read; watchfloor verify says where",
            "Three.",
        ]
        app.view.set_log(None)
        await pilot.pause()
        assert not "".join(grid(app)).strip()
        app.view.set_log(on_disk(tmp_path / "not there"))
        await pilot.pause()
        assert "nothing said or done yet" in grid(app)[0]


async def test_a_tail_that_is_taken_back_is_forgotten(tmp_path: Path, log: LogWriter) -> None:
    write(log, says("Kept."))
    log.close()
    (segment,) = (tmp_path / "log").glob("*.jsonl")
    kept = segment.read_bytes()
    log = LogWriter.open(tmp_path / "log", "abcdefghij", segment_bytes=50_000)
    write(log, says("Lost."))
    log.close()
    app = Host(tmp_path / "log", compact=True)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "Lost." in grid(app)[1]
        os.truncate(segment, len(kept))
        app.view.sync()
        await pilot.pause()
        assert "Lost." not in "\n".join(grid(app))
        assert "Kept." in grid(app)[0]


# -- hostile text ----------------------------------------------------------------------------------


def safe(text: str) -> bool:
    return all(unicodedata.category(ch) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for ch in text)


@given(st.integers(0, 2**32), st.integers(16, 200), st.booleans(), st.text(max_size=60))
@settings(max_examples=60)
def test_any_row_fits_and_nothing_in_it_acts_on_a_terminal(seed: int, width: int, roomy: bool, evil: str) -> None:
    log = any_log(seed, 120)
    page = Page(0)
    while page.wants(len(log)):
        page.take(log[page.next])
    for row in page.rows:
        for line in lines(row, width, 1e9, (evil, "\x1b[2J"), roomy=roomy):
            runs = [text for text, _ in (*line.left, *line.right)]
            assert sum(map(cell_len, runs)) <= width
            assert all(map(safe, runs))


@given(st.text() | st.text(alphabet="- a 日⺀é1.", max_size=12), st.integers(2, 60) | st.integers(2, 6))
@example(" ⺀", 2)
def test_wrapping_loses_nothing_but_blanks_and_never_is_too_wide(text: str, width: int) -> None:
    parts = wrap(text, width)
    assert "".join(parts).replace(" ", "") == text.replace(" ", "")
    assert all(cell_len(part) <= width for part in parts)


@pytest.mark.parametrize("size", SIZES)
async def test_hostile_text_stays_text_in_every_place(tmp_path: Path, log: LogWriter, size: tuple[int, int]) -> None:
    spool = tmp_path / "spool"
    spool.mkdir()
    (spool / "c8.0-1.out").write_text("\n".join(PAYLOADS), "utf-8")
    evil = "".join(PAYLOADS)
    write(
        log,
        t.UserMessage(text=evil, origin=evil),
        says("\n".join(PAYLOADS)),
        call("c1.0", "read_file", path=evil),
        ended("c1.0", evil, "error"),
        call("c2.0", "edit_file", path=evil, old="\n".join(PAYLOADS), new="x"),
        ended("c2.0", evil, "denied"),
        call("c4.0", "exec", argv=["x", evil]),
        ended("c4.0", "\n".join(PAYLOADS), "error", 1),
        t.ApprovalRequested(approval_id="a", kind=evil, title=evil, options=[]),
        t.HarnessNote(level="error", text=evil, component=evil),
        call("c8.0", evil, what=evil),
        started("c8.0"),
    )
    app = Host(tmp_path / "log")
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        app.view.tick()
        await until(pilot, lambda: not app.workers)
        for _ in range(12):
            assert all(safe(line) and cell_len(line) == size[0] for line in grid(app))
            await pilot.press("pageup")
    log.close()
