"""Checks that are no test runner: whether what decides shares a process with the code that it decides about. Pure.

Such code can leave early with 0, so the same piece of Python is tried once more with a failure at its end.
"""

from __future__ import annotations

import ast
import os.path
import re
import shlex
from collections.abc import Callable, Iterable

from harness.plan import scripts
from harness.plan.scripts import simple_commands

_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_OTHERS = re.compile(
    r"node|deno|bun|ruby|perl|php|Rscript|lua|java|prove|bats|mvn|mvnw|gradle|gradlew|sbt|dotnet|swift|mix|rspec"
    r"|phpunit|pest|ctest|tap|ava|jasmine|karma|tox|nox"
)
_OPENS = re.compile(r"\$\(|`")
_LONGEST = 4096
"""Characters of a command within another one that are read."""
_JOINED = frozenset("();<>|&$`\n")
_FAILS = "raise AssertionError({word!r})"


def code_of(command: str) -> str:
    """The Python that a command is, when it is nothing else: ``python3 -c CODE``; empty for any other."""
    words = _words(command)
    at = _code_at(words)
    return words[at] if at else ""


def with_code(command: str, code: str) -> str:
    """The same command with other code."""
    words = _words(command)
    words[_code_at(words)] = code
    return shlex.join(words)


def failing(code: str, word: str) -> str:
    """A piece of Python that fails at its end with ``word``, whatever came of it; empty when it is none."""
    try:
        module = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    first = [one for one in module.body if isinstance(one, ast.ImportFrom) and one.module == "__future__"]
    does = [one for one in module.body if one not in first]
    fails = ast.parse(_FAILS.format(word=word)).body
    module.body = [*first, ast.Try(body=does or [ast.Pass()], handlers=[], orelse=[], finalbody=fails)]
    return _first_line(code) + ast.unparse(ast.fix_missing_locations(module))


def bare(word: str, text: str = "") -> str:
    """A piece of Python that does nothing but fail, in the place of a script with this text."""
    return _first_line(text) + _FAILS.format(word=word)


def wrong_example(path: str, text: str, word: str) -> str:
    """A file whose examples are run, with one more that is wrong: at its end, where it is no Python."""
    example = f'>>> print("{word}")\n{word} is wrong\n'
    if not path.endswith(".py"):
        return f"{text}\n\n{example}"
    lines = "".join(f"    {line}\n" for line in example.splitlines())
    return f'{text}\n\ndef {word}():\n    """\n{lines}    """\n'


def doctested(texts: Iterable[str]) -> set[str]:
    """Files whose examples these pieces of shell run."""
    found = (
        words for text in texts for words in simple_commands(text) if _PYTHON.fullmatch(os.path.basename(words[0]))
    )
    return {name.removeprefix("./") for words in found for name in scripts.doctested(words[1:])}


def is_python(path: str, text: str) -> bool:
    """Whether a script is one of Python, by its ending or its first line."""
    return path.endswith(".py") or re.match(r"#!.*\bpython[\d.]*\s*$", text.partition("\n")[0]) is not None


def _first_line(text: str) -> str:
    """The line of a script that says what runs it."""
    return text[: text.find("\n") + 1] if text.startswith("#!") else ""


def shares(texts: Iterable[str], there: Callable[[str], bool]) -> str:
    """A program that these pieces of shell run in one process with code of the worktree, and that no trial makes fail;
    empty when there is none. ``there``: whether the worktree has a path.
    """
    for words in (words for text in texts for words in _commands(text)):
        base = os.path.basename(words[0])
        if there(f"node_modules/.bin/{base}"):
            return base
        if _OTHERS.fullmatch(base):
            return base
        if "-I" in words:  # it imports nothing of where it runs
            continue
        if _PYTHON.fullmatch(base) and (module := _after(words, "-m")) is not None:
            path = module.replace(".", "/")
            if there(f"{path}.py") or there(path):
                return f"{base} -m {module}"
        elif _PYTHON.fullmatch(base) and _after(words, "-c") is not None:
            return f"{base} -c"
        elif _PYTHON.fullmatch(base) and (words[1:] == [] or words[1] == "-"):
            return f"{base} -"
    return ""


def _commands(text: str) -> list[list[str]]:
    """Simple commands, also those whose output stands in others, whether or not in quotes."""
    inside = [_until_closed(text[found.end() : found.end() + _LONGEST], found[0]) for found in _OPENS.finditer(text)]
    return [*simple_commands(text), *(words for part in inside for words in simple_commands(part))]


def _until_closed(text: str, opened: str) -> str:
    """The beginning of a text, up to what closes ``$(`` or a back quote."""
    if opened == "`":
        return text.partition("`")[0]
    depth = 1
    for at, char in enumerate(text):
        depth += {"(": 1, ")": -1}.get(char, 0)
        if depth == 0:
            return text[:at]
    return text


def _words(command: str) -> list[str]:
    if not _JOINED.isdisjoint(_unquoted(command)):
        return []
    try:
        return shlex.split(command)
    except ValueError:
        return []


def _unquoted(command: str) -> str:
    """What of a command stands outside of single quotes, and of what double ones keep as it is."""
    return re.sub(r"'[^']*'|\"[^\"$`\\\\]*\"", "", command)


def _code_at(words: list[str]) -> int:
    """Where the code of ``python3 -c CODE`` stands; 0 when that is not what the words are."""
    if not words or not _PYTHON.fullmatch(os.path.basename(words[0])) or "/" in words[0]:
        return 0
    at = next((i for i, word in enumerate(words) if i and not word.startswith("-")), 0)
    return at if at > 1 and re.fullmatch(r"-[a-zA-Z]*c", words[at - 1]) else 0


def _after(words: list[str], option: str) -> str | None:
    return next((words[i + 1] for i in range(len(words) - 1) if words[i] == option), None)
