"""The verb that lists roles and prints one. It needs no supervisor."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from app.cli.base import exits
from app.cli.base.arguments import Usage
from app.cli.base.context import Context
from app.cli.base.output import emit, emit_all, safe, say, table, warn
from harness.roles import catalog
from harness.roles.role import Role, RoleError


def roles(ctx: Context, args: argparse.Namespace) -> int:
    """Exit code 0 when all that was asked for can be used, 1 when a file cannot."""
    config = ctx.folders.config
    if args.name:
        return _one(config, args.name, as_json=args.json)
    found: list[tuple[Role, str]] = []
    bad = 0
    for name in catalog.names(config):
        try:
            role = catalog.find(config, name)
        except RoleError as exc:
            warn(f"watchfloor: {exc}")
            bad += 1
            continue
        found += [role] if role is not None else []
    if args.json:
        emit_all(_facts(role, where) for role, where in found)
    else:
        body = [
            (role.name, role.version[:12], role.model or "-", _tools(role), where, safe(role.about, 200))
            for role, where in found
        ]
        for line in table(("NAME", "VERSION", "MODEL", "TOOLS", "FROM", "ABOUT"), body, width=ctx.width):
            say(line)
    return exits.NO if bad else exits.OK


def _one(config: Path, name: str, *, as_json: bool) -> int:
    try:
        found = catalog.find(config, name)
    except RoleError as exc:
        raise Usage(str(exc)) from exc
    if found is None:
        warn(f"watchfloor: there is no role {name!r}\nknown: {', '.join(catalog.names(config))}; see: watchfloor roles")
        return exits.NOT_FOUND
    role, where = found
    if as_json:
        emit(_facts(role, where) | {"prompt": role.prompt, "text": role.text})
        return exits.OK
    say(f"# {safe(role.name)}, version {role.version[:12]}, {safe(where)}")
    for line in role.text.rstrip("\n").split("\n"):
        say(safe(line))
    return exits.OK


def _tools(role: Role) -> str:
    if role.may_use("*"):
        return "all"
    return safe(" ".join(role.tools), 60) or "none"


def _facts(role: Role, where: str) -> dict[str, object]:
    limits = {name: value for name, value in msgspec.structs.asdict(role.limits).items() if value is not None}
    return {
        "name": role.name,
        "version": role.version,
        "from": where,
        "about": role.about,
        "model": role.model,
        "tools": list(role.tools),
        "limits": limits,
        "rules": len(role.rules),
        "deny_paths": list(role.denied.paths),
        "deny_branches": list(role.denied.branches),
    }
