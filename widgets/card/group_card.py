"""One card for several requests that are alike: what is the same for all once, then how each of them differs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.domain.actions.action import PushAction
from harness.domain.calls.card_facts import Fact
from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import counted
from harness.views.session_views import ApprovalView
from widgets.card.card_action import wants
from widgets.card.card_facts import commits, groups
from widgets.card.card_line import CardLine
from widgets.card.card_text import RISKS, action_of, card

_INDENTED = (" ", "┊")


@dataclass(frozen=True, slots=True)
class _Part:
    """Lines that belong together; two parts of one ``meaning`` say the same. ``decides``: a card shows it by itself."""

    lines: tuple[CardLine, ...]
    meaning: tuple[str, ...]
    decides: bool


def together(views: Sequence[ApprovalView]) -> list[CardLine]:
    """Every line that decides about any of these calls, and the folded facts that differ between them.

    What is the same for all stands once. Facts that differ by the name of the session's own folders alone are the same.
    """
    if not views:
        return []
    members = [_parts(view) for view in views]
    same = set.intersection(*({part.meaning for part in mine} for mine in members))
    risk = views[0].risk
    named = RISKS.get(risk, to_display(risk).upper())
    head = f" {named} · {counted(len(views), 'request')}, each decided alone and run once "
    out = [CardLine(head, "badge-" + (risk if risk in RISKS else "critical"))]
    shared = {part.meaning: part for mine in members for part in mine if part.decides and part.meaning in same}
    if shared:
        out.append(CardLine(f"THE SAME FOR ALL {len(views)}", "label"))
        out += [line for part in shared.values() for line in part.lines]
    for at, (view, mine) in enumerate(zip(views, members, strict=True), 1):
        action = action_of(view)
        asks = wants(action) if action is not None else "asks for what cannot be read"
        out += [CardLine(""), CardLine(f"{at} OF {len(views)} · {to_display(view.session_name)} {asks}", "head")]
        own = [line for part in mine if part.meaning not in same for line in part.lines]
        out += own or [CardLine("  nothing else differs", "dim")]
        out.append(CardLine(f"  action hash  {to_display(view.action_hash)}", "dim"))
    return out


def _parts(view: ApprovalView) -> list[_Part]:
    """What a card of its own says about one request, without the line that names it, and without facts that are looked
    at again before it runs, which differ by nature, unless they are unusual.
    """
    whole = card(view)
    found = [_Part(lines, tuple(line.text for line in lines), True) for lines in _cut([*whole.above[1:], *whole.rest])]
    action = action_of(view)
    if action is None or whole.facts is None:
        return found
    needed = set(whole.facts.needed)
    if needed:
        found.append(_Part((CardLine(whole.facts.words, "rule"),), (whole.facts.words,), True))
    for fact, lines in groups(action):
        unusual = needed.issuperset(lines)
        if unusual or fact != Fact.WORLD:
            own = view.sid if fact != Fact.ARGUMENTS else ""
            meaning = tuple(line.text.replace(own, "{session}") if own else line.text for line in lines)
            found.append(_Part(tuple(lines), (fact, *meaning), unusual))
    if isinstance(action, PushAction):  # the names above are cut, and two commits may share what is left
        whole_names = tuple(commits(action))
        found.append(_Part(whole_names, tuple(line.text for line in whole_names), False))
    return found


def _cut(lines: Iterable[CardLine]) -> list[tuple[CardLine, ...]]:
    """Each line that begins at the margin with those that are indented below it."""
    parts: list[list[CardLine]] = []
    for line in lines:
        if not line.text:
            continue
        if parts and line.text.startswith(_INDENTED):
            parts[-1].append(line)
        else:
            parts.append([line])
    return [tuple(part) for part in parts]
