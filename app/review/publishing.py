"""Asking for the push of a session's work and its request for review: the verb of the command line does it, in a
process of its own with the person's own environment, so that there is one way to it.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
from collections.abc import Mapping

from app.review import forge
from harness.protocol.paths import Folders

COMMAND = (sys.executable, "-P", "-s", "-m", "app.main", "pr")
PREVIEW = "--dry-run"
"""Shows what would be pushed and opened; nothing is sent."""


def missing(env: Mapping[str, str]) -> str:
    """Why no request can be opened in this environment; empty when one of the programs is there."""
    if forge.present(env):
        return ""
    return f"neither {forge.GH} nor {forge.GLAB} is in PATH; watchfloor pr --push-only ID pushes alone"


def options(given: Mapping[str, str], flags: Mapping[str, bool]) -> list[str]:
    """Options of the verb by their names, those without a value left out; a value is never read as an option."""
    return [f"--{name}={value}" for name, value in given.items() if value] + [
        f"--{name}" for name, wanted in flags.items() if wanted
    ]


def named(preview: str) -> str:
    """A preview as one hash, by which the verb knows that it still sends what a person read."""
    return hashlib.sha256(preview.strip().encode()).hexdigest()


async def run(folders: Folders, sid: str, *more: str) -> tuple[bool, str]:
    """(whether it was done, what it said, still untrusted); of what was done only its result."""
    own = {
        "WATCHFLOOR_STATE": str(folders.state),
        "WATCHFLOOR_RUNTIME": str(folders.runtime),
        "WATCHFLOOR_CONFIG": str(folders.config),
        "PYTHONIOENCODING": "utf-8",
    }
    try:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            *more,
            "--",
            sid,
            env=os.environ | own,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, problems = await process.communicate()
    except OSError as exc:
        return False, f"the process that pushes cannot be started: {exc.strerror or exc}"
    done = process.returncode == 0
    said = (out if done else out + problems).decode("utf-8", "replace").strip()
    return done, said.removeprefix("watchfloor: ")
