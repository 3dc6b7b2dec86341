"""In what one action differs from another, in words. Pure."""

from __future__ import annotations

from collections.abc import Mapping

_OF_THE_CALL = ("call", "ref", "pre", "input", "input_sha")
"""What is no difference: identities of a call, and the world, of which whoever compared it tells better."""
_SHORT = 120


def differences(before: Mapping[str, object], after: Mapping[str, object], prefix: str = "") -> list[str]:
    """``field: old → new`` for every part in which two actions, as they are recorded, differ, in a fixed order.

    Untrusted text as it is.
    """
    found: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        old = before.get(name)
        new = after.get(name)
        if old == new or (not prefix and name in _OF_THE_CALL):
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            found += differences(old, new, f"{prefix}{name}.")
        else:
            found.append(f"{prefix}{name}: {_short(old)} → {_short(new)}")
    return found


def _short(value: object) -> str:
    if value is None:
        return "(none)"
    text = " ".join(str(x) for x in value) if isinstance(value, list) else str(value)
    return text if len(text) <= _SHORT else text[: _SHORT - 1] + "…"
