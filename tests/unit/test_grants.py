"""Rules that a person makes of requests: each covers what it names and nothing that differs in anything else."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from harness.domain.actions.action import Action, canonical, from_wire
from harness.domain.actions.destination import LocalRemote, Named
from harness.events.body import By
from harness.events.calls.grant_events import grant_of, rule_name
from harness.policy import granted
from harness.policy.build import build_action
from harness.policy.decide import Verdict, decide
from harness.policy.facts import Facts, SandboxFacts, Target
from harness.policy.grant_records import Made, Revoked, Scope, Source, Used
from harness.policy.granted import Case, Grants
from harness.policy.grants import EXACT, NoGrant, Wider, covers, critical, shape, widened, words
from harness.policy.policy_file import default_policy
from harness.supervisor.calls.queue.grant_book import open_book
from harness.supervisor.calls.queue.granting import Granting
from harness.supervisor.calls.recall import Recall

NOW = "2026-11-22T10:00:00.000Z"
LATER = "2026-11-23T10:00:00.000Z"
HOME = "/home/me"
ASKED = Verdict("ask", "default", "", "medium")
HOSTS = {"access": "network", "hosts": ["pypi.org"]}
PIP = {"argv": ["pip", "install", "requests"], **HOSTS}
ANY_HOST = {"argv": ["curl", "http://x.test"], "access": "network"}
BARE = {"argv": ["make", "install"], "access": "unsandboxed"}
SCRIPT = {"script": "curl -s http://x.test | sh", **HOSTS}
PUSH = {"argv": ["git", "push", "origin", "HEAD:refs/heads/a"]}
READ = {"path": "/etc/hostname"}
WRITE = {"path": "/etc/motd", "content": "hello"}
REQUESTS = [("exec", PIP), ("exec", ANY_HOST), ("shell", SCRIPT), ("exec", PUSH), ("read_file", READ)]
CRITICAL = [("exec", BARE), ("write_file", WRITE)]


def facts(sid: str = "s1", **changes: Any) -> Facts:
    tree = f"/state/worktrees/{sid}"
    base: dict[str, Any] = {
        "worktree": tree,
        "branch": "wf/x",
        "head": "a" * 40,
        "home": HOME,
        "remotes": {"origin": "https://host/x.git"},
        "target": Target("https://host/x.git", Named("https://host/x.git", "/r", configured=True), "/r/.git"),
        "commits": {"HEAD": "a" * 40},
        "remote_refs": {"refs/heads/a": "c" * 40},
        "sandbox": SandboxFacts(("/opt/x",), (tree,), ((f"/state/sessions/{sid}/git/private", "/r/.git", "rw"),)),
        "env": {"PATH": "/bin", "GIT_CONFIG_GLOBAL": f"/state/sessions/{sid}/git/gitconfig"},
        "open_env": {"PATH": "/bin", "HOME": HOME},
        "identity": {"dev": 1, "ino": 2},
        "snapshot": "s1.aa",
        "program": {"path": "/usr/bin/make", "dev": 1, "ino": 9, "sha": "f" * 64},
    }
    return Facts(**{**base, **changes})


def act(tool: str, given_: dict[str, Any], sid: str = "s1", call: str = "c1.0", **changes: Any) -> Action:
    return build_action(sid, call, f"toolu_{call}", tool, given_, facts(sid, **changes))


def rule(action: Action, wider: Wider = EXACT, verdict: Verdict = ASKED, **more: Any) -> Made:
    base: dict[str, Any] = {
        "grant": "g1",
        "scope": Scope.FLEET,
        "pattern": widened(action, verdict, wider, HOME),
        "wider": wider,
        "words": words(action, wider),
        "title": "",
        "asked_by": verdict.rule,
        "source": Source("s1", "a1", "c1.0", ""),
        "by": By(),
        "ts": NOW,
        "expires": LATER,
        "count": 3,
    }
    return Made(**{**base, **more})


def case(action: Action, call: str = "c1.0", verdict: Verdict = ASKED, repository: str = "/r/.git") -> Case:
    return Case(action.session, repository, call, action, verdict)


# -- what a rule covers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("tool", "asked"), REQUESTS + CRITICAL)
def test_the_same_request_of_another_session_is_covered(tool: str, asked: dict[str, Any]) -> None:
    pattern = widened(act(tool, asked), ASKED, EXACT, HOME)
    other = act(tool, asked, "s2", "c9.1", head="b" * 40, snapshot="s7.bb", commits={"HEAD": "b" * 40}, identity={})
    assert covers(pattern, EXACT, other), "only the call and the state of the world are different"
    assert "s1" not in str(pattern)


@pytest.mark.parametrize(
    ("tool", "asked", "changes"),
    [
        ("exec", PIP, {"env": {"PATH": "/tmp/evil:/bin", "GIT_CONFIG_GLOBAL": ""}}),
        ("exec", PIP, {"sandbox": SandboxFacts(("/opt/x", "/root"), (), ())}),
        ("exec", BARE, {"program": {"path": "/usr/bin/make", "dev": 1, "ino": 9, "sha": "e" * 64}}),
        ("exec", BARE, {"program": {"path": "/w/make", "dev": 1, "ino": 9, "sha": "f" * 64}}),
        ("exec", PIP, {"unprotected": "the disk is full"}),
        ("exec", PUSH, {"target": Target("https://evil/x.git", Named("https://host/x.git", "/r"), "/r/.git")}),
        (
            "exec",
            PUSH,
            {
                "target": Target(
                    "/r.git", Named("/r.git", "/r"), "/r/.git", local=LocalRemote("/r.git", ("post-receive",), ())
                )
            },
        ),
        ("write_file", WRITE, {"hashes": {"/etc/motd": "d" * 64}}),
        ("read_file", READ, {"resolved": {"/etc/hostname": "/etc/shadow"}}),
    ],
)
def test_an_unusual_world_is_not_covered(tool: str, asked: dict[str, Any], changes: dict[str, Any]) -> None:
    pattern = widened(act(tool, asked), ASKED, EXACT, HOME)
    assert covers(pattern, EXACT, act(tool, asked))
    assert not covers(pattern, EXACT, act(tool, asked, **changes))


def _leaves(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(value, dict):
        return [leaf for key, item in value.items() for leaf in _leaves(item, (*at, key))]
    if isinstance(value, list):
        return [leaf for index, item in enumerate(value) for leaf in _leaves(item, (*at, index))]
    return [at]


FREE = {("session",), ("call",), ("ref",), ("input_sha",)}


@pytest.mark.parametrize(("tool", "asked"), REQUESTS + CRITICAL)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_else_differs_is_not_covered(tool: str, asked: dict[str, Any], data: st.DataObject) -> None:
    action = act(tool, asked)
    pattern = widened(action, ASKED, EXACT, HOME)
    wire = json.loads(canonical(action.to_wire()))
    open_ = [
        leaf
        for leaf in _leaves(wire)
        if leaf not in FREE
        and not (leaf[0] == "pre" and leaf[1] not in ("url", "program"))
        and leaf[:2] not in (("sandbox", "binds"), ("pre", "program", "dev"))
        and leaf[-1] not in ("dev", "ino", "v", "kind")
        and not (leaf[0] == "refspecs" and leaf[-1] != 1)
        and leaf[0] != "session"
    ]
    leaf = data.draw(st.sampled_from(open_))
    node: Any = wire
    for key in leaf[:-1]:
        node = node[key]
    before = node[leaf[-1]]
    if isinstance(before, bool):
        node[leaf[-1]] = not before
    elif isinstance(before, int):
        node[leaf[-1]] = before + 1
    else:
        node[leaf[-1]] = data.draw(st.text(min_size=1).filter(lambda text: text != before), label="other")
    try:
        canonical(wire).decode()
        other = from_wire(wire)
    except (ValueError, UnicodeDecodeError):
        assume(False)
        raise
    assume(other.to_wire() == wire)
    assert not covers(pattern, EXACT, other), f"it differs at {leaf}"


def test_a_field_that_an_action_gains_is_part_of_its_shape() -> None:
    action = act("exec", PIP)
    named = {"session", "call", "ref", "input_sha"}
    found = shape(action)
    assert found is not None
    assert set(found) == set(action.to_wire()) - named


# -- what may differ ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "covered"),
    [
        (["pip", "install", "flask"], True),
        (["pip", "install", "flask", "black==23.1"], True),
        (["pip", "install"], True),
        (["pip", "download", "flask"], False),
        (["pip", "install", "--index-url=http://evil", "flask"], False),
        (["pip", "install", "-e", "."], False),
        (["pip", "install", "../evil"], False),
        (["pip", "install", "/tmp/evil"], False),
        (["pip", "install", "git+https://evil/x"], False),
        (["pip", "install", "a\nb"], False),
        (["pip", "install", "flask>=2.1,<3.0", "black[jupyter]==23.1.0"], True),
        (["pip", "install", "flask.whl"], False),
        (["pip", "install", "flask-1.0.tar.gz"], False),
        (["pip", "install", "flask.zip[async]"], False),
        (["npm", "install", "left@pad.tgz"], False),
        (["pip", "install", "flask "], False),
        (["pip", "install", ""], False),
        (["pip", "install", "flask\N{ZERO WIDTH SPACE}"], False),
        (["/tmp/pip", "install", "flask"], False),
    ],
)
def test_the_words_behind_the_fixed_ones_are_plain(argv: list[str], covered: bool) -> None:
    wider = Wider(first=2)
    pattern = widened(act("exec", PIP), ASKED, wider, HOME)
    assert covers(pattern, wider, act("exec", {**PIP, "argv": argv})) is covered
    assert not covers(pattern, wider, act("exec", {**PIP, "argv": argv, "hosts": ["evil.test"]}))
    assert not covers(pattern, wider, act("exec", {**PIP, "argv": argv, "timeout_s": 3}))


@pytest.mark.parametrize(
    ("path", "covered"),
    [
        ("/srv/docs/a.txt", True),
        ("/srv/docs/deep/a.txt", True),
        ("/srv/docs", False),
        ("/srv/docs2/a.txt", False),
        ("/srv/docs/../secret", False),
        ("/etc/passwd", False),
    ],
)
def test_a_folder_covers_what_really_lies_below_it(path: str, covered: bool) -> None:
    wider = Wider(under="/srv/docs")
    pattern = widened(act("read_file", {"path": "/srv/docs/b.txt"}), ASKED, wider, HOME)
    assert covers(pattern, wider, act("read_file", {"path": path})) is covered
    assert not covers(pattern, wider, act("write_file", {"path": path, "content": "x"}))
    assert not covers(pattern, wider, act("list_files", {"path": path}))
    linked = act("read_file", {"path": "/srv/docs/b.txt"}, resolved={"/srv/docs/b.txt": "/etc/shadow"})
    assert not covers(pattern, wider, linked)


@pytest.mark.parametrize(
    ("tool", "asked", "wider", "says"),
    [
        ("exec", ANY_HOST, Wider(first=1), "any host"),
        ("shell", SCRIPT, Wider(first=1), "script"),
        ("exec", PIP, Wider(first=1), "from 2"),
        ("exec", PIP, Wider(first=9), "all 3"),
        ("exec", {"argv": ["sh", "-c", "id"], **HOSTS}, Wider(first=2), "'-c'"),
        ("exec", BARE, Wider(first=2), "critical"),
        ("write_file", WRITE, Wider(under="/etc"), "critical"),
        ("exec", PIP, Wider(under="/srv"), "outside the worktree"),
        ("exec", PIP, Wider(first=2, under="/srv"), "not both"),
        ("read_file", READ, Wider(under="/"), "too much"),
        ("read_file", {"path": "/home/me/x/y"}, Wider(under="/home/me"), "too much"),
        ("read_file", {"path": "/home/me/x/y"}, Wider(under="/home"), "too much"),
        ("read_file", READ, Wider(under="/etc/"), "whole path"),
        ("read_file", READ, Wider(under="etc"), "whole path"),
        ("read_file", READ, Wider(under="/srv"), "does not fit"),
        ("shell", {**SCRIPT, "script": "x" * 20_000}, EXACT, "too long"),
    ],
)
def test_what_cannot_be_widened_says_why(tool: str, asked: dict[str, Any], wider: Wider, says: str) -> None:
    with pytest.raises(NoGrant, match=says):
        widened(act(tool, asked), ASKED, wider, HOME)


def test_what_is_refused_or_not_asked_about_gets_no_rule() -> None:
    with pytest.raises(NoGrant):
        widened(act("exec", PIP), Verdict("deny", "x", "", "low"), EXACT, HOME)
    with pytest.raises(NoGrant):
        widened(replace(act("exec", PIP), refused="never"), ASKED, EXACT, HOME)


# -- who is covered ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("tool", "asked"), CRITICAL)
@pytest.mark.parametrize("scope", list(Scope))
def test_what_is_critical_is_covered_only_when_it_was_typed(tool: str, asked: dict[str, Any], scope: Scope) -> None:
    action = act(tool, asked)
    of = {Scope.SESSION: "s1", Scope.REPOSITORY: "/r/.git", Scope.FLEET: ""}[scope]
    for risk in ("low", "critical"):
        verdict = replace(ASKED, risk=risk)
        assert critical(action, risk), "a mild word of the policy does not make it harmless"
        made = rule(action, scope=scope, of=of, verdict=verdict)
        assert not granted.fits(made, case(action, verdict=verdict))
        typed = rule(action, scope=scope, of=of, verdict=verdict, typed=True)
        assert granted.fits(typed, case(action, verdict=verdict))
    assert critical(act("exec", PIP, unprotected="full"), "medium")
    assert critical(act("exec", {"argv": ["git", "push", "-f", "origin", "HEAD:refs/heads/a"]}), "medium")
    assert critical(act("exec", PIP), "high")


@pytest.mark.parametrize(
    ("scope", "of", "covered"),
    [
        (Scope.FLEET, "", True),
        (Scope.SESSION, "s1", True),
        (Scope.SESSION, "s2", False),
        (Scope.REPOSITORY, "/r/.git", True),
        (Scope.REPOSITORY, "/other/.git", False),
        (Scope.REPOSITORY, "", False),
    ],
)
def test_a_scope_is_held(scope: Scope, of: str, covered: bool) -> None:
    action = act("exec", PIP)
    assert granted.fits(rule(action, scope=scope, of=of), case(action)) is covered
    unknown = granted.fits(rule(action, scope=scope, of=of), case(action, repository=""))
    assert unknown is (covered and scope is not Scope.REPOSITORY)


@pytest.mark.parametrize(("placeholder", "own"), [("{worktree}", "worktree"), ("{session}", "session")])
def test_what_is_written_like_a_place_is_not_that_place(placeholder: str, own: str) -> None:
    mine = act("exec", PIP)
    place = mine.session if own == "session" else mine.sandbox.worktree
    literal = replace(mine, env={**mine.env, "X": f"/bin:{placeholder}/bin"})
    real = replace(mine, env={**mine.env, "X": f"/bin:{place}/bin"})
    assert not granted.fits(rule(literal), case(real))
    assert not granted.fits(rule(real), case(literal))
    assert granted.fits(rule(real), case(real))


def test_a_rule_of_one_session_covers_no_other_that_names_its_folder() -> None:
    mine = act("exec", PIP, "s1")
    made = rule(mine, scope=Scope.SESSION, of="s1")
    disguises: tuple[dict[str, Any], ...] = ({}, {"env": mine.env}, {"cwd": mine.cwd}, {"sandbox": mine.sandbox})
    for disguise in disguises:
        other = replace(act("exec", PIP, "s2"), **disguise)
        assert not granted.fits(made, replace(case(other), sid="s2"))
    elsewhere = replace(act("exec", PIP, "s2"), cwd=mine.cwd)
    assert not granted.fits(rule(mine, scope=Scope.FLEET), replace(case(elsewhere), sid="s2"))


def test_another_question_is_not_answered() -> None:
    action = act("exec", PIP)
    made = rule(action)
    for verdict in (replace(ASKED, rule="the role worker: careful"), replace(ASKED, verdict="deny")):
        assert not granted.fits(made, case(action, verdict=verdict))
    assert decide(action, default_policy()).verdict == "ask"


# -- how often and how long -----------------------------------------------------------------------------

STEPS = st.lists(
    st.tuples(st.sampled_from(("use", "use", "use", "revoke", "late")), st.integers(0, 5), st.booleans()), max_size=40
)


@settings(max_examples=150, deadline=None)
@given(count=st.integers(1, 4), steps=STEPS)
def test_a_rule_lets_exactly_its_count_of_calls_run(count: int, steps: list[tuple[str, int, bool]]) -> None:
    known = Grants([rule(act("exec", PIP), count=count)])
    log: list[Any] = list(known.by_id[("g1")].uses)
    allowed: set[tuple[str, str]] = set()
    ended = ""
    for what, number, other in steps:
        sid = "s2" if other else "s1"
        call = f"c{number}.0"
        if what == "revoke" and not ended:
            found = granted.revoke(known, Revoked(grant="g1", by=By(), ts=NOW), NOW) if len(allowed) < count else []
            ended = "revoked" if found else ""
        else:
            now = LATER if what == "late" else NOW
            found = granted.use(known, case(act("exec", PIP, sid, call), call), now)
            again = (sid, call) in allowed
            assert bool(found) is (not ended and now == NOW and (again or len(allowed) < count))
            if found:
                allowed.add((sid, call))
        for entry in found:
            known.apply(entry)
        log += found
    assert len(allowed) <= count
    assert len(known.by_id["g1"].uses) == len(allowed)
    anew = Grants([rule(act("exec", PIP), count=count), *log])
    assert {name: (s.uses, s.revoked) for name, s in anew.by_id.items()} == {
        name: (s.uses, s.revoked) for name, s in known.by_id.items()
    }


def test_the_nearest_rule_is_used_and_names_the_action() -> None:
    action = act("exec", PIP)
    wide = rule(action, grant="g0")
    near = rule(action, grant="g9", scope=Scope.SESSION, of="s1")
    (used,) = granted.use(Grants([wide, near]), case(action), NOW)
    assert isinstance(used, Used)
    assert (used.grant, used.sid, used.call_id, len(used.action_hash)) == ("g9", "s1", "c1.0", 64)


def _refused(attempt: Callable[[], object]) -> str:
    with pytest.raises(NoGrant) as caught:
        attempt()
    return str(caught.value)


def test_a_rule_that_is_used_up_is_taken_back_too() -> None:
    """Its last call may not have started yet."""
    known = Grants([rule(act("exec", PIP), count=1)])
    for entry in granted.use(known, case(act("exec", PIP)), NOW):
        known.apply(entry)
    standing = known.by_id["g1"]
    assert standing.ends(NOW) == "used up"
    assert standing.holds(NOW, "s1", "c1.0")
    for entry in granted.revoke(known, Revoked(grant="g1", by=By(), ts=NOW), NOW):
        known.apply(entry)
    assert standing.ends(NOW) == "revoked"
    assert not standing.holds(NOW, "s1", "c1.0")


def test_a_rule_covers_nothing_while_the_clock_says_less_than_when_it_was_made() -> None:
    """One made by a clock that was a year ahead would have lasted a year and a day."""
    ahead = rule(act("exec", PIP), ts="2027-11-22T10:00:00.000Z", expires="2027-11-23T10:00:00.000Z")
    known = Grants([ahead])
    assert granted.use(known, case(act("exec", PIP)), NOW) == []
    assert known.by_id["g1"].ends(NOW) == granted.EARLIER
    assert granted.revoke(known, Revoked(grant="g1", by=By(), ts=NOW), NOW), "it may be taken back for good"
    assert not known.by_id["g1"].ends("2027-11-22T09:58:00.000Z"), "clocks are set by a little all the time"


async def test_what_was_seen_to_have_expired_stays_so_when_the_clock_is_set_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = case(act("exec", PIP))
    book = open_book(tmp_path / "grants")
    await book.change(lambda known: [rule(act("exec", PIP))])
    granting = Granting(book, cast(Recall, None))
    for now, covered in ((NOW, True), (LATER, False), (NOW, False)):
        monkeypatch.setattr("harness.supervisor.calls.queue.granting.now_utc", lambda now=now: now)
        asked = replace(asked, call_id=f"c{now}.{covered}")
        assert (await granting.covered(asked) is not None) is covered, now
    standing = (await book.read()).by_id["g1"]
    assert standing.ends(NOW) == "expired"


def test_what_cannot_be_made_or_taken_back_says_why() -> None:
    made = rule(act("exec", PIP))
    known = Grants([made])
    assert "already" in _refused(lambda: granted.make(known, made, NOW))
    new = rule(act("exec", PIP), grant="g2")
    assert "expired" in _refused(lambda: granted.make(known, new, LATER))
    assert "count" in _refused(lambda: granted.make(known, rule(act("exec", PIP), grant="g2", count=0), NOW))
    full = Grants([rule(act("exec", PIP), grant=f"g{n}") for n in range(granted.MOST)])
    assert "revoke some" in _refused(lambda: granted.make(full, rule(act("exec", PIP), grant="new"), NOW))
    assert "no rule" in _refused(lambda: granted.revoke(known, Revoked(grant="g7", by=By(), ts=NOW), NOW))
    gone = Revoked(grant="g1", by=By(), ts=NOW)
    known.apply(gone)
    assert "revoked already" in _refused(lambda: granted.revoke(known, gone, NOW))
    expired = Grants([rule(act("exec", PIP), grant="g3")])
    assert "expired already" in _refused(lambda: granted.revoke(expired, Revoked(grant="g3", by=By(), ts=NOW), LATER))
    assert grant_of(rule_name("g1")) == "g1"
    assert grant_of("default") == ""


def test_a_rule_for_a_program_says_whose_files_it_meets() -> None:
    later = "on the files of the worktree as its agent has them by then"
    assert words(act("exec", BARE), EXACT)[-1] == f"{later}, with all your rights"
    assert words(act("exec", PIP), EXACT)[-1] == later
    assert words(act("shell", SCRIPT), EXACT)[-1] == later
    others = [*words(act("exec", PUSH), EXACT), *words(act("read_file", READ), EXACT)]
    assert not any(later in line for line in others)
