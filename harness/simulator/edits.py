"""The rules for ``context_management`` of a request, with the vendor's names; what breaks one is a 400."""

from __future__ import annotations

from collections.abc import Callable

from harness.simulator.errors import ApiError

BETAS = {
    "clear_tool_uses_20250919": "context-management-2025-06-27",
    "clear_thinking_20251015": "context-management-2025-06-27",
    "compact_20260112": "compact-2026-01-12",
}
"""By kind of edit, the beta that a request must name in its header."""
_WHERE = "context_management"


def _fail(message: str) -> ApiError:
    return ApiError(400, message)


def check(raw: object, betas: frozenset[str]) -> None:
    """Raises ApiError 400."""
    if raw is None:
        return
    if not isinstance(raw, dict) or raw.keys() - {"edits"}:
        raise _fail(f"{_WHERE}: Extra inputs are not permitted")
    edits = raw.get("edits", [])
    if not isinstance(edits, list):
        raise _fail(f"{_WHERE}.edits: Input should be a valid list")
    kinds: list[str] = []
    for i, edit in enumerate(edits):
        where = f"{_WHERE}.edits.{i}"
        kind = edit.get("type") if isinstance(edit, dict) else None
        if kind not in BETAS:
            raise _fail(f"{where}: Input tag '{kind}' found using 'type' does not match any of the expected tags")
        if BETAS[kind] not in betas:
            raise _fail(f"{_WHERE}: Extra inputs are not permitted")
        known = _FIELDS[kind]
        for name, value in edit.items():
            if name == "type":
                continue
            if name not in known:
                raise _fail(f"{where}.{kind}.{name}: Extra inputs are not permitted")
            if not known[name](value):
                raise _fail(f"{where}.{kind}.{name}: Input is not valid")
        kinds.append(kind)
    if len(set(kinds)) != len(kinds):
        raise _fail(f"{_WHERE}.edits: each edit type may appear only once")
    if "clear_thinking_20251015" in kinds[1:]:
        raise _fail(f"{_WHERE}.edits: clear_thinking_20251015 must be the first edit")


def _counted(*kinds: str) -> Callable[[object], bool]:
    """A number of something: ``{"type": …, "value": N}``."""

    def fits(value: object) -> bool:
        if not isinstance(value, dict) or value.keys() != {"type", "value"} or value["type"] not in kinds:
            return False
        number = value["value"]
        return isinstance(number, int) and not isinstance(number, bool) and number >= 0

    return fits


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _names(value: object) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(name, str) for name in value))


def _inputs(value: object) -> bool:
    return _flag(value) or _names(value)


def _text(value: object) -> bool:
    return value is None or isinstance(value, str)


def _thinking(value: object) -> bool:
    return value in ("all", {"type": "all"}) or _counted("thinking_turns")(value)


_FIELDS: dict[str, dict[str, Callable[[object], bool]]] = {
    "clear_tool_uses_20250919": {
        "trigger": _counted("input_tokens", "tool_uses"),
        "keep": _counted("tool_uses"),
        "clear_at_least": _counted("input_tokens"),
        "exclude_tools": _names,
        "clear_tool_inputs": _inputs,
    },
    "clear_thinking_20251015": {"keep": _thinking},
    "compact_20260112": {
        "trigger": _counted("input_tokens"),
        "pause_after_compaction": _flag,
        "instructions": _text,
    },
}
