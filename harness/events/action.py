"""The canonical action: one description of one effect, hashed; what was shown is what runs. Standard library only.

Canonical form follows RFC 8785 in spirit: sorted keys, UTF-8, no floats, bytes as base64 by the caller.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

_DOMAIN = b"watchfloor/action/1\0"


def _no_floats(value: Any) -> None:
    if isinstance(value, float):
        raise ValueError("an action holds no floating-point numbers")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError("an action's keys are strings")
            _no_floats(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _no_floats(item)


def canonical(action: dict[str, Any]) -> bytes:
    """The bytes that are hashed. Raises ValueError on floats or non-string keys."""
    _no_floats(action)
    return json.dumps(action, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def action_hash(action: dict[str, Any]) -> str:
    """SHA-256 in hex over the canonical form, domain-separated."""
    return hashlib.sha256(_DOMAIN + canonical(action)).hexdigest()
