"""What a person has done to the files of an ended session, kept apart from what its calls changed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harness.keeper.loop.requests import TakeState
from harness.supervisor.base.errors import LinkLost, OpError
from harness.supervisor.fleet.session import Session
from harness.supervisor.sessions.keepers import Keepers

BY_YOU = "after you committed"
"""Label of a kept state: what differs from the one before it is no call's."""
_BEFORE = "before you committed"


@asynccontextmanager
async def apart(session: Session, keepers: Keepers) -> AsyncIterator[None]:
    """What changes inside is the person's. Its states are kept where that can be had; nothing fails without them."""
    await keepers.take_up(session)
    await _keep(session, _BEFORE)
    try:
        yield
    finally:
        await _keep(session, BY_YOU)


async def _keep(session: Session, label: str) -> None:
    with contextlib.suppress(OpError, LinkLost):
        await session.keeper().ask(TakeState(label, full=True), None)
