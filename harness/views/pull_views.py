"""Sending a session's work to a remote, as clients see it. Texts are untrusted: whoever shows them passes the display
function.
"""

from __future__ import annotations

import msgspec

from harness.events.work.pull_events import PullEnded
from harness.projections.state.publishing import PullView


class PullLooked(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of ``pull_look``."""

    pull: PullView


class SecretsFound(msgspec.Struct, frozen=True, kw_only=True):
    """The kind of secret in each line of each text, empty for none."""

    found: list[list[str]]


class Pulled(PullEnded, frozen=True, kw_only=True):
    """How a push ended, whose work it was, and what arrived."""

    name: str
    pull: PullView
