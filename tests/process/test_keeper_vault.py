"""The process that keeps states for undo stands still: its keeper says so, takes another one, and only then gives
up.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.keeper.calls import vault_client
from harness.keeper.loop.event_loop import Loop
from harness.protocol.paths import SessionFolder
from harness.vault.vault_ops import ListStates, StateList, VaultFailure
from tests.process.keeperlib import Keepers, action, allowed, keepers, wait_until


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Keepers]:
    (tmp_path / "work").mkdir()
    with keepers(tmp_path) as fleet:
        fleet.folder().git.mkdir(parents=True, exist_ok=True)
        (fleet.folder().git / "workspace.json").write_text(json.dumps({"root": str(tmp_path / "work")}))
        yield fleet


def vault_of(keeper: int) -> int:
    """The vault of a keeper that runs nothing else."""
    children = Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()
    return int(children[0]) if len(children) == 1 else 0


def test_a_vault_that_stands_still_is_replaced_and_the_call_runs(fleet: Keepers, tmp_path: Path) -> None:
    keeper = fleet.spawn()["pid"]
    link = fleet.supervisor()
    work = tmp_path / "work"
    link.call("snapshot", label="first", full=True)
    frozen = wait_until("its vault is all that it runs", lambda: vault_of(keeper))
    os.kill(frozen, signal.SIGSTOP)
    link.append(*allowed(action(work, "c0.0", ["sh", "-c", "echo ran >> once"])))
    waiting = link.send("execute", call_id="c0.0")
    said = wait_until("it is said what is waited for", lambda: link.call("ping").get("waits"))
    assert said.startswith(f"process {frozen} is stopped since ")
    assert link.reply(waiting).get("started") is True, "another vault kept the state; nobody is asked"
    wait_until("the call has ended", lambda: "tool.ended" in fleet.types())
    assert (work / "once").read_text() == "ran\n"
    assert not Path(f"/proc/{frozen}").exists()
    assert "waits" not in link.call("ping")


def test_when_the_next_one_stands_still_too_the_answer_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vault_client, "serve", lambda *_: os.kill(os.getpid(), signal.SIGSTOP))
    monkeypatch.setattr(vault_client, "STOPPED_S", 0.2)
    monkeypatch.setattr(vault_client, "LOOK_S", 0.05)
    loop = Loop(tmp_path / "sock")
    loop.on_closed = lambda *_: None
    loop.on_frame = loop.on_closed
    loop.more = lambda: False
    loop.after_turn = lambda: None
    link = vault_client.VaultLink(loop, SessionFolder(tmp_path, tmp_path / "sock"))
    answers: list[StateList | VaultFailure] = []
    pids: set[int] = set()

    def answered(reply: StateList | VaultFailure) -> None:
        answers.append(reply)
        loop.stopping = len(answers) == 2

    loop.after_turn = lambda: pids.add(link.pid)
    link.ask(ListStates(), answered)
    link.ask(ListStates(), answered)
    loop.run()
    link.stop()
    failures = [one for one in answers if isinstance(one, VaultFailure)]
    assert [one.code for one in failures] == ["timeout", "timeout"]
    assert "stood still" in failures[0].message
    assert len(pids - {0}) == 4, "each was asked of two"
    assert link.pid == 0, "and none of them is left"
