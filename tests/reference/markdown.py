"""Tables in Markdown, and what a class says of itself: its docstring, its fields and their docstrings."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import get_args, get_origin, get_type_hints

import msgspec

MADE = "Made from the code by `make reference`; a test fails while it is out of date."


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table, with an empty line behind it."""
    lines = [f"| {' | '.join(titles)} |", f"|{' --- |' * len(titles)}"]
    return [*lines, *(f"| {' | '.join(_cell(cell) for cell in row)} |".replace("|  |", "| |") for row in rows), ""]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def prose(text: str | None) -> str:
    """A docstring on one line, in which double backticks are single ones."""
    return " ".join(inspect.cleandoc(text or "").split()).replace("``", "`")


def sentence(text: str | None) -> str:
    """The first sentence of a docstring."""
    return re.split(r"(?<=\.)\s+(?=[A-Z`])", prose((text or "").split("\n\n")[0]), maxsplit=1)[0]


def doc(kind: type[object] | Callable[..., object]) -> str:
    """The first sentence of what a class or function says of itself, without what `dataclass` makes up."""
    own = kind.__dict__.get("__doc__") if isinstance(kind, type) else kind.__doc__
    return "" if own is None or own.startswith(f"{kind.__name__}(") else sentence(own)


@dataclasses.dataclass(frozen=True, slots=True)
class FieldText:
    """One field of a record: its name in a frame or log, its type as written, whether it may be left out."""

    name: str
    hint: object
    optional: bool
    default: object = None

    def __str__(self) -> str:
        return f"`{self.name}`{'?' if self.optional else ''} {spelled(self.hint)}"


def fields(kind: type[object]) -> list[FieldText]:
    """The fields of a dataclass or a msgspec structure, in order."""
    if issubclass(kind, msgspec.Struct):
        known = msgspec.structs.fields(kind)
        return [FieldText(f.encode_name, f.type, not f.required, f.default) for f in known]
    assert dataclasses.is_dataclass(kind), kind
    hints = get_type_hints(kind)
    missing = dataclasses.MISSING
    return [
        FieldText(f.name, hints[f.name], f.default is not missing or f.default_factory is not missing, f.default)
        for f in dataclasses.fields(kind)
    ]


def listed(kind: type[object]) -> str:
    """All fields of a record on one line."""
    return ", ".join(map(str, fields(kind))) or "–"


def spelled(hint: object) -> str:
    """A type as it is written in the code."""
    if hint is type(None):
        return "None"
    if hint is Ellipsis:
        return "..."
    inside = get_args(hint)
    origin = get_origin(hint)
    if isinstance(hint, types.UnionType) or (origin is not None and getattr(origin, "__name__", "") == "Union"):
        return " | ".join(spelled(one) for one in inside)
    if inside and isinstance(origin, type):
        return f"{origin.__name__}[{', '.join(spelled(one) for one in inside)}]"
    return getattr(hint, "__name__", str(hint))


def records(kinds: Iterable[type[object]]) -> Iterator[type[object]]:
    """The records that fields of these have as their values, each once."""
    seen = set(kinds)
    left = list(seen)
    while left:
        for field in fields(left.pop()):
            for one in _inside(field.hint):
                if one not in seen:
                    seen.add(one)
                    left.append(one)
                    yield one


def _inside(hint: object) -> Iterator[type[object]]:
    if isinstance(hint, type) and (issubclass(hint, msgspec.Struct) or dataclasses.is_dataclass(hint)):
        yield hint
    for one in get_args(hint):
        yield from _inside(one)


def notes(source: type[object] | types.ModuleType) -> dict[str, str]:
    """What is written below each value of a class or module, as a text of its own."""
    body = ast.parse(inspect.getsource(source)).body
    if isinstance(source, type) and isinstance(body[0], ast.ClassDef):
        body = body[0].body
    return {
        name: prose(below.value.value)
        for value, below in pairwise(body)
        if isinstance(below, ast.Expr)
        and isinstance(below.value, ast.Constant)
        and isinstance(below.value.value, str)
        and (name := _named(value))
    }


def _named(value: ast.stmt) -> str:
    if isinstance(value, ast.AnnAssign) and isinstance(value.target, ast.Name):
        return value.target.id
    if isinstance(value, ast.Assign) and isinstance(value.targets[0], ast.Name):
        return value.targets[0].id
    return ""
