"""Rules in a whole fleet: made of a request, used by others like it, counted exactly, taken back, and on record."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from harness.events.body import By
from harness.events.calls.grant_events import rule_name
from harness.policy import granted
from harness.policy.grant_records import Revoked, Used
from harness.supervisor.base.errors import OpError
from harness.supervisor.calls.queue import grant_book
from harness.supervisor.calls.queue.grant_book import GrantBook
from harness.supervisor.calls.queue.granting import Granting
from harness.supervisor.calls.recall import Recall
from harness.supervisor.memories import book as memory_book
from tests.fleetlib import Fleet, fleet, make_repository, play, wait_for
from tests.unit.test_grants import NOW, PIP, act, case, rule

NET: tuple[str, dict[str, Any]] = ("exec", {"argv": ["echo", "\x1b[31mred"], "access": "network", "hosts": ["x.test"]})
BARE: tuple[str, dict[str, Any]] = ("exec", {"argv": ["true"], "access": "unsandboxed"})


def of_type(f: Fleet, sid: str, kind: str) -> list[Any]:
    return [r.body for r in f.records(sid) if r.type == kind]


def open_of(f: Fleet, sid: str) -> list[dict[str, Any]]:
    return [a for a in f.json("approvals") if a["sid"] == sid]


OWN_POLICY = """
[[rule]]
name = "everything"
verdict = "allow"
effect = "*"

[[rule]]
name = "no-secrets"
verdict = "deny"
args = ["cat", "*"]
reason = "nobody cats here"
"""


@pytest.mark.sandbox
def test_a_repository_tightens_and_three_denials_wait_for_a_person(tmp_path: Path) -> None:
    with fleet() as f:
        make_repository(f.root / "repo", {"a.txt": "a\n", ".watchfloor/policy.toml": OWN_POLICY})
        cats = [[("exec", {"argv": ["cat", name]})] for name in ("a.txt", "b\x1b[31m", "c")]
        sid = f.launch(play(*cats, "Done."), name="cats")
        asks = f.launch(play([NET], "Done."), name="asks")
        question = f.approval(sid)
        assert question["kind"] == "question"
        assert "3 in a row" in question["title"]
        assert "nobody cats here" in question["title"]
        assert [b.status for b in of_type(f, sid, "tool.ended")] == ["denied"] * 3
        assert {b.rule for b in of_type(f, sid, "tool.judged")} == {"the repository: no-secrets"}
        (read,) = of_type(f, sid, "policy.read")
        assert len(read.ignored) == 1
        assert "everything would loosen" in f.run("logs", sid).stdout
        request = f.approval(asks)
        assert request["rule"] == "default", "a repository allows nothing"

        told = f.run("policy", "explain", request["approval_id"]).stdout
        assert "no allow rule covers it" in told
        assert "\x1b" not in told
        own = tmp_path / "policy.toml"
        own.write_text(OWN_POLICY)
        assert f.run("policy", "check", str(own)).stdout.endswith("2 rules\n")
        repository = f.run("policy", "check", str(own), "--repository", check=False)
        assert (repository.returncode, "everything would loosen" in repository.stdout) == (1, True)
        (trial,) = f.json("policy", "try", str(own))
        assert trial["looked_at"] == 4
        assert trial["counts"] == {"ask → allow": 1}, "what the repository denies stays denied under any policy"
        assert {(c["then"], c["tried"]) for c in trial["changed"]} == {("ask", "allow")}
        assert "\x1b" not in f.run("policy", "try", str(own)).stdout
        own.write_text("[[rule]]\nverdict = 1\n")
        broken = f.run("policy", "check", str(own), check=False)
        assert (broken.returncode, "line 2" in broken.stdout) == (1, True)
        assert f.run("policy", "try", str(own), check=False).returncode == 5
        assert f.run("policy", "try", str(tmp_path / "none"), check=False).returncode == 2
        assert f.run("policy", "explain", "a0000000", check=False).returncode == 4
        assert f.run("policy", "explain", "-", check=False).returncode == 2, "nothing is no action"

        f.run("answer", question["approval_id"], "then do something else")
        f.wait_state(sid, "done")
        assert f.violations() == []


@pytest.mark.sandbox
def test_a_rule_lets_its_calls_run_and_no_more() -> None:
    with fleet() as f:
        first = f.launch(play([NET], "Done."), name="first")
        twin = f.launch(play([NET], "Done."), name="twin")
        asked = f.approval(first)
        like = f.approval(twin)
        assert asked["same"] == like["same"] != ""
        assert asked["alike"] == like["alike"] != ""
        other = f.run("grant", asked["approval_id"], "--under", "/srv", check=False)
        assert (other.returncode, "outside the worktree" in other.stderr) == (5, True)
        wrong = f.run("grant", asked["approval_id"], "--expires", "soon", check=False)
        assert (wrong.returncode, "--expires" in wrong.stderr) == (2, True)
        long = f.run("grant", asked["approval_id"], "--expires", "31d", check=False)
        assert (long.returncode, "a rule lasts from 1m to 30d" in long.stderr) == (5, True)
        shown = f.run("grant", asked["approval_id"], "--scope", "repository", "--preview").stdout
        assert "covered 2" in shown
        assert "\x1b" not in shown
        assert "no rule stands" in f.run("grants").stdout

        made = f.json("grant", asked["approval_id"], "--scope", "repository", "--count", "3", "--first", "2")[0]
        grant = made["grant"]["grant"]
        assert made["decided"] == 2, "the one it was made from and its twin, each decided alone"
        for sid, use in ((first, 1), (twin, 2)):
            f.wait_state(sid, "done")
            (decided,) = of_type(f, sid, "approval.decided")
            (used,) = of_type(f, sid, "grant.used")
            (started,) = of_type(f, sid, "tool.started")
            assert decided.by.client == f"grant {grant}"
            assert decided.action_hash == used.action_hash == started.action_hash
            assert (used.grant, used.use, used.count) == (grant, use, 3)
            assert f.state(sid).approved.shapes == (), "a person approved the rule, and not what it lets through"
        (told,) = of_type(f, first, "grant.made")
        assert (told.grant, told.scope, told.by.client) == (grant, "repository", "cli")

        # one use is left, and two ask for it at once
        racing = [f.launch(play([NET], "Done."), name=name) for name in ("one", "two")]
        wait_for("one of them asks", lambda: any(open_of(f, sid) for sid in racing))
        wait_for("the other is done", lambda: any(f.row(sid)["state"] == "done" for sid in racing))
        assert sorted(len(of_type(f, sid, "grant.used")) for sid in racing) == [0, 1]
        (lucky,) = [sid for sid in racing if of_type(f, sid, "grant.used")]
        (judged,) = of_type(f, lucky, "tool.judged")
        assert (judged.verdict, judged.rule, of_type(f, lucky, "approval.requested")) == ("allow", f"grant {grant}", [])
        (listed,) = f.json("grants", "--all")
        assert (listed["ended"], len(listed["uses"])) == ("used up", 3)
        assert "\x1b" not in f.run("grants", "--all").stdout + f.run("logs", lucky).stdout

        # a critical one has to be typed; it is remembered by a supervisor that was killed, and taken back by hand
        bare = f.launch(play([BARE], [BARE], "Done."), name="bare")
        critical = f.approval(bare)
        assert "same" not in critical, "it is decided one by one"
        named = ("--hash", critical["action_hash"][:12])
        untyped = f.run("grant", critical["approval_id"], *named, check=False)
        assert (untyped.returncode, "bare" in untyped.stderr) == (5, True)
        assert f.run("grant", critical["approval_id"], "--typed", "bare", check=False).returncode == 5, "unread"
        typed = f.json("grant", critical["approval_id"], *named, "--typed", "bare")[0]["grant"]["grant"]
        f.wait_state(bare, "done")
        assert len(of_type(f, bare, "grant.used")) == 2
        os.kill(f.supervisor_pid(), signal.SIGKILL)
        wait_for("the supervisor to serve again", lambda: f.run("grants", check=False).returncode == 0)
        assert [g["grant"] for g in f.json("grants")] == [typed]
        assert "revoked" in f.run("revoke", typed, "--why", "enough").stdout
        again = f.run("revoke", typed, check=False)
        assert (again.returncode, "revoked already" in again.stderr) == (5, True)
        assert "grants" in f.run("verify").stdout
        assert f.violations() == []


def test_what_a_rule_allowed_stands_only_while_the_rule_does(tmp_path: Path) -> None:
    ends = datetime.now(UTC) + timedelta(hours=1)
    later = ends.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    rules = {
        "live": rule(act("exec", PIP), grant="live", expires=later),
        "used": rule(act("exec", PIP), grant="used", expires=later, count=1),
        "gone": rule(act("exec", PIP), grant="gone", expires=later),
        "over": rule(act("exec", PIP), grant="over", expires="2026-11-22T10:00:01.000Z"),
    }

    async def look() -> dict[str, bool]:
        book = grant_book.open_book(tmp_path / "grants")
        for made in rules.values():
            await book.change(partial(granted.make, made=made, now=NOW))
        used = Used(grant="used", sid="s1", call_id="c1.0", action_hash="", ts=NOW)
        await book.change(lambda known: [used])
        await book.change(lambda known: granted.revoke(known, Revoked(grant="gone", by=By(), ts=NOW), NOW))
        granting = Granting(
            book, Recall(memory_book.open_book(tmp_path / "memory", lambda: None), lambda session, seconds: None)
        )
        found = {name: await granting.stands(rule_name(name)) for name in (*rules, "none")}
        assert await granting.stands("default"), "what the policy allowed is not the rules' to take back"
        await book.close()
        return found

    found = asyncio.run(look())
    assert found == {"live": True, "used": True, "gone": False, "over": False, "none": False}


def test_a_use_is_counted_once_whoever_falls_in_between(tmp_path: Path) -> None:
    made = rule(act("exec", PIP), count=2)

    async def use(book: GrantBook, sid: str, call: str) -> list[Any]:
        action = act("exec", PIP, sid, call)
        return await book.change(lambda known: granted.use(known, case(action, call), NOW))

    async def begin() -> None:
        book = grant_book.open_book(tmp_path / "grants")
        await book.change(lambda known: granted.make(known, made, NOW))
        assert await use(book, "s1", "c1.0")
        await book.close()

    async def go_on() -> None:
        book = grant_book.open_book(tmp_path / "grants")
        together = [("s1", "c1.0"), ("s1", "c2.0"), ("s2", "c1.0"), ("s2", "c2.0")]
        found = await asyncio.gather(*(use(book, sid, call) for sid, call in together))
        allowed = [(entry.sid, entry.call_id) for entries in found for entry in entries if isinstance(entry, Used)]
        assert allowed[0] == ("s1", "c1.0"), "the call whose verdict was lost has its use"
        assert len(allowed) == 2
        await book.close()

    async def damaged() -> None:
        book = grant_book.open_book(tmp_path / "grants")
        with pytest.raises(OpError, match="every request asks"):
            await book.read()
        assert "cannot be read" in book.problem

    asyncio.run(begin())
    asyncio.run(go_on())
    segment = tmp_path / "grants" / "000001.jsonl"
    lines = segment.read_bytes().split(b"\n")
    body = json.loads(lines[1])
    assert body["type"] == "grant.made"
    segment.write_bytes(b"\n".join([lines[0], lines[1].replace(b'"count":2', b'"count":9'), *lines[2:]]))
    asyncio.run(damaged())
