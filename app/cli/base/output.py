"""What the command line prints: safe text, aligned tables, JSON that no terminal can act on."""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import select
import sys
import time
from collections.abc import Iterable, Sequence

from app.cli.base.streams import lost
from harness.domain.text import formatting
from harness.domain.text.cell_width import cells, widest
from harness.domain.text.display_safe import to_display

WIDEST = 36
"""Characters of a table cell: a name of many marks must not push the last column, which says what it is about, off the
line.
"""


def say(text: str = "") -> None:
    """One line for a person. Our own words only: untrusted parts must have passed `safe`."""
    print(text, flush=True)


def warn(text: str) -> None:
    """One line on standard error; every line of it passes the display function."""
    with contextlib.suppress(OSError):  # there is nowhere left to say it
        print("\n".join(map(to_display, text.split("\n"))), file=sys.stderr, flush=True)


def safe(text: str, limit: int | None = None) -> str:
    """Untrusted text for one cell or line."""
    return to_display(text, limit=limit)


def emit(value: object) -> None:
    """One JSON value on one line, printable ASCII only."""
    emit_all((value,))


def emit_all(values: Iterable[object]) -> None:
    """Each value as `emit` prints it, all of them at once."""
    lines = (escaped(json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True)) for value in values)
    print("".join(f"{line}\n" for line in lines), end="", flush=True)


def escaped(text: str) -> str:
    """JSON text with everything but printable ASCII escaped; it stands for the same value, because such characters
    occur in strings alone.
    """
    if text.isascii() and text.isprintable():
        return text
    units = text.encode("utf-16-be", "surrogatepass")
    codes = (int.from_bytes(units[i : i + 2], "big") for i in range(0, len(units), 2))
    return "".join(chr(c) if 0x20 <= c < 0x7F else f"\\u{c:04x}" for c in codes)


def age(ts: str) -> str:
    """Time since a log timestamp; ``-`` when it is none."""
    return formatting.age(ts, time.time()) or "-"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, width: int) -> list[str]:
    """Aligned columns within ``width``; the last column takes what is left and is cut with an ellipsis."""
    columns = [list(head), *[[*(_cut(c, WIDEST) for c in r[:-1]), r[-1]] for r in rows]]
    sizes = [max(cells(r[i]) for r in columns) for i in range(len(head))]
    lines = []
    for r in columns:
        line = "  ".join(c + " " * (w - cells(c)) for c, w in zip(r[:-1], sizes[:-1], strict=True))
        lines.append(f"{line}  {_cut(r[-1], width - cells(line) - 2)}".rstrip())
    return lines


def wrapped(line: str, width: int, hanging: int) -> list[str]:
    """A line in pieces of at most ``width`` columns, broken at blanks where there are any; all but the first begin with
    ``hanging`` blanks.
    """
    pieces = [""]
    for word in re.findall(r"\s*\S+", line):
        if pieces[-1].strip() and cells(pieces[-1] + word) > width:
            pieces.append(" " * hanging + word.lstrip())
        else:
            pieces[-1] += word
    return pieces


def _cut(text: str, room: int) -> str:
    """At most ``room`` columns of it, with an ellipsis where something is missing."""
    if cells(text) <= room:
        return text
    ends = itertools.accumulate(map(widest, text))
    return f"{text[: sum(end < room for end in ends)]}…"


def raw(data: bytes) -> None:
    """Bytes of an agent, as they are into a file or a pipe; a terminal gets what it can show and nothing that it would
    act on.
    """
    if not sys.stdout.isatty():
        try:
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as exc:
            raise lost(exc) from exc
        return
    for line in data.decode("utf-8", "replace").splitlines():
        say(safe(line))


def reader_gone(wait_ms: int) -> bool:
    """Wait a moment for more; True when the other end of our output was closed meanwhile, which only a write would tell
    otherwise.
    """
    watch = select.poll()
    watch.register(sys.stdout.fileno(), 0)
    return any(what & (select.POLLERR | select.POLLHUP) for _, what in watch.poll(wait_ms))
