"""The demo: headless it proves itself; its other verbs say clearly what they did."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

from app.demo import fleet
from app.demo.fleet import PARTS


def environment(tmp_path: Path) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("ANTHROPIC_", "WATCHFLOOR_"))}
    return env | {
        "WATCHFLOOR_STATE": str(tmp_path / "state"),
        "WATCHFLOOR_CONFIG": str(tmp_path / "config"),
        "TERM": "xterm-256color",
    }


COMMAND = [sys.executable, "-P", "-s", "-m", "app.main", "demo"]


def command(tmp_path: Path, *args: str, timeout: float = 115) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *args],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=timeout,
    )


@pytest.mark.sandbox
def test_headless(tmp_path: Path) -> None:
    done = command(tmp_path, "--headless")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = {line["name"]: line for line in map(json.loads, done.stdout.splitlines())}
    assert set(lines) == {part.name for part in PARTS}
    assert all(line["ok"] for line in lines.values())
    assert {name: line["state"] for name, line in lines.items()} == {
        "features": "done",
        "repair": "done",
        "changelog": "done",
        "survey": "stopped",
    }
    assert lines["changelog"]["pushed"] is True
    survey = lines["survey"]
    assert 0 < survey["billed_usd"] <= survey["spent_usd"] <= survey["cap_usd"]
    assert survey["requests"] >= 4, "it did some work before its cap"
    for name in ("features", "repair", "changelog"):
        assert lines[name]["verified"]
        assert lines[name]["spent_usd"] == pytest.approx(lines[name]["billed_usd"])
    assert list((tmp_path / "watchfloor-demo").iterdir()) == [], "the folder stays behind"
    assert not fleet.Demo(tmp_path).processes(), "processes stay behind"


@pytest.mark.long
@pytest.mark.timeout(1800)  # it gives up by itself where it stands still
def test_a_long_plan_is_done_whatever_happens_on_the_way(tmp_path: Path) -> None:
    done = command(tmp_path, "--long", "--headless", timeout=1780)
    assert done.returncode == 0, done.stdout + done.stderr
    (line,) = map(json.loads, done.stdout.splitlines())
    assert (line["state"], line["verified"], line["passed"]) == ("done", True, line["entries"])
    assert line["entries"] >= 40
    assert line["killed"] == ["brain", "supervisor", "brain"]
    assert 0 < line["billed_usd"] <= line["spent_usd"] <= line["cap_usd"]
    assert list((tmp_path / "watchfloor-demo").iterdir()) == [], "the folder stays behind"
    assert not fleet.Demo(tmp_path).processes(), "processes stay behind"


def test_coming_back_needs_a_terminal(tmp_path: Path) -> None:
    done = command(tmp_path, "--attach")
    assert done.returncode == 2
    assert "not a terminal" in done.stderr
    assert not (tmp_path / "watchfloor-demo").exists()


def test_stop_without_a_demo(tmp_path: Path) -> None:
    done = command(tmp_path, "--stop")
    assert (done.returncode, done.stdout) == (0, "no demo is there\n")


def test_stop_ends_the_simulator_and_removes_the_folder(tmp_path: Path) -> None:
    demo = fleet.fresh(tmp_path / "watchfloor-demo")
    demo.build()
    demo.start_simulator(0)
    assert demo.processes()
    assert "sk-demo-" not in Path(f"/proc/{demo.simulator()['pid']}/cmdline").read_text()
    assert str(demo.folders.config / "key") in demo.folders.config_file.read_text()
    done = command(tmp_path, "--stop")
    assert done.returncode == 0, done.stderr
    assert not demo.root.exists()
    assert not demo.processes()


def test_stop_finds_the_demo_from_within_its_own_folders(tmp_path: Path) -> None:
    """As a demo says how to reach it: by exporting the folders of it."""
    demo = fleet.fresh(tmp_path / "watchfloor-demo")
    inside = environment(tmp_path) | {
        "WATCHFLOOR_STATE": str(demo.folders.state),
        "WATCHFLOOR_CONFIG": str(demo.folders.config),
    }
    done = subprocess.run([*COMMAND, "--stop"], env=inside, capture_output=True, text=True, check=False, timeout=115)
    assert (done.returncode, done.stdout) == (0, f"stopped {demo.root}\n")
    assert not demo.root.exists()


def test_stop_names_who_still_uses_the_folder_and_keeps_it(tmp_path: Path) -> None:
    demo = fleet.fresh(tmp_path / "watchfloor-demo")
    demo.build()
    user = subprocess.Popen(["sleep", "600"], cwd=demo.root)
    try:
        done = command(tmp_path, "--stop")
        assert done.returncode != 0
        assert f"in use by {user.pid} (sleep 600): leave an open screen with q, then stop it again" in done.stderr
        assert demo.root.exists()
    finally:
        user.kill()
        user.wait()
    assert command(tmp_path, "--stop").returncode == 0
    assert not demo.root.exists()


@pytest.mark.sandbox
def test_on_a_screen_it_survives_detaching(tmp_path: Path) -> None:
    """Leave with `q`, find the agents working, come back, end it."""
    known = environment(tmp_path)
    folders = [one for one in known["PATH"].split(os.pathsep) if not (Path(one) / "watchfloor").exists()]
    env = known | {"PATH": os.pathsep.join(folders)}
    screen = pexpect.spawn(COMMAND[0], [*COMMAND[1:], "--speed", "0.2"], env=env, dimensions=(40, 120), timeout=120)
    screen.expect("changelog")
    screen.send("q")
    screen.expect("come back: watchfloor demo --attach")
    screen.expect_exact(f"so that your shell finds it: export PATH={Path(sys.executable).parent}")
    screen.expect(pexpect.EOF)
    screen.close()
    assert screen.exitstatus == 0
    (demo,) = fleet.found(tmp_path / "watchfloor-demo")
    assert {row["name"] for row in demo.watchfloor("ls")} == {part.name for part in PARTS}
    assert fleet.wait_until(lambda: any(a["session_name"] == "changelog" for a in demo.watchfloor("approvals")), 120), (
        "the push never asked"
    )
    again = pexpect.spawn(
        COMMAND[0], [*COMMAND[1:], "--attach"], env=environment(tmp_path), dimensions=(40, 120), timeout=120
    )
    again.expect("push")
    again.send("q")
    again.expect(pexpect.EOF)
    again.close()
    done = command(tmp_path, "--stop")
    assert done.returncode == 0, done.stderr
    assert not demo.root.exists()
    assert not demo.processes()


@pytest.mark.sandbox
def test_ended_early_it_leaves_nothing_behind(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--headless", "--speed", "1"],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    where = tmp_path / "watchfloor-demo"
    assert fleet.wait_until(
        lambda: any(
            d.folders.sessions.is_dir() and len(list(d.folders.sessions.iterdir())) == 4 for d in fleet.found(where)
        ),
        120,
    )
    process.terminate()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "interrupted" in said
    (demo,) = fleet.found(where)
    assert f"kept: {demo.root}" in said
    assert not demo.processes()
