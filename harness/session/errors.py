"""What a keeper answers when it refuses. Standard library only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class OpError(Exception):
    """A refusal for one requester: a code for programs, a message and a hint for people."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def body(self) -> dict[str, str]:
        return {"code": self.code, "message": self.message, **({"hint": self.hint} if self.hint else {})}


Answer = Callable[[dict[str, Any] | OpError], None]
"""Where the reply to a request goes, or why there is none."""
