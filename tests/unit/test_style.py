"""Rules that no linter of ours knows: a line is seen whole, whatever it says to a linter; one choice an expression, one
thing assigned a statement, nothing private that its own file never uses; and tests know the program by its public
names, and hold it to no time.
"""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    path.relative_to(ROOT)
    for folder in ("app", "widgets", "harness")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "demo_repo" not in path.parts
]

WIDEST = 120
"""Characters of a line, with what it says to a linter."""
LONGEST = 100
"""Lines of a function; what has more is several."""
TESTS = [path.relative_to(ROOT) for path in sorted((ROOT / "tests").rglob("*.py"))]
OVERRIDDEN = {"_compositor"}
"""Private names of a library that one of ours sets anew."""
THEIRS = {"_exit", "_replace", "_fields", "_asdict"}
"""Names with an underscore that the standard library promises."""
CLOCKS = {f"{of}{name}" for of in ("time.", "") for name in ("monotonic", "perf_counter", "time", "process_time")}
REACHING = {"getattr", "setattr", "delattr", "attrgetter", "patch", "object"}
"""Calls that are given a name of something else as a text."""
UNPROMISED = {
    "tests/tui/painted.py": {"_compositor", "_callbacks", "_next_callbacks"},
    "tests/tui/test_help_bar.py": {"_binding_chain"},
    "tests/unit/test_ways.py": {"_actions", "_SubParsersAction"},
    "tests/unit/test_verbs.py": {"_actions", "_SubParsersAction"},
    "tests/reborn.py": {"_shutdown"},
    "tests/seeds.py": {"_fork_exec"},
}
"""What of other libraries has no public name, and who reads it."""


class Broken(NamedTuple):
    """What a file says against each rule."""

    wide: list[int]
    lines: list[int]
    long: list[str]
    unused: list[str]
    hurried: list[int]
    hidden: list[tuple[int, str]]
    called_own: list[tuple[int, str]]
    made: set[str]


@functools.lru_cache(1)
def parts(tree: ast.AST) -> list[ast.AST]:
    """Each rule goes through all of the file, and no rule changes it."""
    return list(ast.walk(tree))


@functools.cache
def broken_in(path: Path) -> Broken:
    """Each file is read once for all rules."""
    text = (ROOT / path).read_text("utf-8")
    tree = ast.parse(text)
    if path.parts[0] == "tests":
        late = [node.lineno for node in parts(tree) if isinstance(node, ast.stmt) and hurried(node)]
        return Broken(wide(text), lines(tree), long(tree), [], late, hidden(tree), called_own(tree), made(tree))
    return Broken(wide(text), lines(tree), long(tree), unused(tree), [], [], [], set())


def wide(text: str) -> list[int]:
    return [number for number, line in enumerate(text.split("\n"), 1) if len(line) > WIDEST]


def test_a_line_is_seen_whole() -> None:
    assert not [f"{path}: line {line}" for path in (*SOURCES, *TESTS) for line in broken_in(path).wide]


def nested(node: ast.AST) -> bool:
    """A conditional expression with another one in it, however deep."""
    return isinstance(node, ast.IfExp) and any(
        isinstance(part, ast.IfExp) and part is not node for part in ast.walk(node)
    )


def several(node: ast.AST) -> bool:
    """Several things assigned at once, or one after the other, none of which needs the old value of another."""
    if not isinstance(node, ast.Assign):
        return False
    if len(node.targets) > 1:
        return True
    return isinstance(node.value, ast.Tuple) and any(
        isinstance(target, ast.Tuple) and not swaps(target, node.value) for target in node.targets
    )


def swaps(targets: ast.Tuple, values: ast.Tuple) -> bool:
    """True when a later value reads an earlier target: a statement each would do something else."""
    names = [ast.unparse(target) for target in targets.elts]
    return any(
        ast.unparse(part) in names[:place]
        for place, value in enumerate(values.elts)
        for part in ast.walk(value)
        if isinstance(part, ast.expr)
    )


def lines(tree: ast.Module) -> list[int]:
    return sorted(n.lineno for n in parts(tree) if isinstance(n, ast.stmt | ast.expr) and broken(n))


def broken(node: ast.AST) -> bool:
    return nested(node) or several(node)


def test_one_choice_an_expression_and_one_thing_a_statement() -> None:
    assert not [f"{path}: line {line}" for path in (*SOURCES, *TESTS) for line in broken_in(path).lines]


def test_the_rules_know_what_they_look_for() -> None:
    assert lines(ast.parse("x = a if b else c if d else e")) == [1]
    assert lines(ast.parse("x = f(a if b else c) if d else e")) == [1]
    assert lines(ast.parse("x = f(a if b else c)")) == lines(ast.parse("x = [a if b else c for a in d]")) == []
    assert (
        lines(ast.parse("A, B = 1, 2")) == lines(ast.parse("x.a, y[0] = 1, 2")) == lines(ast.parse("a = b = 1")) == [1]
    )
    assert (
        lines(ast.parse("a, b = b, a")) == lines(ast.parse("a, b = 0, b or a")) == lines(ast.parse("a, b = pair")) == []
    )


def long(tree: ast.Module) -> list[str]:
    """Functions that no screen shows whole."""
    functions = [n for n in parts(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [f.name for f in functions if (f.end_lineno or 0) - f.lineno >= LONGEST]


def test_a_function_can_be_seen_whole() -> None:
    assert not [f"{path}: {name}" for path in (*SOURCES, *TESTS) for name in broken_in(path).long]


def unused(tree: ast.Module) -> list[str]:
    """Private names of a module, and private fields of its classes, that nothing in it reads."""
    read = {n.id for n in parts(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    read |= {n.attr for n in parts(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
    kept = {n.attr for n in parts(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    return sorted(name for name in {*named(tree), *kept} - read - OVERRIDDEN if name[:1] == "_" and name[-1:] != "_")


def named(tree: ast.Module) -> Iterator[str]:
    """What a module's own statements name; functions that a decorator takes are used by it."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from () if node.decorator_list else (node.name,)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def test_whatever_is_private_is_used() -> None:
    assert not [f"{path}: {name}" for path in SOURCES for name in broken_in(path).unused]


def test_the_rule_knows_what_nobody_uses() -> None:
    for text in ("def _a(): ...", "_a = 1", "_a: int = 1", "class _a: ...", "def f(x):\n x._a = 1"):
        assert unused(ast.parse(text)) == ["_a"], text
    for text in ("_a = 1\nprint(_a)", "@on(1)\ndef _a(): ...", "a = 1", "def f(x):\n x._a = x._a"):
        assert unused(ast.parse(text)) == [], text


def hurried(node: ast.AST) -> bool:
    """A bound that says how soon something has to be over, or how late it may be, on time that a clock measured."""
    if not isinstance(node, ast.Assert):
        return False
    return any(
        isinstance(one, ast.Compare)
        and isinstance(one.ops[0], ast.Lt | ast.LtE | ast.Gt | ast.GtE)
        and isinstance(one.left, ast.BinOp)
        and any(isinstance(part, ast.Call) and ast.unparse(part.func) in CLOCKS for part in ast.walk(one.left))
        for one in ast.walk(node.test)
    )


def test_a_test_holds_nothing_to_a_time() -> None:
    assert not [f"{path}: line {line}" for path in TESTS for line in broken_in(path).hurried]


def test_the_rule_knows_a_bound_on_time() -> None:
    assert hurried(ast.parse("assert time.monotonic() - began < 2").body[0])
    assert hurried(ast.parse("assert perf_counter() - began <= 2 * usual").body[0])
    assert hurried(ast.parse("assert monotonic() - began >= least").body[0])
    assert not hurried(ast.parse("assert time.monotonic() < deadline").body[0])


def hidden(tree: ast.AST) -> list[tuple[int, str]]:
    """Private names of others that a test reads, imports or replaces, by line."""
    found = []
    for node in parts(tree):
        if isinstance(node, ast.Attribute) and not own(node.value):
            found.append((node.lineno, node.attr))
        elif isinstance(node, ast.ImportFrom):
            found += [(node.lineno, alias.name) for alias in node.names]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
            texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            found += [(node.lineno, text.rpartition(".")[2]) for text in texts if name in REACHING]
    return sorted((line, name) for line, name in found if name[:1] == "_" and name[:2] != "__" and name not in THEIRS)


def own(node: ast.expr) -> bool:
    """True for what a class may call its own: itself, and what it inherits from one of ours."""
    if isinstance(node, ast.Call):
        return isinstance(node.func, ast.Name) and node.func.id == "super"
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def test_a_test_knows_no_private_name() -> None:
    assert not [
        f"{path}: line {line}: {name}"
        for path in TESTS
        for line, name in broken_in(path).hidden
        if name not in UNPROMISED.get(str(path), ())
    ]


def called_own(tree: ast.AST) -> list[tuple[int, str]]:
    """Private names that a class reads of itself, by line."""
    found = [(n.lineno, n.attr) for n in parts(tree) if isinstance(n, ast.Attribute) and own(n.value)]
    return sorted((line, name) for line, name in found if name[:1] == "_" and name[:2] != "__" and name not in THEIRS)


def made(tree: ast.AST) -> set[str]:
    """Names that a file gives to what it makes."""
    defined = {n.name for n in parts(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)}
    stored = {n.attr for n in parts(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Store)}
    return defined | stored | {n.id for n in parts(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def test_a_test_knows_no_private_name_by_way_of_a_class_of_its_own() -> None:
    ours = {name for path in TESTS for name in broken_in(path).made}
    assert not [
        f"{path}: line {line}: {name}"
        for path in TESTS
        for line, name in broken_in(path).called_own
        if name not in ours and name not in UNPROMISED.get(str(path), ())
    ]


def test_the_rule_knows_what_a_class_inherits() -> None:
    tree = ast.parse("class A(B):\n  def f(self): return self._b, super()._c(), self._d\n  _d = 1")
    assert [name for _, name in called_own(tree) if name not in made(tree)] == ["_b", "_c"]


def test_the_rule_knows_a_private_name() -> None:
    for text in ("a._b", "from a import _b", "p.setattr(a, '_b', 1)", "p.setattr('a._b', 1)", "self.x._b"):
        assert hidden(ast.parse(text)) == [(1, "_b")], text
    for text in ("self._b", "super()._b()", "a.__dict__", "os._exit(0)", "p.setattr(a, 'b', 1)", "x.replace('_', '')"):
        assert hidden(ast.parse(text)) == [], text


def met(tree: ast.Module, name: str, classes: Mapping[str, set[str]]) -> set[tuple[str, str]]:
    """(class, module) of every class of ours that a module makes or names."""
    found = {(made_here, name) for made_here in classes[name]}
    modules: dict[str, str] = {}
    for node in parts(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if alias.name in classes.get(node.module, ()):
                    found.add((alias.name, node.module))
                elif f"{node.module}.{alias.name}" in classes:
                    modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            home = modules.get(node.value.id, "")
            if node.attr in classes.get(home, ()):
                found.add((node.attr, home))
    return found


def test_no_two_classes_of_one_name_meet_in_a_module() -> None:
    trees = {".".join(path.with_suffix("").parts): ast.parse((ROOT / path).read_text("utf-8")) for path in SOURCES}
    classes = {name: {n.name for n in tree.body if isinstance(n, ast.ClassDef)} for name, tree in trees.items()}
    for name, tree in trees.items():
        counts = Counter(one for one, _ in met(tree, name, classes))
        assert not [one for one, count in counts.items() if count > 1], name
