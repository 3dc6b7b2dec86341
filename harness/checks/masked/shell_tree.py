"""The parts of a shell script's syntax tree (``shfmt --to-json``) that say what runs. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from harness.policy.shell import word

Node: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Call:
    """A simple command: where it stands, and its words, None where only a run tells them."""

    at: tuple[int, int]
    words: tuple[str | None, ...]
    aside: bool = False
    """It runs in the background, or within what does."""


def calls(tree: object) -> list[Call]:
    """Every simple command of a script, in the order of its text."""
    known = _constants(tree)
    beside = [span(node) for node in nodes(tree) if node.get("Background") or node.get("Coprocess")]
    found = [
        Call(
            span(node),
            tuple(word(one, known).text for one in items(node, "Args")),
            any(begin <= span(node)[0] < end for begin, end in beside),
        )
        for node in nodes(tree)
        if node.get("Type") == "CallExpr" and items(node, "Args")
    ]
    return sorted(found, key=lambda call: call.at)


def _constants(tree: object) -> dict[str, str]:
    """Variables that are given one value in a script, and that value is plain."""
    values: dict[str, set[str | None]] = {}
    for node in nodes(tree):
        for one in [*items(node, "Assigns"), *(items(node, "Args") if node.get("Type") == "DeclClause" else [])]:
            if name := name_of(one, "Name"):
                given = one.get("Value") if isinstance(one, Mapping) and not one.get("Append") else None
                values.setdefault(name, set()).add(word(given).text if given is not None else None)
    return {name: text for name, (text, *more) in ((n, tuple(v)) for n, v in values.items()) if text and not more}


def nodes(tree: object) -> Iterator[Node]:
    pending = [tree]  # no recursion: whoever wrote the script also chose how deep it is
    while pending:
        node = pending.pop()
        if isinstance(node, Mapping):
            yield node
            pending += reversed(list(node.values()))
        elif isinstance(node, list):
            pending += reversed(node)


def stages(node: Node) -> list[Node]:
    """The statements of a pipe, in their order."""
    found: list[Node] = []
    left: object = node
    while isinstance(left, Mapping) and left.get("Type") == "BinaryCmd" and left.get("Op") in ("|", "|&"):
        if isinstance(y := left.get("Y"), Mapping):
            found.append(y)
        x = left.get("X")
        inner = x.get("Cmd") if isinstance(x, Mapping) else None
        last = inner if isinstance(inner, Mapping) and inner.get("Type") == "BinaryCmd" else None
        if (last is None or last.get("Op") not in ("|", "|&")) and isinstance(x, Mapping):
            found.append(x)
        left = inner
    return found[::-1]


def first_word(node: Node) -> str | None:
    args = items(node, "Args")
    return word(args[0]).text if args else None


def name_of(node: object, key: str) -> str:
    inner = node.get(key) if isinstance(node, Mapping) else None
    value = inner.get("Value") if isinstance(inner, Mapping) else None
    return value if isinstance(value, str) else ""


def items(node: object, key: str) -> list[object]:
    value = node.get(key) if isinstance(node, Mapping) else None
    return value if isinstance(value, list) else []


def span(node: object) -> tuple[int, int]:
    """The bytes of the script that a node stands in."""
    return _offset(node, "Pos"), _offset(node, "End")


def span_of(nodes: list[object]) -> tuple[int, int]:
    return (span(nodes[0])[0], span(nodes[-1])[1]) if nodes else (0, 0)


def _offset(node: object, key: str) -> int:
    place = node.get(key) if isinstance(node, Mapping) else None
    offset = place.get("Offset") if isinstance(place, Mapping) else None
    return offset if isinstance(offset, int) else 0
