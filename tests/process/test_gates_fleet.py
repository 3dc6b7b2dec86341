"""Real fleets whose endpoint is away, overloaded, limiting, unpaid, or given a wrong key: what waits by itself, and
what is asked once for all.
"""

from __future__ import annotations

import json
import os
import re
import socket
import urllib.request
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from harness.domain.endpoints import DOWN, LIMITED, PERSON
from harness.events import types as t
from harness.protocol.client import Unreachable
from tests import warm
from tests.fleetlib import HOLD, KEY, SCENARIOS, Fleet, fleet, kill, play, wait_for

STEPS = play([("list_files", {})], [("read_file", {"path": "README.md"})], [("list_files", {})], "Done.")


def control(f: Fleet, path: str, body: object = None) -> dict[str, Any]:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(f"{f.base_url}/_sim/{path}", data=data)) as reply:
        return dict(json.loads(reply.read()))


def asked(f: Fleet) -> list[dict[str, Any]]:
    """Requests for replies that reached the endpoint, oldest first."""
    return [
        r
        for r in control(f, "requests")["requests"]
        if r["path"].startswith("/v1/messages") and "count_tokens" not in r["path"]
    ]


def endpoints(f: Fleet) -> list[dict[str, Any]]:
    return list(f.call("sessions")["fleet"].get("endpoints", []))


def waiting(f: Fleet, state: str, count: int) -> dict[str, Any]:
    def probe() -> dict[str, Any] | None:
        try:
            return next((e for e in endpoints(f) if e["state"] == state and e.get("waiting", 0) >= count), None)
        except Unreachable:
            return None

    return wait_for(f"{count} sessions waiting at an endpoint that is {state}", probe)


def three(f: Fleet, goal: str = STEPS, names: str = "abc") -> list[str]:
    return [f.launch(goal, name=name) for name in names]


def questions(f: Fleet, sids: list[str]) -> list[t.ApprovalRequested]:
    return [r.body for sid in sids for r in f.records(sid) if isinstance(r.body, t.ApprovalRequested)]


def requests(f: Fleet, sids: list[str]) -> int:
    return sum(r.type == "model.request" for sid in sids for r in f.records(sid))


def take_away(f: Fleet) -> socket.socket:
    """End the endpoint; what keeps its port for it meanwhile, refusing everybody."""
    f.simulator.kill()
    f.simulator.wait()
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    kept.bind(("127.0.0.1", int(f.base_url.rsplit(":", 1)[1])))
    return kept


def bring_back(f: Fleet, kept: socket.socket) -> None:
    again = f.root / "again.json"
    options = ("--port", str(kept.getsockname()[1]), "--ready-file", str(again), "--key", KEY, "--speed", "0")
    with open(os.devnull) as null:
        f.simulator = warm.start(
            "simulator", [*options, "--scenarios", str(SCENARIOS)], os.environ, (null.fileno(), 1, 2)
        )
    wait_for("the simulator", again.exists)
    kept.close()


def test_a_dead_endpoint_is_one_state_of_the_fleet_and_all_go_on_by_themselves() -> None:
    with fleet() as f:
        f.run("ls")
        kept = take_away(f)
        sids = three(f)
        view = waiting(f, DOWN, 2)
        assert view["url"] == f.base_url
        assert "cannot reach" in view["why"]
        row = wait_for(
            "a row that says so", lambda: next((r for s in sids if (r := f.row(s))["state"] == "limited"), None)
        )
        assert "endpoint down since" in row["detail"]
        shown = f.run("ls").stdout
        assert f"{f.base_url} is down since" in shown
        wait_for("a third try", lambda: requests(f, sids) >= 3)
        wait_for(
            "a process that must wait long to be gone",
            lambda: any(r.type == "session.parked" for s in sids for r in f.records(s)),
        )
        tried = requests(f, sids)
        assert tried <= 12, "it is asked by one session at a time, ever more rarely"
        bring_back(f, kept)
        for sid in sids:
            f.wait_state(sid, "done", timeout=90)
        assert questions(f, sids) == []
        assert endpoints(f) == []
        assert f.violations() == []


@pytest.mark.parametrize("fault", [{"kind": "overloaded"}, {"kind": "server"}, {"kind": "cut", "after_bytes": 300}])
def test_trouble_that_ends_costs_nobody_a_question(fault: dict[str, Any]) -> None:
    with fleet() as f:
        f.run("ls")
        control(f, "faults", {**fault, "times": 5})
        sids = three(f)
        for sid in sids:
            f.wait_state(sid, "done", timeout=90)
        assert questions(f, sids) == []
        assert not [
            r for sid in sids for r in f.records(sid) if isinstance(r.body, t.SessionParked) and r.body.why != "limited"
        ]
        assert f.violations() == []


@pytest.mark.parametrize("status", [302, 307])
def test_a_detour_of_seconds_costs_nobody_a_question(status: int) -> None:
    with fleet() as f:
        f.run("ls")
        where = {"location": "https://login.example/?next=/v1/messages"}
        control(f, "faults", {"kind": "status", "status": status, "headers": where, "times": 4})
        sids = three(f)
        for sid in sids:
            f.wait_state(sid, "done", timeout=90)
        assert questions(f, sids) == []
        failed = [r.body for sid in sids for r in f.records(sid) if isinstance(r.body, t.ModelFailed)]
        assert [body.kind for body in failed] == ["page"] * 4
        assert all("login.example" in body.message and body.usage == t.Usage() for body in failed)
        assert f.violations() == []


@pytest.mark.parametrize("page", [{"body": "<html><title>WiFi</title></html>"}, {}, {"content_type": "text/plain"}])
def test_a_page_to_log_in_to_the_network_costs_nothing_and_asks_nobody(page: dict[str, str]) -> None:
    with fleet() as f:
        f.run("ls")
        control(f, "faults", {"kind": "page", **page, "times": 5})
        sids = three(f)
        first = wait_for("a failure", lambda: next(iter(failures(f, sids)), None))
        assert (first.kind, first.usage) == ("page", t.Usage())
        for sid in sids:
            f.wait_state(sid, "done", timeout=90)
        assert questions(f, sids) == []
        assert [body.usage for body in failures(f, sids)] == [t.Usage()] * 5
        assert not f.json("cost")[0].get("unknown_usd_nano")
        assert f.violations() == []


def failures(f: Fleet, sids: list[str]) -> list[t.ModelFailed]:
    return [r.body for sid in sids for r in f.records(sid) if isinstance(r.body, t.ModelFailed)]


@pytest.mark.parametrize("status", [400, 403, 421, 503])
def test_the_pages_of_a_gateway_cost_nothing_and_are_waited_out(status: int) -> None:
    """Nothing of such an attempt is set aside as spent."""
    with fleet() as f:
        f.run("ls")
        control(f, "faults", {"kind": "status", "status": status, "body": "<html><h1>nginx</h1></html>", "times": 4})
        sids = three(f)
        for sid in sids:
            f.wait_state(sid, "done", timeout=90)
        assert questions(f, sids) == []
        failed = [r.body for sid in sids for r in f.records(sid) if isinstance(r.body, t.ModelFailed)]
        assert len(failed) == 4
        assert all(body.kind == "server" and body.usage == t.Usage() for body in failed)
        assert f.violations() == []


def held_back(f: Fleet, fault: Callable[[], dict[str, Any]]) -> tuple[list[str], float, float]:
    """Three sessions, the first of which is refused before the others come: they, and when the endpoint refused it and
    was asked again, by its own clock (Unix time).
    """
    first = f.launch(play([HOLD], [("list_files", {})], "Done."), name="a")
    f.wait_event(first, "tool.started")
    control(f, "faults", fault())
    f.release(first)
    f.wait_event(first, "model.failed")
    sids = [first, *three(f, names="bc")]
    for sid in sids:
        f.wait_state(sid, "done", timeout=90)
    answered = asked(f)
    at = next(i for i, r in enumerate(answered) if r["status"] == 429)
    return sids, answered[at]["ts"], answered[at + 1]["ts"]


def test_retry_after_is_obeyed_by_the_whole_fleet() -> None:
    with fleet() as f:
        f.run("ls")
        sids, refused, later = held_back(f, lambda: {"kind": "rate_limit", "retry_after": 12})
        assert later - refused >= 12
        assert questions(f, sids) == []


def test_a_used_up_rate_limit_is_waited_out_by_the_whole_fleet() -> None:
    with fleet() as f:
        f.run("ls")
        head = "anthropic-ratelimit-requests"
        filled: list[datetime] = []

        def used_up() -> dict[str, Any]:
            filled.append(datetime.now(UTC) + timedelta(seconds=25))
            told = {"limit": "50", "remaining": "0", "reset": filled[0].strftime("%Y-%m-%dT%H:%M:%SZ")}
            return {"kind": "rate_limit", "headers": {f"{head}-{name}": value for name, value in told.items()}}

        sids, refused, later = held_back(f, used_up)
        assert refused < filled[0].timestamp() - 5, "it was refused long before it is filled again"
        assert later >= int(filled[0].timestamp())
        assert questions(f, sids) == []


def test_an_endpoint_that_sends_elsewhere_is_one_item_and_the_key_stays_here() -> None:
    with fleet() as f:
        f.run("ls")
        elsewhere = {"kind": "status", "status": 308, "headers": {"location": "http://127.0.0.1:9/v1/messages"}}
        control(f, "faults", elsewhere)
        sids = three(f)
        waiting(f, PERSON, 3)
        (item,) = wait_for("the item", lambda: f.json("approvals"))
        assert (item["kind"], item["detail"]["why"]) == ("endpoint", "redirect")
        assert "http://127.0.0.1:9" in item["title"]
        assert "model.base_url" in item["detail"]["todo"]
        control(f, "faults", elsewhere)
        f.approve(item["approval_id"])
        again = wait_for(
            "the item of the second time",
            lambda: next((a for a in f.json("approvals") if a["approval_id"] != item["approval_id"]), None),
        )
        f.approve(again["approval_id"])
        for sid in sids:
            f.wait_state(sid, "done", timeout=90)
        assert len(questions(f, sids)) == 2
        assert f.violations() == []


def test_a_retry_after_of_2099_is_said_and_bounded() -> None:
    with fleet() as f:
        f.run("ls")
        control(f, "faults", {"kind": "rate_limit", "headers": {"retry-after": "Fri, 01 Jan 2099 00:00:00 GMT"}})
        sid = f.launch(STEPS)
        view = waiting(f, LIMITED, 1)
        assert "01 Jan 2099" in view["why"] or "31 Dec 2098" in view["why"]
        assert "every hour" in view["why"]
        f.wait_event(sid, "session.parked")
        wait_for("its row to say until when", lambda: re.search("2099|2098", f.run("ls").stdout))
        assert f.state(sid).lease is None or f.state(sid).parked is not None


def test_a_wrong_key_is_one_item_for_three_sessions_and_the_right_key_file_is_enough() -> None:
    with fleet(key="sk-wrong") as f:
        sids = three(f, names="ab")
        item = wait_for("the item, of whichever asked first", lambda: next(iter(f.requests()), None))
        sids += three(f, names="c")  # with the key that was refused: that makes it no better
        assert item["kind"] == "auth"
        assert item["detail"]["why"] == "auth"
        view = waiting(f, PERSON, 3)
        assert view["approval_id"] == item["approval_id"]
        assert len(f.json("approvals")) == 1
        before = requests(f, sids)
        assert before <= 3
        (f.folders.config / "key").write_text(KEY)
        for sid in sids:
            f.wait_state(sid, "done", timeout=90)
        assert f.json("approvals") == []
        assert len(questions(f, sids)) == 1
        assert not [r for sid in sids for r in f.records(sid) if isinstance(r.body, t.ApprovalDecided)]
        assert endpoints(f) == []
        assert f.violations() == []


def test_the_one_item_outlives_the_supervisor() -> None:
    with fleet(key="sk-wrong") as f:
        sids = three(f)
        waiting(f, PERSON, 3)
        item = wait_for("the item", lambda: next(iter(f.json("approvals")), None))
        kill(f.supervisor_pid())
        waiting(f, PERSON, 3)
        assert [a["approval_id"] for a in f.json("approvals")] == [item["approval_id"]]
        assert len(questions(f, sids)) == 1
        assert not [r for sid in sids for r in f.records(sid) if isinstance(r.body, t.ApprovalWithdrawn)]
        (f.folders.config / "key").write_text(KEY)
        for sid in sids:
            f.wait_state(sid, "done", timeout=90)
        assert f.violations() == []


def test_the_item_moves_to_another_session_when_its_own_is_stopped() -> None:
    with fleet(key="") as f:
        said = f.json("launch", "--repo", str(f.repository()), "--goal", STEPS, "--name", "a")[0]
        assert any("no key" in text for text in said["warnings"])
        sids = [str(said["sid"]), *three(f, names="bc")]
        waiting(f, PERSON, 3)
        first = wait_for("the item", lambda: next(iter(f.json("approvals")), None))
        assert "no key" in first["title"]
        f.run("stop", first["sid"])
        second = wait_for(
            "another one carries it", lambda: next((a for a in f.json("approvals") if a["sid"] != first["sid"]), None)
        )
        f.run("pause", second["sid"])
        third = wait_for(
            "the last one carries it",
            lambda: next((a for a in f.json("approvals") if a["sid"] not in (first["sid"], second["sid"])), None),
        )
        assert len(f.json("approvals")) == 1
        (f.folders.config / "key").write_text(KEY)
        f.wait_state(third["sid"], "done")
        f.run("resume", second["sid"])
        f.wait_state(second["sid"], "done")
        assert asked(f)
        assert len(questions(f, sids)) == 3


def test_an_unpaid_account_and_an_unknown_model_say_what_they_are() -> None:
    with fleet() as f:
        f.run("ls")
        control(f, "faults", {"kind": "spend_limit"})
        sids = three(f)
        waiting(f, PERSON, 3)
        item = wait_for("the item", lambda: next(iter(f.json("approvals")), None))
        assert (item["kind"], item["detail"]["why"]) == ("endpoint", "spend_limit")
        control(f, "faults", {"kind": "spend_limit"})
        f.approve(item["approval_id"])
        again = wait_for(
            "the item of the second refusal",
            lambda: next((a for a in f.json("approvals") if a["approval_id"] != item["approval_id"]), None),
        )
        f.approve(again["approval_id"])
        for sid in sids:
            f.wait_state(sid, "done", timeout=90)
        said = f.run(
            "launch", "--repo", str(f.repository()), "--goal", STEPS, "--model", "claude-nonesuch-9", "--name", "odd"
        ).stdout
        assert "claude-nonesuch-9 is in no price list" in said
        odd = [
            next(r["sid"] for r in f.json("ls") if r["name"] == "odd"),
            f.launch(STEPS, name="odd-2", more=("--model", "claude-nonesuch-9")),
        ]
        waiting(f, PERSON, 2)
        (item,) = wait_for("the item", lambda: f.json("approvals"))
        assert (item["kind"], item["detail"]["why"]) == ("endpoint", "model_unknown")
        assert "claude-nonesuch-9" in item["title"]
        f.wait_state(f.launch(STEPS, name="other"), "done")
        for sid in odd:
            f.run("stop", sid)
        wait_for("nothing to be left", lambda: not f.json("approvals") and not endpoints(f))


def test_a_model_that_only_a_judge_asks_for_holds_up_nobody_else() -> None:
    with fleet() as f:
        judged = f.launch(STEPS, name="judged", more=("--judge-model", "claude-nonesuch-9"))
        waiting(f, PERSON, 1)
        (item,) = wait_for("the item", lambda: f.json("approvals"))
        assert (item["sid"], item["kind"], item["detail"]["why"]) == (judged, "endpoint", "model_unknown")
        assert "does not know the model claude-nonesuch-9" in item["title"]
        f.wait_state(f.launch(STEPS, name="other"), "done")
        kill(f.supervisor_pid())
        f.run("supervisor", "start")
        f.wait_state(f.launch(STEPS, name="later"), "done")
        (after,) = f.json("approvals")
        assert after["approval_id"] == item["approval_id"], "the request outlives the supervisor"
        f.approve(item["approval_id"])
        wait_for("the second refusal", lambda: len(questions(f, [judged])) == 2)
        f.wait_state(f.launch(STEPS, name="last"), "done")
        assert f.violations() == []


def test_a_new_supervisor_asks_with_one_probe_too() -> None:
    with fleet() as f:
        f.run("ls")
        kept = take_away(f)
        sids = three(f)
        since = waiting(f, DOWN, 3)["since"]
        wait_for("a brain to have left", lambda: any(r.type == "session.parked" for s in sids for r in f.records(s)))
        before = requests(f, sids)
        kill(f.supervisor_pid())
        view = waiting(f, DOWN, 2)
        assert abs(_seconds(view["since"]) - _seconds(since)) <= 2, "it remembers since when"
        assert requests(f, sids) <= before + 3
        bring_back(f, kept)
        for sid in sids:
            f.wait_state(sid, "done", timeout=90)
        assert questions(f, sids) == []


def _seconds(ts: str) -> float:
    return datetime.fromisoformat(ts).timestamp()


def test_a_reply_of_pings_is_cut_and_asked_again() -> None:
    with fleet(config="reply_silence_s = 4\n") as f:  # a busy machine may hold a single ping back for a second
        f.run("ls")
        control(f, "faults", {"kind": "pings", "after_bytes": 300, "every": 0.1})
        sid = f.launch(STEPS)
        f.wait_state(sid, "done")
        (failed,) = [r.body for r in f.records(sid) if isinstance(r.body, t.ModelFailed)]
        assert failed.kind == "cut"
        assert "no word" in failed.message


def test_a_reply_of_20_mb_ends_no_brain() -> None:
    with fleet() as f:
        f.run("ls")
        control(f, "faults", {"kind": "flood", "size": 20_000_000})
        sid = f.launch(STEPS)
        f.wait_state(sid, "done")
        (failed,) = [r.body for r in f.records(sid) if isinstance(r.body, t.ModelFailed)]
        assert failed.kind == "too_large"
        assert not [r for r in f.records(sid) if r.type == "session.quarantined"]
        f.wait_event(sid, "lease.ended")
        assert [r.body.exit_code for r in f.records(sid) if isinstance(r.body, t.LeaseEnded)] == [0]


def test_calls_that_cannot_be_used_are_told_to_their_models_and_close_no_gate() -> None:
    deep: object = "x"
    for _ in range(201):
        deep = [deep]
    with fleet() as f:
        sids = three(f, play([("exec", {"argv": deep})]))
        for sid in sids:
            f.wait_state(sid, "waiting")
            records = f.records(sid)
            failed = [r.body for r in records if isinstance(r.body, t.ModelFailed)]
            assert [(body.kind, body.usage is not None) for body in failed] == [("unusable", True)] * 3
            told = [r.body.text for r in records if isinstance(r.body, t.UserMessage) and r.body.origin == "harness"]
            assert len(told) == 2
            assert all("nested deeper than 200 levels" in text for text in told)
        assert endpoints(f) == []
        other = f.launch(STEPS)
        f.wait_state(other, "done")
        assert not [r for r in f.records(other) if isinstance(r.body, t.ModelFailed)]


def test_a_request_that_only_fails_for_itself_stops_nobody() -> None:
    with fleet() as f:
        f.run("ls")
        poison = play([("list_files", {"path": "src"})], "Poison done.")
        control(f, "faults", {"kind": "server", "times": 40, "goal": "Poison"})
        bad = f.launch(poison, name="bad")
        f.wait_event(bad, "model.failed")
        sids = three(f)
        for sid in sids:
            f.wait_state(sid, "done", timeout=90)
        assert questions(f, [*sids, bad]) == []
        assert f.state(bad).ended is None


@pytest.mark.timeout(400)
def test_a_request_that_the_endpoint_never_answers_is_asked_about_and_the_others_go_on() -> None:
    with fleet() as f:
        f.run("ls")
        control(f, "faults", {"kind": "server", "times": 1000, "goal": "Poison", "retry_after": 0})
        bad = f.launch(play([("list_files", {"path": "src"})], "Poison done."), name="bad")
        f.wait_event(bad, "model.failed")
        busy = play(*[[("write_file", {"path": f"n{i}", "content": "new"})] for i in range(30)], "Done.")
        sids = three(f, busy, "ab")

        def asked_about() -> dict[str, Any] | None:
            """Somebody else is answered until then: without others nothing is known of whose fault it is."""
            if all(f.state(sid).terminal for sid in sids):
                sids.append(f.launch(busy))
            return next(iter(f.requests()), None)

        item = wait_for("its question", asked_about, timeout=240)
        assert (item["sid"], item["kind"]) == (bad, "restart")
        assert "while it answered others" in item["title"]
        for sid in sids:
            f.wait_state(sid, "done", timeout=90)
        assert questions(f, sids) == []
        assert endpoints(f) == []
        assert f.violations() == []


def test_a_refusal_is_answered_with_other_words_and_the_doctor_counts_it() -> None:
    with fleet() as f:
        f.run("ls")
        goal = f"play: {json.dumps([{'text': 'I will not do that.', 'stop_reason': 'refusal'}])}"
        sid = f.launch(goal)
        item = wait_for("its request", lambda: next(iter(f.json("approvals")), None))
        assert (item["sid"], item["kind"], item["title"]) == (sid, "refusal", "I will not do that.")
        assert item["options"] == ["answer", "retry", "stop"]
        row = f.row(sid)
        assert (row["state"], row["detail"]) == ("waiting", "the model refused: I will not do that.")
        told = f.run("doctor", check=False).stdout
        assert "1 request waits for your answer" in told
        assert "nothing holds any session up" not in told
        f.run("answer", item["approval_id"], "Then only look at the files.")
        wait_for("the next try", lambda: requests(f, [sid]) >= 2)
        assert [
            r.body.text for r in f.records(sid) if isinstance(r.body, t.UserMessage) and r.body.origin == "human"
        ] == ["Then only look at the files."]
        assert f.violations() == []
