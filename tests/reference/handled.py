"""What a handler of the supervisor reads of a message, found in its source: names and types."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Set
from types import FunctionType, MethodType, ModuleType
from typing import get_type_hints

from harness.supervisor.serving import finding
from harness.supervisor.serving.parts import Parts
from tests.reference.markdown import fields, spelled

_TYPES = {"text_of": "str", "number_of": "int", "bounded": "int"}
_MESSAGES = frozenset(("m", "message", "arguments"))


def arguments(handler: Callable[..., object]) -> dict[str, str]:
    """Each argument that a handler reads, with its type; which session it is about first."""
    found = dict(_read(handler, set()))
    return dict(sorted(found.items(), key=lambda one: one[0] != "sid"))


def _read(function: object, seen: set[object]) -> Iterator[tuple[str, str]]:
    plain = function.__func__ if isinstance(function, MethodType) else function
    if not isinstance(plain, FunctionType) or plain in seen:
        return
    seen.add(plain)
    tree = ast.parse(textwrap.dedent(inspect.getsource(plain)))
    named = {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)} & _MESSAGES
    flags = {id(node.left) for node in ast.walk(tree) if isinstance(node, ast.Compare) and _says_flag(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and _is(node.value, named) and isinstance(node.slice, ast.Constant):
            yield str(node.slice.value), "object"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is(node.func.value, named):
            if node.func.attr == "get" and isinstance(name := node.args[0], ast.Constant):
                yield str(name.value), "bool" if id(node) in flags else "object"
        elif isinstance(node, ast.Call) and any(_holds(one, named) for one in node.args):
            yield from _passed(node, plain, function, seen)


def _passed(call: ast.Call, plain: FunctionType, function: object, seen: set[object]) -> Iterator[tuple[str, str]]:
    """A message is given to another function: one that reads a field, makes a structure of it, or reads more of it."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    second = call.args[1] if len(call.args) > 1 else None
    if name in _TYPES and isinstance(second, ast.Constant):
        yield str(second.value), _TYPES[name]
    elif name == "convert" and isinstance(second, ast.Name):
        yield from ((field.name, spelled(field.hint)) for field in fields(plain.__globals__[second.id]))
    else:
        owner = function.__self__ if isinstance(function, MethodType) else None
        yield from _read(_meant(call.func, plain, owner), seen)


def _meant(node: ast.expr, plain: FunctionType, owner: object) -> object:
    """The function that is called, as far as it can be told."""
    if isinstance(node, ast.Name):
        return plain.__globals__.get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    if isinstance(node.value, ast.Name) and node.value.id == "self":
        return finding.find if node.attr == "_find" else getattr(owner, node.attr, None)
    if isinstance(node.value, ast.Name):
        module = plain.__globals__.get(node.value.id)
        return getattr(module, node.attr, None) if isinstance(module, ModuleType) else None
    if isinstance(node.value, ast.Attribute):
        return getattr(get_type_hints(Parts).get(node.value.attr), node.attr, None)
    return None


def _is(node: ast.expr, named: Set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in named


def _holds(node: ast.expr, named: Set[str]) -> bool:
    """A message, or an object that is made of its members."""
    made = isinstance(node, ast.Dict | ast.DictComp) or (isinstance(node, ast.Call) and _is(node.func, {"dict"}))
    return any(_is(one, named) for one in ast.walk(node) if isinstance(one, ast.expr)) if made else _is(node, named)


def _says_flag(node: ast.Compare) -> bool:
    (right,) = node.comparators[:1]
    return isinstance(right, ast.Constant) and isinstance(right.value, bool)
