"""Gathering what the pure policy needs to know about one call. Blocking: call from a worker thread.

Nothing here runs a program that the agent or the repository chose: git through `harness.workspace.git`, shfmt on the script's text.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from harness.policy import push, shell
from harness.policy.effects import absolute, inside
from harness.policy.facts import Facts, FenceFacts
from harness.workspace import private as private_dir
from harness.workspace.diff import untracked
from harness.workspace.errors import GitFailed, WorkspaceError
from harness.workspace.git import Git, clean_env, config_env, execute
from harness.workspace.private import Worktree

MAX_HASHED = 64 * 1024 * 1024
REMOTE_TIMEOUT_S = 20.0
_FILE_TOOLS = ("read_file", "write_file", "edit_file", "list_files", "search")


class ShellAnalysisMissing(WorkspaceError):
    code = "no_shfmt"


def gather(
    tree: Worktree,
    tool: str,
    input: Mapping[str, Any],  # noqa: A002 -- the contract's word
    *,
    env: Mapping[str, str],
    read: Sequence[str] = (),
    timeout_s: int = 600,
) -> Facts:
    """Everything `harness.policy.build.build_action` needs for one call of ``tool``.

    ``env`` is the base environment of the child (PATH, HOME … never a secret), to which git's own names are added; ``read`` the
    user's extra readable folders. Raises WorkspaceError when the worktree or shfmt is unusable.
    """
    root = os.path.realpath(tree.root)
    home = os.path.expanduser("~")
    binds = private_dir.binds(tree)
    git = tree.git
    script = str(input.get("script") or input.get("command") or "") if tool in ("shell", "check") else ""
    syntax = parse_shell(script) if script else None
    argv = input.get("argv") if tool == "exec" else shell.only_command(syntax)
    cwd = str(input.get("cwd") or ".")
    named = _named(tool, input, argv, syntax)
    base = absolute(cwd, root, home)
    resolved = {cwd: os.path.realpath(base)}
    for path in named:
        resolved.setdefault(path, os.path.realpath(absolute(path, root if tool in _FILE_TOOLS else base, home)))
    remotes: dict[str, str] = {}
    commits: dict[str, str] = {}
    there: dict[str, str] = {}
    if argv and tool in ("exec", "shell") and push.is_push(argv):
        remotes = _remotes(git)
        asked = push.parse_push(argv, tree.branch)
        commits = _sources(tree, git, asked)
        if not asked.refused and asked.remote in remotes:
            there = remote_refs(remotes[asked.remote], [ref for _, ref, _ in asked.specs])
    programs = tool in ("exec", "shell", "check")
    return Facts(
        worktree=root,
        branch=tree.branch,
        head=private_dir.agent_head(tree) or "",
        home=home,
        remotes=remotes,
        untracked=untracked(tree, git) if programs else (),
        fence=FenceFacts(tuple(read), (root,), tuple(binds)),
        env={**env, **private_dir.environment(tree)},
        resolved=resolved,
        hashes=_hashes(root, [p for p in resolved.values() if p != resolved[cwd] or tool in _FILE_TOOLS]),
        commits=commits,
        remote_refs=there,
        tree=syntax,
        timeout_s=timeout_s,
    )


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


def _hashes(root: str, paths: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in paths:
        if not inside(path, root) or path == root:
            continue
        value = file_hash(path)
        if value is not None:
            found[os.path.relpath(path, root)] = value
    return found


def file_hash(path: str) -> str | None:
    """SHA-256 of a regular file; None when it is none (a folder, a missing name) or over `MAX_HASHED`. Follows no link."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as f:
        info = os.fstat(f.fileno())
        if not stat.S_ISREG(info.st_mode) or info.st_size > MAX_HASHED:
            return None
        return hashlib.file_digest(f, "sha256").hexdigest()


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


def _remotes(git: Git) -> dict[str, str]:
    urls: dict[str, str] = {}
    for name in git.text("remote").splitlines():
        url = git.text("remote", "get-url", "--push", "--", name, ok=(0, 2, 128))
        if url:
            urls[name] = url.splitlines()[0]
    return urls


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


def remote_refs(url: str, refs: Sequence[str]) -> dict[str, str]:
    """What these refs are at a configured remote now. Raises WorkspaceError when the remote cannot be asked."""
    env = clean_env() | config_env([("protocol.ext.allow", "never"), ("credential.helper", "")])
    env |= {k: os.environ[k] for k in ("SSH_AUTH_SOCK",) if k in os.environ}
    env |= {"GIT_CONFIG_GLOBAL": os.path.expanduser("~/.gitconfig"), "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=10", "GIT_DIR": "/nonexistent"}
    if url.startswith("-"):
        raise GitFailed("ls-remote", -1, f"{push.strip_credential(url)[0]!r} is no address")
    try:
        _, out = execute(("ls-remote", "--quiet", "--refs", "--", url, *refs), env, Path("/"), timeout=REMOTE_TIMEOUT_S)
    except GitFailed as exc:
        raise GitFailed("ls-remote", exc.status, exc.stderr.replace(url, push.strip_credential(url)[0])) from None
    lines = (line.split("\t", 1) for line in out.decode("utf-8", "surrogateescape").splitlines() if "\t" in line)
    return {ref: sha for sha, ref in lines if ref in refs}
