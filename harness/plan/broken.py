"""Test files made to fail, for trials of a check: `broken` after all they do, `bare` without anything else. Pure."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator

from harness.plan.patterns import fits
from harness.plan.protected import TESTS
from harness.plan.scripts import simple_commands

PYTHON = (".py",)
SCRIPT = (".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts")
RUST = (".rs",)
_RUST_TEST_OF = re.compile(r"#\[(?:\w+::)?test\b[^\]]*\](?:\s*#\[[^\]]*\])*\s*(?:pub\s+)?(?:async\s+)?fn\s+(\w+)")
_RUST_TEST = re.compile(r"#\[(?:\w+::)?test\b")
_SKIPS = re.compile(r"skip|xfail|expectedFailure", re.IGNORECASE)
_ELSEWHERE = re.compile(r"importorskip|pytestmark|allow_module_level|__test__|load_tests")
"""What decides for a whole module which of its tests run."""
_TEST = re.compile(r"\bdef (?:test|runTest)")
_COLLECTED = re.compile(r"(?:test.*|.*_test|conftest|__init__)\.py")
_OUTSIDE = re.compile(
    r"^(?:import\b[^'\"]*from\s*|import\s*|(?:const|let|var)\s[^=]*=\s*require\()['\"](?![./])[^'\"]*['\"]\)?.*$",
    re.MULTILINE,
)
_WRONG = {
    "assertEqual": "(1, 2)",
    "assertEquals": "(1, 2)",
    "assertNotEqual": "(1, 1)",
    "assertTrue": "(False,)",
    "assertFalse": "(True,)",
    "assertIs": "(1, None)",
    "assertIsNot": "(None, None)",
    "assertIsNone": "(1,)",
    "assertIsNotNone": "(None,)",
    "assertIn": "(1, ())",
    "assertNotIn": "(1, (1,))",
    "assertIsInstance": "(1, str)",
    "assertNotIsInstance": "(1, int)",
    "assertAlmostEqual": "(1, 2)",
    "assertGreater": "(1, 2)",
    "assertGreaterEqual": "(1, 2)",
    "assertLess": "(2, 1)",
    "assertLessEqual": "(2, 1)",
    "assertRegex": "('a', 'b')",
    "assertCountEqual": "((1,), (2,))",
    "assertListEqual": "([1], [2])",
    "assertDictEqual": "({1: 1}, {1: 2})",
    "assertSetEqual": "({1}, {2})",
    "assertTupleEqual": "((1,), (2,))",
    "assertSequenceEqual": "([1], [2])",
    "assertMultiLineEqual": "('a', 'b')",
    "assertRaises": "(ValueError, int)",
}
"""What each way to compare must not let pass."""
_EQUAL = frozenset(
    {"assertEqual", "assertEquals", "assertListEqual", "assertDictEqual", "assertSetEqual", "assertTupleEqual"}
    | {"assertSequenceEqual", "assertMultiLineEqual", "assertCountEqual"}
)
"""Ways to compare that ask their two arguments whether they are equal."""
_HELPER = """
WORD_lied = []
def WORD_lies(value, depth=0):
    kind = type(value)
    if kind in (int, str, float, bool, bytes, type(None)):
        return False
    if kind in (list, tuple, set, frozenset, dict):
        inside = list(value.values()) if kind is dict else list(value)
        return depth < 4 and any(WORD_lies(one, depth + 1) for one in inside[:50])
    import os, re, sys
    at = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if at is not None:
        near = os.path.relpath(os.path.realpath(at), os.path.realpath(os.getcwd()))
        if near.startswith("..") or re.search(r"(^|/)(tests?/|test_|conftest)|site-packages", near):
            return False
    others = [object(), object()]
    if isinstance(value, (int, float)):
        others = [987654321.25, -123456789.75]
    elif isinstance(value, str):
        others = ["WORD", "no " + "WORD"]
    try:
        return all((value == other) is True for other in others)
    except BaseException:
        return False
def WORD_two(one, other):
    if WORD_lies(one) or WORD_lies(other):
        WORD_lied.append(1)
    return one, other
def WORD_same(one, other):
    WORD_two(one, other)
    return one == other
def WORD(case=None):
    if WORD_lied:
        return
    for name, given in (WRONG):
        compare = getattr(case, name, None)
        if compare is not None:
            try:
                compare(*given)
            except BaseException:
                continue
            return
    try:
        assert len("") == 1
    except AssertionError:
        pass
    else:
        if __debug__:
            return
    RAISES
    raise AssertionError("WORD")
"""
_RAISES = """try:
        with pytest.raises(ZeroDivisionError):
            pass
    except BaseException:
        pass
    else:
        return"""
_RUST = """
#[cfg(test)]
mod WORD {
    #[test]
    fn must_fail() {
        panic!("WORD");
    }
}
"""
_SCRIPT = """
;(function () {
  const word = "WORD"
  const fails = function () {
    const wrong = []
    if (typeof assert !== "undefined") {
      const a = assert
      wrong.push(() => a.strictEqual(1, 2), () => a.equal(1, 2), () => a.deepStrictEqual([1], [2]), () => a.ok(false))
    }
    if (typeof expect !== "undefined") {
      const e = expect
      wrong.push(() => e(1).toBe(2), () => e([1]).toEqual([2]))
    }
    for (const one of wrong) {
      let thrown = false
      try { one() } catch (error) { thrown = true }
      if (!thrown) return
    }
    throw new Error(word)
  }
  const name = "a test that must fail"
  if (typeof test === "function") test(name, fails)
  else if (typeof it === "function") it(name, fails)
  else throw new Error(word)
})()
"""


def collected(path: str) -> bool:
    """Whether a runner of tests loads a file of this name by itself."""
    if path.endswith(SCRIPT):
        return fits(path, TESTS) and not path.endswith(".d.ts")
    return _COLLECTED.fullmatch(path.rpartition("/")[2]) is not None


def aimed(paths: Collection[str], texts: Iterable[str], *, folders: bool = True) -> frozenset[str]:
    """Those of these test files that pieces of shell name by path or module, and by folder when ``folders``."""
    known = set(paths)
    found: set[str] = set()
    for words in (words for text in texts for words in simple_commands(text)):
        for word in words:
            name = word.partition("::")[0].removeprefix("./").rstrip("/")
            if name and not name.startswith("-"):
                found |= _named(name, known, folders=folders)
    return frozenset(found)


def asked(texts: Iterable[str]) -> frozenset[str]:
    """Files that pieces of shell may name by path or module, whether or not they are there."""
    found: set[str] = set()
    for words in (words for text in texts for words in simple_commands(text)):
        for word in words:
            name = word.partition("::")[0].removeprefix("./")
            if name.endswith((*PYTHON, *SCRIPT)):
                found.add(name)
            elif re.fullmatch(r"\w+(?:\.\w+)*", name):
                parts = name.split(".")
                found |= {"/".join(parts[:count]) + ".py" for count in range(1, len(parts) + 1)}
    return frozenset(found)


def _named(name: str, known: set[str], *, folders: bool) -> set[str]:
    found = {path for path in known if path == name or (folders and path.startswith(f"{name}/"))}
    parts = name.split(".") if not found and re.fullmatch(r"\w+(?:\.\w+)+", name) else []
    while parts and not found:
        module = "/".join(parts)
        ends = (f"{module}.py", f"{module}/__init__.py")
        found = {path for path in known if f"/{path}".endswith(tuple(f"/{end}" for end in ends))}
        parts.pop()
    return found


def breakable(path: str, text: str) -> bool:
    """Whether there may be something to make fail in a test file."""
    if path.endswith(RUST):
        return _RUST_TEST.search(text) is not None
    return path.endswith(SCRIPT) or _TEST.search(text) is not None


def altered(path: str, before: str, now: str) -> list[str]:
    """Tests inside of a file of the work itself that are not there any more as they were, by name."""
    if not path.endswith(RUST):
        return []
    left = _inside_of(now)
    return [name for name, body in _inside_of(before).items() if left.get(name) != body]


def _inside_of(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for head in _RUST_TEST_OF.finditer(text):
        at = text.find("{", head.end())
        depth = 0
        for end in range(at, len(text)) if at >= 0 else ():
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            if depth == 0:
                found[head[1]] = " ".join(text[head.start() : end + 1].split())
                break
    return found


def skippers(texts: Iterable[str]) -> frozenset[str]:
    """Functions of these modules that skip, by name: a test that calls one may be left out for its own reasons."""
    found: set[str] = set()
    for text in texts:
        if _SKIPS.search(text) and (module := _module(text)) is not None:
            found |= {one.name for one in ast.walk(module) if isinstance(one, _FUNCTIONS) and _inside(one)}
    return frozenset(found)


def broken(path: str, text: str, word: str, spared: frozenset[str]) -> str:
    """The file with each test failing with ``word`` after all it does, whatever came of that, unless it skips itself
    (``spared`` are names of functions that do); empty when there is nothing to make fail.
    """
    if path.endswith(SCRIPT):
        return text + _SCRIPT.replace("WORD", word)
    if path.endswith(RUST):
        return text + _RUST.replace("WORD", word)
    module = _module(text)
    if module is None:
        return ""
    found = [one for one in _tests(module) if not _left_out(one, spared)]
    for one in found:
        first = [one.args.posonlyargs, one.args.args]
        names = [arg.arg for group in first for arg in group]
        given = "self" if names[:1] == ["self"] else ""
        fails = ast.parse(f"{word}({given})").body
        one.body = [_Asked(word).visit(line) for line in one.body]
        said = one.body[:1] if ast.get_docstring(one) is not None else []
        does = one.body[len(said) :] or [ast.Pass()]
        one.body = [*said, ast.Try(body=does, handlers=[], orelse=[], finalbody=fails)]
    if not found:
        return ""
    used = {one.attr for one in ast.walk(module) if isinstance(one, ast.Attribute)}
    wrong = "".join(f"({name!r}, {given}), " for name, given in _WRONG.items() if name in used)
    raises = _RAISES if re.search(r"\bpytest\.raises\b", text) else ""
    return ast.unparse(ast.fix_missing_locations(module)) + _HELPER.replace("WORD", word).replace(
        "WRONG", wrong
    ).replace("RAISES", raises)


def bare(path: str, text: str, word: str, spared: frozenset[str]) -> str:
    """The names of the same tests, each failing, with nothing of the repository imported."""
    if path.endswith(SCRIPT):
        return "\n".join(_OUTSIDE.findall(text)) + _SCRIPT.replace("WORD", word)
    if path.endswith(RUST):  # what is beside its tests may be what is tested
        return (text if f"/{path}".find("/src/") >= 0 else "") + _RUST.replace("WORD", word)
    module = _module(text)
    if module is None or _ELSEWHERE.search(text):
        return ""
    made: list[str] = []
    for one in module.body:
        if isinstance(one, _FUNCTIONS) and _is_test(one) and not _left_out(one, spared):
            made.append(f"def {one.name}():\n    raise AssertionError({word!r})\n")
        elif isinstance(one, ast.ClassDef):
            lines = [
                f"    def {test.name}(self):\n        raise AssertionError({word!r})\n"
                for test in one.body
                if isinstance(test, _FUNCTIONS) and _is_test(test) and not _left_out(test, spared)
            ]
            if lines:
                base = "(unittest.TestCase)" if one.bases else ""
                made.append(f"class {one.name}{base}:\n{''.join(lines)}")
    return "import unittest\n\n" + "\n".join(made) if made else ""


class _Asked(ast.NodeTransformer):
    """Has each comparison of two values look first whether one of them agrees with whatever it is compared with."""

    def __init__(self, word: str) -> None:
        self._word = word

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq):
            return node
        return self._call("same", [node.left, node.comparators[0]])

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        compares = isinstance(node.func, ast.Attribute) and node.func.attr in _EQUAL
        if compares and len(node.args) > 1 and not any(isinstance(arg, ast.Starred) for arg in node.args[:2]):
            node.args = [ast.Starred(self._call("two", node.args[:2]), ast.Load()), *node.args[2:]]
        return node

    def _call(self, name: str, args: list[ast.expr]) -> ast.Call:
        return ast.Call(ast.Name(f"{self._word}_{name}", ast.Load()), args, [])


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _module(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _tests(module: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for one in module.body:
        if isinstance(one, _FUNCTIONS) and _is_test(one):
            yield one
        elif isinstance(one, ast.ClassDef):
            yield from (test for test in one.body if isinstance(test, _FUNCTIONS) and _is_test(test))


def _is_test(one: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return one.name.startswith("test") or one.name == "runTest"


def _inside(one: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function's own body speaks of skipping."""
    return any(_SKIPS.search(ast.unparse(line)) for line in one.body)


def _left_out(one: ast.FunctionDef | ast.AsyncFunctionDef, spared: frozenset[str]) -> bool:
    if _inside(one):
        return True
    names = {n.id for n in ast.walk(one) if isinstance(n, ast.Name)}
    names |= {n.attr for n in ast.walk(one) if isinstance(n, ast.Attribute)}
    return not names.isdisjoint(spared)
