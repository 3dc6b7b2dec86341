"""The variables of a shell script as far as its text tells them, and what is made of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

Status: TypeAlias = int | None
"""An exit status; None where nobody can tell it beforehand."""
_INTEGER = re.compile(r"\s*-?\d{1,18}\s*")


@dataclass(slots=True)
class Values:
    """Variables of one shell by name, a value None where it is unknown; ``lengths`` are those of arrays."""

    known: dict[str, str | None] = field(default_factory=dict)
    lengths: dict[str, int | None] = field(default_factory=dict)
    last: Status = 0
    background: Status = 0
    pipes: list[Status] = field(default_factory=list)
    short: bool = False
    """The newest list of ``&&`` was left before its end."""

    def copy(self) -> Values:
        return replace(self, known=dict(self.known), lengths=dict(self.lengths), pipes=list(self.pipes))

    def set(self, name: str, value: str | None, *, append: bool = False) -> None:
        if append:
            before = self.known.get(name, "")
            value = None if before is None or value is None else before + value
        self.known[name] = value

    def extend(self, name: str, count: int, *, append: bool) -> None:
        before = self.lengths.get(name, 0) if append else 0
        self.lengths[name] = None if before is None else before + count

    def text(self, node: object) -> str | None:
        """The value of a word."""
        if not isinstance(node, Mapping):
            return None
        made = ""
        parts = node.get("Parts")
        for part in parts if isinstance(parts, list) else []:
            piece = self._part(part)
            if piece is None:
                return None
            made += piece
        return made

    def _part(self, part: object) -> str | None:
        if not isinstance(part, Mapping):
            return None
        value = part.get("Value", "")
        match part.get("Type"):
            case "Lit" | "SglQuoted":
                return value if isinstance(value, str) else None
            case "DblQuoted":
                return self.text(part)
            case "ParamExp":
                return self._parameter(part)
            case "ArithmExp":
                number = arithmetic(part.get("X"), self, self.text)
                return None if number is None else str(number)
        return None

    def _parameter(self, part: Mapping[str, object]) -> str | None:
        param = part.get("Param")
        name = param.get("Value") if isinstance(param, Mapping) else None
        if not isinstance(name, str) or part.get("Slice") or part.get("Repl") or part.get("Excl"):
            return None
        index = self.text(part.get("Index")) if part.get("Index") is not None else ""
        if part.get("Length"):
            length = self.lengths.get(name) if index in ("@", "*") else None
            return None if length is None else str(length)
        if name == "PIPESTATUS":
            at = int(index) if index and index.isdigit() else 0
            return _shown(self.pipes[at]) if at < len(self.pipes) else _shown(self.last)
        if name == "?":
            return _shown(self.last)
        value = self.known.get(name)
        if (other := part.get("Exp")) is not None:
            op = other.get("Op") if isinstance(other, Mapping) else ""
            word = other.get("Word") if isinstance(other, Mapping) else None
            return self.text(word) if not value and name in self.known and op in (":-", "-", ":=", "=") else value
        return value


def _shown(status: Status) -> str | None:
    return None if status is None else str(status)


def arithmetic(node: object, values: Values, text: Callable[[object], str | None]) -> int | None:
    """The value of an arithmetic expression, which may change variables."""
    if not isinstance(node, Mapping):
        return None
    kind = node.get("Type")
    op = str(node.get("Op", ""))
    if kind == "Word":
        return _integer(node, values, text)
    if kind == "ParenArithm":
        return arithmetic(node.get("X"), values, text)
    if kind == "UnaryArithm":
        return _unary(node, op, values, text)
    if kind != "BinaryArithm":
        return None
    right = arithmetic(node.get("Y"), values, text)
    if op == "=" or (op.endswith("=") and op not in ("==", "!=", "<=", ">=")):
        left = 0 if op == "=" else arithmetic(node.get("X"), values, text)
        made = right if op == "=" else _binary(op[:-1], left, right)
        if name := _variable(node.get("X")):
            values.set(name, None if made is None else str(made))
        return made
    return _binary(op, arithmetic(node.get("X"), values, text), right)


def _unary(node: Mapping[str, object], op: str, values: Values, text: Callable[[object], str | None]) -> int | None:
    before = arithmetic(node.get("X"), values, text)
    if op in ("++", "--"):
        step = 1 if op == "++" else -1
        after = None if before is None else before + step
        if name := _variable(node.get("X")):
            values.set(name, None if after is None else str(after))
        return before if node.get("Post") else after
    if before is None:
        return None
    return {"!": int(not before), "-": -before, "+": before, "~": ~before}.get(op)


def _binary(op: str, x: int | None, y: int | None) -> int | None:
    if op == "||" and (x or y):
        return 1
    if op == "|" and (x or y):
        return (x or 0) | (y or 0)
    if x is None or y is None:
        return None
    compare = {"==": x == y, "!=": x != y, "<": x < y, ">": x > y, "<=": x <= y, ">=": x >= y}
    if op in compare:
        return int(compare[op])
    logic = {"&&": int(bool(x and y)), "||": 0, "|": x | y, "&": x & y, "^": x ^ y}
    plain = {"+": x + y, "-": x - y, "*": x * y, ",": y}
    return logic.get(op, plain.get(op))


def _integer(node: Mapping[str, object], values: Values, text: Callable[[object], str | None]) -> int | None:
    if name := _variable(node):
        found = values.known.get(name, "0")
        return int(found or 0) if found is not None and _INTEGER.fullmatch(found or "0") else None
    made = text(node)
    return int(made) if made is not None and _INTEGER.fullmatch(made) else None


def _variable(node: object) -> str:
    """The name that stands in an expression by itself."""
    parts = node.get("Parts") if isinstance(node, Mapping) else None
    only = parts[0] if isinstance(parts, list) and len(parts) == 1 else None
    name = only.get("Value") if isinstance(only, Mapping) and only.get("Type") == "Lit" else None
    return name if isinstance(name, str) and re.fullmatch(r"[A-Za-z_]\w*", name) else ""


def compared(words: Sequence[str | None]) -> bool | None:
    """Whether a test holds; None where its words do not tell."""
    if words and words[0] == "!":
        inner = compared(words[1:])
        return None if inner is None else not inner
    match words:
        case [one]:
            return None if one is None else bool(one)
        case ["-n", one]:
            return None if one is None else bool(one)
        case ["-z", one]:
            return None if one is None else not one
        case [x, ("=" | "=="), y]:
            return None if x is None or y is None else x == y
        case [x, "!=", y]:
            return None if x is None or y is None else x != y
        case [x, ("-eq" | "-ne" | "-gt" | "-ge" | "-lt" | "-le") as op, y]:
            return _numbers(x, op, y)
    return None


def _numbers(x: str | None, op: str, y: str | None) -> bool | None:
    if x is None or y is None or not _INTEGER.fullmatch(x) or not _INTEGER.fullmatch(y):
        return None
    a = int(x)
    b = int(y)
    return {"-eq": a == b, "-ne": a != b, "-gt": a > b, "-ge": a >= b, "-lt": a < b, "-le": a <= b}[op]
