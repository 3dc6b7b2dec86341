"""What one step of a session takes on disk, early and after a thousand, beside LangGraph's own checkpoints in SQLite of
the same messages.

A step is one reply with one call and its result. Ours is all that the state folder gains but for the worktree: log,
contents, states to undo to, ledger, index. The yardstick keeps one checkpoint a step (a graph of model and tools makes
two), its messages with the results as shortened for the model and not as they came.
"""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from harness.events import types as t
from harness.events.message_parts import Call, Text
from tests.bench.table import Figure, bench
from tests.fleetlib import Fleet, fleet, wait_for

NEEDS = "langgraph.checkpoint.sqlite"
MISSING = "steps: left out, since langgraph-checkpoint-sqlite is not installed; pip install -e '.[bench]'"
WINDOWS = {10: (5, 25), 1000: (950, 1050)}
"""Of each step that is asked about: between which two it is measured. Multiples of the script's five turns."""
FLAT = 1.2
MOST = 0.05
PATIENCE_S = 900


def on_disk(f: Fleet) -> int:
    """Bytes of blocks of everything in the state folder but the worktrees."""
    total = 0
    for folder, names, files in os.walk(f.folders.state):
        if Path(folder) == f.folders.state and "worktrees" in names:
            names.remove("worktrees")
        for name in files:
            with suppress(FileNotFoundError):
                total += os.lstat(Path(folder, name)).st_blocks * 512
    return total


def messages(f: Fleet, sid: str, goal: str) -> Iterator[list[Any]]:
    """What each step of the session adds to its conversation, as LangChain's messages."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    refs: dict[str, str] = {}
    added: list[Any] = [HumanMessage(goal, id="goal")]
    for record in f.records(sid):
        body = record.body
        if isinstance(body, t.ModelMessage):
            said = body.parts or []
            assert said, "no reply of this script is long enough for a blob"
            text = "\n".join(part.text for part in said if isinstance(part, Text))
            calls = [{"name": c.tool, "args": c.input, "id": c.ref} for c in said if isinstance(c, Call)]
            added.append(AIMessage(text, tool_calls=calls, id=body.message_id))
        elif isinstance(body, t.ToolProposed):
            refs[body.call_id] = body.ref
        elif isinstance(body, t.ToolEnded):
            added.append(ToolMessage(body.preview, tool_call_id=refs[body.call_id], id=body.call_id))
            yield added
            added = []


def langgraph_bytes(steps: list[list[Any]], first: int, last: int) -> float:
    """Bytes a step of LangGraph's checkpoints of the steps from ``first`` to ``last``."""
    from langgraph.checkpoint.base import create_checkpoint, empty_checkpoint
    from langgraph.checkpoint.sqlite import SqliteSaver

    with tempfile.TemporaryDirectory(prefix="wf-bench-lg-") as name:
        path = Path(name, "checkpoints.sqlite")
        with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
            saver = SqliteSaver(connection)
            config: Any = {"configurable": {"thread_id": "1", "checkpoint_ns": ""}}
            saver.setup()
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            empty = path.stat().st_blocks * 512
            for step in range(first, last):
                made = create_checkpoint(empty_checkpoint(), None, step)
                made["channel_values"] = {"messages": [one for added in steps[: step + 1] for one in added]}
                made["channel_versions"] = {"messages": f"{step:032}"}
                config = saver.put(config, made, {"source": "loop", "step": step, "parents": {}}, {})
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            return (path.stat().st_blocks * 512 - empty) / (last - first)


def measured() -> tuple[dict[int, float], dict[int, float], float]:
    """Bytes a step around each of `WINDOWS`: ours, and the yardstick's; then ours on average over all of them."""
    last = max(end for _, end in WINDOWS.values())
    goal = f"long: {last + 1}"
    with fleet(config='[caps]\nday_usd = "10000"\nsession_usd = "10000"\n') as f:
        sid = f.launch(goal)
        f.wait_event(sid, "tool.started")
        worktree = Path(f.row(sid)["worktree"])
        size: dict[int, int] = {}
        for at in sorted(step for window in WINDOWS.values() for step in window):
            wait_for(f"step {at}", (worktree / f"n{at}.txt").exists, PATIENCE_S)
            size[at] = on_disk(f)
        steps = list(messages(f, sid, goal))
    ours = {step: (size[b] - size[a]) / (b - a) for step, (a, b) in WINDOWS.items()}
    theirs = {step: langgraph_bytes(steps, a, b) for step, (a, b) in WINDOWS.items()}
    return ours, theirs, (size[last] - size[5]) / (last - 5)


@bench("steps")
def steps_on_disk() -> list[Figure]:
    if find_spec("langgraph") is None or find_spec(NEEDS) is None:
        print(MISSING)
        return []
    ours, theirs, mean = measured()
    early = ours[10]
    late = ours[1000]
    return [
        Figure(
            f"bytes on disk of a step around step {step:,}",
            "bytes",
            [ours[step]],
            f"≤ {MOST}×" if step == 1000 else "",
            ours[step] <= MOST * theirs[step] if step == 1000 else None,
            [theirs[step]],
            "LangGraph's checkpoint in SQLite, same messages",
            ours[step] / theirs[step],
        )
        for step in WINDOWS
    ] + [
        Figure(
            "the same around step 1,000",
            "bytes",
            [late],
            f"flat: ≤ {FLAT}×",
            late <= FLAT * early,
            [early],
            "around step 10",
            late / early,
            f"mean of all {mean:,.0f}",
        )
    ]
