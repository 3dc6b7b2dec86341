"""Planner, contract, coder, evaluator on a real fleet: nobody works before the contract stands, and all are held to
it.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pytest

from harness.eventlog import blobs
from harness.events import types as t
from harness.events.plan.contract_events import AGREES, PLANS
from harness.events.plan.evaluation_events import JUDGES
from harness.plan.contract import HEADINGS
from tests.fleetlib import HOLD, Fleet, fleet, kill, make_repository, play, wait_for
from tests.process.test_judge_fleet import bodies, case_of, write

pytestmark = pytest.mark.timeout(300)
NO = "name the file"
STILL = "say what it holds"


@pytest.fixture(scope="module")
def f() -> Iterator[Fleet]:
    with fleet() as made:
        roles = made.folders.config / "roles"
        roles.mkdir()
        (roles / "planner.toml").write_text('model = "claude-sonnet-5-5"\ntools = []\nprompt = "Plan."\n')
        make_repository(made.root / "repo", {"notes.txt": "keep\n", "src/a.py": "a = 1\n"})
        yield made


def text_of(f: Fleet, sid: str, ref: t.BlobRef) -> str:
    return blobs.get(f.folders.session(sid).blobs, ref.sha).decode()


def kill_while_asking(f: Fleet, sid: str, purpose: str) -> None:
    wait_for(f"a request of the {purpose}", lambda: _asking(f, sid, purpose))
    wait_for("its endpoint to be heard", lambda: "nothing came" in f.row(sid)["evidence"])
    os.kill(f.brain_pid(sid), signal.SIGKILL)
    wait_for("that attempt to be closed", lambda: not _asking(f, sid, purpose))


def test_the_whole_chain_with_a_brain_killed_while_the_planner_and_while_the_evaluator_think(f: Fleet) -> None:
    """Planner → contract → coder → evaluator: the first reply is no contract, the first contract is objected to, the
    second one stands although the evaluator objects again; then the work, judged by it.
    """
    marks = f"[[planner stall garbage, good | good]] [[agrees stall no: {NO} | no: {STILL}]] [[judge satisfied]]"
    goal = f"{play(write('one.txt'), 'All done.')} {marks}"
    sid = f.launch(goal, checks=("test -s one.txt",), more=("--review",))
    kill_while_asking(f, sid, PLANS)
    kill_while_asking(f, sid, AGREES)
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], row["verified"]) == ("done", True), row["detail"]

    (opened,) = bodies(f, sid, t.ContractOpened)
    brief = text_of(f, sid, opened.brief)
    assert goal in brief
    assert "`test -s one.txt` exits with 0" in brief
    assert "src/a.py" in brief
    drafts: list[t.ContractDrafted] = bodies(f, sid, t.ContractDrafted)
    assert [(d.n, d.answers) for d in drafts] == [(1, []), (2, [NO])]
    (agreed,) = bodies(f, sid, t.ContractAgreed)
    assert agreed.text == drafts[1].text
    assert (agreed.drafts, agreed.objections, agreed.requests) == (2, [STILL], 5)
    text = text_of(f, sid, agreed.text)
    assert all(heading in text for heading in HEADINGS)
    assert NO in text, "the second draft was asked for with the objection"

    records = f.records(sid)
    stands = next(r.seq for r in records if isinstance(r.body, t.ContractAgreed))
    before = [r.body for r in records if r.seq < stands]
    assert not [b for b in before if isinstance(b, t.ToolProposed) and not b.before_work], "nobody works yet"
    assert {b.purpose for b in before if isinstance(b, t.ModelRequest)} == {PLANS, AGREES}
    sent: list[t.ModelRequest] = bodies(f, sid, t.ModelRequest)
    assert {(r.purpose, r.model) for r in sent} == {
        (PLANS, "claude-sonnet-5-5"),
        *((who, "claude-haiku-5-5") for who in ("", AGREES, JUDGES)),
    }
    assert [b.purpose for b in bodies(f, sid, t.ModelFailed)] == [PLANS, AGREES]
    assert len([b for b in bodies(f, sid, t.ModelMessage) if b.purpose in (PLANS, AGREES)]) == agreed.requests

    (started,) = bodies(f, sid, t.EvaluationStarted)
    case = case_of(f, sid, started)
    assert text in case
    assert STILL in case
    shown = f.run("contract", sid).stdout
    assert text.strip() in shown
    assert STILL in shown
    f.run("rm", "--keep-as-ref", sid)
    assert f.run("contract", sid).stdout == shown, "a removed session's log has it too"
    assert f.run("plan", sid, check=False).returncode == 4
    assert f.run("contract", "nobody", check=False).returncode == 4
    assert f.violations() == []


def test_supervisors_killed_while_each_of_them_thinks_and_words_of_a_person_meanwhile(f: Fleet) -> None:
    marks = "[[planner stall good | good]] [[agrees stall yes | yes]] [[judge satisfied]]"
    sid = f.launch(f"{play(write('one.txt'), 'All done.')} {marks}", checks=("test -s one.txt",), more=("--review",))
    for purpose in (PLANS, AGREES):
        wait_for(f"a request of the {purpose}", lambda who=purpose: _asking(f, sid, who))
        wait_for("its endpoint to be heard", lambda: "nothing came" in f.row(sid)["evidence"])
        if purpose == AGREES:
            f.run("say", sid, "Call it two.")
        kill(f.supervisor_pid())
        wait_for("another supervisor has it", lambda: f.row_or_start(sid)["state"] == "running")
        os.kill(f.brain_pid(sid), signal.SIGKILL)
        f.wait_event_count(sid, "model.failed", 1 + (purpose == AGREES))
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], row["verified"]) == ("done", True), row["detail"]
    (agreed,) = bodies(f, sid, t.ContractAgreed)
    assert (agreed.drafts, agreed.objections) == (2, [])
    assert "it answers: Call it two." in text_of(f, sid, agreed.text)
    assert [b.purpose for b in bodies(f, sid, t.ModelFailed)] == [PLANS, AGREES]
    assert f.violations() == []


def _asking(f: Fleet, sid: str, purpose: str) -> bool:
    request = f.state(sid).request
    return request is not None and request.purpose == purpose


def test_a_planner_that_writes_none_asks_the_person_and_nothing_is_done_without_one(f: Fleet) -> None:
    goal = f"{play(write('one.txt'), 'All done.')} [[planner garbage, garbage, good]]"
    sid = f.launch(goal, checks=("test -s one.txt",), more=("--review",))
    asked = f.approval(sid)
    assert "the planner wrote no contract" in str(asked)
    assert f.run("contract", sid, check=False).returncode == 1
    f.run("approve", asked["approval_id"], "--choose", "retry")
    wait_for("it asks again", lambda: len(bodies(f, sid, t.ModelMessage)) >= 3)
    f.run("stop", sid)
    f.wait_state(sid, "stopped")
    assert [b for b in bodies(f, sid, t.ToolProposed) if not b.before_work] == []
    assert bodies(f, sid, t.ContractAgreed) == []


def test_a_plan_of_its_own_comes_after_the_contract_and_is_in_the_case_of_the_judge(f: Fleet) -> None:
    plan = json.dumps([{"description": "A", "steps": ["File `one.txt` exists", "It is short"], "passes": False}])
    goal = play(write("plan.json", plan), "The plan.", write("one.txt"), "All done.")
    sid = f.launch(goal, more=("--review", "--plan-from-goal", "plan.json", "--yes-plan"))
    asked = f.approval(sid) if f.wait_state(sid, "done", "waiting")["state"] == "waiting" else None
    assert asked is None, asked
    order = [r.type for r in f.records(sid)]
    assert order.index("contract.agreed") < order.index("plan.drafted") < order.index("evaluation.started")
    (started,) = bodies(f, sid, t.EvaluationStarted)
    assert "It is short" in case_of(f, sid, started), "of a plan that no commit of the base holds"


def test_a_role_never_spends_more_than_its_own_limit(f: Fleet) -> None:
    role = f.folders.config / "roles" / "planner.toml"
    before = role.read_text()
    role.write_text(f"{before}[limits]\nusd = 0.00001\n")
    try:
        sid = f.launch(f"{play(write('one.txt'), 'All done.')}", more=("--review",))
    finally:
        role.write_text(before)
    assert "the role planner may spend" in str(f.approval(sid))
    assert bodies(f, sid, t.ModelRequest) == []
    f.run("stop", sid)
    f.wait_state(sid, "stopped")
    assert f.violations() == []


def test_a_contract_that_is_damaged_is_named_and_nobody_works_without_it(f: Fleet) -> None:
    """Hash on record, verified, shown, exported, restored."""
    goal = f"{play([HOLD], write('one.txt'), 'All done.')} [[judge satisfied]]"
    sid = f.launch(goal, checks=("test -s one.txt",), more=("--review",))
    f.wait_event(sid, "tool.started")
    (agreed,) = bodies(f, sid, t.ContractAgreed)
    text = text_of(f, sid, agreed.text)
    stored = blobs.path(f.folders.session(sid).blobs, agreed.text.sha)
    bundle = f.root / "contract.watchfloor.tar"
    stored.write_text(text.replace("Out of scope", "In the scope"))
    try:
        kill(f.brain_pid(sid))
        wrong = f.run("verify", sid, check=False)
        assert wrong.returncode == 1
        assert f"(contract.drafted) cannot be used: payload {stored} is damaged" in wrong.stdout
        shown = f.run("contract", sid, check=False)
        assert (shown.returncode, "cannot be read" in shown.stderr) == (1, True)
        f.release(sid)
        asked = f.approval(sid)
        assert "the contract agreed at seq" in asked["title"] + str(asked["detail"]), asked
    finally:
        stored.write_text(text)
    f.run("approve", asked["approval_id"], "--choose", "retry")
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], row["verified"]) == ("done", True), row["detail"]
    f.run("verify", sid)
    f.run("export", sid, str(bundle))
    assert f.run("contract", sid).stdout.strip() == text.strip()
    f.run("verify", str(bundle))
    assert f.violations() == []
