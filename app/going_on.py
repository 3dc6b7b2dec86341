"""What a person may give an ended session that is to go on, from typed text to the op's arguments.

Pure; command line and dialog share it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.protocol.config import seconds, usd_to_nano


class Unusable(ValueError):
    """A typed value cannot be used; ``field`` names which, the message says why."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field


def request_of(
    text: str, rounds: str, caps: Mapping[str, str], checks: Sequence[str], *, replace_checks: bool = False
) -> dict[str, Any]:
    """The arguments of ``continue`` without the session. ``caps`` by their names in the log, as typed: ``5``, ``+5`` or
    ``none``; empty = as before.

    Raises Unusable.
    """
    made: dict[str, Any] = {
        "text": text.strip(),
        "checks": [c.strip() for c in checks if c.strip()],
        "replace_checks": replace_checks,
    }
    if rounds.strip():
        made["rounds"] = _whole("rounds", rounds)
        if not made["rounds"]:
            raise Unusable("rounds", "at least one round is needed")
    if replace_checks and not made["checks"]:
        raise Unusable("checks", "give the checks that are to hold instead")
    new: dict[str, int | None] = {}
    more: dict[str, int] = {}
    for name, typed in caps.items():
        value = typed.strip()
        if value.lower() == "none":
            new[name] = None
        elif value.startswith("+"):
            more[name] = _amount(name, value[1:])
        elif value:
            new[name] = _amount(name, value)
    return made | ({"caps": new} if new else {}) | ({"more": more} if more else {})


def _amount(name: str, text: str) -> int:
    try:
        if name == "usd_nano":
            return usd_to_nano(text.strip().removeprefix("$"))
        return seconds(text.strip()) if name == "wall_s" and not text.strip().isdigit() else _whole(name, text)
    except ValueError as exc:
        raise Unusable(name, str(exc)) from exc


def _whole(field: str, text: str) -> int:
    clean = text.replace(",", "").replace("_", "").strip()
    if not clean.isascii() or not clean.isdigit():
        raise Unusable(field, f"{text.strip()!r} is not a whole number")
    return int(clean)
