"""What a simple command of a script is to the outcome of a check: it checks, it may fail, or it only helps. Pure."""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

CHECK_WORDS = re.compile(
    r"check|test|verif|valid|lint|spec|accept|prove|proof|smoke|assert|regress|suite|(?:^|[_\-./:])(?:run_)?cases"
    r"|(?:^|[_\-./:])ci(?:[_\-./:]|$)",
    re.IGNORECASE,
)
"""Names of scripts, targets and tasks that check something."""
SHELLS = re.compile(r"(?:ba|da|z|k)?sh")
INTERPRETERS = re.compile(r"(?:python|pypy)[\d.]*|node|deno|bun|ruby|perl|php|Rscript|lua")


class Kind(IntEnum):
    """``HELPER``: its end says nothing of the work (`echo`, `cd`, `tail`); ``COMMAND``: it may; ``CHECKER``: it is
    there to say so (a test runner, a linter).
    """

    HELPER = 0
    COMMAND = 1
    CHECKER = 2


@dataclass(frozen=True, slots=True)
class Run:
    """A simple command without what it stands behind: the program by its name, and the words after it."""

    program: str
    path: str
    rest: tuple[str, ...]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_HELPERS = _words(
    "cd echo printf export set mkdir rm cp mv touch sleep cat tee date pwd pushd popd true : unset ulimit umask alias"
    " rmdir ln chmod head tail sort uniq wc tr cut sed awk gawk nl fold column less more source . shopt tput clear ls"
    " basename dirname realpath readlink seq yes mktemp kill time wait trap local declare readonly typeset shift hash"
    " du df env id whoami uname hostname ts rev paste pr fmt getopts read mapfile readarray"
)
_WRAPPERS = _words(
    "chronic command env exec nice ionice nohup setsid stdbuf sudo doas time timeout xvfb-run unbuffer builtin"
)
_TAKES = re.compile(r"-.*|\w+=.*|\d[\d.]*[smhd]?", re.DOTALL)
_RUNS_ANOTHER = {
    "uv": ("run",),
    "poetry": ("run",),
    "pipenv": ("run",),
    "pdm": ("run",),
    "rye": ("run",),
    "hatch": ("run",),
    "bundle": ("exec",),
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "dlx"),
    "npm": ("exec", "x"),
    "npx": (),
    "bunx": (),
    "coverage": ("run",),
    "direnv": ("exec",),
}
"""Programs that run another one, by the word before it where there is one."""
_CHECKERS = _words(
    "pytest py.test nose2 nosetests trial tox nox behave robot jest vitest mocha ava tap tape jasmine karma rspec bats"
    " prove phpunit pest ctest ruff flake8 pylint mypy pyright pyre bandit eslint biome stylelint oxlint shellcheck"
    " golangci-lint staticcheck rubocop phpstan psalm hadolint yamllint markdownlint sqlfluff actionlint swiftlint"
    " luacheck busted cppcheck clang-tidy pre-commit lychee vale codespell pydocstyle vulture interrogate"
)
_MODULES = _CHECKERS | {"unittest", "doctest", "compileall", "py_compile", "django"}
_WITH = {
    "black": ("--check",),
    "isort": ("--check", "--check-only", "-c"),
    "prettier": ("--check", "-c", "-l", "--list-different"),
    "tsc": ("--noEmit",),
    "node": ("--test", "--check"),
    "coverage": ("report",),
    "gofmt": ("-l", "-d"),
    "rustfmt": ("--check",),
}
"""Programs that check with one of these words."""
_VERBS = {
    "go": ("test", "vet"),
    "cargo": ("test", "check", "clippy", "nextest"),
    "deno": ("test", "lint", "check"),
    "dotnet": ("test",),
    "swift": ("test",),
    "mix": ("test",),
    "zig": ("test",),
    "stack": ("test",),
    "cabal": ("test",),
    "dart": ("test", "analyze"),
    "flutter": ("test", "analyze"),
    "rails": ("test",),
    "playwright": ("test",),
    "ng": ("test", "lint"),
    "terraform": ("validate",),
    "meson": ("test",),
    "bazel": ("test",),
    "cypress": ("run",),
    "npm": ("test", "t", "tst"),
}
_TASKS = _words("make gmake ninja just task rake invoke inv doit gulp grunt npm pnpm yarn bun mvn gradle gradlew")
"""Programs that do what is asked for by a name."""
_ASKS = re.compile(r"--?(?:version|help|h|V)")
_LISTS = re.compile(r"--co|--collect-only|--fixtures|--markers|--list(?:-tests|Tests)?")
"""Words by which a runner only says what it would run."""
_INSTALLS = _words("ci install i add prune audit update upgrade exec init")
_HIDES = re.compile(r"--exit-zero(?:-even-if-changed)?|--no-fail|--fail-never|--issues-exit-code=0|--exit-code=0")
_IGNORES = re.compile(r"-Dmaven\.test\.failure\.ignore(?:=true)?")


def run_of(words: Sequence[str]) -> Run:
    """The program that a simple command comes to run, and what it is given."""
    left = list(words)
    while left:
        name = os.path.basename(left[0])
        if re.fullmatch(r"\w+=.*", left[0], re.DOTALL):
            left = left[1:]
        elif name in _WRAPPERS:
            left = left[1:]
            while left and _TAKES.fullmatch(left[0]):
                left = left[1:]
        elif name in _RUNS_ANOTHER and (rest := _behind(left, _RUNS_ANOTHER[name])):
            left = ["python", *rest] if name == "coverage" else rest
        else:
            return Run(name, left[0], tuple(left[1:]))
    return Run("", "", ())


def _behind(words: list[str], verbs: tuple[str, ...]) -> list[str]:
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 1
    if verbs:
        if at >= len(words) or words[at] not in verbs:
            return []
        at += 1
    while at < len(words) and words[at].startswith("-") and words[at] != "-m":
        at += 1
    return words[at:]


def kind_of(run: Run) -> Kind:
    """What its end says."""
    words = run.rest
    if run.program in _HELPERS or not run.program:
        return Kind.HELPER
    if any(_LISTS.fullmatch(word) for word in words) or (words and all(_ASKS.fullmatch(word) for word in words)):
        return Kind.COMMAND
    return Kind.CHECKER if _checks(run.program, run.path, words) else Kind.COMMAND


def _checks(program: str, path: str, words: Sequence[str]) -> bool:
    verb = next((word for word in words if not word.startswith(("-", "+"))), "")
    if program in _CHECKERS or any(word in _WITH.get(program, ()) for word in words):
        return True
    if verb and verb in _VERBS.get(program, ()):
        return True
    if program in ("npm", "pnpm", "yarn", "bun") and verb in _INSTALLS:
        return False
    if program in _TASKS:
        return any(CHECK_WORDS.search(word) for word in words if not word.startswith("-"))
    if module := module_of(program, words):
        return module.partition(".")[0] in _MODULES
    if (INTERPRETERS.fullmatch(program) or SHELLS.fullmatch(program)) and not {"-c", "-e"} & set(words):
        name = os.path.basename(verb)
        return bool(CHECK_WORDS.search(name)) or (name == "manage.py" and "test" in words)
    return "/" in path and CHECK_WORDS.search(program) is not None


def module_of(program: str, words: Sequence[str]) -> str:
    """The module that Python is told to run; empty when it is told none."""
    if not re.fullmatch(r"(?:python|pypy)[\d.]*", program):
        return ""
    for at, word in enumerate(words):
        if word == "-m":
            return words[at + 1] if at + 1 < len(words) else ""
        if not word.startswith("-"):
            return ""
    return ""


def named_alike(run: Run) -> str:
    """A name for what it runs, by which a second try of the same is known."""
    return module_of(run.program, run.rest) or run.program


def ignoring(run: Run) -> str:
    """The word by which a program ends well although what it looks at does not; empty when there is none."""
    words = run.rest
    if run.program in ("make", "gmake"):
        plain = [word for word in words if re.fullmatch(r"-[a-zA-Z]*i[a-zA-Z]*", word) and "I" not in word[:2]]
        return next(iter(plain), "") or next((word for word in words if word == "--ignore-errors"), "")
    for at, word in enumerate(words):
        if _HIDES.fullmatch(word) or (run.program in ("mvn", "mvnw") and (word == "-fn" or _IGNORES.fullmatch(word))):
            return word
        if word in ("--exit-code", "--issues-exit-code") and words[at + 1 : at + 2] == ("0",):
            return f"{word} 0"
    return ""
