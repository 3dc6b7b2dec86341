"""A repository's own policy makes verdicts harder, and nothing else; what would loosen is named and ignored."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.policy.decide import decide, explain, tighten
from harness.policy.policy_file import RISKS, default_policy, parse_policy
from harness.policy.repository import PATH, WHOSE, tightening
from tests.unit.test_grants import CRITICAL, REQUESTS, act

ORDER = ("allow", "ask", "deny")
MINE = [
    default_policy(),
    parse_policy('[[rule]]\nverdict = "allow"\neffect = "*"\n', "mine"),
    parse_policy('[[rule]]\nverdict = "deny"\ntool = "exec"\nrisk = "critical"\n', "mine"),
]
VALUES = {
    "verdict": ORDER,
    "tool": ("exec", "shell", "*", "read_file"),
    "effect": ("*", "network", "network:pypi.org", "unsandboxed", "push:*"),
    "risk": RISKS,
}


def rule_text(rule: dict[str, str]) -> str:
    return "[[rule]]\n" + "".join(f'{name} = "{value}"\n' for name, value in rule.items())


rules = st.lists(
    st.fixed_dictionaries(
        {"verdict": st.sampled_from(ORDER), "tool": st.sampled_from(VALUES["tool"])},
        optional={"effect": st.sampled_from(VALUES["effect"]), "risk": st.sampled_from(RISKS)},
    ),
    max_size=6,
)


@given(rules, st.sampled_from(REQUESTS + CRITICAL))
def test_it_only_makes_a_verdict_harder(found: list[dict[str, str]], asked: tuple[str, dict[str, object]]) -> None:
    own = tightening("".join(rule_text(rule) for rule in found))
    action = act(*asked)
    for policy in MINE:
        before = decide(action, policy)
        after = tighten(before, action, own.rules, WHOSE)
        assert ORDER.index(after.verdict) >= ORDER.index(before.verdict)
        assert RISKS.index(after.risk) >= RISKS.index(before.risk)
        assert after == before or after.rule.startswith(WHOSE)
    verdicts = [rule["verdict"] for rule in found]
    assert len(own.ignored) == verdicts.count("allow")
    assert len(own.rules) == len(found) - verdicts.count("allow")


def test_what_would_loosen_is_named_by_its_line() -> None:
    text = '[[rule]]\nverdict = "allow"\neffect = "*"\nname = "all"\n\n[[rule]]\nverdict = "deny"\ntool = "shell"\n'
    own = tightening(text)
    assert [rule.verdict for rule in own.rules] == ["deny"]
    assert own.ignored == (f"{PATH}, line 1: all would loosen: ignored",)
    (broken,) = tightening("verdict = ").ignored
    assert broken.startswith(f"{PATH}, line 1")
    assert "none of this file counts" in broken
    assert tightening("") == tightening("\n")
    for endless in (f"rule = {'[' * 20_000}", f"rule = {'9' * 5000}"):
        (broken,) = tightening(endless).ignored
        assert broken.endswith("; none of this file counts"), "a repository holds no session up"


def test_an_explanation_names_every_rule_and_effect() -> None:
    policy = parse_policy(
        '[[rule]]\nverdict = "allow"\neffect = "network:pypi.org"\nname = "pypi"\n\n'
        '[[rule]]\nverdict = "ask"\ntool = "exec"\nname = "all"\n',
        "mine",
    )
    action = act("exec", {"argv": ["pip"], "access": "network", "hosts": ["pypi.org", "x.test"]})
    told = "\n".join(explain(action, policy))
    assert "allow by pypi, line 1 of mine" in told
    assert "ask by all, line 6 of mine" in told
    assert "effect network:pypi.org (reaches pypi.org over the network): covered by pypi" in told
    assert "effect network:x.test (reaches x.test over the network): no allow rule covers it" in told
    assert explain(act("exec", {"argv": ["ls"]}), policy)[-1] == "it has no effect outside the sandbox"
    assert "refused" in explain(act("exec", {"argv": ["ls"], "cwd": "/"}), policy)[0]
