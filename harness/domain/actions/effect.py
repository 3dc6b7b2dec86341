"""What of a call leaves the sandbox, in the words that policies, logs and cards share. Pure, standard library only.

An effect is spelled ``name`` or ``name:what``: ``network``, ``network:<host>``, ``network:<host>:<port>``,
``unsandboxed``, ``outside:<path>``, ``push:<remote> <ref>``, ``push-force``, ``no-undo``. A rule's pattern has the same
form, with ``*`` in it.
"""

from __future__ import annotations

from dataclasses import dataclass

_NETWORK = "network"
_OUTSIDE = "outside"
_PUSH = "push"
_PUSH_FORCE = "push-force"


@dataclass(frozen=True, slots=True)
class Effect:
    """One effect, or a pattern over effects. ``what`` None = it is spelled without a colon."""

    name: str
    what: str | None = None

    def __str__(self) -> str:
        return self.name if self.what is None else f"{self.name}:{self.what}"

    @classmethod
    def parse(cls, text: str) -> Effect:
        """Total: a name that nobody knows is kept, and comes back as it was spelled."""
        name, colon, what = text.partition(":")
        return cls(name, what if colon else None)

    @classmethod
    def reach(cls, host: str) -> Effect:
        """A named host on the network, in its one spelling, with or without a port."""
        return cls(_NETWORK, host)

    @classmethod
    def at(cls, path: str) -> Effect:
        """A path outside the worktree."""
        return cls(_OUTSIDE, path)

    @classmethod
    def push(cls, remote: str, ref: str) -> Effect:
        """A full ref at a remote."""
        return cls(_PUSH, f"{remote} {ref}")

    @property
    def host(self) -> str | None:
        """The host, or the pattern over hosts, of an effect on the network that names one."""
        return self.what if self.name == _NETWORK else None

    @property
    def is_outside(self) -> bool:
        return self.name == _OUTSIDE and self.what is not None

    @property
    def publishes(self) -> bool:
        """True for what changes a remote."""
        return self.name in (_PUSH, _PUSH_FORCE)


NETWORK = Effect(_NETWORK)
"""Any host."""
UNSANDBOXED = Effect("unsandboxed")
PUSH_FORCE = Effect(_PUSH_FORCE)
NO_UNDO = Effect("no-undo")
"""What the call changes cannot be brought back, because the state before it cannot be kept."""
