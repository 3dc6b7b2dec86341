"""Which calls and jobs of a session must not meet in its worktree."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from harness.domain.actions.action import Action
from harness.keeper.calls.exclusive import of_jobs, of_open_jobs
from harness.policy.build import build_action
from harness.policy.facts import Facts

OPEN = {"argv": ["make"], "access": "unsandboxed"}


def act(tool: str, given: dict[str, Any], snapshot: str = "s1.aa") -> Action:
    facts = Facts("/w", "wf/x", "a" * 40, "/home/me", identity={"dev": 1, "ino": 2}, snapshot=snapshot)
    return build_action("s1", "c1.0", "toolu_1", tool, given, facts)


@pytest.mark.parametrize("access", ["unsandboxed", "network"])
def test_what_leaves_the_sandbox_as_it_was_shown_begins_beside_no_job(access: str) -> None:
    asked = act("exec", {"argv": ["make"], "access": access})
    assert "j1, j2" in of_jobs(asked, ["j1", "j2"])
    assert of_jobs(asked, []) == ""
    assert of_jobs(act("exec", {"argv": ["make"], "access": access}, snapshot=""), ["j1"]) == "", "nobody was shown it"


def test_what_stays_in_the_sandbox_begins_beside_jobs_whoever_is_asked() -> None:
    """Else a policy that asks about everything would keep an agent from ending its own job."""
    for tool, given in (("job", {"action": "cancel", "job": "j1"}), ("exec", {"argv": ["make"]})):
        asked = act(tool, given)
        shown = replace(asked, pre={**asked.world, "snapshot": "s1.aa"})
        assert of_jobs(shown, ["j1"]) == ""


def test_no_file_is_changed_beside_a_job_outside_the_sandbox() -> None:
    jobs = {"j1": act("exec", {**OPEN, "job": True}), "j2": act("exec", {"argv": ["make"], "job": True})}
    assert "j1" in of_open_jobs(act("exec", {"argv": ["make"]}), jobs)
    assert "j2" not in of_open_jobs(act("write_file", {"path": "a", "content": ""}), jobs)
    assert of_open_jobs(act("read_file", {"path": "a"}), jobs) == ""
    assert of_open_jobs(act("exec", {"argv": ["make"]}), {"j2": jobs["j2"]}) == ""
    allowed = {"j1": act("exec", {**OPEN, "job": True}, snapshot="")}
    assert of_open_jobs(act("exec", {"argv": ["make"]}), allowed) == "", "a policy of yours let it out, unseen"
