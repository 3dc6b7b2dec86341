"""The policy file: ordered rules over tools, arguments and effects. Pure: text in, `Policy` or `PolicyError` out."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from harness.domain.actions.effect import Effect
from harness.domain.decision import Ruling
from harness.linux import own_file
from harness.linux.own_file import Unusable
from harness.policy import hosts
from harness.tools import registry

RISKS = ("low", "medium", "high", "critical")
_KEYS = ("verdict", "tool", "args", "match", "effect", "path", "reason", "risk", "name")
DEFAULT_SOURCE = "built-in policy"


class PolicyError(Unusable):
    """A policy file cannot be used."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; every criterion that is set must match.

    ``effect`` None = the rule speaks of no effect outside the fence.
    """

    name: str
    verdict: Ruling
    tool: str | None = None
    args: tuple[str, ...] | None = None
    match: str | None = None
    effect: str | None = None
    path: str | None = None
    reason: str = ""
    risk: str = ""
    line: int = 0


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


def parse_policy(text: str, source: str) -> Policy:
    """Rules from TOML text; ``source`` is the file's name for messages. Raises PolicyError."""
    data = own_file.tables(text, source, PolicyError)
    for key in data:
        if key != "rule":
            raise PolicyError(
                source,
                _line_of_key(text.splitlines(), 0, key),
                key,
                "unknown key; a policy is a list of [[rule]] sections",
            )
    return Policy(parse_rules(text, data.get("rule", []), source), hashlib.sha256(text.encode()).hexdigest(), source)


def parse_rules(text: str, tables: object, source: str) -> tuple[Rule, ...]:
    """The ``[[rule]]`` sections of a TOML text, which were decoded to ``tables``. Raises PolicyError."""
    if not isinstance(tables, list) or not all(isinstance(t, dict) for t in tables):
        raise PolicyError(
            source, _line_of_key(text.splitlines(), 0, "rule"), "rule", "write each rule as a section [[rule]]"
        )
    lines = text.splitlines()
    starts = [n for n, line in enumerate(lines, 1) if re.match(r"\s*\[\[\s*\"?rule\"?\s*\]\]", line)]
    return tuple(
        _rule(table, index, source, lines, starts[index] if index < len(starts) else 1)
        for index, table in enumerate(tables)
    )


def _line_of_key(lines: list[str], start: int, key: str) -> int:
    for number in range(start, len(lines)):
        if number > start and re.match(r"\s*\[\[", lines[number]):
            break
        if re.match(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[=\].]""", lines[number]):
            return number + 1
    return max(start, 1)


def _rule(table: Mapping[str, Any], index: int, source: str, lines: list[str], line: int) -> Rule:
    def fail(key: str, why: str) -> PolicyError:
        return PolicyError(source, _line_of_key(lines, line, key) if key in table else line, key, why)

    for key, value in table.items():
        if key not in _KEYS:
            raise fail(key, f"unknown key; known: {', '.join(_KEYS)}")
        if key == "args":
            if not isinstance(value, list) or not value or not all(isinstance(x, str) for x in value):
                raise fail(key, 'must be a non-empty list of strings, e.g. ["npm", "test"]')
            if "**" in value[:-1]:
                raise fail(key, '"**" (any further arguments) can only be the last element')
        elif not isinstance(value, str) or not value:
            raise fail(key, "must be a non-empty string")
    verdict = table.get("verdict")
    if verdict not in tuple(Ruling):
        raise fail("verdict", f"must be one of {', '.join(Ruling)}")
    if table.get("risk", "low") not in RISKS:
        raise fail("risk", f"must be one of {', '.join(RISKS)}")
    tool = table.get("tool")
    if tool is not None and not any(fnmatch.fnmatchcase(t, tool) for t in registry.ALL):
        raise fail("tool", f"no such tool; known: {', '.join(registry.ALL)}")
    if not set(table) & {"tool", "args", "match", "effect", "path"}:
        raise PolicyError(
            source, line, "rule", "matches everything: give it at least one of tool, args, match, effect, path"
        )
    if verdict == Ruling.ALLOW and "match" in table and tool != registry.EXEC and re.search(r"[*?\[]", table["match"]):
        raise fail(
            "match",
            f'an allow rule with a pattern over text only works with tool = "{registry.EXEC}"; a shell script must be'
            " given exactly, or use args",
        )
    if (
        verdict == Ruling.ALLOW
        and (pattern := Effect.parse(table.get("effect", "")).host) is not None
        and hosts.unclear(pattern)
    ):
        raise fail(
            "effect", 'name hosts as "network:pypi.org", "network:pypi.org:8443", "network:*.pypi.org" or "network:*"'
        )
    return Rule(
        name=table.get("name") or f"rule {index + 1} (line {line})",
        verdict=Ruling(verdict),
        tool=tool,
        args=tuple(table["args"]) if "args" in table else None,
        match=table.get("match"),
        effect=table.get("effect"),
        path=table.get("path"),
        reason=table.get("reason", ""),
        risk=table.get("risk", ""),
        line=line,
    )
