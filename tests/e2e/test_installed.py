"""Beside other programs: packages of theirs that have the names of ours are never run in place of ours."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from app.cli.base import exits
from tests.fleetlib import COMMAND, fleet


@pytest.mark.parametrize("name", ["widgets", "harness"])
@pytest.mark.parametrize("file", ["__init__.py", "readme.txt"])
def test_a_package_of_the_same_name_is_named_and_not_run(tmp_path: Path, name: str, file: str) -> None:
    (tmp_path / name).mkdir()
    (tmp_path / name / file).write_text("raise SystemExit(99)\n")
    with fleet() as f:
        env = f.env | {"PYTHONPATH": str(tmp_path)}
        done = subprocess.run([COMMAND, "ls"], env=env, capture_output=True, text=True, timeout=60, check=False)
        if file == "__init__.py":
            assert done.returncode == exits.REFUSED
            assert f"'{tmp_path}/{name}'" in done.stderr
        else:
            assert done.returncode == exits.OK, done.stderr
