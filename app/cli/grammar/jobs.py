"""What `watchfloor jobs` understands."""

from __future__ import annotations

import argparse


def add(p: argparse.ArgumentParser) -> None:
    """Add the words of the verb to its parser."""
    p.add_argument(
        "words",
        metavar="WORD",
        nargs="*",
        help="nothing or ID: list what runs; cancel ID JOB: end one; log ID JOB: what it printed",
    )
    p.add_argument("-f", "--follow", action="store_true", help="with log: go on until the job has ended")
