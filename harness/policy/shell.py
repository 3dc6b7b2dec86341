"""Reading shfmt's syntax tree of a shell script (``shfmt -ln bash --to-json``).

Pure; every shape it does not know is *dynamic*.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

MAX_SCRIPT = 64 * 1024
_GLOB = re.compile(r"[*?\[]|[@!+]\(")
_BRACES = re.compile(r"\{[^{}]*(,|\.\.)[^{}]*\}|[{}].*[,]|,.*[{}]")


@dataclass(frozen=True, slots=True)
class Word:
    """One word of a command.

    ``text`` None = its value is only known when it runs; ``glob`` = it is a file name pattern.
    """

    text: str | None
    glob: bool = False


def _list(node: object, key: str) -> list[object]:
    value = node.get(key) if isinstance(node, Mapping) else None
    return value if isinstance(value, list) else []


def word(node: object) -> Word:
    """The value of a word node, when it can be known without running anything."""
    text = ""
    glob = False
    for index, part in enumerate(_list(node, "Parts")):
        kind, value = (part.get("Type"), part.get("Value", "")) if isinstance(part, Mapping) else (None, "")
        if kind == "Lit" and isinstance(value, str):
            bare = re.sub(r"\\.", "", value, flags=re.DOTALL)
            if _BRACES.search(bare) or (index == 0 and bare.startswith("~") and value.startswith("~")):
                return Word(None)
            glob = glob or bool(_GLOB.search(bare))
            text += re.sub(r"\\(.)", lambda m: "" if m[1] == "\n" else m[1], value, flags=re.DOTALL)
        elif kind == "SglQuoted" and isinstance(value, str) and isinstance(part, Mapping):
            if part.get("Dollar") and "\\" in value:
                return Word(None)
            text += value
        elif kind == "DblQuoted":
            for inner in _list(part, "Parts"):
                piece = inner.get("Value") if isinstance(inner, Mapping) and inner.get("Type") == "Lit" else None
                if not isinstance(piece, str):
                    return Word(None)
                text += re.sub(r'\\([\\"$`\n])', lambda m: "" if m[1] == "\n" else m[1], piece)
        else:
            return Word(None)
    return Word(text, glob)


def commands(tree: object) -> Iterator[list[Word]]:
    """The words of every plain command of a script, wherever in it, as they stand there: in the order of the text, and
    whether or not it is reached.
    """
    pending = [tree]  # no recursion: whoever wrote the script also chose how deep it is
    while pending:
        node = pending.pop()
        if isinstance(node, Mapping):
            if node.get("Type") == "CallExpr" and (words := [word(w) for w in _list(node, "Args")]):
                yield words
            pending += reversed(list(node.values()))
        elif isinstance(node, list):
            pending += reversed(node)


def first_of_all(tree: Mapping[str, object] | None) -> list[Word]:
    """The command without which nothing else of a script runs: the first one of a single ``a && b && …``."""
    statements = _list(tree, "Stmts")
    node = statements[0] if len(statements) == 1 else None
    while isinstance(node, Mapping) and not node.get("Negated") and not node.get("Background"):
        command = node.get("Cmd")
        if not isinstance(command, Mapping):
            break
        if command.get("Type") == "CallExpr":
            return [word(w) for w in _list(command, "Args")]
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
