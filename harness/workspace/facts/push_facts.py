"""What is to be known of a push: the remotes as the user configured them, where this one leads, what it would send.
Blocking: call from a worker thread.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from harness.domain.actions.destination import Named
from harness.domain.addresses import strip_credential
from harness.executor import preconditions, remotes
from harness.executor import push as hands_push
from harness.policy import push
from harness.policy.facts import Target
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.git.run import Git
from harness.workspace.private_git import private_gitdir
from harness.workspace.private_git.private_gitdir import Worktree

REMOTE_TIMEOUT_S = 30.0


class RemoteUnreachable(WorkspaceError):
    code = "remote_unreachable"


class PushFacts(NamedTuple):
    """``addresses`` by the name of a remote, ``commits`` by what is to be pushed; ``target`` None when nobody asked, or
    for one that is refused as it stands. ``rests_on``: files that say where it leads; ``refs``: where they are there.
    """

    addresses: Mapping[str, list[Named]] = {}
    commits: Mapping[str, str] = {}
    target: Target | None = None
    rests_on: tuple[str, ...] = ()
    refs: Mapping[str, str] = {}


def of(tree: Worktree, asked: push.Push, env: Mapping[str, str], closed: Sequence[str]) -> PushFacts:
    """The facts of one push; ``closed`` are the places where an agent can write. Raises WorkspaceError."""
    git = tree.git
    addresses = _remotes(tree, git, closed)
    commits = _sources(tree, git, asked)
    if asked.refused:
        return PushFacts(addresses, commits)
    target, rests_on, refs = _target(tree, asked, addresses, env, closed)
    return PushFacts(addresses, commits, target, rests_on, refs)


def _remotes(tree: Worktree, git: Git, closed: Sequence[str]) -> dict[str, list[Named]]:
    """Push addresses by remote name as the user's repository configures them; what a file says that an agent can write
    is not heard.
    """
    walls = remotes.Walls(closed)
    found: dict[str, dict[bool, list[str]]] = {}
    parts = git.run("config", "--list", "-z", "--show-origin").decode("utf-8", "surrogateescape").split("\0")
    for origin, entry in zip(parts[::2], parts[1::2], strict=False):
        key, _, address = entry.partition("\n")
        name, dot, kind = key.removeprefix("remote.").rpartition(".")
        if (
            not key.startswith("remote.")
            or not dot
            or kind not in ("url", "pushurl")
            or not address
            or not origin.startswith("file:")
        ):
            continue
        try:
            walls.real(os.path.join(git.git_dir, origin.removeprefix("file:")), "the configuration file")
        except hands_push.PushError:
            continue
        found.setdefault(name, {True: [], False: []})[kind == "pushurl"].append(address)
    return {
        name: [
            Named(address, str(tree.repo), pushurl=bool(kinds[True]), configured=True)
            for address in kinds[True] or reversed(kinds[False])
        ]
        for name, kinds in found.items()
    }


def _target(
    tree: Worktree,
    asked: push.Push,
    addresses: Mapping[str, list[Named]],
    env: Mapping[str, str],
    closed: Sequence[str],
) -> tuple[Target, tuple[str, ...], dict[str, str]]:
    """(where the push leads, the files this rests on, where its refs are there).

    Only a remote that the user configured is asked for its refs.
    """
    by_name = addresses.get(asked.remote, [])
    equal = (n for listed in addresses.values() for n in listed if n.address == asked.remote)
    named = by_name[0] if by_name else next(equal, Named(asked.remote, str(tree.repo)))
    named = replace(named, address=strip_credential(named.address)[0])
    seen = preconditions.remote_url(str(tree.common), asked.remote) if by_name else None
    target = Target("", named, str(tree.common), others=max(0, len(by_name) - 1), seen=seen)
    try:
        place = remotes.find(named, env, closed)
    except hands_push.PushError as exc:
        return replace(target, refused=str(exc)), (), {}
    target = replace(target, url=strip_credential(place.url)[0], local=remotes.account(place))
    there = _refs_there(place.url, [ref for _, ref, _ in asked.specs], env) if named.configured else {}
    return target, place.files, there


def _sources(tree: Worktree, git: Git, asked: push.Push) -> dict[str, str]:
    head = private_gitdir.agent_head(tree)
    found: dict[str, str] = {}
    for source, _, _ in asked.specs:
        if source in ("HEAD", "@", tree.branch, f"refs/heads/{tree.branch}"):
            if head:
                found[source] = head
        elif source and not source.startswith("-") and (commit := git.commit(_own(tree, source) or source)):
            found[source] = commit
    return found


def _own(tree: Worktree, source: str) -> str:
    """Where the branch of that name is for the agent, which may have made or moved it; empty when it has none."""
    name = source if source.startswith("refs/heads/") else f"refs/heads/{source}"
    found = preconditions.ref(str(tree.private), name)
    return "" if found in (preconditions.ABSENT, preconditions.NO_COMMIT) else found


def _refs_there(url: str, refs: Sequence[str], env: Mapping[str, str]) -> dict[str, str]:
    """Where these refs are at a configured remote now, ``absent`` ones left out.

    Raises RemoteUnreachable without the address's password.
    """
    shown = strip_credential(url)[0]
    try:
        found = hands_push.remote_refs(url, list(refs), dict(env), REMOTE_TIMEOUT_S)
    except hands_push.PushError as exc:
        raise RemoteUnreachable(f"{shown}: {str(exc).replace(url, shown)}") from None
    return {ref: sha for ref, sha in found.items() if sha != hands_push.ABSENT}
