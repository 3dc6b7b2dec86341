"""The money of a fleet at rest, read from its files: the words of its supervisor, and those without a ledger."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from harness.agents.supervisor_requests import Reserve
from harness.events.types import Caps, Usage
from harness.offline.ledger import Ledger
from harness.projections.state.row_state import Liveness
from harness.projections.state.session_state import SessionState
from harness.protocol.config import config
from harness.protocol.paths import Folders
from harness.supervisor.money import paid
from harness.supervisor.money.day import Clock
from harness.supervisor.money.reservations import DurableLedger
from harness.views.rows import row as row_of
from harness.views.session_views import FleetView, SessionRow

MODEL = "claude-sonnet-5-5"


class Day(Clock):
    def __init__(self, day: str) -> None:
        super().__init__()
        self.day = day

    def today(self) -> str:
        return self.day


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    made = Folders(tmp_path / "state", tmp_path / "run", tmp_path / "config")
    for folder in (made.state, made.runtime, made.config):
        folder.mkdir()
    return made


def row(sid: str, spent: int = 0) -> SessionRow:
    made = row_of(sid, SessionState(), Liveness())
    return msgspec.structs.replace(made, spent_nano=spent)


async def three_days(folders: Folders) -> DurableLedger:
    """Two sessions on three days: paid, of unknown outcome, and still held."""
    clock = Day("2026-11-01")
    books = await DurableLedger.open(folders.ledger, lambda: config.load(folders).caps, folders.sessions, clock)
    for number, (day, sid) in enumerate((("01", "gone"), ("02", "gone"), ("02", "stays"), ("03", "stays"))):
        clock.day = f"2026-11-{day}"
        made = await books.reserve(sid, Reserve(f"q{number}", 1, MODEL, 1000, 100), Caps())
        if number != 3:
            await books.settle(made.reservation, None if number == 2 else Usage(input=900, output=number + 1))
    return books


async def test_what_was_paid_on_each_day_and_for_removed_sessions_is_the_supervisors_word(folders: Folders) -> None:
    folders.config_file.write_text('[caps]\nday_usd = "7"\nfleet_usd = "90"\n')
    books = await three_days(folders)
    sessions = [(row("stays"), Usage())]
    running = paid.costs(paid.fleet(FleetView(), books), sessions, books)
    files = {path.name: path.read_bytes() for path in folders.ledger.iterdir()}
    stopped = Ledger(folders).costs(sessions)
    assert [day.day for day in stopped.days] == ["2026-11-01", "2026-11-02", "2026-11-03"]
    assert stopped.removed.spent_nano > 0
    for field in ("sessions", "removed", "days"):
        assert getattr(stopped, field) == getattr(running, field)
    of_today = {"spent_today_nano", "reserved_today_nano", "unknown_today_nano"}  # by the real clock here
    for name in {name for name in FleetView.__struct_fields__ if name.endswith("_nano")} - of_today:
        assert getattr(stopped.fleet, name) == getattr(running.fleet, name), name
    assert stopped.fleet.day_cap_nano == 7 * 10**9
    assert {path.name: path.read_bytes() for path in folders.ledger.iterdir()} == files, "nothing was written"
    await books.close()


async def test_a_ledger_that_cannot_be_read_is_said_and_the_logs_stand(folders: Folders) -> None:
    await (await three_days(folders)).close()
    (first, *_) = sorted(folders.ledger.glob("*.jsonl"))
    first.write_bytes(first.read_bytes().replace(b"gone", b"g0ne", 1))
    said = Ledger(folders).costs([(row("stays", 123), Usage(input=7))])
    assert (said.sessions[0].spent_nano, said.sessions[0].usage) == (123, Usage(input=7))
    assert any("ledger cannot be read" in warning for warning in said.fleet.warnings)
    assert said.fleet.spent_total_nano == 123


def test_without_a_ledger_the_logs_stand_and_nothing_is_wrong(folders: Folders) -> None:
    said = Ledger(folders).costs([(row("a", 5), Usage())])
    assert (said.fleet.spent_total_nano, said.removed.spent_nano, said.days, said.fleet.warnings) == (5, 0, [], [])
    assert msgspec.structs.asdict(said.removed)["requests"] == 0


async def test_a_configuration_that_cannot_be_read_is_said(folders: Folders) -> None:
    books = await DurableLedger.open(
        folders.ledger, lambda: config.load(folders).caps, folders.sessions, Day("2026-11-01")
    )
    await books.reserve("s", Reserve("q", 1, MODEL, 10, 10), Caps())
    await books.close()
    folders.config_file.write_text("[caps]\nnonsense = 1\n")
    assert any("nonsense" in warning for warning in Ledger(folders).costs([]).fleet.warnings)
