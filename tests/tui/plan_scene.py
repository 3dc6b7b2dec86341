"""A session in the midst of a plan, as its log would tell it."""

from __future__ import annotations

from harness.events import types as t
from tests.tui.app_world import Session, World

BUILD = 10
SHIP = 4


def loaded() -> t.PlanLoaded:
    """Ten entries to build, four to ship behind a gate."""
    entries = [
        t.PlanEntry(id=f"B-{n:02d}", title=f"build part {n}", checks=[f"test -s b{n}"], phase="build")
        for n in range(1, BUILD + 1)
    ]
    entries += [
        t.PlanEntry(
            id=f"S-{n:02d}",
            title=f"ship part {n}",
            checks=[f"test -s s{n}"],
            phase="ship",
            depends_on=[f"B-{min(n + 8, BUILD):02d}"],
        )
        for n in range(1, SHIP + 1)
    ]
    ship = t.PlanPhase(name="ship", gate="it goes to production")
    return t.PlanLoaded(path="prd.json", form="userStories", entries=entries, phases=[t.PlanPhase(name="build"), ship])


def planned(world: World, name: str = "almanac") -> Session:
    """Eight entries pass, the ninth is at hand for the second time, the tenth is blocked."""
    session = world.add(name, t.LeaseGranted(gen=1, epoch=3), loaded(), t.PhaseBegun(phase="build"))
    for n in range(1, 9):
        passes(world, session, f"B-{n:02d}", n)
    world.log(
        session,
        t.PlanUpdated(call_id="c90.0", entry="B-10", state="blocked", reason="no key for the map service"),
        t.PlanUpdated(call_id="c91.0", steps=["write the table", "index it"]),
        t.IterationStarted(n=9, entry="B-09", attempt=1, digest="d"),
        t.CheckVerdict(call_id="c92.0", command="test -s b9", passed=False),
        t.IterationEnded(n=9, entry="B-09", outcome="failed", reason="its check fails"),
        t.IterationStarted(n=10, entry="B-09", attempt=2, digest="d"),
        t.PlanUpdated(call_id="c93.0", entry="B-09", note="the table needs an index"),
    )
    return session


def passes(world: World, session: Session, entry: str, n: int) -> None:
    """The harness saw that an entry passes."""
    check = f"test -s {entry[0].lower()}{int(entry[2:])}"
    world.log(
        session,
        t.IterationStarted(n=n, entry=entry, attempt=1, digest="d"),
        t.CheckVerdict(call_id=f"c{n}.0", command=check, passed=True),
        t.PlanFlipped(entry=entry, passes=True, why="its check passed", calls=[f"c{n}.0"]),
        t.IterationEnded(n=n, entry=entry, outcome="passed"),
    )


MARKED: tuple[tuple[t.Body, str], ...] = (
    (
        t.CheckpointCreated(
            checkpoint_id="k7", label="B-08", why="entry", through_seq=9, snapshot="s", commit="c", head="h"
        ),
        "◉ checkpoint: k7",
    ),
    (t.ContextReset(keep=1, handoff="", tokens=61_000, after=4_000, trigger="task boundary"), "↻ context: begins anew"),
    (
        t.ContextCompacted(
            through_seq=9,
            handoff="",
            summary=t.BlobRef("0" * 64, 10),
            tokens_before=70_000,
            tokens_after=6_000,
            trigger="one task",
        ),
        "hand-off and a summary",
    ),
    (t.GateOpened(phase="ship", message="go"), "◇ gate: you let ship go on: go"),
    (
        t.EvaluationEnded(cycle=1, cycles=3, model="m", rubric="r", verdict="needs_revision", summary="no tests"),
        "§ judge: needs revision (cycle 1 of 3): no tests",
    ),
    (t.JobStarted(clock=0.0, job="j1", call_id="c5.0", what="make index"), "» job: j1 started: make index"),
    (t.JobEnded(job="j1", status="ok", exit_code=0, ms=61_000), "» job: j1 "),
    (t.PlanUpdated(trigger="tool_failure", reason="make fails"), "≡ replan: tool failure: make fails"),
)
"""What marks a long transcript, with what is seen of it."""
