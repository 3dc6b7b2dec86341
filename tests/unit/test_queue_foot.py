"""The line below a card: it claims nothing of a card that is not painted yet."""

from __future__ import annotations

from app import keymap
from app.arming import Arming
from app.screens.queue_foot import Looked, armed

KEYS = keymap.build("default", {})


def said(looked: Looked) -> str:
    return armed(KEYS, looked, 10.0, "approves").plain


def test_more_below_is_said_of_what_is_on_screen_alone() -> None:
    unread = Arming(("a1",), None)
    assert said(Looked(unread, at_end=False, begun=False)) == "○ looking …", "nothing of it is painted"
    assert said(Looked(unread, at_end=False)).startswith("▼ more below")
    assert said(Looked(unread, at_end=True)).startswith("▲ skipped")
    assert said(Looked(Arming(("a1",), 9.9), at_end=False)) == "○ looking …"
    assert said(Looked(Arming(("a1",), 9.0), at_end=False)) == "● ctrl+y approves"
