"""A cap has one entry, and everything that names caps follows it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.grammar.parser import build
from app.cli.verbs.sessions import caps_typed
from app.client.requests import wish_of
from harness.domain.calls.cap_request import CapRequest
from harness.domain.cap import OF_SESSION, Cap, amount_of, named
from harness.domain.settings.amounts import NANO, seconds
from harness.events import types as t
from harness.projections.state.session_state import SessionState
from harness.protocol.config.config import Config
from harness.protocol.config.sections import CapsConfig
from harness.roles.role import RoleLimits
from harness.supervisor.sessions.begin.casting import within
from harness.supervisor.sessions.continuing import used_of


@pytest.mark.parametrize("cap", OF_SESSION)
def test_a_cap_of_a_session_has_its_field_its_setting_and_its_options(cap: Cap) -> None:
    assert cap.field in {f.name for f in msgspec.structs.fields(t.Caps)}
    assert hasattr(CapsConfig(), cap.setting)
    for verb in (["launch", "--goal", "x"], ["continue", "x"]):
        typed = build().parse_args([*verb, cap.option, "7"])
        assert str(getattr(typed, cap.option[2:].replace("-", "_"))) == "7"


@pytest.mark.parametrize("cap", OF_SESSION)
def test_what_is_typed_at_a_launch_is_the_cap(cap: Cap) -> None:
    text = "7m" if cap.in_seconds else "7"
    typed = build().parse_args(["launch", "--goal", "x", cap.option, text])
    meant = {True: seconds("7m"), False: 7}[cap.in_seconds] * (NANO if cap.in_usd else 1)
    assert caps_typed(typed, Config(file=Path("config.toml")))[cap.field] == meant


@pytest.mark.parametrize("cap", OF_SESSION)
def test_what_is_typed_for_a_session_that_goes_on_is_the_cap(cap: Cap) -> None:
    text = "7m" if cap.in_seconds else "7"
    meant = {True: seconds("7m"), False: 7}[cap.in_seconds] * (NANO if cap.in_usd else 1)
    assert wish_of("", "", {cap.field: text}, [])["caps"] == {cap.field: meant}
    assert wish_of("", "", {cap.field: f"+{text}"}, [])["more"] == {cap.field: meant}


@pytest.mark.parametrize("cap", OF_SESSION)
def test_a_role_may_lower_the_cap_and_what_is_used_of_it_is_known(cap: Cap) -> None:
    lowered = within(t.Caps(**{cap.field: 9}), RoleLimits(**{cap.field: 5}))
    assert getattr(lowered, cap.field) == 5
    used = used_of(SessionState(), None, datetime.now(UTC))
    assert getattr(used, cap.field) is not None, "one that is used up already would be taken"


def test_no_field_of_the_caps_is_without_its_cap() -> None:
    assert {f.name for f in msgspec.structs.fields(t.Caps)} == {cap.field for cap in OF_SESSION}


@pytest.mark.parametrize("cap", Cap)
def test_every_cap_has_words(cap: Cap) -> None:
    assert Cap.of(cap.value) is cap
    assert amount_of(cap.value, 1_500_000_000) == cap.amount(1_500_000_000)
    assert cap.unit in cap.words(3) or cap.in_usd or cap.in_seconds
    assert named(cap.value) == cap.named
    assert "." not in cap.named


@given(st.builds(CapRequest, st.sampled_from(Cap), *[st.integers(0)] * 3, st.text(max_size=9)))
def test_what_a_request_says_of_a_cap_comes_back(said: CapRequest) -> None:
    assert CapRequest.of(json.loads(json.dumps(said.detail()))) == said


@given(st.dictionaries(st.sampled_from(["cap", "limit", "used", "need", "day"]), st.none() | st.text() | st.floats()))
def test_whatever_else_stands_there_is_no_cap_or_no_amount(detail: dict[str, Any]) -> None:
    assert CapRequest.of(detail) is None
    assert CapRequest.of({**detail, "cap": "day.usd"}) == CapRequest(Cap.DAY_USD, day=str(detail.get("day") or ""))


def test_a_time_reads_as_it_is_typed() -> None:
    assert [Cap.SESSION_WALL.amount(n) for n in (0, 59, 2050, 28_800, 90_061)] == [
        "0s",
        "59s",
        "34m 10s",
        "8h",
        "25h 1m 1s",
    ]
    assert seconds(Cap.SESSION_WALL.amount(90_061)) == 90_061


def test_a_cap_that_nobody_here_knows_is_still_shown() -> None:
    assert Cap.of("session.iterations") is None
    assert amount_of("session.iterations", 1200) == "1,200"
    assert named("session.iterations") == "session.iterations"
