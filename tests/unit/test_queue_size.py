"""The queue always fits into a frame: what is too large to be sent with the others is named, and cannot be approved
unseen.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from harness.projections.state.session_state import OpenApproval
from harness.protocol.connection import frames
from harness.supervisor.calls.approvals import Approvals
from harness.supervisor.fleet.subsystem_state import Shown
from harness.views.session_views import ApprovalView
from widgets.card.card_text import card

OPTIONS = ["allow", "allow_edited", "deny", "answer", "stop"]


def queue(sizes: list[int]) -> tuple[Approvals, dict[str, OpenApproval]]:
    """The queue of one session with an open request for each of these sizes, whose cards were made already; and those
    requests.
    """
    open_: dict[str, OpenApproval] = {}
    made: dict[str, ApprovalView] = {}
    for number, size in enumerate(sizes):
        ident = f"a{number:07d}"
        ts = f"2026-01-01T00:{number // 60:02d}:{number % 60:02d}.000Z"
        open_[ident] = OpenApproval(
            approval_id=ident,
            kind="tool",
            title="write_file",
            options=OPTIONS,
            call_id="c1.0",
            action_hash="f" * 64,
            risk="high",
            detail={},
            ts=ts,
            seq=number,
        )
        made[ident] = ApprovalView(
            ident,
            "s",
            "s",
            "tool",
            "write_file",
            OPTIONS,
            "high",
            ts,
            number,
            action_hash="f" * 64,
            action={"tool": "write_file"},
            diff="+" + "😀" * (size // 4),
        )
    session = SimpleNamespace(
        finished=False,
        foreign="",
        damaged="",
        name="s",
        shown=Shown(cards=made),
        state=SimpleNamespace(approvals=open_, desired="running"),
        track=SimpleNamespace(calls={}),
    )
    unused = cast("Any", None)
    return Approvals(cast("Any", [session]), unused, unused, unused, unused, unused), open_


@pytest.mark.parametrize("sizes", [[200_000] * 100, [9_000_000], [300, 9_000_000, 300], [3_000_000] * 4])
async def test_all_open_requests_fit_into_one_frame(sizes: list[int]) -> None:
    asked, _ = queue(sizes)
    views = await asked.all()
    assert len(views) == len(sizes)
    frames.encode({"push": "approvals", "approvals": msgspec.to_builtins(views)})
    small = [view for view, size in zip(views, sizes, strict=True) if size < 1000]
    assert all(view.diff for view in small)


async def test_what_is_only_named_says_so_and_cannot_be_approved() -> None:
    asked, _ = queue([9_000_000])
    (view,) = await asked.all()
    assert "allow" not in view.options
    assert "deny" in view.options
    text = card(view).text
    assert "cannot be read" in text
    assert "too large to be shown" in text


async def test_what_did_not_fit_is_whole_again_when_there_is_room() -> None:
    asked, open_ = queue([3_000_000] * 2)
    assert [bool(view.diff) for view in await asked.all()] == [True, False]
    del open_["a0000000"]
    (left,) = await asked.all()
    assert left.diff
    assert left.options == OPTIONS
