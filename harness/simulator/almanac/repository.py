"""``python -m harness.simulator.almanac.repository REPO``: the long demo's repository, with its plan and its
tests, as a real git repository.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from itertools import groupby
from pathlib import Path

from harness.simulator.almanac.features import FEATURES, PHASES, Feature
from harness.simulator.demo import git

PLAN = "prd.json"
SOAK = "tools/soak.py"
_README = """# Almanac

Small functions that one looks up: lengths, masses, temperatures, the calendar, words, numbers. `prd.json` says what is
to be written, the tests say what it gives. `python3 -m unittest -q` runs all of them.
"""
_SOAK = '''"""Loads the whole almanac again and again for a few seconds, and says how many rounds that were."""

import importlib
import sys
import time

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
end = time.monotonic() + seconds
rounds = 0
while time.monotonic() < end:
    for name in %r:
        importlib.import_module(f"almanac.{name}")
    rounds += 1
    if rounds %% 20000 == 0:
        print(f"round {rounds}", flush=True)
print(f"soak passed: {rounds} rounds", flush=True)
'''


def plan_text() -> str:
    """The plan as Ralph's form has it."""
    stories = [
        {
            "id": feature.id,
            "title": f"almanac.{feature.module}.{feature.name}",
            "description": f"{feature.name} gives {feature.does}.",
            "acceptanceCriteria": [f"Run `{feature.check}` - exits with code 0"],
            "priority": at,
            "phase": feature.module,
            "passes": False,
            "notes": "",
        }
        for at, feature in enumerate(FEATURES, 1)
    ]
    return json.dumps({"project": "Almanac", "branchName": "ralph/almanac", "userStories": stories}, indent=2) + "\n"


def test_text(module: str, features: list[Feature]) -> str:
    """The tests of one module: a class for each function, so that each feature is decided alone."""
    classes = [
        f"class {feature.name.title().replace('_', '')}(unittest.TestCase):\n    def test(self):\n"
        + "".join(
            f"        self.assertEqual({module}.{feature.name}({given}), {result})\n" for given, result in feature.cases
        )
        for feature in features
    ]
    return "\n\n".join(["import unittest\n\nfrom almanac import " + module + "\n", *classes])


def make(repo: Path) -> None:
    """Create it. Raises OSError when a folder cannot be made, CalledProcessError when git fails."""
    for folder in ("almanac", "tests", "tools"):
        (repo / folder).mkdir(parents=True)
    files = {"README.md": _README, PLAN: plan_text(), SOAK: _SOAK % (PHASES,), "tests/__init__.py": ""}
    files["almanac/__init__.py"] = '"""What one looks up."""\n'
    for module, features in groupby(FEATURES, key=lambda feature: feature.module):
        files[f"almanac/{module}.py"] = f'"""{module.capitalize()}."""\n'
        files[f"tests/test_{module}.py"] = test_text(module, list(features))
    for path, text in files.items():
        (repo / path).write_text(text, "utf-8")
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "user.name", "Watchfloor demo")
    git(repo, "config", "user.email", "demo@watchfloor.invalid")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "Say what the almanac shall hold")


def main() -> int:
    """Exit codes: 0 made, 2 could not."""
    parser = argparse.ArgumentParser(prog="python -m harness.simulator.almanac.repository", description=make.__doc__)
    parser.add_argument("repo", type=Path)
    parser.add_argument("remote", type=Path, nargs="?", help="not made: nothing is pushed")
    try:
        make(parser.parse_args().repo.absolute())
    except subprocess.CalledProcessError as exc:
        print(f"git failed: {exc.stderr.decode('utf-8', 'replace').strip()}", file=sys.stderr)
        return 2
    except OSError as exc:
        print(f"cannot make the almanac's repository: {exc}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
