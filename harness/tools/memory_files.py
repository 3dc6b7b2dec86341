"""The input of the vendor's own memory tool, which stands in the place of ours where a model's profile asks for it: one
of six commands on files below ``/memories``. Standard library only.
"""

from __future__ import annotations

ROOT = "/memories"
_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "view": (("path",), ("view_range",)),
    "create": (("path", "file_text"), ()),
    "str_replace": (("path", "old_str", "new_str"), ()),
    "insert": (("path", "insert_line", "insert_text"), ()),
    "delete": (("path",), ()),
    "rename": (("old_path", "new_path"), ()),
}
"""By command: the fields that it needs, and those that it may have."""
CHANGES = frozenset(_FIELDS) - {"view"}
MAX_TEXT = 1 << 20


def meant(value: object) -> bool:
    """True for an input of the vendor's tool; ours names an ``action``."""
    return isinstance(value, dict) and "command" in value


def problem(value: dict[str, object]) -> str | None:
    """None when the input is one of the commands, else one sentence for the model."""
    command = value["command"]
    if not isinstance(command, str) or command not in _FIELDS:
        return f"memory: command must be one of {', '.join(_FIELDS)}"
    needed, more = _FIELDS[command]
    for name in value:
        if name not in ("command", "why", *needed, *more):
            return f"memory: {command} has no field {str(name)[:60]!r}; its fields are {', '.join((*needed, *more))}"
    for name in needed:
        if name not in value:
            return f"memory: {command} needs the field {name!r}"
    return next((why for name, item in value.items() if (why := _field(name, item))), None)


def _field(name: str, item: object) -> str | None:
    if name == "insert_line":
        sound = isinstance(item, int) and not isinstance(item, bool) and item >= 0
        return None if sound else "memory: insert_line must be a whole number, at least 0"
    if name == "view_range":
        whole = isinstance(item, list) and len(item) == 2 and all(type(line) is int for line in item)
        return None if item is None or whole else "memory: view_range must be two line numbers"
    if not isinstance(item, str):
        return f"memory: {name} must be a string"
    if "\0" in item:
        return f"memory: {name} holds a NUL character"
    try:
        size = len(item.encode())
    except UnicodeEncodeError:
        return f"memory: {name} holds half of a surrogate pair, which is no text"
    if size > MAX_TEXT:
        return f"memory: {name} is {size} bytes, over the limit of {MAX_TEXT}"
    return _path(item) if name.endswith("path") else None


def _path(path: str) -> str | None:
    parts = path.rstrip("/").split("/")
    if path.rstrip("/") != ROOT and not path.startswith(f"{ROOT}/"):
        return f"memory: a path begins with {ROOT}, and this one is {path[:100]!r}"
    if any(part in ("", ".", "..") for part in parts[1:]):
        return f"memory: {path[:100]!r} has an empty part, or one that is . or .."
    return None
