"""Which effects of a call leave the sandbox. Pure. An empty list means: the kernel contains it, nobody needs to be
asked.

The sandbox, not this analysis, is the barrier. What a call destroys inside the sandbox can be brought back from the
state kept before it; only where that state cannot be kept is the loss an effect of its own (`NO_UNDO`).
"""

from __future__ import annotations

import os.path
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.domain.actions.access import ASKED, Access
from harness.domain.actions.access import asked as asked_access
from harness.domain.actions.action import CheckAction, ExecAction, FileAction, PushAction, RecordAction
from harness.domain.actions.effect import NETWORK, NO_UNDO, UNSANDBOXED, Effect
from harness.domain.addresses import BadAddress, normal_host
from harness.domain.text import fields
from harness.policy import push, shell
from harness.policy.facts import Facts
from harness.tools import registry

_OF_NAME: dict[str, Access] = {str(access): access for access in ASKED}
_OF_ACCESS: dict[Access, tuple[Effect, ...]] = {
    Access.SANDBOX: (),
    Access.NETWORK: (NETWORK,),
    Access.UNSANDBOXED: (UNSANDBOXED,),
}


@dataclass(frozen=True, slots=True)
class Reach:
    """What one call would touch. ``refused`` is a sentence for the agent when it can never be allowed."""

    kind: str
    access: Access
    cwd: str
    effects: tuple[Effect, ...]
    path: str = ""
    outside: tuple[str, ...] = ()
    refused: str = ""
    pushed: push.Pushed | None = None
    hosts: tuple[str, ...] = ()
    """The only hosts that it may reach, each in its one spelling; empty with access ``network`` = any host."""


def inside(path: str, root: str) -> bool:
    """True when the normalised absolute ``path`` is ``root`` or below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def absolute(path: str, base: str, home: str) -> str:
    """``path`` as the input writes it → absolute and normalised (links not resolved)."""
    if path == "~" or path.startswith("~/"):
        path = home + path[1:]
    return os.path.normpath(os.path.join(base, path))


def outcome(tool: str, asked: Mapping[str, object], facts: Facts) -> Reach:
    """Where the call would reach. Its effects are spelled as the comments of ``default_policy.toml`` list them."""
    if registry.kind_of(tool) == FileAction.KIND:
        return _file(tool, str(asked.get("path") or "."), facts)
    if registry.kind_of(tool) == RecordAction.KIND:
        return Reach(RecordAction.KIND, Access.SANDBOX, facts.worktree, ())
    return _program(tool, asked, facts)


def _base(facts: Facts) -> str:
    """The folder that relative paths of a call count from."""
    return absolute(facts.folder, facts.worktree, facts.home)


def _file(tool: str, asked: str, facts: Facts) -> Reach:
    base = _base(facts)
    written = absolute(asked, base, facts.home)
    real = facts.resolved.get(asked, written)
    writes = registry.writes_file(tool)
    if "\0" in asked:
        return Reach(FileAction.KIND, Access.SANDBOX, base, (), asked, refused="a path holds a NUL character")
    if why := _denied(real, facts):
        return Reach(FileAction.KIND, Access.SANDBOX, base, (), asked, refused=why)
    if not inside(real, facts.worktree):
        if any(inside(real, own) or inside(own, real) for own in facts.own):
            why = f"{real} belongs to Watchfloor (its state, settings, policy or key), which no tool may open"
            return Reach(FileAction.KIND, Access.OUTSIDE, base, (Effect.at(real),), real, (real,), refused=why)
        return Reach(FileAction.KIND, Access.OUTSIDE, base, (Effect.at(real),), real, (real,))
    relative = os.path.relpath(real, facts.worktree)
    if writes and ".git" in relative.casefold().split("/"):
        return Reach(
            FileAction.KIND,
            Access.SANDBOX,
            base,
            (),
            relative,
            refused="files below .git belong to git; use git commands instead",
        )
    return Reach(FileAction.KIND, Access.SANDBOX, base, (NO_UNDO,) if writes and facts.unprotected else (), relative)


def _denied(real: str, facts: Facts) -> str:
    """Why a file tool may not open this path, as far as the role says; in words."""
    for top in filter(None, (facts.worktree, facts.repository)):
        if inside(real, top) and facts.denied.path(relative := os.path.relpath(real, top)):
            return (
                f"the role of this session denies {relative} (deny_paths), so it is not in the worktree; work without"
                " it, or ask for what you need to know"
            )
    return ""


def _program(tool: str, asked: Mapping[str, object], facts: Facts) -> Reach:
    access = _OF_NAME.get(wanted := asked_access(asked))
    named = str(asked.get("cwd") or facts.begin or ".")
    cwd = facts.resolved.get(named, absolute(named, _base(facts), facts.home))
    kind = registry.kind_of(tool)
    if access is None:
        why = f"access {wanted!r} is not one of {', '.join(ASKED)}"
        return Reach(kind, Access.SANDBOX, facts.worktree, (), refused=why)
    if not inside(cwd, facts.worktree):
        return Reach(kind, access, facts.worktree, (), refused=f"cwd {named!r} is outside the worktree")
    argv: Sequence[str] | None = (
        fields.texts(asked, "argv") if kind == ExecAction.KIND else shell.only_command(facts.tree)
    )
    if argv is not None and kind != CheckAction.KIND and access != Access.UNSANDBOXED and push.is_push(argv):
        found = push.pushed(argv, facts)
        return Reach(
            PushAction.KIND, Access.PUSH, cwd, tuple(dict.fromkeys(found.effects)), refused=found.refused, pushed=found
        )
    try:
        hosts = tuple(dict.fromkeys(normal_host(host) for host in fields.texts(asked, "hosts")))
    except BadAddress as exc:
        return Reach(kind, Access.SANDBOX, facts.worktree, (), refused=str(exc))
    if hosts and access != Access.NETWORK:
        return Reach(
            kind, Access.SANDBOX, facts.worktree, (), refused="hosts can only be named together with access network"
        )
    effects = [Effect.reach(host) for host in hosts] or list(_OF_ACCESS[access])
    if facts.unprotected:
        effects.append(NO_UNDO)
    return Reach(kind, access, cwd, tuple(effects), hosts=hosts)
