"""A defect while a call is begun: seen, on record and tried again with a pause, never lost with its task."""

from __future__ import annotations

import asyncio

import pytest

from harness.events import types as t
from harness.keeper.loop.requests import Execute
from harness.protocol.connection.op import Op
from harness.supervisor.processes.keeper_link import KeeperLink
from tests.fleetlib import fleet, play
from tests.process.served import served

CALL = play([("exec", {"argv": ["true"]})], "Done.")


def failing(monkeypatch: pytest.MonkeyPatch, exc: Exception, times: int) -> list[str]:
    """The first calls that are begun end in ``exc``; each try of one."""
    real = KeeperLink.ask
    tried = []

    async def ask(self: KeeperLink, op: Op[object], wait: float | None = 30.0) -> object:
        if isinstance(op, Execute):
            tried.append(op.call_id)
            if len(tried) <= times:
                raise exc
        return await real(self, op, wait)

    monkeypatch.setattr(KeeperLink, "ask", ask)
    return tried


async def test_a_defect_is_noted_and_the_call_begun_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = failing(monkeypatch, AttributeError("injected"), 1)
    with fleet() as f:
        async with served(f):
            sid = await asyncio.to_thread(f.launch, CALL)
            await asyncio.to_thread(f.wait_state, sid, "done")
        notes = [r.body.text for r in f.records(sid) if isinstance(r.body, t.HarnessNote)]
        assert sum("injected" in note for note in notes) == 1
        assert len(tried) == 2


async def test_a_defect_that_persists_sets_the_session_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = failing(monkeypatch, AttributeError("injected"), 1000)
    with fleet() as f:
        async with served(f):
            sid = await asyncio.to_thread(f.launch, CALL)
            await asyncio.to_thread(f.wait_event, sid, "session.quarantined")
            approval = await asyncio.to_thread(f.approval, sid)
            assert approval["kind"] == "restart"
            assert len(tried) < 10, "it is not begun again and again without a pause"


async def test_words_to_a_session_that_was_set_aside_have_it_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, AttributeError("injected"), 1000)
    with fleet() as f:
        async with served(f):
            sid = await asyncio.to_thread(f.launch, CALL)
            await asyncio.to_thread(f.wait_event, sid, "session.quarantined")
            await asyncio.to_thread(f.approval, sid)
            monkeypatch.undo()
            await asyncio.to_thread(f.run, "say", sid, "try again")
            await asyncio.to_thread(f.wait_state, sid, "done")
            assert await asyncio.to_thread(f.requests) == []
            assert await asyncio.to_thread(f.violations) == []


async def test_a_failing_disk_is_no_defect_and_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, OSError(5, "Input/output error"), 1)
    with fleet() as f:
        async with served(f):
            sid = await asyncio.to_thread(f.launch, CALL)
            await asyncio.to_thread(f.wait_state, sid, "done")
        assert not any(isinstance(r.body, t.HarnessNote) and "defect" in r.body.text for r in f.records(sid))
