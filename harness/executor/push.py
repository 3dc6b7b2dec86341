"""The one sanctioned way to push, and the question afterwards whether it arrived. Standard library only.

The push runs from an empty scratch repository that borrows the objects of the real one: no configuration, hook,
credential helper or address rewrite of the repository can take part, only the user's own global git configuration (his
credentials live there). Its rewrites were applied before the address was shown (`harness.executor.remotes`), and cannot
apply a second time.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence

from harness.domain.actions.action import PushAction
from harness.domain.actions.destination import Destination, Refspec
from harness.domain.addresses import strip_credential
from harness.executor import remotes
from harness.executor.remotes import Place, PushError, which
from harness.sandbox import fork_exec

__all__ = ["PushError", "check", "command", "moved", "place_of", "probe", "remote_refs", "scratch", "which"]

ABSENT = "absent"
LIST_TIMEOUT_S = 60.0
DONE = "done"
NOT_DONE = "not_done"
UNKNOWN = "unknown"
_SAFE = {
    "core.askPass": "",
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "protocol.ext.allow": "never",
    "push.followTags": "false",
    "push.gpgSign": "false",
    "push.recurseSubmodules": "no",
    "submodule.recurse": "false",
}


def git(*arguments: str) -> list[str]:
    """A git command line that no hook and no watcher takes part in."""
    settings = [part for key, value in _SAFE.items() for part in ("-c", f"{key}={value}")]
    return ["git", "--no-pager", *settings, *arguments]


def environment(env: Mapping[str, str]) -> dict[str, str]:
    """The action's own environment, with every prompt switched off: nobody sits at this terminal."""
    return {
        **env,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CONFIG_NOSYSTEM": "1",
        "SSH_ASKPASS_REQUIRE": "never",
        "LC_ALL": "C.UTF-8",
    }


def check(url: str, refspecs: Sequence[Refspec]) -> None:
    """Raise PushError unless every part is exactly an address, a full object id and a full ref name."""
    if not url.startswith("/") or any(ord(char) < 32 for char in url):
        if remotes.local_path(url) is not None and url and not url.startswith("-"):
            raise PushError(f"the local remote {url[:200]!r} must be given as a folder from the root")
        remotes.protocols(url)
    if not refspecs:
        raise PushError("there is nothing to push")
    for sha, ref, old in refspecs:
        if len(sha) not in (40, 64) or any(char not in "0123456789abcdef" for char in sha):
            raise PushError(f"{sha[:80]!r} is not a full commit id")
        bad = (
            not ref.startswith("refs/")
            or ".." in ref
            or ref.endswith((".lock", "/", "."))
            or any(ord(char) < 33 or char in "~^:?*[\\\x7f" for char in ref)
        )
        if bad:
            raise PushError(f"{ref[:200]!r} is not a full ref name")
        if old != ABSENT and len(old) not in (40, 64):
            raise PushError(f"{old[:80]!r} is neither a full commit id nor 'absent'")


def command(name: str, refspecs: Sequence[Refspec], *, force: bool, hooks: bool = True) -> list[str]:
    """The exact push to what `aimed` called ``name``. ``force`` replaces a ref only while it still stands at the old
    commit that was approved.

    Without ``hooks`` a local remote is told to run none, so that one that appears at the last moment does not run
    either.
    """
    expected = [(ref, "" if old == ABSENT else old) for _, ref, old in refspecs]
    leases = [f"--force-with-lease={ref}:{old}" for ref, old in expected] if force else []
    none = [] if hooks else ["--receive-pack=git -c core.hooksPath=/dev/null receive-pack"]
    pairs = [f"{sha}:{ref}" for sha, ref, _ in refspecs]
    return git(
        "push",
        "--porcelain",
        "--no-verify",
        "--no-signed",
        "--recurse-submodules=no",
        *none,
        *leases,
        "--",
        name,
        *pairs,
    )


def aimed(url: str, env: dict[str, str]) -> tuple[str, dict[str, str]]:
    """(a name for ``url``, the environment in which git knows it). git rewrites an address once: this name uses that
    up, so no other rule applies.
    """
    name = f"watchfloor-{secrets.token_hex(16)}"
    settings = {f"url.{url}.{kind}": name for kind in ("insteadOf", "pushInsteadOf")}
    found = {**env, "GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        found[f"GIT_CONFIG_KEY_{number}"] = key
        found[f"GIT_CONFIG_VALUE_{number}"] = value
    if not url.startswith("/"):
        found["GIT_ALLOW_PROTOCOL"] = remotes.protocols(url)
    return name, found


def place_of(to: Destination, env: Mapping[str, str], closed: Iterable[str]) -> Place:
    """Where a push ``to`` there leads now.

    Raises PushError when that is not what its action says, or nobody may push there.
    """
    if to.named is None:
        raise PushError("the action does not say where its address comes from; let it be judged again")
    place = remotes.find(to.named, env, closed)
    if strip_credential(place.url)[0] != to.url:
        raise PushError(f"{to.named.address} now leads to {strip_credential(place.url)[0]}, and was shown as {to.url}")
    if remotes.account(place) != to.local:
        raise PushError(
            f"what {place.folder} would run is not what was shown: now"
            f" {', '.join((*place.hooks, *place.programs)) or 'nothing'}"
        )
    return place


def scratch(folder: str, common: str, sha: str) -> None:
    """Make the empty repository that borrows the objects of ``common``. Raises PushError when that is no repository."""
    objects = os.path.join(common, "objects")
    if not os.path.isdir(objects):
        raise PushError(f"{common} is not a git directory, so there is nothing to push from")
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("objects/info", "refs"):
        os.makedirs(os.path.join(folder, name), mode=0o700)
    extension = (
        "\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n"
        if len(sha) == 64
        else "\trepositoryformatversion = 0\n\tbare = true\n"
    )
    for name, text in (
        ("HEAD", "ref: refs/heads/none\n"),
        ("config", f"[core]\n{extension}"),
        ("objects/info/alternates", f"{objects}\n"),
    ):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
            file.write(text)
    if os.path.isfile(shallow := os.path.join(common, "shallow")):
        shutil.copyfile(shallow, os.path.join(folder, "shallow"))


def remote_refs(
    url: str, names: list[str], env: Mapping[str, str], timeout_s: float = LIST_TIMEOUT_S
) -> dict[str, str]:
    """What the remote holds now: {ref: commit | "absent"}.

    Raises PushError with git's own words when it cannot be asked.
    """
    program = which("git", env)
    name, known = aimed(url, environment(env))
    safe = {**known, "GIT_DIR": "/nonexistent", "GIT_CEILING_DIRECTORIES": "/"}
    try:
        code, output = fork_exec.capture(
            [program, *git("ls-remote", "--refs", "--", name, *names)[1:]], safe, timeout_s
        )
    except OSError as exc:
        raise PushError(f"git cannot be started: {exc.strerror}") from exc
    text = output.decode("utf-8", "replace")
    if code != 0:
        raise PushError(f"the remote does not answer: {text.strip()[:500] or f'git ended with code {code}'}")
    found = dict.fromkeys(names, ABSENT)
    for line in text.splitlines():
        sha, tab, name = line.partition("\t")
        if tab and name in found:
            found[name] = sha
    return found


def moved(refspecs: Sequence[Refspec], refs: dict[str, str]) -> list[str]:
    """Where the remote no longer stands as it was shown, one sentence each."""
    return [f"{ref} on the remote was {old} and is now {refs[ref]}" for _, ref, old in refspecs if refs[ref] != old]


def probe(action: PushAction) -> str:
    """Ask the remote whether an in-doubt push arrived: ``done``, ``not_done``, or ``unknown`` (other commits there, or
    no answer).

    Takes up to a minute; call it from a thread.
    """
    env = action.env
    to = action.to
    try:
        check(to.url, to.refspecs)
        place = place_of(to, env, remotes.closed(action.sandbox.write, action.sandbox.binds, ()))
        refs = remote_refs(place.url, [spec.ref for spec in to.refspecs], env)
    except PushError:
        return UNKNOWN
    if all(refs[spec.ref] == spec.sha for spec in to.refspecs):
        return DONE
    return NOT_DONE if not moved(to.refspecs, refs) else UNKNOWN
