"""The demo: headless it proves itself; its other verbs say clearly what they did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.demo import fleet
from app.demo.fleet import PARTS


def command(tmp_path: Path, *args: str, timeout: float = 115) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ANTHROPIC_", "WATCHFLOOR_"))}
    env |= {"WATCHFLOOR_STATE": str(tmp_path / "state"), "WATCHFLOOR_CONFIG": str(tmp_path / "config")}
    argv = [sys.executable, "-P", "-s", "-m", "app.main", "demo", *args]
    return subprocess.run(argv, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=timeout)


@pytest.mark.fence
def test_headless(tmp_path: Path) -> None:
    done = command(tmp_path, "--headless")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert set(lines) == {part.name for part in PARTS}
    assert all(line["ok"] for line in lines.values())
    assert {name: line["state"] for name, line in lines.items()} == {"features": "done", "repair": "done", "changelog": "done", "survey": "stopped"}
    assert lines["changelog"]["pushed"] is True
    survey = lines["survey"]
    assert 0 < survey["billed_usd"] <= survey["spent_usd"] <= survey["cap_usd"]
    assert survey["requests"] >= 4, "it did some work before its cap"
    for name in ("features", "repair", "changelog"):
        assert lines[name]["verified"]
        assert lines[name]["spent_usd"] == pytest.approx(lines[name]["billed_usd"])
    assert list((tmp_path / "watchfloor-demo").iterdir()) == [], "the folder stays behind"
    assert not fleet.Demo(tmp_path).processes(), "processes stay behind"


def test_not_a_terminal(tmp_path: Path) -> None:
    done = command(tmp_path)
    assert done.returncode == 2
    assert "--headless" in done.stderr
    assert not (tmp_path / "watchfloor-demo").exists() or not list((tmp_path / "watchfloor-demo").iterdir())


def test_stop_without_a_demo(tmp_path: Path) -> None:
    done = command(tmp_path, "--stop")
    assert (done.returncode, done.stdout) == (0, "no demo is there\n")


def test_stop_ends_the_simulator_and_removes_the_folder(tmp_path: Path) -> None:
    demo = fleet.fresh(tmp_path / "watchfloor-demo")
    demo.build()
    demo.start_simulator(0)
    assert demo.processes()
    assert "sk-demo-" not in Path(f"/proc/{demo._simulator()['pid']}/cmdline").read_text()
    assert str(demo.folders.config / "key") in demo.folders.config_file.read_text()
    done = command(tmp_path, "--stop")
    assert done.returncode == 0, done.stderr
    assert not demo.root.exists()
    assert not demo.processes()
