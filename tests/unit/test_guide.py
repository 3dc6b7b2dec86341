"""Every command line that a page for people shows is one that the program takes, and every key is one that it has."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from app.action_table.registry import ACTIONS, show_key
from app.cli.grammar import parser

GRAMMAR = parser.build()
ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *(f"docs/{name}" for name in ("user-guide.md", "keys.md", "security.md", "performance.md"))]
PAGES += [str(path.relative_to(ROOT)) for path in sorted((ROOT / "docs/guide").glob("*.md"))]
_CODE = re.compile(r"```.*?```|`[^`]+`", re.DOTALL)
_COMMAND = re.compile(r"(?:^|[ /(])watchfloor (\S[^\n]*?)(?=$|  |#|&&|[<>;])", re.MULTILINE)


def commands(text: str) -> list[str]:
    """What stands behind ``watchfloor`` in the code of a page, each way that it can be written."""
    lines = []
    for code in _CODE.findall(text):
        named = code.strip("`").split(" ", 1)[0] in GRAMMAR.of and " " in code and "{" not in code
        lines += [code.strip("`")] if named else _COMMAND.findall(code.strip("`"))
    return [way for line in lines for way in ways(line.replace("…", "").strip().rstrip(",.:"))]


_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_ONE_OF = re.compile(r"\(([^()]*\|[^()]*)\)")
_OR = re.compile(r"(?:^|(?<= ))([^ |'\"]+(?:\|[^ |'\"]+)+)")


def ways(line: str) -> list[str]:
    """A line with each of its alternatives: ``a|b`` one after the other, ``[x]`` with and without it."""
    match = _OPTIONAL.search(line) or _ONE_OF.search(line) or _OR.search(line)
    if match is None:
        return [line]
    chosen = re.split(r" ?\| ?", match.group(1))
    if match.group().startswith("["):
        chosen.append("")
    return [way for one in chosen for way in ways(f"{line[: match.start()]}{one}{line[match.end() :]}")]


MENTIONED = ("are required", "is required", "expected one argument", "expected at least one argument")
"""What the grammar says of a verb or an option that is named alone."""
_STANDS_FOR = re.compile(r"invalid .* value: '[A-Z][A-Z0-9-]*'")
"""It wants a number where the page says what for."""


@pytest.mark.parametrize("page", PAGES)
def test_every_command_line_is_taken(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = []
    for line in commands((ROOT / page).read_text("utf-8")):
        words = shlex.split(line)
        try:
            assert words[0] in GRAMMAR.of, f"{page}: {line}"
            GRAMMAR.whole(words)
        except SystemExit:
            why = capsys.readouterr().err
            if not (any(text in why for text in MENTIONED) or _STANDS_FOR.search(why)):
                wrong.append(f"{line}\n{why.splitlines()[-1]}")
    assert not wrong, "\n".join(wrong)


def test_enough_is_looked_at() -> None:
    found = [line for page in PAGES for line in commands((ROOT / page).read_text("utf-8"))]
    assert len(found) > 150
    assert {"resume ID", "policy try FILE", "memory set KEY TEXT --session ID --days N"} <= set(found)


_KEY = re.compile(r"`((?:ctrl|shift)\+\S|f\d+|esc|enter|tab|space|pgdn|pgup|home|end|[!-/:-@[-_{-~]|[A-Za-z0-9])`")


@pytest.mark.parametrize("page", PAGES)
def test_every_key_is_one_that_does_something(page: str) -> None:
    known = {show_key(key) for action in ACTIONS for key in action.keys}
    named = set(_KEY.findall((ROOT / page).read_text("utf-8")))
    assert not named - known - NO_KEYS


NO_KEYS = frozenset("{}$")
"""What stands between such marks and is no key: signs of a pattern."""
