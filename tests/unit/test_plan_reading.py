"""What a session wrote into its notes is asked for when they changed, and again when nobody could tell."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from app.screens.plan_reading import PlanReading
from harness.protocol.client import Unreachable
from tests.unit.test_back import row
from widgets import plan_view
from widgets.plan_view import PlanFile

T = TypeVar("T")
PATCH = (
    "diff --git a/CHANGELOG.md b/CHANGELOG.md\n--- a/CHANGELOG.md\n+++ b/CHANGELOG.md\n@@ -1 +1,2 @@\n+- mine\n # C\n"
)


class Supervisor:
    """Says the difference, or is away."""

    def __init__(self) -> None:
        self.away = False
        self.asked = 0

    async def reply(self, kind: type[T], op: str, **arguments: object) -> T:
        self.asked += 1
        if self.away:
            raise Unreachable("away")
        return msgspec.convert({"files": [], "patch": PATCH, "truncated": False, "seen": ""}, kind)


def names(found: list[PlanFile] | None) -> list[str]:
    return [file.name.partition(",")[0] for file in found or []]


def test_notes_are_compared_when_they_changed_and_until_they_could_be(tmp_path: Path) -> None:
    session = msgspec.structs.replace(row("s"), worktree=str(tmp_path))
    notes = tmp_path / "CHANGELOG.md"
    notes.write_text("- mine\n# C\n")
    supervisor = Supervisor()
    reading = PlanReading()

    def look() -> list[str]:
        return names(asyncio.run(reading.look(session, supervisor)))

    supervisor.away = True
    assert look() == []
    supervisor.away = False
    assert look() == ["CHANGELOG.md"]
    assert supervisor.asked == 2
    (tmp_path / "progress.txt").write_text("more\n")
    assert look() == ["progress.txt", "CHANGELOG.md"]
    assert supervisor.asked == 2, "the notes are as they were"
    notes.unlink()
    assert look() == ["progress.txt"]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("[" * 100_000, "not valid JSON now"),
        ('{"a": ' + "[" * 900 + "]" * 900 + "}", "{"),
        ('[{"id": ' + "9" * 5000 + ', "passes": false}]', "9999"),
        ('\ufeff[{"title": "a", "passes": false}]', "a"),
    ],
    ids=["nested without an end", "nested deep", "a number without an end", "a byte order mark"],
)
def test_whatever_an_agent_writes_into_a_plan_is_shown_as_something(text: str, first: str) -> None:
    lines, _, _ = plan_view.parse("feature_list.json", text)
    assert lines[0].text.startswith(first)
