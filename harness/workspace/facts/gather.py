"""Gathering what the pure policy needs to know about one call. Blocking: call from a worker thread.

Nothing here runs a program that the agent or the repository chose: git through `harness.workspace.git.run`, shfmt on
the script's text.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.domain.actions.access import Access, asked
from harness.domain.actions.action import ExecAction, FileAction, ShellAction
from harness.domain.addresses import BadAddress, split_host
from harness.domain.text import fields
from harness.executor import deleted, preconditions, remotes
from harness.linux import programs
from harness.policy import deletion, push, shell
from harness.policy.effects import absolute, inside
from harness.policy.facts import Facts, SandboxFacts
from harness.protocol.config.sections import SandboxConfig
from harness.sandbox import bubblewrap, egress_relay
from harness.tools import registry
from harness.workspace.facts import push_facts
from harness.workspace.facts.push_facts import PushFacts
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.private_git import private_gitdir
from harness.workspace.private_git.private_gitdir import Worktree

_OPEN = (
    "PATH",
    "LANG",
    "LC_ALL",
    "USER",
    "LOGNAME",
    "SHELL",
    "SSH_AUTH_SOCK",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "TZ",
)


class ShellAnalysisMissing(WorkspaceError):
    code = "no_shfmt"


@dataclass(frozen=True, slots=True)
class Kept:
    """What the vault says of the worktree before a call: the snapshot that a person is shown, or why there can be
    none. ``left_out``: what that snapshot does not hold.
    """

    snapshot: str = ""
    unprotected: str = ""
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the input of a call names: its command (of a script, the only one in it), and where it works."""

    kind: str
    argv: Sequence[str] | None
    script: str
    syntax: Mapping[str, object] | None
    cwd: str
    paths: tuple[str, ...]
    unsandboxed: bool


def _asked(kind: str, given: Mapping[str, object], folder: str) -> _Asked:
    script = str(given.get("script") or "") if kind == ShellAction.KIND else ""
    unsandboxed = asked(given) == Access.UNSANDBOXED
    syntax = parse_shell(script) if "push" in script or (unsandboxed and deletion.may_hold(script)) else None
    argv = fields.texts(given, "argv") if kind == ExecAction.KIND else shell.only_command(syntax)
    paths = (str(given.get("path") or "."),) if kind == FileAction.KIND else ()
    return _Asked(kind, argv, script, syntax, str(given.get("cwd") or folder), paths, unsandboxed)


def gather(
    tree: Worktree,
    tool: str,
    input: Mapping[str, object],  # noqa: A002 -- the contract's word
    sandbox: SandboxConfig,
    own: Iterable[str] = (),
    kept: Kept = Kept(),
) -> Facts:
    """Everything `harness.policy.build.build_action` needs for one call of ``tool``; ``sandbox`` is the user's own
    setting, ``own`` what is Watchfloor's.

    For a push it first publishes the agent's commits and asks the remote where its refs are (only a remote that the
    repository's configuration names, so that an address the agent makes up is not contacted before a human saw it).
    Raises WorkspaceError when the worktree, the remote or shfmt is unusable.
    """
    own = tuple(own)
    root = str(tree.root)
    home = os.path.expanduser("~")
    binds = private_gitdir.binds(tree)
    base = os.path.join(root, tree.folder) if tree.folder else root
    # one that is gone would let nothing run, not even what brings it back
    begin = "" if os.path.isdir(base) else root
    asked = _asked(registry.kind_of(tool), input, begin or ".")
    resolved = {asked.cwd: _real(absolute(asked.cwd, base, home))}
    for path in asked.paths:
        resolved.setdefault(path, _real(absolute(path, base, home)))
    cwd = resolved[asked.cwd]
    pushed = PushFacts()
    open_env = _open_env()
    if asked.argv and asked.kind in (ExecAction.KIND, ShellAction.KIND) and push.is_push(asked.argv):
        private_gitdir.publish(tree)
        wanted = push.parse_push(asked.argv, tree.branch)
        pushed = push_facts.of(tree, wanted, open_env, remotes.closed((root,), binds, own))
    info = os.lstat(root)
    return Facts(
        worktree=root,
        branch=tree.branch,
        head=preconditions.head(root, binds),
        home=home,
        folder=tree.folder or ".",
        begin=begin,
        remotes={name: named[0].address for name, named in pushed.addresses.items()},
        target=pushed.target,
        sandbox=SandboxFacts(tuple(os.path.realpath(p) for p in sandbox.read), (root,), tuple(binds)),
        env=_sandboxed_env(tree, sandbox) | _proxied(input),
        open_env=open_env,
        identity={"dev": info.st_dev, "ino": info.st_ino},
        cwd_identity=preconditions.identity(cwd),
        program=_program(asked.kind, input, cwd, open_env["PATH"]),
        deletes=_deletes(asked.argv, asked.script, asked.syntax, cwd, home) if asked.unsandboxed else {},
        snapshot=kept.snapshot,
        unprotected=kept.unprotected,
        resolved=resolved,
        hashes=_hashes(root, [resolved[p] for p in asked.paths])
        | {p: preconditions.file_state(p) for p in pushed.rests_on},
        commits=pushed.commits,
        remote_refs=pushed.refs,
        tree=asked.syntax,
        own=tuple(os.path.realpath(path) for path in own),
        denied=tree.denied,
        repository=str(tree.repo),
        timeout_s=sandbox.timeout_s,
        output_bytes=sandbox.output_bytes,
    )


def _real(path: str) -> str:
    """The path with its links resolved; one that leads through a link nobody may read (``/proc/1/root``) stays as it
    was asked for.
    """
    try:
        return os.path.realpath(path)
    except OSError:
        return os.path.normpath(path)


def _sandboxed_env(tree: Worktree, sandbox: SandboxConfig) -> dict[str, str]:
    """The sandbox's own environment with git's settings in a file of lowest rank, so that repositories a test makes
    keep their own.
    """
    counted = ("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_AUTHOR_", "GIT_COMMITTER_")
    env = {k: v for k, v in bubblewrap.environment(str(tree.root)).items() if not k.startswith(counted)}
    env["PATH"] = ":".join((bubblewrap.OWN_PROGRAMS, *sandbox.path, env["PATH"]))
    return {**env, **private_gitdir.environment(tree), **sandbox.env}


def _proxied(input: Mapping[str, object]) -> dict[str, str]:  # noqa: A002
    """The environment that leads a call with named hosts to its proxy; nothing when it names none, or badly (then it is
    refused).
    """
    try:
        hosts = [split_host(str(host))[0] for host in fields.texts(input, "hosts")]
    except BadAddress:
        return {}
    return egress_relay.environment(hosts) if hosts else {}


def _open_env() -> dict[str, str]:
    env = {name: os.environ[name] for name in _OPEN if name in os.environ and "@" not in os.environ[name]}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", **env, "HOME": os.path.expanduser("~"), "GIT_TERMINAL_PROMPT": "0"}


def _program(kind: str, input: Mapping[str, object], cwd: str, path: str) -> dict[str, object]:  # noqa: A002
    """What a call outside the sandbox would execute, as it is now."""
    if asked(input) != Access.UNSANDBOXED or kind not in (ExecAction.KIND, ShellAction.KIND):
        return {}
    name = fields.texts(input, "argv")[0] if kind == ExecAction.KIND else programs.bash()
    return preconditions.program(name, cwd, path)


def _deletes(
    argv: Sequence[str] | None, script: str, syntax: Mapping[str, object] | None, cwd: str, home: str
) -> dict[str, str]:
    """What a deletion outside the sandbox takes away, as it is now."""
    named = deletion.deleted_in(script, syntax, home).names if script else deletion.names(argv)
    return {name: deleted.state(os.path.join(cwd, name)) for name in named[: deletion.BOUND]}


def _hashes(root: str, paths: Iterable[str]) -> dict[str, str]:
    """State of a file tool's file, wherever it is; ``absent`` too."""
    found: dict[str, str] = {}
    for path in paths:
        if path != root:
            found[os.path.relpath(path, root) if inside(path, root) else path] = path
    return preconditions.file_states(found)


def shfmt_program() -> str:
    """The shfmt that came with us, else one on PATH. Raises ShellAnalysisMissing."""
    beside = Path(sys.prefix) / "bin" / "shfmt"
    found = str(beside) if beside.is_file() else shutil.which("shfmt")
    if found is None:
        raise ShellAnalysisMissing(
            "shfmt is missing; install the Python package shfmt-py into Watchfloor's environment"
        )
    return found


def parse_shell(script: str) -> Mapping[str, object] | None:
    """shfmt's tree of a bash script, or None when it does not parse or is over the limit."""
    if len(script) > shell.MAX_SCRIPT:
        return None
    try:
        done = subprocess.run(
            [shfmt_program(), "-ln", "bash", "--to-json"],
            input=script.encode("utf-8", "surrogateescape"),
            capture_output=True,
            timeout=10,
            env={},
            cwd="/",
        )
    except subprocess.TimeoutExpired:
        return None
    if done.returncode != 0:
        return None
    try:
        tree = json.loads(done.stdout)
    except (ValueError, RecursionError):
        return None
    return tree if isinstance(tree, dict) else None
