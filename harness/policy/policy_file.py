"""The policy file: ordered rules over tools, arguments and effects. Pure: text in, `Policy` or `PolicyError` out."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from harness.domain.actions.effect import Effect
from harness.domain.decision import Ruling
from harness.domain.settings.reading import Form, Source
from harness.domain.settings.toml_text import Unusable
from harness.policy import hosts
from harness.tools import registry

Risk = Literal["low", "medium", "high", "critical"]
RISKS: tuple[str, ...] = get_args(Risk)
DEFAULT_SOURCE = "built-in policy"


class PolicyError(Unusable):
    """A policy file cannot be used."""


def _tool(pattern: str) -> str:
    if not any(fnmatch.fnmatchcase(tool, pattern) for tool in registry.ALL):
        raise ValueError(f"no such tool: {pattern[:60]!r}; known: {', '.join(registry.ALL)}")
    return pattern


Filled = Annotated[str, Meta(min_length=1)]


class RuleText(msgspec.Struct, frozen=True):
    """A rule as it is written; every criterion that is set must match.

    ``effect`` None = the rule speaks of no effect outside the sandbox.
    """

    verdict: Ruling
    name: Filled = ""
    tool: Annotated[str, Meta(min_length=1), Form(_tool)] | None = None
    args: tuple[str, ...] | None = None
    match: Filled | None = None
    effect: Filled | None = None
    path: Filled | None = None
    reason: Filled = ""
    risk: Risk | None = None

    def problem(self) -> tuple[str, str] | None:
        """The key that does not go with the others, and why."""
        if self.args == ():
            return "args", 'must be a non-empty list of strings, e.g. ["npm", "test"]'
        if "**" in (self.args or ())[:-1]:
            return "args", '"**" (any further arguments) can only be the last element'
        if (self.tool, self.args, self.match, self.effect, self.path) == (None,) * 5:
            return "", "matches everything: give it at least one of tool, args, match, effect, path"
        if self.verdict != Ruling.ALLOW:
            return None
        if self.tool != registry.EXEC and re.search(r"[*?\[]", self.match or ""):
            return "match", (
                f'an allow rule with a pattern over text only works with tool = "{registry.EXEC}"; a shell script must'
                " be given exactly, or use args"
            )
        if (pattern := Effect.parse(self.effect or "").host) is not None and hosts.unclear(pattern):
            named = '"network:pypi.org", "network:pypi.org:8443", "network:*.pypi.org" or "network:*"'
            return "effect", f"name hosts as {named}"
        return None


class Rule(RuleText, frozen=True):
    """A rule of a file, which begins in this line."""

    line: int = 0


Rules = Annotated[tuple[RuleText, ...], Meta(description="a list of sections [[rule]]")]


class PolicyText(msgspec.Struct, frozen=True):
    """A policy file."""

    rules: Rules = msgspec.field(default=(), name="rule")


@dataclass(frozen=True, slots=True)
class Policy:
    """Rules in file order, the SHA-256 of the text they came from, and where that was."""

    rules: tuple[Rule, ...]
    hash: str
    source: str


def default_policy() -> Policy:
    """The policy that ships with Watchfloor, used when the user has no file."""
    return parse_policy(default_text(), DEFAULT_SOURCE)


def default_text() -> str:
    """The shipped policy file, comments included: what a user starts their own from."""
    return files("harness.policy").joinpath("default_policy.toml").read_text("utf-8")


def parse_policy(text: str, name: str) -> Policy:
    """Rules from TOML text; ``name`` is the file's for messages. Raises PolicyError."""
    source = Source(text, name, PolicyError)
    return Policy(checked(source, source.read(PolicyText).rules), hashlib.sha256(text.encode()).hexdigest(), name)


def checked(source: Source[Unusable], rules: Sequence[RuleText]) -> tuple[Rule, ...]:
    """The rules with their lines, when each goes together. Raises the error of the source."""
    made = []
    for index, rule in enumerate(rules):
        place = ("rule", index)
        if problem := rule.problem():
            key, why = problem
            raise source.failure((*place, key) if key else place, why)
        values = msgspec.structs.asdict(rule)
        line = source.line(place)
        made.append(Rule(**{**values, "name": rule.name or f"rule {index + 1} (line {line})"}, line=line))
    return tuple(made)
