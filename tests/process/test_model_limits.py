"""Windows of models, asked of the endpoint that a session really uses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness.events import types as t
from tests.fleetlib import Fleet, fleet, make_repository, play
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


LARGE = play([("shell", {"script": "seq 1 20000 > a.txt"})], "Done.")
SMALL_WINDOW = json.dumps({"id": "m", "max_input_tokens": 20_000, "max_tokens": 3000}).encode()
MANY = json.dumps([{"description": f"Feature {n}", "steps": ["it is nice"], "passes": False} for n in range(300)])


@pytest.mark.parametrize(
    ("goal", "plan", "says"),
    [(LARGE, "", "tokens, over the 15,640 that claude-sonnet-5-5 can be sent"), (GOAL, MANY, "301 criteria")],
    ids=["case", "answer"],
)
def test_a_judge_who_cannot_read_or_answer_its_case_costs_nothing_and_says_why(goal: str, plan: str, says: str) -> None:
    with fleet() as f, recorded(f) as seen:
        seen.told = SMALL_WINDOW
        repo = make_repository(f.root / "repo", {"README.md": "# Thing\n", **({"plan.json": plan} if plan else {})})
        given = ("--plan", "plan.json", "--fresh", "never") if plan else ()
        sid = f.launch(goal, repo=repo, more=("--judge", "--judge-model", "claude-sonnet-5-5", *given))
        asked = f.approval(sid)
        assert says in asked["title"] + json.dumps(asked["detail"])
        assert {b.purpose for b in asks(f, sid)} == {""}
        assert f.violations() == []


@pytest.mark.parametrize("purpose", ["planner", "evaluator"])
def test_an_author_who_cannot_read_the_goal_costs_nothing_and_says_why(purpose: str) -> None:
    with fleet() as f, recorded(f) as seen:
        seen.told = SMALL_WINDOW if purpose == "planner" else None
        if purpose == "evaluator":
            seen.of_model["claude-sonnet-5-5"] = SMALL_WINDOW
        sid = f.launch(f"{GOAL} {'word ' * 20_000}", more=("--review", "--judge-model", "claude-sonnet-5-5"))
        asked = f.approval(sid)
        assert f"the contract's {purpose} cannot be asked: about" in asked["title"]
        assert purpose not in {b.purpose for b in asks(f, sid)}
        assert f.violations() == []
