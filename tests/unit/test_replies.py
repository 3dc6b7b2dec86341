"""A reply is read once, as the one record that it is; one that is not is refused as any other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from app.client.feed import Feed
from harness.protocol.client import SupervisorError
from harness.protocol.paths import Folders
from harness.views.cost_views import Costs, SessionPaid
from harness.views.session_views import FleetView


class Answering(Feed):
    """A feed whose supervisor says this."""

    def __init__(self, said: dict[str, Any]) -> None:
        super().__init__(Folders(Path("/s"), Path("/r"), Path("/c")), lambda: None)
        self.said = said

    async def call(self, op: str, **arguments: Any) -> dict[str, Any]:
        return self.said


async def test_a_reply_is_what_was_sent() -> None:
    costs = Costs(fleet=FleetView(), sessions=[SessionPaid(sid="s", name="n", spent_nano=3, cache_hit=0.5)])
    said = {"id": 1, "ok": True, **msgspec.to_builtins(costs)}
    assert await Answering(said).reply(Costs, "costs") == costs


@pytest.mark.parametrize("said", [{}, {"fleet": {}, "sessions": 3}, {"fleet": {}, "sessions": [{"sid": 1}]}])
async def test_one_that_is_none_is_refused_and_named(said: dict[str, Any]) -> None:
    with pytest.raises(SupervisorError, match="'costs' cannot be read"):
        await Answering(said).reply(Costs, "costs")
