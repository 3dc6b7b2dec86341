"""What is asked of the process that holds a judge against known results, and each verdict that it answers with."""

from __future__ import annotations

import msgspec


class CalibrationOrder(msgspec.Struct, frozen=True):
    """What is to be calibrated: the endpoint, the model and the judge's prompt; ``only`` these results, or all."""

    base_url: str
    key: str
    model: str
    prompt: str
    most_nano: int
    max_tokens: int = 8192
    only: list[str] = []


class CalibrationLine(msgspec.Struct, frozen=True):
    """One verdict, and what it cost."""

    name: str
    good: bool
    flaw: str
    verdict: str
    why: str
    right: bool
    nano: int
    tokens: int
