"""Which files of a repository decide whether the work is done, and which new ones would decide it instead. Pure.

Protected are the tests, the configuration of tools that check, CI files and the check scripts that existed when the
session began. A new test is nobody's business; a new file that a test runner reads or imports before a protected one
is a *shadow*.
"""

from __future__ import annotations

import os.path
import re
import shlex
import sys
from collections.abc import Collection
from dataclasses import dataclass

from harness.plan import patterns

TESTS = (
    "test/**",
    "tests/**",
    "**/test/**",
    "**/tests/**",
    "**/__tests__/**",
    "**/__snapshots__/**",
    "spec/**",
    "specs/**",
    "e2e/**",
    "test_*.py",
    "*_test.py",
    "tests.py",
    "conftest.py",
    "*_test.go",
    "*.test.*",
    "*.spec.*",
    "*_spec.rb",
    "*Test.java",
    "*Tests.java",
    "*Test.kt",
    "*Tests.cs",
    "*.bats",
)
CONFIGURATION = (
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "tox.ini",
    "tox.toml",
    "setup.cfg",
    "pyproject.toml",
    "noxfile.py",
    ".coveragerc",
    "mypy.ini",
    ".mypy.ini",
    "ruff.toml",
    ".ruff.toml",
    ".flake8",
    "pyrightconfig.json",
    "sitecustomize.py",
    "usercustomize.py",
    "Makefile",
    "makefile",
    "GNUmakefile",
    "*.mk",
    "justfile",
    "Justfile",
    "Taskfile.yml",
    "package.json",
    ".npmrc",
    "jest.config.*",
    "vitest.config.*",
    "vitest.workspace.*",
    "karma.conf.*",
    "playwright.config.*",
    "cypress.config.*",
    ".mocharc*",
    "babel.config.*",
    ".babelrc*",
    ".eslintrc*",
    "eslint.config.*",
    "Cargo.toml",
    ".cargo/**",
    "phpunit.xml*",
    ".rspec",
)
CI = (
    ".github/workflows/**",
    ".github/actions/**",
    ".gitlab-ci.yml",
    ".circleci/**",
    ".travis.yml",
    ".buildkite/**",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "Jenkinsfile",
    ".pre-commit-config.yaml",
)
IN_PARTS = frozenset({"pyproject.toml", "package.json", "setup.cfg", "Cargo.toml"})
"""Files of which only the parts that say how to check are protected: `check_settings` knows which."""

_MAKE = frozenset({"Makefile", "makefile", "GNUmakefile"})
_JUST = frozenset({"justfile", "Justfile", ".justfile"})
_RUNNERS = frozenset(
    {"pytest", "_pytest", "py", "pluggy", "iniconfig", "nose", "nose2", "coverage", "pytest_cov", "xdist", "hypothesis"}
)
_MODULES = frozenset(sys.stdlib_module_names) | _RUNNERS | {"sitecustomize", "usercustomize", "conftest"}
_IMPORTED = (".py", ".so", ".pyd", ".pyc")
_INTERPRETERS = re.compile(r"(?:python|pypy)[\d.]*|(?:ba|da|z|k)?sh|node|deno|bun|ruby|perl|php|Rscript|lua")
_CHECK_WORDS = re.compile(r"check|test|verif|valid|lint|spec|accept|(?:^|[_\-./])ci(?:[_\-./]|$)", re.IGNORECASE)
_SCRIPT_FOLDERS = frozenset({"ci", ".ci", "checks", "hack", "scripts", "script", "tools", "qa"})


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for one session. ``commands`` are its done criteria, ``protect`` and ``free`` further patterns of its
    user (``free`` wins).
    """

    commands: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    free: tuple[str, ...] = ()


def chosen(base: Collection[str], rules: Rules) -> frozenset[str]:
    """Those of the commit's files that are protected."""
    named = scripts(rules.commands)
    found = {path for path in base if _decides(path, rules) or path in named}
    return frozenset(path for path in found if not patterns.fits(path, rules.free))


def _decides(path: str, rules: Rules) -> bool:
    return any(patterns.fits(path, known) for known in (TESTS, CONFIGURATION, CI, rules.protect))


def scripts(commands: Collection[str]) -> frozenset[str]:
    """Scripts that the commands run to check something: what a command runs as its program and is a file of the
    repository, or gives to an interpreter, when its name or folder says that it checks.

    A production program that a command merely runs (``python app.py --selftest``) is not among them.
    """
    found: set[str] = set()
    for command in commands:
        for words in _simple_commands(command):
            program, *rest = words
            if "/" in program and not program.startswith("/"):
                name = os.path.normpath(program)
                if name.endswith((".sh", ".bash")) or _checks(name):
                    found.add(name)
            elif _INTERPRETERS.fullmatch(os.path.basename(program)):
                script = next((word for word in rest if not word.startswith("-")), "")
                if script and "-m" not in rest[: rest.index(script)] and "-c" not in rest[: rest.index(script)]:
                    name = os.path.normpath(script)
                    if _checks(name) or name.endswith((".sh", ".bash")):
                        found.add(name)
    return frozenset(found)


def _checks(name: str) -> bool:
    return bool(_CHECK_WORDS.search(name)) or bool(_SCRIPT_FOLDERS & set(name.split("/")[:-1]))


def _simple_commands(command: str) -> list[list[str]]:
    """The words of each simple command, without leading assignments; [] for what is no shell."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return []
    made: list[list[str]] = [[]]
    for word in words:
        if word and set(word) <= set("();<>|&"):
            made.append([])
        elif made[-1] or not re.fullmatch(r"\w+=.*", word, re.DOTALL):
            made[-1].append(word)
    return [part for part in made if part]


@dataclass(frozen=True, slots=True)
class New:
    """A name in the worktree that the commit does not have. ``text`` is the beginning of a file, where it matters."""

    path: str
    folder: bool = False
    text: str = ""


def shadows(base: Collection[str], protected: Collection[str], new: Collection[New], rules: Rules) -> list[str]:
    """Those of the new names that a check would read or import before, or instead of, what is protected."""
    known = set(base)
    around = set(folders_around(protected))
    kinds = {os.path.splitext(path)[1] for path in protected if patterns.fits(path, TESTS)}
    return sorted(
        item.path
        for item in new
        if not patterns.fits(item.path, rules.free) and _shadows(item, known, around, frozenset(protected), kinds)
    )


def _shadows(item: New, known: set[str], around: set[str], protected: frozenset[str], kinds: set[str]) -> bool:
    folder, _, name = item.path.rpartition("/")
    stem, suffix = os.path.splitext(name)
    if folder not in around and folder not in (".cargo", ".github/workflows"):
        return False
    python = ".py" in kinds
    script = bool(kinds & {".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts"})
    beside = {path.rpartition("/")[2] for path in known if path.rpartition("/")[0] == folder}
    if name in _MAKE or name in _JUST:
        return bool(beside & (_MAKE if name in _MAKE else _JUST))
    if item.folder:
        return (
            (python and (stem in _MODULES or f"{folder}/{name}.py".lstrip("/") in protected))
            or (script and name == "__mocks__")
            or name == ".cargo"
        )
    if python and suffix in _IMPORTED:
        module = name.partition(".")[0]
        twin = f"{folder}/{module}.py".lstrip("/")
        if module in _MODULES or (suffix != ".py" and twin in protected):
            return True
        if name == "__init__.py" and any(path.rpartition("/")[0] == folder for path in protected):
            return True
    if name.endswith("_test.go"):
        return "func TestMain(" in item.text
    if name in ("package.json", ".npmrc") or name.startswith(("babel.config.", ".babelrc")):
        return script
    return patterns.fits(item.path, CONFIGURATION) and bool(kinds)


def folders_around(protected: Collection[str]) -> list[str]:
    """The folders that protected files lie in and every folder above them, the top (empty) first."""
    found = {""}
    for path in protected:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(found)
