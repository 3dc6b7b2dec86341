"""What an approval card says, as text. Pure: built from the action and from what was looked up when it was asked; the
agent's claim stands apart and labelled.

Every line is safe display text. Above the rule stands what decides, below it machine facts, which are folded while they
are as they were approved before. The hash of the whole action, computed here from what is shown, closes the account.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from harness.domain import problems
from harness.domain.actions.action import Action, BadAction, FileAction, PushAction, action_hash, from_wire
from harness.domain.actions.effect import Effect
from harness.domain.calls.approval_kind import AT_RISK, LAST_CALL, Request
from harness.domain.calls.card_facts import KEY, notes_of
from harness.domain.cap import Cap
from harness.domain.text.display_safe import to_display, to_display_lines
from harness.domain.text.formatting import counted
from harness.tools import person_tool
from harness.views.session_views import ApprovalView
from widgets.card.card_action import WILL_RUN, consequences, named_by, wants, will_run
from widgets.card.card_changes import changes_of, compared, diff_lines, left_out
from widgets.card.card_facts import Facts, facts
from widgets.card.card_line import CardLine, wrap
from widgets.card.card_notes import counted_from, effects_of, purpose, runs_of, told
from widgets.card.truncate import Listing

CLAIM = "THE AGENT SAYS (not verified)"
WORDS = "THE AGENT'S WORDS"
CHANGED = "CHANGED SINCE YOU LOOKED: ASKED AGAIN, BECAUSE"
_RULE = "┄" * 3
_REST = "WHAT WAS CUT SHORT ABOVE"
_DEFAULT = "default"
"""The rule of what no rule of a policy names: its reason says the effects again."""
RISKS = {"low": "LOW RISK", "medium": "MEDIUM RISK", "high": "HIGH RISK", "critical": "CRITICAL"}
_OF_ENDPOINT = ("base_url", "endpoint", "why")
_WORDS = 20
"""Characters from which a text is words, and no number or name that may stand in a title by chance."""
_WAITING = frozenset(Request) - AT_RISK
_OF_CAP = {"limit": "allowed", "used": "used so far", "need": "the next step needs up to"}
_KINDS: dict[str, str] = {
    Request.CAP: "has reached a cap",
    Request.AUTH: "and all that use its key cannot log in",
    Request.ENDPOINT: "and all that use its key are refused",
    Request.IN_DOUBT: "started something and nobody knows whether it happened",
    Request.QUESTION: "asks you",
    Request.REFUSAL: "was refused by the model",
    Request.RESTART: "has failed and waits for you",
    Request.HISTORY: "has an endpoint that refuses its conversation",
    Request.BILL: "has an endpoint whose bills cannot be",
    Request.PROTECTED: "asks what decides whether its work is done",
    Request.PLAN: "wrote a plan from its goal, to be worked on once you accept it",
    Request.GATE: "has come to a gate of its plan",
    problems.HELD: "does not go on, and asks nothing",
    problems.RINGS: "goes on, and wants a look",
}


@dataclass(frozen=True, slots=True)
class Card:
    """``above`` are the lines that decide, ``rest`` what of them was cut short; ``facts`` is None where a request has
    no action.
    """

    above: tuple[CardLine, ...]
    rest: tuple[CardLine, ...]
    facts: Facts | None

    @property
    def text(self) -> str:
        """The whole card with nothing folded, whatever the width it is drawn in."""
        return "\n".join(line.text for line in self.lines(unfolded=True)[0])

    @property
    def hash(self) -> str:
        """SHA-256 (hex) of its text."""
        return sha256(self.text.encode()).hexdigest()

    def lines(self, *, unfolded: bool) -> tuple[list[CardLine], int]:
        """(the lines to draw, how many of them, from the first, have to be seen before it is approved)."""
        out = list(self.above)
        if self.rest:
            out += [CardLine(f"{_RULE} {_REST}, {counted(len(self.rest), 'line')}", "rule"), *self.rest]
        if self.facts is None:
            return out, len(out)
        if self.facts.needed:
            out += [CardLine(f"{_RULE} {self.facts.words}", "rule"), *self.facts.needed]
        needed = len(out)
        if self.facts.others:
            out.append(CardLine(f"{_RULE} {'▾' if unfolded else '▸'} {self.facts.rest}", "fold"))
        return [*out, *(self.facts.others if unfolded else ())], needed


def card(view: ApprovalView) -> Card:
    """The card of a request."""
    action = action_of(view)
    notes = notes_of(view.detail)
    asks = view.kind == Request.TOOL
    detail, changes = _protected(view)
    out = _head(view, action)
    rest = list(changes.rest)
    if (not asks or action is None) and not _said_below(view, detail):
        out += [CardLine(line) for line in to_display_lines(view.title)]
    if action is None and asks:
        out.append(CardLine("What it would run cannot be read. Deny it.", "warn"))
    if asks:
        out += _changed_since(view.detail)
    if not asks or action is None:
        out += [*_offered(view.detail), *_details(detail, view.title)]
    whole = isinstance(action, FileAction) and bool(view.diff) and not left_out(view.diff)
    known = told(notes, action) if notes is not None and isinstance(action, PushAction) else frozenset[str]()
    if asks and action is not None:
        elsewhere = named_by(action)
        if isinstance(action, PushAction):
            elsewhere |= {Effect.push(action.remote, ref) for ref in known}
        out += [CardLine("• " + text, "warn") for text in consequences(action, elsewhere)]
    out += [CardLine("• " + text, "warn") for text in left_out(view.diff)]
    if notes is not None:
        effects = effects_of(notes, action.sandbox.worktree if action is not None else "")
        out += effects.above
        rest += effects.rest
    if action is not None:
        out += will_run(action, WILL_RUN if asks else "WAS TO RUN", compared=whole, told=known)
        out += runs_of(action, notes)
    shown, sides = ([], []) if changes.above else compared(view.diff, whole=whole)
    out += [*changes.above, *shown]
    plain = asks and action is not None and view.rule == _DEFAULT
    out += [] if plain else _rule(view)
    if words := view.detail.get("asks"):
        out += [CardLine(WORDS, "label"), *_said(str(words))]
    if notes is not None:
        out += purpose(notes)
    if view.claim:
        out += _claimed(view.claim)
    if not asks or action is None:
        out += _next(view.kind)
    closing = _hashes(view)
    if action is None or any(line.role == "warn" for line in closing):
        out += closing
        closing = []
    closing = [*sides, *(counted_from(notes) if notes is not None else ()), *(_rule(view) if plain else ()), *closing]
    below = facts(action, notes, runs=asks, closing=closing) if action is not None else None
    return Card(tuple(out), tuple(rest), below)


def card_lines(view: ApprovalView) -> list[CardLine]:
    """The whole card with nothing folded, in the order in which it should be read."""
    return card(view).lines(unfolded=True)[0]


def _head(view: ApprovalView, action: Action | None) -> list[CardLine]:
    risk = RISKS.get(view.risk, to_display(view.risk).upper())
    asks = _KINDS.get(view.kind, "asks: " + to_display(view.kind))
    if view.kind == Request.TOOL:
        asks = "asks for something" if action is None else wants(action)
    if LAST_CALL in view.detail:
        asks = "goes in circles, and waits for a word of yours"
    head = f"{to_display(view.session_name)} {asks}"
    if view.kind in problems.NO_REQUEST:
        return [CardLine(head, "head")]  # nothing is asked
    if view.kind in _WAITING:
        return [CardLine(f" {head} ", "badge-medium")]
    return [CardLine(f" {risk} · {head} ", "badge-" + (view.risk if view.risk in RISKS else "critical"))]


def _said(words: str) -> list[CardLine]:
    return [CardLine("┊ " + line, "claim") for line in to_display_lines(words)]


def _claimed(words: str) -> list[CardLine]:
    first, *others = to_display_lines(words)
    return [CardLine(f"┊ {CLAIM}: {first}", "claim-head"), *(CardLine("┊ " + line, "claim") for line in others)]


def _protected(view: ApprovalView) -> tuple[Mapping[str, object], Listing]:
    """(what the request says besides, what became of files that decide); the former without what the latter says."""
    if view.kind != Request.PROTECTED or not view.diff:
        return view.detail, Listing([], [])
    files = str(view.detail.get("files", "")).split("\n")
    changes, others = changes_of(view.diff, files)
    return {**view.detail, "files": "\n".join(others)}, changes


def _said_below(view: ApprovalView, detail: Mapping[str, object]) -> bool:
    """The title says nothing that does not follow in other words: a cap by its amounts, a question as it was asked,
    files with what became of them.
    """
    if view.kind == Request.PROTECTED and view.diff and "files" in view.detail:
        return not detail["files"] or "\n" in str(view.detail["files"])
    if view.kind == Request.CAP:
        return Cap.of(view.detail.get("cap")) is not None and all(isinstance(view.detail.get(n), int) for n in _OF_CAP)
    if view.kind == Request.IN_DOUBT:
        return action_of(view) is not None
    words = str(view.detail.get("asks", "")).strip()
    return view.kind == Request.QUESTION and "\n" not in words and view.title in words


def shown_hash(view: ApprovalView) -> str:
    """SHA-256 (hex) of the card's text: what a decision's record says was seen."""
    return card(view).hash


def action_of(view: ApprovalView) -> Action | None:
    """The action behind a card; None when there is none, or it cannot be read."""
    try:
        return from_wire(view.action) if view.action is not None else None
    except BadAction:
        return None


def _rule(view: ApprovalView) -> list[CardLine]:
    if view.kind == Request.QUESTION or (not view.rule and not view.reason):
        return []  # a question is asked because the agent asks: no rule of the policy made it one
    return [
        CardLine(f"Why you are asked: rule {to_display(view.rule)}: {to_display(view.reason)}", "dim"),
    ]


def _hashes(view: ApprovalView) -> list[CardLine]:
    """The hash of what was sent, whether or not all of it can be read."""
    if view.action is None:
        return []
    try:
        here = action_hash(view.action)
    except (ValueError, TypeError) as exc:
        return [CardLine(f"The action has no valid form ({to_display(str(exc))}). Deny it.", "warn")]
    if view.action_hash and here != view.action_hash:
        return [
            CardLine(
                f"What is shown (hash {here}) is not what was asked (hash {to_display(view.action_hash)}). Deny it.",
                "warn",
            )
        ]
    return [CardLine(f"  action hash  {here}", "dim")]


def _changed_since(detail: Mapping[str, object]) -> list[CardLine]:
    """Why a call that was decided on is asked about again: what is no longer as it was shown then."""
    changed = [line for text in _list(detail.get("changed")) for line in to_display_lines(str(text))]
    return (
        [CardLine(CHANGED, "label"), *(CardLine("  " + line, "warn") for line in changed), CardLine("")]
        if changed
        else []
    )


def _next(kind: str) -> list[CardLine]:
    """What becomes of the session while nobody answers."""
    if kind in (Request.TOOL, *problems.NO_REQUEST):
        return []
    return [CardLine(f"What comes next: {to_display(problems.requested(kind).next)}", "dim")]


def _offered(detail: Mapping[str, object]) -> list[CardLine]:
    """The answers that a question offers, by the numbers that choose them."""
    offered = person_tool.choices(detail)
    if not offered:
        return []
    lines = [CardLine(f"  {number}  {to_display(option)}", "run") for number, option in enumerate(offered, 1)]
    return [CardLine("ANSWERS TO CHOOSE FROM", "label"), *lines]


def _details(detail: Mapping[str, object], title: str) -> list[CardLine]:
    """What else the request says, but for what its ``title`` has said."""
    cap = Cap.of(detail.get("cap"))
    out = [] if cap is None else _of_cap(cap, detail)
    told = ("asks", person_tool.CHOICES, KEY, *(("name",) if "phase" in detail else ()))
    if cap is not None:
        told = (*told, "cap", *(name for name in _OF_CAP if isinstance(detail.get(name), int)))
    if todo := detail.get("todo"):  # of an endpoint: the title says the rest
        out += [CardLine("WHAT TO DO", "label"), *(CardLine(f"  {line}") for line in to_display_lines(str(todo)))]
        told = (*told, "todo", *_OF_ENDPOINT, *(("message",) if str(detail.get("message", "")) in title else ()))
    known = [(name, value) for name, value in detail.items() if name not in told and not _in_title(value, title)]
    for name, value in sorted(known, key=lambda one: ("\n" in str(one[1]), one[0])):  # what fits a line before lists
        shown = str(value)
        lines = to_display_lines(problems.part(shown) if name == "part" else shown)
        out += [CardLine(f"  {to_display(str(name))}  {lines[0]}"), *(CardLine(f"    {line}") for line in lines[1:])]
    return out


def _in_title(value: object, title: str) -> bool:
    """True for words that stand whole in the title, and for none at all."""
    return isinstance(value, str) and (not value or (len(value) >= _WORDS and value in title))


def _of_cap(cap: Cap, detail: Mapping[str, object]) -> list[CardLine]:
    """The amounts of a cap that was reached, in its unit."""
    amounts = [(words, value) for name, words in _OF_CAP.items() if isinstance(value := detail.get(name), int)]
    return [
        CardLine(f"  cap on {cap.named}"),
        *(CardLine(f"  {words}  {cap.words(value)}") for words, value in amounts),
    ]


def _list(value: object) -> list[object]:
    return list(value) if isinstance(value, (list, tuple)) else []


__all__ = [
    "CHANGED",
    "CLAIM",
    "Card",
    "CardLine",
    "action_of",
    "card",
    "card_lines",
    "consequences",
    "diff_lines",
    "left_out",
    "shown_hash",
    "will_run",
    "wrap",
]
