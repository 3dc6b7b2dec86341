"""Which exit status a shell script has when one of its commands fails: by its syntax tree, without running anything.

Pure. What a value is nobody can tell beforehand (a file that is read, an answer of a program), is *unknown*: commands
other than the one that fails succeed then, and an unknown exit status is taken for one that says something.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial

from harness.checks.masked.shell_tree import Node, first_word, items, name_of, nodes, span, span_of, stages
from harness.checks.masked.shell_values import Status, Values, arithmetic, compared
from harness.policy.shell import word

_MOST_STEPS = 20_000
_MOST_ROUNDS = 3
_MOST_DEPTH = 40
_ROUNDS_OF_A_LIST = 2
_NOTHING: Node = {}
_KNOWN = frozenset({"set", "trap", ":", "true"})


class Loss(StrEnum):
    """Where the status of the command that fails is lost."""

    PIPE = "pipe"
    LIST = "list"
    OR = "or"
    NOT = "not"
    BACKGROUND = "background"
    WITHIN = "within"
    CONDITION = "condition"
    LOOP = "loop"
    EXIT = "exit"
    TRAP = "trap"
    UNASKED = "unasked"


@dataclass(frozen=True, slots=True)
class Lost:
    """How a status was lost, and the bytes of the script that decide in its place."""

    how: Loss
    at: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a script ends with. ``reached``: the command that fails was run; ``lost``: where its status was, first."""

    status: Status
    reached: bool
    lost: Lost | None
    turns: int
    """Outcomes that were assumed on the way."""


@dataclass(frozen=True, slots=True)
class Options:
    """How the shell that reads a script was started."""

    errexit: bool = False
    pipefail: bool = False


@dataclass(frozen=True, slots=True)
class Failing:
    """The command that fails, and whether only once; ``alike``: those that do the same as it and fail with it when they
    are tried in its place.
    """

    at: int
    once: bool = False
    alike: frozenset[int] = frozenset()


class TooDeep(Exception):
    """A script cannot be followed: it is too long, or nested too deeply."""


class _Exit(Exception):
    def __init__(self, status: Status) -> None:
        self.status = status


class _Return(_Exit):
    pass


class _Leave(Exception):
    def __init__(self, ends: bool) -> None:
        self.ends = ends


def run(
    tree: Node, failing: Failing, options: Options, unsure: frozenset[int] = frozenset(), turns: Sequence[bool] = ()
) -> Outcome:
    """The end of a script in which that command fails. ``unsure`` are those that may; ``turns``: how they and what else
    nobody can tell come out, in the order in which they are met; the others succeed. Raises TooDeep.
    """
    shell = _Run(failing, options, unsure, list(turns))
    try:
        status = shell.script(items(tree, "Stmts"))
    except RecursionError:
        raise TooDeep from None
    return Outcome(status, shell.fired > 0, shell.lost, shell.turn)


@dataclass(slots=True)
class _Run:
    failing: Failing
    options: Options
    unsure: frozenset[int]
    turns: list[bool]
    turn: int = 0
    steps: int = 0
    depth: int = 0
    fired: int = 0
    alike: bool = False
    lost: Lost | None = None
    values: Values = field(default_factory=Values)
    errexit: bool = False
    pipefail: bool = False
    functions: dict[str, Node] = field(default_factory=dict)
    traps: dict[str, list[object]] = field(default_factory=dict)
    reads: dict[int, int] = field(default_factory=dict)

    def script(self, stmts: list[object]) -> Status:
        self.errexit = self.options.errexit
        self.pipefail = self.options.pipefail
        try:
            status = self.body(stmts)
        except _Exit as end:
            status = end.status
        except _Leave:
            status = 0
        return self._at_exit(status)

    def _at_exit(self, status: Status) -> Status:
        handler = self.traps.pop("EXIT", None)
        if handler is None:
            return status
        self.values.last = status
        try:
            self.errexit = False
            self.body(handler)
        except _Exit as end:
            if status != 0 and end.status == 0:
                self.lost = Lost(Loss.TRAP, span_of(handler))
            return end.status
        return status

    # -- lists and statements ----------------------------------------------------------------------

    def body(self, stmts: list[object], *, tested: bool = False) -> Status:
        status: Status = 0
        for index, stmt in enumerate(stmts):
            if not isinstance(stmt, Mapping):
                continue
            status = self.statement(stmt, tested=tested)
            if index + 1 < len(stmts):
                self._drop(status, Loss.LIST, stmts[index + 1])
        return status

    def statement(self, stmt: Node, *, tested: bool = False) -> Status:
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise TooDeep
        negated = bool(stmt.get("Negated"))
        for redirect in items(stmt, "Redirs"):
            self._words([redirect])
        command = stmt.get("Cmd")
        if stmt.get("Background") or stmt.get("Coprocess"):
            before = self.values.last
            self.values.background = self._apart(lambda: self._command(command, tested=False))
            self.values.last = before
            self._drop(self.values.background, Loss.BACKGROUND, stmt)
            return 0
        quiet = tested or negated
        status = self._command(command, tested=quiet)
        if negated and status is not None:
            self._drop(status, Loss.NOT, stmt)
            status = 0 if status else 1
        self.values.last = status
        kind = command.get("Type") if isinstance(command, Mapping) else ""
        whole = kind != "BinaryCmd" or (isinstance(command, Mapping) and command.get("Op") in ("|", "|&"))
        if status and not quiet and (whole or not self._was_tested(command)):
            self._failed(status)
        return status

    def _was_tested(self, command: object) -> bool:
        """Whether a list of ``&&`` and ``||`` failed before its end: the shell goes on then."""
        return isinstance(command, Mapping) and self.values.short

    def _failed(self, status: Status) -> None:
        handler = self.traps.get("ERR")
        if handler is not None:
            self.values.last = status
            self.body(handler, tested=True)
        if self.errexit:
            raise _Exit(status)

    def _drop(self, status: Status, how: Loss, node: object) -> None:
        if status != 0 and self.fired and self.lost is None:
            self.lost = Lost(how, span(node))

    def _apart(self, work: Callable[[], Status]) -> Status:
        """What runs in a shell of its own: nothing but its status comes back."""
        kept = self.values.copy(), self.errexit, self.pipefail, dict(self.traps)
        self.traps.pop("EXIT", None)
        try:
            try:
                status = work()
            except _Exit as end:
                status = end.status
            except _Leave:
                status = 0
            return self._at_exit(status)
        finally:
            self.values, self.errexit, self.pipefail, self.traps = kept

    # -- commands ----------------------------------------------------------------------------------

    def _command(self, node: object, *, tested: bool) -> Status:
        if not isinstance(node, Mapping):
            return 0
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise TooDeep
        try:
            return self._of_kind(node, tested)
        finally:
            self.depth -= 1

    def _of_kind(self, node: Node, tested: bool) -> Status:
        match node.get("Type"):
            case "CallExpr":
                return self._call(node, tested)
            case "BinaryCmd" if node.get("Op") in ("|", "|&"):
                return self._pipe(node)
            case "BinaryCmd":
                return self._either(node, tested)
            case "Subshell":
                return self._apart(lambda: self.body(items(node, "Stmts"), tested=tested))
            case "Block":
                return self.body(items(node, "Stmts"), tested=tested)
            case "IfClause":
                return self._if(node, tested)
            case "WhileClause":
                return self._while(node, tested)
            case "ForClause":
                return self._for(node, tested)
            case "CaseClause":
                return self._case(node, tested)
            case "FuncDecl":
                body = node.get("Body")
                self.functions[name_of(node, "Name")] = body if isinstance(body, Mapping) else _NOTHING
                return 0
            case "TimeClause":
                stmt = node.get("Stmt")
                return self.statement(stmt, tested=tested) if isinstance(stmt, Mapping) else 0
            case "DeclClause":
                status = self._assign(items(node, "Args"))
                self._drop(status, Loss.WITHIN, node)
                return 0
            case "TestClause":
                return self._truth(self._compare(node.get("X")))
            case "ArithmCmd":
                return self._number(arithmetic(node.get("X"), self.values, self._text))
            case "LetClause":
                found = [arithmetic(one, self.values, self._text) for one in items(node, "Exprs")]
                return self._number(found[-1] if found else None)
        return 0

    def _pipe(self, node: Node) -> Status:
        piped = stages(node)
        found = [self._apart(partial(self.statement, stage)) for stage in piped]
        self.values.pipes = found
        bad = [status for status in found if status != 0]
        if self.pipefail and bad:
            return bad[-1]
        for status in found[:-1]:
            self._drop(status, Loss.PIPE, piped[-1])
        return found[-1]

    def _either(self, node: Node, tested: bool) -> Status:
        x = node.get("X")
        y = node.get("Y")
        left = self.statement(x, tested=True) if isinstance(x, Mapping) else 0
        self.values.short = False
        if not isinstance(y, Mapping):
            return left
        if node.get("Op") == "&&":
            if left == 0:
                return self.statement(y, tested=tested)
            self.values.short = True
            return left
        if left == 0:
            return 0
        before = self.alike
        self.alike = self.fired > 0
        try:
            status = self.statement(y, tested=tested)
        finally:
            self.alike = before
        if status == 0:
            self._drop(left, Loss.OR, y)
        return status

    def _if(self, node: Node, tested: bool) -> Status:
        now: object = node
        while isinstance(now, Mapping):
            cond = items(now, "Cond")
            status = self.body(cond, tested=True) if cond else 0
            if status is None:
                status = 0 if self._chosen() else 1
            if status == 0:
                return self.body(items(now, "Then"), tested=tested)
            self._drop(status, Loss.CONDITION, node)
            now = now.get("Else")
        return 0

    def _case(self, node: Node, tested: bool) -> Status:
        arms = [one for one in items(node, "Items") if isinstance(one, Mapping)]
        value = self._text(node.get("Word"))
        for item in arms:
            forms = [word(one).text for one in items(item, "Patterns")]
            met = (
                value in forms
                if value is not None and None not in forms and "*" not in "".join(map(str, forms))
                else None
            )
            if met or (met is None and (item is arms[-1] or "*" in forms or self._chosen())):
                return self.body(items(item, "Stmts"), tested=tested)
        return 0

    def _while(self, node: Node, tested: bool) -> Status:
        status: Status = 0
        until = bool(node.get("Until"))
        here = span(node)[0]
        self.reads[here] = 0
        for _ in range(_MOST_ROUNDS):
            self.reads[here] += 1
            cond = items(node, "Cond")
            reads = any(one.get("Type") == "CallExpr" and first_word(one) == "read" for one in nodes(cond))
            held = int(self.reads[here] > _ROUNDS_OF_A_LIST) if reads else self.body(cond, tested=True)
            if held is None:
                held = 0 if self._chosen() else 1
            if (held == 0) == until:
                return status
            self._drop(status, Loss.LOOP, node)
            try:
                status = self.body(items(node, "Do"), tested=tested)
            except _Leave as leave:
                status = 0
                if leave.ends:
                    return status
        return None

    def _for(self, node: Node, tested: bool) -> Status:
        status: Status = 0
        loop = node.get("Loop")
        name = name_of(loop, "Name")
        self._words(items(loop, "Items"))
        for _ in range(_ROUNDS_OF_A_LIST):
            self.values.set(name, None)
            self._drop(status, Loss.LOOP, node)
            try:
                status = self.body(items(node, "Do"), tested=tested)
            except _Leave as leave:
                status = 0
                if leave.ends:
                    break
        return status

    # -- simple commands ---------------------------------------------------------------------------

    def _call(self, node: Node, tested: bool) -> Status:
        args = items(node, "Args")
        within = self._assign(items(node, "Assigns"), lasting=not args)
        if not args:
            return within
        self._words(args)
        words = [self._text(one) for one in args]
        at = span(node)[0]
        if at == self.failing.at or (self.alike and at in self.failing.alike):
            return self._fails(at)
        name = words[0] or ""
        if name in self.functions:
            return self._function(self.functions[name], tested)
        return self._builtin(name, words, node)

    def _fails(self, at: int) -> Status:
        if at != self.failing.at:
            return 1
        self.fired += 1
        return 0 if self.failing.once and self.fired > 1 else 1

    def _function(self, body: Node, tested: bool) -> Status:
        self.depth += 1
        if self.depth > _MOST_DEPTH:
            raise TooDeep
        try:
            return self.statement(body, tested=tested)
        except _Return as end:
            return end.status
        finally:
            self.depth -= 1

    def _builtin(self, name: str, words: list[str | None], node: Node) -> Status:
        values = self.values
        given = words[1] if len(words) > 1 else ""
        match name:
            case "exit" | "return":
                status = values.last if len(words) < 2 else _as_status(given)
                if status == 0 and len(words) > 1 and self.fired:
                    self.lost = self.lost if self.lost and self.lost.how is Loss.OR else Lost(Loss.EXIT, span(node))
                raise (_Exit if name == "exit" else _Return)(status)
            case "break" | "continue":
                raise _Leave(name == "break")
            case "false":
                return 1
            case "set":
                self._set([one or "" for one in words[1:]])
            case "trap":
                self._trap(words, items(node, "Args"))
            case "wait":
                return values.background if len(words) > 1 else 0
            case "test" | "[":
                return self._truth(compared([one for one in words[1:] if one != "]" or name == "test"]))
        return self._truth(None if span(node)[0] in self.unsure and name not in _KNOWN else True)

    def _set(self, words: Sequence[str]) -> None:
        for index, one in enumerate(words):
            if re.fullmatch(r"[-+][a-zA-Z]+", one):
                on = one[0] == "-"
                self.errexit = on if "e" in one[1:].rstrip("o") else self.errexit
                if one.endswith("o") and index + 1 < len(words):
                    self._option(words[index + 1], on)

    def _option(self, name: str, on: bool) -> None:
        if name == "pipefail":
            self.pipefail = on
        elif name == "errexit":
            self.errexit = on

    def _trap(self, words: list[str | None], args: list[object]) -> None:
        signals = {one.removeprefix("SIG") for one in words[2:] if one}
        text = words[1] if len(words) > 1 else None
        for signal in signals & {"EXIT", "0", "ERR"}:
            body = self._handler(text, args[1])
            self.traps["EXIT" if signal == "0" else signal] = body

    def _handler(self, text: str | None, node: object) -> list[object]:
        """What a trap runs, as far as it decides: the `exit` in it, or the function that it calls."""
        if text in self.functions:
            return [self.functions[text]]
        found = re.findall(r"(?:^|[;&\s])exit(?:\s+(\d+|\$\?))?\s*(?:$|[;}\s])", text or "")
        if not found:
            return []
        begin, end = span(node)
        given = [{"Type": "Word", "Parts": [{"Type": "Lit", "Value": found[-1]}]}] if found[-1].isdigit() else []
        literal = {"Type": "Word", "Parts": [{"Type": "Lit", "Value": "exit"}]}
        place = {"Pos": {"Offset": begin}, "End": {"Offset": end}}
        return [{**place, "Cmd": {"Type": "CallExpr", "Args": [literal, *given], **place}}]

    # -- values ------------------------------------------------------------------------------------

    def _assign(self, assigns: Iterable[object], *, lasting: bool = True) -> Status:
        status: Status = 0
        for one in assigns:
            if not isinstance(one, Mapping):
                continue
            value = one.get("Value")
            array = one.get("Array")
            status = self._words([value])
            if lasting and (name := name_of(one, "Name")):
                if array is not None:
                    self.values.extend(name, len(items(array, "Elems")), append=bool(one.get("Append")))
                else:
                    self.values.set(
                        name, self._text(value) if value is not None else "", append=bool(one.get("Append"))
                    )
        return status

    def _words(self, nodes: Iterable[object]) -> Status:
        """Run what is substituted in these words; the status of the last such command."""
        status: Status = 0
        pending = list(reversed(list(nodes)))
        while pending:
            node = pending.pop()
            if isinstance(node, list):
                pending += reversed(node)
            elif isinstance(node, Mapping):
                if node.get("Type") in ("CmdSubst", "ProcSubst"):
                    status = self._apart(partial(self.body, items(node, "Stmts")))
                    self._drop(status, Loss.WITHIN, node)
                else:
                    pending += reversed(list(node.values()))
        return status

    def _text(self, node: object) -> str | None:
        return self.values.text(node)

    def _compare(self, node: object) -> bool | None:
        if not isinstance(node, Mapping):
            return None
        kind = node.get("Type")
        op = node.get("Op")
        if kind == "ParenTest" or (kind == "UnaryTest" and op == "!"):
            inner = self._compare(node.get("X"))
            return inner if inner is None or kind == "ParenTest" else not inner
        if kind == "BinaryTest" and op in ("&&", "||"):
            left = self._compare(node.get("X"))
            right = self._compare(node.get("Y"))
            if left is None or right is None:
                return None
            return (left and right) if op == "&&" else (left or right)
        self._words([node])
        if kind == "BinaryTest":
            return compared([self._text(node.get("X")), str(op), self._text(node.get("Y"))])
        if kind == "UnaryTest":
            return compared([str(op), self._text(node.get("X"))])
        return compared([self._text(node)])

    def _truth(self, held: bool | None) -> Status:
        good = self._chosen() if held is None else held
        return int(not good)

    def _number(self, value: int | None) -> Status:
        return self._truth(None if value is None else value != 0)

    def _chosen(self) -> bool:
        self.turn += 1
        return self.turns[self.turn - 1] if self.turn <= len(self.turns) else True


def _as_status(text: str | None) -> Status:
    return int(text) % 256 if text is not None and re.fullmatch(r"-?\d{1,9}", text) else None
