"""A repository's own policy: it can only tighten. Pure: text in, rules that ask or deny and what was ignored out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from harness.domain.decision import Ruling
from harness.policy.policy_file import PolicyError, Rule, parse_policy

PATH = ".watchfloor/policy.toml"
MOST_BYTES = 64 * 1024
WHOSE = "the repository"


@dataclass(frozen=True, slots=True)
class Tightening:
    """Rules that ask or deny; ``ignored`` says in a sentence for each other line why it does not count."""

    rules: tuple[Rule, ...] = ()
    ignored: tuple[str, ...] = ()


@lru_cache(maxsize=64)
def tightening(text: str) -> Tightening:
    """Total: a file that cannot be read as a policy tightens nothing, and says why."""
    if not text:
        return Tightening()
    try:
        found = parse_policy(text, PATH)
    except PolicyError as exc:
        return Tightening(ignored=(f"{exc}; none of this file counts",))
    kept = tuple(rule for rule in found.rules if rule.verdict != Ruling.ALLOW)
    loose = (rule for rule in found.rules if rule.verdict == Ruling.ALLOW)
    return Tightening(kept, tuple(f"{PATH}, line {r.line}: {r.name} would loosen: ignored" for r in loose))
