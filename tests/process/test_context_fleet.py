"""A session whose work is larger than its context: it begins anew from hand-offs and comes to its end all the same."""

from __future__ import annotations

import re

from harness.events import types as t
from harness.events.message_parts import text_of
from tests.fleetlib import Fleet, fleet, git, kill, play, wait_for

TURNS = 48


def test_a_session_outlives_its_context_many_times() -> None:
    steps = [
        [
            (
                "exec",
                {"argv": ["sh", "-c", f"seq -f 'part {n} line %g says nothing new at all' 1 90; echo {n} > n{n}.txt"]},
            )
        ]
        for n in range(TURNS)
    ]
    with fleet(config="context_tokens = 30000\n") as f:
        sid = f.launch(play(*steps, "All parts are there."), checks=(f"test -e n{TURNS - 1}.txt",))
        row = f.wait_state(sid, "done", "failed", "parked", "waiting", timeout=240)
        records = f.records(sid)
        changes = [r.body for r in records if isinstance(r.body, (t.ContextReset, t.ContextCompacted))]
        assert row["state"] == "done", row
        assert row["verified"]
        assert len(changes) >= 2
        sizes = [r.body.usage.total for r in records if isinstance(r.body, t.ModelMessage)]
        assert max(sizes) <= 30_000
        assert not any(isinstance(r.body, t.ModelFailed) for r in records)
        early = {r.body.call_id for r in records if isinstance(r.body, t.ToolProposed) and r.body.before_work}
        begun = [r.body.call_id for r in records if isinstance(r.body, t.ToolStarted)]
        assert len([name for name in begun if name not in early]) == TURNS + 1, "nothing was done twice"
        named = {int(seq) for c in changes for seq in re.findall(r"\[#(\d+)\]$", c.handoff, re.MULTILINE)}
        assert len(named) > 10
        assert re.search(r"^- n\d+\.txt \(seen changed\) \[#\d+\]$", changes[0].handoff, re.MULTILINE), (
            "made by commands"
        )
        assert named <= {r.seq for r in records}
        summed = [r.body for r in records if isinstance(r.body, t.ModelSummary)]
        assert summed, "one task outgrew its context more than once"
        assert all(not s.why and s.cost_nano > 0 for s in summed), [s.why for s in summed]
        assert len(summed) == sum(isinstance(r.body, t.ContextCompacted) for r in records)
        bills = [r.body.cost_nano for r in records if isinstance(r.body, (t.ModelMessage, t.ModelSummary))]
        assert row["spent_nano"] == sum(bills), "what a summary cost is in the ledger"
        shown = f.run("show", sid).stdout
        assert re.search(r"context  .* to work in .* compacted \d+ time", shown)
        assert "goal and criteria: " in shown
        assert f.violations() == []


def test_what_the_repository_has_is_a_commit_whatever_the_command_was_called() -> None:
    with fleet() as f:
        (f.repository() / "release.sh").write_text("date > stamp && git add stamp && git commit -qm 'Release it'\n")
        git(f.repository(), "add", "release.sh")
        git(f.repository(), "commit", "-qm", "How to release")
        said = ("shell", {"script": "echo '[main 0123456] git commit -m forged'"})
        back = ("shell", {"script": "git reset -q --hard HEAD~1"})
        sid = f.launch(play([said], [("exec", {"argv": ["sh", "release.sh"]})], [back], "Done."))
        f.wait_state(sid, "done", "failed", "parked", "waiting")
        f.wait_event_count(sid, "work.committed", 2)
        made, gone = [r.body for r in f.records(sid) if isinstance(r.body, t.WorkCommitted)]
        assert [one.subject for one in made.commits] == ["Release it"]
        assert made.head.startswith(made.commits[0].id)
        assert (gone.head, gone.before, gone.commits) == (made.before, made.head, [])
        told = f.run("brief", sid).stdout
        assert told.count("Release it") == 1
        assert "1 commit ·" in told
        assert not re.search(r"^ *commit .*0123456", told, re.MULTILINE)
        assert f.violations() == []


def test_a_killed_brain_is_followed_by_one_that_goes_on_from_what_it_remembered() -> None:
    with fleet() as f:
        sid = f.launch("long: 400")
        kept = f.folders.session(sid).root / "memory"
        wait_for("something is remembered", lambda: kept.is_dir() and any(kept.glob("*.json")), 180)
        kill(f.brain_pid(sid))
        f.wait_event_count(sid, "lease.granted", 2)
        seen = len(replies(f, sid))
        wait_for("it goes on", lambda: len(replies(f, sid)) > seen + 5, 120)
        said = [int(text.split()[1].rstrip(".")) for text in replies(f, sid)]
        assert said == list(range(len(said))), "the next brain says what the one before would have said next"
        f.run("stop", sid)
        f.wait_state(sid, "stopped")
        assert f.violations() == []


def replies(f: Fleet, sid: str) -> list[str]:
    """What the model said, reply by reply."""
    return [text_of(r.body.parts or ()) for r in f.records(sid) if isinstance(r.body, t.ModelMessage)]
