"""The roles that a session began with, as its own log keeps them. Pure."""

from __future__ import annotations

from harness.events.role_events import PinnedRole
from harness.events.session_events import SessionIntent
from harness.roles.role import PARTS, Role, parse
from harness.roles.shelf import shipped


def pin(part: str, role: Role) -> PinnedRole:
    """A role as a session keeps it."""
    return PinnedRole(part, role.name, role.version, role.text)


def of(intent: SessionIntent | None, part: str) -> Role:
    """Who plays this part in a session; one that was launched before there were roles has those that ship."""
    for one in intent.roles if intent is not None else ():
        if one.part == part:
            return parse(one.name, one.text, f"the role {one.name} of the session")
    return shipped()[PARTS[part]]
