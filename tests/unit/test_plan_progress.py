"""An entry passes by what the harness saw of its checks, and by nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.plan.files.formats import read
from harness.plan.progress import Flip, Seen, Wanted, flips, standing, wanted

PLAN = json.dumps(
    [
        {"description": "A", "steps": ["Run `a` - exits with code 0", "Run `b` - exits with code 0"], "passes": False},
        {"description": "B", "steps": ["Run `b` - exits with code 0", "It works"], "passes": False},
        {"description": "C", "steps": [], "passes": True},
    ],
    indent=2,
)


def test_what_decides_an_entry() -> None:
    a, b, c = (wanted(entry) for entry in read(PLAN.encode()).entries)
    assert (a.checks, a.undecided) == (("a", "b"), 0)
    assert (b.checks, b.undecided) == (("b",), 1)
    assert (c.checks, c.undecided, c.passes) == ((), 1, True)


ENTRIES = st.builds(
    Wanted,
    id=st.sampled_from(["1", "2"]),
    title=st.just("t"),
    checks=st.lists(st.sampled_from("abc"), unique=True, max_size=3).map(tuple),
    undecided=st.integers(0, 1),
    passes=st.booleans(),
)
VERDICTS = st.dictionaries(st.sampled_from("abc"), st.builds(Seen, st.booleans(), st.sampled_from(["c1.0", "c2.0"])))


@given(ENTRIES, VERDICTS)
def test_an_entry_turns_true_on_passed_checks_alone_and_false_on_a_failed_one(
    entry: Wanted, verdicts: dict[str, Seen]
) -> None:
    due = flips([entry], verdicts)
    known = [verdicts[c] for c in entry.checks if c in verdicts]
    every = bool(entry.checks) and len(known) == len(entry.checks) and all(one.passed for one in known)
    if not entry.passes:
        assert bool(due) is (every and not entry.undecided)
    else:
        assert bool(due) is any(not one.passed for one in known)
    assert all(flip.passes is not entry.passes and flip.calls and flip.why for flip in due)


def test_the_text_follows_what_passes() -> None:
    plan = read(PLAN.encode())
    made = standing(plan, {"F-001": True, "F-003": False})
    assert [e.passes for e in made.entries] == [True, False, False]
    assert standing(plan, {}).text == PLAN
    assert standing(made, {"F-001": False, "F-003": True}).text == PLAN
    assert flips([wanted(plan.entries[0])], {"a": Seen(True, "c1.0")}) == []
    assert flips([wanted(plan.entries[0])], {"a": Seen(True, "c1.0"), "b": Seen(True, "c1.1")}) == [
        Flip("F-001", True, "2 of 2 checks passed", ("c1.0", "c1.1"))
    ]


@pytest.mark.slow
@pytest.mark.timeout(30)
def test_a_long_plan_is_read_once_however_many_of_it_pass() -> None:
    """It is compared before each check: read once for every entry that passes, 3,000 of them would take minutes."""
    entries = [
        {"description": f"{n}", "steps": [f"Run `{n}` - exits with code 0"], "passes": False} for n in range(3000)
    ]
    plan = read(json.dumps(entries).encode())
    made = standing(plan, {entry.id: True for entry in plan.entries})
    assert made.passed == 3000
    assert made.text == plan.text.replace("false", "true")
