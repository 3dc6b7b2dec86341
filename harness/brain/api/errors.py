"""Why a reply that was on its way is no reply."""

from __future__ import annotations


class Overdue(Exception):
    """A reply took longer than it may; the text says which deadline."""


class TooLarge(Exception):
    """A reply is larger than what can be kept."""
