"""Every way that a message, a hint or a page of the documentation names exists: the verb, its options and their
values.
"""

from __future__ import annotations

import argparse
import ast
import functools
import re
from collections.abc import Iterator
from pathlib import Path

from app.cli.grammar import parser

ROOT = Path(__file__).parents[2]
SOURCES = [*(p for folder in ("app", "harness", "widgets") for p in sorted((ROOT / folder).rglob("*.py")))]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "Makefile",
    *sorted((ROOT / "docs").rglob("*.md")),
]
SERVICE = "watchfloor simulator"
"""What the simulator calls itself to its clients: no way to type."""
HOLE = "\0"
"""Stands for a value that is put in while the program runs."""
_NAMED = re.compile(r"(?<![\w./~-])(?:\.venv/bin/)?watchfloor (?P<rest>[a-z][^\n`\"']*)")
_NO_VERB = {"or"}
"""Small words that sentences about the program put behind its name."""


def verbs() -> dict[str, argparse.ArgumentParser]:
    built = parser.build()
    found = next(a for a in built._actions if isinstance(a, argparse._SubParsersAction))
    return dict(found.choices)


VERBS = verbs()


def texts(path: Path) -> Iterator[str]:
    """Every text of a file; in sources the string constants, joined where they are joined, with a hole for each value
    put in.
    """
    if path.suffix != ".py":
        yield path.read_text("utf-8")
        return

    class Strings(ast.NodeVisitor):
        def __init__(self) -> None:
            self.found: list[str] = []

        def visit_Constant(self, node: ast.Constant) -> None:
            if isinstance(node.value, str):
                self.found.append(node.value)

        def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
            self.found.append("".join(str(v.value) if isinstance(v, ast.Constant) else HOLE for v in node.values))
            for value in node.values:
                if isinstance(value, ast.FormattedValue):
                    self.visit(value.value)

    walker = Strings()
    walker.visit(ast.parse(path.read_text("utf-8")))
    yield from walker.found


def named(text: str) -> Iterator[str]:
    """What stands behind the program's name, up to where the sentence goes on."""
    for found in _NAMED.finditer(text):
        rest = re.split(r"[,;:()·\[\]]|\. |\s{2,}| watchfloor |\.$|\|\|?\s| #", found["rest"])[0]
        if rest.split()[0].rstrip(".") not in _NO_VERB and text != SERVICE:
            yield rest.strip()


def problem(way: str) -> str:
    """Why nobody could type this, or nothing."""
    words = way.split()
    for verb in words[0].rstrip(".").split("|"):
        if verb in (HOLE, "…") or verb.isupper():
            continue
        if verb not in VERBS:
            return f"there is no verb {verb!r}"
        grammar = VERBS[verb]
        below = [a for a in grammar._actions if isinstance(a, argparse._SubParsersAction)]
        if below and len(words) > 1 and words[1] in below[0].choices:
            grammar = below[0].choices[words[1]]
        known = {option: action for action in grammar._actions for option in action.option_strings}
        for i, word in enumerate(words[1:], 1):
            option = word.split("=")[0].rstrip(".")
            if not re.fullmatch(r"--?[a-z][a-z-]*", option):
                continue
            if option not in known:
                return f"{verb} has no option {option}"
            choices = known[option].choices
            following = words[i + 1].rstrip(".") if i + 1 < len(words) else ""
            if choices and following and not following.isupper() and following != HOLE and following not in choices:
                return f"{verb} {option} takes {', '.join(map(str, choices))}, not {following}"
        places = [a for a in VERBS[verb]._actions if not a.option_strings and a.choices]
        if (
            places
            and len(words) > 1
            and not words[1].startswith("-")
            and words[1] != HOLE
            and words[1].rstrip(".") not in set(places[0].choices or ())
        ):
            return f"{verb} takes {', '.join(map(str, places[0].choices or ()))}, not {words[1]}"
    return ""


def whole(way: str) -> str:
    """Why a way that a message gives cannot be typed as it stands: an argument that the verb needs is missing."""
    words = [w.rstrip(".") for w in way.split()]
    verb = words[0]
    if verb not in VERBS or "|" in verb:
        return ""
    needed = [a for a in VERBS[verb]._actions if not a.option_strings and a.nargs in (None, "+")]
    takes_value = {o for a in VERBS[verb]._actions if a.nargs is None for o in a.option_strings}
    given = [w for i, w in enumerate(words[1:], 1) if not w.startswith("-") and words[i - 1] not in takes_value]
    return f"{verb} needs {needed[len(given)].dest}" if len(given) < len(needed) else ""


@functools.cache
def ways(path: Path) -> tuple[str, ...]:
    """Every way that a file names."""
    return tuple(way for text in texts(path) for way in named(text))


def test_every_way_that_is_named_exists() -> None:
    assert not [
        f"{path.relative_to(ROOT)}: watchfloor {way.replace(HOLE, '…')}: {why}"
        for path in SOURCES + PAGES
        for way in ways(path)
        if (why := problem(way))
    ]


def test_every_way_that_a_message_gives_can_be_typed() -> None:
    assert not [
        f"{path.relative_to(ROOT)}: watchfloor {way.replace(HOLE, '…')}: {why}"
        for path in SOURCES
        for way in ways(path)
        if (why := whole(way))
    ]


def test_ways_are_found_and_wrong_ones_are_seen() -> None:
    found = [way for path in SOURCES + PAGES for way in ways(path)]
    assert len(found) > 60
    assert {way.split()[0].split("|")[0] for way in found} >= {
        "continue",
        "say",
        "resume",
        "undo",
        "rm",
        "approve",
        "answer",
        "verify",
        "supervisor",
        "launch",
    }
    assert problem("continu ID") == "there is no verb 'continu'"
    assert problem("rm --keep-as-refs ID") == "rm has no option --keep-as-refs"
    assert problem("supervisor restart")
    assert problem("supervisor stop --sessions kill")
    assert problem("pause|resume|halt ID") == "there is no verb 'halt'"
    assert problem(f"undo {HOLE} --to CALL") == ""
    assert whole("rm --keep-as-ref") == "rm needs ids"
    assert whole(f"say {HOLE}") == "say needs text"
    assert whole(f"launch --repo {HOLE} --goal TEXT") == ""
