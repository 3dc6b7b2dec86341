"""What may be merged, decided from facts alone; where a merge stands, by its records alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.verbs.open import command_of
from app.cli.verbs.sessions import Usage
from harness.events import types as t
from harness.events.work import merge_events as m
from harness.projections.state.merging import MergeState, after, checks_result
from harness.supervisor.sessions.taking.handing_back import able, told
from harness.workspace.git.merge_rules import Situation, refusal

FINE = Situation("s1", "watchfloor/x-s1", "h" * 40, "main", "o" * 40, "/repo", 2)
WORSE = {
    "other_repo": {"foreign": True},
    "no_branch": {"into": ""},
    "not_found": {"onto": ""},
    "own_branch": {"into": "watchfloor/other-s2"},
    "uncommitted": {"uncommitted": ("a", "b")},
    "nothing": {"commits": 0},
    "unrelated": {"related": False},
    "elsewhere": {"elsewhere": "/other"},
    "busy": {"under_way": "a rebase", "busy": "/repo"},
    "dirty": {"dirty": ("mine.txt",)},
}


def test_each_hindrance_is_named_with_a_way_out() -> None:
    assert refusal(FINE) is None
    for code, change in WORSE.items():
        refused = refusal(replace(FINE, **change))  # type: ignore[arg-type]
        assert refused is not None
        assert refused.code == code
        assert refused.message
        assert refused.hint


@given(st.sets(st.sampled_from(sorted(WORSE)), min_size=1))
def test_no_hindrance_hides_behind_another(names: set[str]) -> None:
    seen = FINE
    for name in sorted(names):
        seen = replace(seen, **WORSE[name])  # type: ignore[arg-type]
    refused = refusal(seen)
    assert refused is not None
    assert refused.code in names


def test_names_are_counted_and_cut() -> None:
    refused = refusal(replace(FINE, dirty=("a", "b", "c", "d", "e")))
    assert refused is not None
    assert refused.message == "5 files in /repo are changed and not committed: a, b, c and 2 more"


STARTED = t.MergeStarted(
    merge_id="m1", how=m.MERGE, into="main", repo="/r", onto="o", head="h", result="r", commits=1, checks=1
)
PROPOSED = t.ToolProposed(call_id="c9.0", tool="check", ref="merge m1", input={"command": "make test"})
BODIES: list[t.Body] = [
    STARTED,
    PROPOSED,
    t.ToolProposed(call_id="c10.0", tool="check", ref="", input={"command": "make test"}),
    t.ToolStarted(call_id="c9.0", action_hash="", effect=""),
    t.ToolEnded(call_id="c9.0", status="ok", exit_code=0),
    t.MergeEnded(merge_id="m1", outcome=m.MERGED, into="main", commit="r", head="h"),
    t.MergeEnded(merge_id="m1", outcome=m.CONFLICTS, into="main", conflicts=["a", "b"]),
    t.SessionContinued(),
]


def test_a_check_of_the_result_is_no_criterion_and_no_word_of_a_model() -> None:
    assert (PROPOSED.by_merge, PROPOSED.by_harness, PROPOSED.by_judge) == (True, False, False)
    known = after(after(MergeState(), STARTED), PROPOSED)
    assert known.ran is not None
    assert known.ran.command == "make test"
    assert checks_result(known, BODIES[3])
    assert not checks_result(known, BODIES[2])
    assert not checks_result(MergeState(), BODIES[3])


@given(st.lists(st.sampled_from(BODIES)))
def test_merged_is_what_the_newest_end_says_until_the_session_goes_on(bodies: list[t.Body]) -> None:
    known = MergeState()
    for body in bodies:
        known = after(known, body)
        known.words()
    decisive = [b for b in bodies if isinstance(b, t.MergeStarted | t.MergeEnded | t.SessionContinued)]
    last = decisive[-1] if decisive else None
    assert bool(known.merged) == (isinstance(last, t.MergeEnded) and last.outcome == m.MERGED)


@given(st.lists(st.sampled_from(BODIES)))
def test_what_was_taken_last_is_known_whatever_came_after_it(bodies: list[t.Body]) -> None:
    known = MergeState()
    for body in bodies:
        known = after(known, body)
    merges = [b for b in bodies if isinstance(b, t.MergeEnded) and b.outcome == m.MERGED]
    assert known.taken == (merges[-1] if merges else None)


@given(st.text(), st.lists(st.text(), min_size=1, max_size=40))
def test_what_an_agent_is_told_of_a_conflict_holds_no_control_characters(into: str, files: list[str]) -> None:
    ended = t.MergeEnded(merge_id="m1", outcome=m.CONFLICTS, into=into, how=m.REBASE, conflicts=files)
    text = told(ended, "o" * 40, "")
    assert able(ended)
    assert f"`git rebase {'o' * 40}`" in text
    assert text.isprintable()


def test_only_what_an_agent_can_mend_is_handed_back() -> None:
    assert not able(None)
    assert not able(t.MergeEnded(merge_id="m1", outcome=m.MERGED, into="main"))


def test_what_open_starts_is_never_found_in_the_worktree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command_of({}, editor=False) == ["/bin/sh"]
    (tmp_path / "ed-x").write_text("")
    (tmp_path / "ed-x").chmod(0o755)
    path = f".:bin:{tmp_path}"
    assert command_of({"EDITOR": "ed-x --wait", "PATH": path}, editor=True) == [f"{tmp_path}/ed-x", "--wait", "."]
    assert command_of({"EDITOR": "x", "VISUAL": "ed-x", "PATH": path}, editor=True) == [f"{tmp_path}/ed-x", "."]
    monkeypatch.chdir(tmp_path)
    for editor in ("./vi", "bin/vi", "", "'"):
        with pytest.raises(Usage):
            command_of({"EDITOR": editor, "PATH": "/nowhere"}, editor=True)
    with pytest.raises(Usage, match="no such program"):
        command_of({"EDITOR": "ed-x", "PATH": ".:"}, editor=True)
