"""The agent's record of progress (``progress.txt``, ``claude-progress.txt``): entries are only added, what is reusable
stands on top under ``## Codebase Patterns``, and each task leaves an entry. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.text.formatting import line

FILE = "progress.txt"
OF_FEATURES = "claude-progress.txt"
NAMES = (FILE, OF_FEATURES)
_TOP = "## Codebase Patterns"
_SECTION = re.compile(rf"^{re.escape(_TOP)}[ \t]*\n(?:(?!## |---[ \t]*$).*\n?)*", re.MULTILINE)
_HEAD = re.compile(r"\A(?:#[^#].*\n|Started:.*\n|[ \t]*\n|---[ \t]*\n)*")


@dataclass(frozen=True, slots=True)
class Followed:
    """``text`` is the file as it is to be; ``did`` what was done to what stood there before, in words; ``added`` is
    what the agent wrote anew.
    """

    text: str
    did: tuple[str, ...]
    added: str


def name(form: str, there: Sequence[str]) -> str:
    """Which of the two files a plan of this form has; the one that is ``there`` wins."""
    wanted = OF_FEATURES if form == "features" else FILE
    return wanted if wanted in there else next((one for one in (FILE, OF_FEATURES) if one in there), wanted)


def header(date: str) -> str:
    """What a new record begins with."""
    return f"# Ralph Progress Log\nStarted: {date}\n---\n"


def follow(known: str, found: str | None) -> Followed:
    """What is in the worktree against what stood there before: earlier entries stay, in their words and their order,
    and the patterns may change but not go.
    """
    now = found or ""
    before = _without(known)
    after = _without(now)
    patterns = _patterns(now) or _patterns(known)
    did = ["its Codebase Patterns were removed"] if _patterns(known) and not _patterns(now) else []
    more = _behind(after, before)
    if more is not None:
        added = more
        text = now if not did else _with(after, patterns)
    else:
        did = ["it was deleted" if found is None else "earlier entries were removed or changed", *did]
        old = set(before.split("\n"))
        added = "\n".join(text for text in after.split("\n") if text not in old).strip()
        text = _with(f"{before.rstrip()}\n" + (f"{added}\n" if added else ""), patterns)
    if patterns and not _on_top(text):
        text = _with(_without(text), patterns)
    return Followed(text, tuple(did), added)


def _behind(after: str, before: str) -> str | None:
    """What stands behind all that was there before; None when that is not all there any more. Blank lines do not
    count.
    """
    old = [text for text in before.split("\n") if text.strip()]
    lines = after.split("\n")
    places = [place for place, text in enumerate(lines) if text.strip()]
    if [lines[place] for place in places[: len(old)]] != old:
        return None
    begin = places[len(old) - 1] + 1 if old else 0
    return "\n".join(lines[begin:]).strip()


def entry(when: str, task: str, title: str, outcome: str, reason: str) -> str:
    """What the harness notes of a task of which the agent noted nothing."""
    return (
        f"## {when} - {line(task)}\n- {line(title)}: {outcome}\n- {line(reason, 500) or 'no reason was given'}\n"
        "- (noted by the harness; the agent wrote no entry)\n---\n"
    )


def appended(text: str, more: str) -> str:
    """The record with an entry behind all others."""
    return f"{text.rstrip()}\n\n{more}" if text.strip() else more


def digest(text: str, most: int = 2500) -> str:
    """What a new context is shown: the patterns, and the newest entries as far as there is room."""
    patterns = _patterns(text).strip()[: most // 2]
    rest = _without(text).strip()[-(most - len(patterns)) :]
    return "\n".join(part for part in (patterns, rest) if part)


def _patterns(text: str) -> str:
    return "".join(found[0].rstrip() + "\n" for found in _SECTION.finditer(text) if found[0].strip() != _TOP)


def _without(text: str) -> str:
    return _SECTION.sub("", text)


def _on_top(text: str) -> bool:
    found = _SECTION.search(text)
    return found is not None and not text[: found.start()].removeprefix(_head(text)).strip()


def _head(text: str) -> str:
    found = _HEAD.match(text)
    return found[0] if found is not None else ""


def _with(text: str, patterns: str) -> str:
    """The patterns between the head of the file and its entries."""
    if not patterns:
        return text
    head = _head(text)
    rest = text.removeprefix(head).lstrip("\n")
    return f"{head.rstrip()}\n\n{patterns}\n{rest}".lstrip("\n")
