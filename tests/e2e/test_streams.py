"""Standard streams as people have them: another encoding, closed, full. No verb answers with a traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from app.cli.base import exits
from app.cli.grammar.registry import VERBS
from tests.fleetlib import COMMAND, Fleet, fleet, play, wait_for

GOAL = "Prüfe “alles” … नीति → 日本語 👍"
ENCODINGS = [
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "iso-8859-1"},
    {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
    {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
]
LOOKING = [
    ["ls"], ["show", "ID"], ["brief", "ID"], ["receipts", "ID"], ["logs", "ID"], ["cost"], ["score", "ID"],
    ["checkpoints", "ID"], ["approvals"], ["diff", "--stat", "ID"], ["plan", "ID"], ["roles"], ["jobs"], ["memory"],
    ["grants"], ["contract", "ID"], ["policy", "show"], ["keys"], ["undo", "ID", "--list"],
]  # fmt: skip


def raw_run(f: Fleet, *args: str, **env: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [COMMAND, *args], env=f.env | env, capture_output=True, stdin=subprocess.DEVNULL, timeout=90, check=False
    )


def test_every_verb_says_what_it_can_in_any_encoding() -> None:
    with fleet() as f:
        sid = f.launch(play([("write_file", {"path": "ü.txt", "content": GOAL, "why": GOAL})], GOAL), name=GOAL)
        f.wait_state(sid, "done")
        for env in ENCODINGS:
            for words in LOOKING:
                done = raw_run(f, *(sid if word == "ID" else word for word in words), **env)
                assert done.returncode < exits.DEFECT, (env, words, done.stderr)
                assert b"Traceback" not in done.stderr
                assert not any(0x7F <= byte < 0xA0 for byte in done.stdout) or "PYTHONIOENCODING" not in env
            for line in raw_run(f, "ls", "--json", **env).stdout.splitlines():
                assert json.loads(line)["name"] == GOAL


@pytest.mark.parametrize("verb", sorted({*VERBS} - {"demo", "attach"}))
def test_a_full_disk_behind_the_output_is_said(verb: str) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([COMMAND, verb, "--help"], stdout=full, stderr=subprocess.PIPE, timeout=60, check=False)
    assert done.returncode == exits.OUTPUT
    assert b"Traceback" not in done.stderr
    assert b"No space left" in done.stderr


@pytest.mark.parametrize("closed", [[0], [1], [2], [0, 1, 2]])
def test_closed_streams_are_no_defect(closed: list[int]) -> None:
    with fleet() as f:
        f.run("ls")
        shut = " ".join(f"{number}{'<' if number == 0 else '>'}&-" for number in closed)
        for words in ("ls", "brief", "ls --json", "cost", "keys"):
            done = subprocess.run(
                ["sh", "-c", f"{COMMAND} {words} {shut}"], env=f.env, capture_output=True, timeout=60, check=False
            )
            assert done.returncode == exits.OK, (words, done.stderr)
            assert b"Traceback" not in done.stderr


def test_an_interrupt_prints_no_traceback() -> None:
    """At whatever moment of its start, once our own code has begun."""
    with fleet() as f:
        f.run("ls")
        for instant in range(12):
            reader, writer = os.pipe()
            started = subprocess.Popen(
                [COMMAND, "logs", "nobody", "-f"], env=f.env, stdout=writer, stderr=subprocess.PIPE, pass_fds=[writer]
            )
            os.close(writer)
            wait_for("its start", _Start(started.pid))
            try:
                started.communicate(timeout=0.01 * instant)
            except subprocess.TimeoutExpired:
                started.send_signal(signal.SIGINT)
            _, said = started.communicate(timeout=60)
            os.close(reader)
            assert b"Traceback" not in said, said


class _Start:
    """Whether a program of Python has let go of the interpreter's own handler of interrupts, or has ended."""

    def __init__(self, pid: int) -> None:
        self._status = Path(f"/proc/{pid}/status")
        self._held = False

    def __call__(self) -> bool:
        status = dict(line.split(":\t", 1) for line in self._status.read_text().splitlines())
        handled = bool(int(status["SigCgt"], 16) & 1 << (signal.SIGINT - 1))
        self._held |= handled
        return (self._held and not handled) or status["State"].startswith("Z")
