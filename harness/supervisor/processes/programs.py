"""A program of ours that is run once for what it prints."""

from __future__ import annotations

import asyncio
import contextlib
import sys

from harness.supervisor.processes.fork_server_client import scrubbed


async def printed(module: str, *arguments: str, within_s: float, grace_s: float = 1.0) -> bytes:
    """What ``python -m module`` prints, in an environment that holds no key.

    One that takes longer, or that nobody waits for any more, is asked to end, and killed ``grace_s`` later. Raises
    OSError, ValueError (a name that no program can be given), TimeoutError.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",
        "-s",
        "-m",
        module,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=scrubbed(network=False),
        cwd="/",
    )
    try:
        async with asyncio.timeout(within_s):
            out, _ = await process.communicate()
    except BaseException:
        await _ended(process, grace_s)
        raise
    return out


async def _ended(process: asyncio.subprocess.Process, grace_s: float) -> None:
    """End it: it is given a moment to take away what it made."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
        try:
            async with asyncio.timeout(grace_s):
                await process.wait()
        except TimeoutError:
            process.kill()
