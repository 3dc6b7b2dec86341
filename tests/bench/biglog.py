"""A log of a million events: open it and jump to its end, as raw events and as a transcript, and in Textual's ``Log``
with as many lines.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.eventlog.writer import LogWriter
from tests.bench.table import Figure, bench, ratio

EVENTS = 1_000_000

CHILD = """
import asyncio, json, sys, time
from pathlib import Path
from textual.app import App
from textual.widgets import Log
from widgets.log.event_log import EventLog
from widgets.log.transcript import Transcript
from widgets.log.log_rows import on_disk

kind, source, last = sys.argv[1], Path(sys.argv[2]), sys.argv[3]

def private():
    rows = [l.split() for l in Path("/proc/self/smaps_rollup").read_text().splitlines()]
    return sum(int(r[1]) for r in rows if r[0] == "Private_Dirty:") * 1024 / 1e6

class Bench(App):
    def compose(self):
        yield {"log": Log, "events": EventLog, "transcript": Transcript}[kind]()

def shown(app):
    return "\\n".join(s.text for s in app.screen._compositor.render_strips())

async def main():
    app = Bench()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        before = private()
        start = time.perf_counter()
        if kind != "log":
            widget = app.query_one(EventLog if kind == "events" else Transcript)
            widget.set_log(on_disk(source))
            widget.focus()
            await pilot.press("end")
            while last not in shown(app):
                widget.sync()
                await asyncio.sleep(0)
        else:
            widget = app.query_one(Log)
            with source.open(encoding="utf-8") as f:
                widget.write_lines([line.rstrip("\\n") for line in f], scroll_end=True)
            while last not in shown(app):
                await asyncio.sleep(0)
        print(json.dumps({"s": time.perf_counter() - start, "mb": private() - before}))

asyncio.run(main())
"""


Event = tuple[str, dict[str, Any]]


def _note(i: int, text: str) -> Event:
    return "harness.note", {"level": "info", "text": text, "component": "bench"}


def turn(i: int, text: str) -> Event:
    """What an agent's turn leaves in a log: a request, a reply, a call and its stages."""
    step = (i + 2) % 6  # so that the last of a million is a reply
    call = f"c{i - step + 6}.0"
    usage = {"input": 900, "cache_read": 8000, "output": 300}
    match step:
        case 0:
            given = {"reservation": "v", "reserved_nano": 1, "est_input": 9000, "max_tokens": 8192, "upto_seq": i}
            return "model.request", {"request_id": f"r{i}", "attempt": 1, "model": "x", **given}
        case 1 | 5:
            parts = [{"part": "text", "text": text}]
            ids = {"request_id": f"r{i}", "message_id": f"m{i}", "model": "x"}
            return "model.message", {**ids, "stop": "calls", "usage": usage, "cost_nano": 1, "parts": parts}
        case 2:
            given = {"path": f"src/part{i % 97}.py", "old": "a = 1\nb = 2\n", "new": f"a = 1\nb = {i}\n"}
            return "tool.proposed", {"call_id": call, "tool": "edit_file", "ref": "u", "input": given}
        case 3:
            return "tool.started", {"call_id": call, "action_hash": "f" * 64, "effect": "reversible"}
    return "tool.ended", {"call_id": call, "status": "ok", "exit_code": 0, "preview": text, "ms": 41}


def _make(folder: Path, lines: Path, event: Callable[[int, str], Event]) -> str:
    log = LogWriter.open(folder, "biglogbench")
    with lines.open("w", encoding="utf-8") as out:
        for i in range(EVENTS):
            text = f"event number {i:07d}: compiled module {i % 977} and ran its tests"
            log.append(*event(i, text), actor="harness")
            if i % 5000 == 4999:
                log.commit(sync=False)
            out.write(f"12:00:00  note        {text}\n")
    log.commit(sync=True)
    log.close()
    return f"event number {EVENTS - 1:07d}"


def _child(kind: str, source: Path, last: str) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-c", CHILD, kind, str(source), last], check=True, capture_output=True, text=True, timeout=600
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _measure(kind: str, called: str, event: Callable[[int, str], Event]) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as root:
        folder = Path(root) / "log"
        lines = Path(root) / "lines.txt"
        folder.mkdir(mode=0o700)
        last = _make(folder, lines, event)
        ours = [_child(kind, folder, last) for _ in range(5)]
        theirs = [_child("log", lines, last) for _ in range(5)]
    took = [m["s"] for m in ours]
    yard = [m["s"] for m in theirs]
    memory = [m["mb"] for m in ours]
    their_memory = [m["mb"] for m in theirs]
    r = ratio(took, yard)
    name = f"{called}: open and jump to the end"
    small = max(memory) <= 30
    return [
        Figure(name, "s", took, "≤ 0.3×", r <= 0.3, yard, "`Log` with as many lines", r),
        Figure(
            f"{called}: private memory",
            "MB",
            memory,
            "≤ 30 MB",
            small,
            their_memory,
            "`Log`",
            ratio(memory, their_memory),
        ),
    ]


@bench("biglog")
def biglog() -> list[Figure]:
    return _measure("events", "1M-event log", _note)


@bench("transcript")
def transcript() -> list[Figure]:
    return _measure("transcript", "transcript of a 1M-event log", turn)
