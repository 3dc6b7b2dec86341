"""Which facts of a request a person has not approved before. Pure.

What decides (commands, scripts, hosts, files, commits) stands on the card at all times; this is about the rest.
"""

from __future__ import annotations

import hashlib
import os.path
import re
from collections.abc import Collection, Iterable

from harness.domain.actions.access import Access
from harness.domain.actions.action import Action, ExecAction, FileAction, PushAction, canonical
from harness.domain.actions.effect import NETWORK, UNSANDBOXED, Effect
from harness.domain.calls.approval_shapes import Shape
from harness.domain.calls.card_facts import Fact

_YOURS = frozenset(
    (
        *("PATH", "HOME", "LANG", "LC_ALL", "USER", "LOGNAME", "SHELL", "TZ"),
        *("SSH_AUTH_SOCK", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "GIT_TERMINAL_PROMPT"),
    )
)
"""What a call outside the sandbox takes over from the person's own environment."""
_SYSTEM = frozenset(("/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin"))
"""Folders whose programs the person did not make."""
_LOOKED_AT = frozenset(("cwd", "deletes", "files", "head", "program", "snapshot", "worktree"))
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")


def kind_of(action: Action) -> str:
    """What a request is compared within: only its like."""
    return f"{action.kind} {action.access} {action.tool}"


def facts_of(action: Action, read: Collection[str] = ()) -> dict[str, str]:
    """The digest of each group of facts, with the session's own id left out so that sessions can be compared.

    ``read``: programs of which the card shows the whole text, which stands above all that is compared.
    """
    sandbox = action.sandbox
    pre = action.world
    program = pre.get("program")
    if isinstance(program, dict) and program.get("path") in read:
        program = "shown"
    values: dict[Fact, object] = {
        Fact.PLACE: action.cwd,
        Fact.REACH: [action.access, sandbox.sandboxed, sandbox.network, list(sandbox.hosts)],
        Fact.FOLDERS: [list(sandbox.read), list(sandbox.write), [list(bind) for bind in sandbox.binds]],
        Fact.WORLD: [sorted(pre.keys() - {"deletes"}), program, pre.get("url")],
        Fact.ENVIRONMENT: dict(action.env),
        Fact.LIMITS: [action.timeout_s, action.output_bytes],
    }
    if isinstance(action, ExecAction | PushAction):
        plain = all(_PLAIN.fullmatch(part) for part in action.argv)
        values[Fact.ARGUMENTS] = "plain" if plain else list(action.argv)
    if isinstance(action, PushAction):
        to = action.to.to_wire()
        del to["refspecs"]
        values[Fact.DESTINATION] = [action.remote, action.note, to]
    return {fact: _digest(value, action.session) for fact, value in values.items()}


def _digest(value: object, sid: str) -> str:
    body = canonical({"value": value})
    if sid:
        body = body.replace(sid.encode(), b"{session}")
    return hashlib.sha256(body).hexdigest()[:16]


def ordinary(action: Action, read: Collection[str] = ()) -> frozenset[str]:
    """The facts that say nothing beyond what stands above them on the card: arguments that can be read in one way only,
    the top of the session's own worktree, a limit of time, no folder but the session's own, a reach that it names,
    an environment that is the sandbox's or the person's own, and that what is shown is looked at again.

    ``read``: programs of which the card shows the whole text.
    """
    plain = isinstance(action, ExecAction | PushAction) and all(_PLAIN.fullmatch(part) for part in action.argv)
    own = action.cwd == action.sandbox.worktree
    pushes = isinstance(action, PushAction)
    inside = action.sandbox.sandboxed and not pushes
    found = {
        Fact.ARGUMENTS: plain,
        Fact.PLACE: own,
        Fact.FOLDERS: _own_folders(action),
        Fact.REACH: _usual_push(action) if pushes else _said_reach(action),
        Fact.ENVIRONMENT: inside or _your_environment(action),
        Fact.WORLD: _as_shown(action) if isinstance(action, PushAction) else _plain_world(action, read),
    }
    return frozenset([Fact.LIMITS, *(fact for fact, holds in found.items() if holds)])


def _usual_push(action: Action) -> bool:
    return action.access == Access.PUSH and action.sandbox.sandboxed and not action.sandbox.hosts and not action.outside


def _said_reach(action: Action) -> bool:
    """Each way out of the sandbox is one of its effects, which stand on the card."""
    sandbox = action.sandbox
    said = set(action.effects)
    ways = {Effect.at(path) for path in action.outside} | {Effect.reach(host) for host in sandbox.hosts}
    if not sandbox.sandboxed:
        return action.access == Access.UNSANDBOXED and UNSANDBOXED in said and ways <= said
    return ways <= said and (not sandbox.network or NETWORK in said)


def _plain_world(action: Action, read: Collection[str]) -> bool:
    """What is looked at again names the session's own folder, the file of the card, and a program that is the system's
    or stands there.
    """
    program = action.world.get("program")
    path = program.get("path") if isinstance(program, dict) else None
    known = isinstance(path, str) and (os.path.dirname(path) in _SYSTEM or path in read)
    theirs = program is None or known
    files = action.world.get("files")
    shown = {action.path} if isinstance(action, FileAction) else set()
    beside = set(files) - shown if isinstance(files, dict) else files
    return theirs and _LOOKED_AT.issuperset(action.world) and not beside


def _own_folders(action: Action) -> bool:
    """Nothing is read beyond the system, nothing written but the worktree, and each bound folder is the session's."""
    sandbox = action.sandbox
    ours = all(action.session in bind[0] or action.session in bind[1] for bind in sandbox.binds if len(bind) > 1)
    return bool(action.session) and not sandbox.read and tuple(sandbox.write) == (sandbox.worktree,) and ours


def _your_environment(action: Action) -> bool:
    """Only what is the person's own, and no program found by name comes from where the session writes."""
    folders = action.env.get("PATH", "").split(":")
    theirs = (*action.sandbox.write, action.sandbox.worktree)
    strange = any(
        os.path.normpath(folder) != folder or not folder.startswith("/") or _within(folder, root)
        for folder in folders
        for root in theirs
    )
    return _YOURS.issuperset(action.env) and not strange


def _within(path: str, root: str) -> bool:
    """True for a folder itself and all below it."""
    return path == root or path.startswith(root.rstrip("/") + "/")


def _as_shown(action: PushAction) -> bool:
    """What is looked at again is the commit and the address of the card, the worktree, and files as they were."""
    return set(action.world) == {"files", "head", "url", "worktree"} and action.world["url"] == action.to.url


def compared(
    of: str, facts: dict[str, str], past: Iterable[Shape], usual: frozenset[str] = frozenset()
) -> tuple[int, list[str]]:
    """(how many approved requests had all these facts, the facts that are unusual).

    Unusual is what differs from the approved request that comes nearest; without one of its kind all of it is, less
    what is ``usual`` in any.
    """
    like = [shape for shape in past if shape.of == of]
    same = sum(shape.times for shape in like if shape.facts == facts)
    if same:
        return same, []
    differ = (sorted(name for name in facts if shape.facts.get(name) != facts[name]) for shape in like)
    first = sorted(name for name in facts if name not in usual)
    return 0, min(differ, key=len, default=first) or first
