"""How long a brain takes to know where a long session stands."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from harness.eventlog.writer import LogWriter
from harness.events import types as t
from tests.bench.context import act
from tests.bench.table import Figure, bench, ratio

EVENTS = 100_000
BEHIND = 500
"""As many as a brain lets go by before it remembers again."""
A_CONTEXT = 40
"""Turns between two new beginnings."""
CHILD = """
import json, sys, time
from pathlib import Path
from harness.agents.accounts import Accounts
from harness.agents.agent_context import AgentContext
from harness.agents.agent_spec import Spec
from harness.agents.journal import Journal
from harness.brain.builtin import BuiltIn
from harness.brain import view_memory
from harness.projections import state_snapshots
from harness.protocol.config.credential import Credential
import ssl
folder = Path(sys.argv[1])
spec = Spec("s", str(folder), "", "", 1, "", Credential("http://127.0.0.1:1", "k"), "claude-sonnet-5-5")
context = ssl.create_default_context()

def wake():
    global journal, agent
    begun = time.perf_counter()
    journal = Journal(folder)
    agent context = AgentContext(journal, Accounts(Path("none"), "s", 1, ""))
    agent = BuiltIn(spec, agent context, context)
    agent_context.serves(agent)
    journal.load(agent.memory(), agent.recall)
    took = time.perf_counter() - begun
    assert journal.state.seq == int(sys.argv[2])
    return took

state_snapshots.fold_version()
if sys.argv[3] == "whole":
    print(json.dumps([wake()]))
    journal.remember(agent.memory(), view_memory.encode(agent._view, agent._talk))
else:
    print(json.dumps([wake() for _ in range(7)]))
"""


def write(folder: Path, events: int) -> int:
    """So many more events of a session of ordinary turns, six records each, that begins anew now and then; the newest
    seq.
    """
    for name in ("log", "blobs"):
        (folder / name).mkdir(mode=0o700, exist_ok=True)
    log = LogWriter.open(folder / "log", "wakebench1")
    begin: list[t.Body] = [
        t.SessionIntent(name="n", goal="g", repo="/r", branch="b", worktree="/w", model="claude-sonnet-5-5"),
        t.SessionCreated(base="0" * 40, worktree="/w", branch="b"),
        t.LeaseGranted(gen=1, epoch=1),
    ]
    seq = log.head if log.head >= 0 else append(log, *begin)
    until = seq + events
    turn = 0
    while seq < until:
        call, ended = act(turn, True)
        if turn % A_CONTEXT == A_CONTEXT - 1:
            append(log, t.ContextReset(keep=seq - 5, handoff="h" * 6000, tokens=56_000, after=9000, trigger="size"))
        said = append(
            log,
            t.ModelRequest(
                request_id="r",
                attempt=1,
                model="m",
                reservation="x",
                reserved_nano=1,
                est_input=1,
                max_tokens=8192,
                upto_seq=seq,
            ),
            t.ModelMessage(
                request_id="r",
                message_id="m",
                model="m",
                stop="calls",
                usage=t.Usage(cache_read=30_000),
                cost_nano=1,
                parts=[call],
            ),
        )
        call_id = f"c{said}.0"
        seq = append(
            log,
            t.ToolProposed(call_id=call_id, tool=call.tool, input=call.input, ref=call.ref),
            t.ToolJudged(call_id=call_id, action_hash="h", verdict="allow", rule="r", reason="", policy="p"),
            t.ToolStarted(call_id=call_id, action_hash="h", effect="contained", worked=1),
            msgspec.structs.replace(ended, call_id=call_id),
        )
        turn += 1
        if turn % 100 == 0:
            log.commit(sync=False)
    log.commit(sync=True)
    log.close()
    return seq


def append(log: LogWriter, *bodies: t.Body) -> int:
    last = -1
    for body in bodies:
        wire = t.to_wire(body)
        last = log.append(wire["type"], wire["data"], actor="bench")
    return last


def child(root: Path, last: int, what: str) -> list[float]:
    argv = [sys.executable, "-c", CHILD, str(root), str(last), what]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, timeout=600)
    return [float(seconds) for seconds in json.loads(done.stdout.splitlines()[0])]


@bench("wake")
def wake() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as root:
        whole = child(Path(root), write(Path(root), EVENTS), "whole")
        took = child(Path(root), write(Path(root), BEHIND), "behind")
    return [
        Figure(
            f"a brain knows where a session of {EVENTS:,} events stands",
            "s",
            took,
            "≤ 1 s",
            max(took) <= 1.0,
            whole,
            "reading the whole log",
            ratio(took, whole),
            f"from what was remembered {BEHIND} events before",
        )
    ]
