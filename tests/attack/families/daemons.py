"""Outliving the call: by every way of getting away from one's parent, whatever way the call ends."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator

from tests.attack.ground import Ground
from tests.attack.model import Attempt, Escape, Outside
from tests.process.keeperlib import wait_gone, wait_until

IGNORE = (
    "import os, signal, sys, time\nfor n in range(1, 65):\n    if n not in (9, 19, 32, 33): signal.signal(n,"
    " signal.SIG_IGN)\n"
)
STAY = "\nopen('ready', 'w').close()\nwhile True: time.sleep(1)\n"
AWAY = {
    "two forks": (
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:"
        + STAY.replace("\n", "\n        ")
        + "\n    os._exit(0)"
    ),
    "a new group": "if os.fork() == 0:\n    os.setpgid(0, 0)" + STAY.replace("\n", "\n    "),
    "a subreaper": (
        "import ctypes\nctypes.CDLL(None).prctl(36, 1, 0, 0, 0)\nif os.fork() == 0:\n    if os.fork() == 0:"
        + STAY.replace("\n", "\n        ")
    ),
    "without a death signal": (
        "import ctypes\nif os.fork() == 0:\n    ctypes.CDLL(None).prctl(1, 0, 0, 0, 0); os.setsid()"
        + STAY.replace("\n", "\n    ")
    ),
    "stopped children": (
        "if os.fork() == 0:\n    open('ready', 'w').close()\n    os.kill(os.getpid(), 19)\n    time.sleep(600)"
    ),
    "a chain of forks": (
        "if os.fork() == 0:\n    open('ready', 'w').close()\n    for i in range(10 ** 6):\n        time.sleep(0.001)\n "
        "       if os.fork(): os._exit(0)"
    ),
    "many": "for i in range(60):\n    if os.fork() == 0:\n        os.setsid()" + STAY.replace("\n", "\n        "),
    "holding the output": (
        "if os.fork() == 0:\n    os.setsid()\n    for d in range(40): os.dup(1)" + STAY.replace("\n", "\n    ")
    ),
    "another program": (
        "import subprocess\nsubprocess.Popen(['setsid', 'nohup', 'bash', '-c', 'trap \"\" TERM HUP INT; touch ready;"
        " while :; do sleep 1; done'])"
    ),
    "a thread": (
        "import threading\nthreading.Thread(target=lambda: time.sleep(600)).start()\nopen('ready', 'w').close()"
    ),
}
ENDS = ("by itself", "cancel", "the keeper killed", "a limit")
WAIT = "\nwhile not os.path.exists('ready'): time.sleep(0.01)\n"


def _daemon(away: str, end: str) -> Outside:
    def attempt(ground: Ground) -> None:
        root = ground.tree.root
        (root / "ready").unlink(missing_ok=True)
        stays = "" if end == "by itself" and away != "a thread" else "time.sleep(600)\n"
        (root / "away.py").write_text(f"{IGNORE}{AWAY[away]}{WAIT}{stays}")
        if end == "by itself" and away == "a thread":
            (root / "away.py").write_text(f"{IGNORE}{AWAY[away]}{WAIT}os._exit(0)\n")
        given = {"argv": ["python3", "away.py"], **({"timeout_s": 2} if end == "a limit" else {"timeout_s": 60})}
        call = ground.allow(ground.action("exec", given))
        ground.link.call("execute", call_id=call)
        if end == "the keeper killed":
            wait_until("the daemon runs", (root / "ready").exists)
            keeper = ground.keeper
            os.kill(keeper, signal.SIGKILL)
            wait_gone(keeper)
            ground.revive()
        elif end == "cancel":
            wait_until("the daemon runs", (root / "ready").exists)
            ground.link.call("cancel", call_id=call)
            ground.ended(call)
        else:
            ground.ended(call)
        if found := ground.watch.left(ground.keeper):
            raise Escape(f"{found[0]} ({away}, ended {end})")

    return Outside(f"{away}, ended: {end}", attempt)


def attempts(ground: Ground, dice: random.Random | None) -> Iterator[Attempt]:
    if dice is None:
        for number, away in enumerate(AWAY):
            yield _daemon(away, ENDS[number % 3])
        yield _daemon("two forks", "a limit")
        return
    yield _daemon(dice.choice(sorted(AWAY)), dice.choice(ENDS))
