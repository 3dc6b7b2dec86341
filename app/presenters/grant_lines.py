"""The rules that let requests through, as a person reads them: a line each, and all of one. Pure; texts are raw."""

from __future__ import annotations

from collections.abc import Mapping

from harness.domain.text import formatting
from harness.events.body import By
from harness.views.grant_views import GrantView

STANDS = "stands"
_HASH = 12


def state(rule: GrantView) -> str:
    """Whether it covers anything more."""
    return rule.ended or STANDS


def used(rule: GrantView) -> str:
    """How many of its calls it let run."""
    return f"{len(rule.uses)}/{rule.count}"


def whose(rule: GrantView, names: Mapping[str, str]) -> str:
    """Whose requests it covers. ``names`` are those of the sessions by id."""
    if rule.scope == "session":
        return names.get(rule.of, rule.of)
    if rule.scope == "fleet":
        return "the fleet"
    return formatting.repository(rule.of)


def last_use(rule: GrantView, now: float) -> str:
    """How long ago it let a call run."""
    return f"{formatting.age(rule.last_use, now)} ago" if rule.last_use else "never"


def line(rule: GrantView, names: Mapping[str, str], now: float) -> str:
    """For whom and until when, and what it covers, in one line: a long pattern is cut before the rest."""
    then = formatting.parse_ts(rule.expires)
    ends = rule.ended or (f"ends in {formatting.stretch(then - now)}" if then is not None else "")
    critical = "critical" if rule.typed else ""
    return f"{', '.join(filter(None, (whose(rule, names), ends, critical)))}: {'; '.join(rule.words)}"


def facts(rule: GrantView, names: Mapping[str, str], now: float) -> list[tuple[str, str]]:
    """All of one rule as (label, text), every use of it included, the newest first."""
    gone = rule.revoked
    found = [
        ("rule", f"{rule.grant}, {state(rule)}" + (" (critical: its session's name was typed)" if rule.typed else "")),
        *_each("covers", rule.words),
        ("asked by", rule.asked_by),
        ("for", _scope(rule, names)),
        ("ends", f"{formatting.local(rule.expires)}, or after {formatting.counted(rule.count, 'call')}"),
        (
            "made",
            f"{formatting.local(rule.ts)} by {_who(rule.by)}, of request {rule.approval_id}"
            f" of {_name(rule.sid, names)}",
        ),
        ("request", rule.title),
    ]
    if gone is not None:
        why = f": {gone.why}" if gone.why else ""
        found.append(("revoked", f"{formatting.local(gone.ts)} by {_who(gone.by)}{why}"))
    found.append(("used", f"{len(rule.uses)} of {formatting.counted(rule.count, 'call')}, last {last_use(rule, now)}"))
    calls = sorted(rule.uses, key=lambda use: use.ts, reverse=True)
    told = [
        f"{formatting.local(u.ts)} {_name(u.sid, names)}, call {u.call_id}, action {u.action_hash[:_HASH]}"
        for u in calls
    ]
    return [*found, *_each("each use", told)]


def _each(label: str, texts: list[str]) -> list[tuple[str, str]]:
    return [(label if number == 0 else "", text) for number, text in enumerate(texts)]


def _scope(rule: GrantView, names: Mapping[str, str]) -> str:
    match rule.scope:
        case "session":
            return f"session {whose(rule, names)}"
        case "repository":
            return f"every session on the repository {whose(rule, names)} ({rule.of})"
    return "every session of the fleet"


def _name(sid: str, names: Mapping[str, str]) -> str:
    return names.get(sid, sid)


def _who(by: By) -> str:
    return formatting.who(by.client, "nobody known")
