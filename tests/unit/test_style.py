"""Two rules of reading that no linter of ours knows: one choice an expression, one thing assigned a statement."""

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


def nested(node: ast.AST) -> bool:
    """A conditional expression that chooses by, or between, another one."""
    return isinstance(node, ast.IfExp) and any(
        isinstance(part, ast.IfExp) for part in (node.test, node.body, node.orelse)
    )


def several(node: ast.AST) -> bool:
    """Several things assigned at once, none of which needs the old value of another."""
    if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Tuple):
        return False
    return any(isinstance(target, ast.Tuple) and not swaps(target, node.value) for target in node.targets)


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
    assert lines("A, B = 1, 2") == lines("x.a, y[0] = 1, 2") == [1]
    assert lines("a, b = b, a") == lines("a, b = 0, b or a") == lines("a, b = pair") == []
