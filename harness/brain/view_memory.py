"""What the built-in agent knows at a reply, as bytes: another object takes it up and reads only the log behind it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec

from harness.brain.conversation import Kept, Talk
from harness.brain.view import View
from harness.projections.state.session_state import SessionState
from harness.projections.state_snapshots import version_of


class _Memory(msgspec.Struct, frozen=True):
    view: View
    talk: Kept


_decoder = msgspec.json.Decoder(_Memory)


VERSION = version_of(Path(__file__).parent)
"""Of the agent's code as it was loaded: another program's idea of a conversation is never continued."""


def encode(view: View, talk: Talk) -> bytes | None:
    """Everything but the session's state, which the journal keeps itself; None when it is no text (half of a surrogate
    pair in the log).
    """
    try:
        return msgspec.json.encode(_Memory(replace(view, state=SessionState()), talk.kept()))
    except UnicodeEncodeError:
        return None


def decode(memory: bytes, state: SessionState) -> tuple[View, Talk] | None:
    """The same again, over this state; None when it cannot be understood."""
    try:
        found = _decoder.decode(memory)
    except msgspec.DecodeError:
        return None
    return replace(found.view, state=state), Talk.of(found.talk)
