"""The fence's start-up self-test: run once in a process of its own, so that its weight is not ours."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys

import msgspec

from harness.events.replies import FenceTested
from harness.supervisor.processes.nursery_client import scrubbed

TIMEOUT = 120.0
_LEAVE = 3.0


class FenceReport:
    """``summary`` is empty until the test has run, then ``ok`` or the reason why tools refuse to run."""

    def __init__(self) -> None:
        self.summary = ""
        self._result: FenceTested | None = None
        self._done = asyncio.Event()

    async def run(self, limits: dict[str, int | None]) -> None:
        """Run the self-test under the limits of calls.

        Never raises: a test that cannot run is a fence that does not work.
        """
        try:
            self._result = await self._try(limits)
        except (OSError, ValueError, TimeoutError) as exc:
            self._result = FenceTested(ok=False, reason=f"the self-test could not run: {exc or type(exc).__name__}")
        self.summary = "ok" if self._result.ok else self._result.why
        self._done.set()

    @staticmethod
    async def _try(limits: dict[str, int | None]) -> FenceTested:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-s",
            "-m",
            "harness.hands.selftest",
            "--json",
            "--limits",
            json.dumps(limits),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=scrubbed(network=False),
            cwd="/",
        )
        try:
            out, _ = await asyncio.wait_for(process.communicate(), TIMEOUT)
        except BaseException:
            await _ended(process)
            raise
        return msgspec.json.decode(out, type=FenceTested)

    def warnings(self) -> list[str]:
        """One warning when tools refuse to run."""
        return [] if self.summary in ("", "ok") else [f"no working fence, tools refuse to run: {self.summary}"]

    async def result(self) -> FenceTested:
        """The whole result once the test has run (it takes a second or two), or what is known after a while."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._done.wait(), 10.0)
        return self._result or FenceTested(ok=False, reason="the self-test is still running")


async def _ended(process: asyncio.subprocess.Process) -> None:
    """End the self-test: it is given a moment to take away what it made."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _LEAVE)
        except TimeoutError:
            process.kill()
