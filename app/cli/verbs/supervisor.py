"""The verb ``supervisor``: start it, look at it, stop it, and say by name what a stop left behind."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import time
from pathlib import Path

import msgspec

from app.cli.base import exits
from app.cli.base.context import Context, endpoints, money
from app.cli.base.output import emit, safe, say, warn
from app.client.replies import ask, read
from harness.linux.proc import Identity, alive, command, identify
from harness.protocol import locks, stop_mark
from harness.protocol.client import Client, Mute, OtherFleet, Unreachable
from harness.views.replies import Halted, Hello, Sessions

STOP_S = 240.0
"""Longest wait for the answer to a stop; the supervisor gives every session its time to end in order."""
_GONE_S = 15.0


def supervisor(ctx: Context, args: argparse.Namespace) -> int:
    """``supervisor start|stop|status``."""
    if args.what == "start":
        with ctx.connect(meant=True) as client:
            return _running(args, client)
    if args.what == "stop":
        return _stop(ctx, args)
    try:
        with ctx.reach() as client:
            return _running(args, client)
    except (Mute, OtherFleet):
        raise
    except Unreachable:
        _tell(args, {"running": False}, "not running")
        return exits.NO


def _running(args: argparse.Namespace, client: Client) -> int:
    epoch = client.hello.get("epoch")
    pid = client.hello.get("pid")
    fleet = ask(client, Sessions, "sessions").fleet
    _tell(
        args,
        {"running": True, "epoch": epoch, "pid": pid, "endpoints": msgspec.to_builtins(fleet.endpoints)},
        f"running, epoch {epoch}, pid {pid}",
    )
    for line in [] if args.json else [money(fleet), *endpoints(fleet)]:
        say(line)
    return exits.OK


def _stop(ctx: Context, args: argparse.Namespace) -> int:
    try:
        client = ctx.reach()
    except (Mute, OtherFleet):
        raise
    except Unreachable as exc:
        if locks.held(ctx.folders.supervisor_lock):
            raise Unreachable(
                f"a supervisor holds {ctx.folders.supervisor_lock} and does not answer; nothing was stopped ({exc})"
            ) from exc
        with contextlib.suppress(OSError):  # who asked has it stopped all the same, on a full disk too
            stop_mark.write(ctx.folders.runtime)
        ended = _end_guardian(ctx.folders.guardian_lock)
        if args.sessions == "leave" or not locks.kept(ctx.folders):
            _tell(args, {"running": False}, "stopped before it came up" if ended else "not running")
            return exits.OK
        client = ctx.connect(
            meant=True
        )  # keepers live on without a supervisor, and only a supervisor ends them in good order
    with client:
        epoch = client.hello.get("epoch")
        pid = read(Hello, "hello", client.hello).pid
        began = identify(pid)
        guardian = identify(locks.holder(ctx.folders.guardian_lock))
        client.wait_up_to(STOP_S)
        left = ask(client, Halted, "shutdown", sessions=args.sessions).unrecorded
    problems = list(left)
    if not _gone(began):
        problems.append(f"the supervisor (process {pid}) has not ended")
    elif guardian is not None and not _gone(guardian):  # who looked meanwhile would find a fleet that lives
        problems.append(f"its guardian (process {guardian.pid}) has not ended")
    if args.sessions == "stop" and (alive_still := locks.kept(ctx.folders)):
        problems.append(f"keepers still live: {', '.join(alive_still)}")
    _tell(
        args, {"running": False, "epoch": epoch, "pid": pid, "problems": problems}, f"stopped, epoch {epoch}, pid {pid}"
    )
    for problem in problems:
        warn(f"watchfloor: {safe(problem)}")
    return exits.NO if problems else exits.OK


def _end_guardian(lock: Path) -> bool:
    """End a guardian that has no supervisor: one that cannot start is started again and again, in the surroundings of
    whoever began it, and nobody else can start another. True when there was one.
    """
    pid = locks.holder(lock)
    if b"harness.supervisor.guardian" not in command(pid):
        return False
    began = identify(pid)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
    if not _gone(began):
        raise Unreachable(f"the supervisor's guardian (process {pid}) does not end; nothing was stopped")
    return True


def _gone(who: Identity | None) -> bool:
    """Wait until the process has ended that answered us."""
    deadline = time.monotonic() + _GONE_S
    while who is not None and alive(who):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _tell(args: argparse.Namespace, value: dict[str, object], text: str) -> None:
    if args.json:
        emit(value)
    else:
        say(text)
