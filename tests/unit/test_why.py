"""Why a file is as it is, from a log alone: its changes, what belongs to each, with and without the index."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from harness.eventlog.index import OffsetIndex
from harness.eventlog.writer import LogWriter
from harness.events import types as t
from harness.events.message_parts import Text
from harness.reports import touched
from harness.reports.why import CALL, COMMIT, Change, History


class Told:
    """A log written by hand."""

    def __init__(self, root: Path) -> None:
        self.folder = root / "log"
        self.index = root / "touched"
        self.folder.mkdir(mode=0o700)
        self.writer = LogWriter.open(self.folder, "whytestlog")
        self.seq = -1

    def add(self, *bodies: t.Body) -> int:
        for body in bodies:
            self.seq = self.writer.append(body.TYPE, msgspec.to_builtins(body), actor="harness")
        self.writer.commit(sync=False)
        return self.seq

    def call(
        self, tool: str, given: dict[str, object], *, changed: Iterable[str] = (), why: str = "", **more: object
    ) -> str:
        """A call from its reply to its end; its id."""
        worked = list(more.get("worked", ()))  # type: ignore[call-overload]
        reply = t.ModelMessage(
            request_id="r",
            message_id="m",
            model="x",
            stop="calls",
            usage=t.Usage(),
            cost_nano=0,
            parts=[Text("I look.")],
        )
        call = f"c{self.add(reply)}.0"
        self.add(
            t.ToolProposed(call_id=call, tool=tool, ref="u", input=given, claim=why),
            t.ToolJudged(
                call_id=call, action_hash="h", verdict="allow", rule="inside-the-sandbox", reason="", policy="p"
            ),
            t.ToolStarted(
                call_id=call,
                action_hash="h",
                effect="contained",
                snapshot="s1.x",
                worked=len(worked),
                worked_names=worked,
            ),
            t.ToolEnded(call_id=call, status=str(more.get("status", "ok")), files_changed=list(changed)),
        )
        return call

    def why(self, path: str) -> list[Change]:
        log = OffsetIndex(self.folder)
        try:
            return list(History(log, self.folder, self.index, path).changes())
        finally:
            log.close()


@pytest.fixture(params=["read", "indexed", "half indexed"])
def told(request: pytest.FixtureRequest, tmp_path: Path) -> Told:
    made = Told(tmp_path)
    how = request.param
    add = made.add

    def adding(*bodies: t.Body) -> int:
        seq = add(*bodies)
        if how == "indexed" or (how == "half indexed" and seq < 6):
            touched.extend(made.folder, made.index)
        return seq

    made.add = adding  # type: ignore[method-assign]
    return made


def _facts(change: Change) -> dict[str, str]:
    return {fact.what: fact.text for fact in change.facts}


def test_a_call_of_a_file_tool_with_all_that_belongs_to_it(told: Told) -> None:
    told.add(t.IterationStarted(n=1, entry="T-1", attempt=2, digest="…"))
    call = told.call("edit_file", {"path": "src/a.py", "old": "1", "new": "2"}, changed=["src/a.py"], why="off by one")
    told.call("read_file", {"path": "src/a.py"})
    told.add(t.WorkCommitted(head="a" * 40, before="b" * 40, commits=[t.Commit("aaaaaaa", "fix")], files=["src/a.py"]))
    (change,) = told.why("src/a.py")
    assert (change.call_id, change.did, change.commit) == (call, "edit src/a.py", "a" * 40)
    said = _facts(change)
    assert said["why"] == "off by one"
    assert {fact.what for fact in change.facts if fact.claim} == {"why", "said"}
    assert said["task"] == "T-1, attempt 2"
    assert said["policy"] == "allow by rule inside-the-sandbox"
    assert "aaaaaaa" in said["commit"]


def test_a_commit_of_what_no_call_is_known_to_have_changed_stands_for_itself(told: Told) -> None:
    told.call("write_file", {"path": "a", "content": "1"}, changed=["a"])
    told.add(t.WorkCommitted(head="a" * 40, before="b" * 40, commits=[t.Commit("aaaaaaa", "one")], files=["a", "z"]))
    told.add(t.WorkCommitted(head="c" * 40, before="a" * 40, commits=[t.Commit("ccccccc", "two")], files=["a"]))
    assert [(one.kind, one.commit[:1]) for one in told.why("a")] == [(COMMIT, "c"), (CALL, "a")]
    assert [one.did for one in told.why("z")] == ["commit aaaaaaa one"]


def test_a_command_is_known_by_the_state_before_the_next_call(told: Told) -> None:
    call = told.call("shell", {"script": "sed -i s/1/2/ src/a.py"})
    told.call("shell", {"script": "true"}, worked=["src/a.py"])
    (change,) = told.why("src/a.py")
    assert change.call_id == call
    assert "another file" in _facts(change)["seen"]


def test_what_a_person_decided_is_named_with_its_request(told: Told) -> None:
    reply = told.add(t.UserMessage(text="go"))
    call = f"c{reply}.0"
    told.add(
        t.ToolProposed(call_id=call, tool="exec", ref="u", input={"argv": ["make"]}),
        t.ToolJudged(call_id=call, action_hash="h", verdict="ask", rule="leaves", reason="", policy="p"),
        t.ApprovalRequested(approval_id="a2222222", kind="tool", title="make", options=["allow"], call_id=call),
        t.ApprovalDecided(
            approval_id="a2222222", decision_id="d", decision="allow", call_id=call, by=t.By(client="cli")
        ),
        t.ToolStarted(call_id=call, action_hash="h", effect="irreversible", snapshot="s1.x"),
        t.ToolEnded(call_id=call, status="ok", files_changed=["out.txt"]),
    )
    (change,) = told.why("out.txt")
    assert "a2222222 allowed" in _facts(change)["decided"]


def test_an_undo_is_said_of_the_changes_that_it_took_back_and_of_no_later_one(told: Told) -> None:
    first = told.call("write_file", {"path": "a", "content": "1"}, changed=["a"])
    told.add(t.UndoStarted(undo_id="u1", call_id=first, snapshot="s1.x", before="s2.x"))
    told.call("write_file", {"path": "a", "content": "2"}, changed=["a"])
    later, earlier = told.why("a")
    assert "undone" not in _facts(later)
    assert "u1" in _facts(earlier)["undone"]


def test_a_write_that_was_refused_or_failed_changed_nothing(told: Told) -> None:
    told.call("write_file", {"path": "a", "content": "1"}, status="error")
    assert told.why("a") == []


def test_a_name_that_is_part_of_another_is_another(told: Told) -> None:
    told.call("write_file", {"path": "lib/a.py", "content": "1"}, changed=["lib/a.py"])
    told.call("write_file", {"path": 'b "c".py', "content": "1"}, changed=['b "c".py'])
    assert told.why("a.py") == []
    assert len(told.why('b "c".py')) == 1


def test_an_index_of_another_log_and_a_torn_one_are_ignored(tmp_path: Path) -> None:
    told = Told(tmp_path)
    call = told.call("write_file", {"path": "a", "content": "1"}, changed=["a"])
    touched.extend(told.folder, told.index)
    whole = told.index.read_bytes()
    for data in (b"", whole[:-5], whole.replace(b"=", b"=0"), b"rubbish\n", whole + b'99 p"a"\n99 =ff'):
        told.index.write_bytes(data)
        assert [one.call_id for one in told.why("a")] == [call]
        touched.extend(told.folder, told.index)
        assert told.index.read_bytes().startswith(whole)
