"""Times to come, as those who read a log on their own clock are told them."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from app.presenters import grant_lines
from harness.domain.states import ParkedFor
from harness.events import types as t
from harness.reports.describe import describe
from harness.views.grant_views import GrantView

THEN = "2026-11-25T13:16:31.066Z"


def said(body: t.Body) -> str:
    return describe(t.Record(seq=0, ts=THEN, actor="x", gen=0, body=body)).summary


@pytest.fixture
def _far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "JST-9")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_far_east")
def test_an_end_is_told_to_the_minute_on_the_readers_clock() -> None:
    made = t.GrantMade(grant="g1", approval_id="a1", scope="session", words=["x"], count=1, expires=THEN)
    assert said(made) == "g1 of a1 for this session, 1 call, until 2026-11-25 22:16: x"
    assert said(t.ApprovalDeferred(approval_id="a1", until=THEN)) == "a1 until 2026-11-25 22:16"
    assert said(t.SessionParked(why=ParkedFor.LIMITED, until=THEN)).endswith(" until 2026-11-25 22:16")
    view = GrantView(
        grant="g1",
        scope="session",
        of="s",
        title="x",
        words=[],
        asked_by="r",
        ts=THEN,
        expires=THEN,
        count=1,
        typed=False,
        uses=[],
        ended="",
        sid="s",
        approval_id="a1",
    )
    told = dict(grant_lines.facts(view, {}, 0.0))
    assert told["ends"] == "2026-11-25 22:16, or after 1 call"
    assert told["made"].startswith("2026-11-25 22:16 by ")
