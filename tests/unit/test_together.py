"""One card for several requests: nothing that a card of its own has to show is missing, and what differs is seen."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.actions.action import action_hash, from_wire
from harness.domain.calls.card_facts import CardNotes, Fact, in_detail
from harness.policy.shape import facts_of
from harness.views.session_views import ApprovalView
from tests.tui.test_widget_approval_card import PUSH, SCRIPT, WRITE, view_of
from widgets.card.card_text import card
from widgets.card.group_card import together

BASES: list[dict[str, Any]] = [PUSH, SCRIPT, WRITE]
words = st.text(max_size=20)


@st.composite
def members(draw: st.DrawFn) -> list[ApprovalView]:
    """Requests with one kind of action that differ here and there, some of them with folded facts."""
    base = draw(st.sampled_from(BASES))
    found = []
    for at in range(draw(st.integers(2, 5))):
        action = {**base, "session": f"{at}" * 10, "cwd": f"/state/worktrees/{at * 11111111}"}
        if draw(st.booleans()):
            action["env"] = {"PATH": draw(st.sampled_from(["/usr/bin", "/tmp"]))}
        if "script" in base:
            action["script"] = draw(words)
        if "argv" in base:
            action["argv"] = ["git", "push", draw(words)]
        unusual = draw(st.lists(st.sampled_from(list(Fact)), unique=True))
        notes = CardNotes(facts=facts_of(from_wire(action)), unusual=list(unusual), before=3, goal=draw(words))
        detail = in_detail(notes) if draw(st.booleans()) else {}
        claim = draw(words)
        view = view_of(action, sid=f"{at}" * 10, session_name=f"name{at}", claim=claim, detail=detail)
        found.append(msgspec.structs.replace(view, approval_id=f"a{at}"))
    return found


@given(members())
def test_each_line_that_decides_about_any_of_them_is_on_it(views: list[ApprovalView]) -> None:
    shown = [line.text for line in together(views)]
    for view in views:
        lines, needed = card(view).lines(unfolded=False)
        assert f"  action hash  {action_hash(view.action or {})}" in shown
        for line in lines[1:needed]:
            if line.role in ("fold", "rule") or not line.text:
                continue  # they stand for lines, and divide them
            same = line.text.replace(view.sid, "*")
            here = {text.replace(one.sid, "*") for text in shown for one in views}
            assert line.text in shown or same in here, line


@given(members(), words)
def test_any_difference_is_seen(views: list[ApprovalView], other: str) -> None:
    view = views[0]
    action = {**(view.action or {}), "env": {"PATH": "/usr/bin", "X": f"y{other}"}}
    changed = msgspec.structs.replace(view, action=action, action_hash=action_hash(action))
    assert together(views) != together([changed, *views[1:]])
    shown = "\n".join(line.text for line in together([changed, *views[1:]]))
    assert "X=" in shown, "a folded fact that differs is shown"


def test_what_is_the_same_stands_once() -> None:
    notes = in_detail(CardNotes(facts=facts_of(from_wire(PUSH)), before=3))
    views = [view_of(PUSH, session_name=name, detail=notes) for name in ("one", "two", "three")]
    shown = [line.text for line in together(views)]
    assert sum("git push origin" in line for line in shown) == 1
    assert shown.count("  nothing else differs") == 3
    assert not any("environment" in line for line in shown), "facts as approved before, and the same for all"


def test_a_job_is_not_shown_as_the_call_that_it_reads_like() -> None:
    views = [view_of({**SCRIPT, "job": job}, session_name=str(job)) for job in (False, True)]
    said = [any("as a job" in line.text for line in together([view, view])) for view in views]
    assert said == [False, True]
    assert any("as a job" in line for line in (line.text for line in together(views)))


def test_commits_that_begin_alike_are_told_apart() -> None:
    pushes = [{**PUSH, "refspecs": [[f"{'9' * 38}{end}", "refs/heads/main", "8" * 40]]} for end in ("aa", "bb")]
    notes = [in_detail(CardNotes(facts=facts_of(from_wire(push)), before=3)) for push in pushes]
    views = [view_of(push, detail=noted) for push, noted in zip(pushes, notes, strict=True)]
    shown = "\n".join(line.text for line in together(views))
    assert "9" * 38 + "aa" in shown
    assert "9" * 38 + "bb" in shown
