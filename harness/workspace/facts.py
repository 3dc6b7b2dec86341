"""Gathering what the pure policy needs to know about one call. Blocking: call from a worker thread.

Nothing here runs a program that the agent or the repository chose: git through `harness.workspace.git`, shfmt on the script's text.
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
from typing import Any

from harness.hands import fence as hands_fence
from harness.hands import precheck
from harness.hands import push as hands_push
from harness.policy import push, shell
from harness.policy.effects import absolute, inside
from harness.policy.facts import Facts, FenceFacts
from harness.protocol.config import FenceConfig
from harness.workspace import private as private_dir
from harness.workspace.errors import WorkspaceError
from harness.workspace.git import Git
from harness.workspace.private import Worktree

REMOTE_TIMEOUT_S = 30.0
_OPEN = ("PATH", "LANG", "LC_ALL", "USER", "LOGNAME", "SHELL", "SSH_AUTH_SOCK", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "TZ")
_FILE_TOOLS = ("read_file", "write_file", "edit_file", "list_files", "search")


class ShellAnalysisMissing(WorkspaceError):
    code = "no_shfmt"


class RemoteUnreachable(WorkspaceError):
    code = "remote_unreachable"


@dataclass(frozen=True, slots=True)
class Kept:
    """What the vault says of the worktree before a call: the snapshot that a person is shown, or why there can be none."""

    snapshot: str = ""
    unprotected: str = ""


def gather(
    tree: Worktree,
    tool: str,
    input: Mapping[str, Any],  # noqa: A002 -- the contract's word
    fence: FenceConfig,
    own: Iterable[str] = (),
    kept: Kept = Kept(),
) -> Facts:
    """Everything `harness.policy.build.build_action` needs for one call of ``tool``; ``fence`` is the user's own setting, ``own`` what is Watchfloor's.

    For a push it first publishes the agent's commits and asks the remote where its refs are (only a remote that the repository's
    configuration names, so that an address the agent makes up is not contacted before a human saw it).
    Raises WorkspaceError when the worktree, the remote or shfmt is unusable.
    """
    root = str(tree.root)
    home = os.path.expanduser("~")
    binds = private_dir.binds(tree)
    script = str(input.get("script") or "") if tool == "shell" else ""
    syntax = parse_shell(script) if "push" in script else None
    argv = input.get("argv") if tool == "exec" else shell.only_command(syntax)
    cwd = str(input.get("cwd") or ".")
    base = absolute(cwd, root, home)
    resolved = {cwd: os.path.realpath(base)}
    named = [str(input.get("path") or ".")] if tool in _FILE_TOOLS else []
    for path in named:
        resolved.setdefault(path, os.path.realpath(absolute(path, root, home)))
    remotes: dict[str, str] = {}
    commits: dict[str, str] = {}
    there: dict[str, str] = {}
    open_env = _open_env()
    if argv and tool in ("exec", "shell") and push.is_push(argv):
        git = tree.git
        private_dir.publish(tree)
        remotes = _remotes(tree, git)
        asked = push.parse_push(argv, tree.branch)
        commits = _sources(tree, git, asked)
        if not asked.refused and asked.remote in remotes:
            there = remote_refs(remotes[asked.remote], [ref for _, ref, _ in asked.specs], open_env)
    info = os.lstat(root)
    return Facts(
        worktree=root,
        branch=tree.branch,
        head=precheck.head(root, [list(b) for b in binds]),
        home=home,
        remotes=remotes,
        fence=FenceFacts(tuple(os.path.realpath(p) for p in fence.read), (root,), tuple(binds)),
        env=_fenced_env(tree, fence),
        open_env=open_env,
        identity={"dev": info.st_dev, "ino": info.st_ino},
        cwd_identity=precheck.identity(resolved[cwd]),
        program=_program(tool, input, resolved[cwd], open_env["PATH"]),
        snapshot=kept.snapshot,
        unprotected=kept.unprotected,
        resolved=resolved,
        hashes=_hashes(root, [resolved[p] for p in named]),
        commits=commits,
        remote_refs=there,
        tree=syntax,
        own=tuple(os.path.realpath(path) for path in own),
        timeout_s=fence.timeout_s,
        output_bytes=fence.output_bytes,
    )


def _fenced_env(tree: Worktree, fence: FenceConfig) -> dict[str, str]:
    """The fence's own environment with git's settings in a file of lowest rank, so that repositories a test makes keep their own."""
    counted = ("GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_", "GIT_AUTHOR_", "GIT_COMMITTER_")
    env = {k: v for k, v in hands_fence.environment(str(tree.root)).items() if not k.startswith(counted)}
    if fence.path:
        env["PATH"] = ":".join((*fence.path, env["PATH"]))
    return {**env, **private_dir.environment(tree), **fence.env}


def _open_env() -> dict[str, str]:
    env = {name: os.environ[name] for name in _OPEN if name in os.environ and "@" not in os.environ[name]}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", **env, "HOME": os.path.expanduser("~"), "GIT_TERMINAL_PROMPT": "0"}


def _program(tool: str, input: Mapping[str, Any], cwd: str, path: str) -> dict[str, object]:  # noqa: A002
    """What a call outside the fence would execute, as it is now."""
    if input.get("access") != "unfenced" or tool not in ("exec", "shell"):
        return {}
    name = str(input["argv"][0]) if tool == "exec" else precheck.bash()
    return precheck.program(name, cwd, path)


def _hashes(root: str, paths: Iterable[str]) -> dict[str, str]:
    """State of a file tool's file, wherever it is; ``absent`` too."""
    found: dict[str, str] = {}
    for path in paths:
        if path != root:
            found[os.path.relpath(path, root) if inside(path, root) else path] = path
    return precheck.file_states(found)


def shfmt_program() -> str:
    """The shfmt that came with us, else one on PATH. Raises ShellAnalysisMissing."""
    beside = Path(sys.prefix) / "bin" / "shfmt"
    found = str(beside) if beside.is_file() else shutil.which("shfmt")
    if found is None:
        raise ShellAnalysisMissing("shfmt is missing; install the Python package shfmt-py into Watchfloor's environment")
    return found


def parse_shell(script: str) -> Mapping[str, object] | None:
    """shfmt's tree of a bash script, or None when it does not parse or is over the limit."""
    if len(script) > shell.MAX_SCRIPT:
        return None
    try:
        done = subprocess.run(
            [shfmt_program(), "-ln", "bash", "--to-json"], input=script.encode("utf-8", "surrogateescape"), capture_output=True, timeout=10, env={}, cwd="/"
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


def _remotes(tree: Worktree, git: Git) -> dict[str, str]:
    """Push addresses as configured, rewrites of the repository's own configuration not applied; relative folders made absolute."""
    urls: dict[str, str] = {}
    for name in git.text("remote").splitlines():
        for key in ("pushurl", "url"):
            lines = git.text("config", "--get-all", f"remote.{name}.{key}", ok=(0, 1)).splitlines()
            if lines:
                urls[name] = _address(lines[0] if key == "pushurl" else lines[-1], tree.repo)
                break
    return urls


def _address(url: str, repo: Path) -> str:
    if url.startswith(("./", "../")) or (":" not in url and not url.startswith(("/", "-"))):
        return os.path.normpath(repo / url)
    return url


def _sources(tree: Worktree, git: Git, asked: push.Push) -> dict[str, str]:
    head = private_dir.agent_head(tree)
    found: dict[str, str] = {}
    for source, _, _ in asked.specs:
        if source in ("HEAD", "@", tree.branch, f"refs/heads/{tree.branch}"):
            if head:
                found[source] = head
        elif source and not source.startswith("-") and (commit := git.commit(source)):
            found[source] = commit
    return found


def remote_refs(url: str, refs: Sequence[str], env: Mapping[str, str]) -> dict[str, str]:
    """Where these refs are at a configured remote now, ``absent`` ones left out. Raises RemoteUnreachable without the address's password."""
    shown = push.strip_credential(url)[0]
    try:
        found = hands_push.remote_refs(url, list(refs), dict(env), REMOTE_TIMEOUT_S)
    except hands_push.PushError as exc:
        raise RemoteUnreachable(f"{shown}: {str(exc).replace(url, shown)}") from None
    return {ref: sha for ref, sha in found.items() if sha != hands_push.ABSENT}
