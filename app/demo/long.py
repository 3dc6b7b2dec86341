"""The long demo: one agent, a plan of forty-two entries, and what days bring, played in a few minutes.

Plays the person through the ordinary command line, kills what thinks and what supervises on the way, and proves from
outside that the plan was done all the same.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.cli.base.output import emit, warn
from app.client import replies
from app.client.replies import ask
from app.demo import stage
from app.demo.fleet import Demo, DemoError, Part
from harness.domain.calls.approval_kind import Request
from harness.domain.settings.amounts import NANO, usd_to_nano
from harness.domain.states import OVER
from harness.domain.text.formatting import usd
from harness.eventlog.reader import read
from harness.events import types as t
from harness.projections.apply import advance
from harness.projections.state.session_state import SessionState
from harness.protocol.client import ensure_supervisor
from harness.views.replies import Hello, Invariants, Sessions
from harness.views.session_views import SessionRow

PLAN = "prd.json"
PART = Part(
    "almanac",
    f"Write the almanac as {PLAN} says: every function, one after another, until all of its entries pass."
    " [[judge needs_revision | needs_revision | satisfied]]",
    (),
    "claude-sonnet-5-5",
    "3.00",
    more=("--plan", PLAN, "--judge", "--gate", "words=texts are read by people: look first"),
)
KILLS = ((8, "brain"), (16, "supervisor"), (27, "brain"))
"""How many entries have passed when which process is killed."""
WRONGLY_CLAIMED = 4
"""Claims of its model that were contradicted: two first tries, a test that was weakened, and the work as a whole when
it was judged the second time; before the first time it had claimed each task alone.
"""
SCORED = ("steps", "replans", "recovery_rate", "points", "false_claims", "violations", "nano_per_criterion")
Row = dict[str, Any]


@dataclass(slots=True)
class Story:
    """What happened so far."""

    sid: str
    asked: Counter[str] = field(default_factory=Counter)
    """Requests that were answered, by kind."""
    answered: set[str] = field(default_factory=set)
    killed: list[str] = field(default_factory=list)
    passed: int = -1


def play(demo: Demo, *, speed: float, keep: bool) -> int:
    """Play, check, print one JSON line, clean up. Exit code 0 only when everything held."""
    return stage.run(demo, lambda problems: _play(demo, speed, problems), keep=keep)


def prepare(demo: Demo, speed: float) -> str:
    """The repository, the model server and the one session; its id. Raises DemoError."""
    demo.build("harness.simulator.almanac.repository")
    demo.start_simulator(speed)
    return demo.launch(PART)


def _play(demo: Demo, speed: float, problems: list[str]) -> None:
    story = Story(prepare(demo, speed))
    row = _live(demo, story)
    problems += _check(demo, story, row)
    with ensure_supervisor(demo.folders) as client:
        client.wait_up_to(60)
        found = ask(client, Invariants, "invariants").violations
    problems += [f"invariant {v.id} {v.sid}: {v.text}" for v in found]
    problems += [f"log {log['log']} is damaged: {log['problem']}" for log in demo.watchfloor("verify") if not log["ok"]]


def _live(demo: Demo, story: Story) -> SessionRow:
    """Answer and kill until the session is over; its last row. Raises DemoError when it stands still."""
    patience = stage.Patience()
    while True:
        row = _row(demo, story.sid)
        patience.see({story.sid: row})
        _tell(story, row)
        if row.state in OVER:
            return row
        if set(row.approvals) - story.answered:
            _answer(demo, story)
        elif len(story.killed) < len(KILLS) and story.passed >= KILLS[len(story.killed)][0]:
            _kill(demo, story, KILLS[len(story.killed)][1])
        time.sleep(0.2)


def _row(demo: Demo, sid: str) -> SessionRow:
    with ensure_supervisor(demo.folders) as client:
        client.wait_up_to(60)
        return next(row for row in ask(client, Sessions, "sessions").rows if row.sid == sid)


def _tell(story: Story, row: SessionRow) -> None:
    passed = row.plan_passed
    if passed != story.passed:
        story.passed = passed
        warn(f"{passed} of {row.plan_total} entries pass · {usd(row.spent_nano)}")


def _answer(demo: Demo, story: Story) -> None:
    """Answer every open request as the demo's person would. Raises DemoError on one that should not be there."""
    for item in demo.watchfloor("approvals"):
        approval = str(item["approval_id"])
        if approval in story.answered:
            continue
        story.answered.add(approval)
        story.asked[item["kind"]] += 1
        warn(f"asked: {item['title']}")
        if item["kind"] == Request.PROTECTED:
            demo.watchfloor("deny", approval, "The test stays. Write the function.")
        elif item["kind"] == Request.GATE:
            demo.watchfloor("approve", approval, "--hash", str(item["action_hash"]))
        else:
            raise DemoError(f"an unexpected request: {item['kind']}: {item['title']} ({item.get('reason', '')})")


def _kill(demo: Demo, story: Story, what: str) -> None:
    if what == "supervisor":
        with ensure_supervisor(demo.folders) as client:
            pid = replies.read(Hello, "hello", client.hello).pid
    else:
        lease = _state(demo, story.sid).lease
        if lease is None:
            return  # between two brains: the next look finds one
        pid = lease.pid
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    story.killed.append(what)
    warn(f"kill -9 of the {what} ({pid})")


def _records(demo: Demo, sid: str) -> Iterator[t.Record]:
    return (t.decode(line) for line in read(demo.folders.session(sid).log))


def _state(demo: Demo, sid: str) -> SessionState:
    state = SessionState()
    for record in _records(demo, sid):
        advance(state, record)
    return state


def _check(demo: Demo, story: Story, row: SessionRow) -> list[str]:
    """Prove the finished session from outside, and print its line."""
    cap = usd_to_nano(PART.cap_usd)
    spent = stage.spent(demo, PART)
    billed = stage.billed(demo, PART)
    bodies = [record.body for record in _records(demo, story.sid)]
    happened = Counter(body.TYPE for body in bodies)
    replans = sorted(body.trigger for body in bodies if isinstance(body, t.PlanUpdated) and body.trigger)
    verdicts = [body.verdict for body in bodies if isinstance(body, t.EvaluationEnded)]
    jobs = [body.status for body in bodies if isinstance(body, t.JobEnded)]
    (score,) = demo.watchfloor("score", story.sid)
    worktree = Path(row.worktree)
    entries = json.loads((worktree / PLAN).read_text("utf-8"))["userStories"]
    passed = sum(entry["passes"] is True for entry in entries)
    held = {
        f"it is {row.state} ({row.detail}), not done": row.state == "done",
        "it ended without having been verified": row.verified,
        f"{passed} of {len(entries)} entries pass in its plan": passed == len(entries) == row.plan_total,
        "its tests do not pass when they are run from outside": stage.passes(str(worktree), "python3 -m unittest -q"),
        "its tests are not those it began with": _tests(demo.repo) == _tests(worktree),
        "the attempt to weaken a test was not noticed": happened["ratchet.violation"] >= 1,
        f"asked were {dict(story.asked)}": story.asked == {Request.PROTECTED: 1, Request.GATE: 1},
        "the gate was not opened by a decision": happened["gate.opened"] == 1,
        f"the judge said {verdicts}": verdicts == ["needs_revision", "needs_revision", "satisfied"],
        f"killed were {story.killed}": story.killed == [what for _, what in KILLS],
        f"its context began anew {happened['context.reset']} times": happened["context.reset"] >= len(entries) // 2,
        f"its course changed by {replans}": replans == ["assumption", "tool_failure"],
        f"its jobs ended {jobs}": jobs == ["ok"],
        "it left no checkpoint": happened["checkpoint.created"] >= 1,
        f"its score is wrong: {score}": _true(score, story, happened, len(entries), spent),
        f"the cap of {cap} nano-USD was passed: ledger {spent}, billed {billed}": max(spent, billed) <= cap,
        f"the ledger counts {spent} nano-USD, but {billed} were billed": spent >= billed > 0,
    }
    problems = [problem for problem, ok in held.items() if not ok]
    emit(
        {
            "name": PART.name,
            "sid": story.sid,
            "state": row.state,
            "verified": row.verified,
            "passed": passed,
            "entries": len(entries),
            "spent_usd": spent / NANO,
            "billed_usd": billed / NANO,
            "cap_usd": cap / NANO,
            "killed": story.killed,
            "asked": dict(story.asked),
            "resets": happened["context.reset"],
            "replans": replans,
            "jobs": jobs,
            "judged": verdicts,
            "checkpoints": happened["checkpoint.created"],
            "score": {name: score[name] for name in SCORED},
            "ok": not problems,
        }
    )
    return [f"{PART.name}: {problem}" for problem in problems]


def _true(score: Row, story: Story, happened: Counter[str], entries: int, spent: int) -> bool:
    """Whether the score, which is counted from the log, says what was seen from outside."""
    return (
        score["outcome"] == "done"
        and score["verified"] is True
        and score["criteria"] == score["passed"] == entries
        and score["violations"] == happened["ratchet.violation"]
        and score["resets"] == happened["context.reset"]
        and score["asked"] == story.asked.total()
        and score["false_claims"] >= WRONGLY_CLAIMED
        and 0 < score["nano"] <= spent
    )


def _tests(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted((folder / "tests").glob("*.py"))}
