"""The supervisor's pure parts: waking, backoff, names, credentials, what is remembered of a log, outcomes of
interrupted writes.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections import deque
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.actions.action import from_wire
from harness.domain.unsnapshotted import ANY
from harness.events import types as t
from harness.projections.apply import advance, fold
from harness.projections.state.session_state import SessionState
from harness.protocol.config.credential import Credential
from harness.protocol.paths import STATE_VERSION
from harness.protocol.session_names import is_session_id
from harness.supervisor import guardian, state_folder
from harness.supervisor.base import ids
from harness.supervisor.base.errors import OpError, for_now, out_of_space
from harness.supervisor.calls.doubt import file_outcome
from harness.supervisor.calls.queue import cards
from harness.supervisor.endpoints.credentials import Credentials, fingerprint
from harness.supervisor.fleet.call_records import Track, signature
from harness.supervisor.fleet.subsystem_state import Restarts, Work
from harness.supervisor.sessions.begin.launch_request import check, parse
from harness.views.launch_request import LaunchRequest
from harness.workspace.git.errors import GitFailed

TS = "2026-01-02T03:04:05.000Z"
NOW = 1_767_323_045.0


def state(*bodies: t.Body) -> SessionState:
    return fold(t.Record(i, TS, "test", 0, b) for i, b in enumerate(bodies))


PROPOSED = t.ToolProposed(call_id="c2.0", tool="exec", ref="toolu_1", input={"argv": ["true"]})


# -- restarts --------------------------------------------------------------------------------------


WORKED: list[t.Body] = [
    t.ToolEnded(call_id="c2.0", status="ok"),
    t.EvaluationStarted(
        cycle=1, cycles=3, model="m", role="r", rubric="v", case=t.BlobRef(sha="0" * 64, bytes=1), criteria=[]
    ),
    t.EvaluationEnded(cycle=1, cycles=3, model="m", rubric="v", verdict="satisfied", summary="", findings=[]),
    t.PlanFlipped(entry="F-001", passes=True, why="", calls=[]),
]
CAME_BACK: list[t.Body] = [
    t.KeeperStarted(pid=7, start=1, boot="b"),
    t.LeaseEnded(gen=1, reason="its keeper is gone"),
    t.LeaseGranted(gen=2, epoch=1, pid=8, start=1, boot="b"),
    t.ToolStarted(call_id="c2.0", action_hash="h", effect="contained"),
    t.ToolInDoubt(call_id="c2.0", why="the keeper died"),
]


@pytest.mark.parametrize(("between", "given_up"), [(CAME_BACK, True), ([*CAME_BACK, *WORKED[:1]], False)])
def test_a_session_whose_keeper_dies_again_and_again_is_given_up_unless_it_gets_on(
    between: list[t.Body], given_up: bool
) -> None:
    work = Work()
    track = Track()
    seq = 0
    found = []
    for fall in range(6):
        for body in between:
            track.note(SessionState(), t.Record(seq, TS, "test", 1, body))
            seq += 1
        work.got(track.done_seq)
        found.append(work.keeper_falls.add(float(fall)))
    assert any(found) == given_up


@pytest.mark.parametrize("body", WORKED, ids=lambda b: b.TYPE)
def test_what_a_judge_said_and_what_passed_is_done_and_need_not_be_done_again(body: t.Body) -> None:
    track = Track()
    track.note(SessionState(), t.Record(5, TS, "test", 1, body))
    assert track.done_seq == 5


def test_guardian_backs_off_and_never_gives_up() -> None:
    deaths: deque[float] = deque()
    waits = []
    for i in range(12):
        deaths.append(float(i))
        waits.append(guardian.delay(deaths, float(i), 0.0))
    assert waits[:4] == pytest.approx([0.1, 0.2, 0.4, 0.8])
    assert max(waits[:9]) <= 10.0
    assert waits[9:] == [60.0] * 3
    assert guardian.delay(deque([0.0]), 100.0, 0.0) == pytest.approx(0.1)


def test_three_falls_within_a_minute_are_too_many() -> None:
    falls = Restarts()
    assert [falls.add(x) for x in (0, 30, 61, 62)] == [False, False, False, True]
    assert falls.backoff() <= 60


# -- names -----------------------------------------------------------------------------------------


def test_session_ids_sort_by_time_and_are_recognised() -> None:
    made = [ids.session_id(1_700_000_000 + 100 * i) for i in range(200)]
    assert made == sorted(made)
    assert all(is_session_id(sid) for sid in made)
    assert not is_session_id("../../etc/x")


@given(st.text())
def test_slug_is_a_safe_branch_part(text: str) -> None:
    made = ids.slug(text)
    assert 0 < len(made) <= 24
    assert all(c.isascii() and (c.isalnum() or c == "-") for c in made)


# -- credentials -----------------------------------------------------------------------------------


def test_credentials_live_in_the_memfd_and_prefer_what_was_not_rejected() -> None:
    fd = os.memfd_create("test")
    one = Credential("http://a", "k1")
    two = Credential("http://a", "k2")
    other = Credential("http://b", "k3")
    first = Credentials(fd)
    name = first.add(one)
    first.add(other)
    again = Credentials(fd)
    assert again.find("http://a", name, None) == one
    assert again.find("http://a", "unknown", None) == one
    assert again.find("http://c", name, None) is None
    assert again.find("http://c", "", Credential("http://c", "k")) == Credential("http://c", "k")
    again.mark_bad(name)
    assert again.find("http://a", name, None) == one, "a rejected key is still better than none"
    again.add(two)
    assert again.find("http://a", name, None) == two
    again.forgive()
    assert again.find("http://a", name, None) == one
    assert fingerprint(one) != fingerprint(two)
    assert "k1" not in repr(again.find("http://a", name, None))
    os.close(fd)


# -- the log's memory ------------------------------------------------------------------------------


def run(track: Track, *bodies: t.Body) -> SessionState:
    s = SessionState()
    for i, body in enumerate(bodies):
        record = t.Record(i, TS, "test", 0, body)
        track.note(s, record)
        advance(s, record)
    return s


def test_track_follows_a_call_and_counts_denials() -> None:
    track = Track()
    bodies: list[t.Body] = []
    for i in (1, 2):
        call = f"c{i}.0"
        bodies += [
            t.ToolProposed(call_id=call, tool="exec", ref="toolu_1", input={"argv": ["x"], "why": f"reason {i}"}),
            t.ToolJudged(call_id=call, action_hash="h", verdict="ask", rule="r", reason="", policy="p"),
            t.ApprovalRequested(
                approval_id=f"a{i}", kind="tool", title="x", options=["deny"], call_id=call, action_hash="h"
            ),
            t.ApprovalDecided(
                approval_id=f"a{i}", decision_id=f"d{i}", decision="deny", call_id=call, action_hash="h", message="no"
            ),
            t.ToolEnded(call_id=call, status="denied"),
        ]
    s = run(track, *bodies)
    name = signature(
        t.ToolProposed(call_id="c9.0", tool="exec", ref="toolu_1", input={"argv": ["x"], "why": "another claim"})
    )
    assert track.denials == {name: 2}, "what the model claims makes no other call of it"
    assert track.calls == {} == s.calls.open


def test_track_knows_what_the_newest_kept_state_lacks() -> None:
    def started(snapshot: str, count: int, *names: str) -> t.ToolStarted:
        return t.ToolStarted(
            call_id="c2.0",
            action_hash="h",
            effect="contained",
            snapshot=snapshot,
            left_out=count,
            left_out_names=list(names),
        )

    track = Track()
    assert track.left_out is None
    for body, known in (
        (started("s1", 3, "large"), ("large", ANY)),
        (started("", 0), ("large", ANY)),
        (started("s2", 1, "large"), ("large",)),
        (started("s3", 0), ()),
    ):
        run(track, body)
        assert track.left_out == known


def test_track_forgets_a_verdict_of_a_call_that_was_not_done() -> None:
    track = Track()
    run(
        track,
        PROPOSED,
        t.ToolJudged(call_id="c2.0", action_hash="h", verdict="allow", rule="r", reason="", policy="p"),
        t.ToolStarted(call_id="c2.0", action_hash="h", effect="read"),
        t.ToolInDoubt(call_id="c2.0", why="keeper died"),
        t.ToolResolved(call_id="c2.0", resolution="confirmed_not_done"),
    )
    assert track.calls["c2.0"].judged is None


# -- interrupted writes ----------------------------------------------------------------------------


def test_an_interrupted_write_is_settled_by_the_file(tmp_path: Path) -> None:
    sha = hashlib.sha256(b"new").hexdigest()
    write = {"kind": "file", "tool": "write_file", "cwd": str(tmp_path), "path": "f", "content_sha": sha}
    action = from_wire(write)
    assert file_outcome(action, {"content": "new"})[0] == "confirmed_not_done"
    (tmp_path / "f").write_text("new")
    assert file_outcome(action, {"content": "new"})[0] == "confirmed_done"
    edit = from_wire({"kind": "file", "tool": "edit_file", "cwd": str(tmp_path), "path": "f"})
    assert file_outcome(edit, {"old": "old", "new": "new"})[0] == "confirmed_done"
    assert file_outcome(edit, {"old": "new", "new": "newer"})[0] == "confirmed_not_done"
    assert file_outcome(edit, {"old": "a", "new": "b"})[0] == "unknown_told_model"
    (tmp_path / "f").unlink()
    assert file_outcome(edit, {"old": "a", "new": "b"})[0] == "unknown_told_model"


# -- cards -----------------------------------------------------------------------------------------


def title(fields: dict[str, Any]) -> str:
    return cards.title(from_wire({"tool": "exec", "url": "/r", **fields}))


def test_titles_quote_what_would_run() -> None:
    assert title({"kind": "exec", "argv": ["rm", "a b"]}) == "rm 'a b'"
    assert title({"kind": "shell", "script": "one\ntwo\nthree"}) == "one … (+2 lines)"
    assert title({"kind": "shell", "script": "#!/bin/sh\nset -e\n\n# a note\nmake all\n"}) == "make all … (+4 lines)"
    assert title({"kind": "shell", "script": "set -e; rm x\nmake"}) == "set -e; rm x … (+1 line)"
    assert title({"kind": "shell", "script": "# nothing\n# at all"}) == "# nothing … (+1 line)"
    assert (
        title({"kind": "push", "remote": "origin", "refspecs": [["0" * 40, "refs/heads/x", "absent"]]})
        == "push to origin: refs/heads/x"
    )
    assert len(title({"kind": "shell", "script": "x" * 1000})) == 200


# -- launching -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"goal": "  "}, "bad_goal"),
        ({"repo": "relative"}, "no_repo"),
        ({"repo": "/nonexistent/x"}, "no_repo"),
        ({"repo": f"/{'x' * 5000}"}, "no_repo"),
        ({"checks": [""]}, "bad_check"),
        ({"name": "a\x1b[31m"}, "bad_name"),
        ({"caps": {"usd_nano": -1}}, "bad_caps"),
        ({"evidence_rounds": -1}, "bad_request"),
        ({"evidence_rounds": 21}, "bad_request"),
    ],
)
def test_launch_says_what_is_wrong(tmp_path: Path, change: dict[str, object], code: str) -> None:
    with pytest.raises(OpError) as caught:
        check(parse({"repo": str(tmp_path), "goal": "g", **change}))
    assert caught.value.code == code
    with pytest.raises(OpError) as caught:
        check(LaunchRequest(repo=str(tmp_path), goal="g"))
    assert (caught.value.code, str(caught.value).count("git init")) == ("not_git", 1), "what to do is said once"


def test_launch_names_the_wrong_field() -> None:
    with pytest.raises(OpError, match="checks"):
        parse({"repo": "/x", "goal": "g", "checks": "true"})


# -- the state folder ------------------------------------------------------------------------------


def test_state_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    state_folder.check_version(tmp_path)
    state_folder.check_version(tmp_path)
    (tmp_path / "VERSION").write_text(json.dumps({"format": STATE_VERSION + 1}))
    with pytest.raises(state_folder.Refused, match="newer"):
        state_folder.check_version(tmp_path)
    (tmp_path / "VERSION").write_text("?")
    with pytest.raises(state_folder.Refused, match="does not say"):
        state_folder.check_version(tmp_path)


def test_memory_and_threads_are_waited_for_as_open_files_are() -> None:
    for lack in (MemoryError(), RuntimeError("can't start new thread"), OSError(errno.EMFILE, "")):
        later = for_now(lack, "a step of it")
        assert later is not None
        assert later.trouble.kind == "scarce"
    assert for_now(RuntimeError("a defect"), "a step of it") is None


def test_another_git_at_work_is_waited_for() -> None:
    said = (
        "fatal: Unable to create '/r/.git/refs/heads/a.lock': File exists.\n\nAnother git process seems to be running"
    )
    later = for_now(GitFailed("update-ref", 128, said), "its commits cannot be published")
    assert later is not None
    assert later.trouble.kind == "locked"


@pytest.mark.parametrize(
    ("said", "full"),
    [
        ("fatal: sha1 file '/s/git/index.lock' write error. Out of diskspace", True),
        ("error: unable to write file README.md\nfatal: Could not reset index file to revision 'HEAD'.", True),
        ("fatal: cannot create directory at 'src': No space left on device", True),
        ("fatal: cannot update ref 'refs/heads/a': couldn't write '/r/.git/refs/heads/a.lock'", True),
        ("fatal: bad object HEAD", False),
    ],
)
def test_git_says_in_its_own_words_that_the_disk_is_full(said: str, full: bool) -> None:
    assert out_of_space(GitFailed("worktree", 128, said)) is full
