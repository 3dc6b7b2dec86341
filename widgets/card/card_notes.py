"""What a request's notes say, in lines: what a push brings, what goes, what it is for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.domain.actions.access import Access
from harness.domain.actions.action import Action, PushAction, command_of
from harness.domain.calls.card_facts import LAST_SEEN, CardNotes, CommitNote, FileCount, Going, Outgoing, RunFile
from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import counted
from widgets.base.cells import clip
from widgets.card.card_action import numbered
from widgets.card.card_line import CardLine
from widgets.card.truncate import Entry, Listing, listing

_SHA = 10
ABSENT = "absent"
_GOAL = 60
_ROOM = 9
"""Rows of the commits of a push, or of what goes, that are read first."""
_LEAST = 2


def effects_of(notes: CardNotes, root: str = "") -> Listing:
    """What will be there, and what will be gone, that the action itself does not say. ``root``: the worktree, below
    which names stand without it.
    """
    alike = _alike(notes.outgoing)
    parts = [_outgoing(one, refs, max(_LEAST, _ROOM // len(alike))) for one, refs in alike]
    if notes.going or notes.going_unknown:
        parts.append(_going(notes, root))
    return Listing([line for part in parts for line in part.above], [line for part in parts for line in part.rest])


def _alike(outgoing: Sequence[Outgoing]) -> list[tuple[Outgoing, list[str]]]:
    """Refs to which the very same comes, together."""
    found: list[tuple[Outgoing, list[str]]] = []
    for one in outgoing:
        same = next((refs for known, refs in found if msgspec.structs.replace(one, ref=known.ref) == known), None)
        if same is None:
            found.append((one, [one.ref]))
        else:
            same.append(one.ref)
    return found


def _going(notes: CardNotes, root: str) -> Listing:
    """What nothing else has first."""
    things = listing([_thing(gone, root) for gone in sorted(notes.going, key=lambda gone: bool(gone.kept))], _ROOM)
    unknown = []
    if notes.going_more:
        unknown.append(CardLine(f"  and {counted(notes.going_more, 'other thing')}, not listed", "warn"))
    unknown += [CardLine(f"  {to_display(word)}  known only when it runs", "warn") for word in notes.going_unknown]
    if notes.going_unknown_more:
        unknown.append(CardLine(f"  and {counted(notes.going_unknown_more, 'more word')} of that kind", "warn"))
    words = listing([Entry(line) for line in unknown], _ROOM)
    label = CardLine("GOES AWAY", "label")
    return Listing([label, *things.above, *words.above], _again(label, [*things.rest, *words.rest]))


def _thing(gone: Going, root: str) -> Entry:
    kept = to_display(gone.kept or gone.lacks or "nothing is known to have it besides")
    name = gone.path.removeprefix(f"{root}/") if root else gone.path
    head = CardLine(f"  {to_display(name)}  {to_display(gone.what)}, {kept}", "text" if gone.kept else "warn")
    return Entry(head, tuple(CardLine(f"      {to_display(name)}", "dim") for name in gone.files))


def _again(label: CardLine, lines: Sequence[CardLine]) -> list[CardLine]:
    return [label, *lines] if lines else []


def told(notes: CardNotes, action: PushAction) -> frozenset[str]:
    """The refs of a push of which these notes say all that its action says: that it is new, or what comes in place of
    what is there.
    """
    known = {one.ref: one for one in notes.outgoing if one.commits and not one.problem}
    return frozenset(
        spec.ref
        for spec in action.to.refspecs
        if spec.ref in known
        and known[spec.ref].commits[0].sha == spec.sha
        and known[spec.ref].new == (spec.old == ABSENT)
    )


def counted_from(notes: CardNotes) -> list[CardLine]:
    """What the commits of a push were counted against, where that can only be older than the remote."""
    return [
        CardLine(f"  what comes to {to_display(one.ref)} was compared with {to_display(one.against)}", "dim")
        for one in notes.outgoing
        if one.against.endswith(LAST_SEEN)
    ]


def runs_of(action: Action, notes: CardNotes | None) -> list[CardLine]:
    """What of its own worktree runs outside the sandbox: the files that are known to, line by line, and any other one
    unless it is known that no other does.
    """
    files = notes.runs if notes is not None else []
    out: list[CardLine] = []
    if action.access == Access.UNSANDBOXED and command_of(action) and not (notes is not None and notes.runs_only):
        besides = ", not only what follows" if files else ""
        out.append(CardLine(f"  It may run any file of its worktree{besides}.", "warn"))
    return [*out, *(line for one in files for line in _file_that_runs(one))]


def _file_that_runs(one: RunFile) -> list[CardLine]:
    count = "" if one.problem else f", {counted(len(one.lines) + one.more, 'line')}"
    since = f", shown from line {one.first} on, where what runs is" if one.first > 1 else ""
    title = CardLine(f"WHICH RUNS  {to_display(one.path)} of its worktree{count}{since}", "label")
    out = [title, *numbered(one.lines, one.first)]
    if one.more:
        out.append(CardLine(f"  and {counted(one.more, 'more line')}, not shown", "warn"))
    if one.problem:
        out.append(CardLine(f"  not shown: {to_display(one.problem)}", "warn"))
    return out


def purpose(notes: CardNotes) -> list[CardLine]:
    """What the session is to reach, and where it stands."""
    out = []
    if notes.goal:
        # the person's own words, of which the session's screen has all: enough to know them again, in one row of 80
        out.append(CardLine(f"Goal     “{clip(to_display(notes.goal), _GOAL)}”", "dim", one_row=True))
    checks = f"Checks   {notes.passed} of {notes.checks} pass" if notes.checks else ""
    step = f"Step     {to_display(notes.step)}" if notes.step else ""
    if checks or step:
        failing = notes.passed < notes.checks
        out.append(CardLine("   ".join(filter(None, (checks, step))), "warn" if failing else "dim"))
    return out


def _outgoing(one: Outgoing, refs: Sequence[str], room: int) -> Listing:
    known = not one.problem
    branches = all(ref.startswith("refs/heads/") for ref in refs)
    names = ", ".join(to_display(ref.removeprefix("refs/heads/")) for ref in refs)
    kind = "branch" if branches else "ref"
    if len(refs) > 1:
        kind += "es" if branches else "s"
    there = "which is there" if len(refs) == 1 else "which are there"
    where = f"NEW {kind} {names}" if one.new else f"{kind} {names}, {there}"
    count = counted(len(one.commits) + one.more, "commit") if known or one.commits else "commits"
    seen = f" (against {to_display(one.against)})" if one.against and not one.against.endswith(LAST_SEEN) else ""
    label = CardLine(f"BRINGS {count} to {where}{seen}", "label")
    brings = _listed(one.commits, one.more, "text", room // 2 if one.lost else room)
    out = [label, *brings.above]
    if known and not one.commits:
        out.append(CardLine("  nothing that is not there already", "text"))
    if one.problem:
        out.append(CardLine(f"  not compared: {to_display(one.problem)}", "warn"))
    rest = _again(label, brings.rest)
    if one.lost:
        lost = counted(len(one.lost) + one.lost_more, "commit")
        have = "has" if len(refs) == 1 else "have"
        what = f"TAKES AWAY {lost} that {names} {have} there now"
        if one.refused:
            what = f"WILL BE REFUSED: {names} {have} {lost} there that this lacks, and nothing forces it"
        goes = _listed(one.lost, one.lost_more, "warn", room // 2)
        out += [CardLine(what, "warn"), *goes.above]
        rest += _again(CardLine(what, "warn"), goes.rest)
    return Listing(out, rest)


def _listed(commits: Sequence[CommitNote], more: int, role: str, room: int) -> Listing:
    found = listing([_commit(commit, role) for commit in commits], room)
    if more:
        found.above.append(CardLine(f"  and {counted(more, 'older commit')}, not listed here", "warn"))
    return found


def _commit(commit: CommitNote, role: str) -> Entry:
    title = f"  {to_display(commit.sha[:_SHA])}  {to_display(commit.subject)}"
    files = [CardLine(f"      {_file(file)}", "dim") for file in commit.files]
    if commit.more:
        files.append(CardLine(f"      and {counted(commit.more, 'more file')}", "dim"))
    many = counted(len(commit.files) + commit.more, "file")
    return Entry(CardLine(title, role), tuple(files), CardLine(f"{title}  ({many})", role) if files else None)


def _file(file: FileCount) -> str:
    counts = "no text" if file.added < 0 else f"+{file.added} -{file.removed}"
    return f"{to_display(file.path)}  {counts}"
