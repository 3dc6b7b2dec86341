"""Rate limits per key over a fixed minute, and the headers that tell a client where it stands."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

from harness.simulator.errors import ApiError

WINDOW_S = 60.0


@dataclass(frozen=True, slots=True)
class Limits:
    """Per key and minute."""

    requests: int = 4_000
    input_tokens: int = 4_000_000
    output_tokens: int = 800_000


@dataclass(slots=True)
class Window:
    start: float = 0.0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(slots=True)
class RateLimiter:
    """Counters by key. Cache reads do not count, as on the real service."""

    limits: Limits = field(default_factory=Limits)
    windows: dict[str, Window] = field(default_factory=dict)

    def _window(self, key: str, now: float) -> Window:
        window = self.windows.get(key)
        if window is None or now - window.start >= WINDOW_S:
            window = Window(now)
            self.windows[key] = window
        return window

    def admit(self, key: str, now: float) -> None:
        """Count one request. Raises ApiError 429 with ``retry-after`` when a limit of the running minute is reached."""
        window = self._window(key, now)
        for name in ("requests", "input_tokens", "output_tokens"):
            if getattr(window, name) >= getattr(self.limits, name):
                wait = max(1, round(window.start + WINDOW_S - now + 0.5))
                what = name.replace("_", " ")
                message = (
                    f"This request would exceed your organization's rate limit of {getattr(self.limits, name):,} {what}"
                    " per minute."
                )
                raise ApiError(429, message, headers={"retry-after": str(wait), **self.headers(key, now)})
        window.requests += 1

    def used(self, key: str, now: float, input_tokens: int, output_tokens: int) -> None:
        window = self._window(key, now)
        window.input_tokens += input_tokens
        window.output_tokens += output_tokens

    def headers(self, key: str, now: float) -> dict[str, str]:
        """``anthropic-ratelimit-*`` as they stand; ``now`` in seconds since the epoch."""
        window = self._window(key, now)
        reset = datetime.fromtimestamp(window.start + WINDOW_S, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        out: dict[str, str] = {}
        for name in ("requests", "input_tokens", "output_tokens"):
            limit = int(getattr(self.limits, name))
            head = f"anthropic-ratelimit-{name.replace('_', '-')}"
            out[f"{head}-limit"] = str(limit)
            out[f"{head}-remaining"] = str(max(0, limit - int(getattr(window, name))))
            out[f"{head}-reset"] = reset
        return out
