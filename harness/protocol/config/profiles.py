"""``[profiles."MODEL"]`` of config.toml: what differs for a model, or for all whose names begin so. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from harness.protocol.config.sections import FRESH

LEAST_CONTEXT = 20_000
LEAST_CLEARING = 10_000
LEAST_COMPACTION = 50_000


class Profile(msgspec.Struct, frozen=True):
    """Settings for a model, or for all models whose names begin so."""

    working_tokens: int = 0
    """The size that requests are kept within; 0 is ``model.context_tokens``."""
    api_clearing: int = 0
    """Input size from which the endpoint clears old tool results itself; 0 is never."""
    api_compaction: int = 0
    """Input size from which the endpoint summarises what came before; 0 is never."""
    api_memory: bool = False
    """Use the endpoint's own memory tool in place of Watchfloor's."""
    fresh: str = ""
    """As ``plan.fresh``, for this model; empty is as for every model."""
    cache_hour: bool = False
    """Keep the prompt cache for an hour, not five minutes."""


class Profiles(msgspec.Struct, frozen=True):
    """By the beginning of a model's name."""

    by_name: Mapping[str, Profile] = {}

    def of(self, model: str) -> Profile:
        """The profile with the longest name that this model's begins with."""
        fitting = [name for name in self.by_name if model.startswith(name)]
        return self.by_name[max(fitting, key=len)] if fitting else Profile()


_LEAST = {"working_tokens": LEAST_CONTEXT, "api_clearing": LEAST_CLEARING, "api_compaction": LEAST_COMPACTION}


class BadProfile(ValueError):
    """A profile cannot be used; ``key`` is the name of the profile, or of a setting in it."""

    def __init__(self, key: str, why: str) -> None:
        super().__init__(why)
        self.key = key


def parse(table: Mapping[str, object]) -> Profiles:
    """Raises BadProfile."""
    made: dict[str, Profile] = {}
    for name, raw in table.items():
        if not isinstance(raw, dict):
            raise BadProfile(name, f'must be a section: write [profiles."{name}"]')
        made[name] = Profile(**{key: _setting(key, value) for key, value in raw.items()})
    return Profiles(made)


def _setting(key: str, value: object) -> Any:
    known = sorted(Profile.__struct_fields__)
    if key not in known:
        raise BadProfile(key, f"unknown key; known: {', '.join(known)}")
    if key in ("api_memory", "cache_hour"):
        if not isinstance(value, bool):
            raise BadProfile(key, "must be true or false")
        return value
    if key == "fresh":
        if value not in FRESH:
            raise BadProfile(key, f"must be one of {', '.join(FRESH)}")
        return value
    least = _LEAST[key]
    if isinstance(value, bool) or not isinstance(value, int) or (value != 0 and value < least):
        raise BadProfile(key, f"must be a number of tokens, {least} at least, or 0 for none of its own")
    return value
