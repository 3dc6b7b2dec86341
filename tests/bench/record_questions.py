"""``python -m tests.bench.record_questions STATE [--speed S]``: ten sessions of ordinary work at a model's pace, and
a person who answers a while later. Leaves their state folder in STATE for ``python -m tests.bench.questions``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from harness.simulator import demo
from tests.fleetlib import Fleet, fleet, play
from tests.process import everyday

Turn: TypeAlias = list[tuple[str, dict[str, Any]]]
TURNS = 55
"""Turns of a session: at twenty seconds of thinking each, twenty minutes and more."""
ANSWERS_AFTER_S = 30.0
_STRIDE = 41
"""Commands of one kind stand beside each other in the corpus and are tried as a row by nobody."""
_LOOK_S = 5.0
_LONGEST_S = 45 * 60


def _run(*argv: str, **more: Any) -> Turn:
    return [("exec", {"argv": list(argv), **more})]


def _push(branch: str) -> Turn:
    return _run("git", "push", "origin", f"HEAD:refs/heads/{branch}", access="network", why="for review")


def _commit(message: str) -> list[Turn]:
    return [[("shell", {"script": f"git add -A && git commit -q --allow-empty -m {message!r}"})]]


READ: list[Turn] = [
    [("list_files", {}), ("read_file", {"path": "README.md"})],
    [("read_file", {"path": "tally/split.py"}), ("read_file", {"path": "tests/test_split.py"})],
    _run("python3", "-m", "unittest", "-q"),
    [("search", {"pattern": "def split", "path": "tally"})],
    _run("git", "log", "--oneline", "-5"),
]
NOTE: list[Turn] = [
    [("write_file", {"path": "docs/NOTES.md", "content": "# Notes\n\nThe remainder is dropped.\n"})],
    [("edit_file", {"path": "docs/NOTES.md", "old": "dropped", "new": "dealt out"})],
    _run("git", "diff", "--stat"),
]
WHEEL = _run("pip", "install", "-q", "wheel", access="network", hosts=["pypi.org", "files.pythonhosted.org"])
ASK: Turn = [("ask_person", {"question": "Is the remainder dealt to the first people?", "options": ["yes", "no"]})]


def _filled(turns: list[Turn], rest: Iterable[Turn], last: Iterable[Turn] = ()) -> list[Turn | str]:
    """These turns, everyday commands up to the length of a session, and what it ends with."""
    ends = list(last)
    more = iter(rest)
    body = [*turns, *(next(more) for _ in range(TURNS - len(turns) - len(ends))), *ends]
    return [*body, "Done as far as it goes."]


def sessions() -> dict[str, str]:
    """The goals of a day, by name: two publish once, one twice, one installs a package, one asks; five ask nothing."""
    scripts: list[Turn] = [[("shell", {"script": script})] for script in everyday.scripts()]
    every = TURNS // 2

    def some(number: int) -> list[Turn]:
        at = number * every
        return [scripts[(at + i * _STRIDE) % len(scripts)] for i in range(TURNS)]

    tests = [turn for turn in READ for _ in range(2)]
    return {
        "repair": play(*_filled([*READ, *NOTE], some(0), [*_commit("Deal it out"), _push("repair")])),
        "feature": play(*_filled([*tests, *NOTE], some(1), _commit("Add it"))),
        "docs": play(*_filled([*READ, *NOTE], some(2), [*_commit("Say it"), _push("docs")])),
        "survey": play(*_filled(tests, some(3))),
        "upgrade": play(*_filled([*READ, WHEEL], some(4), _commit("Upgrade"))),
        "unclear": play(*_filled([*READ, ASK, *NOTE], some(5), _commit("As you said"))),
        "review": play(
            *_filled([*READ, *_commit("First"), _push("review"), *NOTE], some(6), [*_commit("Second"), _push("review")])
        ),
        "cleanup": play(*_filled([], some(7), _commit("Clean up"))),
        "build": play(*_filled([], some(8))),
        "history": play(*_filled(READ, some(9))),
    }


def _answer(f: Fleet, seen: dict[str, float]) -> None:
    """What a person does who looks now and then: everything that has waited for a while."""
    for asked in f.json("approvals"):
        name = str(asked["approval_id"])
        if time.monotonic() - seen.setdefault(name, time.monotonic()) < ANSWERS_AFTER_S:
            continue
        if "allow" in asked["options"]:
            f.approve(name, check=False)
        elif "answer" in asked["options"]:
            f.run("answer", name, "yes", check=False)


def record(target: Path, speed: float) -> None:
    """Play the day. Raises AssertionError when it does not end."""
    with fleet(simulator_args=("--speed", str(speed))) as f:
        demo.make(f.root / "repo", f.root / "remote")
        goals = sessions()
        sids = [f.launch(goal, name=name) for name, goal in goals.items()]
        seen: dict[str, float] = {}
        ends = time.monotonic() + _LONGEST_S
        while not all(f.row(sid).get("ended") for sid in sids):
            assert time.monotonic() < ends, json.dumps([f.row(sid)["state"] for sid in sids])
            time.sleep(_LOOK_S)
            _answer(f, seen)
        f.stop()
        shutil.copytree(f.folders.state / "sessions", target / "sessions", ignore=shutil.ignore_patterns("*.sock"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("state", type=Path)
    parser.add_argument("--speed", type=float, default=20.0, help="seconds of thinking a turn")
    given = parser.parse_args()
    record(given.state, given.speed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
