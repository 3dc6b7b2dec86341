"""What stays of removed sessions on disk, and how one of them is meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.supervisor.sessions import archive
from harness.views import archived
from harness.views.archived import NOTE, Archived, fitting
from harness.views.session_views import SessionRow

ROW = SessionRow("abcdefghij", "fix", "done", "done", "", "", goal="Mend it", spent_nano=7, tokens=3)


def _session(root: Path) -> Path:
    folder = root / "sessions" / ROW.sid
    for name in ("log", "blobs", "git", "vault", "aside"):
        (folder / name).mkdir(parents=True)
        (folder / name / "x").write_text(name)
    (root / "archive").mkdir()
    return folder


def test_log_and_payloads_stay_and_what_served_the_work_goes(tmp_path: Path) -> None:
    folder = _session(tmp_path)
    into = tmp_path / "archive" / ROW.sid
    archive.put(folder, into, archive.note_of(ROW, ["refs/x"], ["y"]))
    archive.tidy(into.parent)
    assert sorted(p.name for p in into.iterdir()) == [NOTE, "aside", "blobs", "log"]
    (one,) = archived.listed(into.parent)
    assert (one.name, one.spent_nano, one.kept, one.lost, one.folder) == ("fix", 7, ("refs/x",), ("y",), str(into))
    assert not folder.exists()


def test_deletions_that_died_are_taken_up_again(tmp_path: Path) -> None:
    folder = _session(tmp_path)
    into = tmp_path / "archive" / ROW.sid
    archive.put(folder, into, archive.note_of(ROW, [], []))
    (into / "git").rename(into / ".discarded-git")
    (into.parent / ".discarded-other" / "deep").mkdir(parents=True)
    assert [one.sid for one in archived.listed(into.parent)] == [ROW.sid]
    archive.tidy(into.parent)
    assert [p.name for p in into.parent.iterdir()] == [ROW.sid]
    assert not (into / ".discarded-git").exists()


@pytest.mark.parametrize("wrong", ["", ".", "..", "../sessions/abcdefghij", "abcdefghi", "fix", "/", "abcdefghij/log"])
def test_only_a_whole_id_is_purged(tmp_path: Path, wrong: str) -> None:
    folder = _session(tmp_path)
    into = tmp_path / "archive" / ROW.sid
    archive.put(folder, into, archive.note_of(ROW, [], []))
    assert not archive.purge(into.parent, wrong)
    assert (into / "log" / "x").read_text() == "log"
    assert archive.purge(into.parent, ROW.sid)
    assert list(into.parent.iterdir()) == []


@pytest.mark.parametrize("text", [None, "", "{", '{"name": "no id"}', '{"sid": 5}', "[" * 5000])
def test_a_note_that_is_no_note_hides_no_session(tmp_path: Path, text: str | None) -> None:
    folder = tmp_path / "abcdefghij"
    folder.mkdir()
    if text is not None:
        (folder / NOTE).write_text(text)
    (one,) = archived.listed(tmp_path)
    assert (one.sid, one.folder) == ("abcdefghij", str(folder))
    assert "note" in one.unread


def test_a_note_cannot_say_that_it_is_another_session(tmp_path: Path) -> None:
    (tmp_path / "abcdefghij").mkdir()
    archived.write(tmp_path / "abcdefghij", Archived(sid="../other", folder="/"))
    (one,) = archived.listed(tmp_path)
    assert (one.sid, one.folder, one.unread) == ("abcdefghij", str(tmp_path / "abcdefghij"), "")


WORDS = st.sampled_from(["", "a", "ab", "abc", "b", "bc"])


@given(st.lists(st.tuples(WORDS.filter(bool), WORDS), unique_by=lambda one: one[0]), WORDS)
def test_an_id_comes_before_a_name_and_that_before_a_beginning(known: list[tuple[str, str]], text: str) -> None:
    notes = [Archived(sid=sid, name=name) for sid, name in known]
    found = {one.sid for one in fitting(notes, text)}
    by_id = {sid for sid, _ in known if sid == text}
    by_name = {sid for sid, name in known if text and name == text}
    beginning = {sid for sid, _ in known if text and sid.startswith(text)}
    assert found == (by_id or by_name or beginning)
    assert {one.sid for one in fitting(notes, text, whole=True)} == (by_id or by_name)
