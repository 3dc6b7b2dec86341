"""An output of megabytes is read again piece by piece, through the sandbox, and only what the session was given."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.eventlog import blobs
from harness.executor.outputs import NoOutput, of_call
from harness.sandbox import bubblewrap
from tests.process.keeperlib import Keepers, Link, action, keepers
from tests.process.test_keeper_calls import run

pytestmark = pytest.mark.sandbox


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Keepers]:
    try:
        bubblewrap.find()
    except bubblewrap.SandboxUnavailable as exc:
        pytest.skip(str(exc))
    (tmp_path / "work").mkdir()
    with keepers(tmp_path) as fleet:
        fleet.spawn()
        yield fleet


def read(fleet: Keepers, link: Link, work: Path, call_id: str, **asked: Any) -> tuple[str, str]:
    what = action(work, call_id, ["true"], access="sandbox", tool="read_output", kind="file", path=".", input=asked)
    del what["argv"]
    end = run(fleet, link, what)
    return end["status"], end["preview"]


def test_every_part_of_a_large_output_can_be_read_again(fleet: Keepers, tmp_path: Path) -> None:
    work = tmp_path / "work"
    link = fleet.supervisor()
    large = run(fleet, link, action(work, "c0.0", ["seq", "-f", "%g of many", "1", "300000"]))
    assert large["output"]["bytes"] > 4 << 20
    small = run(fleet, link, action(work, "c0.1", ["echo", "little"]))
    assert "output" not in small

    status, text = read(fleet, link, work, "c0.2", call="c0.0", offset=150_000, limit=2)
    assert (status, text) == (
        "ok",
        "150000\t150000 of many\n150001\t150001 of many\n(lines 150000 to 150001 of 300000; go on with offset 150002)",
    )
    assert read(fleet, link, work, "c0.3", call="c0.0", grep="^29999. ", limit=1)[1] == (
        "299990\t299990 of many\n(9 more lines match; go on with offset 299991)"
    )
    assert read(fleet, link, work, "c0.4", call="c0.1") == ("ok", "     1\tlittle")
    status, text = read(fleet, link, work, "c0.5", call="c7.0")
    assert (status, text) == ("error", "no call c7.0 of this session has ended with an output")
    status, text = read(fleet, link, work, "c0.6", call="../../etc/passwd")
    assert status == "error"
    assert "is not the id of a call" in text
    assert not list(work.iterdir()), "the sandbox showed it and the worktree got nothing of it"


def test_an_output_that_was_cut_says_so_where_it_ends(fleet: Keepers, tmp_path: Path) -> None:
    work = tmp_path / "work"
    link = fleet.supervisor()
    cut = run(fleet, link, action(work, "c0.0", ["seq", "1", "100000"], output_bytes=20_000))
    assert cut["truncated"]
    status, text = read(fleet, link, work, "c0.1", call="c0.0", grep="cut here")
    assert (status, text.partition("\t")[2]) == ("ok", "[the output was cut here: what came after it was not kept]")
    whole = run(fleet, link, action(work, "c0.2", ["seq", "1", "10000"]))
    assert "truncated" not in whole
    assert read(fleet, link, work, "c0.3", call="c0.2", grep="cut here") == ("error", "no line of the output matches")


def test_a_damaged_output_is_said_and_never_shown(fleet: Keepers, tmp_path: Path) -> None:
    link = fleet.supervisor()
    large = run(fleet, link, action(tmp_path / "work", "c0.0", ["seq", "1", "9000"]))
    stored = blobs.path(fleet.folder().blobs, large["output"]["sha"])
    stored.chmod(0o600)
    stored.write_bytes(stored.read_bytes().replace(b"4000", b"4001"))
    with pytest.raises(NoOutput, match="is damaged"):
        of_call(fleet.folder(), "c0.0")
    status, text = read(fleet, link, tmp_path / "work", "c0.1", call="c0.0")
    assert status == "error"
    assert "cannot be read" in text
