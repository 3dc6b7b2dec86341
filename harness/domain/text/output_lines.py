"""Lines of an output that is still being printed, and whether one fits a pattern. Standard library only.

A pattern is plain text in which ``*`` stands for anything within the line. It is found in one pass, so neither pattern
nor output, both of which an agent chooses, can make that slow.
"""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 8 * 1024
"""Bytes of a line that are looked at; what a longer one goes on with counts as another line."""
MAX_PATTERN = 500
NEWEST_LINES = 12
NEWEST_BYTES = 2 * 1024
_NEWEST_LINE = 300


@dataclass(frozen=True, slots=True)
class Pattern:
    """The texts that a line must hold, one behind the other."""

    texts: tuple[bytes, ...]

    @classmethod
    def of(cls, pattern: str) -> Pattern:
        """Raises ValueError with the reason when nothing is asked for."""
        texts = tuple(part.encode("utf-8", "replace") for part in pattern.split("*") if part)
        if not texts:
            raise ValueError("names nothing to look for")
        if len(pattern) > MAX_PATTERN:
            raise ValueError(f"has {len(pattern)} characters, over the limit of {MAX_PATTERN}")
        if "\n" in pattern:
            raise ValueError("goes over several lines, and each line is looked at alone")
        return cls(texts)

    def fits(self, line: bytes) -> bool:
        """True when the line holds all texts in their order, none of them overlapping."""
        at = 0
        for text in self.texts:
            found = line.find(text, at)
            if found < 0:
                return False
            at = found + len(text)
        return True


class Lines:
    """Cuts a stream into lines, the last of which may still go on."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that these bytes complete, each at most `LONGEST` bytes."""
        *done, rest = (self._rest + data).split(b"\n")
        lines = [part for line in done for part in _cut(line)]
        *over, self._rest = _cut(rest)
        return lines + over


def last(tail: bytes) -> str:
    """The newest line of an output that says something; empty when there is none."""
    return newest(tail).rpartition("\n")[2].strip()


def _cut(line: bytes) -> list[bytes]:
    return [line[at : at + LONGEST] for at in range(0, len(line), LONGEST)] or [b""]


def newest(tail: bytes) -> str:
    """The last lines of an output as text for the model and the person: few, short, without blank ones at the end."""
    text = tail.decode("utf-8", "replace").replace("\r", "\n").rstrip()
    lines = [line if len(line) <= _NEWEST_LINE else f"{line[:_NEWEST_LINE]}…" for line in text.split("\n")]
    kept: list[str] = []
    size = 0
    for line in reversed(lines[-NEWEST_LINES:]):
        size += len(line.encode("utf-8", "replace")) + 1
        if size > NEWEST_BYTES and kept:
            break
        kept.append(line)
    return "\n".join(reversed(kept))
