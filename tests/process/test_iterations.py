"""A plan worked through one task after the other on a real fleet, with what surrounds the tasks: a project's rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.events import types as t
from tests.fleetlib import Fleet, fleet, make_repository, play

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def write(path: str, content: str = "done\n") -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


def bodies(f: Fleet, sid: str, kind: type[t.Body]) -> list[Any]:
    return [r.body for r in f.records(sid) if isinstance(r.body, kind)]


def test_rules_of_the_project_nearest_to_the_edit_are_read_before_the_next_request(f: Fleet) -> None:
    files = {"AGENTS.md": "Root.\n", "a/b/AGENTS.md": "Near.\n", "a/c/AGENTS.md": "Sibling.\n"}
    repo = make_repository(f.root / "ruled", files)
    sid = f.launch(play([write("a/b/x.txt")], "Done."), repo=repo)
    f.wait_state(sid, "done", "failed", "waiting")
    records = f.records(sid)
    read = {r.body.path: (r.seq, r.body.text) for r in records if isinstance(r.body, t.RulesRead)}
    asked = [r.seq for r in records if isinstance(r.body, t.ModelRequest)]
    assert {path: text for path, (_, text) in read.items()} == {"AGENTS.md": "Root.\n", "a/b/AGENTS.md": "Near.\n"}
    assert read["AGENTS.md"][0] < asked[0] < read["a/b/AGENTS.md"][0] < asked[1]
    assert f.violations() == []
