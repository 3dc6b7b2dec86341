"""Standard streams as a verb finds them: closed, full, or in an encoding that has no letter for half of what we say."""

from __future__ import annotations

import codecs
import io
import os
import sys
from typing import IO, Any

_ERRORS = "watchfloor-plain"
_PLAIN = str.maketrans(
    dict(zip("“”‘’–·×⟨⟩◆●○✓✗■│─↪", "\"\"''--x<>**o+x#|->", strict=True)) | {"…": "...", "—": "--", "→": "->", "←": "<-"}
)
"""What our own words are set with, where an encoding lacks it; every other letter is named by its number."""


class OutputLost(Exception):
    """Standard output cannot be written; the message says why. What the verb did is done."""


def ready() -> None:
    """Make the standard streams fit to be used: one that is closed is a null device, one that lacks a letter says it
    in plain ones, and what cannot be written on standard output is `OutputLost`.
    """
    codecs.register_error(_ERRORS, _spelled)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            setattr(sys, name, _opened(number, mode))
    if type(sys.stdout) is io.TextIOWrapper:  # the stream that Python opened, which nobody has exchanged
        sys.stdout = _Out(sys.stdout)
    if type(sys.stderr) is io.TextIOWrapper:
        sys.stderr = _Plain(sys.stderr)


def drop_output() -> None:
    """Let what is still to be written on standard output go nowhere, also when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _opened(number: int, mode: str) -> IO[Any]:
    """The null device under the number of a stream that was closed, so that no file of ours is taken for it."""
    null = os.open(os.devnull, os.O_RDWR)
    if null != number:
        os.dup2(null, number)
        os.close(null)
    return open(number, mode, encoding="utf-8", closefd=False)


class _Plain(io.TextIOWrapper):
    """A stream that spells what its encoding lacks."""

    def __init__(self, given: io.TextIOWrapper) -> None:
        given.flush()
        own = io.BufferedWriter(io.FileIO(given.fileno(), "wb", closefd=False))
        super().__init__(own, encoding=given.encoding, errors=_ERRORS, line_buffering=given.line_buffering)


class _Out(_Plain):
    """Standard output that says what it could not write."""

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except BrokenPipeError:
            raise
        except OSError as exc:
            raise lost(exc) from exc

    def flush(self) -> None:
        try:
            super().flush()
        except BrokenPipeError:
            raise
        except OSError as exc:
            raise lost(exc) from exc


def lost(exc: OSError) -> OutputLost:
    """The same in words."""
    return OutputLost(f"standard output cannot be written: {exc.strerror or exc}")


def _spelled(exc: UnicodeError) -> tuple[str, int]:
    if not isinstance(exc, UnicodeEncodeError):
        raise exc
    lacking = exc.object[exc.start : exc.end]
    plain = (ch.translate(_PLAIN) for ch in lacking)
    return "".join(p if p.isascii() else f"<U+{ord(p):04X}>" for p in plain), exc.end
