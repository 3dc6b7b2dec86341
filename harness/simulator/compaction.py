"""The service's own compaction: from so many input tokens on, a reply begins with a block that stands for what came
before it.

The block is signed: what comes back must be what was sent, and nothing before it counts any more.
"""

from __future__ import annotations

import hashlib
from typing import Any

from harness.simulator import tokens
from harness.simulator.edits import BETAS
from harness.simulator.errors import ApiError

KIND = "compaction"
EDIT = "compact_20260112"
DEFAULT_TRIGGER = 150_000
_FIELDS = frozenset(("type", "content", "encrypted_content", "signature", "tool_changes", "cache_control"))
_WORDS = "What came before, in short: {count} messages; the first began “{first}”."


def trigger(body: dict[str, Any]) -> int | None:
    """Input tokens from which a validated request wants a compaction; None when it wants none."""
    edits = (body.get("context_management") or {}).get("edits", [])
    edit = next((edit for edit in edits if edit["type"] == EDIT), None)
    return None if edit is None else int(edit.get("trigger", {}).get("value", DEFAULT_TRIGGER))


def block(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """The block that stands for these messages."""
    content = messages[0]["content"]
    first = content if isinstance(content, str) else next((b["text"] for b in content if b["type"] == "text"), "")
    summary = _WORDS.format(count=len(messages), first=" ".join(str(first).split())[:80])
    return {"type": KIND, "content": summary, "signature": _signature(summary)}


def check(messages: list[dict[str, Any]], betas: frozenset[str]) -> None:
    """Every block of ours in validated messages is as it was sent. Raises ApiError 400."""
    for i, message in enumerate(messages):
        content = message["content"]
        for j, part in enumerate(content) if isinstance(content, list) else ():
            if part["type"] == KIND:
                _check(f"messages.{i}.content.{j}", message["role"], part, betas)


def _check(where: str, role: str, given: dict[str, object], betas: frozenset[str]) -> None:
    if BETAS[EDIT] not in betas:
        raise ApiError(400, f"{where}: Input tag '{KIND}' found using 'type' does not match any of the expected tags")
    if role != "assistant":
        raise ApiError(400, f"{where}: `{KIND}` blocks can only be in `assistant` messages")
    if given.keys() - _FIELDS:
        raise ApiError(400, f"{where}.{KIND}: Extra inputs are not permitted")
    content = given.get("content")
    if content is None:
        return
    if not isinstance(content, str) or not content:
        raise ApiError(400, f"{where}.{KIND}.content: Input should be a valid non-empty string")
    if given.get("signature") != _signature(content):
        raise ApiError(400, f"{where}: compaction_signature_invalid: send the block back as it came")


def after(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The messages that still count: from the newest block that says something on."""
    for i in range(len(messages) - 1, -1, -1):
        content = messages[i]["content"]
        for j in range(len(content) - 1, -1, -1) if isinstance(content, list) else ():
            if content[j]["type"] == KIND and content[j].get("content"):
                return [{**messages[i], "content": content[j:]}, *messages[i + 1 :]]
    return messages


def output_of(made: dict[str, object]) -> int:
    """Tokens that writing the block took."""
    return tokens.of_text(str(made["content"]))


def _signature(text: str) -> str:
    return hashlib.sha256(f"compaction\0{text}".encode("utf-8", "replace")).hexdigest()
