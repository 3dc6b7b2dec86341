"""Which files of a repository the checks of a session run or read in: named by a command itself, by the target of a
`Makefile` or the script of a `package.json` that it uses, or by a shell script that it runs. Pure.
"""

from __future__ import annotations

import json
import os.path
import re
import shlex
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

Read = Callable[[str], str]
"""The text of a file of the commit; empty when it has none."""

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_MOST = 200
_MOST_COMMANDS = 5_000
_LONGEST = 64 << 10
_LONGEST_IN_ALL = 4 << 20
_INTERPRETERS = re.compile(r"(?:python|pypy)[\d.]*|(?:ba|da|z|k)?sh|node|deno|bun|ruby|perl|php|Rscript|lua")
_SHELL = re.compile(r"(?:ba|da|z|k)?sh")
_WRAPPERS = frozenset(
    {"chronic", "command", "env", "exec", "nice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout", "xvfb-run"}
)
_VALUES = re.compile(r"-.*|\w+=.*|\d[\d.]*[smhd]?|[!{}]|then|do|else|if|while", re.DOTALL)
_CHECK_WORDS = re.compile(
    r"check|test|verif|valid|lint|spec|accept|prove|proof|smoke|assert|regress|(?:^|[_\-./])(?:run_)?cases"
    r"|(?:^|[_\-./])ci(?:[_\-./]|$)",
    re.IGNORECASE,
)
_FOLDERS = frozenset({"ci", ".ci", "checks", "hack", "scripts", "script", "tools", "qa"})
_SET = re.compile(r"^(\w+)\s*(?:[:?]{0,2}=)\s*(.*)$", re.MULTILINE)
_VARIABLE = re.compile(r"\$[({](\w+)[)}]")
_INCLUDE = re.compile(r"^(?:-|s)?include\s+(.+)$", re.MULTILINE)
_RULE = re.compile(r"^([^\s#:=][^:=]*)::?(?!=)\s*([^#;\n]*)(?:;(.*))?$")
_NODE = frozenset({"npm", "pnpm", "yarn", "bun"})


@dataclass(slots=True)
class Named:
    """Paths, whether or not the commit has them: ``runs`` are scripts, ``reads`` what is read into a script, a shell or
    a Makefile, which can turn all that follows into something else.
    """

    runs: set[str] = field(default_factory=set)
    reads: set[str] = field(default_factory=set)
    programs: set[str] = field(default_factory=set)
    """Programs, and folders of programs, that are looked for inside the repository."""
    texts: set[str] = field(default_factory=set)
    """Every piece of shell that was followed."""
    targets: dict[str, list[str]] = field(default_factory=dict)
    """Of each Makefile and what it includes: the targets that are made, those that were asked for first."""
    every: bool = False


class _Shell(NamedTuple):
    """Shell commands, and the folder they begin in."""

    text: str
    folder: str = ""


def named(commands: Collection[str], read: Read, every: bool = False) -> Named:
    """What these commands come to run and read in, as far as the repository's own text tells. ``every``: also scripts
    whose names do not say that they check something.
    """
    found = Named(every=every)
    left = deque(_Shell(command) for command in commands)
    met = set(left)
    room = _LONGEST_IN_ALL
    followed = 0
    while left and room > 0:
        shell = left.popleft()
        room -= len(shell.text)
        found.texts.add(shell.text)
        folder = shell.folder
        for program, *rest in islice(simple_commands(shell.text), _MOST_COMMANDS - followed):
            followed += 1
            if program == "cd" and rest:
                folder = _at(folder, rest[0])
                continue
            for new in islice(_follow(program, rest, folder, read, found), _MOST):
                if new not in met and len(met) < _MOST + len(commands):
                    met.add(new)
                    left.append(new)
    return found


def _follow(program: str, rest: list[str], folder: str, read: Read, found: Named) -> Iterator[_Shell]:
    """Put down what one simple command names; what is to be looked at in its turn."""
    base = os.path.basename(program)
    if "/" in program and _inside(path := _at(folder, program)):
        found.programs.add(path)
    if base in _WRAPPERS:
        at = next((i for i, word in enumerate(rest) if not _VALUES.fullmatch(word)), None)
        if at is not None:
            yield from _follow(rest[at], rest[at + 1 :], folder, read, found)
    elif program in (".", "source"):
        if rest and _inside(path := _at(folder, rest[0])):
            found.reads.add(path)
            yield _Shell(read(path), folder)
    elif base in ("make", "gmake"):
        yield from _make(rest, folder, read, found)
    elif base == "npx":
        found.programs.add(_at(folder, "node_modules/.bin"))
    elif base in _NODE:
        found.programs.add(_at(folder, "node_modules/.bin"))
        yield from _node(rest, folder, read)
    elif _INTERPRETERS.fullmatch(base):
        options = [word for word in rest if word.startswith("-")]
        found.runs |= {_at(folder, name) for name in doctested(rest) if _inside(name) and not name.endswith(".py")}
        script = next((word for word in rest if not word.startswith("-")), "")
        before = rest[: rest.index(script)] if script else options
        if _SHELL.fullmatch(base) and any(re.fullmatch(r"-[a-z]*c", word) for word in before):
            yield _Shell(script, folder)
        elif script and not {"-m", "-c", "-e"} & set(before):
            yield from _script(_at(folder, script), folder, read, found)
    elif "/" in program and not program.startswith("/"):
        yield from _script(_at(folder, program), folder, read, found)


def doctested(rest: list[str]) -> list[str]:
    """The files whose examples an interpreter with these words runs."""
    at = next((i for i, word in enumerate(rest) if word == "-m"), len(rest))
    if rest[at + 1 : at + 2] != ["doctest"]:
        return []
    return [word for word in rest[at + 2 :] if not word.startswith("-")]


def _script(path: str, folder: str, read: Read, found: Named) -> Iterator[_Shell]:
    shell = path.endswith((".sh", ".bash"))
    if not _inside(path) or not (shell or found.every or _checks(path)):
        return
    if path not in found.runs:
        found.runs.add(path)
        text = read(path)
        if shell or re.match(r"#!.*\b(?:ba|da|z|k)?sh\b", text):
            yield _Shell(text, folder)


def _checks(name: str) -> bool:
    return bool(_CHECK_WORDS.search(name)) or bool(_FOLDERS & set(name.split("/")[:-1]))


def _at(folder: str, word: str) -> str:
    return os.path.normpath(os.path.join(folder, word))


def _inside(path: str) -> bool:
    return not path.startswith(("/", "..")) and "$" not in path and "\0" not in path


# -- makefiles and packages ------------------------------------------------------------------------


def _make(rest: list[str], folder: str, read: Read, found: Named) -> Iterator[_Shell]:
    wanted: list[str] = []
    files: list[str] = []
    words = iter(rest)
    for word in words:
        if word in ("-C", "--directory"):
            folder = _at(folder, next(words, ""))
        elif word in ("-f", "--file", "--makefile"):
            files.append(next(words, ""))
        elif word in ("-j", "-l", "-o", "-W", "-I"):
            if word not in ("-j", "-l"):
                next(words, None)
        elif not _VALUES.fullmatch(word):
            wanted.append(word)
    paths = [_at(folder, name) for name in files or MAKEFILES]
    path, text = next(((p, body) for p in paths if (body := read(p))), ("", ""))
    if not text:
        return
    found.reads.update([path] if files else [])
    text = text.replace("\\\n", " ")
    values = dict(_SET.findall(text))
    included: set[str] = set()
    for names in _INCLUDE.findall(text):
        for name in _plain(names, values).split():
            if _inside(read_in := _at(folder, name)) and read_in not in included:
                included.add(read_in)
                text += "\n" + read(read_in).replace("\\\n", " ")
    found.reads.update(included)
    rules: dict[str, list[tuple[list[str], list[str]]]] = {}
    for names, needs, lines in _rules(text):
        for name in names:
            rules.setdefault(name, []).append((needs, lines))
    wanted = wanted or [next((name for name in rules if not name.startswith(".")), "")]
    known = set(wanted)
    for name in wanted:  # grows by what the targets need
        for needs, lines in rules.get(name, ()):
            fresh = [need for need in dict.fromkeys(needs) if need not in known]
            known.update(fresh)
            wanted += fresh
            yield from (_Shell(_plain(line.lstrip("@-+ "), values), folder) for line in lines)
    for name in (path, *included):
        found.targets.setdefault(name, []).extend(wanted)


def rule_line(lines: Sequence[str], targets: Sequence[str]) -> int:
    """Where the rule of the first of these targets begins that a Makefile has one for, counted from 0; 0 without."""
    begins: dict[str, int] = {}
    for at, line in enumerate(lines):
        if match := _RULE.match(line):
            for name in match[1].split():
                begins.setdefault(name, at)
    return next((begins[name] for name in targets if name in begins), 0)


def _rules(text: str) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Each rule: its targets, what they need, and its lines."""
    current: tuple[list[str], list[str], list[str]] = ([], [], [])
    for line in text.split("\n"):
        if line.startswith("\t"):
            current[2].append(line[1:])
        elif match := _RULE.match(line):
            current = (match[1].split(), match[2].split(), [match[3]] if match[3] else [])
            yield current


def _plain(text: str, values: dict[str, str]) -> str:
    """The text with its variables put in, once, as far as there is room: their values are an agent's."""
    room = _LONGEST

    def value(match: re.Match[str]) -> str:
        nonlocal room
        found = values.get(match[1], "make" if match[1] == "MAKE" else match[0])
        room -= len(found)
        return found if room >= 0 else match[0]

    return _VARIABLE.sub(value, text)


def _node(rest: list[str], folder: str, read: Read) -> Iterator[_Shell]:
    words = [word for word in rest if not word.startswith("-") and word not in ("run", "run-script")]
    try:
        scripts = json.loads(read(_at(folder, "package.json")) or "{}").get("scripts", {})
        name = {"t": "test", "tst": "test"}.get(words[0], words[0])
        for which in (f"pre{name}", name, f"post{name}"):
            if isinstance(text := scripts.get(which), str):
                yield _Shell(text, folder)
    except (ValueError, AttributeError, IndexError, RecursionError):
        return


def simple_commands(command: str) -> list[list[str]]:
    """The words of each simple command, without leading assignments; a line that is no shell is left out."""
    made: list[list[str]] = []
    try:
        _split(command, made)
    except ValueError:
        made = []
        for line in command.split("\n"):
            part: list[list[str]] = []
            try:
                _split(line, part)
            except ValueError:
                continue
            made += part
    return [part for part in made if part]


def _split(command: str, made: list[list[str]]) -> None:
    lexer = shlex.shlex(command.replace("\\\n", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    lexer.commenters = ""
    made.append([])
    for word in lexer:
        if word and set(word) <= set("();<>|&"):
            made.append([])
        elif made[-1] or not (re.fullmatch(r"\w+=.*", word, re.DOTALL) or word in ("!", "if", "then", "do", "else")):
            made[-1].append(word)
