"""A decision holds for the world it was given in: nothing else of the session runs meanwhile, and what changed is shown
before anything runs.
"""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.events import types as t
from harness.protocol.client import Client, SupervisorError
from harness.protocol.connection.transport import UnixSocket
from tests.fleetlib import Fleet, apart, fleet, kill, make_repository, play, wait_for

pytestmark = pytest.mark.sandbox
BLOCKED = "keeper.before_started:block"


@pytest.fixture
def f(started: Fleet) -> Iterator[Fleet]:
    with apart(started) as part:
        yield furnished(part)


@pytest.fixture
def blocked() -> Iterator[Fleet]:
    """A fleet that is the test's alone; its keepers stand still before a call's start."""
    with fleet() as made:
        made.extra["WATCHFLOOR_FAULT"] = BLOCKED
        yield furnished(made)


def furnished(f: Fleet) -> Fleet:
    make_repository(f.root / "repo", {"Makefile": f"all:\n\t@echo fine >> {f.root / 'ran'}\n", "notes.txt": "keep\n"})
    return f


MAKE: tuple[str, dict[str, Any]] = ("exec", {"argv": ["make", "-s"], "access": "unsandboxed"})


def ran(f: Fleet) -> str:
    """What the worktree's Makefile wrote outside."""
    path = f.root / "ran"
    return path.read_text() if path.exists() else ""


def makefile(f: Fleet, sid: str) -> Path:
    return f.folders.state / "worktrees" / sid / "Makefile"


def swap(f: Fleet, sid: str) -> None:
    makefile(f, sid).write_text(f"all:\n\t@echo swapped >> {f.root / 'ran'}\n")


def changed(f: Fleet) -> list[str]:
    """What a card says of the file that was swapped."""
    lines = f" all:\n-\t@echo fine >> {f.root / 'ran'}\n+\t@echo swapped >> {f.root / 'ran'}"
    return ["Makefile has other content", f"Makefile, before (-) and now (+):\n@@ -1,2 +1,2 @@\n{lines}"]


def asked_anew(f: Fleet, sid: str, first: dict[str, Any]) -> dict[str, Any]:
    """The request that stands in the place of one whose world changed."""

    def look() -> dict[str, Any] | None:
        return next(
            (a for a in f.json("approvals") if a["sid"] == sid and a["approval_id"] != first["approval_id"]), None
        )

    return wait_for("the request to be made anew", look)


def decide(f: Fleet, item: dict[str, Any], **arguments: Any) -> None:
    with Client(UnixSocket(f.folders.supervisor_socket)) as client:
        client.call("decide", approval_id=item["approval_id"], action_hash=item["action_hash"], **arguments)


def places(f: Fleet, sid: str, *kinds: str) -> list[tuple[str, str]]:
    """(type, call) of the records of these types, in their order."""
    return [(r.type, str(getattr(r.body, "call_id", ""))) for r in f.records(sid) if r.type in kinds]


def test_nothing_of_the_turn_runs_before_the_question_is_decided(f: Fleet) -> None:
    change = ("shell", {"script": f"printf 'all:\\n\\t@echo swapped >> {f.root}/ran\\n' > Makefile"})
    sid = f.launch(play([MAKE, change, ("read_file", {"path": "notes.txt"})], "Done."))
    item = f.approval(sid)
    f.wait_event_count(sid, "tool.proposed", 3)
    for _ in range(3):  # the supervisor looks at every session with each of these, and starts whatever may start
        f.run("ls")
        f.run("say", sid, "go on")
        assert places(f, sid, "tool.started", "tool.judged") == [("tool.judged", item["call_id"])]
    f.approve(item["approval_id"])
    f.wait_state(sid, "done")
    assert ran(f) == "fine\n"
    order = places(f, sid, "tool.started", "tool.ended")
    assert order[:2] == [("tool.started", item["call_id"]), ("tool.ended", item["call_id"])]
    assert len(order) == 6
    assert f.violations() == []


def test_nothing_is_asked_while_a_job_could_change_what_is_shown(f: Fleet) -> None:
    job: tuple[str, dict[str, Any]] = ("shell", {"script": "while [ -e notes.txt ]; do sleep 0.02; done", "job": True})
    sid = f.launch(play([job], [MAKE], [("job", {"action": "cancel", "job": "j1"})], [MAKE], "Done."))
    item = f.approval(sid)
    refused, cancelled = [r.body for r in f.records(sid) if isinstance(r.body, t.ToolEnded)][1:]
    assert (refused.status, cancelled.status) == ("refused", "ok")
    assert "not while a job runs (j1)" in refused.preview
    assert ran(f) == ""
    f.approve(item["approval_id"])
    f.wait_state(sid, "done")
    assert ran(f) == "fine\n"
    assert f.violations() == []


def test_a_job_begun_before_an_approved_call_of_its_turn_keeps_it_from_running(f: Fleet) -> None:
    job: tuple[str, dict[str, Any]] = ("shell", {"script": "while [ -e notes.txt ]; do sleep 0.02; done", "job": True})
    sid = f.launch(play([job, MAKE], [("job", {"action": "cancel", "job": "j1"})], "Done."))
    wait_for("the call to end, whoever was asked", lambda: _approved_until(f, sid, "tool.ended", 2))
    assert "not while a job runs (j1)" in [r.body.preview for r in f.records(sid) if isinstance(r.body, t.ToolEnded)][1]
    f.wait_state(sid, "done")
    assert ran(f) == ""
    assert f.violations() == []


def _approved_until(f: Fleet, sid: str, kind: str, count: int) -> bool:
    """True once so many records of this type are there; whatever the session asks before is approved."""
    for item in f.requests():
        if item["sid"] == sid:
            f.approve(item["approval_id"], check=False)
    return sum(r.type == kind for r in f.records(sid)) >= count


def test_a_job_outside_the_sandbox_runs_on_files_that_its_agent_cannot_change(f: Fleet) -> None:
    wait = f"all:\n\t@while [ ! -e {f.root}/go ]; do sleep 0.02; done; cat words >> {f.root}/ran\n"
    repo = make_repository(f.root / "waits", {"Makefile": wait, "words": "fine\n"})
    change = [("shell", {"script": "echo swapped > words"})]
    change += [("write_file", {"path": "words", "content": "swapped\n"})]
    change += [("shell", {"script": "sed -i s/fine/swapped/ words", "job": True})]
    look = ("read_file", {"path": "words"})
    sid = f.launch(play([(MAKE[0], MAKE[1] | {"job": True})], [look], change, "Done."), repo=repo)
    f.approve(f.approval(sid)["approval_id"])
    f.wait_event_count(sid, "tool.ended", 5)
    ends = [r.body for r in f.records(sid) if isinstance(r.body, t.ToolEnded)]
    assert [e.status for e in ends] == ["ok", "ok", "refused", "refused", "refused"]
    assert all("j1 runs outside the sandbox" in e.preview for e in ends[2:])
    (f.root / "go").touch()
    f.wait_state(sid, "done")
    assert ran(f) == "fine\n"
    assert f.violations() == []


def test_a_file_edited_by_hand_meanwhile_is_shown_before_it_runs(f: Fleet) -> None:
    sid = f.launch(play([MAKE], "Done."))
    first = f.approval(sid)
    swap(f, sid)
    told = f.approve(first["approval_id"], check=False)
    second = asked_anew(f, sid, first)
    assert second["detail"]["changed"] == changed(f)
    assert second["action_hash"] != first["action_hash"]
    assert ran(f) == ""
    assert told.returncode == 5
    assert "nothing ran" in told.stdout
    assert f"it is asked again as {second['approval_id']}" in told.stderr
    done = f.approve(second["approval_id"], "--json")
    assert json.loads(done.stdout)["became"] in ("started", "ended")
    f.wait_state(sid, "done")
    assert ran(f) == "swapped\n"
    assert f.violations() == []


def test_what_was_changed_and_put_back_runs_without_another_question(f: Fleet) -> None:
    sid = f.launch(play([MAKE], "Done."))
    first = f.approval(sid)
    text = makefile(f, sid).read_text()
    swap(f, sid)
    makefile(f, sid).write_text(text)
    f.approve(first["approval_id"])
    f.wait_state(sid, "done")
    assert ran(f) == "fine\n"
    assert places(f, sid, "approval.stale") == []


def _led_elsewhere(victim: Path) -> None:
    victim.rename(victim.with_name("aside"))
    victim.symlink_to(victim.with_name("precious"))


def _made_anew(victim: Path) -> None:
    victim.rename(victim.with_name("aside"))
    (victim / "sub").mkdir(parents=True)
    (victim / "sub/old").write_text("another one")


def _filled(victim: Path) -> None:
    (victim / "sub/new").write_text("written since")


@pytest.mark.parametrize("change", [_led_elsewhere, _made_anew, _filled])
@pytest.mark.parametrize(
    "command",
    [
        ["rm", "-r", "{at}/victim/sub"],
        "rm -r {at}/victim/sub",
        "cd {at} && if test -d victim; then rm -r victim/sub; fi",
        "echo one; (rm -f {at}/none; rm -r {at}/victim/sub)",
        f"rm -rf {' '.join(f'/nowhere/{n}' for n in range(30))} {{at}}/victim/sub",
    ],
    ids=["exec", "shell", "cd", "script", "the 31st name"],
)
def test_what_a_deletion_would_take_is_looked_at_again(
    f: Fleet, change: Callable[[Path], None], command: list[str] | str
) -> None:
    victim = f.root / "victim"
    precious = f.root / "precious/sub/only copy"
    for path in (victim / "sub/old", precious):
        path.parent.mkdir(parents=True)
        path.write_text("x")
    call: tuple[str, dict[str, Any]]
    if isinstance(command, str):
        call = ("shell", {"script": command.format(at=f.root), "access": "unsandboxed"})
    else:
        call = ("exec", {"argv": [word.format(at=f.root) for word in command], "access": "unsandboxed"})
    sid = f.launch(play([call], "Done."))
    first = f.approval(sid)
    change(victim)
    decide(f, first, decision="allow")
    again = asked_anew(f, sid, first)
    assert precious.exists()
    assert (victim / "sub").exists()
    (stale,) = [r.body for r in f.records(sid) if isinstance(r.body, t.ApprovalStale)]
    (difference,) = stale.difference
    assert re.fullmatch(rf"what would be deleted as ({f.root}/)?victim/sub is not what was shown", difference)
    decide(f, again, decision="allow")
    f.wait_state(sid, "done")
    assert not (victim / "sub").exists(), "what was shown the second time went"


def test_an_edit_of_a_changed_world_is_refused_and_asked_anew(f: Fleet) -> None:
    sid = f.launch(play([MAKE], "Done."))
    first = f.approval(sid)
    swap(f, sid)
    edited = {"argv": ["make", "-s", "all"], "access": "unsandboxed"}
    with pytest.raises(SupervisorError) as caught:
        decide(f, first, decision="allow_edited", edited=edited)
    assert caught.value.code == "stale"
    second = asked_anew(f, sid, first)
    assert second["detail"]["changed"] == changed(f)
    assert not any(isinstance(r.body, t.ApprovalDecided) for r in f.records(sid))
    assert ran(f) == ""
    decide(f, second, decision="allow_edited", edited=edited)
    f.wait_state(sid, "done")
    assert ran(f) == "swapped\n"


def test_an_edit_is_bound_to_the_world_as_well(blocked: Fleet) -> None:
    f = blocked
    sid = f.launch(play([MAKE], "Done."))
    first = f.approval(sid)
    decide(f, first, decision="allow_edited", edited={"argv": ["make", "-s", "all"], "access": "unsandboxed"})
    die_before_the_start(f, sid)
    swap(f, sid)
    f.run("supervisor", "start")
    f.wait_state(sid, "waiting")
    asked_anew(f, sid, first)
    assert ran(f) == ""


def test_a_policy_that_changed_meanwhile_is_asked_too(blocked: Fleet) -> None:
    f = blocked
    sid = f.launch(play([MAKE], "Done."))
    f.approve(f.approval(sid)["approval_id"])
    die_before_the_start(f, sid)
    f.folders.policy_file.write_text(
        '[[rule]]\nname = "inside"\nverdict = "deny"\neffect = "unsandboxed"\nreason = "not today"\n'
    )
    f.run("supervisor", "start")
    f.wait_state(sid, "done")
    assert ran(f) == ""
    (stale,) = [r.body for r in f.records(sid) if isinstance(r.body, t.ApprovalStale)]
    assert "not today" in stale.difference[0]


def die_before_the_start(f: Fleet, sid: str) -> None:
    """Kill keeper and supervisor (and who would start it again at once) when the decided call was compared and is about
    to start.
    """
    log = f.folders.session(sid).root / "keeper.err"
    wait_for("the keeper to be about to start it", lambda: log.exists() and "keeper.before_started" in log.read_text())
    supervisor = f.supervisor_pid()
    keeper = f.keeper_pid(sid)
    os.kill(supervisor, signal.SIGSTOP)  # it would start another guardian between the two
    for pid, command in f.processes():
        if "guardian" in command:
            kill(pid)
    kill(supervisor)
    kill(keeper)
    del f.extra["WATCHFLOOR_FAULT"]
    assert ran(f) == ""
    assert places(f, sid, "tool.started") == []


@pytest.mark.parametrize("change", [False, True])
def test_a_decision_that_outlives_its_supervisor_is_still_compared(blocked: Fleet, change: bool) -> None:
    f = blocked
    sid = f.launch(play([MAKE], "Done."))
    first = f.approval(sid)
    worktree = makefile(f, sid)
    f.approve(first["approval_id"])
    die_before_the_start(f, sid)
    if change:
        worktree.write_text(f"all:\n\t@echo swapped >> {f.root / 'ran'}\n")
    f.run("supervisor", "start")
    if change:
        second = asked_anew(f, sid, first)
        assert second["detail"]["changed"] == changed(f)
        assert ran(f) == ""
        f.run("reject", second["approval_id"], "--reason", "it changed")
    f.wait_state(sid, "done")
    assert ran(f) == ("" if change else "fine\n")
    assert f.violations() == []


def test_an_undo_while_a_question_is_open_changes_the_world(f: Fleet) -> None:
    write = ("write_file", {"path": "extra.mk", "content": "X = 1\n"})
    sid = f.launch(play([write], [MAKE], "Done."))
    first = f.approval(sid)
    f.call("undo", sid=sid, to="")
    assert not (makefile(f, sid).parent / "extra.mk").exists()
    assert f.approve(first["approval_id"], check=False).returncode == 5
    second = asked_anew(f, sid, first)
    assert second["detail"]["changed"] == ["extra.mk is gone"]
    assert ran(f) == ""


def test_what_stands_on_the_card_is_what_is_kept(f: Fleet) -> None:
    """The snapshot that a request is bound to is that of its action, and the start names the same state."""
    sid = f.launch(play([MAKE], "Done."))
    item = f.approval(sid)
    f.approve(item["approval_id"])
    f.wait_state(sid, "done")
    judged = next(r.body for r in f.records(sid) if isinstance(r.body, t.ToolJudged))
    started = next(r.body for r in f.records(sid) if isinstance(r.body, t.ToolStarted))
    assert judged.action is not None
    assert json.loads(json.dumps(started.pre)) == judged.action["pre"]
    assert started.snapshot == judged.action["pre"]["snapshot"]
