"""The record of progress: whatever an agent does to it, earlier entries stay, patterns stand on top, and each task
leaves an entry.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.plan.files import progress_log as log

HEAD = log.header("2026-01-02")
PATTERNS = "## Codebase Patterns\n- Use the helper.\n"
ONE = "## 2026-01-02 - US-001\n- Did it.\n---\n"
TWO = "## 2026-01-03 - US-002\n- Did more.\n---\n"
TITLES = st.text("abc -#\n", max_size=30)
ENTRIES = st.lists(st.builds(lambda n, words: f"## day {n} - E{n}\n- {words!r}\n---\n", st.integers(0, 99), TITLES))


def test_progress_txt_what_is_appended_stays_byte_for_byte() -> None:
    found = log.follow(HEAD + ONE, HEAD + ONE + TWO)
    assert (found.text, found.did, found.added) == (HEAD + ONE + TWO, (), TWO.strip())
    nothing = log.follow(HEAD + ONE, HEAD + ONE)
    assert (nothing.text, nothing.did, nothing.added) == (HEAD + ONE, (), "")


def test_progress_txt_a_truncation_of_old_entries_is_detected_and_put_back() -> None:
    for found in (HEAD + TWO, TWO, HEAD + ONE.replace("Did", "Did not do") + TWO):
        followed = log.follow(HEAD + ONE, found)
        assert followed.did
        assert followed.text.startswith(HEAD + ONE)
        assert "- Did more." in followed.text
        assert "- Did more." in followed.added
    gone = log.follow(HEAD + ONE, None)
    assert (gone.text, gone.did, gone.added) == (HEAD + ONE, ("it was deleted",), "")


def test_codebase_patterns_stand_on_top_may_grow_and_do_not_go() -> None:
    below = log.follow(HEAD + ONE, HEAD + ONE + PATTERNS)
    assert below.text.index(PATTERNS) < below.text.index(ONE)
    assert not below.did
    grown = PATTERNS + "- And this one.\n"
    known = below.text
    more = log.follow(known, known.replace(PATTERNS, grown))
    assert not more.did
    assert "- And this one." in more.text
    removed = log.follow(known, known.replace(PATTERNS, ""))
    assert removed.did == ("its Codebase Patterns were removed",)
    assert PATTERNS in removed.text


def test_an_entry_of_the_harness_names_the_task_on_lines_of_its_own() -> None:
    made = log.entry("2026-01-02 10:00", "US-001", "A\n## title", "passed", "1 of 1 checks passed")
    assert made.split("\n")[0] == "## 2026-01-02 10:00 - US-001"
    assert "A ## title: passed" in made
    assert log.appended("", made) == made
    assert log.follow(HEAD + ONE, log.appended(HEAD + ONE, made)).added == made.strip()


def test_which_file_it_is() -> None:
    assert log.name("features", []) == log.OF_FEATURES
    assert log.name("tasks", []) == log.FILE
    assert log.name("features", [log.FILE]) == log.FILE
    assert log.name("tasks", [log.FILE, log.OF_FEATURES]) == log.FILE


@given(ENTRIES, ENTRIES, st.sampled_from(["", PATTERNS]), st.sampled_from(["", PATTERNS]), st.data())
def test_whatever_is_done_to_it_every_earlier_line_stays(
    old: list[str], new: list[str], before: str, after: str, data: st.DataObject
) -> None:
    known = log.follow("", HEAD + before + "".join(old)).text
    left = data.draw(st.lists(st.sampled_from(old), unique=True)) if old else []
    followed = log.follow(known, HEAD + "".join(left) + after + "".join(new))
    kept = iter(followed.text.split("\n"))
    assert all(text in kept for text in known.split("\n") if text.strip()), "in their order too"
    again = log.follow(followed.text, followed.text)
    assert (again.text, again.did, again.added) == (followed.text, (), "")
    assert len(log.digest(followed.text)) <= 2600
