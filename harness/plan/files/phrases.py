"""Phrases of a project, such as "Tests pass", and the commands that a person bound them to. Pure.

A guess of a command is only ever offered: what binds a phrase is the person's configuration, or the launch.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from harness.plan.files.criteria import Problem, decided_by, parse
from harness.plan.files.formats import Plan

FILES = ("package.json", "pyproject.toml", "Makefile")
"""Files whose text says which commands a project has."""
_FILLING = re.compile(r"^(?:(?:please|ensure|make sure|verify|check|confirm|that|all|the|every|existing)\s+)+")
_PASSES = re.compile(
    r"\b(?:should|must|will|can|does|do|is|are|has to|have to)?\s*(?:now\s+)?(?:be\s+)?"
    r"(?:pass(?:es|ed|ing)?|succeeds?|successful|green|clean|ok)\b"
    r"(?:\s+(?:successfully|cleanly|locally|without\s+(?:any\s+)?errors?|with\s+(?:no|zero)\s+errors?))*$"
)
_TYPES = re.compile(r"\btype[\s-]?check(?:s|ing|er)?\b")
_KINDS = (
    ("typecheck", re.compile(r"typecheck|\btypes?\b|\btsc\b|\bmypy\b|typescript compil")),
    ("lint", re.compile(r"\blint|\beslint\b|\bruff\b")),
    ("build", re.compile(r"\bbuilds?\b|\bcompiles?\b")),
    ("test", re.compile(r"\btests?\b")),
)
_SCRIPTS = {
    "typecheck": ("typecheck", "type-check", "check-types", "types", "tsc"),
    "lint": ("lint", "lint:check"),
    "build": ("build", "compile"),
    "test": ("test", "tests", "test:unit", "check"),
}
_MANAGERS = (("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lockb", "bun"), ("bun.lock", "bun"))
_OF_FILE = (
    ("tsconfig.json", {"typecheck": "npx tsc --noEmit"}),
    ("Cargo.toml", {"typecheck": "cargo check", "lint": "cargo clippy", "build": "cargo build", "test": "cargo test"}),
    (
        "go.mod",
        {"typecheck": "go vet ./...", "lint": "go vet ./...", "build": "go build ./...", "test": "go test ./..."},
    ),
)


def normal(text: str) -> str:
    """A phrase without what differs between ways to write it."""
    said = " ".join(re.sub(r"[`\"'“”‘’*]", "", text).lower().split()).rstrip(".!;, ")
    said = _FILLING.sub("", _TYPES.sub("typecheck", said))
    said = _PASSES.sub(" pass", said)
    return " ".join(re.sub(r"\btests\b", "test", said).split())


def bound(plan: Plan, phrases: Mapping[str, str]) -> Plan:
    """The plan in which each criterion that nothing decides and that is one of these phrases says what decides it."""
    if not phrases:
        return plan
    entries = (
        replace(entry, criteria=tuple(decided(text, phrases) for text in entry.criteria)) for entry in plan.entries
    )
    return replace(plan, entries=tuple(entries))


def decided(text: str, phrases: Mapping[str, str]) -> str:
    """The criterion, saying what decides it where nothing did and it is one of these phrases."""
    said = normal(text)
    command = next((command for phrase, command in phrases.items() if normal(phrase) == said), "")
    return decided_by(text, command) if command and isinstance(parse(text), Problem) else text


def unbound(plan: Plan) -> list[tuple[str, int]]:
    """The phrases that say of a check that it passes and that nothing decides, with how many criteria are each; the
    most frequent first.
    """
    found: Counter[str] = Counter()
    first: dict[str, str] = {}
    for entry in plan.entries:
        for text in entry.criteria:
            phrase = normal(text)
            if phrase.endswith(" pass") and kind(phrase) and isinstance(parse(text), Problem):
                found[phrase] += 1
                first.setdefault(phrase, text)
    return [(first[phrase], count) for phrase, count in found.most_common()]


def kind(phrase: str) -> str:
    """What a phrase is about: typecheck, lint, build or test; empty when it is about none."""
    if len(phrase.split()) > 6:
        return ""
    return next((name for name, form in _KINDS if form.search(phrase)), "")


def guess(phrase: str, names: set[str], texts: Mapping[str, str]) -> str:
    """The command that a phrase most likely means in a project with these files at its top; empty without a guess."""
    about = kind(normal(phrase))
    if not about:
        return ""
    scripts = _scripts(texts.get("package.json", ""))
    manager = next((one for lock, one in _MANAGERS if lock in names), "npm")
    for script in _SCRIPTS[about]:
        if script in scripts:
            return f"{manager} test" if script == "test" else f"{manager} run {script}"
    for target in _SCRIPTS[about]:
        if re.search(rf"^{re.escape(target)}\s*:(?!=)", texts.get("Makefile", ""), re.MULTILINE):
            return f"make {target}"
    for name, commands in _OF_FILE:
        if name in names and about in commands:
            return commands[about]
    return _python(about, texts["pyproject.toml"]) if "pyproject.toml" in texts else ""


def _scripts(text: str) -> Mapping[str, object]:
    try:
        whole = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return {}
    scripts = whole.get("scripts") if isinstance(whole, dict) else None
    return scripts if isinstance(scripts, dict) else {}


def _python(about: str, text: str) -> str:
    try:
        whole = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return ""
    tool = whole.get("tool")
    tools = tool if isinstance(tool, dict) else {}
    known = {"typecheck": ("mypy", "mypy ."), "lint": ("ruff", "ruff check ."), "test": ("pytest", "pytest")}
    name, command = known.get(about, ("", ""))
    return command if name in tools else ""
