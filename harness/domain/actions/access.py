"""How far a call may reach, as inputs, actions and policies spell it. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Access(StrEnum):
    """What lies beyond the sandbox for one call."""

    SANDBOX = "sandbox"
    """Nothing."""
    NETWORK = "network"
    """The hosts that it names, or any."""
    UNSANDBOXED = "unsandboxed"
    """Everything: there is no sandbox."""
    OUTSIDE = "outside"
    """One file or folder beside the worktree."""
    PUSH = "push"
    """A remote, by way of git outside the sandbox."""


ASKED = (Access.SANDBOX, Access.NETWORK, Access.UNSANDBOXED)
"""What the input of a call may ask for; the others follow from what it is about."""
SANDBOXED = frozenset(Access) - {Access.UNSANDBOXED, Access.PUSH}
"""Those whose call runs inside the sandbox."""


def asked(given: Mapping[str, object]) -> str:
    """What an input asks for, whether there is such a thing or not."""
    return str(given.get("access") or Access.SANDBOX)
