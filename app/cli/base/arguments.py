"""What was given on a command line: texts that must say something, files that are named."""

from __future__ import annotations

from harness.linux import own_file

_MOST = 1 << 20
"""Bytes of a text that is named: more than any goal, policy or memory may have."""
EMPTY = "is empty: give it a value, or leave the option out"


class Usage(Exception):
    """An argument cannot be used; the message says which and why."""


class Refused(Exception):
    """Nothing was sent, because it would not be safe; the message says why and what to do."""


def bytes_of(file: str, limit: int = _MOST, option: str = "") -> bytes:
    """What a named file holds, ``-`` is standard input; ``option`` is named in what is refused. Raises Usage."""
    try:
        return own_file.given(file, limit)
    except OSError as exc:
        raise Usage(f"{option}{_name(file)} cannot be read: {exc.strerror or exc}") from exc


def text_of(file: str, option: str = "") -> str:
    """The same as text, its lines ending in a line feed. Raises Usage."""
    return as_written(file, option).replace("\r\n", "\n")


def as_written(file: str, option: str = "") -> str:
    """The same as text, its lines ending as they do in the file. Raises Usage."""
    try:
        return bytes_of(file, option=option).decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise Usage(f"{option}{_name(file)} is not UTF-8: byte {exc.start}") from exc


def _name(file: str) -> str:
    return "standard input" if file == "-" else file
