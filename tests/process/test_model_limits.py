"""Windows of models, asked of the endpoint that a session really uses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.events import types as t
from tests.fleetlib import Fleet, fleet, play
from tests.process.recorder import recorded

GOAL = play([("write_file", {"path": "a.txt", "content": "a"})], "Done.")


def asks(f: Fleet, sid: str) -> list[Any]:
    return [r.body for r in f.records(sid) if isinstance(r.body, t.ModelRequest)]


def test_an_endpoint_is_asked_once_for_all_sessions_and_what_it_says_counts() -> None:
    with fleet() as f, recorded(f) as seen:
        seen.told = json.dumps({"id": "m", "max_input_tokens": 40_000, "max_tokens": 3000}).encode()
        for name in ("first", "second"):
            sid = f.launch(GOAL, name=name)
            f.wait_state(sid, "done")
            assert {(b.max_tokens, b.working) for b in asks(f, sid)} == {(3000, int(0.92 * 37_000))}, name
        assert len(seen.asked) == 1
        assert seen.asked[0].startswith("/v1/models/claude-")
        assert f.violations() == []


@pytest.mark.parametrize("told", [b"", b"no page at all", None])
def test_without_an_answer_the_table_counts_and_nothing_stands_still(told: bytes | None) -> None:
    with fleet() as f, recorded(f) as seen:
        seen.told = told
        sid = f.launch(GOAL)
        f.wait_state(sid, "done")
        assert {b.working for b in asks(f, sid)} == {80_000}
        assert seen.asked
        assert f.violations() == []


@pytest.mark.parametrize("more", [("--judge",), ("--review",)], ids=["judge", "contract"])
def test_who_judges_or_writes_the_contract_is_asked_for_no_longer_reply_than_his_own_model_gives(
    more: tuple[str, ...],
) -> None:
    with fleet() as f, recorded(f) as seen:
        seen.told = json.dumps({"id": "m", "max_input_tokens": 150_000, "max_tokens": 3000}).encode()
        sid = f.launch(GOAL, more=(*more, "--judge-model", "claude-sonnet-5-5"))
        f.wait_state(sid, "done")
        rooms = {b.purpose: b.max_tokens for b in asks(f, sid)}
        assert rooms == dict.fromkeys(rooms, 3000)
        assert len(rooms) == (2 if more == ("--judge",) else 4)
        assert {path.rpartition("/")[2] for path in seen.asked} == {"claude-haiku-5-5", "claude-sonnet-5-5"}
        assert f.violations() == []
