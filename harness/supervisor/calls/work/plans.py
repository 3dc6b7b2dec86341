"""The plan of a session: read from the commit it began from, kept against its agent, flipped by what was seen.

The text in the worktree is always the base's with the flips on record; whatever else is there was not written by us.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from harness.eventlog import blobs
from harness.events import types as t
from harness.plan import progress
from harness.plan.due import due
from harness.plan.files import phrases, progress_log
from harness.plan.files.formats import MAX_BYTES, Entry, Plan, read
from harness.plan.files.guard import tampered
from harness.plan.phases import Phased, phased
from harness.plan.progress import Wanted
from harness.projections.state.protected_files import PlanProgress
from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.fleet.session import Session
from harness.workspace.git.run import Git
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.protected import restore
from harness.workspace.tree.worktrees import open_worktree

TOLD = (
    "What done means is written down in {path}. When you say that you are done, the harness runs the criteria of its"
    " entries by itself and sets passes; leave the file as it is. Work on one entry after the other."
)
MAX_TITLE = 200
SETUP = "init.sh"
"""The script that makes the place ready, at the top of the repository."""
MEDIA = "application/json"
_LOOK_S = 60.0
"""Seconds that reading or writing a plan may take."""


def entries(plan: Plan, gates: Sequence[str] = ()) -> list[Wanted]:
    """The entries of a plan, which has the phases that the gates name. Raises BadPlan."""
    phased(plan, gates)
    return [progress.wanted(entry) for entry in plan.entries]


def read_at(git: Git, commit: str, path: str) -> Plan:
    """The plan at this path of a commit. Raises BadPlan, GitFailed."""
    return read(git.run("cat-file", "blob", f"{commit}:{path}"))


def loaded(tree: Worktree, path: str, gates: Sequence[str], bindings: Mapping[str, str]) -> t.PlanLoaded:
    """The record of a plan as the base has it. Raises BadPlan, GitFailed."""
    found = tree.git.names("ls-tree", "-z", "--name-only", tree.base, "--", SETUP, *progress_log.NAMES)
    return record(path, phrases.bound(read_at(tree.git, tree.base, path), bindings), gates, found)


def record(
    path: str, plan: Plan, gates: Sequence[str] = (), there: Sequence[str] = (), text: t.BlobRef | None = None
) -> t.PlanLoaded:
    """The record of a plan. ``there`` are the files beside it that matter, ``text`` its own file where no commit has
    it. Raises BadPlan.
    """
    made = phased(plan, gates)
    return t.PlanLoaded(
        path=path,
        form=plan.form,
        entries=[_entry(entry, made) for entry in plan.entries],
        phases=[t.PlanPhase(one.name, one.gate, one.above_nano, list(one.asks)) for one in made.phases],
        setup=SETUP if SETUP in there else "",
        progress=progress_log.name(plan.form, there),
        text=text,
    )


def _entry(entry: Entry, made: Phased) -> t.PlanEntry:
    e = progress.wanted(entry)
    depends_on = list(entry.depends_on)
    return t.PlanEntry(
        e.id, e.title[:MAX_TITLE], list(e.checks), e.undecided, e.passes, made.of[e.id], depends_on, e.priority
    )


def entries_of(session: Session, tree: Worktree, plan: PlanProgress) -> tuple[Entry, ...]:
    """The entries of a session's plan as it was given, or accepted. Raises BadPlan, GitFailed, LogError."""
    intent = session.state.intent
    return phrases.bound(_trusted(session, tree, plan), intent.phrases if intent is not None else {}).entries


async def guard(session: Session, call_id: str) -> None:
    """Put the plan back, just before a check runs, when it is not as the harness wrote it. Raises WorkspaceError."""
    plan = session.state.plan
    if plan is None:
        return
    told = await session.do("comparing its plan", _LOOK_S, lambda: _told(session, plan))
    if told:
        await session.append(t.PlanRestored(call_id=call_id, did=told))
        await session.do("putting its plan back", _LOOK_S, lambda: _write(session, plan), lasting=True)


async def follow(session: Session) -> None:
    """Flip what the verdicts say, once nothing is left to be judged or answered. Raises WorkspaceError."""
    plan = session.state.plan
    found = due(session.state)
    if plan is None or not found:
        return
    then = replace(plan, passes=plan.passes | {flip.entry: flip.passes for flip in found})
    # the record comes last: nothing goes on before it, so whoever dies in between writes the same again
    await session.do("writing its plan", _LOOK_S, lambda: _write(session, then), lasting=True)
    await session.append(
        *(t.PlanFlipped(entry=f.entry, passes=f.passes, why=f.why, calls=list(f.calls)) for f in found)
    )


async def bring(session: Session, passing: frozenset[str], why: str) -> list[t.PlanFlipped]:
    """Write the plan as it is when exactly these entries pass; the flips that say so, not yet on record. Raises
    WorkspaceError.
    """
    plan = session.state.plan
    if plan is None:
        return []
    then = {entry: entry in passing for entry in plan.entries}
    flips = [
        t.PlanFlipped(entry=entry, passes=passes, why=why, calls=[])
        for entry, passes in then.items()
        if plan.passes[entry] != passes
    ]
    made = replace(plan, passes=then)
    await session.do("bringing its plan back", _LOOK_S, lambda: _write(session, made), lasting=True)
    return flips


def beside(tree: Worktree) -> list[str]:
    """The files that matter beside a plan that the session wrote itself. Raises WorkspaceError, OSError."""
    return [name for name in (SETUP, *progress_log.NAMES) if restore.content(tree, name, MAX_BYTES) is not None]


def inherited(
    session: Session, tree: Worktree, made: t.PlanLoaded, passing: frozenset[str], why: str
) -> list[t.PlanFlipped]:
    """The flips by which the plan of a new session stands as another one's did; the file is written so (blocking).
    Raises BadPlan, LogError, WorkspaceError, OSError.
    """
    then = {entry.id: entry.id in passing for entry in made.entries}
    text = progress.standing(_given(session, tree, made.path, made.text), then).text
    _put(tree, made.path, text.encode(), tree.private.parent.parent / "aside" / "plan")
    return [
        t.PlanFlipped(entry=entry.id, passes=then[entry.id], why=why, calls=[])
        for entry in made.entries
        if entry.passes != then[entry.id]
    ]


def _given(session: Session, tree: Worktree, path: str, text: t.BlobRef | None) -> Plan:
    """A plan as its commit has it, or as the session wrote it and it was accepted."""
    if text is not None:
        return read(blobs.get(session.folder.blobs, text.sha))
    return read_at(tree.git, tree.base, path)


def _trusted(session: Session, tree: Worktree, plan: PlanProgress) -> Plan:
    return progress.standing(_given(session, tree, plan.path, plan.text), plan.passes)


def _told(session: Session, plan: PlanProgress) -> list[str]:
    tree = open_worktree(private_of(session))
    return tampered(_trusted(session, tree, plan), restore.content(tree, plan.path, MAX_BYTES))


def _write(session: Session, plan: PlanProgress) -> None:
    tree = open_worktree(private_of(session))
    data = _trusted(session, tree, plan).text.encode()
    aside = session.folder.root / "aside" / "plan"
    _put(tree, plan.path, data, aside)


def _put(tree: Worktree, path: str, data: bytes, aside: Path) -> None:
    with contextlib.suppress(IsADirectoryError):
        restore.write(tree, path, data, aside)
        return
    restore.write(tree, path, data, aside)  # the folder in its place is gone now
