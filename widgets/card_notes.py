"""What a request's notes say, in lines: what a push brings, what goes, what it is for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.events.action import PushAction
from harness.events.card_facts import LAST_SEEN, CardNotes, CommitNote, FileCount, Outgoing, RunFile
from harness.events.untrusted import to_display
from harness.events.words import counted
from widgets.card_action import numbered
from widgets.card_line import CardLine
from widgets.cells import clip

_SHA = 10
ABSENT = "absent"
_GOAL = 60


def effects_of(notes: CardNotes, root: str = "") -> list[CardLine]:
    """What will be there, and what will be gone, that the action itself does not say. ``root``: the worktree, below
    which names stand without it.
    """
    out = [line for one in notes.outgoing for line in _outgoing(one)]
    if notes.going or notes.going_unknown:
        out += [CardLine("GOES AWAY", "label"), *_going(notes, root)]
    return out


def _going(notes: CardNotes, root: str) -> Iterator[CardLine]:
    for gone in notes.going:
        kept = to_display(gone.kept or gone.lacks or "nothing is known to have it besides")
        name = gone.path.removeprefix(f"{root}/") if root else gone.path
        text = f"  {to_display(name)}  {to_display(gone.what)}, {kept}"
        yield CardLine(text, "text" if gone.kept else "warn")
        yield from (CardLine(f"      {to_display(name)}", "dim") for name in gone.files)
    if notes.going_more:
        yield CardLine(f"  and {counted(notes.going_more, 'other thing')}, not listed", "warn")
    for word in notes.going_unknown:
        yield CardLine(f"  {to_display(word)}  known only when it runs", "warn")
    if notes.going_unknown_more:
        yield CardLine(f"  and {counted(notes.going_unknown_more, 'more word')} of that kind", "warn")


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


def runs_of(notes: CardNotes) -> list[CardLine]:
    """The files of its own worktree that run, line by line."""
    return [line for one in notes.runs for line in _file_that_runs(one)]


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


def _outgoing(one: Outgoing) -> list[CardLine]:
    known = not one.problem
    branch = to_display(one.ref.removeprefix("refs/heads/"))
    kind = "NEW branch" if one.ref.startswith("refs/heads/") else "NEW ref"
    where = f"{kind} {branch}" if one.new else f"branch {branch}, which is there"
    count = counted(len(one.commits) + one.more, "commit") if known or one.commits else "commits"
    seen = f" (against {to_display(one.against)})" if one.against and not one.against.endswith(LAST_SEEN) else ""
    out = [CardLine(f"BRINGS {count} to {where}{seen}", "label")]
    out += _listed(one.commits, one.more, "text")
    if known and not one.commits:
        out.append(CardLine("  nothing that is not there already", "text"))
    if one.problem:
        out.append(CardLine(f"  not compared: {to_display(one.problem)}", "warn"))
    if one.lost:
        lost = counted(len(one.lost) + one.lost_more, "commit")
        what = f"TAKES AWAY {lost} that {branch} has there now"
        if one.refused:
            what = f"WILL BE REFUSED: {branch} has {lost} there that this lacks, and nothing forces it"
        out.append(CardLine(what, "warn"))
        out += _listed(one.lost, one.lost_more, "warn")
    return out


def _listed(commits: Sequence[CommitNote], more: int, role: str) -> list[CardLine]:
    out = []
    for commit in commits:
        out.append(CardLine(f"  {to_display(commit.sha[:_SHA])}  {to_display(commit.subject)}", role))
        out += [CardLine(f"      {_file(file)}", "dim") for file in commit.files]
        if commit.more:
            out.append(CardLine(f"      and {counted(commit.more, 'more file')}", "dim"))
    if more:
        out.append(CardLine(f"  and {counted(more, 'older commit')}, not listed here", "warn"))
    return out


def _file(file: FileCount) -> str:
    counts = "no text" if file.added < 0 else f"+{file.added} -{file.removed}"
    return f"{to_display(file.path)}  {counts}"
