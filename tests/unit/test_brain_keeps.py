"""What is put on record with a reply while the log moves: a call runs under the name that the next look finds it by."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from harness.agents.accounts import Accounts
from harness.agents.agent_context import BLOB_FROM, AgentContext
from harness.agents.errors import Conflict
from harness.agents.journal import Journal
from harness.brain.keeping import keep
from harness.brain.view import View
from harness.events import message_parts
from harness.events import types as t
from harness.projections import apply


class Moving(Journal):
    """A log to which somebody else adds ``beside`` records while a payload waits for room on the disk."""

    def __init__(self, folder: Path, beside: int) -> None:
        super().__init__(folder)
        self.state.seq = 10
        self.beside = beside
        self.kept: list[tuple[int, t.Body]] = []

    def put_blob(self, data: bytes, media: str) -> t.BlobRef:
        self.state.seq += self.beside
        self.beside = 0
        return t.BlobRef("0" * 64, len(data), media)

    def append(self, bodies: Sequence[t.Body], *, expect: int | None = None, cls: str = "A") -> int:
        if expect not in (None, self.state.seq):
            raise Conflict("conflict", "the log has moved")
        for body in bodies:
            self.state.seq += 1
            self.kept.append((self.state.seq, body))
        return self.state.seq


def at_work() -> View:
    """What a brain knows of a session that has just begun."""
    view = View()
    intent = t.SessionIntent(name="n", goal="g", repo="/r", branch="b", worktree="/w", model="x", checks=[])
    for seq, body in enumerate((intent, t.SessionCreated(base="0" * 40, worktree="/w", branch="b"))):
        record = t.Record(seq, "2026-11-21T03:00:00.000Z", "test", 0, body)
        apply.advance(view.state, record)
        view.take(record, lambda ref: b"")
    return view


@pytest.mark.parametrize("beside", [0, 1, 3])
@pytest.mark.parametrize("size", [10, BLOB_FROM * 2])
def test_a_call_is_named_by_its_reply_or_not_on_record_yet(tmp_path: Path, beside: int, size: int) -> None:
    log = Moving(tmp_path, beside)
    view = at_work()
    parts = [message_parts.Call("toolu_1", "exec", {"argv": ["send", "y" * size]})]
    reply = t.ModelMessage(
        request_id="r", message_id="m", model="x", stop=message_parts.CALLS, usage=t.Usage(), cost_nano=0, parts=parts
    )
    keep(AgentContext(log, cast(Accounts, SimpleNamespace(alive=True))), view, [reply], parts)
    (at,) = [seq for seq, body in log.kept if isinstance(body, t.ModelMessage)]
    calls = [body.call_id for _, body in log.kept if isinstance(body, t.ToolProposed)]
    moved = beside > 0 and size > BLOB_FROM
    assert calls == ([] if moved else [f"c{at}.0"])
