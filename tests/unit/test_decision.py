"""What the policy rules and what a person decides: each word has its meaning everywhere it is shown."""

from __future__ import annotations

import json

import msgspec
import pytest

from app.screens import queue_words
from harness.domain.decision import PERMITS, Decision, Ruling
from harness.domain.text import formatting
from harness.events import types as t
from harness.views.session_views import ApprovalView


@pytest.mark.parametrize("decision", Decision)
def test_what_can_be_decided_is_said_as_something_done(decision: Decision) -> None:
    assert formatting.decided(decision) != decision.value.replace("_", " ")
    view = ApprovalView("a", "s", "one", "tool", "t", [decision], "low", "now", 1)
    assert queue_words.done(view, decision) != decision


def test_a_record_holds_the_word_itself() -> None:
    body = t.ApprovalDecided(approval_id="a", decision_id="d", decision=Decision.ALLOW_EDITED, by=t.By())
    assert json.loads(msgspec.json.encode(body))["decision"] == "allow_edited"
    assert "allow" in PERMITS, "as a record spells it"
    assert "deny" not in PERMITS
    assert [*Ruling] == ["allow", "ask", "deny"], "from the mildest on: later ones beat earlier ones"
