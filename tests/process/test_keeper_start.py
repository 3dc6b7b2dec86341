"""A keeper that starts behind a checkpoint: what it did not read is verified beside its work."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.keeper.log import checkpoint
from tests.process.keeperlib import Keepers, Refused, action, allowed, keepers, note, wait_gone, wait_until

TEXT = "x" * 8000


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Keepers]:
    with keepers(tmp_path) as fleet:
        yield fleet


def left_with_a_checkpoint(fleet: Keepers) -> None:
    """The log of a keeper that was killed after it wrote a few MB."""
    pid = fleet.spawn()["pid"]
    link = fleet.supervisor()
    while not (fleet.folder().root / checkpoint.FILE).exists():
        link.append(*(note(TEXT) for _ in range(60)), cls="B")
    link.append(note("after it"))
    link.close()
    fleet.kill(pid)


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def test_a_sound_log_is_verified_beside_a_call_that_runs(fleet: Keepers, tmp_path: Path) -> None:
    left_with_a_checkpoint(fleet)
    pid = fleet.spawn()["pid"]
    (verifying,) = children(pid)
    link = fleet.supervisor(epoch=2)
    what = action(tmp_path, "c1.0", ["true"])
    link.append(*allowed(what))
    link.call("execute", call_id="c1.0")
    wait_until("the call has ended", lambda: fleet.types()[-1] == "tool.ended")
    wait_until("nothing is left to verify", lambda: verifying not in children(pid))
    assert link.append(note("still here"))["last"] == len(fleet.log()) - 1


def test_damage_in_what_was_not_read_ends_the_keeper_and_is_named_at_the_next_start(fleet: Keepers) -> None:
    left_with_a_checkpoint(fleet)
    segment = fleet.folder().log / "000001.jsonl"
    with segment.open("r+b") as file:
        file.readline()
        file.readline()
        at = file.tell()
        file.seek(at + 100)
        file.write(b"\x00")
    pid = fleet.spawn()["pid"]
    wait_gone(pid)
    assert f"{segment} at byte {at}, record 1" in (fleet.folder().root / "keeper.err").read_text()
    with pytest.raises(Refused) as caught:
        fleet.spawn()
    assert caught.value.code == "damaged"
    assert (caught.value.error["file"], caught.value.error["offset"], caught.value.error["seq"]) == (
        str(segment),
        at,
        1,
    )
