"""What a keeper answers when it refuses. Standard library only."""

from __future__ import annotations


class OpError(Exception):
    """A refusal for one requester: a code for programs, a message and a hint for people."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def body(self) -> dict[str, str]:
        return {"code": self.code, "message": self.message, **({"hint": self.hint} if self.hint else {})}
