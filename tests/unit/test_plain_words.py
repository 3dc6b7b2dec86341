"""Amounts and counts as a person reads them, wherever a sentence has one."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.cap import Cap
from harness.domain.states import ParkedFor
from harness.domain.text.formatting import NANO, counted
from harness.events import types as t
from harness.reports.describe import describe
from harness.reports.describing.approvals import chosen
from harness.workspace.git.errors import UnsavedWork


def raised(value: int | None, cap: str = "") -> t.ApprovalDecided:
    return t.ApprovalDecided(approval_id="a1", decision_id="d", decision="raise", value=value, cap=cap)


def said(body: t.Body) -> str:
    return describe(t.Record(seq=0, ts="", actor="supervisor", gen=0, body=body)).summary


@given(st.sampled_from([cap for cap in Cap if cap.in_usd]), st.integers(NANO, 10**6 * NANO))
def test_a_raise_of_dollars_is_said_in_dollars(cap: Cap, nano: int) -> None:
    assert chosen(raised(nano, cap)) == f"raise {cap} to ${nano / NANO:,.2f}"
    assert str(nano) not in said(raised(nano, cap))


def test_a_raise_of_anything_else_is_said_in_its_unit() -> None:
    assert chosen(raised(2_000_000, Cap.SESSION_TOKENS)) == "raise session.tokens to 2,000,000"
    assert chosen(raised(3600, Cap.SESSION_WALL)) == "raise session.wall to 1h"


def test_a_number_that_nobody_knows_the_unit_of_is_not_shown() -> None:
    assert chosen(raised(230_000_000)) == "raise"
    assert "230" not in said(raised(230_000_000))
    assert chosen(t.ApprovalDecided(approval_id="a", decision_id="d", decision="answer", value=2)) == "answer 2"


def test_a_record_written_before_it_named_its_cap_is_read() -> None:
    old = {k: v for k, v in msgspec.to_builtins(raised(5)).items() if k != "cap"}
    assert msgspec.convert(old, t.ApprovalDecided).cap == ""


@pytest.mark.parametrize(
    ("commits", "files", "says"),
    [
        (1, [], "1 commit that is on no other branch"),
        (2, [], "2 commits that are on no other branch"),
        (0, ["a"], "1 uncommitted file (a)"),
        (0, ["a", "b"], "2 uncommitted files (a, b)"),
    ],
)
def test_one_is_singular(commits: int, files: list[str], says: str) -> None:
    assert says in str(UnsavedWork(files, commits))
    assert counted(commits, "commit") == f"{commits} commit{'' if commits == 1 else 's'}"


INSIDE = (
    t.LeaseGranted(gen=2, epoch=1, pid=7),
    t.LeaseEnded(gen=2, reason="exited", exit_code=0),
    t.KeeperStarted(pid=8, start=1, boot="b", recovered=True),
    t.UserMessage(text="one check fails", origin="harness"),
    t.Quarantined(part="brain", reason="it crashed", restarts=3),
    t.HarnessNote(level="warning", text="it was cut", component="brain"),
    *(t.SessionParked(why=why, detail="push") for why in ParkedFor),
)


@pytest.mark.parametrize("body", INSIDE, ids=lambda b: b.TYPE)
def test_no_part_or_reason_is_called_by_its_inner_name(body: t.Body) -> None:
    told = describe(t.Record(seq=0, ts="", actor="supervisor", gen=0, body=body))
    words = f"{told.kind} {told.summary}".replace(":", " ").split()
    assert not {"brain", "keeper", "harness", "parked", "approval"} & set(words), words
