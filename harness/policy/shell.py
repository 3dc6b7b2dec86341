"""Reading shfmt's syntax tree of a shell script (``shfmt -ln bash --to-json``).

Pure; every shape it does not know is *dynamic*.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MAX_SCRIPT = 64 * 1024
_GLOB = re.compile(r"[*?\[]|[@!+]\(")
_PLAIN = frozenset({"Type", "Pos", "End", "Dollar", "Short", "Rbrace", "Param"})
"""Fields of the node of a variable that is neither cut nor changed."""
_BRACES = re.compile(r"\{[^{}]*(,|\.\.)[^{}]*\}|[{}].*[,]|,.*[{}]")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command.

    ``text`` None = its value is only known when it runs; ``glob`` = it is a file name pattern; ``at``: the bytes of the
    script that it stands in, from and to.
    """

    text: str | None
    glob: bool = False
    at: tuple[int, int] = (0, 0)


def _list(node: object, key: str) -> list[object]:
    value = node.get(key) if isinstance(node, Mapping) else None
    return value if isinstance(value, list) else []


def word(node: object, known: Mapping[str, str] = {}) -> Word:
    """The value of a word node, when it can be told without running anything. ``known``: variables of the shell that
    runs it which have one value throughout the script.
    """
    text = ""
    glob = False
    at = (_offset(node, "Pos"), _offset(node, "End"))
    parts = _list(node, "Parts")
    for index, part in enumerate(parts):
        kind, value = (part.get("Type"), part.get("Value", "")) if isinstance(part, Mapping) else (None, "")
        if kind == "Lit" and isinstance(value, str):
            bare = re.sub(r"\\.", "", value, flags=re.DOTALL)
            if index == 0 and "HOME" in known and (value.startswith("~/") or (value == "~" and len(parts) == 1)):
                text = known["HOME"]
                value = value[1:]
                bare = bare[1:]
            if _BRACES.search(bare) or (index == 0 and bare.startswith("~") and value.startswith("~")):
                return Word(None, at=at)
            glob = glob or bool(_GLOB.search(bare))
            text += re.sub(r"\\(.)", lambda m: "" if m[1] == "\n" else m[1], value, flags=re.DOTALL)
        elif kind == "SglQuoted" and isinstance(value, str) and isinstance(part, Mapping):
            if part.get("Dollar") and "\\" in value:
                return Word(None, at=at)
            text += value
        elif kind == "DblQuoted":
            for inner in _list(part, "Parts"):
                piece = _quoted(inner, known)
                if piece is None:
                    return Word(None, at=at)
                text += piece
        elif (piece := _variable(part, known)) is not None and re.fullmatch(r"[\w@%+=:,./-]+", piece):
            text += piece
        else:
            return Word(None, at=at)
    return Word(text, glob, at)


def _offset(node: object, end: str) -> int:
    place = node.get(end) if isinstance(node, Mapping) else None
    offset = place.get("Offset") if isinstance(place, Mapping) else None
    return offset if isinstance(offset, int) else 0


def _quoted(part: object, known: Mapping[str, str]) -> str | None:
    value = part.get("Value") if isinstance(part, Mapping) and part.get("Type") == "Lit" else None
    if not isinstance(value, str):
        return _variable(part, known)
    return re.sub(r'\\([\\"$`\n])', lambda m: "" if m[1] == "\n" else m[1], value)


def _variable(part: object, known: Mapping[str, str]) -> str | None:
    """The value of a plain ``$NAME`` or ``${NAME}``."""
    if not isinstance(part, Mapping) or not part.keys() <= _PLAIN:
        return None
    name = part["Param"].get("Value") if isinstance(part.get("Param"), Mapping) else None
    return known.get(name) if isinstance(name, str) else None


def commands(tree: object, known: Mapping[str, str] = {}) -> Iterator[list[Word]]:
    """The words of every plain command of a script, wherever in it, as they stand there: in the order of the text, and
    whether or not it is reached. ``known`` as for `word`.
    """
    pending = [tree]  # no recursion: whoever wrote the script also chose how deep it is
    while pending:
        node = pending.pop()
        if isinstance(node, Mapping):
            if node.get("Type") == "CallExpr" and (words := [word(w, known) for w in _list(node, "Args")]):
                yield words
            pending += reversed(list(node.values()))
        elif isinstance(node, list):
            pending += reversed(node)


def first_of_all(tree: Mapping[str, object] | None, known: Mapping[str, str] = {}) -> list[Word]:
    """The command without which nothing else of a script runs: the first one of a single ``a && b && …``."""
    statements = _list(tree, "Stmts")
    node = statements[0] if len(statements) == 1 else None
    while isinstance(node, Mapping) and not node.get("Negated") and not node.get("Background"):
        command = node.get("Cmd")
        if not isinstance(command, Mapping):
            break
        if command.get("Type") == "CallExpr":
            return [word(w, known) for w in _list(command, "Args")]
        node = command.get("X") if command.get("Type") == "BinaryCmd" and command.get("Op") == "&&" else None
    return []


def only_command(tree: Mapping[str, object] | None) -> list[str] | None:
    """The argument list when the script is exactly one plain command of literal words, else None."""
    statements = _list(tree, "Stmts")
    if len(statements) != 1 or not isinstance(statements[0], Mapping):
        return None
    statement = statements[0]
    call = statement.get("Cmd")
    if not isinstance(call, Mapping) or call.get("Type") != "CallExpr" or call.get("Assigns"):
        return None
    if statement.get("Redirs") or statement.get("Negated") or statement.get("Background") or statement.get("Coprocess"):
        return None
    words = [word(w) for w in _list(call, "Args")]
    texts = [w.text for w in words if w.text is not None and not w.glob]
    return texts if len(texts) == len(words) and texts else None
