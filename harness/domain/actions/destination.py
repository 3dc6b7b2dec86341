"""Where a push leads and how that was found out. Standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from harness.domain.text.fields import Wire, flag, items, table, text, texts


class Refspec(NamedTuple):
    """One ref of a push: the commit it gets, its full name, and where it stands at the remote (``absent``)."""

    sha: str
    ref: str
    old: str


@dataclass(frozen=True, slots=True)
class Named:
    """An address as it is written, in the user's configuration (``pushurl`` or ``url``) or by the agent.

    ``base`` is the folder from which a relative one starts.
    """

    address: str
    base: str
    pushurl: bool = False
    configured: bool = False

    def to_wire(self) -> Wire:
        return {
            "address": self.address,
            "base": self.base,
            "pushurl": self.pushurl,
            "configured": self.configured,
        }


@dataclass(frozen=True, slots=True)
class LocalRemote:
    """A remote on this machine: its git folder, and which of its hooks and programs a push would run as the user."""

    folder: str
    hooks: tuple[str, ...]
    programs: tuple[str, ...]

    def to_wire(self) -> Wire:
        return {"folder": self.folder, "hooks": list(self.hooks), "programs": list(self.programs)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Destination:
    """Where a push leads, what arrives there, and how that was found out. ``named`` and ``repository`` (the git folder
    whose objects are pushed) are missing when nobody knows.
    """

    url: str
    refspecs: tuple[Refspec, ...]
    force: bool = False
    named: Named | None = None
    repository: str | None = None
    local: LocalRemote | None = None

    def to_wire(self) -> Wire:
        wire: Wire = {"url": self.url, "refspecs": [list(spec) for spec in self.refspecs], "force": self.force}
        if self.named is not None:
            wire["named"] = self.named.to_wire()
        if self.repository is not None:
            wire["repository"] = self.repository
        if self.local is not None:
            wire["local"] = self.local.to_wire()
        return wire

    @classmethod
    def from_wire(cls, wire: Mapping[str, object]) -> Destination:
        """Raises BadField."""
        named = wire.get("named")
        local = wire.get("local")
        repository = wire.get("repository")
        return cls(
            url=text(wire, "url"),
            refspecs=tuple(Refspec(*spec) for spec in items(wire, "refspecs", 3)),
            force=flag(wire, "force", False),
            named=None if named is None else _named(table(wire, "named")),
            repository=None if repository is None else text(wire, "repository"),
            local=None if local is None else _local(table(wire, "local")),
        )


def _named(wire: Mapping[str, object]) -> Named:
    return Named(
        text(wire, "address"), text(wire, "base"), flag(wire, "pushurl", False), flag(wire, "configured", False)
    )


def _local(wire: Mapping[str, object]) -> LocalRemote:
    return LocalRemote(text(wire, "folder"), texts(wire, "hooks"), texts(wire, "programs"))
