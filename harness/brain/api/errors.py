"""Exceptions for a model's reply that is abandoned while it is being received."""

from __future__ import annotations


class Overdue(Exception):
    """A reply took longer than its deadline; the text names the deadline."""


class TooLarge(Exception):
    """A reply is larger than what can be kept."""
