"""From done to a remote in a real tmux, with a real agent, git and supervisor: read, comment, send back, read again,
publish.
"""

from __future__ import annotations

import os

import pytest

from harness.events import types as t
from tests.e2e.terminal import have_tmux, in_tmux
from tests.fleetlib import Fleet, fleet, git, play

pytestmark = [
    pytest.mark.tmux,
    pytest.mark.sandbox,
    pytest.mark.timeout(300),
    pytest.mark.skipif(not have_tmux(), reason="tmux is not installed"),
]
FIRST = [("shell", {"script": "echo first > new.txt; git add -A; git commit -qm 'Add new.txt'"})]
THEN = [("shell", {"script": "echo better > new.txt; git add -A; git commit -qm 'Say it better'"})]
ADDRESS = "https://github.com/acme/shop/pull/7"


def forge_program(f: Fleet) -> str:
    """A PATH with a ``gh`` that says that it opened a request: there is no forge here."""
    folder = f.root / "bin"
    folder.mkdir()
    (folder / "gh").write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {f.root}/told\necho {ADDRESS}\n")
    (folder / "gh").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_work_is_read_sent_back_and_published_where_its_preview_says(width: int, height: int) -> None:
    with fleet() as f:
        repo = f.repository()
        bare = f.root / "bare.git"
        other = f.root / "other.git"
        for remote in (bare, other):
            git(f.root, "clone", "-q", "--bare", str(repo), str(remote))
        git(repo, "remote", "add", "origin", str(bare))
        sid = f.launch(play(FIRST, "Done.", THEN, "Better."), checks=("test -e new.txt",), name="maker")
        f.wait_state(sid, "done")
        branch = f.row(sid)["branch"]
        with in_tmux(f.root, width, height, PATH=forge_program(f)) as tmux:
            tmux.see("TO REVIEW", "maker")
            tmux.keys("d")
            tmux.see("Review maker", "0 of 1 viewed", "first")
            tmux.keys("/")
            tmux.see("Search in")
            tmux.type("first")
            tmux.keys("Enter", "c")
            tmux.see("Comment on")
            tmux.type("say it better")
            tmux.keys("C-y")
            tmux.see("1 comment to send back")
            tmux.keys("s")
            tmux.see("Send back to", "say it better")
            tmux.keys("C-y")
            f.wait_event_count(sid, "session.ended", 2)
            tmux.keys("Escape")
            tmux.see("TO REVIEW")
            tmux.keys("d")
            tmux.see("Review maker", "better")

            tmux.keys("P")
            tmux.see("Publish maker", "names no repository")
            tmux.keys("Tab", "Tab", "Tab")
            tmux.type("acme/shop")
            tmux.see(f"would push 2 commits to {branch}")
            git(repo, "remote", "set-url", "origin", str(other))
            tmux.keys("C-y")
            tmux.see("nothing was pushed", "other.git")
            assert branch not in git(bare, "branch") + git(other, "branch")
            tmux.see(f"would push 2 commits to {branch}", "other.git)")
            tmux.keys("C-y")
            tmux.see(ADDRESS)
        assert git(other, "log", "--format=%s", f"main..{branch}").splitlines() == ["Say it better", "Add new.txt"]
        assert branch not in git(bare, "branch")
        assert "acme/shop" in (f.root / "told").read_text()
        sent = [r.body.text for r in f.records(sid) if isinstance(r.body, t.UserMessage) and r.body.origin == "human"]
        assert "new.txt, line 1" in sent[-1]
        assert "say it better" in sent[-1]
        assert f.violations() == []
