"""What a person's rule covers: the shape of one action, and what of it may differ. Pure.

A shape is everything that an action says, less what only names this one call and the state of the world around it. So a
field that an action gains tomorrow is part of every shape, and a rule never covers what differs in a field that it does
not name.
"""

from __future__ import annotations

import hashlib
import os.path
import re
import shlex

import msgspec

from harness.domain.actions.action import (
    Action,
    ExecAction,
    FileAction,
    PushAction,
    RecordAction,
    ShellAction,
    canonical,
)
from harness.domain.actions.effect import NETWORK, NO_UNDO, PUSH_FORCE, UNSANDBOXED, Effect
from harness.domain.calls.gate_kinds import is_gate
from harness.domain.decision import Ruling
from harness.domain.text.fields import Wire
from harness.policy.decide import Verdict
from harness.tools import registry

_ONE_CALL = ("session", "call", "ref", "input_sha")
"""Fields that only say which call it is."""
_OURS = ("binds",)
"""Fields of the sandbox that the harness makes for each session: its private git folder, as it is mounted."""
_SESSION = "{session}"
_WORKTREE = "{worktree}"
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.,@=<>~!+\[\]-]*")
_ENDS_LIKE_A_FILE = re.compile(r"\.[A-Za-z]\w*(\[|$)")
_MAX_SHAPE = 16 * 1024
_RISKY = ("high", "critical")


class NoGrant(Exception):
    """No rule can be made of this; the message says why and what can be done."""


class NoRule(NoGrant):
    """There is no rule of this name."""


class Wider(msgspec.Struct, frozen=True, omit_defaults=True):
    """What may differ from the request: nothing, the words of a command behind the ``first`` ones, or which file
    ``under`` a folder is looked at.
    """

    first: int = 0
    under: str = ""


EXACT = Wider()


def critical(action: Action, risk: str) -> bool:
    """True for what no rule covers unless a person typed the session's name for it: what cannot be brought back."""
    if risk in _RISKY or any(effect in (UNSANDBOXED, PUSH_FORCE, NO_UNDO) for effect in action.effects):
        return True
    if isinstance(action, PushAction) and action.to.local is not None:
        return bool(action.to.local.hooks or action.to.local.programs)
    return registry.writes_file(action.tool) and any(effect.is_outside for effect in action.effects)


def shape(action: Action, wider: Wider = EXACT) -> Wire | None:
    """What an action has in common with those like it; None when it does not fit ``wider`` at all."""
    if action.refused:
        return None
    wire = {name: value for name, value in action.to_wire().items() if name not in _ONE_CALL}
    sandbox = {name: value for name, value in action.sandbox.to_wire().items() if name not in _OURS}
    wire["sandbox"] = _placed(sandbox, action)
    wire["env"] = _placed(dict(action.env), action)
    wire["cwd"] = os.path.relpath(action.cwd, action.sandbox.worktree)
    wire["effects"] = sorted(map(str, action.effects))
    wire["pre"] = _lasting(action)
    if isinstance(action, PushAction):
        wire["refspecs"] = [spec.ref for spec in action.to.refspecs]
    if wider.first:
        return _worded(wire, action, wider.first)
    if wider.under:
        return _below(wire, action, wider.under)
    return wire


def covers(pattern: Wire, wider: Wider, action: Action) -> bool:
    """True when ``action`` is what ``pattern`` was made from, less what may differ."""
    return shape(action, wider) == pattern


def widened(action: Action, verdict: Verdict, wider: Wider, home: str) -> Wire:
    """The pattern of a rule made from a request. Raises NoGrant."""
    if verdict.verdict != Ruling.ASK:
        raise NoGrant("only what would be asked about can get a rule")
    if is_gate(verdict.rule):
        raise NoGrant("the plan wants your word on each such call of this phase; decide it alone")
    if wider != EXACT and critical(action, verdict.risk):
        raise NoGrant("what is critical gets a rule for exactly this and nothing wider")
    if wider.first and wider.under:
        raise NoGrant("either the first words of a command are fixed, or a folder is named, not both")
    if wider.first:
        _may_vary(action, wider.first)
    if wider.under:
        _may_look(action, wider.under, home)
    found = shape(action, wider)
    if found is None:
        raise NoGrant("the request itself does not fit this rule")
    if len(msgspec.json.encode(found)) > _MAX_SHAPE:
        raise NoGrant("this request is too long for a rule that a person could read; decide it alone")
    return found


def likeness(action: Action, asked_by: str, risk: str) -> tuple[str, str]:
    """(equal for similar requests, equal for the same ones and empty for what is critical), as digests."""
    found = shape(action)
    if found is None or (isinstance(action, FileAction) and registry.writes_file(action.tool)):
        return "", ""
    effects = sorted({_kind(effect) for effect in action.effects})
    similar = [action.tool, action.access, action.job, effects, asked_by, risk]
    if isinstance(action, PushAction):
        similar.append(action.to.url)
    commits = [list(spec) for spec in action.to.refspecs] if isinstance(action, PushAction) else []
    same = "" if critical(action, risk) else _digest([found, asked_by, commits])
    return _digest([*similar, _begins(action)]), same


def _kind(effect: Effect) -> str:
    """An effect without what it differs by from one call to the next like it: which file outside, which ref."""
    return effect.name if effect.is_outside or effect.publishes else str(effect)


def _begins(action: Action) -> list[str]:
    """The words that calls like it begin with; none for a file, which may be any."""
    if isinstance(action, FileAction):
        return []
    if isinstance(action, ExecAction | PushAction):
        return list(action.argv[:2])
    if isinstance(action, RecordAction) or "\n" in action.script.strip():
        return [_what(action, EXACT)]
    return action.script.split()[:2]


def _digest(value: object) -> str:
    return hashlib.sha256(canonical({"": value})).hexdigest()[:16]


def words(action: Action, wider: Wider) -> list[str]:
    """The pattern as a person reads it, one line for each thing that must be so (untrusted text as it is)."""
    lines = [f"{action.tool}: {_what(action, wider)}"]
    if isinstance(action, PushAction):
        refs = ", ".join(spec.ref for spec in action.to.refspecs)
        lines += [f"to {action.to.url}", f"onto {refs}, any commits"]
    elif not wider.under:
        lines += [f"effect {effect}" for effect in action.effects]
    if not isinstance(action, FileAction | RecordAction):
        lines.append(f"in {os.path.join(_WORKTREE, os.path.relpath(action.cwd, action.sandbox.worktree))}")
    program = action.world.get("program")
    if isinstance(program, dict):
        lines.append(f"program {program.get('path')} as it is now (sha {str(program.get('sha'))[:12]})")
    if action.job:
        lines.append("goes on after its call, as a job")
    if isinstance(action, ExecAction | ShellAction):
        rights = ", with all your rights" if UNSANDBOXED in action.effects else ""
        lines.append(f"on the files of the worktree as its agent has them by then{rights}")
    return lines


def _what(action: Action, wider: Wider) -> str:
    if isinstance(action, FileAction):
        return f"any file in {wider.under}" if wider.under else action.path
    if isinstance(action, ExecAction | PushAction):
        fixed = shlex.join(action.argv[: wider.first] if wider.first else action.argv)
        return f"{fixed} and any plain words" if wider.first else fixed
    if isinstance(action, RecordAction):
        return " ".join(f"{name}={value}" for name, value in sorted((action.input or {}).items()))
    return action.script


def _placed(value: object, action: Action) -> object:
    """The same value with the folders that only this session has named for what they are; what is written like such a
    name stays apart from it.
    """
    if isinstance(value, str):
        value = value.replace("{", "{{")
        for own, name in ((action.sandbox.worktree, _WORKTREE), (action.session, _SESSION)):
            value = value.replace(own, name) if own else value
        return value
    if isinstance(value, dict):
        return {key: _placed(item, action) for key, item in value.items()}
    return [_placed(item, action) for item in value] if isinstance(value, list | tuple) else value


def _lasting(action: Action) -> Wire:
    """What of the world must be as it was: the program, the remote's address, and what a write would replace."""
    kept: Wire = {}
    program = action.world.get("program")
    if isinstance(program, dict):
        kept["program"] = {"path": program.get("path"), "sha": program.get("sha")}
    if "url" in action.world:
        kept["url"] = action.world["url"]
    if registry.writes_file(action.tool):
        kept["files"] = action.world.get("files")
    return kept


def _worded(wire: Wire, action: Action, first: int) -> Wire | None:
    if not isinstance(action, ExecAction) or len(action.argv) < first:
        return None
    if not all(_PLAIN.fullmatch(word) and not _ENDS_LIKE_A_FILE.search(word) for word in action.argv[first:]):
        return None
    given = {name: value for name, value in (action.input or {}).items() if name != "argv"}
    return {**wire, "argv": list(action.argv[:first]), "input": given}


def _below(wire: Wire, action: Action, folder: str) -> Wire | None:
    if not isinstance(action, FileAction) or registry.writes_file(action.tool) or not _inside(action.path, folder):
        return None
    if action.outside != (action.path,) or not all(e.is_outside and e.what == action.path for e in action.effects):
        return None
    given = {name: value for name, value in (action.input or {}).items() if name not in ("path", "offset", "limit")}
    return {**wire, "path": folder, "outside": [folder], "effects": [], "input": given}


def _inside(path: str, folder: str) -> bool:
    return path == os.path.normpath(path) and path.startswith(folder.rstrip("/") + "/")


def _may_vary(action: Action, first: int) -> None:
    if not isinstance(action, ExecAction):
        raise NoGrant("only the words of a command can differ; a script gets a rule for exactly this")
    if NETWORK in action.effects:
        raise NoGrant("it may reach any host, so a rule covers exactly these words; name hosts to let words differ")
    least = min(2, len(action.argv))
    if not least <= first <= len(action.argv):
        raise NoGrant(f"the fixed words must be from {least} to all {len(action.argv)}")
    if action.argv[first - 1].startswith("-"):
        raise NoGrant(f"what follows the option {action.argv[first - 1]!r} must stay as it is")


def _may_look(action: Action, folder: str, home: str) -> None:
    if not isinstance(action, FileAction) or registry.writes_file(action.tool) or not action.outside:
        raise NoGrant("a folder can be named only for files outside the worktree that are read")
    if not os.path.isabs(folder) or os.path.normpath(folder) != folder:
        raise NoGrant("name the folder by its whole path, without .. and without a slash at its end")
    if folder == "/" or _inside(home, folder) or folder == home:
        raise NoGrant(f"{folder} holds too much for one rule; name a folder further down")
