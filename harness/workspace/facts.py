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
from harness.workspace.diff import untracked
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


def gather(tree: Worktree, tool: str, input: Mapping[str, Any], fence: FenceConfig, own: Iterable[str] = ()) -> Facts:  # noqa: A002 -- the contract's word
    """Everything `harness.policy.build.build_action` needs for one call of ``tool``; ``fence`` is the user's own setting, ``own`` what is Watchfloor's.

    For a push it first publishes the agent's commits and asks the remote where its refs are (only a remote that the repository's
    configuration names, so that an address the agent makes up is not contacted before a human saw it).
    Raises WorkspaceError when the worktree, the remote or shfmt is unusable.
    """
    root = str(tree.root)
    home = os.path.expanduser("~")
    binds = private_dir.binds(tree)
    git = tree.git
    script = str(input.get("script") or input.get("command") or "") if tool in ("shell", "check") else ""
    syntax = parse_shell(script) if script else None
    argv = input.get("argv") if tool == "exec" else shell.only_command(syntax)
    cwd = str(input.get("cwd") or ".")
    base = absolute(cwd, root, home)
    resolved = {cwd: _real(base)}
    named = _named(tool, input, argv, syntax)
    for path in named:
        resolved.setdefault(path, _real(absolute(path, root if tool in _FILE_TOOLS else base, home)))
    remotes: dict[str, str] = {}
    commits: dict[str, str] = {}
    there: dict[str, str] = {}
    open_env = _open_env()
    if argv and tool in ("exec", "shell") and push.is_push(argv):
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
        untracked=untracked(tree, git) if tool not in _FILE_TOOLS else (),
        fence=FenceFacts(tuple(os.path.realpath(p) for p in fence.read), (root,), tuple(binds)),
        env=_fenced_env(tree, fence),
        open_env=open_env,
        identity={"dev": info.st_dev, "ino": info.st_ino},
        resolved=resolved,
        hashes=_hashes(root, [resolved[p] for p in named], tool in _FILE_TOOLS),
        commits=commits,
        remote_refs=there,
        tree=syntax,
        own=tuple(os.path.realpath(path) for path in own),
        timeout_s=fence.timeout_s,
        output_bytes=fence.output_bytes,
    )


def _real(path: str) -> str:
    """The path with its links resolved; one that leads through a link nobody may read (``/proc/1/root``) stays as it was asked for."""
    try:
        return os.path.realpath(path)
    except OSError:
        return os.path.normpath(path)


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


def _named(tool: str, input: Mapping[str, Any], argv: Sequence[str] | None, syntax: Mapping[str, object] | None) -> list[str]:  # noqa: A002
    """Paths as the input writes them: the file tool's path, or every literal word that may be a file the command runs or reads."""
    if tool in _FILE_TOOLS:
        return [str(input.get("path") or ".")]
    words: Iterable[str] = argv or ()
    if not argv and syntax is not None:
        try:
            words = [w.text for c in shell.commands(syntax) for w in c.words if w.text]
        except (shell.TooComplex, RecursionError):
            words = ()
    return [w for w in dict.fromkeys(words) if w and len(w) < 4096 and "\0" not in w and not w.startswith("-")][:500]


def _hashes(root: str, paths: Iterable[str], file_tool: bool) -> dict[str, str]:
    """State of the named files: worktree files that exist, and for a file tool its file wherever it is, ``absent`` too."""
    found: dict[str, str] = {}
    for path in paths:
        within = inside(path, root)
        if path == root or not (within or file_tool):
            continue
        if file_tool or os.path.isfile(path):
            found[os.path.relpath(path, root) if within else path] = precheck.file_state(path)
    return found


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
