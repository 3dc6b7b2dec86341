"""What a verb does to several things that were named at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from app.cli.base import exits
from app.cli.base.output import safe, warn
from harness.protocol.client import SupervisorError

T = TypeVar("T")


def each(found: Iterable[tuple[str, T]], act: Callable[[T], object]) -> int:
    """Do it to each by its name (untrusted): what is refused for one, in words, keeps no other from it.

    Raises SupervisorError where there is only one.
    """
    named = list(found)
    if len(named) == 1:
        act(named[0][1])
        return exits.OK
    code = exits.OK
    for name, one in named:
        try:
            act(one)
        except SupervisorError as exc:
            whose = "" if exc.message.startswith(name) else f"{safe(name)}: "
            warn(f"watchfloor: {whose}{exc.lines}")
            code = exits.REFUSED
    return code
