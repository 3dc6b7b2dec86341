"""What a person may ask about policies: is this one, what does it say of an action, what would it have changed."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import msgspec

from harness.domain.actions.action import Action, BadAction, from_wire
from harness.domain.calls.gate_kinds import is_gate
from harness.domain.decision import Ruling
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.policy import granted, repository
from harness.policy.decide import decide, explain
from harness.policy.granted import Case
from harness.policy.policy_file import Policy, PolicyError, parse_policy
from harness.projections.state.session_state import SessionState
from harness.supervisor.base.errors import OpError
from harness.supervisor.calls import tightened
from harness.supervisor.calls.on_record import action_of
from harness.supervisor.calls.queue import cards
from harness.supervisor.calls.queue.granting import now_utc
from harness.supervisor.fleet.session import Session
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.past import action_on_record, records
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.views.policy_views import (
    Changed,
    Explanation,
    PolicyCheck,
    PolicyChecked,
    PolicyExplained,
    PolicyTried,
    Trial,
)
from harness.workspace.git.errors import WorkspaceError

_MOST_TEXT = 1 << 20
_MOST_SHOWN = 200
_READ_S = 25.0
"""Seconds that one log may take; a client waits half a minute for each reply."""


@dataclass(slots=True)
class _Found:
    """What trying a policy has found so far; of the changes the newest."""

    looked_at: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    changed: deque[Changed] = field(default_factory=lambda: deque(maxlen=_MOST_SHOWN))


class PolicyOps:
    """The table of what is asked about policies. Nothing of it changes anything."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {"policy_check": self.check, "policy_explain": self.explain, "policy_try": self.attempt}

    async def check(self, c: Connection, m: Fields) -> PolicyChecked:
        """Whether a text is a policy, for a person's own file or as a repository's."""
        text = text_of(m, "text", _MOST_TEXT)
        try:
            found = parse_policy(text, text_of(m, "source") or "policy")
        except PolicyError as exc:
            return PolicyChecked(check=PolicyCheck(rules=0, problem=str(exc), ignored=[]))
        ignored = list(repository.tightening(text).ignored) if m.get("repository") is True else []
        return PolicyChecked(check=PolicyCheck(rules=len(found.rules), problem="", ignored=ignored))

    async def explain(self, c: Connection, m: Fields) -> PolicyExplained:
        """Why the policy in force says what it says of an open request, or of an action that is given whole."""
        asked_by = ""
        if m.get("action") is not None:
            try:
                action = from_wire(m["action"])
            except BadAction as exc:
                raise OpError("bad_request", f"this is no action as logs have them: {exc}") from exc
            session = next((one for one in self._p.fleet if one.sid == action.session), None)
        else:
            session, action, asked_by = await self._open(text_of(m, "approval_id"))
        policy = self._p.settings.policy
        verdict = decide(action, policy) if session is None else tightened.of_session(session.state, action, policy)
        why = explain(action, policy)
        if verdict != decide(action, policy):
            why.append(f"{verdict.verdict} by {verdict.rule}, whatever the policy allows")
        asked = verdict
        if asked_by and asked_by != verdict.rule:
            why.append(f"this request was asked by {asked_by}")
            asked = replace(verdict, verdict=Ruling.ASK, rule=asked_by)
            verdict = asked if is_gate(asked_by) and verdict.verdict != Ruling.DENY else verdict
        repo = await self._p.granting.repository(session) if session is not None else ""
        case = Case(action.session, repo, action.call, action, asked)
        try:
            known = (await self._p.granting.book.read()).live(now_utc())
        except OpError:
            known = []
        told = Explanation(
            title=cards.title(action),
            verdict=verdict.verdict,
            rule=verdict.rule,
            reason=verdict.reason,
            risk=verdict.risk,
            why=why,
            grants=[standing.made.grant for standing in known if granted.fits(standing.made, case)],
        )
        return PolicyExplained(explanation=told)

    async def _open(self, approval_id: str) -> tuple[Session, Action, str]:
        session = self._p.fleet.approval(approval_id, "not_found")
        asked = session.state.approvals.get(approval_id)
        known = session.track.calls.get(asked.call_id) if asked is not None else None
        try:
            action = await action_of(session, known) if known is not None else None
        except (LogError, OSError, ValueError) as exc:
            raise OpError("unreadable", f"what was asked cannot be read: {exc}") from exc
        if action is None:
            raise OpError("bad_request", "this request is not about a call, so no policy speaks of it")
        return session, action, known.judged.rule if known is not None and known.judged is not None else ""

    async def attempt(self, c: Connection, m: Fields) -> PolicyTried:
        """What another policy would have said of every call on record. Raises OpError."""
        try:
            tried = parse_policy(text_of(m, "text", _MOST_TEXT), text_of(m, "source") or "policy")
        except PolicyError as exc:
            raise OpError("bad_request", str(exc)) from exc
        found = _Found()
        unread = []
        for session in list(self._p.fleet):
            try:
                work = _Try(session.folder.log, session.folder.blobs, session.sid, session.name, session.state)
                now = self._p.settings.policy
                await session.look("reading its calls", _READ_S, partial(work.run, now, tried, found))
            except (OpError, WorkspaceError, LogError, msgspec.DecodeError, OSError):
                unread.append(session.name)
        changed = sorted(found.changed, key=lambda one: one.ts, reverse=True)
        trial = Trial(looked_at=found.looked_at, counts=dict(found.counts), changed=changed, unread=unread)
        return PolicyTried(trial=trial)


@dataclass(frozen=True, slots=True)
class _Try:
    """One session's log, to be held against two policies."""

    log: Path
    stored: Path
    sid: str
    name: str
    state: SessionState

    def run(self, now: Policy, tried: Policy, found: _Found) -> None:
        """Blocking. Raises LogError, msgspec.DecodeError."""
        for record in records(self.log):
            body = record.body
            if not isinstance(body, t.ToolJudged):
                continue
            action = action_on_record(body, self.stored)
            if action is None:
                continue
            found.looked_at += 1
            before, after = (tightened.of_session(self.state, action, policy) for policy in (now, tried))
            if before.verdict == after.verdict:
                continue
            found.counts[f"{before.verdict} → {after.verdict}"] += 1
            found.changed.append(
                Changed(
                    sid=self.sid,
                    session=self.name,
                    call_id=body.call_id,
                    title=cards.title(action),
                    ts=record.ts,
                    then=body.verdict,
                    now=before.verdict,
                    tried=after.verdict,
                    rule=after.rule,
                )
            )
