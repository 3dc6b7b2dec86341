"""What happened while a person was away, as the command line tells it of real sessions."""

from __future__ import annotations

import pytest

from app.client import last_seen
from tests.fleetlib import fleet, play

pytestmark = pytest.mark.sandbox


def test_a_briefing_and_the_receipts_of_a_run() -> None:
    with fleet() as f:
        write = ("write_file", {"path": "made.txt", "content": "made\n"})
        commit = ("shell", {"script": "git add -A; git commit -m 'Make it'"})
        away = ("shell", {"script": "cat made.txt", "access": "unsandboxed"})
        goal = play([write], [commit], [away], "Done.")
        sid = f.launch(goal, checks=("test -e made.txt",), name="maker")
        f.wait_state(sid, "waiting")
        assert last_seen.last(f.folders.state) == ""

        (first,) = f.json("brief")
        assert first["since"] == f.json("ls")[0]["created"], "nothing was before the first session"
        asking = f.run("brief").stdout
        assert "needs" in asking
        assert "commit" in asking
        assert "Make it" in asking
        mark = last_seen.last(f.folders.state)
        assert mark, "the next one begins here"
        (request,) = f.json("receipts", sid)
        assert (request["outcome"], [step["stage"] for step in request["steps"]]) == ("open", ["asked"])

        f.approve(request["approval_id"])
        f.wait_state(sid, "done")
        (told,) = f.json("brief")
        assert last_seen.last(f.folders.state) == mark, "a script has not looked for anybody"
        assert told["since"] == mark
        (one,) = told["sessions"]
        assert (one["sid"], one["state"], one["needs"]) == (sid, "done", [])
        by = {line["kind"]: line for line in one["lines"]}
        assert "allowed by you, on the command line" in by["decided"]["text"]
        assert "test -e made.txt" in by["passed"]["text"]
        records = {r["seq"]: r["type"] for r in f.json("logs", sid)}
        assert (records[by["decided"]["seq"]], records[by["passed"]["seq"]]) == ("approval.decided", "check.verdict")
        assert told["fleet"]["decided"] == one["figures"]["decided"] == 1
        (whole,) = f.json("brief", "maker", "--since", "1d")
        assert whole["fleet"]["spent_nano"] == f.json("score", sid)[0]["nano"] > 0, "one bill"
        assert "**decided**" in f.run("brief", "--md").stdout

        (receipt,) = f.json("receipts", request["approval_id"])
        stages = [step["stage"] for step in receipt["steps"]]
        assert stages == ["asked", "decided", "taken", "effect", "delivered"], "the command line names no card"
        assert [records[step["seq"]] for step in receipt["steps"]] == [
            "approval.requested",
            "approval.decided",
            "tool.started",
            "tool.ended",
            "model.request",
        ]
        assert (receipt["decision"], receipt["outcome"], receipt["by"]) == ("allow", "effect", "cli")
        assert "delivered" in f.run("receipts", request["approval_id"]).stdout
        assert f.run("brief", "nobody", check=False).returncode == 4
        assert f.run("brief", "--since", "soon", check=False).returncode == 2
        f.run("brief")
        assert "nothing new: maker" in f.run("brief").stdout
