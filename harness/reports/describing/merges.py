"""One line for each record of: merges, and work that is sent to a remote."""

from __future__ import annotations

from harness.domain.outcomes import WORDS
from harness.domain.text.formatting import counted
from harness.events import types as t
from harness.events.work import merge_events as m
from harness.events.work import pull_events as p
from harness.projections.state.merging import named
from harness.reports.describing.line import Describers, Line

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
    count = counted(b.commits, "commit")
    checks = f", after {counted(b.checks, 'check')} on the result" if b.checks else ", unchecked"
    decides = f"; it changes files that decide: {named(b.decides)}" if b.decides else ""
    how = _HOW.get(b.how, b.how).replace("{into}", b.into)
    return Line("merge", f"{count} of {b.head[:12]}: {how}{checks}{decides}", "warn" if b.decides else "info")


@_on(t.MergeChecked)
def _checked(b: t.MergeChecked) -> Line:
    said = f"`{b.command}` {WORDS[b.outcome]} on the result" + (f": {b.why}" if b.why else "")
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


@_on(t.PullStarted)
def _pull_started(b: t.PullStarted) -> Line:
    return Line("pull", f"{b.head[:12]} is pushed to {b.branch} at {b.remote} ({b.url})", "info")


@_on(t.PullEnded)
def _pull_ended(b: t.PullEnded) -> Line:
    if b.outcome == p.PUSHED:
        return Line("pull", f"pushed {b.head[:12]} to {b.branch} at {b.remote}", "good")
    return Line("pull", f"not pushed to {b.branch} at {b.remote}, {b.outcome}: {b.why}", "bad")


@_on(t.PullOpened)
def _pull_opened(b: t.PullOpened) -> Line:
    return Line("pull", f"{b.program} opened a request for {b.branch}: {b.address}", "good")
