"""The soak notices what it is there for: each of its checks fails on evidence that was doctored, and a fleet at peace
passes all of them.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.linux.proc import alive
from harness.simulator.script import Result
from tests.fleetlib import wait_for
from tests.soak.__main__ import calm, close, settled, table
from tests.soak.checks import Evidence, SessionEvidence, judge, tally
from tests.soak.evidence import damage, effect_lines, gather, told_lines
from tests.soak.scenarios.worker import WIDTH, how, lines_of
from tests.soak.troubles import TROUBLES
from tests.soak.world import KINDS, send, world

DONE, DOUBTED, UNHEARD = (f"work-1 {n:05d}.0" for n in range(3))


def clean() -> Evidence:
    """A session that went well, one call of which is in doubt, and a session that was stopped during a call."""
    ended = SessionEvidence(
        "a",
        "work-1",
        effects=[DONE, DOUBTED],
        told={DONE: "ok", DOUBTED: "unknown"},
        logged={DONE: "ok", DOUBTED: "resolved"},
        in_doubt=1,
        state="done",
        finished=True,
        bill_nano=700,
        settled_nano=600,
        unknown_nano=500,
    )
    stopped = SessionEvidence(
        "b",
        "raced-2",
        effects=[UNHEARD],
        told={UNHEARD: ""},
        logged={UNHEARD: "open"},
        state="stopped",
        stop_asked=True,
        stop_acknowledged=True,
        stop_recorded=True,
        stopped=True,
        after_stop=["lease.ended", "session.ended"],
    )
    return Evidence([ended, stopped], total_bill_nano=700)


def kinds(e: Evidence) -> list[str]:
    return [v.kind for v in judge(e)]


def test_what_went_well_is_quiet() -> None:
    assert judge(clean()) == []


def doctored(change: Callable[[Evidence, SessionEvidence, SessionEvidence], object]) -> Evidence:
    e = clean()
    change(e, *e.sessions)
    return e


DOCTORED: list[tuple[str, Callable[[Evidence, SessionEvidence, SessionEvidence], object]]] = [
    ("repeated", lambda _e, s, _: s.effects.append(DONE)),
    ("repeated", lambda _e, s, _: s.effects.append(DOUBTED)),
    ("lost", lambda _e, s, _: s.effects.remove(DONE)),
    ("lost", lambda _e, _, s: (s.effects.clear(), s.logged.update({UNHEARD: "ok"}))),
    ("unasked", lambda _e, s, _: s.effects.append("nobody asked for this")),
    ("denied", lambda _e, s, _: s.told.update({DOUBTED: "not_run"})),
    ("denied", lambda _e, _, s: s.logged.update({UNHEARD: "refused"})),
    ("denied", lambda _e, _, s: s.logged.clear()),
    ("stuck", lambda _e, s, _: (setattr(s, "finished", False), setattr(s, "state", "parked"))),
    ("failed", lambda _e, s, _: setattr(s, "state", "failed")),
    ("unasked stop", lambda _e, _, s: (setattr(s, "stop_asked", False), setattr(s, "stop_acknowledged", False))),
    ("undone stop", lambda _e, _, s: s.after_stop.append("lease.granted")),
    ("undone stop", lambda _e, _, s: s.after_stop.append("tool.started")),
    ("undone stop", lambda _e, _, s: (setattr(s, "stopped", False), s.open_requests.append(("tool", "x")))),
    ("undone stop", lambda _e, _, s: (setattr(s, "stop_recorded", False), setattr(s, "finished", True))),
    ("alive", lambda _e, _, s: s.alive.append("keeper 12")),
    ("alive", lambda _e, s, _: s.alive.append("brain 13")),
    ("ledger", lambda _e, s, _: setattr(s, "settled_nano", 701)),
    ("ledger", lambda _e, s, _: setattr(s, "unknown_nano", 99)),
    ("ledger", lambda e, _s, _: setattr(e, "total_bill_nano", 701)),
    ("orphaned", lambda _e, s, _: setattr(s, "held_nano", 1)),
    ("question", lambda _e, s, _: s.questions.append(("restart", "why"))),
    ("invariant", lambda e, _s, _: e.invariants.append("I2")),
    ("damage", lambda e, _s, _: e.damage.append("a log")),
    ("leftover", lambda e, _s, _: e.leftovers.append("a process")),
    ("soak", lambda e, _s, _: e.broken.append("kills broke off")),
]


@pytest.mark.parametrize(("kind", "change"), DOCTORED, ids=[f"{n}-{kind}" for n, (kind, _) in enumerate(DOCTORED)])
def test_each_check_can_fail(kind: str, change: Callable[[Evidence, SessionEvidence, SessionEvidence], object]) -> None:
    assert kinds(doctored(change)) == [kind]


def test_a_question_is_counted_even_when_it_was_answered_since() -> None:
    e = doctored(lambda _e, s, _: s.questions.extend([("restart", "x"), ("auth", "y"), ("restart", "z")]))
    assert tally(e)["questions"] == "3 (2 restart, 1 auth)"


def test_effects_are_read_by_their_width(tmp_path: Path) -> None:
    path = tmp_path / "effects.txt"
    assert effect_lines(path) == []
    whole = lines_of("work-1", 0)[0]
    assert len(whole) == WIDTH - 1
    path.write_text(f"{whole}\n{whole}\ntorn")
    assert effect_lines(path) == [whole, whole, "torn"]


def test_notes_keep_what_was_told_first(tmp_path: Path) -> None:
    path = tmp_path / "notes.jsonl"
    assert told_lines(path) == {}
    path.write_text(
        "\n".join(
            map(
                json.dumps,
                [{"asked": "a"}, {"asked": "b"}, {"told": "a", "how": "unknown"}, {"told": "a", "how": "ok"}],
            )
        )
    )
    assert told_lines(path) == {"a": "unknown", "b": ""}


def test_what_a_result_says_is_heard() -> None:
    assert how(Result("shell", {}, "(no output)", False)) == "ok"
    assert how(Result("shell", {}, "Interrupted, outcome unknown: inspect before you repeat it.", True)) == "unknown"
    assert how(Result("shell", {}, "[the call was refused; nothing ran]", True)) == "not_run"


@pytest.mark.sandbox
@pytest.mark.timeout(240)
def test_a_fleet_at_peace_passes_and_a_doctored_one_does_not() -> None:
    """The same looks at a real fleet: nothing is wrong with it until its effects, its notes or a process are tampered
    with.
    """
    with world(1, disk=False) as w:
        sid = w.launch("work", 3)
        other = w.launch("raced", 1000)
        notes = [w.notes / f"{name}.jsonl" for name in ("work-1", "raced-2")]
        wait_for("results of both", lambda: all(any(told_lines(path).values()) for path in notes))
        found = w.census()
        assert {kind for kind in KINDS if found[kind]} >= {
            "guardian",
            "supervisor",
            "keeper fork server",
            "keeper",
            "brain fork server",
            "brain",
            "vault or monitor",
        }
        wait_for(
            "a call and its sandbox",
            lambda: {"runner", "tool"} <= {kind for kind, group in w.census().items() if group},
        )
        assert w.desire(other, "stopped") == ""
        calm(w)
        e = settled(w)
        assert judge(e) == [], table(w, e, 0, [])
        asked = sum(len(s.told) for s in e.sessions)
        assert asked >= 4
        assert tally(e)["effects found"] == str(sum(len(s.effects) for s in e.sessions))

        worktree = w.fleet.folders.worktrees / sid
        effects = (worktree / "effects.txt").read_text()
        (worktree / "effects.txt").write_text(effects + effects[-WIDTH:])
        assert kinds(gather(w)) == ["repeated"]
        (worktree / "effects.txt").write_text(effects[WIDTH:])
        assert kinds(gather(w)) == ["lost"]
        (worktree / "effects.txt").write_text(effects)
        left = subprocess.Popen(["sleep", "600"], env={**os.environ, "SOAK": str(w.fleet.root)})
        try:
            close(w, e)
            assert [v.kind for v in judge(e)] == ["leftover"]
        finally:
            left.kill()
            left.wait()
        segment = max((w.fleet.folders.session(sid).log).glob("*.jsonl"))
        data = bytearray(segment.read_bytes())
        data[len(data) // 2] ^= 1
        segment.write_bytes(data)
        assert len(damage(w)) == 1


def test_a_signal_reaches_only_whom_it_is_for() -> None:
    from harness.linux.proc import identify

    process = subprocess.Popen(["sleep", "600"])
    try:
        who = identify(process.pid)
        assert who is not None
        assert not send(who._replace(start=who.start + 1), signal.SIGKILL)
        assert alive(who)
        assert send(who, signal.SIGKILL)
        process.wait(10)
        assert not send(who, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()


def test_every_trouble_has_its_own_dice() -> None:
    from tests.soak.world import World

    first, again = (World(None, Path(), seed) for seed in (7, 7))  # type: ignore[arg-type]
    assert {name: first.dice(name).random() for name in TROUBLES} == {
        name: again.dice(name).random() for name in TROUBLES
    }
    assert len({first.dice(name).random() for name in TROUBLES}) == len(TROUBLES)
