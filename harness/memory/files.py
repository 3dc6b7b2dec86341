"""A session's own memories as the vendor's memory tool sees them: files below ``/memories``, each a key. Pure; the
answers are worded as that tool's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from harness.domain.text import fields
from harness.memory import changes
from harness.memory.changes import MemoryRequest, NotRemembered
from harness.memory.model import Memories
from harness.memory.records import Entry, Place, Written
from harness.tools.memory_files import ROOT

_LEVELS = 2
_MOST_SHOWN = 200
_NUMBERED = 6
_AROUND = 2
_SHORT = 200


@dataclass(frozen=True, slots=True)
class Done:
    """What the tool answers, and what it adds to the memory's log."""

    text: str
    entries: tuple[Entry, ...] = ()


def view(m: Memories, place: Place, given: Mapping[str, object], now: str) -> str:
    """A file with its lines numbered, or what is below a folder. Raises NotRemembered."""
    path = str(given["path"])
    key = _key(path)
    file = m.get(place, key, now) if key else None
    if file is not None:
        return _numbered(path, file.text.split("\n"), given.get("view_range"))
    below = {w.key: w for w in m.at([place], now) if not key or w.key.startswith(f"{key}/")}
    if key and not below:
        raise _missing(path, " Please provide a valid path.")
    return _listed(path.rstrip("/"), key, below)


def change(m: Memories, wish: MemoryRequest, given: Mapping[str, object]) -> Done:
    """What a command other than ``view`` adds. ``wish`` says whose memory it is and who asks.

    The same call again goes on where it was cut off, and changes nothing twice. Raises NotRemembered.
    """
    again = m.calls.get((wish.origin.author, wish.origin.call)) is not None
    return _COMMANDS[str(given["command"])](m, wish, given, again)


def _create(m: Memories, wish: MemoryRequest, given: Mapping[str, object], again: bool) -> Done:
    path = str(given["path"])
    told = f"File created successfully at: {path}"
    if again:
        return Done(told)
    key = _file_key(path)
    if _taken(m, wish, key):
        raise NotRemembered("precondition", f"File {path} already exists")
    _free_above(m, wish, key, path)
    return Done(told, tuple(changes.write(m, replace(wish, key=key, text=str(given["file_text"])))))


def _str_replace(m: Memories, wish: MemoryRequest, given: Mapping[str, object], again: bool) -> Done:
    path = str(given["path"])
    if again:
        return Done("The memory file has been edited.")
    standing = _standing(m, wish, path)
    old = str(given["old_str"])
    count = standing.text.count(old) if old else 0
    if count != 1:
        shown = old[:_SHORT]
        if not count:
            why = f"No replacement was performed, old_str `{shown}` did not appear verbatim in {path}."
        else:
            why = (
                f"No replacement was performed. Multiple occurrences of old_str `{shown}` in {path}. Please ensure it"
                " is unique"
            )
        raise NotRemembered("bad_request", why)
    at = standing.text[: standing.text.index(old)].count("\n")
    text = standing.text.replace(old, str(given["new_str"]))
    lines = text.split("\n")
    snippet = [_line(n + 1, lines[n]) for n in range(max(0, at - _AROUND), min(len(lines), at + _AROUND + 1))]
    told = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
    return Done("\n".join([told, *snippet]), tuple(changes.write(m, replace(wish, key=standing.key, text=text))))


def _insert(m: Memories, wish: MemoryRequest, given: Mapping[str, object], again: bool) -> Done:
    path = str(given["path"])
    told = f"The file {path} has been edited."
    if again:
        return Done(told)
    standing = _standing(m, wish, path)
    lines = standing.text.split("\n")
    if lines[-1] == "":
        lines.pop()
    at = fields.number(given, "insert_line", 0)
    if at > len(lines):
        why = f"Invalid `insert_line` parameter: {at}. It should be within the range [0, {len(lines)}]."
        raise NotRemembered("bad_request", why)
    lines.insert(at, str(given["insert_text"]).rstrip("\n"))
    text = "\n".join([*lines, ""])
    return Done(told, tuple(changes.write(m, replace(wish, key=standing.key, text=text))))


def _delete(m: Memories, wish: MemoryRequest, given: Mapping[str, object], again: bool) -> Done:
    path = str(given["path"])
    gone = _at_or_below(m, wish, _folder_key(path, "delete"))
    if not gone and not again:
        raise _missing(path)
    return Done(f"Successfully deleted {path}", tuple(_removed(m, wish, gone)))


def _rename(m: Memories, wish: MemoryRequest, given: Mapping[str, object], again: bool) -> Done:
    old = str(given["old_path"])
    new = str(given["new_path"])
    old_key = _folder_key(old, "rename")
    new_key = _file_key(new)
    moved = _at_or_below(m, wish, old_key)
    if not moved and not again:
        raise _missing(old)
    if not again and _taken(m, wish, new_key):
        raise NotRemembered("precondition", f"The destination {new} already exists")
    if f"{new_key}/".startswith(f"{old_key}/"):
        raise NotRemembered("bad_request", f"{old} cannot be moved into itself")
    _free_above(m, wish, new_key, new)
    made: list[Entry] = []
    for one in moved:
        key = new_key + one.key[len(old_key) :]
        made += changes.write(m, replace(wish, key=key, text=one.text, expires=one.expires))
    return Done(f"Successfully renamed {old} to {new}", (*made, *_removed(m, wish, moved)))


_COMMANDS: dict[str, Callable[[Memories, MemoryRequest, Mapping[str, object], bool], Done]] = {
    "create": _create,
    "str_replace": _str_replace,
    "insert": _insert,
    "delete": _delete,
    "rename": _rename,
}


# -- paths and keys --------------------------------------------------------------------------------


def _key(path: str) -> str:
    return path.removeprefix(ROOT).strip("/")


def _file_key(path: str) -> str:
    key = _key(path)
    if not key or path.endswith("/"):
        raise NotRemembered("bad_request", f"{path} is a folder; name a file in it")
    return key


def _folder_key(path: str, what: str) -> str:
    key = _key(path)
    if not key:
        raise NotRemembered("bad_request", f"Cannot {what} the {ROOT} directory itself")
    return key


def _standing(m: Memories, wish: MemoryRequest, path: str) -> Written:
    key = _file_key(path)
    found = m.get(wish.place, key, wish.origin.ts)
    if found is None:
        if _at_or_below(m, wish, key):
            raise NotRemembered("bad_request", f"The path {path} is not a file.")
        raise _missing(path, " Please provide a valid path.")
    return found


def _at_or_below(m: Memories, wish: MemoryRequest, key: str) -> list[Written]:
    return sorted(
        (w for w in m.at([wish.place], wish.origin.ts) if w.key == key or w.key.startswith(f"{key}/")),
        key=lambda w: w.key,
    )


def _taken(m: Memories, wish: MemoryRequest, key: str) -> bool:
    return bool(_at_or_below(m, wish, key))


def _free_above(m: Memories, wish: MemoryRequest, key: str, path: str) -> None:
    """No file stands where a folder of this one would be. Raises NotRemembered."""
    parts = key.split("/")
    for depth in range(1, len(parts)):
        above = "/".join(parts[:depth])
        if m.get(wish.place, above, wish.origin.ts) is not None:
            raise NotRemembered("bad_request", f"{path} cannot be made: {ROOT}/{above} is a file")


def _removed(m: Memories, wish: MemoryRequest, gone: list[Written]) -> Iterator[Entry]:
    for one in gone:
        yield from changes.remove(m, replace(wish, key=one.key))


def _missing(path: str, more: str = "") -> NotRemembered:
    return NotRemembered("not_found", f"The path {path} does not exist{'.' if more else ''}{more}")


# -- what is shown ---------------------------------------------------------------------------------


def _line(number: int, text: str) -> str:
    return f"{number:>{_NUMBERED}}\t{text}"


def _numbered(path: str, lines: list[str], wanted: object) -> str:
    first, last = wanted if isinstance(wanted, list) and wanted else (1, -1)
    first = max(1, first)
    end = len(lines) if last == -1 else max(0, last)
    shown = [_line(n, text) for n, text in enumerate(lines[first - 1 : end], first)]
    return "\n".join([f"Here's the content of {path} with line numbers:", *shown])


def _listed(path: str, key: str, below: dict[str, Written]) -> str:
    sizes: dict[str, int] = {}
    for name, file in below.items():
        size = len(file.text.encode())
        sizes[""] = sizes.get("", 0) + size
        parts = name[len(key) + 1 if key else 0 :].split("/")
        for depth in range(1, min(_LEVELS, len(parts)) + 1):
            shown = "/" + "/".join(parts[:depth]) + ("/" if depth < len(parts) else "")
            sizes[shown] = sizes.get(shown, 0) + size
    names = sorted(sizes)[: _MOST_SHOWN + 1] or [""]
    lines = [f"{_size(sizes.get(name, 0))}\t{path}{name}" for name in names]
    if len(sizes) > len(names):
        lines.append(f"({len(sizes) - len(names)} more)")
    head = f"Here're the files and directories up to {_LEVELS} levels deep in {path}, excluding hidden items:"
    return "\n".join([head, *lines])


def _size(size: int) -> str:
    return f"{size}B" if size < 1024 else f"{size / 1024:.1f}K"
