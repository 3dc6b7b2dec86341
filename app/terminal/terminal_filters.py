"""The last walls of the terminal: a filter on everything drawn, a filter on everything the terminal answers, and what a
paste holds.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from typing import Any

from rich.segment import Segment
from textual import events
from textual.color import Color
from textual.filter import LineFilter

from app.input.paste import Pasted, PasteFilter
from app.input.typing_pace import Pace
from app.terminal import textual_internals
from app.terminal.cell_table import placed

# All of these are zero cells wide for Textual, so deleting them moves nothing: controls, bidirectional and zero-width
# characters, tags.
_RANGES = (
    (0x00, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0xE0000, 0xE01EF),
)
_BAD = re.compile("[" + "".join(f"{chr(low)}-{chr(high)}" for low, high in _RANGES) + "]")


class NoControl(LineFilter):
    """Removes what could act on a terminal from every drawn segment.

    A hit is a bug of ours (the text missed `to_display`), so it is counted.
    """

    def __init__(self) -> None:
        super().__init__(enabled=True)
        self.hits = 0

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The segments without dangerous characters; Textual's own control segments pass."""
        made: list[Segment] | None = None
        for index, segment in enumerate(segments):
            text, style, control = segment
            if control or (text.isascii() and text.isprintable()):
                continue
            clean, hits = _BAD.subn("", text)
            if hits:
                self.hits += hits
                if made is None:
                    made = list(segments)
                made[index] = Segment(clean, style)
        return made if made is not None else segments


_OPENERS = "]P_^X"
_REPLY = re.compile(r"\x1b[\]P_^X][^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)")
_LONGEST_REPLY = 8192
_HOLD_S = 0.3
_SPLIT_S = 0.05


class ReplyFilter:
    """Takes the terminal's answers of the kinds OSC, DCS, APC, PM and SOS out of the input, because Textual would read
    them as key presses.

    An answer that is not complete is held until it ends, but not longer than 0.3 s: a person's alt+key looks like its
    beginning.
    """

    def __init__(self) -> None:
        self._held = ""
        self._since = 0.0
        self._given = 0  # how much of what is held went on already: the escape at the end of the read before
        self._escape_at: float | None = None
        self.dropped = 0

    def feed(self, data: str, now: float) -> str:
        """The input without answers. Empty input (end of file) passes as it is."""
        split = self._escape_at is not None and now - self._escape_at < _SPLIT_S and data[:1] in _OPENERS
        if not data or not (self._held or split or "\x1b" in data):
            self._escape_at = None
            return data
        if split:
            self._held = "\x1b"
            self._given = 1
        text = self._held + data
        given = self._given
        self._held = ""
        self._given = 0
        text, count = _REPLY.subn("", text)
        self.dropped += count
        start = self._open(text)
        if start is not None:
            self._hold(text[start:], now, given if start == 0 and not count else 0)
            text = text[:start]
        self._escape_at = now if text.endswith("\x1b") else None
        return text

    def expire(self, now: float) -> str:
        """Called when nothing arrives: what was held too long is given up; a bare opener was a person's alt+key and is
        returned.
        """
        if not self._held or now - self._since < _HOLD_S:
            return ""
        held = self._held
        given = self._given
        self._held = ""
        self._given = 0
        if len(held) == 2:
            return held[given:]
        self.dropped += 1
        return ""

    def _hold(self, text: str, now: float, given: int) -> None:
        if len(text) > _LONGEST_REPLY:
            self.dropped += 1
            return
        self._held = text
        self._since = now
        self._given = given

    @staticmethod
    def _open(text: str) -> int | None:
        at = text.find("\x1b")
        while at != -1:
            if at + 1 < len(text) and text[at + 1] in _OPENERS:
                return at
            at = text.find("\x1b", at + 1)
        return None


def quiet_driver(pace: Pace) -> type[Any] | None:
    """The Linux driver with `PasteFilter` and `ReplyFilter` in its input path and `placed` in its output path; None
    where that driver is not the one in use.

    ``pace`` is told of every key, click and paste as soon as it is read.
    """
    from textual import constants

    if constants.DRIVER is not None:
        return None

    class QuietParser(textual_internals.Parser):
        """Textual's parser behind both filters."""

        def __init__(self, debug: bool = False) -> None:
            super().__init__(debug)
            self._pastes = PasteFilter()
            self._replies = ReplyFilter()

        def feed(self, data: str) -> Iterable[Any]:
            if not data:
                yield from super().feed(data)  # end of file
                return
            now = time.monotonic()
            for piece in self._pastes.feed(data, now):
                if isinstance(piece, Pasted):
                    yield from self._seen([events.Paste(piece.text)])
                else:
                    yield from self._typed(self._replies.feed(piece, now))

        def tick(self) -> Iterable[Any]:
            yield from self._seen(super().tick())
            now = time.monotonic()
            if late := self._pastes.expire(now):
                yield from self._typed(self._replies.feed(late, now))
            yield from self._typed(self._replies.expire(now))

        def _typed(self, text: str) -> Iterator[object]:
            # An empty feed means end of file to the parser, which a read of nothing but answers is not.
            if text:
                yield from self._seen(super().feed(text))

        @staticmethod
        def _seen(found: Iterable[object]) -> Iterator[object]:
            for event in found:
                if isinstance(event, (events.Key, events.MouseDown, events.MouseUp, events.Paste)):
                    pace.arrived(event.time)
                yield event

    textual_internals.use_parser(QuietParser)

    class PlacingDriver(textual_internals.Driver):
        """The Linux driver that writes each character where the screen believes it."""

        def write(self, data: str) -> None:
            super().write(placed(data))

    return PlacingDriver
