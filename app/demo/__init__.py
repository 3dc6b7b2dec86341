"""``watchfloor demo``: four agents on a real repository against the simulator, on a screen or headless.

The demo is a fleet of its own in a fresh folder; nothing of the user's fleet, configuration or key is touched.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

from app.cli.base import exits
from app.cli.base.context import Context
from app.cli.base.output import say, warn
from app.demo import fleet, headless, long
from app.demo.fleet import DemoError
from app.terminal import check
from harness.protocol import paths
from harness.protocol.client import alive

BACK = "come back: watchfloor demo --attach · end it: watchfloor demo --stop"


def run(_ctx: Context, args: argparse.Namespace) -> int:
    """``args``: headless, attach, stop, keep, speed. Exit codes as in `app.cli.base.exits`."""
    base = fleet.base(paths.resolve())
    try:
        if args.stop:
            return _stop(args.keep, fleet.found(base))
        why = check.lacking()
        if why and not args.headless:
            if args.attach or check.there():
                warn(f"watchfloor demo: {why}, so no screen can be shown; without one use: watchfloor demo --headless")
                return exits.USAGE
            warn("watchfloor demo: no terminal here, so it plays by itself and says what became of it")
        if why or args.headless:
            play = long.play if args.long else headless.play
            return play(fleet.fresh(base), speed=args.speed or 0.0, keep=args.keep)
        if args.attach:
            running = [d for d in fleet.found(base) if alive(d.folders)]
            if not running:
                warn("watchfloor demo: no demo is running; start one: watchfloor demo")
                return exits.NOT_FOUND
            return _screen(running[-1])
        if args.long:
            return _start_long(fleet.fresh(base), 0.3 if args.speed is None else args.speed)
        return _start(fleet.fresh(base), 1.0 if args.speed is None else args.speed)
    except DemoError as exc:
        warn(f"watchfloor demo: {exc}")
        return exits.NO


def _said(demo: fleet.Demo) -> None:
    say(f"a fleet of its own in {demo.root}")
    say(f"for the command line: export WATCHFLOOR_STATE={demo.folders.state} WATCHFLOOR_CONFIG={demo.folders.config}")


def _start_long(demo: fleet.Demo, speed: float) -> int:
    _said(demo)
    try:
        long.prepare(demo, speed)
    except DemoError:
        demo.stop()
        raise
    return _screen(demo)


def _start(demo: fleet.Demo, speed: float) -> int:
    _said(demo)
    demo.build()
    demo.start_simulator(speed)
    try:
        for part in fleet.PARTS:
            demo.launch(part)
    except DemoError:
        demo.stop()
        raise
    return _screen(demo)


def _screen(demo: fleet.Demo) -> int:
    from app.shell import tui

    code = tui.run(demo.folders)
    if alive(demo.folders):
        say(f"the agents go on in {demo.root}\n{BACK}")
        if shutil.which("watchfloor") is None:
            say(f"so that your shell finds it: export PATH={Path(sys.executable).parent}:$PATH")
    return code


def _stop(keep: bool, demos: list[fleet.Demo]) -> int:
    if not demos:
        say("no demo is there")
    for demo in demos:
        left = demo.stop()
        if left:
            raise DemoError(
                f"{demo.root} is stopped and still in use by {fleet.named(left)}: leave an open screen with q, then"
                " stop it again"
            )
        if not keep:
            shutil.rmtree(demo.root)
        say(f"stopped {demo.root}" + (" (kept)" if keep else ""))
    return exits.OK
