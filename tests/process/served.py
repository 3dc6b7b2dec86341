"""The real supervisor in the process of a test, so that one of its parts can be replaced."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from harness.protocol.client import Unreachable
from harness.supervisor.base.settings import Settings
from harness.supervisor.endpoints.credentials import Credentials
from harness.supervisor.money.budget_service import BudgetService
from harness.supervisor.money.day import Clock
from harness.supervisor.money.reservations import DurableLedger
from harness.supervisor.state_folder import prepare
from harness.supervisor.supervisor import Supervisor
from harness.supervisor.upkeep import clock, epochs
from tests.fleetlib import Fleet, wait_for


@asynccontextmanager
async def served(
    f: Fleet, *, day: Clock | None = None, clocks: Callable[[], clock.Ticks] = clock.read
) -> AsyncIterator[DurableLedger]:
    """Serve this fleet until the block ends, by these clocks; its ledger."""
    settings = Settings(f.folders)
    settings.check()
    lock = prepare(f.folders)
    budget_service = BudgetService(
        lambda: DurableLedger.open(f.folders.ledger, lambda: settings.config.caps, clock=day)
    )
    await budget_service.open()
    assert budget_service.books is not None
    supervisor = Supervisor(f.folders, epochs.advance(f.folders), Credentials(), settings, budget_service, clocks)
    running = asyncio.create_task(supervisor.run(None, lock))
    try:
        await asyncio.to_thread(wait_for, "the socket to answer", partial(_answers, f))
        yield budget_service.books
    finally:
        await asyncio.to_thread(f.stop)
        await running
        await budget_service.close()
        os.close(lock)


def _answers(f: Fleet) -> bool:
    with contextlib.suppress(Unreachable):
        return f.supervisor_pid() > 0
    return False
