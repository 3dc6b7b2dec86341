"""What of a request is folded: only what equals a request that a person approved, fact by fact."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.events.action import action_hash, from_wire
from harness.events.action_changes import differences
from harness.events.approved import MOST, Approved, Shape
from harness.events.card_facts import CardNotes, CommitNote, Fact, FileCount, Going, Outgoing, in_detail
from harness.events.request import Request
from harness.events.views import ApprovalView
from harness.policy.shape import compared, facts_of, kind_of, ordinary
from widgets.card_text import card

_FENCE = {
    "worktree": "/state/worktrees/abcdefghij",
    "read": ["/usr"],
    "write": ["/state/worktrees/abcdefghij"],
    "binds": [["/state/sessions/abcdefghij/git", "/b", "rw"]],
    "network": True,
    "fenced": True,
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
    "fence": _FENCE,
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
        ({"fence": _FENCE | {"fenced": False}}, [Fact.REACH]),
        ({"fence": _FENCE | {"hosts": ["a.org"]}}, [Fact.REACH]),
        ({"fence": _FENCE | {"binds": []}}, [Fact.FOLDERS]),
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
    assert facts(fence=_FENCE | foreign) != facts(), "another session's folder is not one's own"


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
    own = _FENCE | {"read": [], "binds": [["/state/sessions/abcdefghij/git", "/b", "rw"], ["/b", "/abcdefghij", "ro"]]}
    pre = {"files": {"/srv/remote.git/hooks/update": "absent"}, "head": "0123abcd", "worktree": {"dev": 1, "ino": 2}}

    def usual(fence: dict[str, Any], pre: dict[str, Any]) -> set[str]:
        action = from_wire(PUSH | {"fence": fence, "pre": pre})
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


@pytest.mark.parametrize("fence", [{"hosts": ["pypi.org"], "network": False}, {"fenced": False}])
def test_a_first_push_shows_a_reach_that_is_not_every_pushs(fence: dict[str, Any]) -> None:
    assert Fact.REACH not in ordinary(from_wire(PUSH | {"fence": _FENCE | fence}))


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
    outgoing=[Outgoing("refs/heads/docs/x", True, [ONE], against="what origin was last seen to hold")],
    goal="add the entry, push for review",
    checks=1,
    passed=1,
)


def test_a_routine_push_says_in_few_lines_what_happens() -> None:
    lines, needed = card(view(ROUTINE, claim="publish for review")).lines(unfolded=False)
    text = [line.text for line in lines]
    assert len(lines) == needed <= 20, "one screen of 80 by 24"
    for part in (
        " MEDIUM RISK · parser wants to push to origin ",
        "BRINGS 1 commit to NEW branch docs/x (against what origin was last seen to hold)",
        "  7dec9de012  Mention the tests",
        "      CHANGELOG.md  +2 -0",
        "WILL RUN  exec  git push origin HEAD",
        "Goal     “add the entry, push for review”",
        "Checks   1 of 1 pass",
        "┊ publish for review",
    ):
        assert part in text
    assert "same shape as 12 approved before" in text[-1]
    unfolded, still = card(view(ROUTINE)).lines(unfolded=True)
    assert any("environment" in line.text for line in unfolded)
    assert still < len(unfolded), "what equals the past need not be read again"


@pytest.mark.parametrize("unusual", list(Fact))
def test_an_unusual_fact_stands_unfolded_and_must_be_seen(unusual: Fact) -> None:
    notes = CardNotes(of="k", facts=facts(), unusual=[unusual])
    made = card(view(notes))
    assert made.facts is not None
    assert not made.facts.folded
    lines, needed = made.lines(unfolded=False)
    assert made.facts.needed[-1] in lines[:needed]
    assert lines == made.lines(unfolded=True)[0]


def test_without_notes_everything_must_be_seen() -> None:
    made = card(view(None))
    lines, needed = made.lines(unfolded=False)
    assert not made.facts or not made.facts.folded
    assert sum(line.role == "dim" and "environment" in line.text for line in lines[:needed]) == 1


def test_what_a_push_takes_away_and_what_nobody_knows_is_said() -> None:
    lost = Outgoing("refs/heads/main", False, [], 0, [ONE], 3)
    unknown = Outgoing("refs/heads/x", False, problem="it stands at eeee there, a commit that is not known here")
    text = card(view(CardNotes(outgoing=[lost, unknown]))).text
    assert "TAKES AWAY 4 commits that main has there now" in text
    assert "and 3 older commits, not listed here" in text
    assert "not compared: it stands at eeee there" in text
    gone = card(view(CardNotes(going=[Going("a", "file", "git, in HEAD"), Going("b", "file")], going_more=2))).text
    assert "a  file, git, in HEAD" in gone
    assert "b  file, nothing is known to have it besides" in gone
    assert "and 2 other things, not looked at" in gone


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
