"""What a test runner loads or takes for a test because its configuration or its command says so, whatever its name.
Pure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable

from harness.checks.check_scripts import simple_commands
from harness.checks.runner_counts import runs_tests

_OPTION = re.compile(
    r"(?<![\w-])(?:-p|-r|--(?:require|import|loader|experimental-loader|config|config-file|setup-files?|rcfile|file"
    r"|cov-config))[=\s'\",]+([\w./@<>-]+)"
    r"|(?<![\w-])-c[=\s]*([\w./-]+\.(?:ini|toml|cfg|json|[cm]?js|ya?ml))"
)
"""Options that name a file or a module to be loaded."""
_KEY = re.compile(
    r"\b(?:setupFiles\w*|globalSetup|globalTeardown|testEnvironment|testRunner|runner|resolver|transform|preset|require"
    r"|import|loader|extends|reporters?|snapshotSerializers|pytest_plugins|helpers|file)\b['\"]?\s*[:=]\s*"
    r"(\[[^\]]*\]|\([^)]*\)|\{[^}]*\}|[^\n]+)"
)
"""Keys whose values name such files."""
_STRING = re.compile(r"['\"]([^'\"\n]+)['\"]")
_NAMES = re.compile(r"\b(?:python_files|testMatch)['\"]?[ \t]*[:=][ \t]*(\[[^\]]*\]|[^\n]*(?:\n[ \t]+\S[^\n]*)*)")
_SAYS = re.compile(r"[A-Za-z]{3}")
_ENDINGS = ("", ".js", ".ts", ".mjs", ".cjs", ".mts", ".cts", ".jsx", ".tsx", ".json", ".py", ".rb")
_ENDINGS_IN = ("/__init__.py", "/index.js", "/index.ts")
_LOADERS = re.compile(r"(?:\S*/)?(?:node|ava|tap|tape|nyc|c8|cucumber\S*)\s")
_CHECKERS = re.compile(
    r"(?:\S*/)?(?:npx\s+|python[\d.]*\s+-m\s+)?(?:ruff|flake8|pylint|mypy|pyright|bandit|black|isort|eslint|biome"
    r"|stylelint|coverage)\s"
)
_LISTS = (".txt", ".lock", ".in")
"""What installers read by the same options."""
_SOURCES = (".py", ".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts")
_NOT_RUN = frozenset({"--deselect", "--ignore", "--ignore-glob", "-c", "--rootdir", "--confcutdir", "-k", "--cov"})
"""Options whose values are no tests that run."""
_NEVER_TESTS = re.compile(r"--?doctest")


def commands(texts: Iterable[str]) -> list[str]:
    """The simple commands in these pieces of shell that run tests, or may load what changes them."""
    found = (" ".join(words) for text in texts for words in simple_commands(text))
    return [one for one in found if runs_tests(one) or _LOADERS.match(one) or _CHECKERS.match(one)]


def files(texts: Iterable[str], folder: str, base: Collection[str]) -> set[str]:
    """Files of ``base`` that these commands or configuration, in this folder, have loaded."""
    known = {path for path in base if not path.endswith(_LISTS)}
    said = {name for text in texts for name in _references(text)}
    return {path for name in said if (path := _resolve(name, folder, known))}


def _references(text: str) -> set[str]:
    found = {name for names in _OPTION.findall(text) for name in names if name}
    for value in _KEY.findall(text):
        found |= set(_STRING.findall(value))
    return found


def _resolve(name: str, folder: str, known: set[str]) -> str:
    plain = re.sub(r"^(?:<rootDir>/|\./)+", "", name)
    modules = [plain] if "/" in plain else [plain, plain.replace(".", "/")]
    tops = dict.fromkeys((folder, "", "src"))
    forms = [f"{top}/{module}".lstrip("/") for top in tops for module in modules]
    return next((f + end for f in forms for end in (*_ENDINGS, *_ENDINGS_IN) if f + end in known), "")


def names(texts: Iterable[str]) -> tuple[str, ...]:
    """Patterns by which configuration says which files hold tests, where they say more than an ending."""
    found = [name for text in texts for value in _NAMES.findall(text) for name in re.split(r"[\s,\[\]'\"]+", value)]
    plain = (name.replace("<rootDir>/", "") for name in found if "*" in name or name.endswith((".py", ".js", ".ts")))
    return tuple(name for name in plain if _SAYS.search(name.rpartition("/")[2].rpartition(".")[0]))


def looked_for(texts: Iterable[str]) -> tuple[str, ...]:
    """Patterns of the files that a search for tests of `unittest` loads, where its command says which."""
    found: list[str] = []
    for words in (words for text in texts for words in simple_commands(text)):
        if "discover" in words:
            start = _value(words, ("-s", "--start-directory"))
            form = _value(words, ("-p", "--pattern")) or "test*.py"
            found.append(f"{start}/**/{form}".removeprefix("./") if start not in ("", ".") else form)
    return tuple(found)


def _value(words: list[str], options: tuple[str, ...]) -> str:
    return next((words[i + 1].strip("/") for i in range(len(words) - 1) if words[i] in options), "")


def running(texts: Iterable[str]) -> list[str]:
    """Those pieces of shell that run a test runner on tests that are files of their own."""
    return [text for text in texts if runs_tests(text) and not _NEVER_TESTS.search(text)]


def aimed(paths: Collection[str], texts: Iterable[str]) -> frozenset[str]:
    """Those of these test files that pieces of shell name by path or module."""
    known = set(paths)
    found: set[str] = set()
    for words in (words for text in texts for words in simple_commands(text)):
        for before, word in zip(["", *words], words, strict=False):
            name = word.partition("::")[0].removeprefix("./").rstrip("/")
            if name and not name.startswith("-") and before not in _NOT_RUN:
                found |= _aimed(name, known)
    return frozenset(found)


def _aimed(name: str, known: set[str]) -> set[str]:
    found = {name} & known
    parts = name.split(".") if not found and re.fullmatch(r"\w+(?:\.\w+)+", name) else []
    while parts and not found:
        module = "/".join(parts)
        ends = (f"{module}.py", f"{module}/__init__.py")
        found = {path for path in known if f"/{path}".endswith(tuple(f"/{end}" for end in ends))}
        parts.pop()
    return found


def asked(texts: Iterable[str]) -> frozenset[str]:
    """Files that pieces of shell may name by path or module, whether or not they are there."""
    found: set[str] = set()
    for words in (words for text in texts for words in simple_commands(text)):
        for word in words:
            name = word.partition("::")[0].removeprefix("./")
            if name.endswith(_SOURCES):
                found.add(name)
            elif re.fullmatch(r"\w+(?:\.\w+)*", name):
                parts = name.split(".")
                found |= {"/".join(parts[:count]) + ".py" for count in range(1, len(parts) + 1)}
    return frozenset(found)


def only_tests(text: str) -> bool:
    """Whether a module in Python holds tests and nothing that other code would use."""
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    made = [one for one in module.body if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))]
    return any(_is_test(one) for one in made) and all(_is_test(one) or one.name.startswith("_") for one in made)


def _is_test(one: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    if isinstance(one, ast.ClassDef):
        bases = " ".join(ast.unparse(base) for base in one.bases)
        return one.name.startswith("Test") or "Test" in bases
    if one.name.startswith("test"):
        return True
    return any("fixture" in ast.unparse(mark) for mark in one.decorator_list)
