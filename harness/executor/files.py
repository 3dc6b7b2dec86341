"""The file tools, as the sandboxed runner executes them: read, write, edit, list, search, and reading an output again.
Standard library only.
"""

from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import NamedTuple

from harness.domain.text import fields
from harness.executor import paging, search_tools
from harness.executor.confined_paths import PathError, Root
from harness.executor.file_tool import Given, Places, Result, ToolError

MAX_READ = 64 << 20
_MAX_COMPARED = 4 << 20  # larger files are written without a look at what they were
SHOWN_BYTES = 8 << 10
"""What a keeper passes on of an output whole; of a longer one the middle is left out."""
_LAST_LINE = 160  # bytes kept free for saying how to go on
_NUMBER = 12  # bytes that the number of a line takes at most
MAX_LINE = 1900  # characters, so that one line of the widest always fits
DEFAULT_LINES = 2000
PATIENCE_S = 10.0
"""Processor time that looking for a pattern takes at most: one that repeats what repeats would go on for years."""


def run(tool: str, given: Given, places: Places) -> Result:
    """Execute one file tool; raises ToolError with a message for the model."""
    try:
        found = TOOLS[tool]
        with _patience(tool) if found.looks else nullcontext():
            return found.do(given, places)
    except fields.BadField as exc:
        raise ToolError(f"{tool}: its input has no such {exc}") from exc
    except PathError as exc:
        raise ToolError(str(exc)) from exc
    except OSError as exc:
        raise ToolError(f"{tool}: {exc.strerror or exc}") from exc


@contextmanager
def _patience(tool: str) -> Iterator[None]:
    """Raise ToolError in the midst of a tool that looks for a pattern when that takes too long."""

    def end(_signal: int, _frame: object) -> None:
        raise ToolError(
            f"{tool}: ended after {PATIENCE_S:g} seconds of processor time; look for something simpler (nothing that"
            " repeats within what repeats), or in less"
        )

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE_S, PATIENCE_S)  # again, if the first is lost in a finalizer
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _read_file(given: Given, places: Places) -> Result:
    """Whole lines, as many as reach the model; the last line of the answer says which they are."""
    path = fields.text(given, "path")
    root, relative = places.find(path)
    data = root.read(relative, MAX_READ)
    if b"\0" in data[:8192]:
        raise ToolError(f"{path} is a binary file of {len(data)} bytes; use exec (file, xxd, strings) to look into it")
    lines = data.decode("utf-8", "replace").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return Result("(the file is empty)")
    first = fields.number(given, "offset", 1)
    wanted = fields.number(given, "limit", DEFAULT_LINES)
    if first > len(lines):
        raise ToolError(f"{path} has only {len(lines)} lines; offset {first} is beyond its end")
    if "column" in given:
        return Result(_part_of_line(lines[first - 1], first, len(lines), fields.number(given, "column", 1)))
    shown: list[str] = []
    size = 0
    for number in range(first, min(len(lines), first + wanted - 1) + 1):
        text = lines[number - 1]
        if len(text) > MAX_LINE:
            rest = f"+{len(text) - MAX_LINE} characters: offset {number}, column {MAX_LINE + 1}"
            text = f"{text[:MAX_LINE]} … ({rest})"
        line = f"{number:6}\t{text}"
        size += len(line.encode()) + 1
        if size > SHOWN_BYTES - _LAST_LINE and shown:
            break
        shown.append(line)
    last = first + len(shown) - 1
    if last < len(lines) or first > 1:
        more = f"; go on with offset {last + 1}" if last < len(lines) else ""
        shown.append(f"(lines {first} to {last} of {len(lines)}{more})")
    return Result("\n".join(shown))


def _part_of_line(text: str, number: int, lines: int, column: int) -> str:
    """As much of one line as reaches the model, from that character on. Raises ToolError beyond its end."""
    if column > max(1, len(text)):
        raise ToolError(f"line {number} has only {len(text)} characters; column {column} is beyond its end")
    room = SHOWN_BYTES - _LAST_LINE - _NUMBER
    piece = text[column - 1 : column - 1 + room].encode()[:room].decode("utf-8", "ignore")
    last = column - 1 + len(piece)
    where = f"line {number} of {lines}, characters {column} to {last} of {len(text)}"
    if last < len(text):
        where += f"; go on with column {last + 1}"
    elif number < lines:
        where += f"; go on with offset {number + 1}"
    return f"{number:6}\t{piece}\n({where})"


def _write_file(given: Given, places: Places) -> Result:
    path = fields.text(given, "path")
    root, relative = places.find(path)
    data = fields.text(given, "content").encode()
    existed = root.canonical(relative) is not None
    moved = _moved(root, relative, data) if existed else ""
    written = root.replace(relative, data)
    lines = data.count(b"\n") + (1 if data and not data.endswith(b"\n") else 0)
    return Result(
        f"{'replaced' if existed else 'created'} {path} ({lines} lines, {len(data)} bytes{moved})",
        (places.name(root, written, path),),
    )


def _moved(root: Root, relative: str, data: bytes) -> str:
    """How many lines a file gets and loses, and where the first of the new ones stand; each line counts as often as the
    other side lacks it. Nothing for what is no text, or too large to be compared.
    """
    try:
        before = root.read(relative, _MAX_COMPARED)
    except (PathError, OSError):
        return ""
    if len(data) > _MAX_COMPARED or b"\0" in before or b"\0" in data:
        return ""
    spare = Counter(before.splitlines())
    come = []
    for number, line in enumerate(data.splitlines(), 1):
        if spare[line] > 0:
            spare[line] -= 1
        else:
            come.append(number)
    where = f" at {', '.join(map(str, come[:3]))}" if come else ""
    return f"; +{len(come)} -{spare.total()}{where}"


def endings_of(data: bytes, old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """The two texts of an edit with the line ends of the file: models write LF where a file has CRLF."""
    if data.count(old) == 0 and b"\r\n" in data and b"\r" not in old:
        return old.replace(b"\n", b"\r\n"), new.replace(b"\n", b"\r\n")
    return old, new


def _edit_file(given: Given, places: Places) -> Result:
    path = fields.text(given, "path")
    root, relative = places.find(path)
    data = root.read(relative, MAX_READ)
    wanted = fields.text(given, "old")
    old, new = endings_of(data, wanted.encode(), fields.text(given, "new").encode())
    count = data.count(old)
    if count == 0:
        raise ToolError(f"{path} does not contain the text in `old`; nothing was changed. {_near(data, wanted)}")
    if count > 1 and not fields.flag(given, "all", False):
        where = ", ".join(str(_line_of(data, at)) for at in _occurrences(data, old))
        advice = "Give more of the lines around the one you mean, or set all."
        raise ToolError(f"`old` occurs {count} times in {path} (lines {where}); nothing was changed. {advice}")
    first = _line_of(data, data.index(old))
    written = root.replace(relative, data.replace(old, new))
    where = f"line {first}" if count == 1 else f"{count} places"
    return Result(f"edited {path} ({where})", (places.name(root, written, path),))


def _line_of(data: bytes, at: int) -> int:
    return data.count(b"\n", 0, at) + 1


def _occurrences(data: bytes, old: bytes) -> list[int]:
    found: list[int] = []
    at = data.find(old)
    while at >= 0 and len(found) < 10:
        found.append(at)
        at = data.find(old, at + len(old))
    return found


def _near(data: bytes, old: str) -> str:
    """A hint where the model may have meant: the first line of `old`, compared without its white space."""
    wanted = next((line.strip() for line in old.splitlines() if line.strip()), "")
    if wanted:
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if line.strip() == wanted:
                return (
                    f"Line {number} has the same first line but for white space or what follows; read the file again"
                    " there."
                )
    return "Read the file again and copy the text exactly."


def _read_output(given: Given, places: Places) -> Result:
    if places.no_output:
        raise ToolError(places.no_output)
    text = places.output.decode("utf-8", "replace")
    first = fields.number(given, "offset", 1)
    most = fields.number(given, "limit", DEFAULT_LINES)
    room = SHOWN_BYTES - _LAST_LINE
    try:
        if "grep" in given:
            return Result(paging.grep(text, fields.text(given, "grep"), first, most, room))
        return Result(paging.page(text, first, most, room))
    except paging.NoSuchPage as exc:
        raise ToolError(str(exc)) from exc


class FileTool(NamedTuple):
    """How one is carried out; ``looks``: it looks for a pattern, and changes nothing that an end in the midst could
    leave half done.
    """

    do: Callable[[Given, Places], Result]
    looks: bool = False


TOOLS = {
    "read_file": FileTool(_read_file),
    "write_file": FileTool(_write_file),
    "edit_file": FileTool(_edit_file),
    "list_files": FileTool(search_tools.list_files, looks=True),
    "search": FileTool(search_tools.search, looks=True),
    "read_output": FileTool(_read_output, looks=True),
}
