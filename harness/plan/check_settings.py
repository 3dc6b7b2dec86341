"""The parts of a file of many uses that say how to check: a new dependency is no weaker test. Pure."""

from __future__ import annotations

import configparser
import json
import tomllib
from typing import Any

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
            case "Cargo.toml":
                found = _cargo(tomllib.loads(data.decode()))
            case _:
                return data
        return json.dumps(found, sort_keys=True, default=str).encode() if found else b""
    except (ValueError, AttributeError, TypeError, configparser.Error, RecursionError):
        return None


def _cargo(whole: dict[str, Any]) -> dict[str, Any]:
    found = {k: whole[k] for k in ("test", "bench", "profile", "lints") if k in whole}
    package = {k: v for k, v in whole.get("package", {}).items() if k.startswith("auto")}
    library = {k: v for k, v in whole.get("lib", {}).items() if k in _FLAGS}
    programs = [
        flags for one in whole.get("bin", []) if (flags := {k: v for k, v in one.items() if k in (*_FLAGS, "name")})
    ]
    programs = [flags for flags in programs if set(flags) != {"name"}]
    return found | {k: v for k, v in (("package", package), ("lib", library), ("bin", programs)) if v}
