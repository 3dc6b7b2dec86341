"""An agent asks a person through its tool: one durable question, no brain meanwhile, one answer delivered once."""

from __future__ import annotations

from typing import Any

import pytest

from harness.events import types as t
from tests.fleetlib import Fleet, fleet, kill, play, wait_for

pytestmark = pytest.mark.sandbox
QUESTION = "There are two callers.\n\nShould the old API stay?"


def ask(**more: Any) -> list[tuple[str, dict[str, Any]]]:
    return [("ask_person", {"question": QUESTION, **more})]


def bodies(f: Fleet, sid: str, kind: type[t.Body]) -> list[Any]:
    return [r.body for r in f.records(sid) if isinstance(r.body, kind)]


def parked(f: Fleet, sid: str) -> bool:
    s = f.state(sid)
    return bool(s.approvals) and s.lease is None and s.parked is not None


def test_a_question_survives_every_death_and_is_answered_once() -> None:
    with fleet() as f:
        sid = f.launch(play(ask(options=["keep it", "break it now"]), "As you say."), name="asks")
        other = f.launch(play(ask(), ask(), "I decided."), name="declined")
        asked = f.approval(sid)
        assert (asked["kind"], asked["options"], asked["detail"]["choices"]) == (
            "question",
            ["answer", "deny", "stop"],
            ["keep it", "break it now"],
        )
        wait_for("its brain left", lambda: parked(f, sid))
        assert f.row(sid)["asks"] == "question"
        card = f.run("approvals", asked["approval_id"]).stdout
        for words in ("There are two callers.", "  2  break it now", " N   (N is 1 to 2)"):
            assert words in card

        kill(f.keeper_pid(sid))
        kill(f.supervisor_pid())
        f.run("ls")
        wait_for("it waits again", lambda: f.row_or_start(sid)["state"] == "waiting")
        assert [a["approval_id"] for a in f.json("approvals", "--json") if a["sid"] == sid] == [asked["approval_id"]]

        assert "choose 1 to 2" in f.run("answer", asked["approval_id"], "--option", "3", check=False).stderr
        assert f.run("answer", asked["approval_id"], check=False).returncode == 2
        assert "choose 1 to 2" in f.run("answer", asked["approval_id"], "3", check=False).stderr
        assert "chosen: 2, break it now" in f.run("answer", asked["approval_id"], "2").stdout
        again = f.run("answer", asked["approval_id"], "--option", "1", check=False)
        assert again.returncode != 0
        assert "not open" in again.stderr or "decided" in again.stderr
        f.wait_state(sid, "done")
        assert [b.preview for b in bodies(f, sid, t.ToolEnded)] == ["break it now"]
        assert len(bodies(f, sid, t.ApprovalRequested)) == 1
        (decided,) = bodies(f, sid, t.ApprovalDecided)
        assert (decided.decision, decided.message, decided.value) == ("answer", "break it now", 2)
        receipt = f.json("receipts", sid, "--json")[0]
        assert receipt["outcome"] == "effect"

        first = f.approval(other)
        f.run("deny", first["approval_id"], "not now")
        assert f.approval(other)["approval_id"] != first["approval_id"]
        f.run("say", other, "the second time I do answer")
        f.wait_state(other, "done")
        assert [(b.status, b.preview.split(":")[0]) for b in bodies(f, other, t.ToolEnded)] == [
            ("denied", "The person does not answer this"),
            ("ok", "the second time I do answer"),
        ]
        assert [b.origin for b in bodies(f, other, t.UserMessage)] == ["goal"]
        assert f.violations() == []
