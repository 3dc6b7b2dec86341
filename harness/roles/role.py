"""A role as its file says it: prompt, model, tools, limits, and rules that tighten the policy. Pure: text in, `Role` or
`RoleError` out.

A version is the SHA-256 of the text. A session keeps the whole text of the roles that it began with, so that no later
change of a file changes anything that runs.
"""

from __future__ import annotations

import functools
import hashlib
import re
from typing import Annotated

import msgspec
from msgspec import Meta

from harness.domain import denied
from harness.domain.decision import Ruling
from harness.domain.denied import Denied
from harness.domain.settings.amounts import MOST, USD
from harness.domain.settings.reading import Form, Source
from harness.domain.settings.toml_text import Unusable
from harness.policy.policy_file import Rule, Rules, checked
from harness.tools import registry

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
_MOST_COUNT = 1 << 50
"""Of what has no other bound; more fits no record."""


class RoleError(Unusable):
    """A role's file cannot be used."""


def _tool(name: str) -> str:
    if name != EVERY_TOOL and name not in registry.ALL:
        raise ValueError(f"no such tool: {name[:60]}; known: {', '.join(registry.ALL)}")
    return name


def _prompt(text: str) -> str:
    if not text.strip():
        raise ValueError("a role needs a prompt")
    return text


class RoleLimits(msgspec.Struct, frozen=True):
    """Upper limits; None = none of this kind. Money in nano-USD, time in seconds.

    ``rounds`` of failing checks, ``cycles`` of judging, ``runs``: commands that a judge may have run in one cycle.
    """

    usd_nano: Annotated[int, Meta(ge=0, le=MOST), USD] | None = msgspec.field(default=None, name="usd")
    tokens: Annotated[int, Meta(ge=0, le=_MOST_COUNT)] | None = None
    wall_s: Annotated[int, Meta(ge=0, le=_MOST_COUNT)] | None = None
    tool_calls: Annotated[int, Meta(ge=0, le=_MOST_COUNT)] | None = msgspec.field(default=None, name="calls")
    rounds: Annotated[int, Meta(ge=0, le=100)] | None = None
    cycles: Annotated[int, Meta(ge=0, le=MOST_CYCLES)] | None = None
    runs: Annotated[int, Meta(ge=0, le=10)] | None = None


_TOOLS = 'a list of tools, e.g. ["read_file"]; ["*"] = all, [] = none'


class RoleText(msgspec.Struct, frozen=True):
    """A role's file. ``tools`` are names of tools, or `EVERY_TOOL`; ``first``: what a session is asked to do before
    anything else, where this role says it; ``{path}``, ``{form}`` and ``{forms}`` stand for the plan's file, how a plan
    of that name is written, and the steps that a machine decides.
    """

    prompt: Annotated[str, Form(_prompt)]
    tools: Annotated[tuple[Annotated[str, Form(_tool)], ...], Meta(description=_TOOLS)]
    about: str = ""
    model: str = ""
    first: Annotated[str, Form(str.strip)] = ""
    deny_paths: Annotated[tuple[str, ...], Meta(description='a list of patterns, e.g. ["secrets/", "*.pem"]')] = ()
    deny_branches: Annotated[tuple[str, ...], Meta(description='a list of patterns, e.g. ["release/*"]')] = ()
    limits: RoleLimits = RoleLimits()
    rule: Rules = ()


class Role(RoleText, frozen=True, kw_only=True):
    """A role; its ``rules`` ask or deny, and never allow."""

    name: str
    version: str
    text: str
    rules: tuple[Rule, ...]

    @property
    def denied(self) -> Denied:
        """What a session with this role may not read."""
        return Denied(self.deny_paths, self.deny_branches)

    def may_use(self, tool: str) -> bool:
        """True when the role has this tool."""
        return EVERY_TOOL in self.tools or tool in self.tools

    def offered(self) -> list[dict[str, object]]:
        """Its tools as the Messages API wants them, in the table's order."""
        return [tool.definition() for tool in registry.TABLE.values() if self.may_use(tool.name)]


@functools.lru_cache(maxsize=64)
def parse(name: str, text: str, file: str) -> Role:
    """A role from TOML text; ``file`` is its file's name for messages. Raises RoleError."""
    if not _NAME.match(name):
        raise RoleError(file, 1, "", "a role's name has small letters, digits, - and _, and begins with a letter")
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise RoleError(file, 1, "", f"larger than {MAX_BYTES // 1024} KiB")
    source = Source(text, file, RoleError)
    read = source.read(RoleText)
    for key, patterns in (("path", read.deny_paths), ("branch", read.deny_branches)):
        if why := denied.problem(key, patterns):
            raise source.failure(("deny_paths" if key == "path" else "deny_branches",), why)
    rules = checked(source, read.rule)
    for index, rule in enumerate(rules):
        if rule.verdict == Ruling.ALLOW:
            raise source.failure(("rule", index, "verdict"), "a role may only tighten the policy: ask or deny")
    version = hashlib.sha256(text.encode()).hexdigest()
    return Role(name=name, version=version, text=text, rules=rules, **msgspec.structs.asdict(read))
