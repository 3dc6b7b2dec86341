"""Bringing a session's work into a branch, as clients see it. Names are untrusted: whoever shows them passes the
display function.
"""

from __future__ import annotations

import msgspec

from harness.events.work.merge_events import MergeEnded
from harness.projections.state.merging import MergeLook


class MergeLooked(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of ``merge_look``."""

    merge: MergeLook


class Merged(MergeEnded, frozen=True, kw_only=True):
    """How a merge ended, and whose work it was."""

    name: str


class HandedBack(msgspec.Struct, frozen=True, kw_only=True):
    """The agent is bringing ``into``, which is at commit ``onto``, into its work."""

    sid: str
    name: str
    into: str
    onto: str
