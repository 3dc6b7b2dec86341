"""A role as its file says it: prompt, model, tools, limits, and rules that tighten the policy. Pure: text in, `Role` or
`RoleError` out.

A version is the SHA-256 of the text. A session keeps the whole text of the roles that it began with, so that no later
change of a file changes anything that runs.
"""

from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.domain import denied
from harness.domain.decision import Ruling
from harness.domain.denied import NOTHING, Denied
from harness.linux import own_file
from harness.linux.own_file import Unusable
from harness.policy.policy_file import PolicyError, Rule, parse_rules
from harness.tools import registry as tools

WORKER = "worker"
JUDGE = "judge"
PLANNER = "planner"
INITIALIZER = "initializer"
PARTS = {WORKER: "coder", JUDGE: "evaluator", PLANNER: "planner", INITIALIZER: "initializer"}
"""The parts that a session has, and the role that plays each unless another one is named."""
EVERY_TOOL = "*"
MAX_BYTES = 32 * 1024
"""A role's file: it is kept in the log of each session that uses it."""
MOST_CYCLES = 20
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}\Z")
_KEYS = ("about", "model", "tools", "prompt", "first", "deny_paths", "deny_branches", "limits", "rule")
_LIMITS = {
    "usd_nano": "usd",
    "tokens": "tokens",
    "wall_s": "wall_s",
    "tool_calls": "calls",
    "rounds": "rounds",
    "cycles": "cycles",
    "runs": "runs",
}
"""Field → key under ``[limits]``."""
_MOST = {"cycles": MOST_CYCLES, "runs": 10, "rounds": 100, "usd": 1_000_000_000}
_MOST_COUNT = 1 << 50
"""Of what has no other bound; more fits no record."""


class RoleError(Unusable):
    """A role's file cannot be used."""


@dataclass(frozen=True, slots=True)
class RoleLimits:
    """Upper limits; None = none of this kind. Money in nano-USD, time in seconds.

    ``rounds`` of failing checks, ``cycles`` of judging, ``runs``: commands that a judge may have run in one cycle.
    """

    usd_nano: int | None = None
    tokens: int | None = None
    wall_s: int | None = None
    tool_calls: int | None = None
    rounds: int | None = None
    cycles: int | None = None
    runs: int | None = None


@dataclass(frozen=True, slots=True)
class Role:
    """``tools`` are names of tools, or `EVERY_TOOL`; ``rules`` ask or deny, and never allow. ``first``: what a session
    is asked to do before anything else, where this role says it; ``{path}``, ``{form}`` and ``{forms}`` stand for the
    plan's file, how a plan of that name is written, and the steps that a machine decides. ``denied``: what a session
    with this role may not read.
    """

    name: str
    version: str
    text: str
    about: str
    prompt: str
    model: str
    tools: tuple[str, ...]
    limits: RoleLimits
    rules: tuple[Rule, ...]
    first: str = ""
    denied: Denied = NOTHING

    def may_use(self, tool: str) -> bool:
        """True when the role has this tool."""
        return EVERY_TOOL in self.tools or tool in self.tools

    def offered(self) -> list[dict[str, object]]:
        """Its tools as the Messages API wants them, in the table's order."""
        return [tool.definition() for tool in tools.TABLE.values() if self.may_use(tool.name)]


@functools.lru_cache(maxsize=64)
def parse(name: str, text: str, source: str) -> Role:
    """A role from TOML text; ``source`` is the file's name for messages. Raises RoleError."""
    if not _NAME.match(name):
        raise RoleError(source, 1, "", "a role's name has small letters, digits, - and _, and begins with a letter")
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise RoleError(source, 1, "", f"larger than {MAX_BYTES // 1024} KiB")
    return _Reader(name, text, source, own_file.tables(text, source, RoleError)).role()


@dataclass(frozen=True, slots=True)
class _Reader:
    name: str
    text: str
    source: str
    data: Mapping[str, object]

    def role(self) -> Role:
        for key in self.data:
            if key not in _KEYS:
                raise self._fail(key, f"unknown key; known: {', '.join(_KEYS)}")
        return Role(
            name=self.name,
            version=hashlib.sha256(self.text.encode()).hexdigest(),
            text=self.text,
            about=self._words("about"),
            prompt=self._prompt(),
            model=self._words("model"),
            tools=self._tools(),
            limits=self._limits(),
            rules=self._rules(),
            first=self._words("first").strip(),
            denied=Denied(self._denied("deny_paths", "path"), self._denied("deny_branches", "branch")),
        )

    def _fail(self, key: str, why: str) -> RoleError:
        lines = self.text.split("\n")
        pattern = re.compile(rf"""\s*\[*\s*["']?{re.escape(key)}["']?\s*[=\].]""")
        line = next((n for n, text in enumerate(lines, 1) if pattern.match(text)), 1)
        return RoleError(self.source, line, key, why)

    def _words(self, key: str) -> str:
        value = self.data.get(key, "")
        if not isinstance(value, str):
            raise self._fail(key, "must be a string")
        return value

    def _prompt(self) -> str:
        prompt = self._words("prompt")
        if not prompt.strip():
            raise self._fail("prompt", "a role needs a prompt")
        return prompt

    def _tools(self) -> tuple[str, ...]:
        given = self.data.get("tools")
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            raise self._fail("tools", 'must be a list of tools, e.g. ["read_file"]; ["*"] = all, [] = none')
        for name in given:
            if name != EVERY_TOOL and name not in tools.ALL:
                raise self._fail("tools", f"no such tool: {name}; known: {', '.join(tools.ALL)}")
        return tuple(given)

    def _denied(self, key: str, what: str) -> tuple[str, ...]:
        given = self.data.get(key, [])
        if why := denied.problem(what, given):
            raise self._fail(key, why)
        return tuple(map(str, given)) if isinstance(given, list) else ()

    def _limits(self) -> RoleLimits:
        given = self.data.get("limits", {})
        if not isinstance(given, dict):
            raise self._fail("limits", "write it as a section [limits]")
        for key, value in given.items():
            if key not in _LIMITS.values():
                raise self._fail(key, f"unknown limit; known: {', '.join(_LIMITS.values())}")
            self._number(key, value)
        made = {field: given[key] for field, key in _LIMITS.items() if key in given}
        if "usd_nano" in made:
            made["usd_nano"] = round(made["usd_nano"] * 1_000_000_000)
        return RoleLimits(**made)

    def _number(self, key: str, value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:  # TOML also has a nan
            raise self._fail(key, "must be a number, 0 or more")
        if key != "usd" and not isinstance(value, int):
            raise self._fail(key, "must be a whole number")
        if value > (most := _MOST.get(key, _MOST_COUNT)):
            raise self._fail(key, f"must be at most {most:,}")

    def _rules(self) -> tuple[Rule, ...]:
        try:
            rules = parse_rules(self.text, self.data.get("rule", []), self.source)
        except PolicyError as exc:
            raise RoleError(exc.file, exc.line, exc.key, exc.why) from exc
        for rule in rules:
            if rule.verdict == Ruling.ALLOW:
                raise RoleError(self.source, rule.line, "verdict", "a role may only tighten the policy: ask or deny")
        return rules
