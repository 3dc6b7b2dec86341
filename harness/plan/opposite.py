"""An assertion asked the other way: with another value expected, which it must refuse where it held. Pure.

Code that looks for what is expected of it finds that in the test that calls it, or lets one test alone pass whatever it
says. Such code agrees with the other value too.
"""

from __future__ import annotations

import ast
import re
import zlib

EQUAL = frozenset(
    {"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertSetEqual", "assertTupleEqual"}
    | {"assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual"}
)
"""Ways to compare that ask their two arguments whether they are equal."""
_COMES_ONCE = frozenset({"next", "acquire", "accept", "result", "communicate", "input"})
_WAITING = ("wait", "recv")
"""How such names begin."""
_ONCE_ALONE = re.compile(r"get|join|select|read_(?!text$|bytes$)\w+")
"""Those too when they are given nothing: else they look something up, or put texts together."""
_TAKES = re.compile(r"read(?:line|lines|into|until|exactly|_until)?")
"""And these of a stream or a socket."""
_TURNED = frozenset({"assertTrue", "assertFalse"})
_LEAST = 101
_SPAN = 887
"""By how much another value is more than the one expected: no test counts its own calls so far."""
_NOT_AGAIN = (ast.Await, ast.Yield, ast.YieldFrom, ast.NamedExpr)
"""What is done once only, or not where it stands."""
_ASKED = """
try:
    pass
except BaseException:
    pass
else:
    {word}_held(lambda: 0)
"""
_TURNED_ROUND = """
try:
    pass
except BaseException:
    pass
else:
    {word}_turned({wrong})
"""
_DONE = """
try:
    pass
except BaseException:
    pass
"""


def asked(line: ast.Assert | ast.Expr, original: ast.stmt, word: str) -> list[ast.stmt]:
    """The lines that ask this assertion the other way, tell of what agreed with that, and then do ``original``,
    whatever comes of it. Only the original when it is none to turn.

    Asking does again what the assertion does, so what counts its calls comes to other values by itself: to none so far
    off as the one asked for, but to another truth, which tells only where it is not so (``word_turned``).
    """
    if any(isinstance(node, _NOT_AGAIN) or _waits(node) for node in ast.walk(line)):
        return [original]
    first = _compared(line, word) or _truth(line, word)
    if first is None:
        return [original]
    (second,) = ast.parse(_DONE).body
    assert isinstance(second, ast.Try)
    second.body = [original]
    return [first, second]


def _waits(node: ast.AST) -> bool:
    """Whether it takes what comes only once, or waits for it: done again, it may wait for ever."""
    if not isinstance(node, ast.Call):
        return False
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    name = method or getattr(node.func, "id", "")
    if name in _COMES_ONCE or name.startswith(_WAITING) or _TAKES.fullmatch(method):
        return True
    return not node.args and _ONCE_ALONE.fullmatch(name) is not None


def _compared(line: ast.Assert | ast.Expr, word: str) -> ast.Try | None:
    """An assertion that two values are equal, asked with another one of what is expected."""
    if isinstance(line, ast.Assert):
        test = line.test
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], ast.Eq):
            return None
        sides = (test.left, test.comparators[0])
    else:
        call = line.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return None
        if call.func.attr not in EQUAL or len(call.args) < 2 or _spread(call):
            return None
        sides = (call.args[0], call.args[1])
    (first,) = ast.parse(_ASKED.format(word=word)).body
    assert isinstance(first, ast.Try)
    first.body = [_with(line, *_sides(*sides, _LEAST + zlib.crc32(word.encode()) % _SPAN))]
    (told,) = first.orelse
    assert isinstance(told, ast.Expr)
    assert isinstance(told.value, ast.Call)
    value = sides[1] if _calls(sides[1]) and not _calls(sides[0]) else sides[0]
    told.value.args = [ast.Lambda(ast.arguments([], [], None, [], [], None, []), value)]
    return first


def _with(line: ast.Assert | ast.Expr, left: ast.expr, right: ast.expr) -> ast.stmt:
    """The assertion with these two sides, and without its message."""
    if isinstance(line, ast.Assert):
        return ast.Assert(ast.Compare(left, [ast.Eq()], [right]), None)
    assert isinstance(line.value, ast.Call)
    return ast.Expr(ast.Call(line.value.func, [left, right], []))


def _truth(line: ast.Assert | ast.Expr, word: str) -> ast.Try | None:
    """An assertion that something is true, or is not, asked with the opposite."""
    call = line.value if isinstance(line, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr not in _TURNED or not call.args or _spread(call):
        return None
    (first,) = ast.parse(_TURNED_ROUND.format(word=word, wrong=call.func.attr == "assertTrue")).body
    assert isinstance(first, ast.Try)
    kept = ast.Call(ast.Name(f"{word}_kept", ast.Load()), [call.args[0]], [])
    first.body = [ast.Expr(ast.Call(call.func, [ast.UnaryOp(ast.Not(), kept)], []))]
    return first


def _spread(call: ast.Call) -> bool:
    return any(isinstance(arg, ast.Starred) for arg in call.args)


def _sides(left: ast.expr, right: ast.expr, by: int) -> tuple[ast.expr, ast.expr]:
    """Both sides, with another value on the one that says what is expected."""
    if _calls(right) and not _calls(left):
        return _other(left, by), right
    return left, _other(right, by)


def _calls(one: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) for node in ast.walk(one))


def _other(one: ast.expr, by: int) -> ast.expr:
    """A value like this one, and never equal to it."""
    if isinstance(one, ast.UnaryOp) and isinstance(one.op, ast.USub) and isinstance(one.operand, ast.Constant):
        return ast.UnaryOp(one.op, _other(one.operand, by))
    if isinstance(one, ast.Constant):
        value = one.value
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return ast.Constant(value + by)
        if isinstance(value, str):
            return ast.Constant(f"{value}{by}" if value.isdigit() else f"{value}s{by}")
        if isinstance(value, bytes):
            return ast.Constant(value + b"s%d" % by)
    if isinstance(one, (ast.List, ast.Tuple)) and one.elts and isinstance(one.elts[-1], ast.Constant):
        return type(one)([*one.elts, _other(one.elts[-1], by)], ast.Load())
    return ast.Tuple([one, ast.Constant(f"s{by}")], ast.Load())
