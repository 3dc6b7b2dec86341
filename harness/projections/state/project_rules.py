"""Which files of rules (``AGENTS.md``, ``CLAUDE.md``) a session's context needs: the root's, and those nearest to what
its agent edited. Pure; nothing that they say is heeded here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from harness.events.conversation.project_rules_events import RulesRead

NAMES = ("AGENTS.md", "CLAUDE.md")
MOST_KNOWN = 500
MOST_READ = 40
"""Files of rules in one context; further ones are not read."""


@dataclass(frozen=True, slots=True)
class Rules:
    """What a session's log says of them. ``due`` are paths that are to be read before anybody thinks on."""

    known: tuple[str, ...] = ()
    read: dict[str, RulesRead] = field(default_factory=dict)
    due: tuple[str, ...] = ()
    told: frozenset[str] = frozenset()
    """Files that tools said they changed, which no state of the worktree has shown yet."""

    def at_start(self, paths: Iterable[str]) -> Rules:
        """The commit has these; the root's are due."""
        known = tuple(paths)[:MOST_KNOWN]
        return replace(self, known=known, due=nearest(known, ""))

    def edited(self, paths: Iterable[str]) -> Rules:
        """A tool says that it changed these files."""
        changed = tuple(paths)
        return replace(self, told=self.told | {*changed})._changed(changed) if changed else self

    def seen_changed(self, paths: Iterable[str]) -> Rules:
        """A state of the worktree shows these files changed: by tools that said so, or by commands."""
        left = tuple(path for path in paths if path not in self.told)
        now = replace(self, told=frozenset()) if self.told else self
        return now._changed(left)

    def _changed(self, changed: tuple[str, ...]) -> Rules:
        own = [path for path in changed if path.rpartition("/")[2] in NAMES]
        known = tuple(dict.fromkeys((*self.known, *own)))[:MOST_KNOWN]
        wanted = [near for path in changed for near in nearest(known, path.rpartition("/")[0]) if near not in self.read]
        there = frozenset(changed)
        again = [path for path, one in self.read.items() if not there.isdisjoint(one.files)]
        if known == self.known and not wanted and not again:
            return self
        room = MOST_READ - len(self.read)
        fresh = [path for path in dict.fromkeys((*self.due, *wanted)) if path not in self.read][: max(0, room)]
        return replace(self, known=known, due=tuple(dict.fromkeys((*fresh, *again))))

    def taken(self, body: RulesRead) -> Rules:
        """One was read."""
        rest = {path: one for path, one in self.read.items() if path != body.path}
        return replace(self, read=rest | {body.path: body}, due=tuple(p for p in self.due if p != body.path))


def nearest(known: Iterable[str], folder: str) -> tuple[str, ...]:
    """Of each name the file in this folder, or in the nearest one above it."""
    there = frozenset(known)
    found: list[str] = []
    for name in NAMES:
        at = folder
        while at and f"{at}/{name}" not in there:
            at = at.rpartition("/")[0]
        path = f"{at}/{name}" if at else name
        found.extend([path] if path in there else [])
    return tuple(found)
