"""Bracketed pastes, taken out of the raw input before any key is made of it. Pure.

A framework that looks for escape sequences inside a paste gives what it does not understand back as key presses, and a
paste that contains the closing bracket ends early. Here everything between the brackets is text, and so is what arrives
right behind them.
"""

from __future__ import annotations

import re

import msgspec

from app.input.typing_pace import MACHINE_GAP_S

BEGIN = "\x1b[200~"
END = "\x1b[201~"
TRAIL_S = MACHINE_GAP_S
"""What arrives within this time behind a paste, or behind such a trailer, still belongs to it: no hand is that fast."""
_HOLD_S = 0.05
# Reports of the mouse's movement, of focus, modes and size come at any moment; nobody types them, and none of them
# decides.
_REPORT = re.compile(r"\x1b\[(?:<(?:3[2-9]|[45]\d|6[0-3]);\d+;\d+[Mm]|[IO]|\?\d+;\d\$y|48(?:;[\d:]+)+t)")


class Pasted(msgspec.Struct, frozen=True):
    """One whole paste."""

    text: str


class PasteFilter:
    """Splits raw input into what may hold keys (texts) and whole pastes."""

    def __init__(self) -> None:
        self._parts: list[str] | None = None
        self._held = ""
        self._since = 0.0
        self._held_trails = False
        # how much of what is held went on already: an escape at the end of a read is a key that must not wait
        self._given = 0
        self._trail_until = float("-inf")
        self.dropped = 0
        """Characters behind a paste that were left out."""

    def feed(self, data: str, now: float) -> list[str | Pasted]:
        """What arrived at ``now`` (seconds, monotonic), in order: texts that may hold keys, and pastes."""
        out: list[str | Pasted] = []
        if late := self.expire(now):
            out.append(late)
        given = self._given
        self._given = 0
        data = self._held + data
        self._held = ""
        while data:
            if self._parts is not None:
                data = self._inside(data, now, out)
                continue
            text, begin, rest = data.partition(BEGIN)
            if begin:
                self._parts = []
            else:
                text = self._hold(text, now, given)
            self._outside(text[given:], now, out)
            data = rest
            given = 0
        return out

    def expire(self, now: float) -> str:
        """What was held as the possible beginning of a bracket and stayed alone: a person's keys after all."""
        if len(self._held) < 2 or self._parts is not None or now - self._since < _HOLD_S:
            return ""
        held = self._held[self._given :]
        self._held = ""
        self._given = 0
        if self._held_trails:
            self.dropped += len(held)
            return ""
        return held

    def _inside(self, data: str, now: float, out: list[str | Pasted]) -> str:
        """Collect up to the closing bracket; returns what follows it."""
        assert self._parts is not None
        text, end, rest = data.partition(END)
        if not end:
            keep = _overlap(data, END)
            self._parts.append(data[: len(data) - keep])
            self._held = data[len(data) - keep :]
            return ""
        self._parts.append(text)
        out.append(Pasted("".join(self._parts).replace("\x00", "")))
        self._parts = None
        self._trail_until = now + TRAIL_S
        return rest

    def _outside(self, text: str, now: float, out: list[str | Pasted]) -> None:
        if text and now < self._trail_until:
            reports = "".join(match[0] for match in _REPORT.finditer(text))
            if len(reports) < len(text):
                self.dropped += len(text) - len(reports)
                self._trail_until = now + TRAIL_S
            text = reports
        if text:
            out.append(text)

    def _hold(self, text: str, now: float, given: int) -> str:
        """Keep back the beginning of an opening bracket; returns what is none.

        Of a lone escape only the memory is kept.
        """
        size = _overlap(text, BEGIN)
        start = len(text) - size
        if not size:
            return text
        self._held = text[start:]
        self._since = now
        self._held_trails = now < self._trail_until
        if size == 1:
            self._given = 1
            return text
        self._given = given if start == 0 else 0
        return text[:start]


def _overlap(text: str, mark: str) -> int:
    """The length of the longest end of ``text`` that ``mark`` begins with (never all of it)."""
    return next((size for size in range(min(len(mark) - 1, len(text)), 0, -1) if mark.startswith(text[-size:])), 0)
