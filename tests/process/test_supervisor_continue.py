"""Going on after the end through a real supervisor: after done, failed and stopped, with words, rounds, budget and
checks, and across restarts.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.events import types as t
from harness.protocol.client import Client, SupervisorError
from harness.protocol.connection.transport import UnixSocket
from tests.fleetlib import HOLD, Fleet, fleet, git, kill, make_repository, play, wait_for

pytestmark = pytest.mark.sandbox
_PATIENCE_S = 60


@pytest.fixture(scope="module")
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def go_on(f: Fleet, sid: str, **given: Any) -> None:
    with Client(UnixSocket(f.folders.supervisor_socket), timeout=_PATIENCE_S) as client:
        client.call("continue", sid=sid, **given)


def refused(f: Fleet, sid: str, **given: Any) -> SupervisorError:
    with pytest.raises(SupervisorError) as caught:
        go_on(f, sid, **given)
    return caught.value


def ended_again(f: Fleet, sid: str, times: int, *states: str) -> dict[str, Any]:
    """Its row, once it has ended that often and its keeper has left."""
    f.wait_event_count(sid, "session.ended", times)
    row = f.wait_state(sid, *states)
    wait_for("its keeper left", lambda: not f.folders.session(sid).keeper_socket.exists())
    return row


def write(name: str, text: str = "x") -> list[tuple[str, dict[str, Any]]]:
    return [("shell", {"script": f"echo {text} > {name}; git add -A; git commit -qm {name}"})]


def bodies(f: Fleet, sid: str, kind: type[t.Body]) -> list[Any]:
    return [r.body for r in f.records(sid) if isinstance(r.body, kind)]


def published(f: Fleet, sid: str) -> list[str]:
    return git(f.repository(), "log", "--format=%s", f.row(sid)["branch"]).split("\n")[:-1]


def test_a_done_session_goes_on_with_words_on_top_of_what_was_published(f: Fleet) -> None:
    sid = f.launch(play(write("one"), "Done.", write("two"), "Done too."), name="words")
    assert ended_again(f, sid, 1, "done")["ended"]
    assert published(f, sid) == ["one", "start"]
    first = git(f.repository(), "rev-parse", f.row(sid)["branch"])
    said = f.run("continue", sid, "now two").stdout
    assert said.startswith("words goes on; watch it: watchfloor attach ")
    assert "ended" not in f.row(sid) or len(bodies(f, sid, t.SessionEnded)) == 2
    assert ended_again(f, sid, 2, "done")["ended"]
    assert published(f, sid) == ["two", "one", "start"]
    git(f.repository(), "merge-base", "--is-ancestor", first.strip(), f.row(sid)["branch"])
    messages = bodies(f, sid, t.UserMessage)
    assert [(m.origin, m.text) for m in messages[1:]] == [("human", "now two")]
    assert messages[1].by.client == "cli"
    points = f.call("undo_points", sid=sid)["points"]
    assert [p["tool"] for p in points] == ["shell", "shell"]
    f.call("undo", sid=sid)
    wait_for("the undo is published", lambda: published(f, sid) == ["one", "start"])
    assert f.violations() == []


def test_what_was_undone_after_the_end_is_told_when_it_goes_on(f: Fleet) -> None:
    sid = f.launch(play(write("one"), "Done.", write("two"), "Done too."), name="undone")
    ended_again(f, sid, 1, "done")
    f.run("undo", sid)
    go_on(f, sid, text="again")
    ended_again(f, sid, 2, "done")
    told = bodies(f, sid, t.UserMessage)[1:]
    assert [m.origin for m in told] == ["harness", "human"]
    assert "undid some of your work" in told[0].text
    assert published(f, sid) == ["two", "start"]
    assert f.violations() == []


def test_a_failed_session_goes_on_for_more_rounds_with_the_checks_run_anew(f: Fleet) -> None:
    turns = ["I did it."] * 5 + [write("result"), "Now it is there."]
    sid = f.launch(play(*turns), checks=("test -e result",), name="rounds")
    row = ended_again(f, sid, 1, "failed")
    assert "after 5 rounds" in row["detail"]
    f.run("continue", sid, "--rounds", "2")
    row = ended_again(f, sid, 2, "done")
    assert row["verified"]
    assert (row["checks_passed"], row["checks_total"]) == (1, 1)
    assert bodies(f, sid, t.SessionContinued)[0].rounds == 2
    assert f.violations() == []


def test_what_a_person_repaired_in_the_worktree_is_enough(f: Fleet) -> None:
    sid = f.launch(play(*["I did it."] * 5), checks=("test -e result",), name="repaired")
    row = ended_again(f, sid, 1, "failed")
    requests = row["requests"]
    (Path(row["worktree"]) / "result").touch()
    go_on(f, sid)
    row = ended_again(f, sid, 2, "done")
    assert row["verified"]
    assert row["requests"] == requests


def test_a_stopped_session_goes_on_and_its_cut_calls_do_not_run_again(f: Fleet) -> None:
    sid = f.launch(play([HOLD], write("after"), "Done."), name="stopped")
    f.wait_event(sid, "tool.started")
    f.run("stop", sid)
    ended_again(f, sid, 1, "stopped")
    f.run("continue", sid)
    ended_again(f, sid, 2, "done")
    assert f.state(sid).desired == "running"
    assert published(f, sid) == ["after", "start"]
    assert sum(r.type == "tool.started" for r in f.records(sid)) == 2
    assert "stopped this session" in bodies(f, sid, t.UserMessage)[1].text
    assert f.violations() == []


def test_a_stop_is_lifted_at_once_even_while_it_is_carried_out(f: Fleet) -> None:
    sid = f.launch(play([HOLD], "Done."), name="at-once")
    f.wait_event(sid, "tool.started")
    f.run("stop", sid)
    go_on(f, sid, text="go on")
    ended_again(f, sid, 2, "done")
    kinds = [r.type for r in f.records(sid)]
    assert kinds.index("session.ended") < kinds.index("session.continued")
    assert f.violations() == []


def test_another_check_makes_a_verified_session_prove_more(f: Fleet) -> None:
    sid = f.launch(play(write("one"), "Done.", write("two"), "Done."), checks=("test -e one",), name="check")
    ended_again(f, sid, 1, "done")
    f.run("continue", sid, "--check", "test -e two")
    row = ended_again(f, sid, 2, "done")
    assert (row["verified"], row["checks_total"]) == (True, 2)
    go_on(f, sid, checks=["test -e README.md"], replace_checks=True)
    row = ended_again(f, sid, 3, "done")
    assert (row["proof"], row["checks_total"]) == ("still_passes", 1), "that file was there before"
    assert f.violations() == []


def test_more_budget_lets_a_session_that_finished_up_go_on(f: Fleet) -> None:
    sid = f.launch(
        play(write("one"), write("two"), "That is how far I came.", write("three"), "Done."),
        name="budget",
        more=("--cap-calls", "1"),
    )
    asked = f.approval(sid)
    assert asked["kind"] == "cap"
    f.run("approve", asked["approval_id"], "--finish")
    assert "finished up at its cap" in ended_again(f, sid, 1, "done")["detail"]
    used_up = refused(f, sid, caps={"tool_calls": 1})
    assert used_up.code == "bad_caps"
    assert "--cap-calls is used up" in str(used_up)
    f.run("continue", sid, "--cap-calls", "+1")
    ended_again(f, sid, 2, "done")
    assert f.state(sid).caps.tool_calls == 2
    assert published(f, sid) == ["three", "one", "start"]
    assert "raised the budget" in bodies(f, sid, t.UserMessage)[1].text
    assert f.violations() == []


def test_the_reasons_why_not_name_the_way_that_exists(f: Fleet) -> None:
    sid = f.launch(play([HOLD], "Done.", "Done."), name="why-not")
    f.wait_event(sid, "tool.started")
    running = refused(f, sid, text="more")
    assert (running.code, f"watchfloor say {sid} TEXT" in running.hint) == ("not_ended", True)
    f.run("pause", sid)
    assert f"watchfloor resume {sid}" in refused(f, sid, text="more").hint
    f.run("resume", sid)
    f.release(sid)
    ended_again(f, sid, 1, "done")
    nothing = refused(f, sid, rounds=3)
    assert (nothing.code, "words" in nothing.hint) == ("nothing", True)
    for given, code in (
        ({"rounds": 10**6, "text": "x"}, "bad_request"),
        ({"text": "x" * 300_000}, "bad_request"),
        ({"text": 5}, "bad_request"),
        ({"checks": [""]}, "bad_check"),
        ({"checks": [f"test {i}" for i in range(60)]}, "bad_check"),
        ({"caps": {"cents": 5}, "text": "x"}, "bad_caps"),
        ({"caps": {"usd_nano": -5}, "text": "x"}, "bad_caps"),
        ({"more": {"tokens": 5}, "text": "x"}, "bad_caps"),
    ):
        assert refused(f, sid, **given).code == code
    for verb, words in (("say", ("TEXT",)), ("resume", ()), ("pause", ())):
        done = f.run(verb, sid, *words, check=False)
        assert (done.returncode, f"watchfloor continue {sid}" in done.stderr) == (5, True)
    assert f.run("continue", "nobody", check=False).returncode == 4
    assert f.run("continue", sid, "--rounds", "many", check=False).returncode == 2
    assert f.run("continue", sid, "--replace-checks", "x", check=False).returncode == 2
    assert [r.type for r in f.records(sid)].count("session.continued") == 0
    wait_for("its keeper left again", lambda: not f.folders.session(sid).keeper_socket.exists())


def test_a_worktree_that_is_gone_is_said_with_what_to_do(f: Fleet) -> None:
    sid = f.launch(play(write("one"), "Done."), name="gone")
    row = ended_again(f, sid, 1, "done")
    shutil.rmtree(row["worktree"])
    said = refused(f, sid, text="more")
    assert said.code == "no_worktree"
    assert row["worktree"] in said.message
    command = said.hint.split(": ", 1)[1].split(", then")[0]
    repo = f.repository()
    git(repo, *command.split()[3:])
    assert git(repo, "log", "-1", "--format=%s").strip() == "one"
    git(repo, "switch", "-q", "main")


def test_a_session_whose_worktree_could_not_be_made_tries_again(f: Fleet) -> None:
    repo = make_repository(f.root / "blocked")
    block = repo / ".git" / "worktrees"
    block.write_text("no folder")
    sid = f.launch(play(write("one"), "Done."), repo=repo, name="unmade")
    assert "the worktree could not be made" in ended_again(f, sid, 1, "failed")["detail"]
    block.unlink()
    f.run("continue", sid)
    ended_again(f, sid, 2, "done")
    assert git(repo, "log", "-1", "--format=%s", f.row(sid)["branch"]).strip() == "one"


def test_continuing_and_removing_at_once_leave_one_of_both(f: Fleet) -> None:
    for name in ("race-a", "race-b", "race-c"):
        sid = f.launch(play("Done.", write("two"), "Done."), name=name)
        ended_again(f, sid, 1, "done")
        with ThreadPoolExecutor(2) as pool:
            verbs = [pool.submit(f.run, *words, check=False) for words in (("continue", sid, "more"), ("rm", sid))]
            codes = [v.result().returncode for v in verbs]
        assert sorted(c == 0 for c in codes) == [False, True]
        if codes[0] == 0:
            ended_again(f, sid, 2, "done")
            assert published(f, sid) == ["two", "start"]
        else:
            assert not f.folders.session(sid).root.exists()
    assert f.violations() == []


def test_two_who_continue_at_once_are_told_apart(f: Fleet) -> None:
    sid = f.launch(play("Done.", [HOLD], "Done."), name="twice")
    ended_again(f, sid, 1, "done")
    with ThreadPoolExecutor(4) as pool:
        codes = [d.returncode for d in pool.map(lambda i: f.run("continue", sid, f"words {i}", check=False), range(4))]
    assert sorted(codes) == [0, 5, 5, 5]
    assert len(bodies(f, sid, t.SessionContinued)) == 1
    f.wait_event(sid, "tool.started")
    f.release(sid)
    ended_again(f, sid, 2, "done")
    assert f.violations() == []


def test_sessions_known_from_the_index_only_go_on_too() -> None:
    with fleet() as f:
        sid = f.launch(play(write("one"), "Done.", write("two"), "Done."), name="indexed")
        ended_again(f, sid, 1, "done")
        f.run("supervisor", "stop")
        f.run("supervisor", "start")
        assert f.row(sid)["state"] == "done"
        f.run("supervisor", "stop")
        f.run("continue", sid, "two")  # starts the supervisor, which reads this session's log only now
        ended_again(f, sid, 2, "done")
        assert published(f, sid) == ["two", "one", "start"]
        f.run("supervisor", "stop")
        f.run("supervisor", "start")
        assert f.row(sid)["requests"] == 4
        assert f.violations() == []


def test_what_goes_on_survives_the_death_of_supervisor_and_keeper() -> None:
    with fleet() as f:
        sid = f.launch(play("Done.", [HOLD], write("two"), "Done."), name="killed")
        ended_again(f, sid, 1, "done")
        go_on(f, sid, text="more")
        f.wait_event(sid, "tool.started")
        kill(f.supervisor_pid())
        f.run("ls")
        kill(f.keeper_pid(sid))
        wait_for("it is taken up again", lambda: f.row_or_start(sid)["state"] in ("running", "done"))
        ended_again(f, sid, 2, "done")
        assert published(f, sid) == ["two", "start"]
        assert f.violations() == []


# -- a reply that ends in a question ---------------------------------------------------------------


def test_a_question_waits_in_the_queue_and_its_answer_goes_on(f: Fleet) -> None:
    words = "There are two ways.\n\nShould I keep the old API?"
    sid = f.launch(play(words, write("kept"), "Kept."), name="asks")
    asked = f.approval(sid)
    assert (asked["kind"], asked["title"], asked["options"]) == (
        "question",
        "Should I keep the old API?",
        ["answer", "done", "stop"],
    )
    assert asked["detail"]["asks"] == words
    card = f.run("approvals", asked["approval_id"]).stdout
    assert "There are two ways." in card
    assert f"watchfloor answer {asked['approval_id']} TEXT" in card
    assert f"watchfloor approve {asked['approval_id']} --choose done" in card
    assert f.row(sid)["state"] == "waiting"
    assert f.run("answer", asked["approval_id"], " ", check=False).returncode == 5
    f.run("answer", asked["approval_id"], "yes, keep it")
    ended_again(f, sid, 1, "done")
    assert bodies(f, sid, t.UserMessage)[-1].text == "yes, keep it"
    assert published(f, sid) == ["kept", "start"]
    assert f.violations() == []


def test_a_question_may_be_taken_as_the_end(f: Fleet) -> None:
    sid = f.launch(play("Shall I also write docs?"), checks=("false",), name="enough")
    asked = f.approval(sid)
    assert asked["detail"]["checks"] == "0 of 1 pass"
    f.run("approve", asked["approval_id"], "--choose", "done")
    row = ended_again(f, sid, 1, "done")
    assert ("verified" in row, row["detail"]) == (False, "you took it as finished; 0 of 1 checks pass")
    assert bodies(f, sid, t.SessionEnded)[0].summary == "Shall I also write docs?"
    assert f.violations() == []


def test_words_said_answer_the_question_too(f: Fleet) -> None:
    sid = f.launch(play("Which one?", write("this"), "Done."), name="said")
    f.approval(sid)
    f.run("say", sid, "this one")
    ended_again(f, sid, 1, "done")
    assert published(f, sid) == ["this", "start"]
    assert f.violations() == []


def test_a_question_beside_checks_that_pass_is_asked_with_their_verdict_and_taken_as_what_they_show(f: Fleet) -> None:
    sid = f.launch(play("All of it is done. Should I also write docs?"), checks=("true",), name="passes")
    asked = f.approval(sid)
    assert (asked["kind"], asked["title"]) == ("question", "All of it is done. Should I also write docs?")
    assert asked["detail"]["checks"] == "all checks passed (1 of 1): 1 still passes"
    assert "all checks passed (1 of 1)" in f.run("approvals", asked["approval_id"]).stdout
    assert f.row(sid)["state"] == "waiting"
    kill(f.supervisor_pid())
    f.run("ls")
    assert f.approval(sid)["approval_id"] == asked["approval_id"]
    f.run("approve", asked["approval_id"], "--choose", "done")
    row = ended_again(f, sid, 1, "done")
    assert row["proof"] == "still_passes"
    assert row["detail"].endswith("you took it as finished; all checks passed (1 of 1): 1 still passes")
    assert f.violations() == []


def test_what_is_refused_for_one_of_several_keeps_no_other_from_it(f: Fleet) -> None:
    ended = f.launch(play("Done."), name="ended")
    ended_again(f, ended, 1, "done")
    first, last = (f.launch(play([HOLD], "Done."), name=name) for name in ("first", "last"))
    for sid in (first, last):
        f.wait_event(sid, "tool.started")
    for verb, wanted in (("pause", "paused"), ("resume", "running"), ("stop", "stopped")):
        done = f.run(verb, first, ended, last, check=False)
        assert (done.returncode, done.stderr.splitlines()[0]) == (5, "watchfloor: ended has ended (done)")
        assert [f.row(sid).get("desired", "running") for sid in (first, last)] == [wanted] * 2
    assert f.run("pause", first, "nobody", last, check=False).returncode == 4
