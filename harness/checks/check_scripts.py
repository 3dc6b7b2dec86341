"""Which files of a repository the checks of a session run or read in: named by a command itself, by the target of a
`Makefile` or the script of a `package.json` that it uses, or by a shell script that it runs. Pure.
"""

from __future__ import annotations

import functools
import json
import os.path
import re
import shlex
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

from harness.checks import shell_paths
from harness.domain.path_patterns import fits

Read = Callable[[str], str]
"""The text of a file of the commit; empty when it has none."""

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_MOST = 200
_MOST_COMMANDS = 5_000
_SHORT = 1 << 10
_LONGEST = 64 << 10
_LONGEST_IN_ALL = 4 << 20
_INTERPRETERS = re.compile(r"(?:python|pypy)[\d.]*|(?:ba|da|z|k)?sh|node|deno|bun|ruby|perl|php|Rscript|lua")
_SHELL = re.compile(r"(?:ba|da|z|k)?sh")
_WRAPPERS = frozenset(
    {"chronic", "command", "env", "exec", "nice", "nohup", "setsid", "stdbuf", "sudo", "time", "timeout", "xvfb-run"}
)
_VALUES = re.compile(r"-.*|\w+=.*|\d[\d.]*[smhd]?|[!{}]|then|do|else|if|while", re.DOTALL)
_CHECK_WORDS = re.compile(
    r"check|test|verif|valid|lint|spec|accept|prove|proof|smoke|assert|regress|suite|(?:^|[_\-./])(?:run_)?cases"
    r"|(?:^|[_\-./])ci(?:[_\-./]|$)",
    re.IGNORECASE,
)
_FOLDERS = frozenset({"ci", ".ci", "checks", "hack", "scripts", "script", "tools", "qa"})
_SET = re.compile(r"^(\w+)\s*(?:[:?]{0,2}=)\s*(.*)$", re.MULTILINE)
_VARIABLE = re.compile(r"\$[({](\w+)[)}]")
_SHELL_FLAGS = re.compile(r"^(?:\.SHELLFLAGS|SHELL)\s*[:?]?=\s*(.*)$", re.MULTILINE)
_INCLUDE = re.compile(r"^(?:-|s)?include\s+(.+)$", re.MULTILINE)
_WILD = re.compile(r"\$[({]wildcard\s+([^)}]*)[)}]")
_RULE = re.compile(r"^([^\s#:=][^:=]*)::?(?!=)\s*([^#;\n]*)(?:;(.*))?$")
_NODE = frozenset({"npm", "pnpm", "yarn", "bun"})
_JUST = ("justfile", "Justfile", ".justfile")
_TASKS = {
    "task": ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml", "Taskfile.dist.yml"),
    "tox": ("tox.ini", "tox.toml", "setup.cfg", "pyproject.toml"),
    "nox": ("noxfile.py",),
    "rake": ("Rakefile", "rakefile", "Rakefile.rb"),
    "invoke": ("tasks.py",),
    "inv": ("tasks.py",),
    "doit": ("dodo.py",),
    "grunt": ("Gruntfile.js",),
    "gulp": ("gulpfile.js",),
    "tsc": ("tsconfig.json",),
}
"""Programs that do what a file says, and the names of such files."""
_BULLET = re.compile(r"^[\s@-]*(?:[\w-]+\s*[:=]\s+)?")
_QUOTED = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"")


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
    path: set[str] = field(default_factory=set)
    """Folders of the repository in which programs are looked for by their names alone, before the system's."""
    packages: set[str] = field(default_factory=set)
    """Folders of installed programs in which a package's scripts look first."""
    used: set[str] = field(default_factory=set)
    """Names of programs."""
    modules: set[str] = field(default_factory=set)
    """Folders of the repository in which Python looks for modules first."""
    env: set[str] = field(default_factory=set)
    """Files of variables that are set for programs."""
    stops: set[str] = field(default_factory=set)
    """What keeps `make` from running a recipe that a check needs, when it is there."""
    every: bool = False

    def reads_in(self, path: str) -> bool:
        """Whether a file is read in: by its name, or by a pattern that fits it."""
        return path in self.reads or fits(path, [name for name in self.reads if "*" in name])


class Piece(NamedTuple):
    """Shell commands, and the folder they begin in."""

    text: str
    folder: str = ""
    script: str = ""
    """The file that it is, where it is one."""
    options: frozenset[str] = frozenset()
    """How a Makefile has its shell started: ``e``, ``pipefail``; ``ignored``: its end is not asked for."""


def named(commands: Collection[str], read: Read, every: bool = False) -> Named:
    """What these commands come to run and read in, as far as the repository's own text tells. ``every``: also scripts
    whose names do not say that they check something.
    """
    found = Named(every=every)
    left = deque(Piece(command) for command in commands)
    met = set(left)
    room = _LONGEST_IN_ALL
    followed = 0
    while left and room > 0:
        shell = left.popleft()
        shell = shell._replace(text=shell_paths.placed(shell.text, shell.script))
        room -= len(shell.text)
        found.texts.add(shell.text)
        folder = shell.folder
        found.path |= shell_paths.in_front(shell.text, folder)
        found.env |= shell_paths.env_files(shell.text, folder)
        found.modules |= shell_paths.modules(shell.text, folder)
        found.reads |= {
            shell_paths.at(folder, name)
            for name in shell_paths.listing(shell.text)
            if shell_paths.inside(shell_paths.at(folder, name))
        }
        for program, *rest in islice(simple_commands(shell.text), _MOST_COMMANDS - followed):
            followed += 1
            if program == "cd" and rest:
                folder = shell_paths.at(folder, rest[0])
                continue
            for new in islice(_follow(program, rest, folder, read, found), _MOST):
                if new not in met and len(met) < _MOST + len(commands):
                    met.add(new)
                    left.append(new)
    return found


def followed(program: str, rest: list[str], folder: str, read: Read) -> Iterator[Piece]:
    """The pieces of shell that one simple command comes to run."""
    yield from islice(_follow(program, rest, folder, read, Named(every=True)), _MOST)


def _follow(program: str, rest: list[str], folder: str, read: Read, found: Named) -> Iterator[Piece]:
    """Put down what one simple command names; what is to be looked at in its turn."""
    base = os.path.basename(program)
    found.used.add(base)
    if "/" in program and shell_paths.inside(path := shell_paths.at(folder, program)):
        found.programs.add(path)
    if base in _WRAPPERS:
        at = next((i for i, word in enumerate(rest) if not _VALUES.fullmatch(word)), None)
        if at is not None:
            yield from _follow(rest[at], rest[at + 1 :], folder, read, found)
    elif program in (".", "source"):
        if rest and shell_paths.inside(path := shell_paths.at(folder, rest[0])):
            found.reads.add(path)
            if path.endswith("bin/activate"):
                found.path.add(os.path.dirname(path))
            yield Piece(read(path), folder)
    elif base in ("make", "gmake"):
        yield from _make(rest, folder, read, found)
    elif base == "just":
        yield from _just(rest, folder, read, found)
    elif base in _TASKS:
        yield from _tasks(_TASKS[base], folder, read, found)
    elif base == "npx":
        found.programs.add(shell_paths.at(folder, "node_modules/.bin"))
    elif base in _NODE:
        found.programs.add(shell_paths.at(folder, "node_modules/.bin"))
        found.packages |= _packages(folder)
        yield from _node(rest, folder, read)
    elif _INTERPRETERS.fullmatch(base):
        options = [word for word in rest if word.startswith("-")]
        found.runs |= {
            shell_paths.at(folder, name)
            for name in doctested(rest)
            if shell_paths.inside(name) and not name.endswith(".py")
        }
        script = next((word for word in rest if not word.startswith("-")), "")
        before = rest[: rest.index(script)] if script else options
        if _SHELL.fullmatch(base) and any(re.fullmatch(r"-[a-z]*c", word) for word in before):
            yield Piece(script, folder)
        elif script and not {"-m", "-c", "-e"} & set(before):
            yield from _script(shell_paths.at(folder, script), folder, read, found)
    elif "/" in program:
        yield from _script(shell_paths.at(folder, program), folder, read, found)


def doctested(rest: list[str]) -> list[str]:
    """The files whose examples an interpreter with these words runs."""
    at = next((i for i, word in enumerate(rest) if word == "-m"), len(rest))
    if rest[at + 1 : at + 2] != ["doctest"]:
        return []
    return [word for word in rest[at + 2 :] if not word.startswith("-")]


def _script(path: str, folder: str, read: Read, found: Named) -> Iterator[Piece]:
    shell = path.endswith((".sh", ".bash"))
    if not shell_paths.inside(path) or not (shell or found.every or _checks(path)):
        return
    if path not in found.runs:
        found.runs.add(path)
        text = read(path)
        if shell or re.match(r"#!.*\b(?:ba|da|z|k)?sh\b", text):
            yield Piece(text, folder, path)


def _checks(name: str) -> bool:
    return bool(_CHECK_WORDS.search(name)) or bool(_FOLDERS & set(name.split("/")[:-1]))


# -- makefiles and packages ------------------------------------------------------------------------


def _make(rest: list[str], folder: str, read: Read, found: Named) -> Iterator[Piece]:
    wanted: list[str] = []
    files: list[str] = []
    words = iter(rest)
    for word in words:
        if word in ("-C", "--directory"):
            folder = shell_paths.at(folder, next(words, ""))
        elif word in ("-f", "--file", "--makefile"):
            files.append(next(words, ""))
        elif word in ("-j", "-l", "-o", "-W", "-I"):
            if word not in ("-j", "-l"):
                next(words, None)
        elif not _VALUES.fullmatch(word):
            wanted.append(word)
    paths = [shell_paths.at(folder, name) for name in files or MAKEFILES]
    path, text = next(((p, body) for p in paths if (body := read(p))), ("", ""))
    if not text:
        return
    found.reads.update([path] if files else [])
    text = text.replace("\\\n", " ")
    values = dict(_SET.findall(text))
    included: set[str] = set()
    for names in _INCLUDE.findall(text):
        for name in _WILD.sub(r"\1", _plain(names, values)).split():
            if shell_paths.inside(read_in := shell_paths.at(folder, name)) and read_in not in included:
                included.add(read_in)
                text += "\n" + read(read_in).replace("\\\n", " ")
    found.reads.update(included)
    found.path |= shell_paths.in_front(text, folder)
    wanted, shells = _recipes(text, wanted, values, folder, found)
    yield from shells
    for name in (path, *included):
        found.targets.setdefault(name, []).extend(wanted)


def _recipes(
    text: str, wanted: list[str], values: dict[str, str], folder: str, found: Named
) -> tuple[list[str], list[Piece]]:
    """All that is made for these targets, and the lines that make it; of make also what would stop it."""
    rules: dict[str, list[tuple[list[str], list[str]]]] = {}
    for names, needs, lines in _rules(text):
        for name in names:
            rules.setdefault(name, []).append((needs, lines))
    wanted = wanted or [next((name for name in rules if not name.startswith(".")), "")]
    known = set(wanted)
    phony = {name for needs, _ in rules.get(".PHONY", ()) for name in needs}
    options = _options_of(text)
    shells: list[Piece] = []
    for name in wanted:  # grows by what the targets need
        marked: list[str] = []
        for needs, lines in rules.get(name, ()):
            fresh = [need for need in dict.fromkeys(needs) if need not in known]
            known.update(fresh)
            wanted += fresh
            marked += [_plain(line, values) for line in lines]
        recipe = [line.lstrip("@-+ ") for line in marked]
        ignored = bool(rules.get(".IGNORE")) and name in {n for needs, _ in rules[".IGNORE"] for n in needs or [name]}
        for line, plain in zip(marked, recipe, strict=True):
            own = {"ignored"} if ignored or "-" in line[: len(line) - len(plain)] else set[str]()
            shells.append(Piece(plain, folder, "", options | own))
        if name not in phony and _is_no_file(name, recipe):
            found.stops.add(shell_paths.at(folder, name))
    return wanted, shells


def _options_of(text: str) -> frozenset[str]:
    """How a Makefile has its shell started, as far as exit codes go."""
    said = " ".join(_SHELL_FLAGS.findall(text))
    held = {"e": re.search(r"(?:^|\s)-[a-zA-Z]*e", said) is not None, "pipefail": "pipefail" in said}
    return frozenset(name for name, on in held.items() if on)


def _is_no_file(name: str, recipe: list[str]) -> bool:
    """Whether a target looks like a word for what is to be done, and not like a file that its recipe makes."""
    if not recipe or not re.fullmatch(r"\w[\w-]*", name):
        return False
    makes = re.compile(rf"\$@|\$\(@|(?<![\w./-]){re.escape(name)}(?![\w/-])")
    return _CHECK_WORDS.search(name) is not None or not any(makes.search(line) for line in recipe)


def _just(rest: list[str], folder: str, read: Read, found: Named) -> Iterator[Piece]:
    paths = [shell_paths.at(folder, name) for name in _JUST]
    text = next((body for path in paths if (body := read(path))), "")
    if not text:
        return
    found.reads.update(paths)
    found.env |= shell_paths.env_files(text, folder)
    found.path |= shell_paths.in_front(text, folder)
    wanted = [word for word in rest if not _VALUES.fullmatch(word)]
    lines = re.sub(r"^[ \t]+", "\t", text.replace("\\\n", " "), flags=re.MULTILINE)
    recipes = re.sub(r"^@(?=\w)", "", lines, flags=re.MULTILINE)
    yield from _recipes(recipes, wanted, {}, folder, Named())[1]


def _tasks(names: tuple[str, ...], folder: str, read: Read, found: Named) -> Iterator[Piece]:
    """What a file of tasks may come to run of scripts that check something, whichever task is asked for."""
    paths = [shell_paths.at(folder, name) for name in names]
    texts = [text for path in paths if (text := read(path))]
    if not texts:
        return
    found.reads.update(paths)
    found.env |= shell_paths.env_files("\n".join(texts), folder)
    for line in "\n".join(texts).split("\n"):
        if _CHECK_WORDS.search(line):
            plain = re.sub(r"[\[\],]", " ", _BULLET.sub("", line))
            yield from (Piece(text, folder) for text in (plain, *filter(None, map("".join, _QUOTED.findall(line)))))


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


def _packages(folder: str) -> set[str]:
    """Where a script of a package finds programs before those of the system: beside it, and in each folder above."""
    above = [folder]
    while above[-1] not in ("", "."):
        above.append(os.path.dirname(above[-1]))
    return {shell_paths.at(at, "node_modules/.bin") for at in above}


def _node(rest: list[str], folder: str, read: Read) -> Iterator[Piece]:
    words = [word for word in rest if not word.startswith("-") and word not in ("run", "run-script")]
    try:
        scripts = json.loads(read(shell_paths.at(folder, "package.json")) or "{}").get("scripts", {})
        name = {"t": "test", "tst": "test"}.get(words[0], words[0])
        for which in (f"pre{name}", name, f"post{name}"):
            if isinstance(text := scripts.get(which), str):
                yield Piece(text, folder)
    except (ValueError, AttributeError, IndexError, RecursionError):
        return


def simple_commands(command: str) -> list[list[str]]:
    """The words of each simple command, without leading assignments; a line that is no shell is left out."""
    if len(command) > _SHORT:
        return _commands(command)
    return [list(words) for words in _known_commands(command)]


@functools.lru_cache(maxsize=512)
def _known_commands(command: str) -> tuple[tuple[str, ...], ...]:
    """A check is asked about many times; what is long is a script, which would take room."""
    return tuple(map(tuple, _commands(command)))


def _commands(command: str) -> list[list[str]]:
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
