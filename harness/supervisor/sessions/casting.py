"""Who plays which part in a new session, and how a role's limits bound it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.events import types as t
from harness.events.role_events import PinnedRole
from harness.roles import pinned, shelf
from harness.roles.role import PARTS, WORKER, Limits, Role, RoleError
from harness.supervisor.errors import OpError


@dataclass(frozen=True, slots=True)
class Cast:
    """The roles of a session by part."""

    roles: dict[str, Role]

    @property
    def worker(self) -> Role:
        return self.roles[WORKER]

    def pinned(self) -> list[PinnedRole]:
        """As the session keeps them."""
        return [pinned.pin(part, role) for part, role in self.roles.items()]


def cast(config: Path, worker: str, *others: str) -> Cast:
    """The roles of this configuration folder for the worker and the ``others`` parts (blocking).

    Raises OpError ``bad_role``.
    """
    wanted = {WORKER: worker or PARTS[WORKER], **{part: PARTS[part] for part in others}}
    return Cast({part: _role(config, name) for part, name in wanted.items()})


def _role(config: Path, name: str) -> Role:
    try:
        found = shelf.find(config, name)
    except RoleError as exc:
        raise OpError("bad_role", str(exc), "mend the file; then try: watchfloor roles") from exc
    if found is None:
        known = ", ".join(shelf.names(config))
        raise OpError("bad_role", f"there is no role {name!r}", f"known: {known}; see: watchfloor roles")
    return found[0]


def within(caps: t.Caps, limits: Limits) -> t.Caps:
    """The caps, none of them above the role's limits."""
    given = msgspec.structs.asdict(caps)
    return t.Caps(**{name: least(value, getattr(limits, name)) for name, value in given.items()})


def least(value: int | None, limit: int | None) -> int | None:
    """The smaller of two limits of which each may be none."""
    known = [one for one in (value, limit) if one is not None]
    return min(known) if known else None
