"""The parts of a file of many uses that say how to check: a new dependency is no weaker test. Pure."""

from __future__ import annotations

import configparser
import json
import re
import tomllib
from typing import Any

from harness.checks.protected_files import VITE

_PACKAGING = frozenset(
    {
        "poetry",
        "setuptools",
        "setuptools_scm",
        "hatch",
        "pdm",
        "flit",
        "uv",
        "maturin",
        "scikit-build",
        "cibuildwheel",
        "bumpversion",
        "commitizen",
        "semantic_release",
        "towncrier",
    }
)
_NODE = ("scripts", "jest", "vitest", "mocha", "ava", "nyc", "c8", "tap", "eslintConfig", "babel")
_FLAGS = ("test", "doctest", "harness", "bench")


def of(name: str, data: bytes) -> bytes | None:
    """A canonical form of what in the file says how to check, empty when nothing does; None when it cannot be read."""
    try:
        match name:
            case "pyproject.toml":
                tool = tomllib.loads(data.decode()).get("tool", {})
                found = {k: v for k, v in tool.items() if k not in _PACKAGING}
            case "package.json":
                whole = json.loads(data)
                found = {k: whole[k] for k in _NODE if k in whole}
            case "setup.cfg":
                parser = configparser.RawConfigParser(strict=False)
                parser.read_string(data.decode())
                found = {s: dict(parser.items(s)) for s in parser.sections() if not s.startswith(("metadata", "opt"))}
            case "deno.json":
                found = {k: v for k, v in json.loads(data).items() if k in ("tasks", "test", "bench", "lint", "fmt")}
            case "composer.json":
                found = {k: v for k, v in json.loads(data).items() if k == "scripts"}
            case str() if name in VITE:
                return _block(data.decode()).encode()
            case "Cargo.toml":
                found = _cargo(tomllib.loads(data.decode()))
            case _:
                return data
        return json.dumps(found, sort_keys=True, default=str).encode() if found else b""
    except (ValueError, AttributeError, TypeError, configparser.Error, RecursionError):
        return None


def _block(text: str) -> str:
    """What stands in braces behind ``test:``, which vitest reads."""
    if (found := re.search(r"\btest\s*:\s*(?=\{)", text)) is None:
        return ""
    depth = 0
    for at in range(found.end(), len(text)):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if depth == 0:
            return text[found.start() : at + 1]
    return text[found.start() :]


def _cargo(whole: dict[str, Any]) -> dict[str, Any]:
    found = {k: whole[k] for k in ("test", "bench", "profile", "lints") if k in whole}
    package = {k: v for k, v in whole.get("package", {}).items() if k.startswith("auto")}
    library = {k: v for k, v in whole.get("lib", {}).items() if k in _FLAGS}
    programs = [
        flags for one in whole.get("bin", []) if (flags := {k: v for k, v in one.items() if k in (*_FLAGS, "name")})
    ]
    programs = [flags for flags in programs if set(flags) != {"name"}]
    return found | {k: v for k, v in (("package", package), ("lib", library), ("bin", programs)) if v}
