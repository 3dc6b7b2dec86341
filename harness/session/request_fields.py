"""The fields of a request, as they must be. Standard library only."""

from __future__ import annotations

from typing import Any

from harness.session.errors import OpError


def number(message: dict[str, Any], name: str) -> int:
    """A whole number. Raises OpError ``bad_request``."""
    value = message.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise OpError("bad_request", f"{name} must be a whole number")
    return value


def text(message: dict[str, Any], name: str) -> str:
    """A text. Raises OpError ``bad_request``."""
    value = message.get(name)
    if not isinstance(value, str):
        raise OpError("bad_request", f"{name} must be a text")
    return value
