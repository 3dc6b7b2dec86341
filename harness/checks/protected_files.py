"""Which files of a repository decide whether the work is done, and which new ones would decide it instead. Pure.

Protected are the tests, the configuration of tools that check, CI files and the check scripts that existed when the
session began. A new test is nobody's business; a new file that a test runner reads or imports before a protected one
is a *shadow*.
"""

from __future__ import annotations

import os.path
import re
import sys
from collections.abc import Collection
from dataclasses import dataclass

from harness.checks.check_scripts import Named, named, simple_commands
from harness.domain import path_patterns

_CODE = ("c", "cc", "cpp", "cxx", "go", "rb", "rs", "sh", "bash", "pl", "lua", "exs", "dart", "ml", "zig", "js", "mjs")
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
    *(f"{form}.{ending}" for ending in _CODE for form in ("test_*", "*_test", "*_tests", "test-*", "*-test")),
    "t/*.t",
    "t/**/*.t",
    "*.test.*",
    "*.spec.*",
    "*_spec.rb",
    *(f"{form}.{ending}" for ending in ("java", "kt", "cs", "scala", "php", "swift") for form in ("*Test", "*Tests")),
    "*Spec.scala",
    "*Spec.hs",
    "*.bats",
)
DATA = (
    "**/testdata/**",
    "**/test_data/**",
    "**/test-data/**",
    "**/fixtures/**",
    "**/__fixtures__/**",
    "**/golden/**",
    "**/goldens/**",
    "*.golden",
    "*.snap",
)
"""What tests compare with, where it lies outside their folders."""
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
    ".justfile",
    "Taskfile.yml",
    "Taskfile.yaml",
    "Rakefile",
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
    "deno.json",
    "composer.json",
    "vite.config.*",
    ".cargo/**",
    "phpunit.xml*",
    ".rspec",
    ".shellspec",
    ".taprc",
    "ava.config.*",
    "wdio.conf.*",
    "web-test-runner.config.*",
    "bunfig.toml",
    ".config/nextest.toml",
    ".golangci.*",
    ".rubocop.yml",
    "clippy.toml",
    ".clippy.toml",
    "biome.json",
    ".pylintrc",
    "pylintrc",
    ".nycrc*",
    "nyc.config.*",
    ".c8rc*",
    ".stylelintrc*",
    "stylelint.config.*",
    ".oxlintrc.json",
    ".importlinter",
    ".bandit",
    ".shellcheckrc",
    ".yamllint*",
    "phpstan.neon*",
    "psalm.xml*",
    ".luacheckrc",
    ".swiftlint.yml",
    "checkstyle.xml",
    ".swcrc",
    "dart_test.yaml",
    "nightwatch.conf.*",
    "codecept.conf.*",
    ".clang-tidy",
)
OF_CHECKERS = {
    "ruff": ("ruff.toml", ".ruff.toml", "pyproject.toml"),
    "flake8": (".flake8", "setup.cfg", "tox.ini"),
    "mypy": ("mypy.ini", ".mypy.ini", "setup.cfg", "pyproject.toml"),
    "pyright": ("pyrightconfig.json", "pyproject.toml"),
    "pylint": (".pylintrc", "pylintrc", ".pylintrc.toml", "setup.cfg", "pyproject.toml"),
    "black": ("pyproject.toml",),
    "isort": (".isort.cfg", "setup.cfg", "pyproject.toml"),
    "bandit": (".bandit",),
    "eslint": (".eslintrc*", "eslint.config.*", ".eslintignore"),
    "prettier": (".prettierrc*", "prettier.config.*", ".prettierignore"),
    "stylelint": (".stylelintrc*", "stylelint.config.*", ".stylelintignore"),
    "biome": ("biome.json", "biome.jsonc"),
    "tsc": ("tsconfig.json",),
    "rubocop": (".rubocop.yml",),
    "golangci-lint": (".golangci.*",),
    "yamllint": (".yamllint*",),
    "shellcheck": (".shellcheckrc",),
    "rg": (".rgignore", ".ignore"),
}
"""Programs that check, and their settings: a new file of such a name, in any folder, comes before those above it."""
SETUP = ("jest.setup.*", "vitest.setup.*", "setupTests.*", "setup-jest.*", "setup-tests.*")
"""What runners of JavaScript load before tests where their configuration says so: by custom of these names."""
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
HELPER = re.compile(
    r"(?:^|_)(?:test_?(?:ing|s|utils?|helpers?)?|helpers?|asserts?|assertions?|fixtures?|matchers?)(?:_|$)"
)
"""Names, without their ending, of what may help tests from outside their folders."""
EXPECTED = re.compile(
    r"(?:^|[/_.-])(?:expect(?:ed|ations?)?|goldens?|baseline|oracle|truth|wanted|(?:test[_-]?)?cases|vectors|answers"
    r"|approved|verified|snapshots?|cassettes?)"
    r"(?:[/_.-][^/]*)?\.(?:txt|jsonl?|ya?ml|[ct]sv|xml|out|html|sql|dat|bin)$"
)
"""Data that is expected, by its name: what a check or a test that names it compares with."""
_OF_TESTS = re.compile(r"^\s*(?:import|from)\s+(?:unittest|pytest|hypothesis)\b", re.MULTILINE)
VITE = frozenset(f"vite.config.{ending}" for ending in ("js", "ts", "mjs", "mts", "cjs", "cts"))
IN_PARTS = VITE | {"pyproject.toml", "package.json", "setup.cfg", "Cargo.toml", "deno.json", "composer.json"}
"""Files of which only the parts that say how to check are protected: `check_settings` knows which."""

_MAKE = frozenset({"Makefile", "makefile", "GNUmakefile"})
_JUST = frozenset({"justfile", "Justfile", ".justfile"})
_RUNNERS = frozenset(
    {"pytest", "_pytest", "py", "pluggy", "iniconfig", "nose", "nose2", "coverage", "pytest_cov", "xdist", "hypothesis"}
    | {"numpy", "pandas", "hamcrest", "assertpy", "testfixtures", "deepdiff", "dirty_equals", "parameterized", "ddt"}
    | {"freezegun", "time_machine", "pyfakefs", "requests_mock", "syrupy", "snapshottest", "approvaltests", "behave"}
)
"""What runs tests, or compares and prepares for them, wherever it comes from."""
_MODULES = frozenset(sys.stdlib_module_names) | _RUNNERS | {"sitecustomize", "usercustomize", "conftest"}
_DECIDING = (*TESTS, *DATA, *CONFIGURATION, *SETUP, *CI)
_STEERS = re.compile(
    r"^\s*(?:export\s+)?(?:PYTEST|PYTHON|COVERAGE|HYPOTHESIS|TOX|NOX|UV_|MYPY|RUFF|NODE_|npm_config|JEST|VITEST|CARGO"
    r"|RUST|GO|MAKE|PATH|LD_|BASH_ENV|ENV|SHELL|RUBYOPT|PERL5|JAVA_TOOL)\w*\s*=",
    re.MULTILINE | re.IGNORECASE,
)
"""Variables by which a runner of tests, or what runs it, does something else."""
_IMPORTED = (".py", ".so", ".pyd", ".pyc")


@dataclass(frozen=True, slots=True)
class Rules:
    """What holds for one session. ``commands`` are its done criteria, ``protect`` and ``free`` further patterns of its
    user (``free`` wins).
    """

    commands: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    free: tuple[str, ...] = ()


def chosen(
    base: Collection[str], rules: Rules, run: Named | None = None, helpers: Collection[str] = ()
) -> frozenset[str]:
    """Those of the commit's files that are protected. ``run`` is what the checks come to run and read in, by
    their own words when it is not given; ``helpers``: what helps tests from elsewhere.
    """
    run = run or named(rules.commands, lambda _: "")
    named_by = run.runs | run.env
    found = {path for path in base if _decides(path, rules) or path in named_by or run.reads_in(path)}
    found |= set(helpers)
    return frozenset(path for path in found if not path_patterns.fits(path, rules.free))


def may_help(path: str) -> bool:
    """Whether a file's name says that it may help tests: then its text decides."""
    name = path.rpartition("/")[2]
    return name.endswith(".py") and HELPER.search(name.removesuffix(".py")) is not None


def helps(text: str) -> bool:
    """Whether a file of such a name is about tests: what the code under test imports is none."""
    return _OF_TESTS.search(text) is not None


def _decides(path: str, rules: Rules) -> bool:
    return path_patterns.fits(path, _DECIDING) or path_patterns.fits(path, rules.protect)


@dataclass(frozen=True, slots=True)
class New:
    """A name in the worktree that the commit does not have. ``text`` is the beginning of a file, or of the entry points
    in a folder, where it matters; ``before``: it is found by its name before a program of the system.
    """

    path: str
    folder: bool = False
    text: str = ""
    before: bool = False


def shadows(
    base: Collection[str], protected: Collection[str], new: Collection[New], rules: Rules, run: Named | None = None
) -> list[str]:
    """Those of the new names that a check would read or import before, or instead of, what is protected."""
    run = run or named(rules.commands, lambda _: "")
    known = set(base)
    around = set(folders_around(protected))
    kinds = {os.path.splitext(path)[1] for path in protected if path_patterns.fits(path, TESTS)}
    settings = settings_of(run)
    return sorted(
        item.path
        for item in new
        if not path_patterns.fits(item.path, rules.free)
        and (
            item.before
            or item.path in run.stops
            or (not item.folder and path_patterns.fits(item.path, settings))
            or (item.path in run.env and _STEERS.search(item.text) is not None)
            or run.reads_in(item.path)
            or _shadows(item, known, around, frozenset(protected), kinds)
        )
    )


def settings_of(run: Named) -> tuple[str, ...]:
    """The names of settings of the checkers that these checks come to run."""
    words = {os.path.basename(word) for text in run.texts for words in simple_commands(text) for word in words}
    return tuple(dict.fromkeys(name for checker, names in OF_CHECKERS.items() if checker in words for name in names))


def _shadows(item: New, known: set[str], around: set[str], protected: frozenset[str], kinds: set[str]) -> bool:
    folder, _, name = item.path.rpartition("/")
    stem, suffix = os.path.splitext(name)
    if item.folder and "[pytest11]" in item.text:
        return ".py" in kinds
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
        if f"{folder}/{module}".lstrip("/") in around:  # a module comes before a folder without __init__.py
            return True
        if name == "__init__.py" and any(path.rpartition("/")[0] == folder for path in protected):
            return True
    if name.endswith("_test.go"):
        return "func TestMain(" in item.text
    if name in ("package.json", ".npmrc") or name.startswith(("babel.config.", ".babelrc")):
        return script
    return path_patterns.fits(item.path, CONFIGURATION) and bool(kinds)


def folders_around(protected: Collection[str]) -> list[str]:
    """The folders that protected files lie in and every folder above them, the top (empty) first."""
    found = {""}
    for path in protected:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return sorted(found)
