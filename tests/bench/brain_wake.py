"""What a long log costs its brain when nothing of it was remembered: folding it whole, and building one request."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from harness.agents.journal import Journal
from harness.brain.conversation import Conversation, Talk
from harness.brain.view import View
from harness.eventlog.writer import LogWriter
from harness.events import message_parts
from harness.events import types as t
from tests.bench.table import Figure, bench

EVENTS = 60_000
ROUNDS = 5
SID = "abcdefghij"
MODEL = "claude-haiku-5-5"
GOAL = "Make the checks pass"
OUTPUT = "\n".join(f"src/module_{i:03d}.py: ok" for i in range(60))
ENV = {f"NAME_{i}": "/a/path/of/some/length:/and/another" for i in range(16)}


def turn(seq: int, number: int) -> list[t.Body]:
    """The records of one turn with one shell call; ``seq`` is that of its first."""
    call = f"c{seq + 1}.0"
    asked = {"script": f"make check && echo {number}"}
    action = {"v": 1, "session": SID, "call": call, "tool": "shell", "kind": "shell", "cwd": "/wt", "env": ENV}
    usage = t.Usage(input=40, output=120, cache_read=min(90_000, 2000 + number * 700))
    parts: list[message_parts.Part] = [
        message_parts.Text(f"Step {number}."),
        message_parts.Call(f"toolu_{number:024d}", "shell", asked),
    ]
    return [
        t.ModelRequest(
            request_id=f"r{seq}.1",
            attempt=1,
            model=MODEL,
            reservation=f"r{number:016d}",
            reserved_nano=4_000_000,
            est_input=90_000,
            max_tokens=8192,
            upto_seq=seq - 1,
        ),
        t.ModelMessage(
            request_id=f"r{seq}.1",
            message_id=f"msg_{number:024d}",
            model=MODEL,
            stop=message_parts.CALLS,
            usage=usage,
            cost_nano=40_000,
            parts=parts,
        ),
        t.ToolProposed(call_id=call, tool="shell", ref=f"toolu_{number:024d}", input=asked),
        t.ToolJudged(
            call_id=call,
            action_hash="0" * 64,
            verdict="allow",
            rule="inside-the-sandbox",
            reason="contained",
            policy="1" * 64,
            action=action,
        ),
        t.ToolStarted(
            call_id=call, action_hash="0" * 64, effect="contained", worked=1, snapshot=f"s{number}.{'0' * 32}"
        ),
        t.ToolEnded(call_id=call, status="ok", preview=OUTPUT, ms=40, exit_code=0),
    ]


def written(folder: Path) -> None:
    """A session of that many events, made by the real writer."""
    log = LogWriter.open(folder / "log", SID)
    bodies: list[t.Body] = [
        t.SessionIntent(name="n", goal=GOAL, repo="/r", branch="b", worktree="/wt", model=MODEL),
        t.SessionCreated(base="0" * 40, worktree="/wt", branch="b"),
        t.UserMessage(text=GOAL, origin="goal"),
    ]
    number = 0
    while log.head + 1 < EVENTS:
        for body in bodies:
            wire = t.to_wire(body)
            log.append(wire["type"], wire["data"], actor="test")
        log.commit(sync=False)
        number += 1
        bodies = turn(log.head + 1, number)
    log.close()


def awake(folder: Path) -> tuple[View, Talk]:
    """The view and the conversation of the built-in agent, from its log as it takes it in."""
    journal = Journal(folder)
    view = View(state=journal.state)
    talk = Talk()

    def feed(record: t.Record) -> None:
        view.take(record, journal.read_blob)
        if isinstance(record.body, t.ModelMessage):
            talk.take(view)
            view.forget()

    journal.on_record = feed
    journal.load()
    return view, talk


@bench("wake_whole")
def wake() -> list[Figure]:
    woken = []
    built = []
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as root:
        folder = Path(root)
        written(folder)
        conversation: Conversation
        for _ in range(ROUNDS):
            begun = time.process_time()
            view, talk = awake(folder)
            woken.append(time.process_time() - begun)
            begun = time.process_time()
            conversation = talk.build(view)
            built.append((time.process_time() - begun) * 1e3)
    size = f"{len(conversation.encoded) / 1e6:.1f} MB"
    return [
        Figure(
            f"a brain takes in {EVENTS:,} events read whole (processor time)",
            "s",
            woken,
            "–",
            None,
        ),
        Figure(f"it builds one request there, {size}", "ms", built, "≤ 50 ms", statistics.median(built) <= 50),
    ]
