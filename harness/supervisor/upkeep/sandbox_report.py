"""The sandbox's start-up self-test: run once in a process of its own, so that its weight is not ours."""

from __future__ import annotations

import asyncio
import contextlib
import json

import msgspec

from harness.domain.problems import HOLD_STRICTLY
from harness.supervisor.base.errors import OpError
from harness.supervisor.processes.programs import printed
from harness.views.replies import SandboxTested

TIMEOUT = 120.0
_LEAVE = 3.0


class SandboxReport:
    """``summary`` is empty until the test has run, then ``ok`` or the reason why tools refuse to run."""

    def __init__(self) -> None:
        self.summary = ""
        self._result: SandboxTested | None = None
        self._done = asyncio.Event()

    async def run(self, limits: dict[str, int | None]) -> None:
        """Run the self-test under the limits of calls.

        Never raises: a test that cannot run is a sandbox that does not work.
        """
        try:
            self._result = await self._try(limits)
        except (OSError, ValueError, TimeoutError) as exc:
            self._result = SandboxTested(ok=False, reason=f"the self-test could not run: {exc or type(exc).__name__}")
        self.summary = "ok" if self._result.ok else self._result.why
        self._done.set()

    @staticmethod
    async def _try(limits: dict[str, int | None]) -> SandboxTested:
        asked = json.dumps(limits)
        out = await printed("harness.executor.selftest", "--json", "--limits", asked, within_s=TIMEOUT, grace_s=_LEAVE)
        return msgspec.json.decode(out, type=SandboxTested)

    async def refuse(self, *, strict: bool) -> None:
        """Whatever may begin calls asks here first. Raises OpError ``limits_not_held`` where limits are to be held
        strictly and this machine cannot.
        """
        if strict and (why := (await self.result()).unheld):
            raise OpError(
                "limits_not_held", f"[limits] strict is true, and this machine cannot hold: {why}", HOLD_STRICTLY
            )

    def warnings(self) -> list[str]:
        """One warning when tools refuse to run."""
        return [] if self.summary in ("", "ok") else [f"no working sandbox, tools refuse to run: {self.summary}"]

    async def result(self) -> SandboxTested:
        """The whole result once the test has run (it takes a second or two), or what is known after a while."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(10.0):
                await self._done.wait()
        return self._result or SandboxTested(ok=False, reason="the self-test is still running")
