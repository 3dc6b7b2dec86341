"""The log widget on real logs: what stands on the screen, at two sizes, while the log grows, is cut, filtered and
searched.
"""

from __future__ import annotations

import gc
import itertools
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from textual.app import App, ComposeResult
from textual.pilot import Pilot

from harness.eventlog.reader import segment_name
from harness.eventlog.writer import LogWriter
from tests.tui.painted import painted
from widgets.log import log_rows
from widgets.log.event_log import EventLog
from widgets.log.log_rows import on_disk

SIZES = [(80, 24), (120, 40)]
ESCAPE = "\x1b]52;c;?\x07\x1b[2J[bold red]not markup[/]"


class Host(App[None]):
    def __init__(self, folder: Path | None, *, compact: bool = False) -> None:
        super().__init__()
        self.folder = folder
        self.compact = compact
        self.opened: list[int] = []
        self.searched: list[tuple[str, int]] = []

    def compose(self) -> ComposeResult:
        yield EventLog(compact=self.compact)

    def on_mount(self) -> None:
        self.log_view.set_log(on_disk(self.folder) if self.folder is not None else None)
        self.log_view.focus()

    @property
    def log_view(self) -> EventLog:
        return self.query_one(EventLog)

    def on_event_log_opened(self, message: EventLog.Opened) -> None:
        self.opened.append(message.seq)

    def on_event_log_searched(self, message: EventLog.Searched) -> None:
        self.searched.append((message.text, message.seq))


def grid(app: App[None]) -> list[str]:
    """The screen as text, row by row."""
    return [strip.text for strip in painted(app.screen)]


def note(log: LogWriter, text: str) -> None:
    log.append("harness.note", {"level": "info", "text": text}, actor="test")


def mixed(folder: Path, count: int) -> LogWriter:
    """Notes, and every tenth record a tool call."""
    log = LogWriter.open(folder, "abcdefghij", segment_bytes=50_000)
    for i in range(count):
        if i % 10 == 5:
            log.append(
                "tool.proposed",
                {"call_id": f"c{i}.0", "ref": "u", "tool": "exec", "input": {"argv": ["make", f"step{i}"]}},
                actor="brain",
                gen=1,
            )
        else:
            note(log, f"line {i} of it")
        if i % 50 == 0:
            log.commit(sync=False)
    log.commit(sync=False)
    return log


async def settled(pilot: Pilot[None]) -> None:
    """Until filter, search and repaint are done."""
    app = pilot.app
    assert isinstance(app, Host)
    while app.log_view.sync():
        pass
    await app.workers.wait_for_complete()
    await pilot.pause()


@pytest.mark.parametrize("size", SIZES)
async def test_it_opens_at_the_end_and_follows(tmp_path: Path, size: tuple[int, int]) -> None:
    log = mixed(tmp_path, 300)
    app = Host(tmp_path)
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        rows = grid(app)
        assert rows[0].split()[:2] == ["time", "kind"]
        assert "following" in rows[0]
        assert "line 299 of it" in rows[-1]
        assert f"line {300 - size[1] + 1} of it" in rows[1] or "exec: make" in rows[1]
        assert sum("wants" in row for row in rows) == (size[1] - 1 + 4) // 10
        note(log, "and one more")
        log.commit(sync=False)
        assert app.log_view.sync() is False
        await pilot.pause()
        assert "and one more" in grid(app)[-1]
    log.close()


async def test_scrolling_up_stops_following_and_the_end_takes_it_up(tmp_path: Path) -> None:
    log = mixed(tmp_path, 200)
    app = Host(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("pageup")
        await pilot.pause()
        assert not app.log_view.follow
        before = grid(app)
        for i in range(30):
            note(log, f"late {i}")
        log.commit(sync=False)
        app.log_view.sync()
        await pilot.pause()
        assert [row[:78] for row in grid(app)[1:]] == [row[:78] for row in before[1:]], "a reader is not moved"
        assert "of 230" in grid(app)[0]
        await pilot.press("end")
        await pilot.pause()
        assert app.log_view.follow
        assert "late 29" in grid(app)[-1]
        app.log_view.scroll_page_up(animate=False)
        await pilot.pause()
        assert not app.log_view.follow
        app.log_view.scroll_end(animate=False)
        await pilot.pause()
        assert app.log_view.follow
    log.close()


async def test_cursor_and_open(tmp_path: Path) -> None:
    mixed(tmp_path, 100).close()
    app = Host(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("enter", "up", "up", "enter", "home", "enter", "down", "enter")
        await pilot.click(EventLog, offset=(5, 4))
        await pilot.pause()
        assert app.opened == [99, 97, 0, 1]
        assert app.log_view.cursor_seq == 3
        app.log_view.go_to(50)
        await pilot.pause()
        assert app.log_view.cursor_seq == 50
        assert any("line 50 of it" in row for row in grid(app))
        record = app.log_view.record(50)
        assert record is not None
        assert record.seq == 50


@pytest.mark.parametrize("size", SIZES)
async def test_filter_shows_one_group_newest_first_and_keeps_growing(tmp_path: Path, size: tuple[int, int]) -> None:
    log = mixed(tmp_path, 3000)
    app = Host(tmp_path)
    async with app.run_test(size=size) as pilot:
        app.log_view.set_filter(frozenset({"tools"}))
        await settled(pilot)
        assert app.log_view.total == 300
        rows = grid(app)
        assert "step2995" in rows[-1]
        assert all("exec: make step" in row for row in rows[1:])
        assert "only tools" in rows[0]
        log.append(
            "tool.proposed",
            {"call_id": "c9999.0", "ref": "u", "tool": "shell", "input": {"script": "echo new"}},
            actor="brain",
        )
        note(log, "not shown")
        log.commit(sync=False)
        await settled(pilot)
        assert app.log_view.total == 301
        assert "shell: echo new" in grid(app)[-1]
        await pilot.press("home")
        await pilot.pause()
        assert "step5 " in grid(app)[1]
        assert app.log_view.cursor_seq == 5
        app.log_view.set_filter(None)
        await settled(pilot)
        assert app.log_view.cursor_seq == 5
        shown = [app.log_view.cycle_filter() for _ in range(7)]
        assert shown[0] == frozenset({"talk"})
        assert shown[-1] is None
    log.close()


async def test_a_reader_stays_put_while_older_matches_are_found(tmp_path: Path) -> None:
    log = mixed(tmp_path, 3000)
    app = Host(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        view = app.log_view
        view.set_filter(frozenset({"tools"}))
        view.go_to(2505)
        seen = view.cursor_seq
        await settled(pilot)
        assert view.cursor_seq == seen
        assert any(f"step{seen}" in row for row in grid(app))
    log.close()


async def test_search_finds_highlights_and_walks_around(tmp_path: Path) -> None:
    log = mixed(tmp_path, 2000)
    note(log, 'say "Ünïque\\thing" now')
    log.commit(sync=False)
    app = Host(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        view = app.log_view
        view.sync()
        view.search('"ünïque\\thing"')
        await settled(pilot)
        assert app.searched == [('"ünïque\\thing"', 2000)]
        view.search("STEP15")
        await settled(pilot)
        hits = [app.searched[-1][1]]
        for forward in (True, True, False):
            view.next_match(forward=forward)
            await settled(pilot)
            hits.append(app.searched[-1][1])
        assert hits == [1595, 15, 155, 15]
        row = next(y for y, text in enumerate(grid(app)) if "step15 " in text)
        hit = view.get_component_rich_style("el--hit", partial=True)
        marked = [
            s.text for s in painted(app.screen)[row] if s.style and s.style.bgcolor == hit.bgcolor and s.style.bold
        ]
        assert marked == ["step15"]
        view.search("nowhere at all")
        await settled(pilot)
        assert app.searched[-1] == ("nowhere at all", -1)
        view.search("")
        await settled(pilot)
        assert "search" not in grid(app)[0]
    log.close()


async def test_untrusted_text_is_shown_and_does_nothing(tmp_path: Path) -> None:
    log = LogWriter.open(tmp_path, "abcdefghij")
    note(log, ESCAPE)
    log.append("evil\x1b[31m.type", {"x": ESCAPE}, actor="a")
    log.commit(sync=False)
    log.close()
    app = Host(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        text = "\n".join(grid(app))
        assert "\x1b" not in text.replace("\n", "")
        assert "␛]52;c;?␇␛[2J[bold red]not markup[/]" in text
        assert "evil␛[31" in text


async def test_compact_small_and_changing_logs(tmp_path: Path) -> None:
    mixed(tmp_path / "a", 60).close()
    app = Host(tmp_path / "a", compact=True)
    async with app.run_test(size=(34, 6)) as pilot:
        await pilot.pause()
        rows = grid(app)
        assert "line 59" in rows[-1]
        assert rows[0][2] == ":"
        assert rows[0][5] == " "
        app.log_view.set_log(on_disk(tmp_path / "none yet"))
        await pilot.pause()
        assert grid(app)[0].strip() == "nothing recorded yet"
        log = LogWriter.open(tmp_path / "none yet", "abcdefghij")
        note(log, "born")
        log.commit(sync=False)
        app.log_view.sync()
        await pilot.pause()
        assert "born" in grid(app)[0]
        app.log_view.set_log(None)
        await pilot.pause()
        assert "".join(grid(app)).strip() == ""
        await pilot.resize_terminal(80, 24)
        app.log_view.set_log(on_disk(tmp_path / "a"))
        await pilot.pause()
        assert "line 59 of it" in grid(app)[23]
        log.close()


async def test_a_cut_tail_a_damaged_record_and_a_newer_log(tmp_path: Path) -> None:
    mixed(tmp_path / "log", 100).close()
    app = Host(tmp_path / "log")
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        file = max((tmp_path / "log").glob("*.jsonl"))
        data = file.read_bytes()
        at = data.index(b'{"v":1,"seq":95,')
        file.write_bytes(data[:at] + b"#" * 30 + data[at + 30 : data.index(b'{"v":1,"seq":98,')])
        app.log_view.sync()
        await pilot.pause()
        rows = grid(app)
        assert "line 97 of it" in rows[-1]
        assert "record 95 cannot be read" in rows[-3]
        (tmp_path / "new").mkdir()
        from harness.eventlog.framing import GENESIS, closed

        line, _ = closed(
            b'{"v":1,"segment":1,"sid":"x","prev":"%b","format":9,"first_seq":0' % GENESIS.hex().encode(), GENESIS
        )
        (tmp_path / "new" / segment_name(1)).write_bytes(line)
        app.log_view.set_log(on_disk(tmp_path / "new"))
        await pilot.pause()
        assert "format 9" in grid(app)[1]


def private_kib() -> int:
    return sum(
        int(line.split()[1])
        for line in Path("/proc/self/smaps_rollup").read_text().splitlines()
        if line.startswith("Private")
    )


@pytest.fixture
def read_bytes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the size of each read at an offset."""
    sizes: list[int] = []
    pread = os.pread

    def counted(fd: int, size: int, offset: int) -> bytes:
        data = pread(fd, size, offset)
        sizes.append(len(data))
        return data

    monkeypatch.setattr(os, "pread", counted)
    return sizes


async def test_a_large_log_opens_at_once_in_little_memory(
    tmp_path: Path, read_bytes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """200,000 records here (the bench does a million): a few reads to open it, a bounded number of bytes in any one
    step, by a clock that goes on by a millisecond at each look: a step of the real one reads more on a faster machine.
    """
    looks = itertools.count()
    monkeypatch.setattr(log_rows, "time", SimpleNamespace(perf_counter=lambda: next(looks) / 1000))
    log = LogWriter.open(tmp_path, "abcdefghij")
    for i in range(200_000):
        log.append("harness.note", {"level": "info", "text": "all is well with it " * (i % 5)}, actor="test")
        if i % 1000 == 999:
            log.commit(sync=False)
    log.commit(sync=False)
    app = Host(None)
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        gc.collect()
        before = private_kib()
        read_bytes.clear()
        app.log_view.set_log(on_disk(tmp_path))
        app.log_view.action_first()
        app.log_view.action_last()
        assert sum(read_bytes) < 1 << 20 < log.size // 20
        await pilot.pause()
        assert app.log_view.total == 200_000
        app.log_view.set_filter(frozenset({"tools"}))
        steps = []
        more = True
        while more:
            read_bytes.clear()
            more = app.log_view.sync()
            steps.append(sum(read_bytes))
        assert max(steps) < 1 << 20, "one step reads a bounded part, however long the log is"
        assert len(steps) > 5, "filtering is done in steps"
        await pilot.pause()
        assert private_kib() - before < 30 * 1024
    log.close()


async def test_a_record_that_is_no_text_is_named(tmp_path: Path) -> None:
    log = LogWriter.open(tmp_path, "abcdefghij")
    note(log, "hello")
    log.commit(sync=False)
    log.close()
    segment = tmp_path / segment_name(1)
    segment.write_bytes(segment.read_bytes().replace(b"hello", b"he\xfflo"))
    app = Host(tmp_path)
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert "record 0 cannot be read" in grid(app)[1]
