"""Reading a ``git push``: which remote, which refs, how forceful. Pure.

Only this plain form is a push of ours; everything else that calls git stays in the sandbox, where it has no network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.domain.actions.destination import Destination, Refspec
from harness.domain.actions.effect import PUSH_FORCE, Effect
from harness.domain.addresses import strip_credential
from harness.policy.facts import Facts

_HARMLESS = {
    "-u",
    "--set-upstream",
    "-q",
    "--quiet",
    "-v",
    "--verbose",
    "--progress",
    "--no-progress",
    "--no-verify",
    "--verify",
    "--porcelain",
    "--atomic",
    "--thin",
}
_FORCE = {"-f", "--force", "--force-with-lease", "--force-if-includes"}
_DELETE = {"-d", "--delete"}
_WHOLESALE = {"--mirror", "--all", "--branches", "--tags", "--prune", "--follow-tags"}
_REF = re.compile(r"(?!.*(\.\.|@\{|//|/\.|\.lock(/|$)))[^\x00-\x20\x7f~^:?*\[\\]+(?<![/.])")


@dataclass(frozen=True, slots=True)
class Push:
    """A push as asked for. ``specs`` are (source name or "" for a deletion, full destination ref, forced)."""

    remote: str
    specs: tuple[tuple[str, str, bool], ...]
    force: bool
    refused: str = ""


@dataclass(frozen=True, slots=True)
class Pushed:
    """A push with where it leads: ``remote`` is the remote's name or its address, ``argv`` holds no credential,
    ``note`` is a remark for the person, ``refused`` why nobody may do it.
    """

    argv: tuple[str, ...]
    remote: str
    to: Destination
    note: str
    effects: tuple[Effect, ...]
    refused: str


def is_push(argv: Sequence[str]) -> bool:
    """True for the argv form ``git push …``."""
    return len(argv) >= 2 and argv[0] in ("git", "/usr/bin/git") and argv[1] == "push"


def parse_push(argv: Sequence[str], branch: str) -> Push:
    """What ``git push …`` asks for; ``branch`` is the session's, the default source.

    Never raises: what is not understood is refused.
    """
    positional: list[str] = []
    force = False
    delete = False
    refused = ""
    options = True
    for arg in argv[2:]:
        if options and arg in ("--", "--end-of-options"):
            options = False
        elif options and arg.startswith("-"):
            name = arg.partition("=")[0]
            if name in _FORCE:
                force = True
            elif name in _DELETE:
                delete = True
                force = True
            elif name in _WHOLESALE:
                force = force or name in ("--mirror", "--prune")
                refused = refused or f"{name} is not supported: name the branches to push"
            elif name not in _HARMLESS:
                refused = refused or f"option {name} of git push is not supported here"
        else:
            positional.append(arg)
    remote = positional[0] if positional else "origin"
    specs: list[tuple[str, str, bool]] = []
    for text in positional[1:] or ["HEAD"]:
        spec, why = _spec(text, branch, delete)
        specs.append(spec)
        force = force or spec[2] or not spec[0]
        refused = refused or why
    if remote.startswith("-") or "::" in remote.split("/")[0]:
        refused = refused or f"{remote} is not a remote that can be pushed to"
    return Push(remote, tuple(specs), force, refused)


def _spec(text: str, branch: str, delete: bool) -> tuple[tuple[str, str, bool], str]:
    forced = text.startswith("+")
    source, colon, target = text.removeprefix("+").partition(":")
    if delete:
        target = target or source
        source = ""
    elif not colon:
        target = branch if source in ("HEAD", "@") else source
    if not target or not _REF.fullmatch(target) or target.startswith("-"):
        return (source, target, forced), f"{text!r} does not name a branch to push to"
    return (source, target if target.startswith("refs/") else f"refs/heads/{target}", forced), ""


def pushed(argv: Sequence[str], facts: Facts) -> Pushed:
    """Where a push that asks for ``argv`` leads, by the facts."""
    push = parse_push(argv, facts.branch)
    known = push.remote in facts.remotes
    written, stripped = strip_credential(facts.remotes[push.remote] if known else push.remote)
    name = push.remote if known else written
    refused = push.refused
    if not refused and not known and not re.match(r"[a-z+]+://|/|\.\.?(/|$)|[^/:]+@[^/:]+:", push.remote):
        refused = f"there is no remote {push.remote!r}" + (
            f"; known: {', '.join(sorted(facts.remotes))}" if facts.remotes else " in this repository"
        )
    target = facts.target
    if not refused and target is None:
        refused = f"nobody knows where {name!r} leads"
    if target is not None:
        refused = refused or target.refused
    refspecs: list[Refspec] = []
    for source, ref, _ in push.specs:
        sha = facts.commits.get(source, "") if source else ""
        if not source and not refused:
            refused = f"deleting {ref} at the remote is left to the human; push commits only"
        if source and not sha and not refused:
            refused = (
                f"{source!r} does not name a commit that the repository has; of a branch of your own it has what HEAD"
                " stood on at the end of a call: switch to that branch first"
            )
        refspecs.append(Refspec(sha, ref, facts.remote_refs.get(ref, "absent")))
    url = target.url if target is not None and target.url else written
    to = Destination(url=url, refspecs=tuple(refspecs), force=push.force)
    if target is not None:
        to = replace(to, named=target.named, repository=target.repository, local=target.local)
    notes = ["a user name or password was removed from the address; it is not recorded"] if stripped else []
    if target is not None and target.others:
        notes.append(f"{name} has {target.others + 1} addresses to push to; only this one is used")
    effects = [Effect.push(name, spec.ref) for spec in refspecs]
    if push.force:
        effects.append(PUSH_FORCE)
    return Pushed(clean_argv(argv, facts.remotes), name, to, "; ".join(notes), tuple(effects), refused)


def clean_argv(argv: Sequence[str], remotes: Mapping[str, str]) -> tuple[str, ...]:
    """``argv`` with credentials removed from addresses; names of remotes stay."""
    return tuple(a if a in remotes else strip_credential(a)[0] for a in argv)
