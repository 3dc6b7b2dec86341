"""Which files a command names to be run, and whether it can run no file that it does not name. Pure.

Names are candidates: whoever asks looks which of them are there. A name stands with the folders in which it may be
meant, the likeliest first.
"""

from __future__ import annotations

import os.path
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

_MOST_WORDS = 400
_MOST_CODE = 64 << 10
INTERPRETER = re.compile(
    r"(?:.*/)?(?:\.|source|(?:ba|da|z|k|fi)?sh|(?:python|pypy)[0-9.]*|node|deno|bun|ruby|perl|php|Rscript|lua)"
)
_SHELL = re.compile(r"(?:ba|da)?sh")
_BEFORE = re.compile(r"(?:.*/)?(?:sudo|env|exec|time|nohup|nice|command|if|then|else|elif|while|until|do|!)|\w+=.*")
"""Words that a command may stand behind."""
_ENDS = "\n;|&()`{}"
_WORD = re.compile(rf"[{re.escape(_ENDS)}]|[^\s<>'\"{re.escape(_ENDS)}]+")
_GIVEN = re.compile(r"[\w.-]+=!?|!")
"""What may stand before a command in one word, as in the value of an alias."""
_FOLDER = re.compile(r"(?:-C|-D|--chdir|--directory|--prefix|--cwd)(?:=(.+))?|-C(.+)", re.DOTALL)
"""An option that says where a command works."""
_TAKES_VALUE = frozenset({"-I", "-W", "-X", "-r", "--require", "--import", "--loader"})
_CODE = re.compile(r"-\w*[ce]|--eval|-p|--print|-E|-r")
_MODULE = re.compile(r"-[mM]|[+]")
_LOADED = re.compile(r"\b(?:import|from|use|require|require_relative|load|do|open)\b[\s(]*['\"]*([\w./:-]+)")
_LANGUAGE = re.compile(r"\b(?:python|pypy|node|deno|bun|ruby|perl|php|Rscript|lua)")
_SUFFIXES = (".py", "/__init__.py", "/__main__.py", ".pm", ".rb", ".js", ".mjs", ".cjs", "/index.js", ".lua", ".php")
_PACKAGE = ("package.json", "index.js", "__main__.py")
"""What an interpreter that is given a folder starts with."""
_SYSTEM = frozenset(("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"))
"""Folders whose programs the person did not make."""
_RUNS_NOTHING = frozenset(
    (
        *("[", "basename", "cat", "cd", "chgrp", "chmod", "chown", "cmp", "comm", "cp", "curl", "cut", "date", "df"),
        *("diff", "dirname", "du", "echo", "exit", "false", "file", "grep", "head", "hostname", "id", "kill", "ln"),
        *("ls", "mkdir", "mktemp", "mv", "printf", "ps", "pwd", "readlink", "realpath", "rm", "rmdir", "seq", "set"),
        *("sha256sum", "sleep", "stat", "tail", "tee", "test", "touch", "tr", "true", "truncate", "uname", "uniq"),
        *("unlink", "wc", "which", "whoami"),
    )
)
"""Programs that start no other and read no file as code, whatever their arguments are."""
_PLAIN_SCRIPT = re.compile(r"[\w@%+:,./ \t\n;&|*?~'\"<>\[\]#-]*")
"""A script without expansions, assignments and functions."""


class Name(NamedTuple):
    """A file that may be run. ``program``: only when it may be executed."""

    path: str
    folders: tuple[str, ...]
    program: bool = False


def of_argv(argv: Sequence[str], cwd: str) -> Iterator[Name]:
    """The names of one command; a word that is a script, as ``sh -c`` takes it, is read as one."""
    yield from _of(argv[:_MOST_WORDS], cwd)
    for word in argv:
        if len(word.split()) > 1:
            yield from of_script(word[:_MOST_CODE], cwd)


def of_script(script: str, cwd: str) -> Iterator[Name]:
    """The names of each command of a shell script."""
    yield from _of(_WORD.findall(script)[:_MOST_WORDS], cwd)
    if _LANGUAGE.search(script):
        yield from _loaded(script, (cwd,))


def _of(words: Sequence[str], cwd: str) -> Iterator[Name]:
    folders: tuple[str, ...] = (cwd,)
    begins = True
    silent = False
    left = list(reversed(words))
    while left:
        word = left.pop()
        bare = _GIVEN.sub("", word, count=1) if _GIVEN.match(word) else word
        if word and word in _ENDS:
            begins = True
        elif match := _FOLDER.fullmatch(word):
            folders = _moved(folders, match[1] or match[2] or _next(left))
        elif begins and word == "cd":
            folders = _moved(folders, _next(left))
            begins = False
            silent = True
        elif INTERPRETER.fullmatch(bare) and (begins or not silent) and (begins or bare not in (".", "source")):
            begins = False
            silent = True
            yield from _interpreted(left, folders)
        elif begins and _BEFORE.fullmatch(word):
            continue
        elif begins:
            begins = False
            silent = os.path.basename(word) in _RUNS_NOTHING or "/" in word
            if "/" in word:
                yield Name(word, folders)
        elif not silent:
            yield Name(bare, folders, program=True)


def _next(left: list[str]) -> str:
    return left.pop() if left else ""


def _moved(folders: tuple[str, ...], to: str) -> tuple[str, ...]:
    """The folders in which a name may be meant after a change to ``to``."""
    return (os.path.join(folders[0], to), *folders)


def _interpreted(left: list[str], folders: tuple[str, ...]) -> Iterator[Name]:
    """What an interpreter is given, up to its script: taken from the end of ``left``."""
    search = folders
    while left and left[-1] not in tuple(_ENDS):
        word = left.pop()
        if match := _FOLDER.fullmatch(word):
            search = _moved(search, match[1] or match[2] or _next(left))
        elif word.startswith("-I"):
            to = word[2:] or _next(left)
            search = (*search, *(os.path.join(folder, to) for folder in folders))
        elif word.startswith("-"):
            name = word.partition("=")[2] or (word[2:] if word[1:2] in ("M", "m", "r") else "")
            if not name and (word in _TAKES_VALUE or _MODULE.fullmatch(word)):
                name = _next(left)
            yield from _module(name, search)
            yield Name(name, search)
            if not name and _CODE.fullmatch(word) and left:
                code = left.pop()
                yield Name(code, search)
                yield from _loaded(code, search)
                return
            if word == "-m":
                return
        else:
            yield Name(word, search)
            yield from (Name(os.path.join(word, start), search) for start in _PACKAGE)
            return


def _loaded(code: str, search: tuple[str, ...]) -> Iterator[Name]:
    """What a piece of code says that it loads."""
    for name in _LOADED.findall(code[:_MOST_CODE])[:_MOST_WORDS]:
        yield Name(name, search)
        yield from _module(name, search)


def _module(name: str, search: tuple[str, ...]) -> Iterator[Name]:
    """The files that a module or a package of this name may be."""
    path = name.removesuffix(".py")
    if not path.startswith("."):
        path = path.replace("::", "/").replace(".", "/")
    parts = path.split("/")
    if path.strip("./"):
        yield from (Name(f"{path}{suffix}", search) for suffix in _SUFFIXES)
        yield from (Name("/".join([*parts[:at], "__init__.py"]), search) for at in range(1, min(len(parts), 8)))


def runs_only(script: str, known: Callable[[str], bool]) -> bool:
    """True when each command of a script is known to run no file, or is one of which ``known`` says that all it runs is
    known too. Whatever is not understood is not known.
    """
    text = "\n".join(line for line in script.split("\n") if not line.lstrip().startswith("#"))
    if not _PLAIN_SCRIPT.fullmatch(text) or len(text) > _MOST_CODE:
        return False
    try:
        commands = _simple_words(text)
    except ValueError:
        return False
    moved = False
    for program, *rest in filter(None, commands):
        folder, _, name = program.rpartition("/")
        system = not folder or folder in _SYSTEM
        moved = moved or name == "cd"
        if system and name in _RUNS_NOTHING:
            continue
        if system and _SHELL.fullmatch(name) and rest and not rest[0].startswith("-"):
            program = rest[0]
        elif not folder:
            return False
        if moved or not known(program):
            return False
    return True


def _simple_words(script: str) -> list[list[str]]:
    """The words of each simple command, also those that are none. Raises ValueError for what ends within quotes."""
    lexer = shlex.shlex(script.replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    made: list[list[str]] = [[]]
    for word in lexer:
        if word and set(word) <= set(";|&"):
            made.append([])
        else:
            made[-1].append(word)
    return made
