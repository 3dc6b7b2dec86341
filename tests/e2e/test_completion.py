"""Completion in a real shell: verbs, options, and the sessions that are there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fleetlib import HOLD, fleet, play

SHELLS = ("bash", "zsh", "fish", "tcsh")


def completed(script: Path, words: list[str], env: dict[str, str]) -> list[str]:
    """What bash offers for the last word."""
    asked = (
        f"source {script}; COMP_WORDS=({' '.join(words)} ''); COMP_CWORD={len(words)}; _shtab_watchfloor;"
        ' printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", asked], env=env, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_bash_offers_verbs_and_the_sessions_that_are_there(tmp_path: Path) -> None:
    with fleet() as f:
        script = tmp_path / "watchfloor"
        script.write_text(f.run("completion", "bash").stdout)
        program = tmp_path / "bin" / "watchfloor"
        program.parent.mkdir()
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m app.main "$@"\n')
        program.chmod(0o755)
        env = f.env | {"PATH": f"{program.parent}:{os.environ['PATH']}"}
        sid = f.launch(play([HOLD], "Done."), name="night-run")
        odd = f.launch(play([HOLD], "Done."), name="$(touch gone) b")
        assert {"launch", "logs", "approve"} <= set(completed(script, ["watchfloor"], env))
        offered = completed(script, ["watchfloor", "logs"], env)
        assert {sid, odd, "night-run"} <= set(offered)
        assert not any("gone" in word for word in offered), "a name that a shell would act on is not offered"


@pytest.mark.parametrize("shell", SHELLS)
def test_each_shell_has_a_script_that_asks_for_sessions(shell: str) -> None:
    command = [sys.executable, "-P", "-m", "app.main", "completion", shell]
    script = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "watchfloor ls --names" in script
    assert "watchfloor approvals --names" in script
    assert "watchfloor ls --archived --names" in script, "purge takes what is archived, and nothing else"


def test_zsh_asks_when_a_name_is_wanted_and_not_when_the_script_is_loaded() -> None:
    command = [sys.executable, "-P", "-m", "app.main", "completion", "zsh"]
    script = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    asking = [line for line in script.splitlines() if "$(watchfloor" in line]
    assert len(asking) == 3
    assert all(line.startswith("  compadd ") for line in asking), "inside a function, and in no table of words"
