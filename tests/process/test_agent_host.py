"""The host and an agent that is not ours: a real keeper's log, the order of what it is told, a second life."""

from __future__ import annotations

import itertools
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from harness.agents import agent_loop, done
from harness.agents.agent import Agent, Doing
from harness.agents.agent_context import AgentContext
from harness.agents.agent_spec import Spec
from harness.agents.errors import Stopped
from harness.agents.steps import Again, End, Leave, Propose, Say, Step, Wait
from harness.events import types as t
from harness.events.message_parts import Call
from harness.linux import proc
from tests.process.brainhouse import SECRET, House
from tests.process.keeperlib import Keepers, keepers, wait_until

_numbers = itertools.count()


class Scribe(Agent):
    """Makes one call, says that it is done, and writes down what it is told."""

    def __init__(self, agent_context: AgentContext, told: list[str]) -> None:
        self._desk = agent_context
        self._told = told
        self._ended: dict[str, str] = {}
        self._thinking: float | None = None
        self.patience = 0.0

    def feed(self, record: t.Record) -> None:
        self._told.append(f"feed {record.type}")
        if isinstance(record.body, t.ToolEnded):
            self._ended[record.body.call_id] = record.body.status

    def say(self, record: t.Record) -> None:
        assert isinstance(record.body, t.UserMessage)
        self._told.append(f"say {record.body.text}")

    def decide(self, record: t.Record) -> None:
        assert isinstance(record.body, t.ToolEnded)
        self._told.append(f"decide {record.body.call_id} {record.body.status}")
        self._ended[record.body.call_id] = record.body.status

    def start(self) -> None:
        self._told.append("start")

    def resume(self) -> None:
        self._told.append("resume")

    def park(self) -> None:
        self._told.append("park")

    def stop(self) -> None:
        self._told.append("stop")
        raise Stopped("stopped")

    def state(self) -> Doing | None:
        if self._thinking is None:
            return None
        return Doing("pondering", "it was told to be patient", self._thinking)

    def propose(self) -> Step:
        session = self._desk.session
        if session.ended is not None or session.desired == "stopped":
            return Leave("over")
        if self.patience:
            return self._ponder()
        if session.calls.open:
            return Wait("its call runs")
        if not self._ended:
            return Propose(((f"c{self._desk.head}.0", Call("mine", "exec", {"argv": ["true"]})),))
        settled = done.settle(done.Claim("I am done."), done.Evidence(()))
        assert isinstance(settled, End)
        return settled

    def _ponder(self) -> Step:
        self._thinking = time.monotonic()
        try:
            while time.monotonic() < self._thinking + self.patience:
                self._desk.look()
                self._desk.follow(0.05)
        except Stopped:
            return Again()
        finally:
            self._thinking = None
        self.patience = 0.0
        return Say("it has pondered")


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keepers]:
    with keepers(tmp_path_factory.mktemp("fleet")) as found:
        yield found


class Life:
    """One life of an agent in this process, on a house's session."""

    def __init__(self, house: House, patience: float = 0.0) -> None:
        self.told: list[str] = []
        self.code: int | None = None
        house.gen += 1
        spec = msgspec.convert(house.spec(house.gen, secret=SECRET), Spec)

        def make(_spec: Spec, agent_context: AgentContext) -> Agent:
            agent = Scribe(agent_context, self.told)
            agent.patience = patience
            return agent

        def live() -> None:
            self.code = agent_loop.run(spec, make)

        self.thread = threading.Thread(target=live, daemon=True)
        self.thread.start()
        house.lease(proc.identify(os.getpid())._asdict())

    def over(self) -> int | None:
        self.thread.join(60)
        assert not self.thread.is_alive(), self.told
        return self.code


@pytest.fixture
def house(fleet: Keepers, tmp_path: Path) -> Iterator[House]:
    found = House(fleet, None, f"agent{next(_numbers):05d}", "http://127.0.0.1:9")
    yield found
    found.close()


def test_an_agent_is_fed_started_told_of_its_calls_and_parked(house: House) -> None:
    life = Life(house)
    (call,) = house.wait_for("tool.proposed")
    assert (call["tool"], call["ref"], call["input"]) == ("exec", "mine", {"argv": ["true"]})
    house.put(t.UserMessage(text="hurry"))
    house.answer_calls(lambda _: {"status": "ok", "preview": "fine", "exit_code": 0})
    assert life.over() == agent_loop.OK
    start = life.told.index("start")
    assert life.told[:2] == ["feed keeper.started", "feed session.intent"]
    assert "feed lease.granted" in life.told[:start]
    assert [w for w in life.told[start:] if not w.startswith("feed")] == [
        "start",
        "say hurry",
        f"decide {call['call_id']} ok",
        "park",
    ]
    assert house.of("session.ended")[-1]["reason"] == "no check was given"


def test_a_second_life_gets_the_history_first_and_repeats_nothing(house: House) -> None:
    first = Life(house)
    (call,) = house.wait_for("tool.proposed")
    house.link.call("lease_end", gen=house.gen, reason="killed", exit_code=-9)
    house.answer_calls(lambda _: {"status": "ok", "preview": "fine", "exit_code": 0})
    assert first.over() == agent_loop.AGAIN
    second = Life(house)
    assert second.over() == agent_loop.OK
    assert len(house.of("tool.proposed")) == 1
    begun = second.told.index("resume")
    assert "feed tool.ended" in second.told[:begun]
    assert not [w for w in second.told if w.startswith(f"decide {call['call_id']}")]


def test_what_it_is_at_is_told_with_its_evidence_and_a_stop_reaches_it_while_it_thinks(house: House) -> None:
    life = Life(house, patience=600.0)
    told = wait_until("the supervisor heard what it is at", lambda: house.supervisor.told("doing"))
    assert (told[0]["what"], told[0]["evidence"]) == ("pondering", "it was told to be patient")
    house.put(t.SessionDesired(state="stopped"))
    assert life.over() == agent_loop.OK
    assert life.told[-2:] == ["stop", "park"]
