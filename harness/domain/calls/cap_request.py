"""What a request about a cap says: which one was reached, how far, and what was needed. Pure, standard library only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from harness.domain.cap import Cap


@dataclass(frozen=True, slots=True)
class CapRequest:
    """``limit`` was met: ``used`` was used, and the next step ``need``s up to so much; ``day`` for a cap of a day. All
    in the cap's unit.
    """

    cap: Cap
    limit: int = 0
    used: int = 0
    need: int = 0
    day: str = ""

    @classmethod
    def of(cls, detail: Mapping[str, object]) -> CapRequest | None:
        """The one in the detail of a request; None when that names no cap that is known here."""
        cap = Cap.of(detail.get("cap"))
        if cap is None:
            return None
        limit, used, need = (_whole(detail.get(name)) for name in ("limit", "used", "need"))
        return cls(cap, limit, used, need, str(detail.get("day") or ""))

    def detail(self) -> dict[str, object]:
        """What the request's record holds of it."""
        return {name: value for name, value in asdict(self).items() if name != "day" or value}


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
