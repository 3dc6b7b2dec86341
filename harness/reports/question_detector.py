"""Does a reply ask the person something? It does when its last line ends in a question mark. Pure."""

from __future__ import annotations

TITLE = 300
MOST_WORDS = 8000

_MARKS = ("?", "\uff1f", "\u061f")
"""Latin, full width, Arabic."""
_CLOSERS = " \t*_~\"'\u201d\u2019\u00bb\u300d\u300f)]\uff09\u3011"
"""Emphasis, quotation marks and brackets that may stand behind the question mark; a backtick ends code."""


def asked(reply: str) -> str:
    """The last line of ``reply`` when it is a question, at most `TITLE` characters of its end; empty when it is not."""
    last = reply.rstrip().rpartition("\n")[2]
    if not last.rstrip(_CLOSERS).endswith(_MARKS):
        return ""
    line = " ".join(last.split())
    return line if len(line) <= TITLE else "…" + line[-TITLE + 1 :]


def words(reply: str) -> str:
    """What a request quotes of a reply: all of it, or of a very long one its end, where the question stands."""
    text = reply.strip()
    return (
        text if len(text) <= MOST_WORDS else f"[… {len(text) - MOST_WORDS} characters left out …]\n{text[-MOST_WORDS:]}"
    )
