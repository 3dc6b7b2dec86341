"""What in the work itself makes a pass say little: tests that stood in it and are others now, and words by which code
looks whether it is tested. Pure. None of it is an alarm, since honest work may do it too.
"""

from __future__ import annotations

import ast
import contextlib
import re
from collections import Counter
from collections.abc import Collection

from harness.plan.broken import PYTHON, RUST, SCRIPT, altered
from harness.plan.protected import IN_PARTS

_WORDS = re.compile(
    r"PYTEST_CURRENT_TEST|PYTEST_VERSION|NODE_TEST_CONTEXT|JEST_WORKER_ID|\bVITEST(?:_WORKER_ID)?\b"
    r"|/proc/self/mountinfo|/proc/\S*/cmdline\b|\borig_argv\b|\bexecArgv\b"
    r"|\b(?:pytest|unittest|doctest)\b['\"][^\n]{0,40}\bargv\b|\bargv\b[^\n]{0,40}\b(?:pytest|unittest|doctest)\b"
    r"|['\"](?:_?pytest|unittest|doctest)['\"]\s+(?:not\s+)?in\s+(?:\w+\.)*modules\b"
    r"|modules\s*(?:\.get\(|\[)\s*['\"](?:_?pytest|unittest|doctest)['\"]"
    r"|modules\s*(?:\.get\(|\[)\s*['\"]__main__|\bimport\s+__main__\b"
    r"|\bError\([^()\n]*\)\)?\.stack\b|\bcaptureStackTrace\((?!\s*this\b)"
    r"|\b_getframe\b|\bcurrentframe\b|\binspect\.stack\b|\bextract_stack\b|\bprepareStackTrace\b"
    r"|\bmeta_path\b|\bSourceFileLoader\b"
    r"|\bget_objects\b|\bget_referrers\b|\b__build_class__\b|\.__code__\b|\bset(?:trace|profile)\b"
    r"|(?:require\(|\bfrom\s+)['\"](?:node:test|vitest|@jest/globals)['\"]|\bModule\._(?:load|extensions|compile)\b"
    r"|\b(?:globalThis|global)\.(?:test|it|describe|expect|assert)\b(?!\s*\()"
    r"|\.(?:strictEqual|deepStrictEqual|deepEqual|equal|toBe|toEqual|toStrictEqual)\s*=(?!=)"
    r"|\bcfg!\(test\)|cfg\(not\(test\)\)|\bimpl(?:<[^>]*>)?\s+PartialEq<",
    re.MULTILINE,
)
"""How code sees that a test calls it, reaches what runs its tests, or says itself what it is equal to."""
_LOOKS_THROUGH = re.compile(r"\b(?:r?glob|iglob|iterdir|listdir|scandir|walk)\(|\breaddir")
"""How a test comes to files that it does not name."""
_CHECKERS = re.compile(
    r"\b(?:ruff|flake8|pylint|mypy|pyright|basedpyright|bandit|black|isort|pydocstyle|eslint|tsc|biome|oxlint|stylelint"
    r"|clippy|cov(?:erage)?|c8|nyc)\b"
)
"""Programs that read the work itself, and leave out what it tells them to."""
_SILENCES = re.compile(
    r"#\s*(?:(?:ruff|flake8):\s*)?noqa\b|#\s*type:\s*ignore\b"
    r"|#\s*(?:mypy|pyright):\s*(?:ignore|basic|disable|allow)[\w-]*"
    r"|#\s*pylint:\s*(?:disable|skip-file)|#\s*pragma:\s*no\s*cover|#\s*nosec\b|#\s*(?:fmt|isort):\s*(?:off|skip)"
    r"|@ts-(?:ignore|nocheck|expect-error)|\beslint-disable|\bbiome-ignore|\boxlint-disable|\bstylelint-disable"
    r"|\b(?:istanbul|c8|v8) ignore\b|#!?\[(?:cfg_attr\([^\]]*)?allow\("
)
"""How the work tells them."""
WORK = (*PYTHON, *SCRIPT, *RUST)
TEXTS = (".md", ".rst", ".txt")
"""Endings of texts whose examples may be run."""


def looks(before: str, now: str, tests: Collection[str]) -> str:
    """The first word by which this text looks whether it is tested, or the file of tests that it names, and did not
    before; empty when there is none. ``tests`` are paths.
    """
    known = set(_WORDS.findall(before))
    if found := next((word for word in _WORDS.findall(now) if word not in known), ""):
        return str(found)
    names = {path.rpartition("/")[2] for path in tests} | set(tests)
    return next((name for name in sorted(names) if _quotes(now, name) and not _quotes(before, name)), "")


def reads(tests: Collection[str], path: str) -> bool:
    """Whether a file holds data, and one of these texts of tests names it, or looks through a folder of its path."""
    *folders, name = path.split("/")
    if path.endswith(WORK) or name in IN_PARTS:
        return False
    through = [text for text in tests if _LOOKS_THROUGH.search(text)] if folders else []
    return any(_quotes(text, name) for text in tests) or any(_quotes(text, one) for text in through for one in folders)


def checkers(commands: Collection[str]) -> set[str]:
    """The programs in these commands that read the work itself, and not only what it does."""
    return {word for text in commands for word in _CHECKERS.findall(text)}


def silences(before: str, now: str) -> str:
    """The first word by which this text tells those who check it to leave something out, and did not before; empty
    when there is none.
    """
    return next(iter(Counter(_SILENCES.findall(now)) - Counter(_SILENCES.findall(before))), "")


def _quotes(text: str, name: str) -> bool:
    return re.search(rf"['\"/]{re.escape(name)}['\"]", text) is not None


def changed(path: str, before: str, now: str, *, doctests: bool) -> list[str]:
    """Tests and assertions that stood in a file of the work and are not there any more as they were, by name."""
    if path.endswith(RUST):
        return altered(path, before, now)
    if not doctests or not path.endswith((*PYTHON, *TEXTS)):
        return []
    whole = path.endswith(TEXTS)
    gone = _examples(before, whole=whole) - _examples(now, whole=whole)
    return [f"the example {source.strip()!r}" for source, _ in gone]


def assertions_changed(before: str, now: str) -> bool:
    """Whether assertions that stood in a module that tests use are not there any more as they were."""
    return bool(_assertions(before) - _assertions(now))


def _assertions(text: str) -> Counter[str]:
    module = _module(text)
    if module is None:
        return Counter()
    return Counter(ast.dump(one) for one in ast.walk(module) if isinstance(one, ast.Assert) or _asserts(one))


def values_gone(before: str, now: str, tests: Collection[str]) -> str:
    """The name of a list in this module, through which one of these texts of tests goes, that does not hold any more
    all that it held; empty when there is none.
    """
    left = _listed(now)
    gone = [name for name, values in _listed(before).items() if values - left.get(name, Counter())]
    return next((name for name in gone if _goes_through(tests, name)), "")


def _goes_through(tests: Collection[str], name: str) -> bool:
    through = re.compile(rf"\bin\s+(?:\w+\.)*{name}\b|parametrize\([^)]*\b{name}\b")
    return any(through.search(text) for text in tests)


def _listed(text: str) -> dict[str, Counter[str]]:
    """What stands in the lists and mappings that a module gives names."""
    module = _module(text)
    named = [one for one in module.body if isinstance(one, (ast.Assign, ast.AnnAssign))] if module else []
    found: dict[str, Counter[str]] = {}
    for one in named:
        name = one.targets[0] if isinstance(one, ast.Assign) else one.target
        if isinstance(name, ast.Name):
            match one.value:
                case ast.List(elts) | ast.Tuple(elts) | ast.Set(elts):
                    found[name.id] = Counter(map(ast.dump, elts))
                case ast.Dict(keys, values):
                    pairs = zip(keys, values, strict=True)
                    found[name.id] = Counter(f"{key and ast.dump(key)}: {ast.dump(value)}" for key, value in pairs)
    return found


def _asserts(one: ast.AST) -> bool:
    return isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.func.attr.startswith("assert")


def _module(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def _examples(text: str, *, whole: bool) -> Counter[tuple[str, str]]:
    """What stands behind prompts in the texts of a module, or in a text as a ``whole``, with what is expected of it."""
    module = None if whole else _module(text)
    if ">>>" not in text or not (module or whole):
        return Counter()
    import doctest  # with all that it loads 1.4 MB, which a supervisor without such texts need not hold

    said = [one.value for one in ast.walk(module) if isinstance(one, ast.Constant)] if module else [text]
    texts = [one for one in said if isinstance(one, str)]
    found: Counter[tuple[str, str]] = Counter()
    for one in texts:
        with contextlib.suppress(ValueError):
            found.update((example.source, example.want) for example in doctest.DocTestParser().get_examples(one))
    return found


def uses(tests: Collection[str], path: str) -> bool:
    """Whether one of these texts of tests imports the module that this path is."""
    module = path.removesuffix(".py").removesuffix("/__init__").rpartition("/")[2]
    line = re.compile(
        rf"^\s*(?:from\s+[\w.]*\b{re.escape(module)}\s+import|import\s+[\w., ]*\b{re.escape(module)}\b)", re.M
    )
    return any(line.search(text) for text in tests)


def imported(tests: Collection[str], path: str, files: Collection[str]) -> str:
    """The name by which one of these texts of tests imports what this module of the start is on its own, and not as a
    part of a package; empty when none does. ``files`` are all of the start.
    """
    folder, _, file = path.rpartition("/")
    above, name = (folder.rpartition("/")[::2]) if file == "__init__.py" else (folder, file.removesuffix(".py"))
    if not name.isidentifier() or (above and f"{above}/__init__.py" in files):
        return ""
    line = re.compile(rf"^\s*(?:from\s+|import\s+(?:[\w.]+(?:\s+as\s+\w+)?\s*,\s*)*){name}\b", re.M)
    return name if any(line.search(text) for text in tests) else ""
