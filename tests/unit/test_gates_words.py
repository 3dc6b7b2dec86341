"""What a row says of a session that stands in line at its endpoint's gate."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from harness.supervisor.endpoints import endpoint_gate as g
from harness.supervisor.endpoints.credentials import Credentials
from harness.supervisor.endpoints.endpoint_gates import Gates, Key, boottime


def test_nobody_is_told_that_an_endpoint_answers_again_which_never_failed() -> None:
    """A session stands in line of an open gate while its brain is being forked, and that may take long."""
    key, gate = Key("https://model.example", "k"), g.Gate()
    fleet: Any = SimpleNamespace(sessions={}, observe=lambda _: None)
    gates = Gates(Credentials(), lambda: cast(Any, None), fleet, lambda: None)
    session: Any = SimpleNamespace(sid="a", state=SimpleNamespace(intent=SimpleNamespace(model="m")))
    gates._gates[key], gates._at["a"] = gate, key
    assert isinstance(gate.may("a", boottime()), g.Go)
    assert gates.words(session) == ""
    gate.told("b", g.Outcome("overloaded"), boottime(), 0.5)
    assert "down since" in gates.words(session)
    gate.may("b", boottime())
    gate.told("c", g.Outcome("ok"), boottime(), 0.5)
    gate._open(boottime(), 0.5)
    assert gates.words(session) == "its turn comes in a moment: the endpoint answers again"
