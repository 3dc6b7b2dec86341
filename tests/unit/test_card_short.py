"""Long listings of a card: the beginning above the rule, and not a line that nobody has to see."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.domain.calls.approval_kind import Request
from harness.domain.calls.card_facts import CardNotes, CommitNote, FileCount, Going, Outgoing, in_detail
from harness.supervisor.calls.queue.comparison import Side, compare, on_card
from harness.views.session_views import NOT_SHOWN, NOTHING_THERE, ApprovalView
from tests.tui.test_widget_approval_card import PUSH, view_of
from widgets.card.card_line import CardLine
from widgets.card.card_text import Card, card
from widgets.card.truncate import Entry, listing, rows_of

BOUND = 20

texts = st.text("ab ", min_size=1, max_size=200)
entries = st.lists(
    st.builds(
        Entry,
        st.builds(CardLine, texts),
        st.lists(st.builds(CardLine, texts), max_size=6).map(tuple),
        st.none() | st.builds(CardLine, texts),
    ),
    max_size=12,
)


@given(entries, st.integers(2, 30))
def test_each_entry_is_whole_in_one_place(found: list[Entry], room: int) -> None:
    short = listing(found, room)
    for one in found:
        assert _in(one.lines, short.above) or _in(one.lines, short.rest), one
    if short.rest:
        first = found[0].brief or found[0].head
        assert rows_of(short.above) <= max(room, rows_of([first]) + 1) + rows_of([max_head(found)])


def max_head(found: list[Entry]) -> CardLine:
    return max((one.head for one in found), key=lambda line: len(line.text))


def _in(lines: list[CardLine], where: list[CardLine]) -> bool:
    return any(where[at : at + len(lines)] == lines for at in range(len(where)))


def above(made: Card) -> list[str]:
    return [line.text for line in made.above]


def needed(made: Card) -> list[str]:
    lines, count = made.lines(unfolded=False)
    return [line.text for line in lines[:count]]


def test_a_push_of_many_commits_begins_with_the_newest_and_all_have_to_be_seen() -> None:
    files = [FileCount(f"f{n}.txt", 1, 0) for n in range(5)]
    commits = [CommitNote(f"{n:02}aaaaaaaa", f"Step {n}", files) for n in range(20)]
    made = card(
        view_of(PUSH, detail=in_detail(CardNotes(outgoing=[Outgoing("refs/heads/feature", True, commits, more=20)])))
    )
    assert len(above(made)) <= BOUND
    assert "  00aaaaaaaa  Step 0  (5 files)" in above(made)
    assert "  and 20 older commits, not listed here" in above(made)
    assert any("more lines of it, below the line" in line for line in above(made))
    seen = needed(made)
    for n in range(20):
        assert f"  {n:02}aaaaaaaa  Step {n}" in seen
    assert seen.count("      f4.txt  +1 -0") == 20


def test_refs_that_get_the_same_are_named_together() -> None:
    one = CommitNote("7dec9de000", "Add it", [FileCount("a.txt", 1, 0)])
    other = CommitNote("8dec9de000", "Add it", [FileCount("a.txt", 1, 0)])
    many = [Outgoing(f"refs/heads/b{n}", True, [one]) for n in range(6)]
    told = above(
        card(view_of(PUSH, detail=in_detail(CardNotes(outgoing=[*many, Outgoing("refs/heads/x", True, [other])]))))
    )
    assert "BRINGS 1 commit to NEW branches b0, b1, b2, b3, b4, b5" in told
    assert "BRINGS 1 commit to NEW branch x" in told


def test_of_what_goes_the_things_that_nothing_else_has_come_first() -> None:
    kept = [Going(f"/kept/{n}", "a folder with 9 files", "git, in HEAD", [f"{m}" for m in range(8)]) for n in range(9)]
    made = card(view_of(PUSH, detail=in_detail(CardNotes(going=[*kept, Going("/only", "a file")]))))
    lines = above(made)
    assert lines[lines.index("GOES AWAY") + 1] == "  /only  a file, nothing is known to have it besides"
    assert len(lines) <= BOUND
    assert all(f"  /kept/{n}  a folder with 9 files, git, in HEAD" in needed(made) for n in range(9))


def test_protected_files_stand_with_what_became_of_them_and_the_whole_below() -> None:
    before = "".join(f"assert f({n}) == {n}\n" for n in range(60))
    names = [f"tests/test_{n}.py" for n in range(12)]
    diff = "\n".join(
        f"diff --git a/{name} b/{name}\n"
        + compare(_side("the original", before), _side("the agent's", before.replace("==", "!=")))
        for name in names
    )
    files = "\n".join(f"{name} was changed" for name in names)
    made = card(
        ApprovalView(
            "a1", "s", "cart", Request.PROTECTED, "many", ["allow"], "high", "", 1, diff=diff, detail={"files": files}
        )
    )
    assert rows_of(made.above) <= BOUND
    assert "  tests/test_0.py was changed: 1,120 bytes → 1,120 bytes, +60 -60" in above(made)
    assert not any(line.startswith("  files") for line in above(made)), "they are named where they are shown"
    for name in names:
        assert any(name in line for line in needed(made))
    assert needed(made).count("  +assert f(7) != 7") == 12


def test_what_stands_behind_a_cut_is_not_taken_for_the_file_that_is_gone() -> None:
    long = "".join(f"assert f({n}) == {n}  # {'x' * 60}\n" for n in range(900))
    diff = "\n".join(
        f"diff --git a/{name} b/{name}\n" + compare(before, after)
        for name, before, after in (
            ("a.py", _side("the original", long), Side(None, f"the agent's: {NOTHING_THERE}")),
            ("b.py", _side("the original", long), _side("the agent's", "")),
        )
    )
    view = ApprovalView("a1", "s", "cart", Request.PROTECTED, "many", ["allow"], "high", "", 1, diff=on_card(diff))
    shown = needed(card(view))
    assert sum(line.startswith("  -assert f(") for line in shown) > 100, "these are another file's"
    assert sum(NOT_SHOWN in line for line in shown) == 1


def _side(whose: str, text: str) -> Side:
    side = Side.of(text.encode())
    return Side(side.body, f"{whose}, {side.words}")
