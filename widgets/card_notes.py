"""What a request's notes say, in lines: what a push brings, what goes, what it is for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from harness.events.card_facts import CardNotes, CommitNote, FileCount, Outgoing
from harness.events.untrusted import to_display
from harness.events.words import counted
from widgets.card_line import CardLine
from widgets.cells import clip

_SHA = 10
_GOAL = 60


def effects_of(notes: CardNotes) -> list[CardLine]:
    """What will be there, and what will be gone, that the action itself does not say."""
    out = [line for one in notes.outgoing for line in _outgoing(one)]
    if notes.going:
        out.append(CardLine("GOES AWAY", "label"))
        for gone in notes.going:
            kept = to_display(gone.kept) if gone.kept else "nothing is known to have it besides"
            text = f"  {to_display(gone.path)}  {to_display(gone.what)}, {kept}"
            out.append(CardLine(text, "text" if gone.kept else "warn"))
        if notes.going_more:
            out.append(CardLine(f"  and {counted(notes.going_more, 'other thing')}, not looked at", "warn"))
    return out


def purpose(notes: CardNotes) -> list[CardLine]:
    """What the session is to reach, and where it stands."""
    out = []
    if notes.goal:
        # the person's own words, of which the session's screen has all: enough to know them again, in one row of 80
        out.append(CardLine(f"Goal     “{clip(to_display(notes.goal), _GOAL)}”", "dim"))
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
    seen = f" (against {to_display(one.against)})" if one.against else ""
    out = [CardLine(f"BRINGS {count} to {where}{seen}", "label")]
    out += _listed(one.commits, one.more, "text")
    if known and not one.commits:
        out.append(CardLine("  nothing that is not there already", "text"))
    if one.problem:
        out.append(CardLine(f"  not compared: {to_display(one.problem)}", "warn"))
    if one.lost:
        lost = counted(len(one.lost) + one.lost_more, "commit")
        out.append(CardLine(f"TAKES AWAY {lost} that {branch} has there now", "warn"))
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
