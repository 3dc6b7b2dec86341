"""The story: five agents are launched, the person leaves, comes back, reads what happened, decides, reviews and merges.

Everything is done by keys and command lines in one terminal; `play` only knows what a person sees.
"""

from __future__ import annotations

import shlex
import time
from functools import partial
from pathlib import Path

from tests.evening.scenarios.evening import BRANCH, TESTS
from tests.evening.terminal import Terminal
from tests.fleetlib import git, make_repository, wait_for

SCENARIOS = Path(__file__).parent / "scenarios"
NAMES = ("pickle", "docs", "marker", "faster", "survey")
BRIEF_AFTER_S = 5
"""Absence after which the screen opens with what happened; hours in an ordinary configuration."""
CONFIG = f'\n[ui]\nbrief_after = "{BRIEF_AFTER_S}s"\n'
_LAUNCHES = (
    ("pickle", "Test that the keys of the cache survive pickling.", TESTS),
    ("docs", f"Open the changelog of the next release and push it to {BRANCH} for review.", ""),
    ("marker", "Should this package ship py.typed? Find out, and do it.", TESTS),
    ("faster", "Make typed keys cheaper, as far as the tests allow.", TESTS),
    ("survey", "Make a survey of the package, part by part. Take your time.", ""),
)
_FILES = {
    "CHANGELOG.rst": "v1.0.0 (2026-04-20)\n===================\n\n- Start.\n",
    "README.rst": "A library\n=========\n",
    "src/cachetools/__init__.py": "",
    "src/cachetools/keys.py": """class _HashedTuple(tuple):
    pass


def hashkey(*args, **kwargs):
    return _HashedTuple(args + tuple(sorted(kwargs.items())))


def typedkey(*args, **kwargs):
    if kwargs:
        key = _HashedTuple(args + tuple(sorted(kwargs.items())))
    else:
        key = _HashedTuple(args)
    key += tuple(type(v) for v in args)
    return key
""",
    "tests/__init__.py": "",
    "tests/test_keys.py": """import unittest

import cachetools.keys


class KeysTest(unittest.TestCase):
    def test_typedkey(self, key=cachetools.keys.typedkey):
        self.assertEqual(key(1, 2), key(1, 2))
        # typed keys compare unequal
        self.assertNotEqual(key(1, 2), key(1.0, 2.0))
""",
}


def small_library(root: Path) -> Path:
    """A repository that the five can work on, with files of the same names as the one of the recording."""
    return make_repository(root / "cachetools", _FILES)


def with_origin(repo: Path) -> Path:
    """Give the repository a bare remote of its own beside it; the remote."""
    remote = repo.parent / "origin.git"
    git(repo.parent, "clone", "-q", "--bare", str(repo), str(remote))
    if "origin" in git(repo, "remote").split():
        git(repo, "remote", "remove", "origin")
    git(repo, "remote", "add", "origin", str(remote))
    return remote


def play(it: Terminal) -> None:
    """All of the evening. Raises AssertionError where the screen does not say what it must."""
    _launch(it)
    _leave_and_come_back(it)
    _decide(it)
    _review_and_merge(it)
    it.write("git log --oneline --no-decorate -2")
    it.see("Test that keys survive pickling")
    it.look("merged: the commit is on your branch")


def _launch(it: Terminal) -> None:
    for name, goal, check in _LAUNCHES:
        checks = f" --check {shlex.quote(check)}" if check else " --no-criterion"
        it.write(f"watchfloor launch --name {name} --goal {shlex.quote(goal)}{checks}")
        it.see(f"launched {name}")
        it.at_prompt()
    it.look("Five agents, launched from the shell")
    it.write("watchfloor")
    it.see("NEEDS YOU", "survey")
    it.look("All five at work, each in a worktree of its own, in a sandbox")


def _leave_and_come_back(it: Terminal) -> None:
    it.press("q")
    it.at_prompt()
    it.look("q leaves the screen; all five go on")
    wait_for("three of them needing a person, and one done", lambda: _waiting(it) == 3, timeout=120)
    time.sleep(BRIEF_AFTER_S)
    it.write("clear; watchfloor")
    it.see("Since you looked")
    it.look("Back again: what happened since, from the logs alone")
    it.press("Escape")
    it.see("TO REVIEW 1", "NEEDS YOU 3")
    it.look("Three need you, one is to review, one is at work")


def _decide(it: Terminal) -> None:
    it.press("2")
    it.see("faster asks what decides", "ctrl+y accept")
    it.look("The queue, what matters most first: one agent has weakened a test")
    it.press("r")
    it.see("reason")
    it.type("The tests stay as they are.")
    it.look("No, and why; the agent reads it")
    it.press("Enter")
    it.see("WILL RUN", "push")
    it.look("A push: what it brings, and what will run")
    _read_card(it)
    it.press("C-y")
    it.see("marker asks you")
    it.press("w")
    it.see("Answer marker")
    it.type("1")
    it.look("A question is answered where it is seen")
    it.press("Enter")
    it.see("enter again answers: No")
    it.press("Enter")
    it.see("Nothing needs you")
    it.look("Nothing needs you any more")
    it.press("Escape")


def _read_card(it: Terminal) -> None:
    """To the card's end, and until it can be approved."""
    unread = "▼ more below"
    while it.see_one("● ctrl+y approves exactly this, once", unread) == unread:
        it.press("Space")


def _review_and_merge(it: Terminal) -> None:
    it.see("TO REVIEW")
    while (chosen := _chosen(it)) != "pickle":
        it.press("j")
        wait_for("the next session being chosen", partial(_other_than, it, chosen))
    it.press("d")
    it.see("tests/test_pickled", "0 of 1 viewed")
    it.look("d: the work of one of them, hunk by hunk")
    it.press("Escape")
    it.see("TO REVIEW")
    it.press("q")
    it.at_prompt()
    it.write("clear; watchfloor merge pickle")
    it.see("with the work of pickle")
    it.at_prompt()


def _chosen(it: Terminal) -> str:
    """The session that keys act on; empty while none is on screen."""
    line = next((line for line in it.screen.splitlines() if line.startswith("▌")), "")
    return next((name for name in NAMES if name in line), "")


def _other_than(it: Terminal, before: str) -> bool:
    return _chosen(it) not in ("", before)


def _waiting(it: Terminal) -> int:
    """How many requests are open, as the command line says."""
    it.write("clear; watchfloor approvals --json | wc -l")
    it.at_prompt()
    return int(it.screen.split()[-3])
