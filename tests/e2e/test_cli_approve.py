"""Approving from the command line: what is dangerous is never approved unseen, and what was approved is said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.events import types as t
from harness.protocol.client import Client, SupervisorError
from harness.protocol.connection.transport import UnixSocket
from tests.fleetlib import Fleet, apart, play

pytestmark = pytest.mark.sandbox


@pytest.fixture
def f(started: Fleet) -> Iterator[Fleet]:
    with apart(started) as part:
        yield part


def asking(f: Fleet, mark: Path, access: str = "unsandboxed") -> tuple[str, str]:
    """A session that waits with one call that would leave a mark: its id and the request's."""
    sid = f.launch(
        play(
            [("exec", {"argv": ["/bin/sh", "-c", f"echo ran > {mark}"], "access": access, "why": "It is needed."})],
            "Done.",
        )
    )
    return sid, str(f.approval(sid)["approval_id"])


def started(f: Fleet, sid: str) -> bool:
    return any(isinstance(r.body, t.ToolStarted) for r in f.records(sid))


def test_a_critical_call_needs_the_hash_from_its_card(f: Fleet) -> None:
    mark = f.root / "ran"
    sid, request = asking(f, mark)
    unseen = f.run("approve", request, check=False)
    assert unseen.returncode == 5
    assert "critical risk" in unseen.stderr
    assert f"watchfloor approvals {request}" in unseen.stderr
    wrong = f.run("approve", request, "--hash", "0" * 12, check=False)
    assert wrong.returncode == 5
    assert "stale" in wrong.stderr
    assert f"watchfloor approvals {request}" in wrong.stderr
    for useless in ("", "abc", "not-a-hash-at-all", "0" * 11):
        assert f.run("approve", request, "--hash", useless, check=False).returncode == 2
    edited = f.run("approve", request, "--edit", json.dumps({"argv": ["true"]}), check=False)
    assert edited.returncode == 5
    assert not started(f, sid)
    card = f.run("approvals", request).stdout
    digest = card.rstrip().rsplit("\n", 1)[1].removeprefix("hash").strip()
    assert len(digest) == 64
    for part in ("CRITICAL", "WILL RUN", f"“echo ran > {mark}”", "It is needed.", f"--hash {digest[:12]}"):
        assert part in card
    said = f.run("approve", request, "--hash", digest[:12]).stdout
    assert digest[:12] in said
    assert "allow for " in said
    f.wait_state(sid, "done")
    assert mark.read_text() == "ran\n"
    assert f.violations() == []


def test_the_card_and_the_approval_have_a_json_form(f: Fleet) -> None:
    sid, request = asking(f, f.root / "ran")
    (card,) = f.json("approvals", request)
    assert card["risk"] == "critical"
    assert any("WILL RUN" in line for line in card["card"])
    assert len(card["action_hash"]) == len(card["shown_hash"]) == 64
    (said,) = f.json("approve", request, "--hash", card["action_hash"])
    assert (said["decision"], said["action_hash"], said["risk"]) == ("allow", card["action_hash"], "critical")
    f.wait_state(sid, "done")
    gone = f.run("approvals", request, check=False)
    assert gone.returncode in (4, 5)
    assert request in gone.stderr


def test_refusing_is_easy_and_medium_risk_says_what_it_approved(f: Fleet) -> None:
    _, critical = asking(f, f.root / "one")
    f.run("reject", critical, "--reason", "no")
    sid, medium = asking(f, f.root / "two", access="network")
    for verb in (("approve", sid), ("deny", sid, "no"), ("answer", sid, "yes")):
        named = f.run(*verb, check=False)
        assert named.returncode == 4
        assert f"is a session; a request is what is decided\nit waits with: {medium}" in named.stderr
    said = f.run("approve", medium).stdout
    assert "allow for " in said
    assert "echo ran" in said
    f.wait_state(sid, "done")


def test_an_edit_lets_nothing_riskier_run_than_its_card_showed(f: Fleet) -> None:
    mark = f.root / "ran"
    sid, request = asking(f, f.root / "other", access="network")
    edit = ("--edit", json.dumps({"argv": ["sh", "-c", f"echo edited > {mark}"], "access": "unsandboxed"}))
    digest = f.json("approvals", request)[0]["action_hash"]
    for shown in ((), ("--hash", digest)):
        refused = f.run("approve", request, *edit, *shown, check=False)
        assert refused.returncode == 5
        assert "critical risk" in refused.stderr
        assert "medium risk; nothing was approved" in refused.stderr
    assert not started(f, sid)
    nested = f.run("approve", request, "--edit", "[" * 20_000, check=False)
    assert nested.returncode == 2
    assert "--edit is not JSON" in nested.stderr
    said = f.run("approve", request, "--edit", json.dumps({"argv": ["true"], "access": "network"})).stdout
    assert "as you edited it" in said
    f.wait_state(sid, "done")
    assert not mark.exists()
    assert f.violations() == []


def test_several_are_approved_by_their_own_actions_or_none_of_them(f: Fleet) -> None:
    (one, first), (two, second) = [asking(f, f.root / name, access="network") for name in ("one", "two")]
    _, critical = asking(f, f.root / "three")
    for more in ((critical,), ("azzzzzzz",), ("--hash", "0" * 12), ("--finish",)):
        assert f.run("approve", first, second, *more, check=False).returncode in (2, 4, 5)
    assert not started(f, one)
    assert not started(f, two)
    said = f.run("approve", first, second, first).stdout.splitlines()
    assert len(said) == 2
    for sid in (one, two):
        f.wait_state(sid, "done")
        decided = [r.body for r in f.records(sid) if isinstance(r.body, t.ApprovalDecided)]
        (ran,) = [r.body for r in f.records(sid) if isinstance(r.body, t.ToolStarted)]
        assert [(b.decision, b.action_hash) for b in decided] == [("allow", ran.action_hash)]
    f.run("deny", critical, "no")
    assert not (f.root / "three").exists()


def test_the_supervisor_itself_refuses_a_decision_without_the_hash(f: Fleet) -> None:
    sid, request = asking(f, f.root / "ran")
    with Client(UnixSocket(f.folders.supervisor_socket)) as client:
        for digest in ("", "0" * 64, None):
            given = {} if digest is None else {"action_hash": digest}
            with pytest.raises(SupervisorError) as caught:
                client.call("decide", approval_id=request, decision="allow", **given)
            assert caught.value.code == "stale"
    assert not started(f, sid)


def test_several_are_refused_or_put_off_at_once_and_a_wrong_one_changes_nothing(f: Fleet) -> None:
    marks = [f.root / name for name in ("one", "two", "three")]
    (one, first), (two, second), (three, third) = [asking(f, mark) for mark in marks]
    wrong = f.run("reject", first, "azzzzzzz", "--reason", "no", check=False)
    assert (wrong.returncode, "azzzzzzz" in wrong.stderr) == (4, True)
    put_off = f.run("defer", first, second).stdout.splitlines()
    assert len(put_off) == 2, "nothing was decided by the wrong one"
    f.run("deny", third, "Not on this machine.")
    f.run("reject", first, second, "--reason", "Nor these.")
    for sid, said in ((one, "Nor these."), (two, "Nor these."), (three, "Not on this machine.")):
        f.wait_state(sid, "done")
        decided = [r.body for r in f.records(sid) if isinstance(r.body, t.ApprovalDecided)]
        assert [(b.decision, b.message) for b in decided] == [("deny", said)]
    assert not any(mark.exists() for mark in marks)
    unknown = f.run("pause", one, "nobody", check=False)
    assert (unknown.returncode, "nobody" in unknown.stderr) == (4, True)
