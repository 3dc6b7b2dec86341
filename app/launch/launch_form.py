"""What a launch form says: its fields, the request that they make, and the command line that makes the same. Pure."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields

from app.client import requests
from harness.domain.cap import Cap
from harness.domain.settings import amounts
from harness.events.body import Caps
from harness.protocol.config import config as configuration
from harness.protocol.config.choices import FRESH, JUDGE_AT
from harness.views.launch_request import LaunchRequest

WRITTEN = "feature_list.json"
"""Where a plan is written that a session is to make."""
_JUDGES = ("", "judge", "review")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the form says, as typed: every field a text, of ``goal``, ``checks``, ``gates`` and the patterns one of
    several lines.
    """

    repo: str
    goal: str
    checks: str
    name: str
    model: str
    cap: str
    branch: str = ""
    plan: str = ""
    write_plan: str = ""
    phrases: str = ""
    gates: str = ""
    fresh: str = ""
    tokens: str = ""
    wall: str = ""
    calls: str = ""
    judge: str = ""
    judge_model: str = ""
    judge_cycles: str = ""
    judge_at: str = ""
    role: str = ""
    protect: str = ""
    may_change: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """One field: its title, what stands beside it while it has the focus, rows (1 = one line), whether it is one of
    those that are folded away, and the code of a refusal that is about it.
    """

    id: str
    title: str
    hint: str
    rows: int = 1
    more: bool = False
    codes: tuple[str, ...] = ()


FIELDS: tuple[Field, ...] = (
    Field(
        "repo",
        "Repository",
        "a git repository; the agent gets a worktree of its own",
        codes=("no_repo", "not_git", "no_commits", "bad_repo"),
    ),
    Field("goal", "Goal", "what should be true in the end", rows=3, codes=("bad_goal",)),
    Field(
        "checks",
        "Checks",
        "one command a line; done means: Watchfloor saw all of them pass",
        rows=2,
        codes=("bad_check",),
    ),
    Field("cap", "Cap in USD", "never passed; reaching it parks the session and asks; or none", codes=("bad_caps",)),
    Field("name", "Name", "empty = made from the goal", codes=("bad_name", "name_taken")),
    Field("model", "Model", "empty = that of its role, else the configured one"),
    Field(
        "branch",
        "Begin from",
        "a branch, tag or commit; empty = what the checkout shows",
        more=True,
        codes=("bad_start",),
    ),
    Field(
        "plan",
        "Plan file",
        "feature_list.json or prd.json in the repository: its criteria are checked",
        more=True,
        codes=("bad_plan",),
    ),
    Field(
        "write_plan",
        "Write a plan",
        f"a .json file: it first writes a plan there, for you to accept ({WRITTEN})",
        more=True,
    ),
    Field(
        "phrases",
        "Phrases",
        "TEXT=COMMAND, one a line: what decides criteria of the plan in these words, here from now on",
        rows=2,
        more=True,
        codes=("bad_phrase",),
    ),
    Field(
        "gates",
        "Gates",
        "PHASE=WHY, one a line: a phase of the plan that begins only with your word",
        rows=2,
        more=True,
    ),
    Field("fresh", "Begin anew", f"with a plan: {', '.join(FRESH)}", more=True),
    Field("tokens", "Token cap", "a number; empty = as configured", more=True),
    Field("wall", "Time cap", "such as 90m or 8h; empty = as configured", more=True),
    Field("calls", "Call cap", "tool calls; empty = as configured", more=True),
    Field(
        "judge",
        "Judge",
        "empty, judge (who sees the work alone), or review (a contract before it, and a judge)",
        more=True,
    ),
    Field("judge_model", "Judge's model", "empty = its role's, else the same", more=True),
    Field("judge_cycles", "Judge looks", "at most so often, 20 at most; empty = 3", more=True),
    Field("judge_at", "Judge at", "end, or task: with a plan, at each of its tasks as well", more=True),
    Field("role", "Role", "of the agent; empty = coder", more=True, codes=("bad_role",)),
    Field(
        "protect",
        "Protect",
        "further files that decide whether it is done, a pattern a line",
        rows=2,
        more=True,
        codes=("bad_pattern",),
    ),
    Field(
        "may_change",
        "May change",
        "protected files that it may change all the same, a pattern a line",
        rows=2,
        more=True,
    ),
)
BY_ID: Mapping[str, Field] = {field.id: field for field in FIELDS}
assert set(BY_ID) == {field.name for field in fields(Wish)}
_CAPS = (("tokens", Cap.SESSION_TOKENS), ("wall", Cap.SESSION_WALL), ("calls", Cap.SESSION_CALLS))


class FieldError(ValueError):
    """One field cannot be used."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field


def first(cfg: configuration.Config, repo: str) -> Wish:
    """What an empty form begins with."""
    return Wish(repo, "", "", "", cfg.model.default, _configured(cfg))


def _configured(cfg: configuration.Config) -> str:
    return "none" if cfg.caps.session_usd is None else amounts.usd_typed(cfg.caps.session_usd)


def request_of(wish: Wish, cfg: configuration.Config) -> LaunchRequest:
    """What is sent to launch it. Raises FieldError naming the field."""
    repo = os.path.abspath(os.path.expanduser(wish.repo.strip() or "."))
    if not os.path.isdir(repo):
        raise FieldError("repo", "there is no such folder")
    if not wish.goal.strip():
        raise FieldError("goal", "say what the agent should achieve")
    judge = _one_of("judge", wish.judge, _JUDGES)
    if judge == "" and (wish.judge_model.strip() or wish.judge_cycles.strip() or wish.judge_at.strip()):
        raise FieldError("judge", "there is no judge to look; write judge or review, or empty the fields below")
    made = LaunchRequest(
        repo=repo,
        goal=wish.goal.strip(),
        checks=_lines(wish.checks),
        name=wish.name.strip(),
        model=wish.model.strip(),
        caps=Caps(**requests.caps_of(cfg, _caps(wish))),
        plan=wish.plan.strip(),
        fresh=_one_of("fresh", wish.fresh, ("", *FRESH)),
        plan_from_goal=wish.write_plan.strip(),
        gates=_lines(wish.gates),
        phrases=_phrases(wish.phrases),
        protect=_lines(wish.protect),
        may_change=_lines(wish.may_change),
        role=wish.role.strip(),
        review=judge == "review",
        judge=judge == "judge",
        judge_model=wish.judge_model.strip(),
        judge_cycles=_typed("judge_cycles", wish.judge_cycles, _whole) or 0,
        judge_at=_one_of("judge_at", wish.judge_at, ("", *JUDGE_AT)),
        start=wish.branch.strip(),
    )
    try:
        return requests.launch(cfg, made)
    except configuration.ConfigError as exc:
        raise FieldError("model", str(exc)) from exc


def command_of(wish: Wish, cfg: configuration.Config) -> list[str]:
    """The command line that launches the same. Raises FieldError naming the field."""
    made = request_of(wish, cfg)
    words = ["watchfloor", "launch", "--repo", made.repo]

    def given(option: str, value: object) -> None:
        if text := str(value or ""):
            words.extend([f"{option}={text}"] if text.startswith("-") else [option, text])

    given("--branch", made.start)
    given("--goal", made.goal)
    for check in made.checks:
        given("--check", check)
    given("--plan", made.plan)
    given("--plan-from-goal", made.plan_from_goal)
    for phrase, command in made.phrases.items():
        given("--phrase", f"{phrase}={command}")
    for gate in made.gates:
        given("--gate", gate)
    given("--fresh", made.fresh)
    if wish.cap.strip() != _configured(cfg):
        given("--cap-usd", wish.cap.strip().lower().removeprefix("$"))
    for name, cap in _CAPS:
        given(cap.option, getattr(wish, name).strip().replace(",", "").replace("_", ""))
    given("--name", made.name)
    if made.model != cfg.model.default or made.role:
        given("--model", made.model)
    given("--role", made.role)
    words += ["--review"] * made.review + ["--judge"] * made.judge
    given("--judge-model", made.judge_model)
    given("--judge-cycles", made.judge_cycles)
    given("--judge-at", made.judge_at)
    for pattern in made.protect:
        given("--protect", pattern)
    for pattern in made.may_change:
        given("--may-change", pattern)
    return words


def typed(words: list[str]) -> str:
    """A command line as a shell reads it."""
    return shlex.join(words)


def about(code: str, message: str) -> str:
    """The field that a refusal of this code is about, else one that its words name; empty when none is."""
    found = next((field.id for field in FIELDS if code in field.codes), "")
    lowered = message.lower()
    if found == "role" and "looks at most" in lowered:
        return "judge_cycles"
    if found == "plan" and "judge looks at tasks" in lowered:
        return "judge_at"
    if found == "plan" and "--fresh says" in lowered:
        return "fresh"
    by_word = (("repositor", "repo"), ("gate", "gates"), ("fresh", "fresh"), ("model", "model"), ("cap", "cap"))
    return found or next((field for word, field in by_word if word in lowered), "")


def decided(wish: Wish) -> bool:
    """True when something but the agent's word says when it is done."""
    return any(text.strip() for text in (wish.checks, wish.plan, wish.write_plan, wish.judge))


def _phrases(text: str) -> dict[str, str]:
    try:
        return requests.phrases(_lines(text))
    except ValueError as exc:
        raise FieldError("phrases", str(exc)) from exc


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _one_of(field: str, text: str, known: tuple[str, ...]) -> str:
    chosen = text.strip().lower()
    if chosen not in known:
        raise FieldError(field, f"{chosen!r} is none of: {', '.join(one or 'empty' for one in known)}")
    return chosen


def _caps(wish: Wish) -> dict[str, int | None]:
    usd = wish.cap.strip()
    caps: dict[str, int | None] = {}
    if usd.lower() == "none":
        caps[Cap.SESSION_USD.field] = None
    else:
        caps[Cap.SESSION_USD.field] = _typed("cap", usd or " ", amounts.usd_to_nano, "; or none")
    for name, cap in _CAPS:
        value = _typed(name, getattr(wish, name), amounts.seconds if cap.in_seconds else _whole)
        if value is not None:
            caps[cap.field] = value
    return caps


def _typed(field: str, text: str, read: Callable[[str], int], more: str = "") -> int | None:
    """None for an empty field. Raises FieldError."""
    if not text:
        return None
    try:
        return read(text.strip()) if text.strip() or field == "cap" else None
    except ValueError as exc:
        raise FieldError(field, f"{exc}{more}") from exc


def _whole(text: str) -> int:
    clean = text.replace(",", "").replace("_", "")
    if not (clean.isascii() and clean.isdigit() and len(clean) < 19):
        raise ValueError(f"{text!r} is not a whole number")
    return int(clean)
