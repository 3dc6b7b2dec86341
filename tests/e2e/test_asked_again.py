"""A request that was decided on and whose world then changed is asked anew, and says what changed: on paper, on the
screen, after a restart.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from harness.events import types as t
from tests.e2e.terminal import Tmux, in_tmux, keys_handled
from tests.e2e.test_queue_tmux import read_to_the_end
from tests.fleetlib import Fleet, fleet, git, kill, make_repository, play, wait_for
from widgets.card.card_text import CHANGED

pytestmark = [pytest.mark.sandbox, pytest.mark.tmux, pytest.mark.timeout(240)]


def asked_again(f: Fleet, sid: str, before: str) -> dict[str, Any]:
    return wait_for(
        "a second request",
        lambda: next((a for a in f.json("approvals") if a["sid"] == sid and a["approval_id"] != before), None),
    )


def test_the_difference_is_on_the_card() -> None:
    with fleet() as f:
        repo = make_repository(f.root / "repo", {"deploy.sh": "#!/bin/sh\necho fine\n"})
        os.chmod(repo / "deploy.sh", 0o755)
        git(repo, "commit", "-q", "-am", "executable")
        sid = f.launch(play([("exec", {"argv": ["./deploy.sh"], "access": "unsandboxed"})], "Done."), repo=repo)
        first = f.approval(sid)
        assert CHANGED not in f.run("approvals", first["approval_id"]).stdout
        (Path(f.row(sid)["worktree"]) / "deploy.sh").write_text("#!/bin/sh\necho other\n")
        f.approve(first["approval_id"], check=False)
        f.wait_event(sid, "approval.stale")
        kill(f.supervisor_pid())  # its guardian starts another one, which must ask as the first one would have
        second = asked_again(f, sid, first["approval_id"])
        stale = next(r.body for r in f.records(sid) if isinstance(r.body, t.ApprovalStale))
        card = f.run("approvals", second["approval_id"]).stdout
        assert card.index(CHANGED) < card.index(stale.difference[0]) < card.index("WILL RUN"), (
            "what changed stands before what runs"
        )
        assert "deploy.sh" in stale.difference[0]
        kill(f.supervisor_pid())
        again = wait_for(
            "the request after another restart",
            lambda: f.run("approvals", second["approval_id"], check=False).stdout or None,
        )
        assert again == card
        with in_tmux(f.root, 140, 45) as screen:
            screen.see("1 open request")
            screen.keys("2")
            screen.see(CHANGED, stale.difference[0][:40])


def test_a_key_for_what_was_painted_never_decides_what_was_asked_anew() -> None:
    with fleet() as f:
        repo = make_repository(f.root / "repo", {"deploy.sh": "#!/bin/sh\necho fine > ran.txt\n"})
        os.chmod(repo / "deploy.sh", 0o755)
        git(repo, "commit", "-q", "-am", "executable")
        sid = f.launch(play([("exec", {"argv": ["./deploy.sh"], "access": "network"})], "Done."), repo=repo)
        first = f.approval(sid)
        worktree = Path(f.row(sid)["worktree"])
        with in_tmux(f.root, 120, 40) as screen:
            read_to_the_end(screen)
            handled = keys_handled(f.root)
            program = screen_of(screen)
            os.kill(program, signal.SIGSTOP)
            try:
                (worktree / "deploy.sh").write_text("#!/bin/sh\necho other > ran.txt\n")
                f.approve(first["approval_id"], check=False)
                second = asked_again(f, sid, first["approval_id"])
                assert second["action_hash"] != first["action_hash"]
                screen.run("send-keys", "C-y")
            finally:
                os.kill(program, signal.SIGCONT)
            wait_for("the key was dealt with", lambda: keys_handled(f.root) > handled)
            screen.see(CHANGED)
            decided = [r.body.approval_id for r in f.records(sid) if isinstance(r.body, t.ApprovalDecided)]
            assert decided == [first["approval_id"]]
            assert [a["approval_id"] for a in f.json("approvals")] == [second["approval_id"]]
            assert not (worktree / "ran.txt").exists()
            read_to_the_end(screen, opened=True)
            screen.keys("C-y")
            f.wait_state(sid, "done")
            assert (worktree / "ran.txt").read_text() == "other\n", "a key for what is on screen now decides it"
        assert f.violations() == []


def screen_of(tmux: Tmux) -> int:
    """The process that draws: the one child of the pane's shell."""
    shell = tmux.run("display-message", "-p", "#{pane_pid}").strip()
    (child,) = Path(f"/proc/{shell}/task/{shell}/children").read_text().split()
    return int(child)
