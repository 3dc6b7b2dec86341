"""The alarms of a session, as its log has them: what is raised, and what a person has put off. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from harness.domain.problems import HELD
from harness.domain.text.formatting import parse_ts
from harness.events import types as t


@dataclass(frozen=True, slots=True)
class Alarms:
    """What is raised, by kind, and until when a person wants no reminder of it."""

    raised: Mapping[str, t.AlarmRaised] = field(default_factory=dict)
    snoozed: Mapping[str, str] = field(default_factory=dict)

    def after(self, body: t.Body) -> Alarms:
        """After this record."""
        match body:
            case t.AlarmRaised():
                return replace(self, raised={**self.raised, body.alarm: body})
            case t.AlarmCleared():
                return replace(self, raised=_without(self.raised, body.alarm))
            case t.AlarmSnoozed():
                return replace(self, snoozed={**self.snoozed, **dict.fromkeys(body.alarms, body.until)})
            case t.SessionEnded():
                return Alarms()
            case t.SessionContinued() | t.SessionDesired() | t.Quarantined() if HELD in self.snoozed:
                return replace(self, snoozed={kind: ts for kind, ts in self.snoozed.items() if kind != HELD})
        return self

    @property
    def put_off(self) -> str:
        """Until when a person wants nothing of its having failed, or standing still; empty when nobody said so."""
        return self.snoozed.get(HELD, "")

    def ringing(self, now: float) -> list[t.AlarmRaised]:
        """Those that nobody has put off at this time."""
        return [one for kind, one in self.raised.items() if now >= (parse_ts(self.snoozed.get(kind, "")) or 0.0)]


def _without(raised: Mapping[str, t.AlarmRaised], kind: str) -> dict[str, t.AlarmRaised]:
    return {name: one for name, one in raised.items() if name != kind}


def until(now: float, seconds: int) -> str:
    """The time so many seconds from now, as the log writes times."""
    return datetime.fromtimestamp(now + seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
