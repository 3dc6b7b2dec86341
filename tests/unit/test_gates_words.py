"""What a row says of a session that stands in line at its endpoint's gate."""

from __future__ import annotations

from harness.agents.supervisor_requests import AttemptOutcome
from harness.domain.calls.attempt import AttemptKind
from harness.supervisor.endpoints import endpoint_gate as g
from harness.supervisor.endpoints.endpoint_gate import Key
from harness.supervisor.endpoints.gate_words import boottime, in_line


def test_nobody_is_told_that_an_endpoint_answers_again_which_never_failed() -> None:
    """A session stands in line of an open gate while its brain is being forked, and that may take long."""
    key = Key("https://model.example", "k")
    gate = g.Gate()
    now = boottime()
    assert isinstance(gate.may("a", now), g.Go)
    assert in_line(key, gate, "a", "", now) == ""
    gate.told("b", AttemptOutcome(AttemptKind.OVERLOADED), now, 0.5)
    assert "down since" in in_line(key, gate, "a", "", now)
    assert in_line(key, gate, "who does not stand there", "", now) == ""
    now = gate.next_try
    assert gate.may("a", now) == g.Go(probe=True)
    gate.sent("a", now)
    for sid in ("a", "b"):
        gate.may(sid, now)
    gate.told("a", AttemptOutcome(AttemptKind.OK), now, 0.5)
    assert in_line(key, gate, "b", "", now) == "its turn comes in a moment: the endpoint answers again"


def test_a_label_leads_back_to_its_gate() -> None:
    key = Key("https://model.example", "k", "m")
    assert Key.labelled(key.label) == key
    assert Key.labelled("https://model.example|k") is None
