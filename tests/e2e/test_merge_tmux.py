"""From done to merged in a real tmux, with a real agent, git and supervisor: what stands in the way is said in place,
a conflict goes back to its agent, and what was settled is merged.
"""

from __future__ import annotations

import pytest

from tests.e2e.terminal import have_tmux, in_tmux
from tests.fleetlib import fleet, git, play, wait_for

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.sandbox,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not have_tmux(), reason="tmux is not installed"),
]
WORK = [("shell", {"script": "echo theirs > notes.txt; git commit -qam 'Write theirs'"})]
SETTLE = [("shell", {"script": "git merge main; echo both > notes.txt; git commit -qam 'Keep both'"})]


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_a_conflict_is_settled_by_its_agent_and_merged(width: int, height: int) -> None:
    with fleet() as f:
        repo = f.repository()
        sid = f.launch(play(WORK, "Done.", SETTLE, "Settled."), checks=("test -s notes.txt",), name="maker")
        f.wait_state(sid, "done")
        (repo / "notes.txt").write_text("mine\n")
        with in_tmux(f.root, width, height) as tmux:
            tmux.see("TO REVIEW", "maker")
            tmux.keys("M")
            tmux.see("Merge maker", "Not now", "notes.txt")
            tmux.keys("C-y")
            wait_for("the refusal below the fields", lambda: tmux.screen.count("stash") == 2)
            assert (repo / "notes.txt").read_text() == "mine\n"
            git(repo, "commit", "-qam", "Write mine")
            before = git(repo, "rev-parse", "main")
            tmux.keys("C-y")
            tmux.see("both sides changed notes.txt", "and its agent settles it")
            assert git(repo, "rev-parse", "main") == before
            tmux.type("resolve")
            tmux.keys("C-y")
            f.wait_event_count(sid, "session.ended", 2)
            f.wait_state(sid, "done")
            tmux.see("TO REVIEW")
            tmux.keys("M")
            tmux.see("Merge maker", "2 commits")
            tmux.keys("C-y")
            wait_for("the merge", lambda: f.row(sid).get("merged") == "main")
            tmux.see("merged into main")
        assert (repo / "notes.txt").read_text() == "both\n"
        assert git(repo, "status", "--porcelain") == ""
        assert git(repo, "log", "--format=%s", "-1") == "Keep both\n"
        assert f.violations() == []
