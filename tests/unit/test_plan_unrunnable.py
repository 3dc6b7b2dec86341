"""A check whose program this machine lacks is no failed attempt of the agent's."""

from __future__ import annotations

import pytest

from harness.agents import done, steps
from harness.checks.missing_program import missing
from harness.domain.states import ParkedFor
from harness.events import types as t


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("frobnicate -q", "sh: 1: frobnicate: not found\n"),
        ("cd src && frobnicate", "bash: line 1: frobnicate: command not found\n"),
        ("frobnicate", "zsh:1: command not found: frobnicate"),
        ("(frobnicate)", "building\n\x1b[31msh: frobnicate: not found\x1b[0m\n\n"),
        ("/opt/x/frobnicate", "sh: 1: /opt/x/frobnicate: not found"),
    ],
)
def test_a_program_that_the_machine_lacks_is_named(command: str, output: str) -> None:
    assert missing(command, 127, output).endswith("frobnicate")


@pytest.mark.parametrize(
    ("command", "code", "output"),
    [
        ("./frobnicate -q", 127, "sh: 1: ./frobnicate: not found"),
        ("bin/frobnicate", 127, "sh: 1: bin/frobnicate: not found"),
        ("sh check.sh", 127, "check.sh: 3: frobnicate: not found"),
        ("PATH=bin:$PATH frobnicate", 127, "sh: 1: frobnicate: not found"),
        (". ./env && frobnicate", 127, "sh: 1: frobnicate: not found"),
        ("frobnicate", 1, "sh: 1: frobnicate: not found"),
        ("frobnicate", 127, ""),
        ("frobnicate", 127, "sh: 1: frobnicate: not found\nwell"),
    ],
)
def test_what_the_work_itself_may_have_to_provide_is_for_the_agent(command: str, code: int, output: str) -> None:
    assert missing(command, code, output) == ""


def ended(ours: bool) -> done.Result:
    said = t.ToolEnded(call_id="c1.0", status="error", exit_code=127, preview="sh: 1: frobnicate: not found\n")
    return done.Result(said, t.CheckVerdict(call_id="c1.0", command="frobnicate", passed=False), ours=ours)


def test_a_person_is_told_and_the_round_is_not_lost() -> None:
    step = done.settle(done.Claim("Done."), done.Evidence(("frobnicate",), {"frobnicate": ended(True)}))
    assert isinstance(step, steps.Park)
    assert step.why == ParkedFor.ERROR
    assert "no program frobnicate" in step.detail


def test_it_is_run_again_when_the_person_says_so() -> None:
    step = done.settle(done.Claim("Done."), done.Evidence(("frobnicate",), {"frobnicate": ended(False)}))
    assert step == steps.Check(("frobnicate",))
