"""A log of a million events: open it and jump to its end, in our widget and in Textual's ``Log`` with the same
lines.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from harness.events.log import LogWriter
from tests.bench.table import Figure, bench, ratio

EVENTS = 1_000_000

CHILD = """
import asyncio, json, sys, time
from pathlib import Path
from textual.app import App
from textual.widgets import Log
from widgets.event_log import EventLog

kind, source, last = sys.argv[1], Path(sys.argv[2]), sys.argv[3]

def private():
    rows = [l.split() for l in Path("/proc/self/smaps_rollup").read_text().splitlines()]
    return sum(int(r[1]) for r in rows if r[0] == "Private_Dirty:") * 1024 / 1e6

class Bench(App):
    def compose(self):
        yield EventLog() if kind == "ours" else Log()

def shown(app):
    return "\\n".join(s.text for s in app.screen._compositor.render_strips())

async def main():
    app = Bench()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        before = private()
        start = time.perf_counter()
        if kind == "ours":
            widget = app.query_one(EventLog)
            widget.set_log(source)
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


def _make(folder: Path, lines: Path) -> str:
    log = LogWriter.open(folder, "biglogbench")
    with lines.open("w", encoding="utf-8") as out:
        for i in range(EVENTS):
            text = f"event number {i:07d}: compiled module {i % 977} and ran its tests"
            log.append("harness.note", {"level": "info", "text": text, "component": "bench"}, actor="harness")
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


@bench("biglog")
def biglog() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as root:
        folder, lines = Path(root) / "log", Path(root) / "lines.txt"
        folder.mkdir(mode=0o700)
        last = _make(folder, lines)
        ours = [_child("ours", folder, last) for _ in range(5)]
        theirs = [_child("log", lines, last) for _ in range(5)]
    took, yard = [m["s"] for m in ours], [m["s"] for m in theirs]
    memory = [m["mb"] for m in ours]
    r = ratio(took, yard)
    return [
        Figure(
            "1M-event log: open and jump to the end",
            "s",
            took,
            "≤ 0.3×",
            r <= 0.3,
            yard,
            "`Log` with the same lines",
            r,
        ),
        Figure(
            "1M-event log: private memory",
            "MB",
            memory,
            "≤ 30 MB",
            max(memory) <= 30,
            [m["mb"] for m in theirs],
            "`Log`",
            ratio(memory, [m["mb"] for m in theirs]),
        ),
    ]
