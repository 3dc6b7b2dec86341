"""Requests of every kind in a real fleet, and how long their cards are.

What has to be read before a key decides stands above the card's rule; a person reads about twenty lines in ten seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from harness.views.session_views import ApprovalView
from tests.fleetlib import Fleet, git, make_repository, play
from widgets.card.card_text import Card, card
from widgets.card.truncate import rows_of

BOUND = 20
"""Rows above the rule, unless a script or a text that is written outside has to be read whole."""
CRITICAL = 2 * BOUND
"""The same of what is critical: a command's names, and what is known of them."""
WIDTHS = (80, 120)
COMMIT = "echo {0} > {0}.txt && git add -A && git commit -q -m 'Add {0}'"
MANY = (
    "for i in $(seq 40); do for j in $(seq 5); do echo $i > f$j-$i.txt; done;"
    ' git add -A; git commit -qm "Step $i"; done'
)
WIDE = "mkdir d; for j in $(seq 120); do echo $j > d/file-$j.txt; done; git add -A; git commit -qm 'Add all files'"
OUTSIDE = "{root}/outside"
Calls = list[tuple[str, dict[str, Any]]]


@dataclass(frozen=True)
class CardCase:
    """What a session plays until it asks. ``whole``: its card shows a text that has to be read to its end."""

    turns: list[Calls | str]
    checks: tuple[str, ...] = ()
    whole: bool = False
    more: tuple[str, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


def _shell(script: str, **more: Any) -> Calls:
    return [("shell", {"script": script, **more})]


def _exec(*argv: str, **more: Any) -> Calls:
    return [("exec", {"argv": list(argv), "why": "The task needs it.", **more})]


def _push(script: str, *argv: str) -> CardCase:
    return CardCase([_shell(script), _exec("git", "push", "origin", *argv), "Done."])


def _network(script: str, **more: Any) -> CardCase:
    return CardCase([_shell(script, access="network", why="To fetch what it needs.", **more), "Done."])


def _unsandboxed(call: Calls, *, whole: bool = False) -> CardCase:
    return CardCase([call, "Done."], whole=whole)


def _protected(script: str, check: str, files: Mapping[str, str]) -> CardCase:
    return CardCase([_shell(script), "Done.", "Done.", "Done."], checks=(check,), files=files)


def _lines(count: int) -> str:
    return "\n".join(f"echo step {n} of the deployment >> /tmp/log" for n in range(count))


UNITTEST = "python3 -m unittest -q tests.test_app"
SMALL = "import unittest\n\n\nclass T(unittest.TestCase):\n" + "".join(
    f"    def test_{n}(self):\n        self.assertEqual({n}, {n})\n\n" for n in range(60)
)
REWRITE = "sed -i 's/assertEqual/assertTrue/' tests/test_app.py"
TESTED = {"tests/__init__.py": "", "tests/test_app.py": SMALL}
OPTIONS = [f"answer number {n}, which takes some words to say" for n in range(1, 8)]
QUESTION = "There are two callers of the old API.\n\n" + "They differ in what they expect of it. " * 20 + "\n\nWhich?"

CASES: dict[str, CardCase] = {
    "push: a new branch": _push(COMMIT.format("one"), "HEAD:refs/heads/one"),
    "push: a branch that is there": _push(COMMIT.format("two"), "HEAD:refs/heads/main"),
    "push: by force": _push("git commit -q --amend -m 'Begin anew'", "--force", "HEAD:refs/heads/main"),
    "push: a tag": _push(COMMIT.format("three"), "HEAD:refs/tags/v1"),
    "push: several branches": _push(COMMIT.format("four"), *(f"HEAD:refs/heads/many-{n}" for n in range(6))),
    "push: forty commits": _push(MANY, "HEAD:refs/heads/forty"),
    "push: a commit of 120 files": _push(WIDE, "HEAD:refs/heads/wide"),
    "push: forty commits go": _push("git commit -q --amend -m 'Begin anew'", "--force", "HEAD:refs/heads/long"),
    "write outside: a new file": CardCase(
        [[("write_file", {"path": f"{OUTSIDE}/new.txt", "content": "one\ntwo\n"})], "Done."]
    ),
    "write outside: over a file": CardCase(
        [[("write_file", {"path": f"{OUTSIDE}/notes.txt", "content": "one\ntwo\n"})], "Done."]
    ),
    "write outside: 300 lines": CardCase(
        [[("write_file", {"path": f"{OUTSIDE}/long.txt", "content": _lines(300)})], "Done."], whole=True
    ),
    "read outside": CardCase([[("read_file", {"path": f"{OUTSIDE}/notes.txt"})], "Done."]),
    "delete: thirty files": _unsandboxed(
        _exec("rm", *(f"{OUTSIDE}/many/{n}.txt" for n in range(30)), access="unsandboxed")
    ),
    "delete: folders": _unsandboxed(
        _exec("rm", "-rf", *(f"{OUTSIDE}/tree/{n}" for n in range(12)), access="unsandboxed")
    ),
    "network: any host": _network("curl -sS https://example.org/data.json -o data.json"),
    "network: one host": _network("pip download thing", hosts=["pypi.org"]),
    "network: eight hosts": _network("make fetch", hosts=[f"mirror-{n}.example.org" for n in range(8)]),
    "network: a script of 30 lines": CardCase([_shell(_lines(30), access="network"), "Done."], whole=True),
    "unsandboxed: a command": _unsandboxed(_exec("systemctl", "--user", "restart", "thing", access="unsandboxed")),
    "unsandboxed: a script of one line": _unsandboxed(_shell("systemctl --user restart thing", access="unsandboxed")),
    "unsandboxed: a script of 30 lines": _unsandboxed(_shell(_lines(30), access="unsandboxed"), whole=True),
    "unsandboxed: a script of 300 lines": _unsandboxed(_shell(_lines(300), access="unsandboxed"), whole=True),
    "protected: a word of a test": _protected("sed -i '8s/1/2/' tests/test_app.py", UNITTEST, TESTED),
    "protected: a test file rewritten": _protected(REWRITE, UNITTEST, TESTED),
    "protected: a test file gone": _protected("git rm -q tests/test_app.py", UNITTEST, TESTED),
    "protected: twelve test files": _protected(
        "sed -i 's/assertEqual/assertTrue/' tests/test_*.py",
        "python3 -m unittest -q",
        {"tests/__init__.py": "", **{f"tests/test_{n}.py": SMALL for n in range(12)}},
    ),
    "protected: a new conftest.py": _protected(
        'for i in $(seq 150); do echo "x$i = $i" >> conftest.py; done', "python3 -m pytest -q", TESTED
    ),
    "protected: the check's own script": _protected(
        'for i in $(seq 90); do echo "echo $i" >> check.sh; done',
        "sh ./check.sh",
        {"check.sh": "set -e\npython3 -m unittest -q tests.test_app\n", **TESTED},
    ),
    "protected: package.json and its lock": _protected(
        'for i in $(seq 90); do echo "// $i" >> package.json; echo "// $i" >> package-lock.json; done',
        "npm test",
        {"package.json": '{"scripts": {"test": "node test.js"}}\n', "package-lock.json": "{}\n", "test.js": "1\n"},
    ),
    "a question": CardCase([[("ask_person", {"question": "Should the old API stay?"})], "Done."]),
    "a question with seven answers": CardCase(
        [[("ask_person", {"question": QUESTION, "options": OPTIONS})], "Done."], whole=True
    ),
    "a question at the end": CardCase(["I see two ways. Which one do you want me to take?", "Done."]),
    "a cap": CardCase([*[_shell("true")] * 4, "Done."], more=("--cap-calls", "2")),
    "calls that go in circles": CardCase([*[_shell("false")] * 12, "Done."]),
}


def launch(f: Fleet, name: str) -> str:
    """The session of one case; its id."""
    case = CASES[name]
    repo = _repository(f, name, case)
    turns = msgspec.convert(
        msgspec.json.decode(msgspec.json.encode(case.turns).replace(b"{root}", str(f.root).encode())), list[Any]
    )
    turns = [turn if isinstance(turn, str) else [tuple(call) for call in turn] for turn in turns]
    return f.launch(play(*turns), repo=repo, checks=case.checks, name=f"case-{list(CASES).index(name)}", more=case.more)


def _repository(f: Fleet, name: str, case: CardCase) -> Path:
    folder = f.root / f"r{list(CASES).index(name)}"
    repo = make_repository(folder / "repo", {"README.md": "# Thing\n", **case.files})
    if name.startswith("push"):
        git(folder, "init", "-q", "--bare", "remote.git")
        git(repo, "remote", "add", "origin", str(folder / "remote.git"))
        git(repo, "push", "-q", "origin", "HEAD:refs/heads/main", "HEAD:refs/heads/old")
        if name.endswith("go"):
            git(repo, "switch", "-q", "-c", "long")
            for n in range(40):
                git(repo, "commit", "-q", "--allow-empty", "-m", f"Work of others {n}")
            git(repo, "push", "-q", "origin", "long")
            git(repo, "switch", "-q", "main")
    return repo


def outside(f: Fleet) -> None:
    """The files outside every worktree that the cases are about."""
    folder = f.root / "outside"
    (folder / "many").mkdir(parents=True)
    (folder / "notes.txt").write_text("".join(f"line {n}\n" for n in range(10)))
    for n in range(30):
        (folder / f"many/{n}.txt").write_text("x")
    for n in range(12):
        (folder / f"tree/{n}").mkdir(parents=True)
        for m in range(9):
            (folder / f"tree/{n}/{m}.txt").write_text("x")


@dataclass(frozen=True)
class Length:
    """Rows of one card at one width: above the rule, to be seen before anything is approved, and in all."""

    above: int
    needed: int
    whole: int


def length(view: ApprovalView, width: int) -> Length:
    made: Card = card(view)
    lines, needed = made.lines(unfolded=True)
    return Length(rows_of(made.above, width), rows_of(lines[:needed], width), rows_of(lines, width))


def measured(f: Fleet) -> Iterator[tuple[str, CardCase, ApprovalView]]:
    """Every case with its request, all sessions at work at once."""
    outside(f)
    sids = {name: launch(f, name) for name in CASES}
    for name, sid in sids.items():
        yield name, CASES[name], msgspec.convert(f.approval(sid), ApprovalView)
