"""A reply that takes long shows on the row how far it has come, and its evidence with it."""

from __future__ import annotations

import json
import urllib.request

from tests.fleetlib import HOLD, fleet, play, wait_for

SLOW = [{"kind": "trickle", "after_bytes": 700, "rate": 40}]


def test_the_row_says_how_far_a_slow_reply_has_come() -> None:
    with fleet() as f:
        body = json.dumps(SLOW).encode()
        asked = urllib.request.Request(f"{f.base_url}/_sim/faults", body, {"content-type": "application/json"})
        urllib.request.urlopen(asked, timeout=10).close()
        sid = f.launch(play("word " * 2000))
        row = wait_for("the row says how far it is", lambda: r if "KiB so far" in (r := f.row(sid))["detail"] else None)
        assert row["detail"].startswith("asking claude-haiku-5-5: replying, ")
        assert "bytes of the reply came, the newest " in row["evidence"]
        f.run("stop", sid)
        f.wait_state(sid, "stopped")
        assert "KiB so far" not in f.row(sid)["detail"]


def test_the_row_says_which_command_runs() -> None:
    with fleet() as f:
        sid = f.launch(play([HOLD], "Done."))
        f.wait_event(sid, "tool.started")
        row = wait_for("the command on the row", lambda: r if "sh -c 'while " in (r := f.row(sid))["detail"] else None)
        assert row["state"] == "running"
        f.release(sid)
        assert f.wait_state(sid, "done")["detail"] != row["detail"]
