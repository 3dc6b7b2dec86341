"""What endpoints said of their models, for the brains that follow the one that asked. Lost with the supervisor, and
after a day: then it is asked again.
"""

from __future__ import annotations

import time

from harness.domain.model_limits import ModelLimits

_DAY_S = 24 * 3600.0
_MOST = 500


class KnownModels:
    """By endpoint and model."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], tuple[float, ModelLimits]] = {}

    def note(self, base_url: str, model: str, limits: ModelLimits) -> None:
        """What was said or seen just now."""
        if len(self._known) >= _MOST:
            del self._known[next(iter(self._known))]
        before = self.find(base_url, model)
        self._known[base_url, model] = (time.monotonic(), limits if before is None else limits.beside(before))

    def find(self, base_url: str, model: str) -> ModelLimits | None:
        """None when nobody asked for a day."""
        when, limits = self._known.get((base_url, model), (0.0, None))
        return limits if limits is not None and time.monotonic() - when < _DAY_S else None
