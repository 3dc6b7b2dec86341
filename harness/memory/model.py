"""Memories as their log says: a fold, record by record. Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from harness.memory.records import DELETED, Decided, Dropped, Entry, Origin, Place, Proposed, Written

VERSIONS = 50
"""Versions of one memory whose texts are at hand; the log holds all of them."""
PENDING = "pending"
ACCEPTED = "accepted"
REJECTED = "rejected"
_AROUND = ".,;:!?\"'`()[]"


def normal(text: str) -> str:
    """What makes two lessons the same: their words, whatever the case, the spacing and what stands around a word."""
    words = (word.strip(_AROUND) for word in unicodedata.normalize("NFKC", text).casefold().split())
    return " ".join(word for word in words if word)


@dataclass(slots=True)
class Memory:
    """One key of one place, the newest version last."""

    place: Place
    key: str
    versions: list[Written] = field(default_factory=list)

    @property
    def newest(self) -> Written:
        return self.versions[-1]

    def live(self, now: str) -> bool:
        """True when it is there at this time (RFC 3339, UTC)."""
        newest = self.newest
        return newest.op != DELETED and not (newest.expires and newest.expires <= now)

    def sha(self, now: str) -> str:
        """The hash of its text; empty when it is not there."""
        return self.newest.sha if self.live(now) else ""


@dataclass(slots=True)
class Lesson:
    """Something that agents want remembered for more than their session; ``sightings`` are the sessions that said it,
    the first one first, and of those that come from one by forks the first alone (``lines``).
    """

    first: Proposed
    sightings: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    state: str = PENDING
    why: str = ""

    def heard(self, origin: Origin) -> None:
        """One more session said it."""
        if origin.line not in self.lines:
            self.lines.append(origin.line)
            self.sightings.append(origin.author)

    @property
    def ident(self) -> str:
        return self.first.lesson


@dataclass(slots=True)
class Memories:
    """Built only by `apply`."""

    by_key: dict[tuple[Place, str], Memory] = field(default_factory=dict)
    lessons: dict[str, Lesson] = field(default_factory=dict)
    calls: dict[tuple[str, str], Entry] = field(default_factory=dict)
    """By session and call, what the call wrote: the same call never writes twice."""
    revision: int = 0

    def apply(self, entry: Entry) -> None:
        """Fold one record in."""
        self.revision += 1
        match entry:
            case Written():
                self._written(entry)
            case Proposed():
                self._proposed(entry)
            case Decided():
                if (lesson := self.lessons.get(entry.lesson)) is not None:
                    lesson.state = entry.decision
                    lesson.why = entry.why
            case Dropped():
                gone = Place(entry.scope, entry.of)
                for name in [name for name in self.by_key if name[0] == gone]:
                    del self.by_key[name]
                for call in [call for call in self.calls if call[0] == entry.of]:
                    del self.calls[call]

    def _written(self, entry: Written) -> None:
        memory = self.by_key.setdefault((entry.place, entry.key), Memory(entry.place, entry.key))
        memory.versions.append(entry)
        del memory.versions[:-VERSIONS]
        self._called(entry)
        if entry.lesson and (lesson := self.lessons.get(entry.lesson)) is not None:
            lesson.state = ACCEPTED

    def _proposed(self, entry: Proposed) -> None:
        lesson = self.lessons.setdefault(entry.lesson, Lesson(entry))
        lesson.heard(entry.origin)
        self._called(entry)

    def _called(self, entry: Written | Proposed) -> None:
        if entry.origin.call:
            self.calls[entry.origin.author, entry.origin.call] = entry

    # -- looking -----------------------------------------------------------------------------------

    def get(self, place: Place, key: str, now: str) -> Written | None:
        """What is remembered under this key now."""
        memory = self.by_key.get((place, key))
        return memory.newest if memory is not None and memory.live(now) else None

    def at(self, places: Iterable[Place], now: str) -> Iterator[Written]:
        """Everything that is remembered at these places now, place by place in their order, the newest first."""
        for place in places:
            found = [m.newest for m in self.by_key.values() if m.place == place and m.live(now)]
            yield from sorted(found, key=lambda w: (w.origin.ts, w.key), reverse=True)

    def pending(self, place: Place | None = None) -> list[Lesson]:
        """Lessons that nobody decided and that were not seen often enough, the oldest first."""
        return [
            lesson
            for lesson in self.lessons.values()
            if lesson.state == PENDING and (place is None or lesson.first.place == place)
        ]

    def same(self, proposed: Proposed) -> Lesson | None:
        """The lesson at the same place that says the same in other spelling."""
        wanted = normal(proposed.text)
        return next(
            (
                lesson
                for lesson in self.lessons.values()
                if lesson.first.place == proposed.place
                and lesson.first.removes == proposed.removes
                and (lesson.first.key == proposed.key if proposed.removes else normal(lesson.first.text) == wanted)
                and lesson.state != ACCEPTED
            ),
            None,
        )
