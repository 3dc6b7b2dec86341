"""How far a call may reach, as inputs, actions and policies spell it. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Access(StrEnum):
    """What lies beyond the fence for one call."""

    FENCE = "fence"
    """Nothing."""
    NETWORK = "network"
    """The hosts that it names, or any."""
    UNFENCED = "unfenced"
    """Everything: there is no fence."""
    OUTSIDE = "outside"
    """One file or folder beside the worktree."""
    PUSH = "push"
    """A remote, by way of git outside the fence."""


ASKED = (Access.FENCE, Access.NETWORK, Access.UNFENCED)
"""What the input of a call may ask for; the others follow from what it is about."""
FENCED = frozenset(Access) - {Access.UNFENCED, Access.PUSH}
"""Those whose call runs inside the fence."""


def asked(given: Mapping[str, object]) -> str:
    """What an input asks for, whether there is such a thing or not."""
    return str(given.get("access") or Access.FENCE)
