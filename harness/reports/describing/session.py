"""One line for each record of: a session, its brain and its keeper, from launch to end."""

from __future__ import annotations

from harness.domain import problems
from harness.domain.outcomes import JUDGED, PROOFS, VERIFIED
from harness.domain.states import Desired, ParkedFor
from harness.domain.text.formatting import by_whom, local
from harness.domain.text.line import first, size
from harness.events import types as t
from harness.reports.describing.line import Describers, Line, Tone
from harness.reports.describing.money import caps_words

_ASKED = {Desired.PAUSED: "pause", Desired.RUNNING: "resume", Desired.STOPPED: "stop"}
DESCRIBERS = Describers()
_on = DESCRIBERS.on


@_on(t.SessionIntent)
def _intent(b: t.SessionIntent) -> Line:
    roles = ", ".join(f"{one.name} {one.version[:12]}" for one in b.roles)
    cast = f" · roles: {roles}" if roles else ""
    return Line("launch", f"{b.name}: {first(b.goal)} · {b.model} · caps: {caps_words(b.caps)}{cast}", "info")


@_on(t.SessionCreated)
def _created(b: t.SessionCreated) -> Line:
    dirty = f"; {b.dirty} uncommitted changes in the repository were left out" if b.dirty else ""
    return Line(
        "worktree", f"branch {b.branch} from {b.base[:12]} in {b.worktree}{dirty}", "warn" if b.dirty else "info"
    )


@_on(t.SessionDesired)
def _desired(b: t.SessionDesired) -> Line:
    asked = next((word for state, word in _ASKED.items() if state == b.state), b.state)
    return Line(asked, f"asked for{by_whom(b.by.client)}" + (f": {first(b.reason)}" if b.reason else ""), "info")


@_on(t.SessionParked)
def _parked(b: t.SessionParked) -> Line:
    until = f" until {local(b.until)}" if b.until else ""
    return Line(
        "waits",
        f"{problems.parked(b.why).headline}{until}" + (f": {first(b.detail)}" if b.detail else ""),
        "bad" if b.why in (ParkedFor.AUTH, ParkedFor.ERROR) else "warn",
    )


@_on(t.SessionEnded)
def _ended(b: t.SessionEnded) -> Line:
    proof = f", {PROOFS[b.proof]}" if b.proof else ""
    tone: Tone = "bad" if b.outcome == "failed" else "warn"
    if b.proof in (JUDGED, VERIFIED):
        tone = "good"
    text = first(b.reason or b.summary)
    return Line(b.outcome, f"{b.outcome}{proof}" + (f": {text}" if text else ""), tone)


@_on(t.SessionContinued)
def _continued(b: t.SessionContinued) -> Line:
    parts = [by_whom(b.by.client).strip()] if b.by.client else []
    parts += [f"{b.rounds} rounds"] if b.rounds else []
    parts += [f"caps: {caps_words(b.caps)}"] if b.caps is not None else []
    parts += [f"checks: {first('; '.join(b.checks)) or 'none'}"] if b.checks is not None else []
    return Line("goes on", "continued" + (f" {' · '.join(parts)}" if parts else ""), "info")


@_on(t.LeaseGranted)
def _lease(b: t.LeaseGranted) -> Line:
    return Line("process", f"{problems.part('brain')} {b.gen} started" + (f", pid {b.pid}" if b.pid else ""), "dim")


@_on(t.LeaseEnded)
def _lease_ended(b: t.LeaseEnded) -> Line:
    code = f", exit code {b.exit_code}" if b.exit_code is not None else ""
    return Line(
        "process", f"{problems.part('brain')} {b.gen} left: {first(b.reason)}{code}", "warn" if b.exit_code else "dim"
    )


@_on(t.KeeperStarted)
def _keeper(b: t.KeeperStarted) -> Line:
    return Line(
        "process",
        f"{problems.part('keeper')} started, pid {b.pid}" + (", after a recovery" if b.recovered else ""),
        "warn" if b.recovered else "dim",
    )


@_on(t.LogRecovered)
def _recovered(b: t.LogRecovered) -> Line:
    return Line("recovered", f"an unfinished write of {size(b.bytes)} at byte {b.at} was cut; kept in {b.file}", "warn")


@_on(t.Quarantined)
def _quarantined(b: t.Quarantined) -> Line:
    return Line(
        "stopped", f"{problems.part(b.part)} failed {b.restarts} times, waiting for you: {first(b.reason)}", "bad"
    )


@_on(t.TimePassed)
def _time_passed(b: t.TimePassed) -> Line:
    return Line("time", f"{first(b.why)}: {abs(b.seconds):.0f} s count against no cap on wall time", "dim")


@_on(t.HarnessNote)
def _note(b: t.HarnessNote) -> Line:
    tones: dict[str, Tone] = {"error": "bad", "warning": "warn"}
    return Line(
        "note", (f"{problems.part(b.component)}: " if b.component else "") + first(b.text), tones.get(b.level, "dim")
    )


@_on(t.AlarmRaised)
def _alarm(b: t.AlarmRaised) -> Line:
    return Line("alarm", first(b.words), "bad")


@_on(t.AlarmCleared)
def _alarm_over(b: t.AlarmCleared) -> Line:
    return Line("alarm", f"{b.alarm}: {first(b.why) or 'over'}", "dim")


@_on(t.AlarmSnoozed)
def _alarm_snoozed(b: t.AlarmSnoozed) -> Line:
    return Line("alarm", f"{', '.join(b.alarms)}: no reminder before {local(b.until)}{by_whom(b.by.client)}", "info")
