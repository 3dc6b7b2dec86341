"""Checks that hide their exit codes: named at launch, and they decide nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.events import types as t
from tests.fleetlib import Fleet, fleet, git, make_repository, play

pytestmark = pytest.mark.timeout(600)
TEST = (
    "import unittest\n\n\nclass AppTest(unittest.TestCase):\n    def test_app(self):\n        self.assertEqual(1, 2)\n"
)
FILES = {
    "app.py": "",
    "test_app.py": TEST,
    "check.sh": "#!/bin/sh\npython3 -m unittest -q test_app 2>/dev/null | tail -1\n",
}
PIPED = "python3 -m unittest -q test_app 2>/dev/null | tail -n 1"
WAYS = (
    "sh check.sh",
    PIPED,
    "python3 -m unittest -q test_app 2>&1 | grep -c test",
    "python3 -m unittest -q test_app >/dev/null 2>&1 || echo",
)
PLAN = '[{"id": "F1", "description": "It adds", "steps": ["Run `%s` - exits with code 0"], "passes": false}]'


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        make_repository(made.root / "repo", FILES)
        yield made


def launch(f: Fleet, *checks: str, more: tuple[str, ...] = (), goal: str = "") -> dict[str, Any]:
    given = [word for check in checks for word in ("--check", check)]
    (made,) = f.json("launch", "--repo", str(f.root / "repo"), "--goal", goal or play("Done."), *given, *more)
    return made


def bodies(f: Fleet, sid: str, kind: type[t.Body]) -> list[Any]:
    return [r.body for r in f.records(sid) if isinstance(r.body, kind)]


def verified(f: Fleet, sid: str) -> bool:
    ended = f.state(sid).ended
    return ended is not None and ended.verified


@pytest.mark.parametrize("check", WAYS)
def test_broken_work_behind_a_masked_check_asks_the_person_and_is_not_merged(check: str, f: Fleet) -> None:
    made = launch(f, check)
    (hidden,) = made["masked"]
    assert hidden["command"] == check
    assert any(check in text and "decides nothing" in text for text in made["warnings"])
    sid = made["sid"]
    asked = f.approval(sid)
    assert asked["kind"] == "protected"
    assert check in asked["title"]
    f.run("reject", asked["approval_id"], "--reason", "no")
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], verified(f, sid), row["masked"]) == ("done", False, 1)
    assert "decides nothing" in row["detail"]
    refused = f.run("merge", sid, check=False)
    assert refused.returncode != 0
    assert "--no-checks" in refused.stderr
    assert git(f.root / "repo", "rev-list", "--count", "HEAD").strip() == "1"


def test_a_masked_check_whose_output_tells_of_a_failure_fails(f: Fleet) -> None:
    sid = launch(f, "python3 -m unittest -q test_app 2>&1 | tail -n 1")["sid"]
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], verified(f, sid)) == ("failed", False)
    assert f.run("merge", sid, check=False).returncode != 0


def test_a_person_may_let_it_count_and_then_it_is_done_by_their_word(f: Fleet) -> None:
    sid = launch(f, PIPED)["sid"]
    f.approve(f.approval(sid)["approval_id"])
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], verified(f, sid)) == ("done", False)
    assert "by your word" in row["detail"]


def test_beside_a_check_that_can_fail_it_decides_nothing_and_nobody_is_asked(f: Fleet) -> None:
    work = play([("shell", {"script": "touch new.txt"})], "Done.")
    sid = launch(f, PIPED, "test -f new.txt", goal=work)["sid"]
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], verified(f, sid)) == ("done", True)
    assert not bodies(f, sid, t.RatchetViolation)


def test_an_entry_of_a_plan_is_not_set_by_a_masked_criterion(f: Fleet) -> None:
    repo = f.root / "repo"
    (repo / "feature_list.json").write_text(PLAN % PIPED.replace('"', '\\"'))
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "Plan")
    made = launch(f, more=("--plan", "feature_list.json"))
    assert [one["command"] for one in made["masked"]] == [PIPED]
    sid = made["sid"]
    f.run("reject", f.approval(sid)["approval_id"], "--reason", "no")
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (verified(f, sid), row.get("plan_passed", 0)) == (False, 0)
    assert not bodies(f, sid, t.PlanFlipped)


def test_an_honest_check_is_not_warned_of(f: Fleet) -> None:
    made = launch(f, "python3 -m unittest -q test_app")
    assert made["masked"] == []
    assert made["warnings"] == []
    f.run("stop", made["sid"])
