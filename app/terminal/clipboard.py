"""What goes to the terminal's clipboard, on a person's own key: as OSC 52, which most terminals take. Pure.

Only text that the display function made: what is pasted holds no control character but line feeds.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable

import msgspec

from harness.domain.text.display_safe import to_display_lines
from harness.domain.text.formatting import counted

MOST = 74_000
"""Bytes: as base64 they stay below the 100,000 that common terminals take."""


class Selected(msgspec.Struct, frozen=True):
    """What is selected: in words what it is, the text (made when it is wanted), and the id or name it goes by."""

    what: str
    text: Callable[[], str]
    name: str = ""


class Copied(msgspec.Struct, frozen=True):
    """What is copied of a text of ``of`` characters."""

    text: str
    of: int


def lines(texts: Iterable[str]) -> str:
    """Untrusted texts below each other, through the display function; empty ones are left out."""
    return "\n".join(line for text in texts if text for line in to_display_lines(text))


def cut(text: str) -> Copied:
    """As much of it as a clipboard takes, whole characters."""
    kept = text.encode("utf-8", "replace")[:MOST].decode("utf-8", "ignore")
    return Copied(kept, len(text))


def sequence(text: str, *, in_tmux: bool) -> str:
    """What the terminal is told. tmux takes it itself with ``set-clipboard on`` and hands it on with
    ``allow-passthrough on``, so it gets both forms.
    """
    plain = f"\x1b]52;c;{b64encode(text.encode()).decode()}\a"
    return plain + passed_through(plain) if in_tmux else plain


def passed_through(sequence: str) -> str:
    """A sequence as tmux hands it on to its terminal."""
    return "\x1bPtmux;" + sequence.replace("\x1b", "\x1b\x1b") + "\x1b\\"


def told(what: str, copied: Copied, *, in_tmux: bool) -> str:
    """What was copied, in words."""
    size = len(copied.text)
    amount = counted(size, "character")
    if size < copied.of:
        amount = f"the first {amount} of {copied.of:,}"
    how = "; tmux needs set-clipboard on" if in_tmux else ""
    return f"copied {what}: {amount}{how}"
