"""An assertion asked the other way: with another value expected, which it must refuse where it held. Pure.

Code that looks for what is expected of it finds that in the test that calls it, or lets one test alone pass whatever it
says. Such code agrees with the other value too.
"""

from __future__ import annotations

import ast

EQUAL = frozenset(
    {"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertSetEqual", "assertTupleEqual"}
    | {"assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual"}
)
"""Ways to compare that ask their two arguments whether they are equal."""
_TURNED = frozenset({"assertTrue", "assertFalse"})
_NOT_AGAIN = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
"""What is done once only, or not where it stands."""
_TRIED = """
try:
    pass
except BaseException:
    pass
else:
    {word}_held(lambda: 0)
try:
    pass
except BaseException:
    pass
"""


def asked(line: ast.Assert | ast.Expr, original: ast.stmt, word: str) -> list[ast.stmt]:
    """The lines that ask this assertion the other way, tell `word_held` of what stood against the other value when
    that was agreed with, and then do ``original``, whatever comes of it. Only the original when it is none to turn.
    """
    found = _turned(line)
    if found is None or any(isinstance(node, _NOT_AGAIN) for node in ast.walk(line)):
        return [original]
    other, value = found
    first, second = ast.parse(_TRIED.format(word=word)).body
    assert isinstance(first, ast.Try)
    assert isinstance(second, ast.Try)
    first.body = [other]
    told = first.orelse[0]
    assert isinstance(told, ast.Expr)
    assert isinstance(told.value, ast.Call)
    told.value.args = [ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)]
    second.body = [original]
    return [first, second]


def _turned(line: ast.Assert | ast.Expr) -> tuple[ast.stmt, ast.expr] | None:
    """The assertion with another value expected, and what is compared with it."""
    if isinstance(line, ast.Assert):
        test = line.test
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
            return None
        left, right, value = _sides(test.left, test.comparators[0])
        return ast.Assert(ast.Compare(left, test.ops, [right]), None), value
    call = line.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if any(isinstance(arg, ast.Starred) for arg in call.args):
        return None
    if call.func.attr in EQUAL and len(call.args) >= 2:
        left, right, value = _sides(*call.args[:2])
        return ast.Expr(ast.Call(call.func, [left, right], [])), value
    if call.func.attr in _TURNED and call.args:
        value = call.args[0]
        return ast.Expr(ast.Call(call.func, [ast.UnaryOp(ast.Not(), value)], [])), value
    return None


def _sides(left: ast.expr, right: ast.expr) -> tuple[ast.expr, ast.expr, ast.expr]:
    """Both sides with another value on the one that says what is expected, and the other side."""
    if _calls(right) and not _calls(left):
        return _other(left), right, right
    return left, _other(right), left


def _calls(one: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(one))


def _other(one: ast.expr) -> ast.expr:
    """A value like this one, and never equal to it."""
    if isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.USub) and isinstance(one.operand, ast.Constant):
        return ast.UnaryOp(one.op, _other(one.operand))
    if isinstance(one, ast.Constant):
        value = one.value
        if isinstance(value, bool):
            return ast.Constant(not value)
        if isinstance(value, (int, float)):
            return ast.Constant(value + 3)
        if isinstance(value, str):
            return ast.Constant(value + ("7" if value.isdigit() else "s"))
        if isinstance(value, bytes):
            return ast.Constant(value + b"s")
    if isinstance(one, (ast.List, ast.Tuple)) and one.elts and isinstance(one.elts[-1], ast.Constant):
        return type(one)([*one.elts, one.elts[-1]], ast.Load())
    return ast.Tuple([one, ast.Constant("s")], ast.Load())
