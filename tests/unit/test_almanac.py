"""The long demo's work: what its model writes passes the tests of its repository, and its first tries do not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.plan.files import formats
from harness.simulator.almanac.features import FEATURES, PHASES
from harness.simulator.almanac.repository import make
from harness.simulator.scenarios import almanac


def holds(code: str, name: str, cases: tuple[tuple[str, str], ...]) -> bool:
    names: dict[str, object] = {}
    exec(code, names)
    try:
        return all(eval(f"{name}({given})", names) == eval(result) for given, result in cases)
    except ValueError:
        return False


@pytest.mark.parametrize("feature", FEATURES, ids=lambda feature: feature.name)
def test_what_is_written_is_right_and_a_first_try_is_not(feature: almanac.Feature) -> None:
    assert holds(feature.code, feature.name, feature.cases)
    assert not feature.first_try or not holds(feature.first_try, feature.name, feature.cases)


def test_its_plan_is_one_that_a_machine_decides(tmp_path: Path) -> None:
    make(tmp_path / "repo")
    data = (tmp_path / "repo" / "prd.json").read_bytes()
    plan = formats.read(data)
    assert len(plan.entries) == len(FEATURES) >= 40
    assert {entry.phase for entry in plan.entries} == set(PHASES)
    assert not plan.passed
    for feature, story in zip(FEATURES, json.loads(data)["userStories"], strict=True):
        assert feature.check in story["acceptanceCriteria"][0]


def test_what_the_model_writes_passes_the_repositorys_tests(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    make(repo)
    run = [sys.executable, "-m", "unittest", "-q"]
    assert subprocess.run(run, cwd=repo, capture_output=True, check=False).returncode != 0
    for module in PHASES:
        (repo / "almanac" / f"{module}.py").write_text(almanac.module_text(list(FEATURES), module))
    done = subprocess.run(run, cwd=repo, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
