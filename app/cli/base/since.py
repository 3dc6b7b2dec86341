"""What ``--since`` takes. Pure."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from harness.domain.settings import amounts

_STAMP = "%Y-%m-%dT%H:%M:%S.%fZ"


def stamp(text: str, now: datetime) -> str:
    """The time, as records carry it, that was typed as a duration back from ``now`` (90m, 2h) or as a time by ISO 8601,
    on this clock without a zone. Raises ValueError with what is wrong.
    """
    try:
        then = now - timedelta(seconds=amounts.seconds(text))
    except (ValueError, OverflowError):
        try:
            then = datetime.fromisoformat(text).astimezone(UTC)
        except (ValueError, OverflowError):
            raise ValueError(
                f"--since: {text!r} is neither a duration such as 90m nor a time such as 2026-11-22T08:00"
            ) from None
    if then > now:
        raise ValueError(f"--since: {text!r} is still to come; give a time that is over")
    return as_recorded(then)


def as_recorded(moment: datetime) -> str:
    """A time in UTC as records carry it."""
    return moment.strftime(_STAMP)[:-4] + "Z"
