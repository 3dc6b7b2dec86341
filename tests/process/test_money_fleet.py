"""Money of a real fleet: figures that agree, orphans that are settled from the logs, and a ledger that can be lost
without losing what was spent.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.agents.supervisor_requests import Reserve
from harness.budget.ledger_types import LedgerRecord, Raised, Reserved, Settled, decode
from harness.domain.text.formatting import usd
from harness.eventlog.reader import read
from harness.events import types as t
from harness.projections.apply import fold
from harness.supervisor.money.day import Clock
from harness.supervisor.upkeep import clock
from tests.fleetlib import HOLD, Fleet, fleet, kill, play, wait_for
from tests.process.keeperlib import Link as KeeperLink
from tests.process.served import served
from tests.process.test_supervisor_life import parent, replaced

PATIENCE = 180.0
"""Seconds; a fleet that does several turns on a busy machine takes its time, and only ever the awaited state counts."""
TURNS = play([("exec", {"argv": ["true"]})], [("exec", {"argv": ["true"]})], "Done.")
TINY = "[caps]\nday_usd = 0.000001\n"


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def ask_simulator(f: Fleet, path: str, body: object = None) -> Any:
    request = urllib.request.Request(
        f"{f.base_url}/_sim/{path}",
        None if body is None else json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read() or b"null")


def ledger(f: Fleet) -> list[LedgerRecord]:
    return (
        [r for line in read(f.folders.ledger) if (r := decode(line)) is not None] if f.folders.ledger.is_dir() else []
    )


def settled(f: Fleet) -> dict[str, Settled]:
    return {r.reservation: r for r in ledger(f) if isinstance(r, Settled)}


def costs(f: Fleet) -> dict[str, Any]:
    found = f.json("cost")[0]
    sessions = [*found["sessions"], found["removed"]]
    for name, of_days in (
        ("spent_nano", "nano"),
        ("reserved_nano", "reserved_nano"),
        ("tokens", "tokens"),
        ("requests", "requests"),
        ("unknown_nano", "unknown_nano"),
        ("unknown_tokens", "unknown_tokens"),
    ):
        assert sum(s[name] for s in sessions) == sum(d[of_days] for d in found["days"]), (
            f"sessions and days disagree on {name}"
        )
    for name, whole, today in (
        ("spent_nano", "spent_total_nano", "spent_today_nano"),
        ("reserved_nano", "reserved_nano", "reserved_today_nano"),
        ("unknown_nano", "unknown_total_nano", "unknown_today_nano"),
    ):
        assert sum(s[name] for s in sessions) == found["fleet"].get(whole, 0), name
        if len(found["days"]) == 1:
            assert found["fleet"].get(today, 0) == found["fleet"].get(whole, 0), name
    return found


def restart(f: Fleet) -> None:
    f.run("supervisor", "stop")
    f.run("supervisor", "start")


# -- figures ---------------------------------------------------------------------------------------


def test_cost_is_the_same_after_a_restart_and_adds_up(f: Fleet) -> None:
    """A reply was cut, so nobody knows what one request cost: its dollars have tokens beside them, too, and stand apart
    from what was paid, which is what the log and the briefing say.
    """
    ask_simulator(f, "faults", [{"kind": "cut", "after_bytes": 1000}])
    sid = f.launch(TURNS)
    f.wait_state(sid, "done", timeout=PATIENCE)
    before = costs(f)
    used = f.state(sid).usage
    own = before["sessions"][0]
    assert used.cache_read > 0
    assert own["cache_hit"] == pytest.approx(used.cache_read / (used.total - used.output))
    lost = [r for r in ledger(f) if isinstance(r, Reserved) and r.reservation not in settled(f)]
    assert len(lost) == 1
    assert own["tokens"] == used.total + lost[0].tokens
    assert own["requests"] == f.state(sid).requests
    assert (own["unknown_nano"], own["unknown_tokens"]) == (lost[0].nano, lost[0].tokens)
    assert own["spent_nano"] - own["unknown_nano"] == f.state(sid).spent_nano
    assert f.json("brief", "--since", "1d")[0]["fleet"]["spent_nano"] == f.state(sid).spent_nano
    assert f.row(sid)["unknown_nano"] == lost[0].nano
    restart(f)
    again = costs(f)
    assert again["sessions"] == before["sessions"]
    assert again["days"] == before["days"]
    shown = f.run("cost").stdout
    assert f"{own['cache_hit']:.1%}" in shown
    told = f"today {usd(f.state(sid).spent_nano)} + {usd(lost[0].nano)} reserved, outcome unknown of "
    assert told in shown
    assert told in f.run("supervisor", "status").stdout, "the same figures from one place"
    assert f"{used.total:,}" in shown
    assert f.violations() == []


def test_a_removed_session_still_counts_in_every_sum(f: Fleet) -> None:
    sid = f.launch(play("Done."))
    f.wait_state(sid, "done", timeout=PATIENCE)
    spent = costs(f)["sessions"][0]["spent_nano"]
    f.run("rm", sid)
    found = costs(f)
    assert found["sessions"] == []
    assert found["removed"]["spent_nano"] == spent > 0
    assert "(removed)" in f.run("cost").stdout


def test_a_stopped_fleet_says_of_its_money_what_the_running_one_said(f: Fleet) -> None:
    """Field by field, with a session that was removed, one that stands, and a request whose cost nobody knows."""
    gone = f.launch(play("Done."), name="gone")
    f.wait_state(gone, "done", timeout=PATIENCE)
    f.run("rm", gone)
    ask_simulator(f, "faults", [{"kind": "cut", "after_bytes": 1000}])
    f.wait_state(f.launch(TURNS, name="stays"), "done", timeout=PATIENCE)
    running = costs(f)
    rows = f.json("ls")
    f.run("supervisor", "stop")
    stopped = costs(f)
    assert running["removed"]["spent_nano"] > 0
    assert running["sessions"][0]["unknown_nano"] > 0
    for part in ("sessions", "removed", "days"):
        assert stopped[part] == running[part], part
    of_supervisor = {"epoch", "sandbox", "warnings", "troubles", "endpoints"}
    kept = [{k: v for k, v in one["fleet"].items() if k not in of_supervisor} for one in (stopped, running)]
    assert kept[0] == kept[1]
    assert [row.get("spent_nano") for row in f.json("ls")] == [row.get("spent_nano") for row in rows]
    assert "the fleet is stopped" in f.run("cost").stderr
    assert not f.folders.supervisor_socket.exists(), "it was read, not started"


# -- settlements that nobody made ------------------------------------------------------------------


def test_a_keeper_that_falls_between_reserve_and_request_leaves_nothing_held(f: Fleet) -> None:
    """It stands still while money is reserved, and is killed before the request is on record: nothing was sent, so
    nothing is paid.
    """
    ask_simulator(f, "faults", [{"kind": "overloaded", "retry_after": 8}])
    sid = f.launch(TURNS)
    failed = f.wait_event(sid, "model.failed")
    viewer = KeeperLink(f.folders.session(sid).keeper_socket)
    assert viewer.hello("viewer")["head"] >= failed.seq  # by the time it answers us it has answered its brain
    viewer.sock.close()
    keeper = f.keeper_pid(sid)
    os.kill(keeper, signal.SIGSTOP)  # well within the eight seconds that the brain was told to wait
    orphan = wait_for(
        "a second reservation", lambda: next((r for r in ledger(f) if isinstance(r, Reserved) and r.attempt == 2), None)
    )
    kill(keeper)
    f.wait_state(sid, "done", timeout=PATIENCE)
    assert orphan.reservation not in {r.body.reservation for r in f.records(sid) if isinstance(r.body, t.ModelRequest)}
    end = wait_for("its settlement", lambda: settled(f).get(orphan.reservation))
    assert (end.nano, end.tokens, end.sent) == (0, 0, False)
    own = costs(f)["sessions"][0]
    assert own["spent_nano"] == f.state(sid).spent_nano
    assert own["reserved_nano"] == 0
    assert f.violations() == []


def test_a_reply_that_nobody_could_settle_costs_what_it_cost(f: Fleet) -> None:
    """It came while no supervisor lived, and its brain died: the usage stands in the log, so that is counted and not
    the worst case.
    """
    ask_simulator(f, "hold", {})
    sid = f.launch(TURNS)
    sent = f.wait_event(sid, "model.request").body
    assert isinstance(sent, t.ModelRequest)
    f.run("supervisor", "stop")
    ask_simulator(f, "release", {})
    reply = f.wait_event(sid, "model.message").body
    assert isinstance(reply, t.ModelMessage)
    assert (reply.price_source, reply.cost_nano) == ("reserved", sent.reserved_nano)
    kill(f.brain_pid(sid))
    f.run("supervisor", "start")
    f.wait_state(sid, "done", timeout=PATIENCE)
    paid = wait_for("its settlement", lambda: settled(f).get(sent.reservation))
    assert paid.usage == reply.usage
    assert paid.nano < sent.reserved_nano
    billed = sum(c["nano"] for c in ask_simulator(f, "usage")["conversations"])
    said = f.wait_event(sid, "model.settled").body
    assert isinstance(said, t.ModelSettled)
    assert (said.reservation, said.recorded_nano, said.cost_nano) == (sent.reservation, reply.cost_nano, paid.nano)
    agree(f, sid, billed, 0)
    assert f.violations() == []


def test_a_reply_that_could_not_be_used_is_paid_for_in_every_sum() -> None:
    """It ended inside a call at its output limit: it counts no worse and no better than what the endpoint billed."""
    long = ("write_file", {"path": "long.txt", "content": "word " * 1_200})
    with fleet(config="max_tokens = 1024\n") as f:
        sid = f.launch(play([long], "Done."))
        f.wait_state(sid, "done", timeout=PATIENCE)
        failed = [r.body for r in f.records(sid) if isinstance(r.body, t.ModelFailed)]
        assert failed
        assert all(b.kind == "max_tokens" and b.usage and b.cost_nano > 0 for b in failed)
        shown = f.run("logs", sid).stdout
        assert "$" in next(line for line in shown.splitlines() if "no reply" in line)
        agree(f, sid, sum(c["nano"] for c in ask_simulator(f, "usage")["conversations"]), 0)
        assert f.violations() == []


def agree(f: Fleet, sid: str, paid: int, unknown: int) -> None:
    """The only session, its day, the fleet, its log, its score and the briefing name the same money."""
    own = costs(f)["sessions"][0]
    assert (own["spent_nano"], own["reserved_nano"], own["unknown_nano"]) == (paid + unknown, 0, unknown)
    records = f.records(sid)
    assert fold(records).spent_nano == paid
    assert f.json("brief", "--since", "1d")[0]["fleet"]["spent_nano"] == paid
    assert f.json("score", sid)[0]["nano"] == paid
    assert f.json("score", sid)[0]["tokens"] + own["unknown_tokens"] == own["tokens"]
    sent = {(b.request_id, b.attempt): b for b in (r.body for r in records) if isinstance(b, t.ModelRequest)}
    lost = [b for b in (r.body for r in records) if isinstance(b, t.ModelFailed) and b.usage is None]
    assert sum(sent[b.request_id, b.attempt].reserved_nano for b in lost) == unknown, "the log alone tells it"


def test_a_request_whose_brain_was_killed_has_its_end_in_the_log_also_when_no_brain_follows(f: Fleet) -> None:
    """Its session stops: nobody would say what became of it, though it counts in full."""
    ask_simulator(f, "hold", {})
    sid = f.launch(TURNS)
    sent = f.wait_event(sid, "model.request").body
    assert isinstance(sent, t.ModelRequest)
    guardian = parent(before := f.supervisor_pid())
    os.kill(guardian, signal.SIGSTOP)
    try:
        f.run("pause", sid)
        kill(f.brain_pid(sid))
        kill(before)
    finally:
        os.kill(guardian, signal.SIGCONT)
    replaced(f, before)
    f.run("stop", sid)
    f.wait_state(sid, "stopped")
    ask_simulator(f, "release", {})
    (lost,) = [r.body for r in f.records(sid) if isinstance(r.body, t.ModelFailed)]
    assert (lost.request_id, lost.attempt, lost.kind, lost.usage) == (sent.request_id, sent.attempt, "cut", None)
    wait_for("its settlement", lambda: costs(f)["sessions"][0]["reserved_nano"] == 0 or None)
    agree(f, sid, 0, sent.reserved_nano)
    assert f.violations() == []


def test_orderly_leaves_in_the_middle_of_replies_change_no_figure(f: Fleet) -> None:
    """Six supervisors leave while a reply is under way: each reply costs what the endpoint billed, and not the worst
    case.
    """
    leaves = 6
    ask_simulator(f, "hold", {})
    sid = f.launch(play(*([("exec", {"argv": ["true", str(n)]})] for n in range(leaves)), "Done."))
    for n in range(leaves):
        f.wait_event_count(sid, "model.request", n + 1)
        f.run("supervisor", "stop")
        ask_simulator(f, "release", {})
        f.wait_event_count(sid, "model.message", n + 1)
        if n < leaves - 1:
            ask_simulator(f, "hold", {})
        f.run("supervisor", "start")
    f.wait_state(sid, "done", timeout=PATIENCE)
    billed = sum(c["nano"] for c in ask_simulator(f, "usage")["conversations"])
    wait_for("every settlement", lambda: costs(f)["sessions"][0]["reserved_nano"] == 0 or None)
    wait_for("each to be on record", lambda: not f.state(sid).unsettled)
    agree(f, sid, billed, 0)
    assert f.violations() == []


# -- a ledger that is gone -------------------------------------------------------------------------


def damage(folder: Path) -> None:
    file = folder / "000001.jsonl"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)


def cut(folder: Path) -> None:
    """The last record gone as if it had never been: a whole, verifiable log."""
    file = folder / "000001.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:-2]))


@pytest.mark.parametrize("how", ["deleted", "moved", "damaged", "cut"])
def test_whatever_happens_to_the_ledger_what_was_spent_stays_spent(how: str) -> None:
    with fleet(config="[caps]\nday_usd = 1\nfleet_usd = 5\n") as f:
        kept = f.launch(TURNS, name="kept")
        gone = f.launch(TURNS, name="gone")
        for sid in (kept, gone):
            f.wait_state(sid, "done", timeout=PATIENCE)
        f.run("rm", gone)
        before = costs(f)
        f.run("supervisor", "stop")
        folder = f.folders.ledger
        if how == "deleted":
            shutil.rmtree(folder)
        elif how == "moved":
            folder.rename(f.root / "ledger.away")
        else:
            {"damaged": damage, "cut": cut}[how](folder)
        f.run("supervisor", "start")
        after = costs(f)
        assert after["fleet"]["spent_total_nano"] == before["fleet"]["spent_total_nano"]
        assert after["fleet"]["spent_today_nano"] == before["fleet"]["spent_today_nano"]
        assert after["removed"]["spent_nano"] == before["removed"]["spent_nano"] > 0
        own = after["sessions"][0]
        then = before["sessions"][0]
        assert {k: own[k] for k in ("spent_nano", "tokens", "requests", "cache_hit")} == {
            k: then[k] for k in ("spent_nano", "tokens", "requests", "cache_hit")
        }
        assert after["fleet"]["day_cap_nano"] == 10**9
        warnings = " ".join(after["fleet"]["warnings"])
        assert "counted again from" in warnings
        assert "move" not in warnings
        assert (f.folders.state / "ledger.damaged-1").is_dir() == (how in ("damaged", "cut"))
        assert f.violations() == []
        restart(f)
        assert "counted again" not in " ".join(costs(f)["fleet"].get("warnings", []))
        next_one = f.launch(play("Done."), name="next")
        f.wait_state(next_one, "done", timeout=PATIENCE)
        costs(f)


# -- caps above the sessions -----------------------------------------------------------------------


def waiting(f: Fleet, *sids: str) -> list[dict[str, Any]]:
    """The open requests of these sessions, each at a cap."""
    found = [f.approval(sid) for sid in sids]
    assert {a["kind"] for a in found} == {"cap"}
    return found


def test_raising_a_cap_once_frees_every_session_that_waits_at_it() -> None:
    with fleet(config=TINY) as f:
        sids = [f.launch(TURNS, name=name) for name in ("one", "two", "three")]
        asked = waiting(f, *sids)
        f.run("approve", asked[0]["approval_id"], "--raise-to", "5")
        for sid in sids:
            f.wait_state(sid, "done", timeout=PATIENCE)
        assert f.json("approvals") == []
        assert [r for r in ledger(f) if isinstance(r, Raised)] == [
            Raised(
                cap="day.usd",
                limit=5 * 10**9,
                base=1000,
                day=asked[0]["detail"]["day"],
                decision=f_decision(f, sids[0]),
            )
        ]
        freed = [r.body for r in f.records(sids[1]) if isinstance(r.body, t.ApprovalWithdrawn)]
        assert [b.why for b in freed] == ["day.usd was raised meanwhile"]
        assert f.violations() == []


def test_a_request_at_a_cap_that_was_raised_too_little_says_what_the_cap_is_now() -> None:
    with fleet(config=TINY) as f:
        (asked,) = waiting(f, f.launch(TURNS))
        assert asked["detail"]["limit"] == 1000
        file = f.folders.config_file
        file.write_text(file.read_text().replace("0.000001", "0.001"))
        now = wait_for(
            "the new limit", lambda: next((a for a in f.json("approvals") if a["detail"]["limit"] == 1_000_000), None)
        )
        assert now["approval_id"] == asked["approval_id"]
        assert now["title"] != asked["title"]
        assert f.violations() == []


def test_finishing_up_at_the_first_request_takes_one_answer(f: Fleet) -> None:
    sid = f.launch(TURNS, more=("--cap-usd", "0.0001"))
    (asked,) = waiting(f, sid)
    f.run("approve", asked["approval_id"], "--finish")
    f.wait_state(sid, "done", timeout=PATIENCE)
    assert len([r for r in f.records(sid) if isinstance(r.body, t.ApprovalRequested)]) == 1
    assert f.violations() == []


def f_decision(f: Fleet, sid: str) -> str:
    return next(r.body.decision_id for r in f.records(sid) if isinstance(r.body, t.ApprovalDecided))


def test_an_answer_to_a_request_whose_cap_was_raised_meanwhile_is_taken_for_what_it_means() -> None:
    with fleet(config=TINY) as f:
        sids = [f.launch(TURNS, name=name) for name in ("one", "two")]
        asked = waiting(f, *sids)
        for each in asked:
            f.run("approve", each["approval_id"], "--raise-to", "5")
        for sid in sids:
            f.wait_state(sid, "done", timeout=PATIENCE)
        assert [r.limit for r in ledger(f) if isinstance(r, Raised)] == [5 * 10**9]
        f.run("approve", asked[1]["approval_id"], "--raise-to", "7", check=False)
        assert f.violations() == []


class DayClock(Clock):
    """A clock whose day is set from outside."""

    def __init__(self, day: str) -> None:
        super().__init__()
        self.day = day

    def today(self) -> str:
        return self.day

    def to_next_day(self) -> float:
        return 0.05


async def test_at_midnight_sessions_at_a_day_cap_go_on_by_themselves() -> None:
    """The real supervisor with its one clock replaced: both sessions wait on one day and are done on the next, without
    an answer.
    """
    with fleet(config="[caps]\nday_usd = 0.04\n") as f:
        day = DayClock("2026-01-01")
        async with served(f, day=day) as books:
            # an earlier session has spent nearly all of the day's cap
            spent = await books.reserve("aaaaaaaaaa", Reserve("q", 1, "claude-haiku-5-5", 0, 79_000), t.Caps())
            await books.settle(spent.reservation, None)
            sids = [await asyncio.to_thread(f.launch, TURNS, name=name) for name in ("one", "two")]
            await asyncio.to_thread(waiting, f, *sids)
            day.day = "2026-01-02"
            for sid in sids:
                await asyncio.to_thread(f.wait_state, sid, "done", timeout=PATIENCE)
            assert [r.body.why for r in f.records(sids[0]) if isinstance(r.body, t.ApprovalWithdrawn)] == [
                "a new day began: 2026-01-02"
            ]
            assert {r.day for r in ledger(f) if isinstance(r, Reserved) and r.sid in sids} == {"2026-01-02"}


async def test_sleep_and_a_clock_that_was_set_count_against_no_cap_on_wall_time() -> None:
    """The real supervisor with its clocks replaced: they say that the machine slept for nine hours."""
    with fleet() as f:
        slept = 0.0

        def clocks() -> clock.Ticks:
            now = clock.read()
            return clock.Ticks(now.wall + slept, now.boot + slept, now.awake)

        async with served(f, clocks=clocks):
            sid = await asyncio.to_thread(f.launch, play([HOLD], "Done."), more=("--cap-wall", "8h"))
            await asyncio.to_thread(f.wait_event, sid, "tool.started")
            slept = 9 * 3600.0
            await asyncio.to_thread(f.wait_event, sid, "time.passed")
            (passed,) = [r.body for r in f.records(sid) if isinstance(r.body, t.TimePassed)]
            assert abs(passed.seconds - 9 * 3600) < 60
            assert "slept" in passed.why
            assert f.state(sid).away_s == int(passed.seconds)
            await asyncio.to_thread(f.release, sid)
            await asyncio.to_thread(f.wait_state, sid, "done", timeout=PATIENCE)


def test_a_long_message_to_a_session_at_its_cap_is_in_what_it_may_spend_to_finish_up(f: Fleet) -> None:
    sid = f.launch(TURNS, more=("--cap-usd", "0.0001"))
    (asked,) = waiting(f, sid)
    told = f.run("say", sid, "Say what is missing. " + "word " * 10_000).stdout
    assert f"approve {asked['approval_id']} --finish" in told
    f.run("approve", asked["approval_id"], "--finish")
    f.wait_state(sid, "done", timeout=PATIENCE)
    assert len([r for r in f.records(sid) if isinstance(r.body, t.ApprovalRequested)]) == 1
    assert f.violations() == []


def test_a_message_to_a_session_that_finishes_up_gets_an_allowance_of_its_own(f: Fleet) -> None:
    """Its one last reply is on its way when the message comes, which therefore has another one."""
    sid = f.launch(play("That is all.", "And that was your question."), more=("--cap-usd", "0.0001"))
    (asked,) = waiting(f, sid)
    ask_simulator(f, "faults", [{"kind": "stall", "seconds": 5}])
    f.run("approve", asked["approval_id"], "--finish")
    f.wait_event(sid, "model.request")
    assert "one last reply to this too" in f.run("say", sid, "What of the tests? " + "word " * 10_000).stdout
    f.wait_state(sid, "done", timeout=PATIENCE)
    records = f.records(sid)
    first, second = (r.body for r in records if isinstance(r.body, t.FinishUp))
    assert second.allowance_nano > first.allowance_nano
    spoken = next(r.seq for r in records if isinstance(r.body, t.UserMessage) and r.body.origin == "human")
    assert [r.seq > spoken for r in records if isinstance(r.body, t.ModelMessage)] == [True, True]
    assert len([r for r in records if isinstance(r.body, t.ApprovalRequested)]) == 1
    assert f.violations() == []


LIES = {"input_tokens": 61_000, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 10_500}
"""About 1.9 tokens for each byte that is sent, and twice what was allowed."""


@pytest.mark.parametrize("cap", ["session", "day"])
def test_what_an_endpoint_reports_carries_no_sum_over_a_cap(cap: str) -> None:
    caps = "" if cap == "session" else "[caps]\nday_usd = 0.06\n"
    with fleet(config=f"max_tokens = 300\n{caps}") as f:
        f.run("ls")
        ask_simulator(f, "faults", {"kind": "usage", "usage": LIES, "times": 1000})
        more = ("--cap-usd", "0.05") if cap == "session" else ()
        goal = play(*[[("list_files", {})]] * 20, "Done.")
        sids = [f.launch(goal, name=name, more=more) for name in ("a", "b")]
        for sid in sids:
            f.approval(sid, 90)
        limit = 50_000_000 if cap == "session" else 60_000_000
        spent = [sum(s.nano for s in settled(f).values() if s.reservation in reserved(f, sid)) for sid in sids]
        assert all(spent)
        assert (max(spent) if cap == "session" else sum(spent)) <= limit
        for sid in sids:
            told = [r.body.text for r in f.records(sid) if isinstance(r.body, t.HarnessNote)]
            assert sum("reports a usage that cannot be" in text and f.base_url in text for text in told) == 1
            replies = [r.body for r in f.records(sid) if isinstance(r.body, t.ModelMessage)]
            assert replies
            assert all(body.doubt for body in replies), "and each was used"
        assert f.violations() == []


def reserved(f: Fleet, sid: str) -> set[str]:
    return {r.body.reservation for r in f.records(sid) if isinstance(r.body, t.ModelRequest)}
