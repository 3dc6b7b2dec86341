"""One line for each record of: merges."""

from __future__ import annotations

from harness.events import merge_events as m
from harness.events import types as t
from harness.events.describing.line import Describers, Line
from harness.events.merging import named

DESCRIBERS = Describers()
_on = DESCRIBERS.on
_HOW = {
    m.FAST_FORWARD: "{into} moves forward to it",
    m.MERGE: "a merge into {into}",
    m.SQUASH: "one commit on {into}",
    m.REBASE: "its commits anew on {into}",
}


@_on(t.MergeStarted)
def _started(b: t.MergeStarted) -> Line:
    count = f"{b.commits} commit{'s' if b.commits != 1 else ''}"
    checks = f", after {b.checks} check{'s' if b.checks != 1 else ''} on the result" if b.checks else ", unchecked"
    decides = f"; it changes files that decide: {named(b.decides)}" if b.decides else ""
    how = _HOW.get(b.how, b.how).replace("{into}", b.into)
    return Line("merge", f"{count} of {b.head[:12]}: {how}{checks}{decides}", "warn" if b.decides else "info")


@_on(t.MergeChecked)
def _checked(b: t.MergeChecked) -> Line:
    said = f"`{b.command}` {'passes' if b.passed else 'fails'} on the result" + (f": {b.why}" if b.why else "")
    return Line("merge", said, "good" if b.passed else "bad")


@_on(t.MergeEnded)
def _ended(b: t.MergeEnded) -> Line:
    if b.outcome == m.MERGED:
        return Line("merge", f"merged into {b.into}, now at {b.commit[:12]}" + (f" ({b.why})" if b.why else ""), "good")
    why = f"conflicts in {named(b.conflicts)}" if b.outcome == m.CONFLICTS else b.why
    return Line("merge", f"not merged into {b.into}, {b.outcome}; nothing was moved: {why}", "bad")


@_on(t.MergeHandedBack)
def _handed_back(b: t.MergeHandedBack) -> Line:
    count = f", with {len(b.files)} files that decide" if b.files else ""
    return Line("merge", f"the agent is to bring {b.into} at {b.onto[:12]} into its work{count}", "info")
