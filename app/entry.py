"""Where the command ``watchfloor`` begins. Until the program listens for an interrupt, one ends it without a word."""

from __future__ import annotations

import signal

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Run the command line; returns the exit code."""
    from app import main as program

    return program.main()
