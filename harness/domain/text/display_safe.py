"""The one display function: untrusted text → text that cannot act on a terminal and cannot look like other text.

Everything that an agent, a repository, a model, a remote host or git says is untrusted. Rules:
``reference: Unicode UAX #9 (bidi), UAX #31, ECMA-48`` for which characters act or hide.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from harness.domain.text.cell_width import agreed

_C0 = {c: chr(0x2400 + c) for c in range(0x20)} | {0x7F: "\u2421"}
_ACTIVE = re.compile("[^\x20-\x7e]")
_BLANKS = re.compile(" {8,}")
# Generic combining marks and selectors: without a width of their own they hide in, or pile up over, their neighbours.
# Vowel signs and tone marks that belong to one script (Thai, Devanagari …) stay, because words are unreadable without
# them.
_COMBINING = (
    (0x0300, 0x036F),
    (0x0483, 0x0489),
    (0x180B, 0x180F),
    (0x1AB0, 0x1AFF),
    (0x1DC0, 0x1DFF),
    (0x20D0, 0x20FF),
    (0x302A, 0x302F),
    (0x3099, 0x309A),
    (0xFE00, 0xFE0F),
    (0xFE20, 0xFE2F),
    (0xE0100, 0xE01EF),
)
_BLANK_LETTERS = frozenset((0x115F, 0x1160, 0x3164, 0xFFA0, 0x2800, 0x034F, 0x17B4, 0x17B5))
# ⟨ ⟩ frame every mark; in data they are marked themselves, which keeps the map injective
_OPEN = "\u27e8"
_CLOSE = "\u27e9"


@lru_cache(maxsize=4096)
def _mark(ch: str) -> str:
    code = ord(ch)
    if code in _C0:
        return _C0[code]
    if 0x2400 <= code <= 0x2421 or ch in (_OPEN, _CLOSE):
        return f"{_OPEN}U+{code:04X}{_CLOSE}"
    cat = unicodedata.category(ch)
    if cat in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Me") or (cat == "Zs" and ch != " ") or code in _BLANK_LETTERS:
        return f"{_OPEN}U+{code:04X}{_CLOSE}"
    if cat in ("Mn", "Mc") and any(low <= code <= high for low, high in _COMBINING):
        return f"{_OPEN}U+{code:04X}{_CLOSE}"
    return ch


def to_display(text: str, *, limit: int | None = None) -> str:
    """One line of safe, injective display text.

    Controls become their Unicode pictures, invisible and bidirectional characters become ``⟨U+XXXX⟩``, runs of eight or
    more blanks become ``⟨N spaces⟩``. ``limit`` cuts after that many input characters and says how many were left out.
    """
    cut = 0
    if limit is not None and len(text) > limit:
        cut = len(text) - limit
        text = text[:limit]
    shown = _ACTIVE.sub(lambda m: _mark(m[0]), text)
    shown = _BLANKS.sub(lambda m: f"{_OPEN}{len(m[0])} spaces{_CLOSE}", shown)
    if cut:
        shown += f"{_OPEN}+{cut} characters{_CLOSE}"
    return shown


def to_display_lines(text: str, *, limit: int | None = None) -> list[str]:
    """Safe display text split at line feeds; each line passes `to_display` (other line separators become marks)."""
    return [to_display(line, limit=limit) for line in text.split("\n")]


def exact_cells(shown: str) -> str:
    """Display text of which each character takes the same cells on every terminal; the others become ``⟨U+XXXX⟩``.

    For what a person decides on: no part of it may leave the screen because a terminal counts otherwise than we do.
    """
    return _ACTIVE.sub(lambda m: m[0] if agreed(m[0]) else f"{_OPEN}U+{ord(m[0]):04X}{_CLOSE}", shown)
