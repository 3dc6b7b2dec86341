"""What `watchfloor brief` and `watchfloor receipts` understand."""

from __future__ import annotations

import argparse

_SINCE = "only what happened since this time (2026-11-22T08:00) or this long ago (90m, 2d)"


def add_brief(p: argparse.ArgumentParser) -> None:
    """Add the words of ``brief`` to its parser."""
    p.add_argument("ids", metavar="ID", nargs="*", help="sessions (default: all)")
    p.add_argument("--since", metavar="T", help=f"{_SINCE}; default: since it was shown here last, at first 24h")
    p.add_argument("--md", action="store_true", help="as Markdown")


def add_receipts(p: argparse.ArgumentParser) -> None:
    """Add the words of ``receipts`` to its parser."""
    p.add_argument("id", metavar="ID", nargs="?", default="", help="a session, or one request by its id (default: all)")
    p.add_argument("--since", metavar="T", help=_SINCE)
