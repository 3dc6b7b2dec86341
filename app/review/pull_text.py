"""Title and body of a request for review, from what Watchfloor itself has on record. Pure.

Every text of others is shown safely, and where it could be markup as code. The request may be public, so a line that
looks like a secret is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from harness.domain.outcomes import JUDGED, STILL_PASSES, VERIFIED, WORDS
from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import decided
from harness.projections.state.publishing import CheckLine, PullView
from harness.reports.receipts import Receipt

MOST_BYTES = 60_000
"""Of a body; the forges take 65,536 characters, and a program's argument is at most 128 KiB."""
_TITLE = 72
_GOAL = 4000
_TEXT = 300
_LISTED = 50
_SAID = {
    JUDGED: "Judged: a judge who saw the change is satisfied with it.",
    VERIFIED: "Verified: every check passes, run by Watchfloor, and at least one of them failed before the work.",
    STILL_PASSES: "Every check still passes, run by Watchfloor, as it did before the work.",
}
_CUT = "It is cut here: a request takes no more."

Finder = Callable[[Sequence[str]], Sequence[Sequence[str]]]
"""Texts → for each line of each the kind of secret in it, in words; empty for none."""


class SecretTitle(Exception):
    """The title looks like a secret; the message says why and what to do."""


def code(raw: str, limit: int | None = None) -> str:
    """Text of others as a Markdown code span that it cannot end."""
    shown = to_display(raw, limit=limit)
    longest = max((len(run) for run in re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {shown} {fence}"


def title(view: PullView, given: str, finder: Finder) -> str:
    """The one that was ``given``, else its one commit's subject, else the first line of the goal; the latter two shown
    safely. Raises SecretTitle.
    """
    raw = given or _of_its_own(view)
    if what := _first(finder([raw])[0]):
        raise SecretTitle(f"its title looks like {what}, and a request may be public; name another one with --title")
    if given:
        return given
    shown = to_display(raw)
    return shown if len(shown) <= _TITLE else shown[: _TITLE - 1] + "…"


def body(view: PullView, receipts: Sequence[Receipt], finder: Finder) -> str:
    """Goal, commits, plan, checks, and what a person decided on the way; at most `MOST_BYTES` of UTF-8."""
    plan = [f"{one.id} {one.title}" for one in view.plan]
    ticks = [f"[{'x' if one.passes else ' '}] " for one in view.plan]
    checks = [one.command for one in view.checks]
    passed = [_outcome(one) for one in view.checks]
    chosen = [f"{decided(one.decision)}: {one.title}" for one in reversed(receipts) if one.decision]
    said = _SAID.get(view.proof, "Not verified by Watchfloor.")
    parts = (
        ("Goal", list(_goal(view.goal.strip(), finder))),
        ("Commits", _listed(view.commits, [], view.count, finder)),
        ("Plan", _listed(plan, ticks, len(plan), finder)),
        ("Checks", [said, "", *_listed(checks, passed, len(checks), finder)]),
        ("Decided by a person, newest first", _listed(chosen, [], len(chosen), finder)),
    )
    made = [f"## {head}\n\n" + "\n".join(lines).rstrip() for head, lines in parts if lines]
    at = f", at {view.head[:12]}" if view.head else ""
    return _capped("\n\n".join(made), f"\n\nSession {view.sid}{at}.\n")


def _outcome(check: CheckLine) -> str:
    if not check.passed:
        return "not passed: "
    return f"{WORDS[check.outcome]}: "


def _of_its_own(view: PullView) -> str:
    lines = [line.strip() for line in view.goal.split("\n") if line.strip()]
    if view.count == 1 and view.commits:
        lines = view.commits
    return lines[0] if lines else view.name


def _goal(raw: str, finder: Finder) -> Iterator[str]:
    """Its lines as a block of code, cut after so many characters; lines that were left out one behind the other are
    one.
    """
    left = _GOAL
    before = ""
    for line, what in zip(raw.split("\n"), finder([raw])[0], strict=True):
        if left <= 0:
            yield "    (the goal goes on)"
            return
        if not what:
            yield f"    {to_display(line[:left])}"
        elif what != before:
            yield f"    ({_left_out(what)})"
        before = what
        left -= len(line) + 1


def _listed(texts: Sequence[str], marks: Sequence[str], count: int, finder: Finder) -> list[str]:
    """The first of ``count`` as points of a list, each behind its mark, if they have any."""
    shown = texts[:_LISTED]
    heads = marks[:_LISTED] or [""] * len(shown)
    found = map(_first, finder(shown)) if shown else ()
    lines = [
        f"- {head}{_left_out(what) if what else code(text, _TEXT)}"
        for head, text, what in zip(heads, shown, found, strict=True)
    ]
    more = count - len(shown)
    return [*lines, *([f"- and {more:,} more"] if more > 0 else [])]


def _capped(text: str, end: str) -> str:
    """Both, the text cut at the end of a line, and that said, where they are too much."""
    whole = text + end
    if len(whole.encode()) <= MOST_BYTES:
        return whole
    end = f"\n\n{_CUT}{end}"
    kept = text.encode()[: MOST_BYTES - len(end.encode())]
    return kept[: kept.rfind(b"\n")].decode().rstrip() + end


def _left_out(what: str) -> str:
    return f"left out: it looks like {what}"


def _first(kinds: Sequence[str]) -> str:
    return next((kind for kind in kinds if kind), "")
