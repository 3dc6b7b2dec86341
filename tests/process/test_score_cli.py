"""The score of real sessions, as the command line shows it, while they run and when they have ended."""

from __future__ import annotations

import hashlib

import pytest

from tests.fleetlib import fleet, play, wait_for

pytestmark = pytest.mark.sandbox


def test_the_score_of_a_run_and_what_it_made() -> None:
    with fleet() as f:
        write = ("write_file", {"path": "made.txt", "content": "made\n"})
        commit = ("shell", {"script": "git rm -q src/a.txt; git add -A; git commit -qm made"})
        sid = f.launch(play("Done.", [write], [commit], "Done."), checks=("test -e made.txt",), name="maker")
        f.wait_state(sid, "done")
        wait_for("its branch is published", lambda: f.json("score", sid)[0]["artifacts"]["count"] == 2)
        f.wait_event(sid, "checkpoint.created")
        f.wait_event(sid, "lease.ended")  # the log has ended: its seconds go on no more
        (one,) = f.json("score", sid)
        assert (one["outcome"], one["verified"], one["steps"], one["calls"]) == ("done", True, 4, 2)
        assert (one["claims"], one["false_claims"]) == (2, 1)
        assert (one["failures"], one["recovered"]) == (1, 1)
        assert (one["points"], one["criteria"], one["passed"]) == (1.0, 1, 1)
        assert one["phases"] == [{"name": "checks", "points": 1.0, "of": 1}]
        assert one["nano_per_criterion"] == one["nano"] > 0
        made, gone = one["artifacts"]["files"]
        assert (made["path"], made["how"], made["sha256"]) == ("made.txt", "A", hashlib.sha256(b"made\n").hexdigest())
        assert (gone["path"], gone["how"], gone["sha256"]) == ("src/a.txt", "D", "")
        (other,) = f.json("score")
        assert {**other, "artifacts": one["artifacts"]} == one, "counted on, not anew, and the same"
        told = f.run("score", "maker").stdout
        assert "maker" in told
        assert "made.txt" in told
        f.run("merge", sid)
        f.run("rm", sid)
        for name in (sid, "maker"):
            (kept,) = f.json("score", name)
            assert kept["artifacts"] is None, "its work is where it was merged"
            assert {**kept, "artifacts": one["artifacts"], "seconds": one["seconds"]} == one
        assert f.run("score", "nobody", check=False).returncode == 4
