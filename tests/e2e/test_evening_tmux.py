"""One evening in a real tmux, by keys and command lines alone: launch five, leave, come back, read, decide, review,
merge.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.events import types as t
from tests.e2e.terminal import have_tmux
from tests.evening import story
from tests.evening.scenarios.evening import BRANCH
from tests.evening.terminal import Terminal
from tests.fleetlib import COMMAND, fleet, git

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.sandbox,
    pytest.mark.skipif(not have_tmux(), reason="tmux is not installed"),
    pytest.mark.timeout(400),
]


@pytest.mark.parametrize("size", [(80, 24)])
def test_an_evening_with_five_agents(size: tuple[int, int]) -> None:
    moments: list[str] = []
    with fleet(config=story.CONFIG, simulator_args=("--scenarios", str(story.SCENARIOS))) as f:
        repo = story.small_library(f.root)
        remote = story.with_origin(repo)
        env = f.env | {"PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}", "HOME": str(f.root)}
        it = Terminal(f.root, size, env, repo, lambda caption, _: moments.append(caption))
        try:
            story.play(it)
        finally:
            it.close()
        rows = {row["name"]: row for row in f.json("ls")}
        assert {name: rows[name]["state"] for name in story.NAMES} == dict.fromkeys(story.NAMES, "done") | {
            "survey": "running"
        }
        assert (repo / "tests" / "test_pickled_keys.py").read_text(), "the merge has brought the file"
        assert "changelog" in git(remote, "log", "-1", "--format=%s", f"refs/heads/{BRANCH}")
        decided = {
            name: [r.body.decision for r in f.records(rows[name]["sid"]) if isinstance(r.body, t.ApprovalDecided)]
            for name in ("docs", "marker", "faster")
        }
        assert decided == {"docs": ["allow"], "marker": ["answer"], "faster": ["deny"]}
        assert f.violations() == []
    assert len(moments) == len(set(moments))
