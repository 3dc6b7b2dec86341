"""Limits to be held strictly: where the kernel cannot, nothing begins, and what cannot be held is named."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from harness.domain.problems import SESSION
from harness.sandbox import cgroups
from harness.supervisor.base.errors import OpError
from harness.supervisor.upkeep import sandbox_report
from harness.supervisor.upkeep.sandbox_report import SandboxReport
from harness.views.replies import LimitHeld, SandboxTested
from tests.fleetlib import HOLD, Fleet, fleet, play, wait_for

HELD = LimitHeld("disk", "1 GiB", "watched", holds=True, hard=False)
WATCHED = LimitHeld("memory", "1 GiB", "watched", holds=True, hard=False, needs="a cgroup")
NEXT = "echo next > next.txt"


def without_a_group() -> bool:
    try:
        cgroups.look()
    except cgroups.NotDelegated:
        return True
    return False


async def report_of(
    monkeypatch: pytest.MonkeyPatch, *limits: LimitHeld, ok: bool = True, reason: str = ""
) -> SandboxReport:
    said = msgspec.json.encode(SandboxTested(ok=ok, reason=reason, limits=list(limits)))

    async def printed(*_: object, **__: object) -> bytes:
        return said

    monkeypatch.setattr(sandbox_report, "printed", printed)
    made = SandboxReport()
    await made.run({})
    return made


@pytest.mark.parametrize(
    ("limits", "ok", "names"),
    [([WATCHED], True, "memory (1 GiB): watched; needs a cgroup"), ([], False, "the sandbox does not work (no bwrap)")],
)
async def test_what_cannot_be_held_is_refused_by_name_and_only_where_it_is_wanted(
    monkeypatch: pytest.MonkeyPatch, limits: Sequence[LimitHeld], ok: bool, names: str
) -> None:
    made = await report_of(monkeypatch, HELD, *limits, ok=ok, reason="" if ok else "no bwrap")
    await made.refuse(strict=False)
    with pytest.raises(OpError) as caught:
        await made.refuse(strict=True)
    assert caught.value.code == "limits_not_held"
    assert names in caught.value.message
    assert "strict = false" in caught.value.hint


async def test_where_the_kernel_holds_all_that_it_can_nothing_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    made = await report_of(monkeypatch, HELD, msgspec.structs.replace(WATCHED, hard=True, needs=""))
    await made.refuse(strict=True)


def set_strict(f: Fleet, wanted: bool) -> None:
    text = f.folders.config_file.read_text()
    f.folders.config_file.write_text(
        text.replace(f"strict = {str(not wanted).lower()}", f"strict = {str(wanted).lower()}")
    )


@pytest.mark.sandbox
@pytest.mark.skipif(not without_a_group(), reason="a cgroup was delegated to us here")
def test_a_strict_fleet_refuses_to_begin_and_one_that_becomes_so_waits_and_goes_on() -> None:
    with fleet(config="[limits]\nstrict = false\n") as f:
        sid = f.launch(play([HOLD], [("shell", {"script": NEXT})], "Done."), name="before")
        f.wait_event(sid, "tool.started")
        assert "cannot be held strictly here" in f.run("doctor", check=False).stdout
        set_strict(f, True)

        def refused() -> str:
            done = f.run("launch", "--repo", str(f.root / "repo"), "--goal", play("Done."), check=False)
            return done.stderr if done.returncode == 5 else ""

        said = wait_for("a launch that is refused", refused)
        for words in ("[limits] strict", "memory (", "Delegate=yes", "strict = false"):
            assert words in said
        assert f.run("doctor", check=False).returncode == 1
        f.release(sid)
        waits = wait_for(
            "the session to wait", lambda: SESSION["limits"].headline in f.row(sid)["detail"] and f.row(sid)
        )
        assert waits["state"] == "parked", "somebody has to mend it"
        assert f.requests() == [], "nobody is asked"
        assert not (Path(waits["worktree"]) / "next.txt").exists()
        set_strict(f, False)
        f.wait_state(sid, "done")
        assert (Path(waits["worktree"]) / "next.txt").exists()
        assert f.violations() == []
