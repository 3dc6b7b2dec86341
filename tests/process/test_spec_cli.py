"""`watchfloor spec check` as a process: words, JSON and exit codes; no supervisor is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = str(Path(sys.executable).with_name("watchfloor"))
GOOD = b'[{"description": "Sums", "steps": ["Run `make test` - exits with code 0"], "passes": false}]'
BAD = b'[{"description": "Sums", "steps": ["It works \\u001b[2J"], "passes": false}]'


def spec(tmp: Path, data: bytes | None, *more: str) -> subprocess.CompletedProcess[str]:
    path = tmp / "feature_list.json"
    if data is not None:
        path.write_bytes(data)
    folders = {f"WATCHFLOOR_{name}": str(tmp / name.lower()) for name in ("STATE", "RUNTIME", "CONFIG")}
    return subprocess.run(
        [COMMAND, "spec", "check", str(path), *more],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp), **folders},
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_what_a_machine_decides_is_good(tmp_path: Path) -> None:
    done = spec(tmp_path, GOOD)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "1 of 1 criteria are decided by a command, a file or a request\n"
    found = json.loads(spec(tmp_path, GOOD, "--json").stdout)
    assert (found["decided"], found["command"], found["where"]) == (True, "make test", "F-001")


def test_what_none_decides_is_named_with_a_better_wording(tmp_path: Path) -> None:
    done = spec(tmp_path, BAD)
    assert done.returncode == 1
    assert "better: " in done.stdout
    assert done.stdout.count("Run `CMD`") == 1
    assert "\x1b" not in done.stdout
    found = spec(tmp_path, BAD, "--json")
    assert found.returncode == 1
    assert json.loads(found.stdout)["decided"] is False


@pytest.mark.parametrize("data", [None, b"[1]", b"\xff"])
def test_what_is_no_specification_is_wrong_usage(tmp_path: Path, data: bytes | None) -> None:
    done = spec(tmp_path, data)
    assert done.returncode == 2
    assert "feature_list.json" in done.stderr


def test_a_text_without_criteria_is_not_enough(tmp_path: Path) -> None:
    done = spec(tmp_path, b"Make it good.\n")
    assert done.returncode == 1
    assert "no criterion" in done.stdout


def test_both_tasks_of_a_text_are_seen_and_what_looks_like_a_criterion_is_not_passed_over(tmp_path: Path) -> None:
    shapes = Path(__file__).parents[1] / "data" / "plans" / "shapes"
    done = spec(tmp_path, (shapes / "tasks-bold-labels.md").read_bytes())
    assert done.returncode == 1
    assert "line 7 (T-001 Sign in): Works correctly and is fast" in done.stdout
    assert "1 of 2 criteria are decided" in done.stdout
    left = spec(tmp_path, b"# Tasks\n- [ ] Paint it\n# Acceptance\n- Run `make` - exits with code 0\n")
    assert left.returncode == 1
    assert "not read: line 2 looks like a criterion" in left.stdout
    assert "read 1 of 2 list items" in left.stdout
    plain = spec(tmp_path, b"# Why\n- It rusts\n# Acceptance\n- Run `make` - exits with code 0\n")
    assert plain.returncode == 0
    assert "read 1 of 2 list items" in plain.stdout
