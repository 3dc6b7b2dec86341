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
    if told["kind"] and told["kind"] != "moved":
        say(
            f"adopted; what the original ({safe(str(told['from']))}) did after the copy was made is not known here and"
            " may be done again"
        )
    else:
        say(
            "adopted"
            + (f"; it came from {safe(str(told['from']))}" if told["from"] else "; the folder was this fleet's already")
        )
    for session in told["sessions"]:
        what = "ended" if session["ended"] else "goes on"
        if not session["driven"]:
            what = "only to be looked at: " + safe(str(session["why"]))
        say(f"  {session['sid']}  {safe(str(session['name']), 24):<24}  {what}")
    return exits.OK
