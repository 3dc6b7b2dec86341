"""The supervisor process: one per state folder, by lock and epoch."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import TypeVar

from harness.linux import kernel
from harness.linux.proc import identify
from harness.protocol import locks
from harness.protocol.paths import FolderError, Folders, resolve
from harness.supervisor import sign_of_life
from harness.supervisor.base.errors import out_of_space
from harness.supervisor.base.settings import Settings
from harness.supervisor.base.stderr import say_without_fail
from harness.supervisor.endpoints.credentials import Credentials
from harness.supervisor.guardian import EXIT_BROKEN, EXIT_REFUSED
from harness.supervisor.money.budget_service import BudgetService
from harness.supervisor.money.reservations import DurableLedger
from harness.supervisor.state_folder import Refused, prepare
from harness.supervisor.supervisor import Supervisor
from harness.supervisor.upkeep import epochs
from harness.workspace.git import processes

_PAUSE_FULL = 1.0
_LEAST_FILES = 128
"""Open files without which a sandbox cannot be built, however long one waits."""
_TAKEOVER_S = 5.0
"""Seconds that a new guardian may take to begin."""
T = TypeVar("T")


def _with_room(work: Callable[[], T], sign: int) -> T:
    """``work()``, again and again while the disk is full: a supervisor that left now would need somebody to start
    it. Its guardian is given a ``sign`` meanwhile.
    """
    said = False
    while True:
        try:
            return work()
        except OSError as exc:
            if not out_of_space(exc):
                raise
            if not said:
                print(
                    f"supervisor: no space left ({exc}); it starts as soon as there is room",
                    file=sys.stderr,
                    flush=True,
                )
                said = True
            sign_of_life.give(sign)
            time.sleep(_PAUSE_FULL)


def _new_guardian(credentials: int, folders: Folders) -> None:
    """Start a guardian that takes over the credentials' memory; our own lock is held until it has its, so that whoever
    asks for a stop meanwhile finds one of the two.
    """
    os.set_inheritable(credentials, True)
    os.posix_spawn(
        sys.executable,
        [sys.executable, "-P", "-s", "-m", "harness.supervisor.guardian", "--credentials-fd", str(credentials)],
        os.environ,
        setsid=True,
    )
    deadline = time.monotonic() + _TAKEOVER_S
    while not locks.held(folders.guardian_lock) and time.monotonic() < deadline:
        time.sleep(0.02)


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Watchfloor's supervisor; started by its guardian.")
    parser.add_argument("--credentials-fd", type=int, default=-1)
    parser.add_argument("--sign-fd", type=int, default=-1)
    arguments = parser.parse_args(argv)
    fd: int = arguments.credentials_fd
    sign: int = arguments.sign_fd
    os.umask(0o077)
    say_without_fail()
    guardian = identify(os.getppid()) if fd >= 0 else None
    for given in (fd, sign):
        if given >= 0:
            os.set_inheritable(given, False)
    kernel.hide_memory()
    if (files := kernel.raise_open_files()) < _LEAST_FILES:
        told = f"refused: only {files} files may be open here, and calls need {_LEAST_FILES}; raise that (ulimit -n)"
        print(told, file=sys.stderr, flush=True)
        return EXIT_REFUSED
    folders = resolve()
    try:
        lock = _with_room(lambda: prepare(folders), sign)
        epoch = _with_room(lambda: epochs.advance(folders), sign)
    except Refused as exc:
        print(f"refused: {exc}" if exc.code == EXIT_REFUSED else f"supervisor: {exc}", file=sys.stderr, flush=True)
        return exc.code
    except (OSError, FolderError, epochs.EpochUnknown) as exc:
        # that may end by itself, so the guardian tries again
        system = isinstance(exc.__cause__ if isinstance(exc, FolderError) else exc, OSError)
        print(f"{'cannot serve' if system else 'refused'}: {' '.join(str(exc).split())}", file=sys.stderr, flush=True)
        return EXIT_BROKEN if system else EXIT_REFUSED

    async def serve() -> tuple[int, bool]:
        signs = asyncio.create_task(sign_of_life.keep_giving(sign))
        settings = Settings(folders)
        settings.check()
        budget_service = BudgetService(lambda: DurableLedger.open(folders.ledger, lambda: settings.config.caps))
        await budget_service.open()
        supervisor = Supervisor(folders, epoch, Credentials(fd), settings, budget_service)
        try:
            return await supervisor.run(guardian, lock), supervisor.orphaned
        finally:
            processes.end_all()
            await budget_service.close()
            signs.cancel()

    try:
        code, orphaned = asyncio.run(serve())
    except Exception as exc:
        traceback.print_exc(file=sys.stderr)
        print(f"cannot serve: {type(exc).__name__}: {exc}", file=sys.stderr, flush=True)
        code = EXIT_BROKEN
        orphaned = False
    if orphaned and folders.state.is_dir():
        _new_guardian(fd, folders)
    return code


if __name__ == "__main__":
    ended = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # whatever thread still waits for something: a supervisor that does not serve must not stay, and holds the lock
    os._exit(ended)
