"""Criteria in a text in Markdown: list items, table rows and blocks of commands under headings that speak of criteria.
Pure.

A paragraph that is bold as a whole, or ends with a colon, is a heading below all others. Where no heading speaks of
criteria, every list item is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode

from harness.plan.files import criteria
from harness.plan.files.criteria import ANY_FORM, Criterion, Problem, parse
from harness.plan.files.criteria_lines import NONE, Line

_ABOUT = re.compile(
    r"\b(?:criteri(?:a|on)|acceptance|accepted (?:when|if)|definition of done|done (?:when|means|if)|what done means"
    r"|checks?|checklist|verif(?:y|ies|ied|ication))\b",
    re.IGNORECASE,
)
_TASK = re.compile(r"^\[[ xX]\]\s+")
_NAMED = re.compile(r"^(?:[A-Z]{1,6}-?\d+(?:[.-]\d+)*\b|(?:task|story|feature|requirement|epic)\s+\d)", re.IGNORECASE)
"""A heading that names a task, which should have a criterion."""
_FRONT = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_SHELLS = ("bash", "sh", "shell", "zsh", "console", "shell-session")
_WHOLE = re.compile(r"<<|^\s|^(?:if|for|while|case|function)\b|\\$", re.MULTILINE)
"""A block that is one script, not a command a line."""
_COMMAND = re.compile(r"\b(?:command|verif\w*|checks?|run|how)\b", re.IGNORECASE)
_CODE = re.compile(r"^`([^`]+)`$")
_BOLD = 7
_COLON = 8
"""Levels of headings that are paragraphs."""


@dataclass(slots=True)
class Found:
    """``items`` were seen; ``left`` are those that were not read, by line, with the heading that each stands under."""

    lines: list[Line] = field(default_factory=list)
    items: int = 0
    left: list[tuple[int, str, str, bool]] = field(default_factory=list)

    @property
    def headings(self) -> list[str]:
        """The headings that what was left out stands under."""
        return list(dict.fromkeys(f"“{under}”" if under else "none" for _, _, under, _ in self.left))

    @property
    def alike(self) -> list[tuple[int, str]]:
        """What was left out and looks like a criterion: a box to be ticked, or a sentence that a command decides."""
        return [(number, text) for number, text, _, box in self.left if box or isinstance(parse(text), Criterion)]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A text that may be a criterion; ``trail`` are the headings above it, the nearest last."""

    number: int
    text: str
    trail: tuple[tuple[int, str], ...]
    listed: bool = True
    box: bool = False

    @property
    def about(self) -> bool:
        return any(_ABOUT.search(text) for _, text in self.trail)

    @property
    def under(self) -> str:
        """The nearest heading that says what it is about, not only that these are criteria."""
        texts = [text for _, text in reversed(self.trail)]
        return next((text for text in texts if not _ABOUT.search(text)), texts[0] if texts else "")


def read(text: str) -> Found:
    """The criteria of a text, and what was left out."""
    front = _FRONT.match(text)
    body = "\n" * front[0].count("\n") + text[front.end() :] if front is not None else text
    tree = SyntaxTreeNode(MarkdownIt("commonmark").enable("table").parse(body))
    walk = _Walk()
    pieces = list(walk.blocks(tree))
    some = any(piece.about for piece in pieces)
    found = Found(items=sum(piece.listed for piece in pieces))
    lines: list[tuple[int, Line]] = []
    for piece in pieces:
        if piece.about or (piece.listed and not some):
            decided = parse(piece.text)
            if piece.listed or isinstance(decided, Criterion):
                lines.append((piece.number, Line(f"line {piece.number}", decided, piece.under)))
        elif piece.listed:
            found.left.append((piece.number, piece.text, piece.under, piece.box))
    with_one = {heading for piece in pieces if piece.about or not some for heading in piece.trail}
    levels = {level for level, text in with_one if _NAMED.match(text)}
    for number, heading in walk.headings:
        if heading[0] in levels and _NAMED.match(heading[1]) and heading not in with_one:
            lines.append((number, Line(f"line {number}", Problem(heading[1], NONE, ANY_FORM), heading[1])))
    found.lines = [line for _, line in sorted(lines, key=lambda pair: pair[0])]
    return found


class _Walk:
    """The pieces of a text in their order, with the headings above each."""

    def __init__(self) -> None:
        self.headings: list[tuple[int, tuple[int, str]]] = []
        self._trail: list[tuple[int, str]] = []

    def blocks(self, node: SyntaxTreeNode) -> Iterator[_Piece]:
        for child in node.children:
            match child.type:
                case "heading":
                    self._under(child, int(child.tag[1:]), _text(child))
                case "paragraph":
                    yield from self._paragraph(child)
                case "bullet_list" | "ordered_list":
                    for item in child.children:
                        yield from self._item(item)
                case "table":
                    yield from self._table(child)
                case "fence":
                    yield from self._fence(child)
                case "blockquote":
                    yield from self.blocks(child)

    def _under(self, node: SyntaxTreeNode, level: int, text: str) -> None:
        self._trail = [one for one in self._trail if one[0] < level]
        self._trail.append((level, text))
        self.headings.append((_line(node), self._trail[-1]))

    def _paragraph(self, node: SyntaxTreeNode) -> Iterator[_Piece]:
        text = _text(node)
        if label := _label(text):
            self._under(node, _BOLD if text.startswith(("**", "__")) else _COLON, label)
        else:
            yield _Piece(_line(node), text, tuple(self._trail), listed=False)

    def _item(self, item: SyntaxTreeNode) -> Iterator[_Piece]:
        """A list item, then what is listed below it, to which it is a heading."""
        first = item.children[0] if item.children else None
        before = self._trail
        rest = item.children
        if first is not None and first.type == "paragraph":
            rest = rest[1:]
            text = _text(first)
            box = _TASK.match(text) is not None
            text = _TASK.sub("", text)
            label = _label(text)
            if not label or not rest:
                yield _Piece(_line(first), text, tuple(before), box=box)
            deepest = max((level for level, _ in before), default=_COLON)
            self._trail = [*before, (max(deepest, _COLON) + 1, label or text)]
        for child in rest:
            if child.type in ("bullet_list", "ordered_list"):
                for below in child.children:
                    yield from self._item(below)
            elif child.type == "fence":
                yield from self._fence(child)
        self._trail = before

    def _table(self, node: SyntaxTreeNode) -> Iterator[_Piece]:
        rows = [[_text(cell) for cell in row.children] for part in node.children for row in part.children]
        numbers = [_line(row) for part in node.children for row in part.children]
        head = rows[0] if rows else []
        what = next((n for n, name in enumerate(head) if _ABOUT.search(name) and not _COMMAND.search(name)), None)
        how = next((n for n, name in enumerate(head) if _COMMAND.search(name)), None)
        trail = tuple(self._trail)
        if what is not None:
            trail = (*trail, (_COLON, head[what]))
        for number, cells in zip(numbers[1:], rows[1:], strict=True):
            said = cells[what] if what is not None and what < len(cells) else ": ".join(cell for cell in cells if cell)
            command = _CODE.match(cells[how]) if how is not None and how < len(cells) else None
            yield _Piece(number, criteria.decided_by(said, command[1]) if command is not None else said, trail)

    def _fence(self, node: SyntaxTreeNode) -> Iterator[_Piece]:
        """Each line of a block of commands; a block that is one script is one command."""
        words = node.info.split()
        if not words or words[0].lower() not in _SHELLS or not any(_ABOUT.search(text) for _, text in self._trail):
            return
        whole = _WHOLE.search(node.content.strip()) is not None
        lines = [node.content.strip()] if whole else node.content.splitlines()
        for offset, line in enumerate(lines, 1):
            command = line.strip().removeprefix("$ ")
            if command and not command.startswith("#"):
                yield _Piece(_line(node) + offset, criteria.run(command), tuple(self._trail))


def _label(text: str) -> str:
    """What a paragraph says that is a heading: bold as a whole, or ending with a colon; empty for another."""
    bold = re.fullmatch(r"(\*\*|__)(?P<text>(?:(?!\1).)+)\1\s*:?", text, re.DOTALL)
    if bold is not None:
        return bold["text"].rstrip(": ")
    return text.rstrip(": ") if text.endswith(":") else ""


def _text(node: SyntaxTreeNode) -> str:
    return " ".join(child.content for child in node.children if child.type == "inline").strip()


def _line(node: SyntaxTreeNode) -> int:
    return node.map[0] + 1 if node.map is not None else 0
