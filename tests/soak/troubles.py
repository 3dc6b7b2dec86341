"""The kinds of trouble.

Each runs in a thread of its own until the world says that it is over, with dice of its own seed.
"""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
import traceback
from collections.abc import Callable

from harness.linux.proc import Identity
from tests.soak.world import KINDS, World, command, send

Trouble = Callable[[World, random.Random], None]


def kills(w: World, dice: random.Random) -> None:
    """``kill -9`` of every kind of process, one about every second; each kind as often as the others."""
    order: list[str] = []
    while not w.over.wait(dice.uniform(0.3, 1.8)):
        order = order or dice.sample(KINDS, len(KINDS))
        kind = order.pop()
        group = _present(w, kind)
        if group and send(dice.choice(group), signal.SIGKILL):
            w.count(f"killed: {kind}")
        else:
            w.count("kills that found nobody")


def _present(w: World, kind: str) -> list[Identity]:
    """Who there is of a kind; those that come and go are watched for during a moment."""
    end = time.monotonic() + 2.0
    while not (group := w.census()[kind]) and time.monotonic() < end and not w.over.wait(0.05):
        pass
    return group


def freezes(w: World, dice: random.Random) -> None:
    """SIGSTOP of one process of some kind, and SIGCONT a while later."""
    while not w.over.wait(dice.uniform(0.5, 4.0)):
        kind = dice.choice(KINDS)
        if not (group := _present(w, kind)):
            continue
        who = dice.choice(group)
        begun = time.monotonic()
        try:
            if send(who, signal.SIGSTOP):
                w.count(f"frozen: {kind}")
                w.over.wait(dice.choice((0.2, 1.0, 3.0, 6.0)))
        finally:
            send(who, signal.SIGCONT)
        w.lasted("frozen", time.monotonic() - begun)


def standstills(w: World, dice: random.Random) -> None:
    """Once a minute a process that a session cannot do without is stopped for so long that somebody has to notice."""
    while not w.over.wait(dice.uniform(1.0, 8.0)):
        kind = dice.choice(("keeper", "brain", "vault or monitor"))
        if not (group := _present(w, kind)):
            continue
        who = dice.choice(group)
        begun = time.monotonic()
        seconds = dice.uniform(30.0, 60.0)
        try:
            if send(who, signal.SIGSTOP):
                w.count(f"stood still: {kind}")
                w.over.wait(seconds)
        finally:
            send(who, signal.SIGCONT)
        w.lasted("standing still", time.monotonic() - begun)
        w.over.wait(max(0.0, 56.0 - seconds))


def pauses(w: World, dice: random.Random) -> None:
    """Pause a session, and resume it a while later until that is acknowledged."""
    while not w.over.wait(dice.uniform(0.5, 3.0)):
        chosen = [
            row["sid"] for row in w.rows() if row["state"] not in ("done", "stopped") and row["sid"] not in w.busy
        ]
        if not chosen:
            continue
        sid = dice.choice(chosen)
        if w.desire(sid, "paused") == "":
            w.count("pauses")
        w.over.wait(dice.choice((0.0, 0.3, 1.0, 4.0)))
        while w.desire(sid, "running") not in ("", "ended", "not_found") and not w.over.wait(0.2):
            pass


def leaves(w: World, dice: random.Random) -> None:
    """The supervisor is told to leave its sessions alone and go, and is started again a while later."""
    while not w.over.wait(dice.uniform(6.0, 15.0)):
        done = command(w, "supervisor", "stop", "--sessions", "leave")
        w.count("orderly leaves" if done.returncode == 0 else "orderly leaves refused")
        w.over.wait(dice.choice((0.0, 0.5, 3.0)))
        command(w, "supervisor", "start")


def endpoint(w: World, dice: random.Random) -> None:
    """The endpoint flaps: it refuses connections, answers 529 or 429, cuts streams, sends nothing but pings."""
    try:
        while not w.over.wait(dice.uniform(1.0, 6.0)):
            kind = dice.choice(("refuse", "529", "429", "cut", "pings", "server"))
            seconds = dice.choice((0.5, 2.0, 5.0, 12.0))
            many = 1_000_000
            faults = {
                "529": {"kind": "overloaded", "times": many},
                "429": {"kind": "rate_limit", "retry_after": dice.choice((0, 1, 3)), "times": many},
                "server": {"kind": "server", "times": many},
                "cut": {"kind": "cut", "after_bytes": dice.randrange(2000), "times": many},
                "pings": {
                    "kind": "pings",
                    "every": 0.5,
                    "seconds": seconds,
                    "after_bytes": dice.choice((0, 600)),
                    "times": dice.randrange(1, 9),
                },
            }
            begun = time.monotonic()
            if kind == "refuse":
                _insist(w, "refuse", {"seconds": seconds})
            else:
                _insist(w, "faults", faults[kind])
            w.over.wait(seconds)
            _insist(w, "faults", method="DELETE")
            w.lasted(f"endpoint: {kind}", time.monotonic() - begun)
    finally:
        _insist(w, "faults", method="DELETE")


def _insist(w: World, path: str, body: object | None = None, method: str = "") -> None:
    """Ask the simulator until it answers: a shut door opens by itself.

    Raises OSError when it does not within a minute.
    """
    end = time.monotonic() + 60
    while True:
        try:
            w.control(path, body, method)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)
        else:
            return


def disk(w: World, dice: random.Random) -> None:
    """A file takes all the room there is, and goes again."""
    if w.own_disk:
        w.say(f"skipped: disk: {w.own_disk}")
        return
    ballast = w.fleet.folders.state / "ballast"
    block = bytes(1 << 20)
    while not w.over.wait(dice.uniform(4.0, 12.0)):
        begun = time.monotonic()
        end = begun + dice.choice((0.5, 2.0, 4.0))
        try:
            with ballast.open("ab", buffering=0) as f:
                size = len(block)
                while size >= 1:
                    try:
                        f.write(block[:size])
                    except OSError:
                        size //= 16
                while time.monotonic() < end and not w.over.wait(0.05):
                    try:
                        f.write(block[:4096])  # what is freed meanwhile is taken too
                    except OSError:
                        continue
        finally:
            ballast.unlink(missing_ok=True)
        w.count("disk filled")
        w.lasted("disk full", time.monotonic() - begun)


def races(w: World, dice: random.Random) -> None:
    """Sessions of their own: pause, resume and stop are asked for at the same moment."""
    while not w.over.wait(dice.uniform(1.0, 4.0)):
        sid = w.launch("raced", 1000)
        if not sid:
            continue
        w.busy.add(sid)
        w.over.wait(dice.choice((0.0, 0.5, 2.0, 4.0)))
        wanted = [
            *dice.sample(("paused", "running", "running", "paused"), dice.randrange(2, 5)),
            *(("stopped",) if dice.random() < 0.8 else ()),
        ]
        dice.shuffle(wanted)
        told: list[str] = []
        line = threading.Barrier(len(wanted))

        def ask(sid: str, state: str, line: threading.Barrier = line, told: list[str] = told) -> None:
            line.wait()
            told.append(w.desire(sid, state))

        threads = [threading.Thread(target=ask, args=(sid, state)) for state in wanted]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        w.count("races")
        w.count("races with an acknowledged stop", sid in w.stops)
        w.busy.discard(sid)
        if "stopped" not in wanted and dice.random() < 0.7:
            w.desire(sid, "stopped")


TROUBLES: dict[str, Trouble] = {
    "kills": kills,
    "freezes": freezes,
    "standstills": standstills,
    "pauses": pauses,
    "leaves": leaves,
    "endpoint": endpoint,
    "disk": disk,
    "races": races,
}


def begin(w: World, name: str) -> threading.Thread:
    """Start one trouble. What it meets that it does not expect is told as a break-off."""

    def run() -> None:
        try:
            TROUBLES[name](w, w.dice(name))
        except (Exception, subprocess.TimeoutExpired):
            w.broken.append(f"{name} broke off: {traceback.format_exc(limit=4)}")

    thread = threading.Thread(target=run, name=name)
    thread.start()
    return thread
