"""The demo without a screen: plays the human through the ordinary command line, then proves each claim from outside."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field

from app.cli.base.output import emit
from app.client.replies import ask
from app.demo import stage
from app.demo.fleet import BRANCH, PARTS, Demo, DemoError, Part
from harness.domain.actions.action import PushAction, from_wire
from harness.domain.calls.approval_kind import Request
from harness.domain.settings.amounts import NANO, usd_to_nano
from harness.domain.states import OVER
from harness.protocol.client import Client
from harness.protocol.connection.transport import UnixSocket
from harness.views.replies import Invariants, Sessions
from harness.views.session_views import SessionRow

Row = dict[str, object]


@dataclass(slots=True)
class Story:
    """What happened so far: approvals already answered, and for the capped session the proof that it was asked."""

    answered: set[str] = field(default_factory=set)
    pushes_approved: int = 0
    cap_asked: int = 0


def play(demo: Demo, *, speed: float, keep: bool) -> int:
    """Play, check, print one JSON line a session, clean up. Exit code 0 only when everything held."""
    return stage.run(demo, lambda problems: _play(demo, speed, problems), keep=keep)


def _play(demo: Demo, speed: float, problems: list[str]) -> None:
    demo.build()
    demo.start_simulator(speed)
    parts = {demo.launch(part): part for part in PARTS}
    story = Story()
    told: set[str] = set()
    with Client(UnixSocket(demo.folders.supervisor_socket), timeout=60) as client:
        patience = stage.Patience()
        while len(told) < len(parts):
            rows = {row.sid: row for row in ask(client, Sessions, "sessions").rows}
            for sid, part in parts.items():
                row = rows[sid]
                if sid in told:
                    continue
                if row.state in OVER:
                    told.add(sid)
                    problems += _check(demo, part, row)
                elif set(row.approvals) - story.answered:
                    _answer(demo, story)
            patience.see({sid: rows[sid] for sid in parts if sid not in told})
            time.sleep(0.1)
        problems += [f"invariant {v.id} {v.sid}: {v.text}" for v in ask(client, Invariants, "invariants").violations]
    if story.pushes_approved != 1:
        problems.append(f"{story.pushes_approved} pushes were approved, not 1")
    if story.cap_asked != 1:
        problems.append(f"the capped session asked {story.cap_asked} times, not once")
    problems += [f"log {log['log']} is damaged: {log['problem']}" for log in demo.watchfloor("verify") if not log["ok"]]


def _answer(demo: Demo, story: Story) -> None:
    """Answer every open request as the demo's human would. Raises DemoError on a request that should not be there."""
    caps = {part.name: part for part in PARTS if part.capped}
    for item in demo.watchfloor("approvals"):
        approval = str(item["approval_id"])
        name = str(item["session_name"])
        if approval in story.answered:
            continue
        story.answered.add(approval)
        action = from_wire(item["action"]) if item.get("action") else None
        if item["kind"] == Request.TOOL and name == "changelog" and isinstance(action, PushAction):
            targets = [spec.ref for spec in action.to.refspecs]
            if targets != [f"refs/heads/{BRANCH}"]:
                raise DemoError(f"the push to approve goes to {targets}, not to refs/heads/{BRANCH}")
            demo.watchfloor("approve", approval, "--hash", str(item["action_hash"]))
            story.pushes_approved += 1
        elif item["kind"] == Request.CAP and name in caps:
            _cap_holds(demo, caps[name])
            demo.watchfloor("reject", approval, "--reason", "The survey has cost enough.")
            story.cap_asked += 1
        else:
            raise DemoError(
                f"an unexpected request of {name}: {item['kind']}: {item['title']} ({item.get('reason', '')})"
            )


def _cap_holds(demo: Demo, part: Part) -> None:
    cap = usd_to_nano(part.cap_usd)
    spent = stage.spent(demo, part)
    billed = stage.billed(demo, part)
    if spent > cap or billed > cap:
        raise DemoError(f"{part.name}: the cap of {cap} nano-USD was passed: ledger {spent}, billed {billed}")


def _check(demo: Demo, part: Part, row: SessionRow) -> list[str]:
    """Prove one finished session from outside and print its line."""
    cap = usd_to_nano(part.cap_usd)
    spent = row.spent_nano
    billed = stage.billed(demo, part)
    wanted = "stopped" if part.capped else "done"
    problems = []
    if row.state != wanted:
        problems.append(f"is {row.state} ({row.detail}), not {wanted}")
    if not part.capped and not row.verified:
        problems.append("ended without having passed its checks")
    if spent > cap or billed > cap:
        problems.append(f"the cap of {cap} nano-USD was passed: ledger {spent}, billed {billed}")
    if billed > spent:
        problems.append(f"the ledger counts {spent} nano-USD, but {billed} were billed")
    if not billed:
        problems.append("the model server billed nothing for it")
    passed = [stage.passes(row.worktree, check) for check in part.checks]
    problems += [
        f"{check} does not pass in its worktree" for check, ok in zip(part.checks, passed, strict=True) if not ok
    ]
    pushed = _pushed(demo, row) if part.name == "changelog" else None
    if pushed is False:
        problems.append(f"its commit did not arrive in the remote as refs/heads/{BRANCH}")
    line = {
        "name": part.name,
        "sid": row.sid,
        "state": row.state,
        "verified": row.verified,
        "spent_usd": spent / NANO,
        "billed_usd": billed / NANO,
        "cap_usd": cap / NANO,
        "requests": row.requests,
        "tool_calls": row.tool_calls,
        "checks": f"{sum(passed)}/{len(passed)}",
        "ok": not problems,
    }
    emit(line if pushed is None else line | {"pushed": pushed})
    return [f"{part.name}: {problem}" for problem in problems]


def _revision(folder: str, name: str) -> str:
    done = subprocess.run(
        ["git", "-C", folder, "rev-parse", "--verify", "--quiet", "--end-of-options", name],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.strip()


def _pushed(demo: Demo, row: SessionRow) -> bool:
    """The remote branch is exactly the session's branch, and that is a new commit."""
    there = _revision(str(demo.remote), f"refs/heads/{BRANCH}")
    here = _revision(str(demo.repo), f"refs/heads/{row.branch}")
    return bool(there) and there == here and there != _revision(str(demo.repo), "refs/heads/main")
