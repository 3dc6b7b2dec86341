"""Limits from the configuration to the model's eyes: a bomb in one session of a real fleet, and what the doctor says of
this machine.
"""

from __future__ import annotations

import pytest

from harness.events import types as t
from tests.fleetlib import fleet, play, wait_for

pytestmark = pytest.mark.sandbox
LIMITS = '[limits]\nmemory = "256MiB"\nprocesses = 64\ndisk = "64MiB"\ndisk_files = false\n'
FORKS = "import os, signal\ntry:\n    for _ in range(10):\n        os.fork()\nexcept OSError:\n    pass\nsignal.pause()"


def test_a_bomb_ends_with_its_call_and_the_agent_goes_on() -> None:
    with fleet(config=LIMITS) as f:
        bomb = f.launch(
            play([("exec", {"argv": ["python3", "-c", FORKS]})], [("exec", {"argv": ["echo", "still here"]})], "Done."),
            name="bomb",
        )
        calm = f.launch(play(*[[("exec", {"argv": ["echo", str(i)]})] for i in range(5)], "Done."), name="calm")
        f.wait_state(bomb, "done")
        f.wait_state(calm, "done")
        first, second = [r.body for r in f.records(bomb) if isinstance(r.body, t.ToolEnded)]
        assert (first.status, first.limit) == ("error", "processes")
        assert "64 is the limit (a human can raise it: processes under [limits] in config.toml)" in first.preview
        assert (second.status, second.preview) == ("ok", "still here\n")
        assert [r.body.status for r in f.records(calm) if isinstance(r.body, t.ToolEnded)] == ["ok"] * 5
        assert "came to the limit of processes" in f.run("logs", bomb).stdout
        assert f.violations() == []


def test_the_doctor_says_which_limits_hold_here() -> None:
    with fleet(config=LIMITS) as f:
        found = {line["what"]: line for line in f.json("doctor")}
        assert found["limit: memory"]["detail"].startswith("256 MiB a call")
        assert found["limit: processes"]["detail"].startswith("64 processes and threads a call")
        assert found["limit: disk"]["level"] == "ok"
        assert found["limit: files"]["level"] == "warning"
        assert "not limited here" in found["limit: files"]["detail"]
        f.folders.config_file.write_text(f.folders.config_file.read_text().replace("processes = 64", "processes = 99"))
        wait_for(
            "the doctor to know the new limit",
            lambda: "99 processes and threads" in f.run("doctor", check=False).stdout,
        )
