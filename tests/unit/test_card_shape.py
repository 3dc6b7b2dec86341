"""What of a request is folded: only what equals a request that a person approved, fact by fact."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.actions.action import action_hash, from_wire
from harness.domain.actions.action_diff import differences
from harness.domain.calls.approval_kind import Request
from harness.domain.calls.approval_shapes import MOST, Approved, Shape
from harness.domain.calls.card_facts import (
    LAST_SEEN,
    CardNotes,
    CommitNote,
    Fact,
    FileCount,
    Going,
    Outgoing,
    RunFile,
    in_detail,
)
from harness.policy.shape import compared, facts_of, kind_of, ordinary
from harness.supervisor.calls.queue.comparison import Side, compare
from harness.views.session_views import NOT_SHOWN, NOTHING_THERE, ApprovalView
from widgets.card.card_line import CardLine, wrap
from widgets.card.card_notes import runs_of
from widgets.card.card_text import card

_SANDBOX = {
    "worktree": "/state/worktrees/abcdefghij",
    "read": ["/usr"],
    "write": ["/state/worktrees/abcdefghij"],
    "binds": [["/state/sessions/abcdefghij/git", "/b", "rw"]],
    "network": True,
    "sandboxed": True,
}
PUSH: dict[str, Any] = {
    "v": 1,
    "session": "abcdefghij",
    "call": "c12.0",
    "tool": "exec",
    "ref": "toolu_1",
    "kind": "push",
    "argv": ["git", "push", "origin", "HEAD"],
    "cwd": "/state/worktrees/abcdefghij",
    "timeout_s": 120,
    "access": "push",
    "env": {"PATH": "/usr/bin"},
    "sandbox": _SANDBOX,
    "remote": "origin",
    "url": "/srv/remote.git",
    "refspecs": [["0123abcd", "refs/heads/feature", "absent"]],
    "pre": {"files": {}, "head": "0123abcd"},
    "effects": ["push:origin refs/heads/feature"],
}


@pytest.mark.parametrize("kind", Request)
def test_the_head_of_a_card_says_in_words_what_is_asked(kind: Request) -> None:
    asked = ApprovalView(
        approval_id="abbbbbbb", sid="s", session_name="cart", kind=kind, title="", options=[], risk="low", ts="", seq=1
    )
    head = card(asked).text.splitlines()[0]
    assert "asks: " not in head, "that is how a kind reads that nobody here knows"


def facts(**changed: Any) -> dict[str, str]:
    return facts_of(from_wire(PUSH | changed))


def approved(*many: dict[str, str], times: int = 1) -> list[Shape]:
    return [Shape("push push exec", one, times) for one in many]


@pytest.mark.parametrize(
    ("changed", "unusual"),
    [
        ({"argv": ["git", "push", "origin", "HEAD", "-q"]}, []),
        ({"argv": ["git", "push", "origin", "HEAD", "a b"]}, [Fact.ARGUMENTS]),
        ({"argv": ["git", "push", "оrigin", "HEAD"]}, [Fact.ARGUMENTS]),
        ({"cwd": "/state/worktrees/abcdefghij/sub"}, [Fact.PLACE]),
        ({"remote": "other"}, [Fact.DESTINATION]),
        ({"url": "/srv/other.git"}, [Fact.DESTINATION]),
        ({"local": {"folder": "/srv/remote.git", "hooks": ["update"], "programs": []}}, [Fact.DESTINATION]),
        ({"note": "origin has 2 addresses"}, [Fact.DESTINATION]),
        ({"sandbox": _SANDBOX | {"sandboxed": False}}, [Fact.REACH]),
        ({"sandbox": _SANDBOX | {"hosts": ["a.org"]}}, [Fact.REACH]),
        ({"sandbox": _SANDBOX | {"binds": []}}, [Fact.FOLDERS]),
        ({"env": {"PATH": "/tmp"}}, [Fact.ENVIRONMENT]),
        ({"timeout_s": 121}, [Fact.LIMITS]),
        ({"pre": {"files": {}, "head": "0123abcd", "url": "/srv/x"}}, [Fact.WORLD]),
        ({"refspecs": [["ffff", "refs/heads/other", "eeee"]], "pre": {"files": {"a": "1"}, "head": "ffff"}}, []),
    ],
)
def test_each_fact_that_differs_is_unusual_and_nothing_else(changed: dict[str, Any], unusual: list[str]) -> None:
    found = compared("push push exec", facts(**changed), approved(facts(), times=12))
    assert found == ((0, sorted(unusual)) if unusual else (12, []))


def test_sessions_are_compared_without_their_own_folders() -> None:
    text = json.dumps(PUSH).replace("abcdefghij", "bbbbbbbbbb")
    assert facts_of(from_wire(json.loads(text))) == facts()
    foreign = {"binds": [["/state/sessions/cccccccccc/git", "/b", "rw"]]}
    assert facts(sandbox=_SANDBOX | foreign) != facts(), "another session's folder is not one's own"


def test_without_an_approved_request_of_its_kind_everything_is_unusual() -> None:
    mine = facts()
    assert compared("push push exec", mine, []) == (0, sorted(mine))
    assert compared("push push exec", mine, [Shape("exec network exec", mine, 9)]) == (0, sorted(mine))


def test_a_first_request_shows_all_but_what_stands_above_already() -> None:
    def first(**changed: Any) -> set[str]:
        action = from_wire(PUSH | changed)
        mine = facts_of(action)
        before, unusual = compared(kind_of(action), mine, [], ordinary(action))
        assert before == 0
        return set(mine) - set(unusual)

    own = {Fact.REACH, Fact.ENVIRONMENT, Fact.LIMITS}
    assert first() == {Fact.ARGUMENTS, Fact.PLACE, *own}
    assert first(argv=["git", "push", "origin", "HEAD", "a b"]) == {Fact.PLACE, *own}
    assert first(argv=["git", "push", "о", "HEAD"]) == {Fact.PLACE, *own}
    assert first(cwd="/state/worktrees/abcdefghij/sub") == {Fact.ARGUMENTS, *own}
    elsewhere = compared("push push exec", facts(cwd="/tmp"), approved(facts()), frozenset([Fact.PLACE]))
    assert elsewhere == (0, [Fact.PLACE]), "what differs from what was approved is unusual all the same"


def test_a_first_push_need_not_show_what_the_harness_makes_for_each_session() -> None:
    own = _SANDBOX | {
        "read": [],
        "binds": [["/state/sessions/abcdefghij/git", "/b", "rw"], ["/b", "/abcdefghij", "ro"]],
    }
    pre = {"files": {"/srv/remote.git/hooks/update": "absent"}, "head": "0123abcd", "worktree": {"dev": 1, "ino": 2}}

    def usual(sandbox: dict[str, Any], pre: dict[str, Any]) -> set[str]:
        action = from_wire(PUSH | {"sandbox": sandbox, "pre": pre})
        return set(ordinary(action)) & {Fact.FOLDERS, Fact.WORLD, Fact.REACH, Fact.DESTINATION, Fact.ENVIRONMENT}

    there = pre | {"url": "/srv/remote.git"}
    always = {Fact.REACH, Fact.ENVIRONMENT}
    assert usual(own, there) == {Fact.FOLDERS, Fact.WORLD, *always}
    assert usual(own | {"read": ["/home/me"]}, there) == {Fact.WORLD, *always}
    assert usual(own | {"write": [*own["write"], "/srv"]}, there) == {Fact.WORLD, *always}
    assert usual(own | {"binds": [["/state/sessions/cccccccccc/git", "/b", "rw"]]}, there) == {Fact.WORLD, *always}
    assert usual(own, pre | {"url": "/srv/elsewhere.git"}) == {Fact.FOLDERS, *always}
    assert usual(own, pre) == {Fact.FOLDERS, *always}
    assert usual(own, there | {"program": {"path": "/bin/x", "sha": "1"}}) == {Fact.FOLDERS, *always}


@pytest.mark.parametrize(
    "env",
    [
        {"PATH": "/usr/bin", "GIT_SSH_COMMAND": "x"},
        {"PATH": "/usr/bin", "LD_PRELOAD": "/tmp/x.so"},
        {"PATH": "/state/worktrees/abcdefghij/bin:/usr/bin"},
        {"PATH": "/usr/bin:/state/worktrees/abcdefghij"},
        {"PATH": "/usr/../state/worktrees/abcdefghij:/usr/bin"},
        {"PATH": "/usr/bin:"},
        {"PATH": "bin:/usr/bin"},
        {"HOME": "/home/you"},
    ],
)
def test_a_first_push_shows_an_environment_that_is_not_the_persons_own(env: dict[str, str]) -> None:
    assert Fact.ENVIRONMENT not in ordinary(from_wire(PUSH | {"env": env}))
    assert Fact.ENVIRONMENT in ordinary(from_wire(PUSH | {"env": {"PATH": "/usr/bin:/bin", "HOME": "/home/you"}}))


@pytest.mark.parametrize("sandbox", [{"hosts": ["pypi.org"], "network": False}, {"sandboxed": False}])
def test_a_first_push_shows_a_reach_that_is_not_every_pushs(sandbox: dict[str, Any]) -> None:
    assert Fact.REACH not in ordinary(from_wire(PUSH | {"sandbox": _SANDBOX | sandbox}))


_FACTS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xyz"), min_size=1)


@given(_FACTS, st.lists(_FACTS, max_size=5))
def test_only_what_was_approved_whole_is_folded(mine: dict[str, str], past: list[dict[str, str]]) -> None:
    before, unusual = compared("k", mine, [Shape("k", one, 1) for one in past])
    assert before == past.count(mine)
    assert bool(unusual) == (mine not in past)
    assert set(unusual) <= set(mine)


@given(st.lists(st.tuples(_FACTS, st.sampled_from(["allow", "deny", "allow_edited", "stop"])), max_size=80))
def test_only_a_plain_yes_is_remembered(decided: list[tuple[dict[str, str], str]]) -> None:
    known = Approved()
    for one, decision in decided:
        known = known.after(in_detail(CardNotes(of="k", facts=one)), decision)
    said_yes = [one for one, decision in decided if decision == "allow"]
    assert len(known.shapes) <= MOST
    assert all(shape.times == said_yes.count(shape.facts) for shape in known.shapes)
    assert len(known.shapes) == min(MOST, len({str(sorted(one.items())) for one in said_yes}))


def test_a_request_of_an_earlier_version_teaches_nothing() -> None:
    assert Approved().after({"effects": []}, "allow") == Approved()
    assert Approved().after({"card": {"facts": 3}}, "allow") == Approved()


def view(notes: CardNotes | None, action: dict[str, Any] = PUSH, **more: Any) -> ApprovalView:
    return ApprovalView(
        approval_id="a1234567",
        sid="abcdefghij",
        session_name="parser",
        kind="tool",
        title="push",
        options=["allow", "deny"],
        risk="medium",
        ts="2026-01-01T00:00:00.000Z",
        seq=3,
        action=action,
        action_hash=action_hash(action),
        detail=in_detail(notes) if notes is not None else {},
        **more,
    )


ONE = CommitNote("7dec9de0123456789", "Mention the tests", [FileCount("CHANGELOG.md", 2, 0)])
ROUTINE = CardNotes(
    of=kind_of(from_wire(PUSH)),
    facts=facts(),
    before=12,
    outgoing=[Outgoing("refs/heads/docs/x", True, [ONE], against=f"origin {LAST_SEEN}")],
    goal="add the entry, push for review",
    checks=1,
    passed=1,
)


TO = PUSH | {"refspecs": [[ONE.sha, "refs/heads/docs/x", "absent"]], "effects": ["push:origin refs/heads/docs/x"]}


def test_a_routine_push_says_in_few_lines_what_happens() -> None:
    lines, needed = card(view(ROUTINE, TO, claim="publish for review")).lines(unfolded=False)
    text = [line.text for line in lines]
    assert len(lines) == needed + 1 <= 10, "and the line that says what is folded"
    for part in (
        " MEDIUM RISK · parser wants to push to origin ",
        "BRINGS 1 commit to NEW branch docs/x",
        "  7dec9de012  Mention the tests",
        "      CHANGELOG.md  +2 -0",
        "WILL RUN  exec  git push origin HEAD",
        "Goal     “add the entry, push for review”",
        "Checks   1 of 1 pass",
        "┊ THE AGENT SAYS (not verified): publish for review",
    ):
        assert part in text
    assert "same shape as 12 approved before" in text[-1]
    unfolded, still = card(view(ROUTINE, TO)).lines(unfolded=True)
    assert any("environment" in line.text for line in unfolded)
    assert still < len(unfolded), "what equals the past need not be read again"


@pytest.mark.parametrize("unusual", list(Fact))
def test_an_unusual_fact_stands_unfolded_and_must_be_seen(unusual: Fact) -> None:
    notes = CardNotes(of="k", facts=facts(), unusual=[unusual])
    made = card(view(notes))
    assert made.facts is not None
    lines, needed = made.lines(unfolded=False)
    assert made.facts.needed
    assert lines[needed - len(made.facts.needed) : needed] == list(made.facts.needed), "unfolded by itself"
    assert len(lines) == needed + 1, "and a line in place of all others"
    whole, still = made.lines(unfolded=True)
    assert still == needed
    assert whole[needed + 1 :] == list(made.facts.others)


def test_without_notes_everything_must_be_seen() -> None:
    made = card(view(None))
    lines, needed = made.lines(unfolded=False)
    assert sum(line.role == "dim" and "environment" in line.text for line in lines[:needed]) == 1


@pytest.mark.parametrize(
    ("note", "said"),
    [
        ({}, False),
        ({"commits": [CommitNote("7dec9de0ffffffffff", "Mention the tests")]}, True),
        ({"new": False}, True),
        ({"ref": "refs/heads/docs/y"}, True),
        ({"commits": []}, True),
        ({"problem": "it stands at eeee there"}, True),
    ],
)
def test_where_a_push_leads_is_said_twice_only_where_the_notes_do_not_say_just_that(
    note: dict[str, Any], said: bool
) -> None:
    known: dict[str, Any] = {"ref": "refs/heads/docs/x", "new": True, "commits": [ONE]}
    made = card(view(CardNotes(outgoing=[Outgoing(**(known | note))]), TO))
    above = [line.text for line in made.above]
    assert ("  7dec9de01234 → refs/heads/docs/x, now absent" in above) is said
    assert ("• It publishes to origin refs/heads/docs/x. Others see it at once." in above) is said
    assert f"  {ONE.sha} → refs/heads/docs/x, now absent" in made.text.split("\n"), "the whole name is always a fact"


NETWORK: dict[str, Any] = {k: v for k, v in PUSH.items() if k not in ("remote", "url", "refspecs")} | {
    "kind": "exec",
    "argv": ["pip", "install", "requests"],
    "access": "network",
    "sandbox": _SANDBOX | {"network": False, "hosts": ["pypi.org"], "read": []},
    "env": {"PATH": "/usr/bin", "PAGER": "cat"},
    "pre": {"head": "0123abcd", "cwd": {"dev": 1, "ino": 2}, "snapshot": "s1", "worktree": {"dev": 1, "ino": 2}},
    "effects": ["network:pypi.org"],
}
_PROGRAM = {"path": "/usr/bin/rm", "sha": "1"}
UNSANDBOXED: dict[str, Any] = NETWORK | {
    "access": "unsandboxed",
    "sandbox": _SANDBOX | {"sandboxed": False},
    "env": {"PATH": "/usr/bin", "HOME": "/home/you"},
    "pre": NETWORK["pre"] | {"program": _PROGRAM},
    "effects": ["unsandboxed"],
}
OUTSIDE: dict[str, Any] = {k: v for k, v in NETWORK.items() if k != "argv"} | {
    "kind": "file",
    "tool": "write_file",
    "path": "/etc/hosts",
    "access": "outside",
    "outside": ["/etc/hosts"],
    "sandbox": _SANDBOX | {"network": False, "read": []},
    "pre": {"files": {"/etc/hosts": "ab"}, "head": "0123abcd", "worktree": {"dev": 1, "ino": 2}},
    "effects": ["outside:/etc/hosts"],
}


def usual(action: dict[str, Any], **changed: Any) -> set[str]:
    return set(ordinary(from_wire(action | changed))) & {Fact.REACH, Fact.WORLD, Fact.ENVIRONMENT}


@pytest.mark.parametrize("action", [NETWORK, UNSANDBOXED, OUTSIDE])
def test_what_a_first_request_says_above_need_not_be_read_below(action: dict[str, Any]) -> None:
    assert usual(action) == {Fact.REACH, Fact.WORLD, Fact.ENVIRONMENT}


@pytest.mark.parametrize(
    ("action", "changed", "unusual"),
    [
        (NETWORK, {"effects": []}, Fact.REACH),
        (NETWORK, {"sandbox": NETWORK["sandbox"] | {"hosts": ["pypi.org", "evil.example"]}}, Fact.REACH),
        (NETWORK, {"sandbox": NETWORK["sandbox"] | {"network": True}}, Fact.REACH),
        (NETWORK, {"sandbox": NETWORK["sandbox"] | {"sandboxed": False}, "env": {"PATH": "/usr/bin"}}, Fact.REACH),
        (NETWORK, {"outside": ["/etc/shadow"]}, Fact.REACH),
        (NETWORK, {"pre": NETWORK["pre"] | {"url": "x"}}, Fact.WORLD),
        (UNSANDBOXED, {"effects": ["network"]}, Fact.REACH),
        (UNSANDBOXED, {"env": {"PATH": "/usr/bin", "LD_PRELOAD": "/tmp/x.so"}}, Fact.ENVIRONMENT),
        (UNSANDBOXED, {"env": {"PATH": "/state/worktrees/abcdefghij/bin:/usr/bin"}}, Fact.ENVIRONMENT),
        (
            UNSANDBOXED,
            {"pre": UNSANDBOXED["pre"] | {"program": {"path": "/state/worktrees/abcdefghij/rm"}}},
            Fact.WORLD,
        ),
        (UNSANDBOXED, {"pre": UNSANDBOXED["pre"] | {"program": {"path": "/usr/bin/../../tmp/rm"}}}, Fact.WORLD),
        (UNSANDBOXED, {"pre": UNSANDBOXED["pre"] | {"program": {"path": 3}}}, Fact.WORLD),
        (OUTSIDE, {"effects": ["outside:/etc"]}, Fact.REACH),
        (OUTSIDE, {"pre": OUTSIDE["pre"] | {"files": {"/etc/hosts": "ab", "/etc/shadow": "cd"}}}, Fact.WORLD),
    ],
)
def test_what_a_first_request_does_not_say_above_stands_below(
    action: dict[str, Any], changed: dict[str, Any], unusual: Fact
) -> None:
    assert usual(action, **changed) == {Fact.REACH, Fact.WORLD, Fact.ENVIRONMENT} - {unusual}


def test_a_program_of_the_worktree_is_usual_once_its_whole_text_stands_on_the_card() -> None:
    path = "/state/worktrees/abcdefghij/deploy.sh"
    action = UNSANDBOXED | {
        "argv": ["./deploy.sh"],
        "pre": UNSANDBOXED["pre"] | {"program": {"path": path, "sha": "1"}},
    }
    assert Fact.WORLD not in ordinary(from_wire(action))
    assert Fact.WORLD in ordinary(from_wire(action), [path])
    other = action | {"pre": action["pre"] | {"program": {"path": path, "sha": "2"}}}
    assert facts_of(from_wire(action)) != facts_of(from_wire(other)), "another program is not what was approved"
    assert facts_of(from_wire(action), [path]) == facts_of(from_wire(other), [path]), "its text is what decides"
    notes = CardNotes(
        runs=[RunFile("deploy.sh", ["#!/bin/sh", "rm -rf \x1b[2J"], 4), RunFile("x", problem="it is no text")]
    )
    above = [line.text for line in card(view(notes, action)).above]
    at = above.index("WHICH RUNS  deploy.sh of its worktree, 6 lines")
    assert above[at + 1 : at + 6] == [
        "  1 │#!/bin/sh",
        "  2 │rm -rf ␛[2J",
        "  and 4 more lines, not shown",
        "WHICH RUNS  x of its worktree",
        "  not shown: it is no text",
    ]


def test_hosts_are_named_in_one_sentence() -> None:
    hosts = ["pypi.org", "files.pythonhosted.org", "a.org:8443"]
    action = NETWORK | {"effects": [f"network:{host}" for host in hosts]}
    text = card(view(CardNotes(), action)).text
    assert "• It can reach pypi.org, files.pythonhosted.org at ports 80 and 443. What it sends" in text
    assert "• It can reach a.org:8443. What it sends" in text
    assert text.count("It can reach") == 2


def test_an_overwrite_says_its_file_once_and_no_hash_above_the_rule() -> None:
    sides = f"--- now: nothing there\n+++ after: 3 bytes, SHA-256 {'ab' * 32}\n"
    action = OUTSIDE | {"content_sha": "ab" * 32, "input": {"path": "/etc/hosts", "content": "new"}}
    made = card(view(CardNotes(), action, diff=f"{sides}@@ -0,0 +1,1 @@\n+new"))
    above = [line.text for line in made.above]
    assert above[1:] == [
        "WILL RUN  write_file  “/etc/hosts”",
        "CHANGES  now nothing there, then 3 bytes",
        "  @@ -0,0 +1,1 @@",
        "  +new",
    ]
    assert "  +++ after: 3 bytes, SHA-256 " + "ab" * 32 in made.text
    cut = card(view(CardNotes(), action, diff=f"{sides}@@ -0,0 +1,1 @@\n{NOT_SHOWN}all of it"))
    assert any("SHA-256" in line.text for line in cut.above), "what is not shown whole is named by its hash"


@given(st.lists(st.text("abc", min_size=1, max_size=9), min_size=3, max_size=12), st.integers(24, 60))
def test_a_path_is_broken_between_its_folders(names: list[str], width: int) -> None:
    path = "/".join(["", *names])
    rows = wrap(CardLine(f"  to  {path}"), width)
    assert "".join(part for _, part in rows) == f"  to  {path}"
    assert all(part.endswith(("/", " ")) for _, part in rows[:-1])


def test_words_that_are_known_take_one_row() -> None:
    line = CardLine("Goal     “Add an entry on the README”", "dim", one_row=True)
    ((mark, text),) = wrap(line, 20)
    assert (mark, text) == ("", "Goal     “Add an en…")


def test_a_file_that_is_shown_from_within_says_where_and_keeps_its_numbers() -> None:
    action = from_wire(UNSANDBOXED)

    def of(file: RunFile) -> list[str]:
        return [line.text for line in runs_of(action, CardNotes(runs=[file], runs_only=True))]

    (*_, one) = of(RunFile("Makefile", ["all:", "\tx"], 300, first=210))
    assert one == "  and 300 more lines, not shown"
    title, first, *_ = of(RunFile("Makefile", ["a:", "b:"], 1, first=210))
    assert title == "WHICH RUNS  Makefile of its worktree, 3 lines, shown from line 210 on, where what runs is"
    assert first == "  210 │a:"


def test_what_a_push_takes_away_and_what_nobody_knows_is_said() -> None:
    lost = Outgoing("refs/heads/main", False, [], 0, [ONE], 3)
    unknown = Outgoing("refs/heads/x", False, problem="it stands at eeee there, a commit that is not known here")
    text = card(view(CardNotes(outgoing=[lost, unknown]))).text
    assert "TAKES AWAY 4 commits that main has there now" in text
    assert "and 3 older commits, not listed here" in text
    kept = card(view(CardNotes(outgoing=[msgspec.structs.replace(lost, refused=True)]))).text
    assert "WILL BE REFUSED: main has 4 commits there that this lacks" in kept
    assert "TAKES AWAY" not in kept
    assert "not compared: it stands at eeee there" in text
    gone = card(view(CardNotes(going=[Going("a", "file", "git, in HEAD"), Going("b", "file")], going_more=2))).text
    assert "a  file, git, in HEAD" in gone
    assert "b  file, nothing is known to have it besides" in gone
    assert "and 2 other things, not listed" in gone
    words = card(view(CardNotes(going_unknown=["$x/\x1b", "*.log"], going_unknown_more=3))).text
    assert "GOES AWAY" in words
    assert "$x/␛  known only when it runs" in words
    assert "*.log  known only when it runs" in words
    assert "and 3 more words of that kind" in words
    lacks = card(view(CardNotes(going=[Going("c", "a file", lacks="it is in no commit of tally\x1b")]))).text
    assert "c  a file, it is in no commit of tally␛" in lacks
    own = Going("/state/worktrees/abcdefghij/build", "a folder with 2 files", "undo brings it back", ["x", "y\n"])
    lines = [line.text for line in card(view(CardNotes(going=[own]))).above]
    at = lines.index("  build  a folder with 2 files, undo brings it back")
    assert lines[at + 1 : at + 3] == ["      x", "      y␊"]


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_hostile_names_stay_on_their_line(subject: str, path: str, goal: str) -> None:
    one = CommitNote("7dec9de", subject, [FileCount(path, 1, 1)])
    notes = CardNotes(outgoing=[Outgoing(f"refs/heads/{path}", True, [one])], goal=goal, step=subject)
    plain = CardNotes(
        outgoing=[Outgoing("refs/heads/x", True, [CommitNote("7dec9de", "s", [FileCount("p", 1, 1)])])],
        goal="g" if goal else "",
        step="s" if subject else "",
    )
    text = card(view(notes)).text
    assert text.count("\n") == card(view(plain)).text.count("\n")
    assert text.isprintable() or all(ch == "\n" or ch.isprintable() for ch in text)


def test_differences_name_what_changed_and_nothing_else() -> None:
    before = {"call": "c1.0", "argv": ["git", "push"], "env": {"A": "1"}, "cwd": "/x", "pre": {"head": "a"}}
    after = {"call": "c2.0", "argv": ["git", "push", "-f"], "env": {"A": "2"}, "cwd": "/x", "pre": {"head": "b"}}
    assert differences(before, after) == ["argv: git push → git push -f", "env.A: 1 → 2"]
    assert differences(before, before | {"remote": "x" * 500}) == [f"remote: (none) → {'x' * 119}…"]


def test_a_doubt_names_its_call_once() -> None:
    doubt = msgspec.structs.replace(view(None), kind="in_doubt", title="did this happen? git push origin HEAD")
    assert card(doubt).text.count("git push origin HEAD") == 1


def test_a_test_that_is_gone_stands_with_its_first_lines_and_one_that_lost_lines_with_all() -> None:
    gone = Side(None, f"the agent's: {NOTHING_THERE}")
    whole = Side.of("".join(f"def test_{n}(): ...\n" for n in range(40)).encode())
    forged = Side.of(f"+++ after: {NOTHING_THERE}\n".encode())
    diff = "\n".join(
        f"diff --git a/{name} b/{name}\n{compare(before, after)}"
        for name, before, after in (("a.py", whole, gone), ("b.py", whole, forged))
    )
    made = card(_request(Request.PROTECTED, diff))
    above = [line.text for line in made.above]
    assert "  … and 37 more lines of it, all gone" in above
    assert sum("def test_" in line for line in above) < 12, "what decides comes first"
    shown = [line.text for line in made.lines(unfolded=False)[0]]
    first, second = ([line for line in part if "def test_" in line] for part in _split(shown, "  b.py: "))
    assert len(first) == 3, shown
    assert [line for line in second if second.count(line) != 2] == [line for line in second if line not in above], shown
    assert len(set(second)) == 40, shown


def _request(kind: str, diff: str) -> ApprovalView:
    return ApprovalView("a1", "s", "cart", kind, "a.py was deleted", ["allow", "deny"], "high", "", 1, diff=diff)


def _split(lines: list[str], at: str) -> tuple[list[str], list[str]]:
    cut = next(i for i, line in enumerate(lines) if at in line)
    return lines[:cut], lines[cut:]


def test_that_any_file_may_run_is_said_unless_it_is_known_that_no_other_does() -> None:
    """Silence is no answer: without notes, and of a command that names no file, it is said too."""
    alone = "  It may run any file of its worktree."
    besides = "  It may run any file of its worktree, not only what follows."
    files = [RunFile("deploy.sh", ["ls"])]

    def said(notes: CardNotes | None, action: dict[str, Any] = UNSANDBOXED) -> list[str]:
        return [line.text for line in runs_of(from_wire(action), notes) if "any file" in line.text]

    assert said(None) == said(CardNotes()) == [alone]
    assert said(CardNotes(runs=files)) == [besides]
    assert said(CardNotes(runs=files, runs_only=True)) == said(CardNotes(runs_only=True)) == []
    assert said(None, NETWORK) == said(None, OUTSIDE) == [], "the sandbox holds it"
    above = [line.text for line in card(view(CardNotes(), UNSANDBOXED)).above]
    assert alone in above, "where it has to be seen before it is approved"
