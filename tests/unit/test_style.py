"""Rules that no linter of ours knows: one choice an expression, one thing assigned a statement, and tests that know the
program by its public names.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [
    path.relative_to(ROOT)
    for folder in ("app", "widgets", "harness")
    for path in sorted((ROOT / folder).rglob("*.py"))
    if "demo_repo" not in path.parts
]

TESTS = [path.relative_to(ROOT) for path in sorted((ROOT / "tests").rglob("*.py"))]
THEIRS = {"_exit", "_replace", "_fields", "_asdict"}
"""Names with an underscore that the standard library promises."""
REACHING = {"getattr", "setattr", "delattr", "attrgetter", "patch", "object"}
"""Calls that are given a name of something else as a text."""
UNPROMISED = {
    "tests/tui/painted.py": {"_compositor", "_callbacks", "_next_callbacks"},
    "tests/tui/test_help_bar.py": {"_binding_chain"},
    "tests/unit/test_ways.py": {"_actions", "_SubParsersAction"},
    "tests/unit/test_verbs.py": {"_actions", "_SubParsersAction"},
}
"""What of other libraries has no public name, and who reads it."""


def nested(node: ast.AST) -> bool:
    """A conditional expression that chooses by, or between, another one."""
    return isinstance(node, ast.IfExp) and any(
        isinstance(part, ast.IfExp) for part in (node.test, node.body, node.orelse)
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


def lines(text: str) -> list[int]:
    return sorted(n.lineno for n in ast.walk(ast.parse(text)) if isinstance(n, ast.stmt | ast.expr) and broken(n))


def broken(node: ast.AST) -> bool:
    return nested(node) or several(node)


@pytest.mark.parametrize("path", SOURCES, ids=str)
def test_one_choice_an_expression_and_one_thing_a_statement(path: Path) -> None:
    found = lines((ROOT / path).read_text("utf-8"))
    assert not found, f"{path}: lines {', '.join(map(str, found))}"


def test_the_rules_know_what_they_look_for() -> None:
    assert lines("x = a if b else c if d else e") == [1]
    assert lines("x = f(a if b else c) if d else e") == []
    assert lines("A, B = 1, 2") == lines("x.a, y[0] = 1, 2") == lines("a = b = 1") == [1]
    assert lines("a, b = b, a") == lines("a, b = 0, b or a") == lines("a, b = pair") == []


def hidden(tree: ast.AST) -> list[tuple[int, str]]:
    """Private names of others that a test reads, imports or replaces, by line."""
    found = []
    for node in ast.walk(tree):
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


@pytest.mark.parametrize("path", TESTS, ids=str)
def test_a_test_knows_no_private_name(path: Path) -> None:
    known = UNPROMISED.get(str(path), set())
    found = [f"line {line}: {name}" for line, name in hidden(ast.parse((ROOT / path).read_text("utf-8")))]
    assert not [one for one in found if one.rpartition(" ")[2] not in known], f"{path}: {found}"


def test_the_rule_knows_a_private_name() -> None:
    for text in ("a._b", "from a import _b", "p.setattr(a, '_b', 1)", "p.setattr('a._b', 1)", "self.x._b"):
        assert hidden(ast.parse(text)) == [(1, "_b")], text
    for text in ("self._b", "super()._b()", "a.__dict__", "os._exit(0)", "p.setattr(a, 'b', 1)", "x.replace('_', '')"):
        assert hidden(ast.parse(text)) == [], text
