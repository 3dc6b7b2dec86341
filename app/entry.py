"""Where the command ``watchfloor`` begins. Until the program listens for an interrupt, one ends it without a word."""

from __future__ import annotations

import os
import signal
import sys
from importlib.machinery import PathFinder

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Run the command line; returns the exit code."""
    if other := _shadowing():
        from app.cli.base import exits

        print(f"watchfloor: {other}", file=sys.stderr)
        return exits.REFUSED
    from app import main as program

    return program.main()


def _shadowing() -> str:
    """Which package of another program is found where one of ours must be, and what to do; empty when none is."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name in ("widgets", "harness"):
        spec = PathFinder.find_spec(name)
        found = [*spec.submodule_search_locations] if spec and spec.submodule_search_locations else []
        if [os.path.abspath(place) for place in found] != [os.path.join(ours, name)]:
            where = ascii(found[0]) if found else "nowhere"
            return (
                f"the package {name} is found at {where}, and not beside {os.path.join(ours, 'app')!a}: another program"
                " has a package of this name. Take it off PYTHONPATH, or install Watchfloor in an environment of its"
                " own (pipx install, uv tool install, or make install in its repository)."
            )
    return ""
