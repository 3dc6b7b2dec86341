"""Brains as real processes: forked from the real fork server, on a real keeper's log, against a real HTTP server."""

from __future__ import annotations

import itertools
import json
import os
import signal
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.events import types as t
from harness.simulator import validate
from tests.process.brainhouse import KEY, BrainForkServer, House, SmallSupervisor
from tests.process.brainhouse import fork_server as brain_nursery
from tests.process.brainlib import Answer, ModelServer, error, reply, sse, stream
from tests.process.keeperlib import Keepers, keepers

_numbers = itertools.count()


@pytest.fixture(scope="module")
def fork_server() -> Iterator[BrainForkServer]:
    with brain_nursery() as found:
        yield found


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keepers]:
    with keepers(tmp_path_factory.mktemp("fleet")) as found:
        yield found


class Make:
    """Makes houses and closes them at the end of the test."""

    def __init__(self, fleet: Keepers, fork_server: BrainForkServer) -> None:
        self._fleet = fleet
        self._nursery = fork_server
        self.houses: list[House] = []

    def __call__(self, url: str, **options: Any) -> House:
        house = House(self._fleet, self._nursery, f"brain{next(_numbers):05d}", url, **options)
        self.houses.append(house)
        return house


@pytest.fixture
def make(fleet: Keepers, fork_server: BrainForkServer) -> Iterator[Make]:
    maker = Make(fleet, fork_server)
    yield maker
    for house in maker.houses:
        house.close()


def use(number: int, name: str = "exec", **given: Any) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": f"toolu_{number}",
        "name": name,
        "input": given or {"argv": ["true", str(number)]},
    }


def say(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def check_requests(server: ModelServer) -> None:
    for body in server.requests:
        validate.check(json.loads(json.dumps(body)))
        marks = sum("cache_control" in b for m in body["messages"] for b in m["content"]) + sum(
            "cache_control" in b for b in (*body["system"], *body["tools"])
        )
        assert marks <= 4


def answers_for(server: ModelServer) -> list[list[str]]:
    """Per request: the ids of all tool results it carries."""
    return [
        [b["tool_use_id"] for m in r["messages"] for b in m["content"] if b["type"] == "tool_result"]
        for r in server.requests
    ]


def test_a_whole_life(make: Make) -> None:
    big = use(2, "write_file", path="big.txt", content="x" * 20_000, why="it is needed")
    thinking = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    with ModelServer(
        stream(thinking, say("Two things."), use(1), big, chunk=500), stream(say("Done."), stop="end_turn")
    ) as server:
        house = make(server.url, checks=["make test"])
        pid = house.wake()
        assert house.until_exit(pid) == 0
        check_requests(server)
        assert answers_for(server) == [[], ["toolu_1", "toolu_2"]]
        assert server.requests[1]["messages"][1]["content"] == [thinking, say("Two things."), use(1), big]
    first, second = house.of("model.message")
    assert "parts" not in first
    assert first["parts_blob"]["bytes"] > 20_000
    assert second["parts"] == [{"part": "text", "text": "Done."}]
    assert (first["cost_nano"], first["price_source"], first["usage"]["cache_read"]) == (7, "test", 20)
    small, large, check = house.of("tool.proposed")
    assert (small["tool"], small["input"]) == ("exec", {"argv": ["true", "1"]})
    assert (large["claim"], large["input_blob"]["bytes"] > 20_000) == ("it is needed", True)
    assert (check["tool"], check["input"]) == ("check", {"command": "make test"})
    asked = house.of("model.request")
    assert [r.get("delivers", []) for r in asked] == [[], [small["call_id"], large["call_id"]]]
    assert asked[0]["est_input"] < 200 < asked[1]["est_input"] < 70_000
    assert len(house.money.settled) == len(house.money.reserved) == 2
    (end,) = house.of("session.ended")
    assert (end["outcome"], end["verified"], end["summary"]) == ("done", True, "Done.")


def test_the_key_is_nowhere_but_in_memory(make: Make, fork_server: BrainForkServer) -> None:
    gate = threading.Event()
    held = stream(say("x"), final=False)
    held.hold = gate
    with ModelServer(held) as server:
        house = make(server.url)
        pid = house.wake()
        server.wait_requests(1)
        assert server.headers[0]["authorization"] == f"Bearer {KEY}"
        for who in (pid, fork_server.pid):
            for name in ("environ", "cmdline"):
                assert KEY.encode() not in Path(f"/proc/{who}/{name}").read_bytes()
        os.kill(pid, signal.SIGKILL)
        fork_server.exit_code(pid)
        gate.set()
    for file in house.folder.root.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file


@pytest.mark.parametrize("after", ["message_start", "content_block_delta", "message_delta"])
def test_killed_in_the_middle_of_a_reply_and_woken_again(make: Make, fork_server: BrainForkServer, after: str) -> None:
    gate = threading.Event()
    events = reply(say("I will run it."), use(1))
    cut = max(i for i, e in enumerate(events) if e["type"] == after) + 1
    held = Answer(sse(events[:cut]), headers={"content-type": "text/event-stream"}, length=False, hold=gate)
    with ModelServer(held, stream(use(1)), stream(say("ok"), stop="end_turn")) as server:
        house = make(server.url)
        pid = house.wake()
        server.wait_requests(1)
        os.kill(pid, signal.SIGKILL)
        assert fork_server.exit_code(pid) == -signal.SIGKILL
        gate.set()
        assert house.of("tool.proposed") == []
        assert house.until_exit(house.wake()) == 0
        check_requests(server)
        assert answers_for(server) == [[], [], ["toolu_1"]]
    assert len(house.of("tool.proposed")) == 1
    (failed,) = house.of("model.failed")
    assert failed["kind"] == "cut"
    assert "usage" not in house.money.settled[0], "nobody knows what it cost"
    attempts = [(r["request_id"], r["attempt"]) for r in house.of("model.request")]
    assert attempts[:2] == [(attempts[0][0], 1), (attempts[0][0], 2)]
    assert house.of("session.ended")[0]["outcome"] == "done"


def test_killed_while_its_calls_run_and_woken_again(make: Make, fork_server: BrainForkServer) -> None:
    with ModelServer(stream(use(1), use(2)), stream(say("ok"), stop="end_turn")) as server:
        house = make(server.url)
        pid = house.wake()
        house.wait_for("tool.proposed", 2)
        os.kill(pid, signal.SIGKILL)
        fork_server.exit_code(pid)
        assert house.until_exit(house.wake()) == 0
        assert len(house.of("tool.proposed")) == 2
        assert len(house.of("model.request")) == 2
        assert answers_for(server) == [[], ["toolu_1", "toolu_2"]]


def test_what_is_wrong_with_the_conversation_parks_after_one_request(make: Make) -> None:
    with ModelServer(error(400, "invalid_request_error", "messages: bad")) as server:
        house = make(server.url)
        assert house.until_exit(house.wake()) == 0
        assert len(server.requests) == 1
    (failed,) = house.of("model.failed")
    assert failed["kind"] == "history"
    assert house.of("session.parked")[0]["why"] == "error"
    assert house.money.settled[0]["usage"] == {}


@pytest.mark.parametrize(
    ("answer", "kind", "wait_s"),
    [
        (error(401, "authentication_error", "invalid x-api-key"), "auth", None),
        (error(402, "billing_error", "credit balance too low"), "spend_limit", None),
        (error(404, "not_found_error", "model: claude-none"), "model_unknown", None),
        (error(429, "rate_limit_error", "slow down", **{"retry-after": "600"}), "rate_limit", 600.0),
    ],
)
def test_what_the_endpoint_says_goes_to_the_gate_which_holds_the_next_request(
    make: Make, answer: Answer, kind: str, wait_s: float | None
) -> None:
    with ModelServer(answer) as server:
        house = make(server.url)
        house.money.held_after = 1
        assert house.until_exit(house.wake()) == 0
        assert len(server.requests) == 1
    (failed,) = house.of("model.failed")
    assert failed["kind"] == kind
    (told,) = [s["outcome"] for s in house.money.settled]
    assert (told["kind"], told.get("wait_s")) == (kind, wait_s)
    (parked,) = house.of("session.parked")
    assert parked == {"why": "limited", "detail": "the endpoint is down", "since": "2026-01-02T03:04:05Z"}
    assert house.money.settled[0]["usage"] == {}


def test_trouble_that_passes_is_waited_out(make: Make) -> None:
    overloaded = Answer(
        sse([*reply(say("I"))[:4], {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}]),
        headers={"content-type": "text/event-stream"},
        length=False,
    )
    with ModelServer(error(529, "overloaded_error"), overloaded, stream(say("ok"), stop="end_turn")) as server:
        house = make(server.url)
        assert house.until_exit(house.wake()) == 0
        assert len(server.requests) == 3
    assert [f["kind"] for f in house.of("model.failed")] == ["overloaded", "overloaded"]
    assert [r["attempt"] for r in house.of("model.request")] == [1, 2, 3]
    assert ["usage" not in s for s in house.money.settled] == [False, True, False]
    assert house.of("session.ended")[0]["outcome"] == "done"


def test_no_key_asks_nobody(make: Make) -> None:
    with ModelServer() as server:
        house = make(server.url)
        house.money.held_after = 1
        assert house.until_exit(house.wake(credential={"base_url": server.url, "key": ""})) == 0
        assert server.requests == []
    assert house.money.settled[0]["outcome"]["kind"] == "auth"


def test_a_cap_parks_before_anything_is_sent(make: Make) -> None:
    with ModelServer() as server:
        house = make(server.url)
        house.money.refuse = {"code": "cap", "message": "session.usd would be passed"}
        assert house.until_exit(house.wake()) == 0
        assert server.requests == []
    assert house.of("model.request") == []
    assert house.of("session.parked")[0] == {"why": "cap", "detail": "session.usd would be passed"}


def test_waiting_for_a_human_leaves_no_brain_behind(make: Make) -> None:
    with ModelServer(stream(use(1)), stream(say("a pity"), stop="end_turn")) as server:
        house = make(server.url)
        pid = house.wake()
        (call,) = house.wait_for("tool.proposed")
        judged = t.ToolJudged(call_id=call["call_id"], action_hash="h", verdict="ask", rule="r", reason="", policy="p")
        house.put(
            judged,
            t.ApprovalRequested(
                approval_id="a1", kind="tool", title="?", options=["allow"], call_id=call["call_id"], action_hash="h"
            ),
        )
        assert house.fork_server.exit_code(pid) == 0
        assert house.of("session.parked")[0]["why"] == "approval"
        house.put(
            t.ApprovalDecided(
                approval_id="a1",
                decision_id="d1",
                decision="deny",
                call_id=call["call_id"],
                action_hash="h",
                message="no",
            )
        )
        assert house.until_exit(house.wake(), lambda _: {"status": "denied", "preview": "a human said no"}) == 0
        result = server.requests[1]["messages"][2]["content"][0]
    assert result["is_error"]
    assert "a human said no" in result["content"]


def test_a_newer_brain_fences_the_older_one(make: Make, fork_server: BrainForkServer) -> None:
    with ModelServer(stream(use(1)), stream(say("ok"), stop="end_turn")) as server:
        house = make(server.url)
        old = house.wake()
        house.wait_for("tool.proposed")
        new = house.wake()
        assert fork_server.exit_code(old) == 75
        assert house.until_exit(new) == 0
        assert len(server.requests) == 2


def test_a_brain_without_a_lease_gives_up_without_a_word(make: Make, fork_server: BrainForkServer) -> None:
    with ModelServer() as server:
        house = make(server.url)
        house.gen = 5
        house.lease({"pid": 1, "start": 1, "boot": "b"})
        stale = fork_server.call("spawn", brain=house.spec(4))
        assert fork_server.exit_code(stale["pid"]) == 75
        wrong = fork_server.call("spawn", brain=house.spec(6, secret="guess", sid=house.sid))
        house.gen = 7
        house.lease({"pid": 1, "start": 1, "boot": "b"})
        assert fork_server.exit_code(wrong["pid"]) == 75
        assert server.requests == []


def test_a_lost_keeper_ends_the_brain(make: Make, fleet: Keepers, fork_server: BrainForkServer) -> None:
    with ModelServer(stream(use(1))) as server:
        house = make(server.url)
        pid = house.wake()
        house.wait_for("tool.proposed")
        fleet.kill(house.keeper_pid)
        assert fork_server.exit_code(pid) == 75


def test_a_lost_supervisor_is_waited_for(make: Make, fork_server: BrainForkServer) -> None:
    with ModelServer(stream(use(1)), stream(say("ok"), stop="end_turn")) as server:
        house = make(server.url)
        pid = house.wake()
        house.wait_for("tool.proposed")
        house.supervisor.close()
        house.answer_calls(lambda _: {"status": "ok", "preview": "fine", "exit_code": 0})
        count = len(house.log())
        assert len(server.requests) == 1
        house.supervisor = SmallSupervisor(house.supervisor_socket, house.money)
        assert house.until_exit(pid) == 0
        assert len(house.log()) > count
        assert house.supervisor.hellos == 1
    assert house.of("session.ended")[0]["outcome"] == "done"


def test_a_supervisor_lost_during_the_reply_costs_no_reply(make: Make) -> None:
    def script(_: dict[str, Any]) -> Answer:
        house.supervisor.close()
        return stream(say("ok"), stop="end_turn")

    with ModelServer(script=script) as server:
        house = make(server.url)
        pid = house.wake()
        (message,) = house.wait_for("model.message")
        assert (message["price_source"], message["cost_nano"]) == ("reserved", 1000)
        assert house.money.settled == []
        house.supervisor = SmallSupervisor(house.supervisor_socket, house.money)
        assert house.until_exit(pid) == 0
    assert len(house.money.settled) == 1
    assert house.of("session.ended")[0]["outcome"] == "done"


def test_stopped_during_a_reply(make: Make, fork_server: BrainForkServer) -> None:
    def script(_: dict[str, Any]) -> Answer:
        house.put(t.SessionDesired(state="stopped"))
        return replace(stream(say("a long story " * 50), final=False), forever=sse([{"type": "ping"}]))

    with ModelServer(script=script) as server:
        house = make(server.url)
        assert fork_server.exit_code(house.wake()) == 0
    assert house.of("tool.proposed") == []
    assert house.of("model.message") == []
    assert "usage" not in house.money.settled[0], "nobody knows what it cost"


def test_a_damaged_reply_blob_parks_with_its_name(make: Make, fork_server: BrainForkServer) -> None:
    with ModelServer(stream(use(1, "write_file", path="a", content="x" * 20_000), chunk=500)) as server:
        house = make(server.url)
        pid = house.wake()
        house.wait_for("tool.proposed")
        os.kill(pid, signal.SIGKILL)
        fork_server.exit_code(pid)
        sha = house.of("model.message")[0]["parts_blob"]["sha"]
        (house.folder.blobs / sha[:2] / sha).write_bytes(b"not it")
        assert fork_server.exit_code(house.wake()) == 0
    (parked,) = house.of("session.parked")
    assert parked["why"] == "error"
    assert sha[:12] in parked["detail"]


def test_a_base_url_that_cannot_even_be_read_parks(make: Make, fork_server: BrainForkServer) -> None:
    house = make("http://[::1")
    assert fork_server.exit_code(house.wake()) == 0
    assert "http://[::1" in house.of("session.parked")[0]["detail"]


def test_a_bad_order_is_refused_and_harms_nobody(fork_server: BrainForkServer) -> None:
    assert fork_server.call("dance")["error"]["code"] == "bad_op"
    refused = fork_server.call("spawn", brain={"sid": "x"})
    assert refused["error"]["code"] == "spawn"
    assert "folder" in refused["error"]["message"]
