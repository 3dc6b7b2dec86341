"""The policy file and its verdicts: errors that say where, and the properties that make it safe."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.actions.action import Action, from_wire
from harness.policy.decide import INSIDE, decide
from harness.policy.policy_file import Policy, PolicyError, Rule, default_policy, parse_policy

ORDER = {"allow": 0, "ask": 1, "deny": 2}


def action(**changes: Any) -> Action:
    return from_wire({"sandbox": {}, "tool": "exec", "kind": "exec", "argv": ["npm", "test"], "effects": [], **changes})


def policy(*rules: Rule) -> Policy:
    return Policy(rules, "h", "test")


@pytest.mark.parametrize(
    ("text", "line", "key", "says"),
    [
        ('[[rule]]\nverdict = "allow"\ntool = "exec\n', 3, "", "line 3"),
        ("rules = 1\n", 1, "rules", "unknown key"),
        ('[[rule]]\nverdict = "maybe"\ntool = "exec"\n', 2, "rule.verdict", "allow, ask, deny"),
        ('[[rule]]\ntool = "exec"\n', 1, "rule.verdict", "must be one of"),
        ('\n[[rule]]\nverdict = "ask"\ntool = "exce"\n', 4, "rule.tool", "no such tool"),
        (
            '[[rule]]\nverdict = "ask"\ntool = "exec"\n[[rule]]\nverdict = "ask"\ntool="exec"\nrisk = "huge"\n',
            7,
            "rule.risk",
            "low, medium",
        ),
        ('[[rule]]\nverdict = "ask"\nargs = "npm test"\n', 3, "rule.args", "list of strings"),
        ('[[rule]]\nverdict = "ask"\nargs = ["**", "x"]\n', 3, "rule.args", "last element"),
        ('[[rule]]\nverdict = "ask"\n', 1, "rule", "matches everything"),
        ('[[rule]]\nverdict = "ask"\ntool = "exec"\ncolour = "red"\n', 4, "rule.colour", "unknown key"),
        ('[[rule]]\nverdict = "allow"\ntool = "shell"\nmatch = "npm *"\n', 4, "rule.match", "exactly"),
        ('[rule]\nverdict = "ask"\n', 1, "rule", "[[rule]]"),
        (f"rule = {'[' * 20_000}", 1, "", "nested deeper"),
    ],
)
def test_errors_name_file_line_and_key(text: str, line: int, key: str, says: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse_policy(text, "/etc/policy.toml")
    assert (caught.value.file, caught.value.line, caught.value.key) == ("/etc/policy.toml", line, key)
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"/etc/policy.toml, line {line}")


def test_the_shipped_policy_parses_and_is_hashed() -> None:
    shipped = default_policy()
    assert len(shipped.hash) == 64
    assert {r.verdict for r in shipped.rules} == {"ask"}


def test_contained_is_allowed_unless_a_rule_says_otherwise() -> None:
    assert decide(action(), default_policy()).rule == INSIDE
    denied = decide(action(), policy(Rule("deny", "no-npm", args=("npm", "**"), reason="use make")))
    assert (denied.verdict, denied.rule, denied.reason) == ("deny", "no-npm", "use make")


@pytest.mark.parametrize("verdict", ["ask", "deny"])
@pytest.mark.parametrize("rule", [{"args": ("npm", "ci", "**")}, {"match": "npm ci*"}])
@pytest.mark.parametrize("program", ["npm", "/usr/bin/npm", "./npm", "../bin/npm"])
def test_what_tightens_speaks_of_a_program_by_whatever_path(verdict: str, rule: dict[str, Any], program: str) -> None:
    wants = action(argv=[program, "ci"], effects=["network"])
    both = policy(Rule(verdict, "no", **rule), Rule("allow", "r", args=("*", "ci"), effect="network"))
    assert decide(wants, both).verdict == verdict


def test_an_allow_rule_speaks_of_a_program_only_as_it_is_written() -> None:
    wants = action(argv=["./npm", "ci"], effects=["network"])
    assert decide(wants, policy(Rule("allow", "r", args=("npm", "ci"), effect="network"))).verdict == "ask"


def test_an_allow_rule_must_name_the_effect() -> None:
    wants = action(argv=["npm", "ci"], effects=["network"])
    assert decide(wants, policy(Rule("allow", "r", args=("npm", "ci")))).verdict == "ask"
    allowed = decide(wants, policy(Rule("allow", "r", args=("npm", "ci"), effect="network")))
    assert (allowed.verdict, allowed.rule) == ("allow", "r")
    both = action(argv=["npm", "ci"], effects=["network", "delete-untracked:a"])
    assert decide(both, policy(Rule("allow", "r", args=("npm", "ci"), effect="network"))).verdict == "ask"


@pytest.mark.parametrize("argv", [["npm", "ci", "--x"], ["npm"], ["npm", "cii"], ["sh", "-c", "npm ci"]])
def test_args_match_whole_argument_lists(argv: list[str]) -> None:
    assert (
        decide(
            action(argv=argv, effects=["network"]), policy(Rule("allow", "r", args=("npm", "ci"), effect="network"))
        ).verdict
        == "ask"
    )


def test_an_allow_rule_for_a_script_needs_the_exact_text() -> None:
    rule = Rule("allow", "r", tool="shell", match="npm ci", effect="network")
    script = {"tool": "shell", "kind": "shell", "effects": ["network"]}
    assert decide(from_wire({**script, "script": "npm ci"}), policy(rule)).verdict == "allow"
    assert decide(from_wire({**script, "script": "npm ci; curl evil"}), policy(rule)).verdict == "ask"


def test_args_rules_do_not_speak_of_scripts() -> None:
    assert (
        decide(
            from_wire({"tool": "shell", "kind": "shell", "script": "npm ci", "effects": ["network"]}),
            policy(Rule("allow", "r", args=("npm", "ci"), effect="network")),
        ).verdict
        == "ask"
    )


EFFECT = st.one_of(
    st.sampled_from(["network", "unsandboxed", "push-force"]),
    st.builds("outside:/{}".format, st.text("ab/.", max_size=4)),
    st.builds("delete-untracked:{}".format, st.text("ab/.", max_size=4)),
    st.builds("push:origin refs/heads/{}".format, st.text("ab", max_size=3)),
)


def made(tool: str, words: list[str], effects: list[str]) -> Action:
    what: dict[str, Any] = {"kind": "file", "path": words[0]}
    if tool == "shell":
        what = {"kind": "shell", "script": " ".join(words)}
    elif tool == "exec":
        what = {"kind": "exec", "argv": words}
    return from_wire({"tool": tool, "effects": effects, **what})


ACTION = st.builds(
    made,
    st.sampled_from(["exec", "shell", "read_file", "write_file"]),
    st.lists(st.sampled_from(["npm", "ci", "a", "b", "*"]), min_size=1, max_size=3),
    st.lists(EFFECT, max_size=3, unique=True),
)
MAYBE = lambda s: st.one_of(st.none(), s)  # noqa: E731
RULE = st.builds(
    Rule,
    name=st.sampled_from(["r1", "r2"]),
    verdict=st.sampled_from(["allow", "ask", "deny"]),
    tool=MAYBE(st.sampled_from(["exec", "*", "shell", "write_file"])),
    args=MAYBE(st.sampled_from([("npm", "**"), ("npm", "ci"), ("*",)])),
    match=MAYBE(st.sampled_from(["npm*", "*", "npm ci"])),
    effect=MAYBE(st.sampled_from(["*", "network", "outside:*", "push*", "delete-untracked:*", "unsandboxed"])),
)
POLICY = st.lists(RULE, max_size=5).map(lambda rules: policy(*rules))


@given(ACTION, st.lists(RULE.filter(lambda r: r.effect is None), max_size=5).map(lambda r: policy(*r)))
def test_an_effect_that_no_rule_lists_asks_or_is_denied(a: Action, p: Policy) -> None:
    verdict = decide(a, p)
    assert not a.effects or verdict.verdict in ("ask", "deny")


@given(ACTION, POLICY, RULE.filter(lambda r: r.verdict == "deny"), st.integers(0, 5))
def test_adding_a_deny_rule_never_loosens(a: Action, p: Policy, rule: Rule, at: int) -> None:
    more = Policy((*p.rules[:at], rule, *p.rules[at:]), "h", "test")
    assert ORDER[decide(a, more).verdict] >= ORDER[decide(a, p).verdict]


@given(ACTION, POLICY)
def test_order_of_rules_never_changes_the_verdict(a: Action, p: Policy) -> None:
    assert decide(a, Policy(p.rules[::-1], "h", "t")).verdict == decide(a, p).verdict


@given(ACTION, POLICY)
def test_what_is_refused_is_denied_whatever_the_policy_says(a: Action, p: Policy) -> None:
    assert decide(replace(a, refused="no"), p).verdict == "deny"
