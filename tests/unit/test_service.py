"""The texts that start a fleet with the machine: nothing secret in them, and every path taken literally."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from app.service import Service, Unfit, cron_line, has_line, unit_text, with_line, without_line


def made(
    state: str = "/home/u/.local/state/watchfloor", own: bool = True, python: str = "/opt/py/bin/python"
) -> Service:
    env = {
        "WATCHFLOOR_STATE": state,
        "WATCHFLOOR_RUNTIME": f"{state}/run",
        "WATCHFLOOR_CONFIG": "/home/u/.config/watchfloor",
    }
    return Service(
        (python, "-P", "-s", "-m", "harness.supervisor.guardian"),
        env,
        Path(state),
        Path(f"{state}/supervisor.log"),
        own,
    )


def test_the_unit_keeps_keepers_and_holds_no_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret-in-the-shell")
    text = unit_text(made())
    assert 'ExecStart="/opt/py/bin/python" "-P" "-s" "-m" "harness.supervisor.guardian"\n' in text
    assert 'Environment="WATCHFLOOR_STATE=/home/u/.local/state/watchfloor"\n' in text
    assert "KillMode=process\n" in text, "stopping the unit must not end the sessions' keepers"
    assert "WantedBy=default.target\n" in text
    assert "RestartPreventExitStatus=3 4\n" in text
    assert "sk-" not in text
    assert "API_KEY" not in text


def test_odd_paths_are_taken_literally() -> None:
    s = made('/srv/50% of "it"/a b\\c', python="/opt/$HOME/py")
    text = unit_text(s)
    assert 'Environment="WATCHFLOOR_STATE=/srv/50%% of \\"it\\"/a b\\\\c"\n' in text
    assert '"/opt/$$HOME/py"' in text
    line = cron_line(s)
    assert "50\\% of" in line
    assert "\n" not in line


def test_a_path_that_ends_the_line_is_refused() -> None:
    for broken in ("/srv/a\nExecStart=/bin/evil", "/srv/\x1b[31m"):
        with pytest.raises(Unfit):
            unit_text(made(broken))
        with pytest.raises(Unfit):
            cron_line(made(broken))


def test_the_shell_reads_the_cron_line_as_meant(tmp_path: Path) -> None:
    """What cron would run, by a real shell: every folder arrives as it is."""
    state = tmp_path / "it's 50% a $HOME `x`"
    state.mkdir()
    env = {"WATCHFLOOR_STATE": str(state)}
    s = Service(("sh", "-c", 'printf %s "$WATCHFLOOR_STATE"'), env, state, state / "log", True)
    command = cron_line(s).removeprefix("@reboot ").replace("\\%", "%")
    subprocess.run(["sh", "-c", command], check=True)
    assert (state / "log").read_text() == str(state)


def test_each_fleet_has_a_unit_and_a_line_of_its_own() -> None:
    one = made()
    two = made("/srv/other", own=False)
    assert one.unit == "watchfloor.service"
    assert two.unit not in ("watchfloor.service", made("/srv/third", own=False).unit)
    table = "MAILTO=me\n0 5 * * * backup # nightly"
    both = with_line(with_line(table, one), two)
    assert has_line(both, one)
    assert has_line(both, two)
    assert both.count("@reboot") == 2
    assert with_line(both, one).count("@reboot") == 2, "installing twice leaves one line"
    assert without_line(without_line(both, one), two).rstrip("\n") == table
    assert not has_line(table, one)


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "watchfloor.service"
    unit.write_text(unit_text(made(str(tmp_path / "50% odd dir"), python=shutil.which("true") or "/bin/true")))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--user", "--man=no", str(unit)], capture_output=True, text=True
    )
    assert "watchfloor.service" not in done.stderr, done.stderr
