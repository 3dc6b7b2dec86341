"""What a long session costs: the bill of the simulator, at its prices, for a script of ordinary work, in requests that
the brain's own code decided on and built; the size of those requests, the time to build one, what is held in memory.
"""

from __future__ import annotations

import gc
import json
import os
import time
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness.brain import conversation, decide
from harness.brain.context import compaction
from harness.brain.context.sizes import Sizes
from harness.brain.view import View
from harness.events import message_parts
from harness.events import types as t
from harness.projections import apply
from harness.roles.catalog import shipped
from harness.simulator import catalog, prompt_cache
from harness.tools import registry
from tests.bench.fleet_costs import pss_mb
from tests.bench.table import Figure, bench, percentile

TS = "2026-11-21T03:00:00.000Z"
SOURCE = "".join(f"def part_{n}(x):\n    return x + {n}  # one more of many\n" for n in range(58))
NUMBERED = "".join(f"{n:6}\t{line}\n" for n, line in enumerate(SOURCE.splitlines(), 1))
FILES = "".join(f"src/part_{n:04}.py\n" for n in range(410))
OUTPUT = "".join(f"tests/test_part_{n}.py::test_part_{n} PASSED    [ {n % 100} %]\n" for n in range(360))
PROSE = "Step {0}: the part before this one is in place and its tests pass, so on with what SPEC.md lists next. " * 2
SUMMARY = "\n\n".join(f"{heading}\n{PROSE.format(heading) * 3}" for heading in compaction.HEADINGS).encode()
SUMMARY_REF = t.BlobRef("5" * 64, len(SUMMARY))
SCRIPT = 5
EVERY_S = 20.0
WAIT_S = 600.0


@dataclass
class Bill:
    """One session of the script: ``nano`` and ``prompt`` of each request, ``build_ms`` to make it."""

    model: catalog.Model
    sizes: Sizes
    short: bool = True
    """False: a large output is shown as it was before it had a short form, 8 KiB of it."""
    hour: bool = False
    """Its prompt cache lives an hour."""
    waits: int = 0
    """After so many turns each it waits for `WAIT_S`."""
    view: View = field(default_factory=View)
    talk: conversation.Talk = field(default_factory=conversation.Talk)
    cache: prompt_cache.PromptCache = field(default_factory=prompt_cache.PromptCache)
    nano: list[int] = field(default_factory=list)
    prompt: list[int] = field(default_factory=list)
    build_ms: list[float] = field(default_factory=list)
    changes: int = 0

    def __post_init__(self) -> None:
        goal = "Write all the parts that SPEC.md lists, each with its test, and make the whole suite pass."
        intent = t.SessionIntent(name="n", goal=goal, repo="/r", branch="b", worktree="/w", model=self.model.id)
        self.put(intent, t.SessionCreated(base="0" * 40, worktree="/w", branch="b"), t.LeaseGranted(gen=1, epoch=1))
        self.head = {
            "tools": conversation.cached_tools([tool.definition() for tool in registry.TABLE.values()], hour=self.hour),
            "system": conversation.system_blocks(shipped()["coder"].prompt, hour=self.hour),
        }

    def put(self, *bodies: t.Body) -> int:
        for body in bodies:
            data = msgspec.json.encode(t.to_wire(body)["data"])
            record = t.Record(self.view.state.seq + 1, TS, "b", 0, msgspec.json.decode(data, type=type(body)))
            apply.advance(self.view.state, record)
            self.view.take(record, lambda ref: SUMMARY if ref == SUMMARY_REF else b"")
            if isinstance(body, t.ModelMessage):
                self.talk.take(self.view)
                self.view.forget()
        return self.view.state.seq

    def turn(self, number: int) -> None:
        begun = time.perf_counter()
        summaries = 0
        while isinstance(step := decide.next_step(self.view, self.sizes), decide.Shrink | decide.Sum):
            self.changes += 1
            if isinstance(step, decide.Shrink):
                self.put(step.change)
            else:
                summaries += self.sum(step, number)
        assert isinstance(step, decide.Ask), step
        built = self.talk.build(self.view, hour=self.hour)
        self.build_ms.append((time.perf_counter() - begun) * 1000)
        blocks = prompt_cache.blocks_of({**self.head, "messages": built.messages})
        total = sum(block.tokens for block in blocks)
        assert total <= self.model.window, "prompt is too long"
        call, answer = act(number, self.short)
        reply: list[message_parts.Part] = [message_parts.Text(PROSE.format(number)), call]
        out = len(json.dumps(call.input)) // 4 + 30
        usage, nano = self.billed(blocks, number, out)
        self.nano.append(summaries + nano)
        self.prompt.append(total)
        sent = self.put(
            t.ModelMessage(
                request_id="r",
                message_id="m",
                model="m",
                stop=message_parts.CALLS,
                usage=usage,
                cost_nano=0,
                parts=reply,
            )
        )
        call_id = f"c{sent}.0"
        self.put(t.ToolProposed(call_id=call_id, tool=call.tool, input=call.input, ref=call.ref))
        self.put(msgspec.structs.replace(answer, call_id=call_id))

    def billed(self, blocks: list[prompt_cache.Block], number: int, out: int) -> tuple[t.Usage, int]:
        """What the endpoint says of a request with ``out`` tokens of reply, and its price in nano-USD."""
        waited = WAIT_S * (number // self.waits) if self.waits else 0.0
        used = self.cache.account("k", self.model, blocks, number * EVERY_S + waited)
        tokens = (used.input, used.cache_read, used.write_5m, used.write_1h, out)
        return t.Usage(*tokens), catalog.cost(self.model, catalog.Tokens(*tokens))

    def sum(self, step: decide.Sum, number: int) -> int:
        """The model summarises its task, as it is asked to; nano-USD of that request."""
        built = self.talk.build(self.view, compaction.REQUEST, hour=self.hour)
        blocks = prompt_cache.blocks_of({**self.head, "messages": built.messages})
        usage, nano = self.billed(blocks, number, compaction.size(SUMMARY.decode()))
        change = step.change
        self.put(
            t.ModelSummary(request_id="s", message_id="m", model="m", usage=usage, cost_nano=nano),
            t.ContextCompacted(
                through_seq=change.keep - 1,
                handoff=step.handoff,
                summary=SUMMARY_REF,
                tokens_before=change.tokens,
                tokens_after=change.after + compaction.size(SUMMARY.decode()),
                trigger=change.trigger,
            ),
        )
        return nano

    @property
    def usd(self) -> float:
        return sum(self.nano) / 1e9


def act(number: int, short: bool) -> tuple[message_parts.Call, t.ToolEnded]:
    """One step of: write 3 KB, read it, run something that says 20 KB, edit, list."""
    path = f"src/part_{number // SCRIPT}.py"
    given: list[tuple[str, dict[str, Any], str, int]] = [
        ("write_file", {"path": path, "content": SOURCE}, f"created {path} (116 lines, {len(SOURCE)} bytes)", 0),
        ("read_file", {"path": path}, NUMBERED, 0),
        ("exec", {"argv": ["make", f"part{number}"]}, f"{OUTPUT[:6144]}\n[…]\n{OUTPUT[-2048:]}", len(OUTPUT)),
        ("edit_file", {"path": path, "old": "x + 1 ", "new": f"x + {number} "}, f"edited {path} (line 2)", 0),
        ("list_files", {"glob": "src/*.py"}, FILES, 0),
    ]
    tool, asked, shown, size = given[number % SCRIPT]
    ended = t.ToolEnded(
        call_id="",
        status="ok",
        preview=shown,
        exit_code=0 if tool == "exec" else None,
        output=t.BlobRef("0" * 64, size) if size and short else None,
        files_changed=[path] if registry.writes_file(tool) else [],
    )
    return message_parts.Call(f"toolu_{number}", tool, asked), ended


def session(model: str, turns: int, sizes: Sizes, *, short: bool = True) -> Bill:
    bill = Bill(catalog.find(model), sizes, short)
    for number in range(turns):
        bill.turn(number)
    return bill


def around(values: list[int], turn: int, width: int = 45) -> float:
    """Mean of the requests around a turn: over one cycle of changes of the context."""
    part = values[max(0, turn - width) : turn + width]
    return sum(part) / len(part)


def _with_waits(model: str, every: int) -> Figure:
    """What a cache that lives an hour costs, and saves where a person answers after ten minutes now and then."""
    bills = []
    for hour in (True, False):
        bill = Bill(catalog.find(model), Sizes(window=1_000_000), hour=hour, waits=every)
        for number in range(100):
            bill.turn(number)
        bills.append(bill.usd)
    waits = f"a wait of {WAIT_S / 60:.0f} min every {every} turns" if every else "no wait"
    kept, forgotten = bills
    ratio = kept / forgotten
    return Figure(f"bill of 100 turns with `cache_hour`, {waits}", "$", [kept], "", None, [forgotten], "without", ratio)


@bench("context")
def context() -> list[Figure]:
    model = "claude-sonnet-5-5"
    million = Sizes(window=1_000_000)
    today = session(model, 500, Sizes(working=1_000_000, window=1_000_000), short=False)
    now = session(model, 545, million)
    share = sum(now.nano[:500]) / sum(today.nano)
    late = around(now.nano, 500) / around(now.nano, 50)
    figures = [
        Figure(
            "bill of 500 turns (write 3 KB, read, exec 20 KB, edit, list)",
            "$",
            [sum(now.nano[:500]) / 1e9],
            "≤ 0.3×",
            share <= 0.3,
            [today.usd],
            "without a working size, 8 KiB of each output",
            share,
            f"{now.changes} changes of the context",
        ),
        Figure(
            "$ a turn around turn 500",
            "¢",
            [around(now.nano, 500) / 1e7],
            "≤ 1.3×",
            late <= 1.3,
            [around(now.nano, 50) / 1e7],
            "around turn 50",
            late,
        ),
    ]
    figures += [_with_waits(model, every) for every in (0, 5, 20)]
    for name, window in ((model, 1_000_000), ("claude-haiku-4-5", 200_000)):
        gc.collect()
        bill = Bill(catalog.find(name), Sizes(window=window))
        memory = []
        for number in range(5000):
            bill.turn(number)
            if number in (50, 4999):
                gc.collect()
                memory.append(pss_mb(os.getpid()))
                bill.cache.entries.clear()
        p95 = percentile([float(p) for p in bill.prompt], 0.95)
        slowest = percentile(bill.build_ms, 0.99)
        figures += [
            Figure(
                f"prompt tokens of 5,000 turns, 95th percentile, window {window:,}",
                "tokens",
                [p95],
                "≤ 80,000",
                p95 <= 80_000,
                note=f"most {max(bill.prompt):,}",
            ),
            Figure(
                f"time to decide on and build a request, 99th percentile, window {window:,}",
                "ms",
                [slowest],
                "≤ 50 ms",
                slowest <= 50,
            ),
            Figure(
                f"memory gained from turn 50 to 5,000, window {window:,}",
                "MB",
                [memory[1] - memory[0]],
                "≤ 3 MB",
                memory[1] - memory[0] <= 3,
                note="a brain has about 15 MB, of which a fifth is 3 MB",
            ),
        ]
    return figures
