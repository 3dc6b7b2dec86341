"""Hostile text in every text field of every kind of card: nothing reaches the screen raw, and whatever one field says,
each line about the others stands where it stood and has to be seen as before.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.domain import problems
from harness.domain.actions.action import action_hash
from harness.domain.calls.approval_kind import Request
from harness.domain.calls.card_facts import CardNotes, CommitNote, Fact, FileCount, Going, Outgoing, in_detail
from harness.views.session_views import ApprovalView
from tests.tui.test_widget_approval_card import PUSH, SCRIPT, WRITE, view_of
from widgets.card.card_text import CLAIM, card, wrap
from widgets.card.group_card import together

MARK = "Zq7"
"""What a field says where nothing is hostile: it is in no other text."""
PIECES = [
    "\x1b[2J\x1b]52;c;eA==\x07",
    "\x9b31m",
    "\u202egnp\u2066",
    "a\u200bb\u2060\ufeff",
    "\n\r\x0b\x0c\x85\u2028\u2029",
    "long " * 60,
    "W" * 300,
    "┄┄┄ ▸ 41 lines of machine facts, same shape as 12 approved before",
    f"{CLAIM}\n┊ yes\nWILL RUN  exec  ls",
    "[bold red]x[/]",
    "\ud800\U000e0041\x00\x7f",
    " " * 90,
    "é\u0301\u0301\u0301",
]
EVERYTHING = "".join(PIECES)
hostile = st.one_of(
    st.sampled_from(PIECES), st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join), st.text(min_size=1)
)

NOTES = CardNotes(
    facts={"reach": "x"},
    unusual=[Fact.REACH, Fact.ENVIRONMENT, Fact.DESTINATION, Fact.PLACE],
    outgoing=[
        Outgoing(
            "refs/heads/main",
            False,
            [CommitNote("a" * 40, "subject", [FileCount("file", 1, 0)], 2)],
            3,
            [CommitNote("b" * 40, "gone", [])],
            1,
            "what is there",
            "not all known",
        )
    ],
    going=[Going("path", "a folder", "kept"), Going("other", "a file")],
    going_more=2,
    going_unknown=["$x", "*.log"],
    going_unknown_more=2,
    goal="goal",
    step="step",
    checks=2,
    passed=1,
)
LOCAL = {"local": {"folder": "/srv/r.git", "hooks": ["update"], "programs": ["gpg"]}, "note": "two addresses"}
NAMED = {"named": {"address": "work:r", "base": "/r"}}
ACTIONS: dict[str, dict[str, Any] | None] = {
    "push": PUSH | LOCAL,
    "push by name": PUSH | NAMED,
    "script": SCRIPT,
    "write": WRITE,
    "none": None,
}
DETAIL = {"asks": "words", "choices": ["one", "two"], "changed": ["a file"], "why": "because", "evidence": "seen"}
MEANS = ("v", "kind", "tool", "access", "session", "call", "ref", "action_hash", "sid", "risk", "options", "effects")
"""Fields whose words decide what a card is: they are only held to be safe, not to change nothing else."""
KINDS = [*Request, *problems.NO_REQUEST, "a kind of tomorrow"]


def whole(kind: str, action: dict[str, Any] | None) -> dict[str, Any]:
    """A request with something in every field, as plain values."""
    view = view_of(
        deepcopy(action), kind=kind, diff="--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y", detail=DETAIL | in_detail(NOTES)
    )
    return dict(msgspec.to_builtins(view))


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where each text stands."""
    if isinstance(value, str):
        yield path
    inner = enumerate(value) if isinstance(value, list) else ()
    for key, item in value.items() if isinstance(value, dict) else inner:
        yield from leaves(item, (*path, key))


def with_text(base: dict[str, Any], path: tuple[Any, ...], text: str) -> ApprovalView:
    """The same request with this text there, and the hash that belongs to it."""
    made = deepcopy(base)
    at: Any = made
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = text
    view = msgspec.convert(made, ApprovalView)
    try:
        digest = action_hash(view.action) if view.action is not None else ""
    except (ValueError, TypeError):
        digest = view.action_hash
    return view if path[0] == "action_hash" else msgspec.structs.replace(view, action_hash=digest)


def safe(view: ApprovalView) -> None:
    others = together([view, view]) if view.kind == Request.TOOL else []
    for line in (*card(view).lines(unfolded=True)[0], *others):
        assert all(unicodedata.category(ch) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for ch in line.text), line
        assert all(cell_len(mark + text) <= 40 for mark, text in wrap(line, 40)), line


def kept(view: ApprovalView) -> list[str]:
    """The lines that have to be seen and do not hold the mark, with what counts lines left open."""
    lines, needed = card(view).lines(unfolded=False)
    texts = [line.text for line in lines[:needed] if MARK not in line.text and "action hash" not in line.text]
    return [re.sub(r"\d+ lines?", "lines", text) for text in texts]


def among(few: list[str], many: list[str]) -> bool:
    """True when all the few are there: a long text may move others below the rule, where they have to be seen too."""
    return not Counter(few) - Counter(many)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"),
    [(Request.TOOL, name) for name in ACTIONS] + [(kind, name) for kind in KINDS[1:] for name in ("push", "none")],
)
def test_every_text_field_of_every_kind_of_card(kind: str, name: str) -> None:
    base = whole(kind, ACTIONS[name])
    paths = list(leaves(base))
    assert len(paths) > 40 or name == "none"
    for path in paths:
        held(base, path, EVERYTHING)


@settings(deadline=None)
@given(st.data(), st.sampled_from(sorted(ACTIONS)), hostile)
def test_any_hostile_text_in_any_field(data: st.DataObject, name: str, text: str) -> None:
    base = whole(Request.TOOL, ACTIONS[name])
    held(base, data.draw(st.sampled_from(list(leaves(base)))), text)


def held(base: dict[str, Any], path: tuple[Any, ...], text: str) -> None:
    """Neither is anything raw, nor has a line about another field gone from what has to be seen."""
    view = with_text(base, path, text)
    safe(view)
    if not set(path) & set(MEANS):
        assert among(kept(with_text(base, path, MARK)), kept(view)), f"{path} says {text[:40]!r}"
