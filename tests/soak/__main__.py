"""``make soak``: sessions at work while everything around them fails; then what must be true, one table, exit code 1
when anything is not.
"""

from __future__ import annotations

import argparse
import secrets
import signal
import sys
import time
from collections.abc import Callable

from harness.protocol.client import SupervisorError, Unreachable
from harness.supervisor.upkeep import invariants
from tests.soak.checks import Evidence, judge, tally
from tests.soak.evidence import damage, gather, leftovers
from tests.soak.scenarios.worker import FINISH
from tests.soak.troubles import TROUBLES, begin
from tests.soak.world import World, command, world

SESSIONS = 8
TURNS = (10, 40)
PATIENCE_S = 180.0
"""How long everything may take, once the trouble is over, to end or to ask: the longest pause of the fleet's gate, and
the work that is left.
"""
_OVER = ("done", "stopped", "failed")


def crowd(
    w: World, many: int, until: float, show: Callable[[World], None], enough: Callable[[], bool] = lambda: False
) -> None:
    """Keep so many sessions at work until then, or until it is enough; one that has ended is followed by a new one."""
    dice = w.dice("sessions")
    while (now := time.monotonic()) < until and not enough():
        rows = w.rows()
        at_work = sum(row["state"] not in _OVER and not row["name"].startswith("raced") for row in rows)
        for _ in range(many - at_work if rows or not w.sids() else 0):
            w.launch("work", dice.randrange(*TURNS))
        show(w)
        w.over.wait(min(1.0, until - now))


def calm(w: World) -> None:
    """The trouble is over: everything has to end, or to ask, in bounded time."""
    (w.notes / FINISH).touch()
    deadline = time.monotonic() + PATIENCE_S
    open_rows: list[dict[str, object]] = []
    while time.monotonic() < deadline:
        rows = w.rows()
        for row in rows:
            if row.get("desired") == "paused" and row["state"] not in _OVER:
                w.desire(str(row["sid"]), "running")
        open_rows = [
            row for row in rows if not row.get("approvals") and not (row["state"] in _OVER and w.ended(str(row["sid"])))
        ]
        if rows and {row["sid"] for row in rows} >= set(w.sids()) and not open_rows:
            return
        time.sleep(0.5)
    w.say(f"after {PATIENCE_S:.0f} s: {len(open_rows)} sessions neither ended nor asked")


def close(w: World, e: Evidence) -> None:
    """Stop the fleet, and see what is left of it."""
    deadline = time.monotonic() + 60
    why = ""
    while time.monotonic() < deadline:
        done = command(w, "supervisor", "stop", "--sessions", "stop")
        why = done.stderr.strip() or done.stdout.strip()
        if done.returncode == 0:
            break
    else:
        e.broken.append(f"the fleet could not be stopped: {why}")
    while (left := leftovers(w)) and time.monotonic() < deadline:
        time.sleep(0.2)
    e.leftovers = left
    e.invariants += [f"after the stop: {v.id} {v.sid} {v.text}" for v in invariants.check(w.fleet.folders, live=False)]
    e.damage += damage(w)


def settled(w: World) -> Evidence:
    """The evidence, once what a leaving keeper or brain still does is done."""
    deadline = time.monotonic() + 30
    while True:
        e = gather(w)
        if time.monotonic() > deadline or not any(v.kind in ("alive", "orphaned", "invariant") for v in judge(e)):
            return e
        time.sleep(0.5)


def soak(w: World, minutes: float, only: list[str], many: int) -> Evidence:
    """One run."""
    told = time.monotonic()

    def show(w: World) -> None:
        nonlocal told
        if time.monotonic() - told > 20:
            told = time.monotonic()
            w.say(f"{dict(sorted(w.counts.items()))}")

    ready = time.monotonic() + PATIENCE_S
    crowd(w, many, ready, show, lambda: len([notes for notes in w.notes.iterdir() if notes.stat().st_size]) >= many)
    if time.monotonic() > ready:
        w.broken.append("the sessions did not begin to work")
    threads = [begin(w, name) for name in only]
    crowd(w, many, time.monotonic() + minutes * 60, show)
    w.over.set()
    for thread in threads:
        thread.join(60)
        if thread.is_alive():
            w.broken.append(f"{thread.name} does not come to an end")
    calm(w)
    e = settled(w)
    close(w, e)
    return e


def table(w: World, e: Evidence, minutes: float, only: list[str]) -> str:
    """What was done to the fleet, and what came of it."""
    rows = {"trouble": f"{', '.join(only) or 'none'}, {minutes:g} minutes"}
    rows |= {what: str(n) for what, n in sorted(w.counts.items())}
    rows |= {f"{what}, seconds": f"{n:.1f}" for what, n in sorted(w.seconds.items())}
    rows |= tally(e)
    width = max(map(len, rows))
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in rows.items())


def main() -> int:
    """Exit codes: 0 everything is as it must be, 1 something is not."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 32))
    parser.add_argument(
        "--only", default=",".join(TROUBLES), help=f"some of {','.join(TROUBLES)}, or nothing for a fleet at peace"
    )
    parser.add_argument("--sessions", type=int, default=SESSIONS)
    given = parser.parse_args()
    only = [name for name in given.only.split(",") if name]
    if unknown := sorted(set(only) - TROUBLES.keys()):
        parser.error(f"--only: there is no {unknown[0]}; known: {', '.join(TROUBLES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"seed {given.seed}", flush=True)
    with world(given.seed, disk="disk" in only) as w:
        try:
            e = soak(w, given.minutes, only, given.sessions)
        except (SupervisorError, Unreachable) as exc:
            e = Evidence(broken=[*w.broken, f"the run broke off: {exc}"])
        bad = judge(e)
        print(f"\n{table(w, e, given.minutes, only)}")
        if bad:
            print("\n" + "\n".join(map(str, bad)))
            print(f"\nthe supervisor's last words:\n{w.fleet.supervisor_log()}")
    print(
        f"\nseed {given.seed}:"
        f" {'everything is as it must be' if not bad else f'{len(bad)} things are not as they must be'}"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
