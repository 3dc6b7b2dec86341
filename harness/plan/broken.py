"""Test files made to fail, for trials of a check: `broken` after all they do, `bare` without anything else. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from harness.plan import python_tests
from harness.plan.patterns import fits
from harness.plan.protected import TESTS
from harness.plan.scripts import simple_commands

PYTHON = (".py",)
SCRIPT = (".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts")
RUST = (".rs",)
_RUST_TEST_OF = re.compile(r"#\[(?:\w+::)?test\b[^\]]*\](?:\s*#\[[^\]]*\])*\s*(?:pub\s+)?(?:async\s+)?fn\s+(\w+)")
_RUST_TEST = re.compile(r"#\[(?:\w+::)?test\b")
_TEST = re.compile(r"\bdef (?:test|runTest)")
_COLLECTED = re.compile(r"(?:test.*|.*_test|conftest|__init__)\.py")
_NOT_RUN = frozenset({"--deselect", "--ignore", "--ignore-glob", "-c", "--rootdir", "--confcutdir", "-k", "--cov"})
"""Options whose values are no tests that run."""
_OUTSIDE = re.compile(
    r"^(?:import\b[^'\"]*from\s*|import\s*|(?:const|let|var)\s[^=]*=\s*require\()['\"](?![./])[^'\"]*['\"]\)?.*$",
    re.MULTILINE,
)
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
        for before, word in zip(["", *words], words, strict=False):
            name = word.partition("::")[0].removeprefix("./").rstrip("/")
            if name and not name.startswith("-") and before not in _NOT_RUN:
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


def broken(path: str, text: str, word: str, spared: frozenset[str], mine: frozenset[str] = frozenset()) -> str:
    """The file with each test failing with ``word`` after all it does, whatever came of that, unless it skips itself
    (``spared`` are names of functions that do); empty when there is nothing to make fail. ``mine`` are files of the
    work that the agent changed: where one of them replaced what runs tests, nothing fails.
    """
    if path.endswith(SCRIPT):
        return text + _SCRIPT.replace("WORD", word)
    if path.endswith(RUST):
        return text + _RUST.replace("WORD", word)
    return python_tests.broken(path, text, word, spared, mine)


def bare(path: str, text: str, word: str, spared: frozenset[str]) -> str:
    """The names of the same tests, each failing, with nothing of the repository imported."""
    if path.endswith(SCRIPT):
        return "\n".join(_OUTSIDE.findall(text)) + _SCRIPT.replace("WORD", word)
    if path.endswith(RUST):  # what is beside its tests may be what is tested
        return (text if f"/{path}".find("/src/") >= 0 else "") + _RUST.replace("WORD", word)
    return python_tests.bare(path, text, word, spared)
