"""Roles: the files that ship, the errors that say where, what a role tightens, and what a session keeps of it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.actions.action import from_wire
from harness.events import types as t
from harness.plan import draft
from harness.plan.files.criteria import ANY_FORM
from harness.policy.decide import Verdict, tighten
from harness.policy.policy_file import Rule
from harness.projections.apply import fold
from harness.reports.describe import describe
from harness.roles import catalog, pinned
from harness.roles.role import INITIALIZER, JUDGE, PARTS, WORKER, RoleError, RoleLimits, parse
from harness.supervisor.base.errors import OpError
from harness.supervisor.sessions.begin import casting
from harness.tools import registry
from harness.views.launch_request import LaunchRequest

OWN = 'about = "mine"\nmodel = "claude-haiku-5-5"\ntools = ["read_file", "exec"]\nprompt = "Look."\n'
CODER = "4fbdee919d9ed1aab25efa537a9589c8137b47d326e12150a224633a2d3a9f50"
"""Of the coder's prompt: every prompt cache begins with these bytes."""


def test_the_coders_prompt_changes_on_purpose_only_and_it_has_every_tool_there_is() -> None:
    coder = catalog.shipped()["coder"]
    assert hashlib.sha256(coder.prompt.encode()).hexdigest() == CODER
    assert coder.offered() == [tool.definition() for tool in registry.TABLE.values()]
    assert coder.rules == ()


def test_each_part_has_a_role_that_ships_and_says_what_it_is_for() -> None:
    assert set(catalog.shipped()) == {"initializer", "planner", "coder", "evaluator"}
    assert set(PARTS.values()) <= set(catalog.shipped())
    for role in catalog.shipped().values():
        assert role.about
        assert role.version == hashlib.sha256(role.text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("text", "line", "key", "says"),
    [
        ('tools = []\nprompt = = "x"\n', 2, "", "line 2"),
        ('tools = []\nprompt = "x"\nmodle = "m"\n', 3, "modle", "unknown key"),
        ('prompt = "x"\n', 1, "tools", "list of tools"),
        ('tools = []\nprompt = "x"\ndeny_paths = "secrets"\n', 3, "deny_paths", 'e.g. ["secrets/", "*.pem"]'),
        ('tools = []\nprompt = "x"\ndeny_paths = ["a", 1]\n', 3, "deny_paths", "list of patterns"),
        ('tools = []\nprompt = "x"\ndeny_paths = ["/etc"]\n', 3, "deny_paths", "inside the repository"),
        ('tools = []\nprompt = "x"\ndeny_paths = ["a/../b"]\n', 3, "deny_paths", "inside the repository"),
        ('tools = []\nprompt = "x"\ndeny_paths = ["**/*"]\n', 3, "deny_paths", "would deny every path"),
        ('tools = []\nprompt = "x"\ndeny_paths = ["a", " "]\n', 3, "deny_paths", "must name something"),
        ('tools = []\nprompt = "x"\ndeny_paths = ["!a"]\n', 3, "deny_paths", "taken out again"),
        ('tools = []\nprompt = "x"\ndeny_paths = ["a\\nb"]\n', 3, "deny_paths", "control character"),
        ('tools = []\nprompt = "x"\ndeny_paths = ["sub/.git/config"]\n', 3, "deny_paths", "git's own folder"),
        ('tools = []\nprompt = "x"\ndeny_branches = ["refs/heads/a"]\n', 3, "deny_branches", "without refs/heads/"),
        ('tools = []\nprompt = "x"\ndeny_branches = ["*"]\n', 3, "deny_branches", "would deny every branch"),
        ('tools = []\nprompt = "x"\ndeny_branch = ["a"]\n', 3, "deny_branch", "unknown key"),
        ('prompt = "x"\ntools = ["read_file", "fly"]\n', 2, "tools", "no such tool: fly"),
        ('tools = []\nprompt = " "\n', 2, "prompt", "needs a prompt"),
        ('tools = []\nprompt = "x"\n[limits]\ncycles = 21\n', 4, "limits.cycles", "between 0 and 20"),
        ('tools = []\nprompt = "x"\n[limits]\nusd = "much"\n', 4, "limits.usd", "amount in USD"),
        ('tools = []\nprompt = "x"\n[limits]\nusd = nan\n', 4, "limits.usd", "amount in USD"),
        ('tools = []\nprompt = "x"\n[limits]\nusd = inf\n', 4, "limits.usd", "not an amount in USD"),
        ('tools = []\nprompt = "x"\n[limits]\nusd = 1e300\n', 4, "limits.usd", "more than the most"),
        ('tools = []\nprompt = "x"\n[limits]\nfuel = 1\n', 4, "limits.fuel", "unknown key; known: usd"),
        (f'tools = []\nprompt = "x"\n[limits]\ncalls = 1{"0" * 26}\n', 4, "limits.calls", "and 1,125,"),
        (f"tools = []\nprompt = {'9' * 5000}", 2, "", "4300 digits"),
        (
            'tools = []\nprompt = "x"\n[[rule]]\nverdict = "allow"\ntool = "exec"\neffect = "network"\n',
            4,
            "rule.verdict",
            "may only tighten",
        ),
        ('tools = []\nprompt = "x"\n[[rule]]\nverdict = "ask"\ntool = "exce"\n', 5, "rule.tool", "no such tool"),
        (f"tools = {'[' * 20_000}", 1, "", "nested deeper"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_line_and_key(text: str, line: int, key: str, says: str) -> None:
    with pytest.raises(RoleError) as caught:
        parse("mine", text, "mine.toml")
    assert (caught.value.file, caught.value.key) == ("mine.toml", key)
    assert says in str(caught.value)
    assert caught.value.line == line


@pytest.mark.parametrize("kind", ["pipe", "folder", "endless"])
def test_what_is_no_file_in_the_place_of_a_role_is_said_and_not_waited_for(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / catalog.FOLDER
    folder.mkdir()
    path = folder / "coder.toml"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(RoleError, match=r"cannot be read: is a (named pipe|folder|device), not a file"):
        catalog.find(tmp_path, "coder")


def test_the_users_own_stands_before_the_one_that_ships_and_no_name_leaves_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / catalog.FOLDER
    folder.mkdir()
    (folder / "coder.toml").write_text(OWN)
    (tmp_path / "out.toml").write_text(OWN)
    found = catalog.find(tmp_path, "coder")
    assert found is not None
    assert (found[0].prompt, found[1]) == ("Look.", str(folder / "coder.toml"))
    assert catalog.find(tmp_path, "../out") is None
    assert catalog.names(tmp_path) == sorted(catalog.shipped())
    with pytest.raises(OpError, match="there is no role"):
        casting.cast(tmp_path, "none")
    (folder / "coder.toml").write_text("tools = 1")
    with pytest.raises(OpError, match="line 1: tools"):
        casting.cast(tmp_path, "")


def test_an_editors_mark_before_the_first_line_is_no_part_of_a_role(tmp_path: Path) -> None:
    (tmp_path / catalog.FOLDER).mkdir()
    (tmp_path / catalog.FOLDER / "mine.toml").write_text(OWN, encoding="utf-8-sig")
    found = catalog.find(tmp_path, "mine")
    assert found is not None
    assert found[0].version == hashlib.sha256(OWN.encode()).hexdigest()


def test_a_session_keeps_the_words_it_began_with(tmp_path: Path) -> None:
    folder = tmp_path / catalog.FOLDER
    folder.mkdir()
    (folder / "mine.toml").write_text(OWN)
    cast = casting.cast(tmp_path, "mine", JUDGE)
    intent = t.SessionIntent(
        name="n", goal="g", repo="/r", branch="b", worktree="/w", model=cast.worker.model, roles=cast.pinned()
    )
    kept = msgspec.json.decode(msgspec.json.encode(intent), type=t.SessionIntent)
    (folder / "mine.toml").write_text(OWN.replace("Look.", "Something else."))
    role = pinned.of(kept, WORKER)
    assert (role.prompt, role.version) == ("Look.", hashlib.sha256(OWN.encode()).hexdigest())
    assert f"roles: mine {role.version[:12]}" in describe(t.Record(1, "", "x", 0, kept)).summary
    assert [d["name"] for d in role.offered()] == ["read_file", "exec"]
    assert not role.may_use("shell")
    assert pinned.of(kept, JUDGE).name == "evaluator"
    assert pinned.of(None, WORKER) == catalog.shipped()["coder"]


def test_how_a_plan_is_written_from_a_goal_is_the_initializers_word_as_the_session_began_with_it(
    tmp_path: Path,
) -> None:
    wish = LaunchRequest(repo="/r", goal="g", plan_from_goal="plan.json")
    cast = casting.of_launch(tmp_path, wish)
    kept = t.SessionIntent(name="n", goal="g", repo="/r", branch="b", worktree="/w", model="", roles=cast.pinned())
    asked = draft.task(pinned.of(kept, INITIALIZER).first, "plan.json")
    assert "write `plan.json` from the goal" in asked
    assert ANY_FORM in asked
    assert "{" not in asked
    folder = tmp_path / catalog.FOLDER
    folder.mkdir()
    (folder / "initializer.toml").write_text(OWN + 'first = "Write {path} with {steps}."\n')
    own = casting.of_launch(tmp_path, wish).roles[INITIALIZER]
    assert draft.task(own.first, "a.json") == "Write a.json with {steps}."
    assert pinned.of(kept, INITIALIZER).first != own.first
    (folder / "initializer.toml").write_text(OWN)
    with pytest.raises(OpError, match="does not say how a plan is written"):
        casting.of_launch(tmp_path, wish)
    assert INITIALIZER not in casting.of_launch(tmp_path, LaunchRequest(repo="/r", goal="g")).roles


ORDER = ("allow", "ask", "deny")


@given(
    st.sampled_from(ORDER),
    st.lists(st.tuples(st.sampled_from(ORDER), st.sampled_from(("exec", "shell"))), max_size=4),
)
def test_a_role_never_makes_a_verdict_milder(given_verdict: str, made: list[tuple[str, str]]) -> None:
    rules = [Rule(verdict, f"r{i}", tool=tool) for i, (verdict, tool) in enumerate(made)]
    before = Verdict(given_verdict, "policy", "why", "low")
    one = from_wire({"sandbox": {}, "tool": "exec", "kind": "exec", "argv": ["npm", "test"], "effects": []})
    after = tighten(before, one, rules, "the role x")
    speaking = [ORDER.index(v) for v, tool in made if tool == "exec" and v != "allow"]
    assert ORDER.index(after.verdict) == max([ORDER.index(given_verdict), *speaking])


@given(st.none() | st.integers(0, 9), st.none() | st.integers(0, 9))
def test_a_roles_limits_only_lower_a_cap(cap: int | None, limit: int | None) -> None:
    made = casting.within(t.Caps(tool_calls=cap), RoleLimits(tool_calls=limit)).tool_calls
    assert made == min((one for one in (cap, limit) if one is not None), default=None)


@pytest.mark.parametrize(
    ("proposed", "says"),
    [
        (t.ToolProposed(call_id="c1.0", tool="shell", ref="toolu_1"), "not a tool of the role mine"),
        (t.ToolProposed(call_id="c1.0", tool="exec", ref="toolu_1"), ""),
        (t.ToolProposed(call_id="c1.0", tool="check", ref="toolu_1"), "not a tool of yours"),
        (t.ToolProposed(call_id="c1.0", tool="check", ref=""), ""),
        (t.ToolProposed(call_id="c1.0", tool="check", ref="judge 1"), "not a tool of yours"),
    ],
)
def test_the_supervisor_refuses_a_tool_that_the_role_lacks_whoever_proposes_it(
    proposed: t.ToolProposed, says: str
) -> None:
    """No evaluation is under way: even a call in the judge's name is none of its."""
    role = parse("mine", OWN, "mine.toml")
    intent = t.SessionIntent(
        name="n", goal="g", repo="/r", branch="b", worktree="/w", model="m", roles=[pinned.pin(WORKER, role)]
    )
    state = fold([t.Record(0, "", "x", 0, intent)])
    assert (says in pinned.refusal(state, proposed)) if says else pinned.refusal(state, proposed) == ""
