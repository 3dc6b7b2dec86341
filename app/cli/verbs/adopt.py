"""The verb ``adopt``: take over a state folder that was copied, moved or put back."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys

from app.cli.base import exits
from app.cli.base.arguments import Refused
from app.cli.base.context import Context
from app.cli.base.output import emit, safe, say

_LONGEST_S = 600


def adopt(ctx: Context, args: argparse.Namespace) -> int:
    """``watchfloor adopt``. The work is done beside us, by the part of the harness that knows repositories."""
    folders = ctx.folders
    env = os.environ | {
        "WATCHFLOOR_STATE": str(folders.state),
        "WATCHFLOOR_RUNTIME": str(folders.runtime),
        "WATCHFLOOR_CONFIG": str(folders.config),
    }
    command = [sys.executable, "-P", "-s", "-m", "harness.supervisor.adopt"]
    done = subprocess.run(
        command, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_LONGEST_S, check=False
    )
    try:
        told = json.loads(done.stdout)
    except ValueError:
        raise Refused(f"adopting failed: {done.stderr.strip() or 'it said nothing'}") from None
    if "refused" in told:
        raise Refused(str(told["refused"]))
    if args.json:
        emit(told)
        return exits.OK
    if told["from"]:
        say(
            f"adopted; it came from {safe(str(told['from']))}. What an original did after it was copied is not known"
            " here and may be done again"
        )
    else:
        say("adopted")
    for session in told["sessions"]:
        what = "ended" if session["ended"] else "goes on"
        if not session["driven"]:
            what = "only to be looked at: " + safe(str(session["why"]))
        say(f"  {session['sid']}  {safe(str(session['name']), 24):<24}  {what}")
    return exits.OK
