"""Checks that pass although what they run fails: where the exit status is lost, and what to write instead. Pure.

Each command of a check that is there to say how the work stands is taken to fail, and the script is followed to its end
(`exit_status`); so are the scripts of the commit, targets and package scripts that it runs. A check in which nothing
that may fail has a say in the end is masked, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import msgspec

from harness.checks import check_scripts, shell_paths
from harness.checks.check_scripts import Piece, Read
from harness.checks.masked.exit_status import Failing, Loss, Lost, Options, Outcome, TooDeep, run
from harness.checks.masked.runners import (
    INTERPRETERS,
    SHELLS,
    Kind,
    Run,
    ignoring,
    kind_of,
    module_of,
    named_alike,
    run_of,
)
from harness.checks.masked.shell_tree import Call, calls
from harness.events.plan.masked_check_events import MaskedCheck

Parse: TypeAlias = Callable[[str], Mapping[str, object] | None]
"""The syntax tree of a bash script; None for what is none."""
_MOST_PIECES = 60
_MOST_CHECKERS = 40
_MOST_WAYS = 32
_MOST_SHOWN = 60
_INSTALLED = re.compile(r"(?:^|/)(?:node_modules|\.?venv|env|vendor|target|build|dist|bin)/")
"""Where programs lie that are installed or built, not written."""
_PLAIN = re.compile(r"[\w\s./:=,@%+-]+")
"""What needs no shell to be understood: words, and nothing between them."""
_INSTEAD = {
    Loss.PIPE: "begin with `set -o pipefail;`, in bash",
    Loss.LIST: "join the commands with &&, or begin with `set -e`",
    Loss.OR: "leave out what stands behind ||, or end it with `exit 1`",
    Loss.NOT: "leave out the !",
    Loss.BACKGROUND: "leave out the &, or end with `wait $!`",
    Loss.WITHIN: "run it on a line of its own, before its output is used",
    Loss.CONDITION: "add an else with `exit 1`",
    Loss.LOOP: "put `|| exit 1` behind it",
    Loss.EXIT: "end with the exit code of what checks",
    Loss.UNASKED: "let the exit code of what checks decide",
    Loss.TRAP: "leave the exit code as it is in the trap",
}


@dataclass(frozen=True, slots=True)
class _Site:
    call: Call
    run: Run
    kind: Kind
    own: str = ""
    """The program of the agent's that it runs."""


def masked(commands: Collection[str], read: Read, parse: Parse, there: Callable[[str], bool]) -> list[MaskedCheck]:
    """Those of these checks whose exit status does not tell that what they run failed, and those that run a program
    which the commit does not have (``there`` says what it has): the agent writes that.
    """
    found: list[MaskedCheck] = []
    for command in dict.fromkeys(commands):
        look = _Look(read, parse, there)
        hidden = look.hidden(Piece(command), Options(), alone=True)
        if hidden is not None:
            found.append(msgspec.structs.replace(hidden, command=command))
        elif look.own:
            why = f"it runs {look.own[0]}, which is not in the commit that the session begins from: the agent writes it"
            found.append(MaskedCheck(command, why, "name tests that exist, or have a judge look at the work", False))
    return found


@dataclass(slots=True)
class _Look:
    read: Read
    parse: Parse
    there: Callable[[str], bool]
    seen: set[Piece] = field(default_factory=set)
    own: list[str] = field(default_factory=list)

    def hidden(self, piece: Piece, options: Options, where: str = "", *, alone: bool) -> MaskedCheck | None:
        """What is wrong with a piece of shell; ``alone``: it decides by itself, so something in it has to. ``where`` it
        stands, in words; empty for the check itself.
        """
        if piece in self.seen or len(self.seen) >= _MOST_PIECES:
            return None
        self.seen.add(piece)
        tree = _plain(piece.text) or self.parse(piece.text)
        if tree is None:
            return None
        folder = piece.folder
        sites: list[_Site] = []
        for call, words in self._calls(tree, piece):
            if words[:1] == ["cd"] and len(words) > 1:
                folder = shell_paths.at(folder, words[1])
                continue
            made = run_of(words)
            behind = _behind(made)
            kind = max(kind_of(made), kind_of(behind))
            said = _shown(" ".join(words))
            if made.program == "find" and behind.program and made.rest[-1] == ";" and kind is Kind.CHECKER:
                inner = _shown(" ".join((behind.path, *behind.rest)))
                return _finding(
                    where, f"find ends well whatever `{inner}` ends with", "use -exec … {} + in place of \\;"
                )
            for inside, how in self._runs(made, folder):
                checks = self._checks(inside)
                if "ignored" in inside.options and checks:
                    why = f"make ignores how `{_shown(inside.text)}` ends"
                    return _finding(where or f"what `{said}` runs", why, "leave out the - before it")
                deeper = inside.script or where or f"what `{said}` runs"
                if (
                    found := self.hidden(inside, how, deeper, alone=bool(inside.script) and not call.aside)
                ) is not None:
                    return found
                kind = Kind.CHECKER if checks else kind
            if word := ignoring(made):
                return _finding(where, f"`{word}` has `{said}` end well whatever it finds", f"leave out {word}")
            sites.append(_Site(call, made, kind, self._agents(made, folder)))
        try:
            return self._lost(piece, tree, sites, options, where, alone)
        except TooDeep:
            return _finding(where, "it is nested too deeply to be followed", "write it in a plainer way")

    def _calls(self, tree: Mapping[str, object], piece: Piece) -> list[tuple[Call, list[str]]]:
        """Its simple commands with their words, in a script with the places in them that it finds out from its own."""
        found = calls(tree)
        read = found
        if piece.script and (text := shell_paths.placed(piece.text, piece.script)) != piece.text:
            placed = self.parse(text)
            read = calls(placed) if placed is not None else found
        if len(read) != len(found):
            read = found
        return [(call, [one or "" for one in with_places.words]) for call, with_places in zip(found, read, strict=True)]

    def _lost(
        self,
        piece: Piece,
        tree: Mapping[str, object],
        sites: list[_Site],
        options: Options,
        where: str,
        alone: bool,
    ) -> MaskedCheck | None:
        ways = _Ways(tree, sites, options)
        checkers = [one for one in sites if one.kind is Kind.CHECKER][:_MOST_CHECKERS]
        for site in checkers:
            if (lost := ways.hides(site)) is not None:
                return _told(piece, site, lost, where)
        if checkers and all(ways.never(site) for site in checkers):
            return _finding(
                where, f"`{_text(piece, checkers[0].call.at)}` never runs", "leave out what stands before it"
            )
        others = [one for one in sites if one.kind is Kind.COMMAND][:_MOST_CHECKERS]
        self.own += [one.own for one in (*checkers, *others) if one.own and ways.hides(one) is None]
        if checkers or not others or not alone:
            return None
        losses = [ways.hides(one) for one in others]
        lost = losses[0]
        if lost is None or any(one is None or one.how is Loss.NOT for one in losses):
            return None
        return _told(piece, others[0], lost, where)

    def _runs(self, made: Run, folder: str) -> Iterator[tuple[Piece, Options]]:
        """What one command runs in its turn: a script, a target, the words behind ``-c``."""
        if SHELLS.fullmatch(made.program):
            options, script, text = _shell_words(made)
            if text:
                yield Piece(text, folder), options
            elif script:
                yield from self._script(shell_paths.at(folder, script), folder, options)
        elif "/" in made.path and not INTERPRETERS.fullmatch(made.program):
            yield from self._script(shell_paths.at(folder, made.path), folder, None)
        elif made.program in (".", "source", "eval", "find", "xargs"):
            yield from self._words_of(made, folder)
        else:
            for piece in check_scripts.followed(made.program, list(made.rest), folder, self.read):
                pipefail = "pipefail" in piece.options
                yield piece, Options(errexit="e" in piece.options, pipefail=pipefail)

    def _script(self, path: str, folder: str, options: Options | None) -> Iterator[tuple[Piece, Options]]:
        text = self.read(path) if shell_paths.inside(path) else ""
        first = re.match(r"#!.*?\b(?:ba|da|z|k)?sh\b(?:[ \t]+(-\S+))?(?:[ \t]+(\w+))?", text)
        if options is None and first is None:
            return
        if text:
            own = _options([first[1] or "", first[2] or ""]) if first is not None else Options()
            yield Piece(text, folder, path), options if options is not None else own

    def _words_of(self, made: Run, folder: str) -> Iterator[tuple[Piece, Options]]:
        if made.program == "eval":
            yield Piece(" ".join(made.rest), folder), Options()
        elif made.program in (".", "source") and made.rest:
            path = shell_paths.at(folder, made.rest[0])
            if shell_paths.inside(path) and (text := self.read(path)):
                yield Piece(text, folder), Options()
        for at, word in enumerate(made.rest):
            if SHELLS.fullmatch(word) and made.program in ("find", "xargs"):
                options, _, text = _shell_words(run_of(made.rest[at:]))
                if text:
                    yield Piece(text, folder), options

    def _checks(self, piece: Piece) -> bool:
        tree = self.parse(piece.text)
        return tree is not None and any(
            kind_of(run_of([one or "" for one in call.words])) is Kind.CHECKER for call in calls(tree)
        )

    def _agents(self, made: Run, folder: str) -> str:
        """A program inside the worktree that this runs and the commit does not have; empty when it is none."""
        path = made.path if "/" in made.path else ""
        if SHELLS.fullmatch(made.program):
            path = _shell_words(made)[1]
        elif INTERPRETERS.fullmatch(made.program) and not module_of(made.program, made.rest):
            plain = [word for word in made.rest if not word.startswith("-")]
            path = plain[0] if plain and not {"-c", "-e", "-"} & set(made.rest) and "." in plain[0] else ""
        at = shell_paths.at(folder, path) if path else ""
        return at if at and shell_paths.inside(at) and not _INSTALLED.search(at) and not self.there(at) else ""


def _behind(made: Run) -> Run:
    """What `find` or `xargs` runs."""
    words = list(made.rest)
    if made.program == "find":
        at = next((at for at, word in enumerate(words) if word in ("-exec", "-execdir", "-ok")), len(words))
        return run_of([word for word in words[at + 1 :] if word not in (";", "+")])
    if made.program != "xargs":
        return Run("", "", ())
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 2 if re.fullmatch(r"-[InPLdEsa]", words[at]) else 1
    return run_of(words[at:])


@dataclass(slots=True)
class _Ways:
    """The ways through one script."""

    tree: Mapping[str, object]
    sites: list[_Site]
    options: Options

    def hides(self, site: _Site) -> Lost | None:
        """Where the failure of this command is lost; None when the script tells of it, or does not come to it."""
        same = named_alike(site.run)
        alike = frozenset(one.call.at[0] for one in self.sites if one is not site and named_alike(one.run) == same)
        always, _ = self._reached(Failing(site.call.at[0], alike=alike))
        if always is not None and always.status == 0:
            return always.lost or Lost(Loss.UNASKED, (0, 0))
        once, _ = self._reached(Failing(site.call.at[0], once=True, alike=alike))
        lost = once.lost if once is not None and once.status == 0 else None
        return lost if lost is not None and lost.how is Loss.LOOP else None

    def never(self, site: _Site) -> bool:
        """Whether no way through the script comes to this command."""
        outcome, all_seen = self._reached(Failing(site.call.at[0]))
        return outcome is None and all_seen

    def _reached(self, failing: Failing) -> tuple[Outcome | None, bool]:
        """The end of the first way that comes to the command that fails, and whether all ways were looked at."""
        unsure = frozenset(one.call.at[0] for one in self.sites if one.kind is not Kind.HELPER)
        ways: list[tuple[bool, ...]] = [()]
        for _ in range(_MOST_WAYS):
            if not ways:
                return None, True
            way = ways.pop(0)
            outcome = run(self.tree, failing, self.options, unsure, way)
            if outcome.reached:
                return outcome, False
            ways += [(*way, *[True] * (at - len(way)), False) for at in range(len(way), outcome.turns)]
        return None, False


def _plain(text: str) -> Mapping[str, object] | None:
    """The syntax tree of plain commands joined by ``&&``, as most checks are; None for what a shell has to read."""
    tree: dict[str, object] | None = None
    at = 0
    for part in text.split("&&"):
        if not _PLAIN.fullmatch(part) or "\n" in part.strip() or re.match(r"\s*(?:\w+=|$)", part):
            return None
        size = len(part.encode())
        place = {"Pos": {"Offset": at}, "End": {"Offset": at + size}}
        words = [{"Parts": [{"Type": "Lit", "Value": word}]} for word in part.split()]
        made: dict[str, object] = {**place, "Cmd": {"Type": "CallExpr", "Args": words, **place}}
        joined = {"Type": "BinaryCmd", "Op": "&&", "X": tree, "Y": made}
        tree = made if tree is None else {**place, "Cmd": joined}
        at += size + 2
    return {"Stmts": [tree]}


def _told(piece: Piece, site: _Site, lost: Lost, where: str) -> MaskedCheck:
    name = _text(piece, site.call.at)
    other = _text(piece, lost.at)
    why = {
        Loss.PIPE: f"the end of the pipe, `{other}`, decides and not `{name}`",
        Loss.LIST: f"`{other}` comes after `{name}` whether that fails or not",
        Loss.OR: f"`|| {other}` has it pass when `{name}` fails",
        Loss.NOT: f"the ! has it pass when `{name}` fails",
        Loss.BACKGROUND: f"`{name}` runs in the background, and its exit code is not asked for",
        Loss.WITHIN: f"the exit code of `{name}` inside `{other}` is lost",
        Loss.CONDITION: f"`{name}` is a condition, and what follows ends well when it fails",
        Loss.LOOP: f"`{name}` runs in a loop, of which the last round decides",
        Loss.EXIT: f"`{other}` ends it well when `{name}` fails",
        Loss.TRAP: f"a trap ends it well when `{name}` fails",
        Loss.UNASKED: f"it ends well when `{name}` fails",
    }[lost.how]
    instead = _INSTEAD[lost.how]
    if lost.how is Loss.PIPE and not where:
        instead = f"set -o pipefail; {piece.text}"
    elif lost.how is Loss.PIPE and piece.script:
        instead = f"bash -o pipefail {piece.script}"
    return _finding(where, why, instead)


def _finding(where: str, why: str, instead: str) -> MaskedCheck:
    return MaskedCheck("", f"{where}: {why}" if where else why, instead)


def _text(piece: Piece, at: tuple[int, int]) -> str:
    raw = piece.text.encode("utf-8", "surrogateescape")
    return _shown(raw[at[0] : at[1]].decode("utf-8", "replace").strip().removesuffix(";"))


def _shown(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MOST_SHOWN else f"{flat[:_MOST_SHOWN]}…"


def _shell_words(made: Run) -> tuple[Options, str, str]:
    """How a shell is started: its options, the script that it reads, or the text behind ``-c``."""
    flags: list[str] = []
    words = list(made.rest)
    while words and re.fullmatch(r"[-+][a-zA-Z]+", words[0]):
        flags.append(words.pop(0))
        if flags[-1].endswith(("o", "O")) and words:
            flags.append(words.pop(0))
    text = words[0] if words and any(re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", one) for one in flags) else ""
    return _options(flags), "" if text or not words else words[0], text


def _options(flags: list[str]) -> Options:
    short = "".join(one[1:] for one in flags if one.startswith("-"))
    return Options("e" in short or "errexit" in flags, "pipefail" in flags)
