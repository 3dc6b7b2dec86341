"""What is asked of the supervisor: arguments of its ops, made from typed values; command line and screen share them.

Whatever makes an agent think again (launch, resume, continue, retry) brings the key of this environment along: the
supervisor may have been started by somebody who had none, and after a reboot nobody else remembers it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypedDict, Unpack

import msgspec

from harness.domain.cap import OF_SESSION, Cap
from harness.domain.decision import Decision
from harness.domain.settings.amounts import counted, seconds, usd_to_nano
from harness.protocol.config import api_key
from harness.protocol.config import config as configuration
from harness.protocol.config.config import Config
from harness.protocol.paths import Folders
from harness.views.launch_request import LaunchRequest
from harness.views.memory_views import MemoryView
from harness.views.session_views import ApprovalView


class WithDecision(TypedDict, total=False):
    """What goes with a decision; what is None is as if it were not given."""

    message: str | None
    edited: Mapping[str, object] | None
    value: int | None
    shown_hash: str | None


class Unusable(ValueError):
    """A typed value cannot be used; ``field`` names which, the message says why."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field


def launch(cfg: Config, wish: LaunchRequest) -> LaunchRequest:
    """The wish with what this environment adds: model, endpoint, key. Raises ConfigError on an unusable key."""
    found = api_key.credential(cfg)
    return msgspec.structs.replace(
        wish,
        model=wish.model or ("" if wish.role else cfg.model.default),
        base_url=api_key.base_url(cfg),
        credential=None if found is None else {"base_url": found.base_url, "key": found.key},
    )


def phrases(lines: Iterable[str]) -> dict[str, str]:
    """Phrases with their commands, each as ``TEXT=COMMAND``; an empty command takes a binding back. Raises
    ValueError.
    """
    pairs = [(line, *line.partition("=")) for line in lines]
    if wrong := next((line for line, text, sign, _ in pairs if not text.strip() or not sign), None):
        raise ValueError(f"takes TEXT=COMMAND such as 'Tests pass=make test', not {wrong!r}")
    return {text.strip(): command.strip() for _, text, _, command in pairs}


def caps_of(cfg: Config, given: Mapping[str, int | None]) -> dict[str, int]:
    """The caps of a new session by their names in the log: those given (None lifts one), else those configured.

    Raises Unusable.
    """
    configured: dict[str, int | None] = {cap.field: getattr(cfg.caps, cap.setting) for cap in OF_SESSION}
    caps = {**configured, **given}
    made = {name: value for name, value in caps.items() if value is not None}
    for name, value in made.items():
        try:
            counted(value)
        except ValueError as exc:
            raise Unusable(name, str(exc)) from exc
    return made


def desire(folders: Folders, sid: str, state: str, reason: str | None = None) -> dict[str, object]:
    """The arguments of ``desire``: ``state`` is running, paused or stopped. Raises ConfigError on an unusable key."""
    made: dict[str, object] = {"sid": sid, "state": state}
    if reason is not None:
        made["reason"] = reason
    return made | (_key_here(folders) if state == "running" else {})


def go_on(folders: Folders, sid: str, wish: Mapping[str, object]) -> dict[str, object]:
    """The arguments of ``continue``; ``wish`` is what `wish_of` made. Raises ConfigError on an unusable key."""
    return {"sid": sid, **wish, **_key_here(folders)}


def resolve(folders: Folders, sid: str, words: str) -> dict[str, object]:
    """The arguments of ``resolve``. Raises ConfigError on an unusable key."""
    return {"sid": sid, "text": words, **_key_here(folders)}


def memory(view: MemoryView) -> dict[str, object]:
    """The arguments that name this memory, as it was shown: what changed meanwhile is refused."""
    return {"scope": view.scope, "of": view.of, "key": view.key, "if_sha": view.newest.sha}


def say(sid: str, text: str) -> dict[str, object]:
    """The arguments of ``say``."""
    return {"sid": sid, "text": text}


def decide(
    folders: Folders,
    view: ApprovalView,
    decision: str,
    **given: Unpack[WithDecision],
) -> dict[str, object]:
    """The arguments of ``decide`` on this request as it was shown.

    Raises ConfigError on an unusable key.
    """
    made = {
        "approval_id": view.approval_id,
        "decision": decision,
        "action_hash": view.action_hash,
        **{name: item for name, item in given.items() if item is not None},
    }
    return made | (_key_here(folders) if decision == Decision.RETRY else {})


def grant(
    view: ApprovalView, *, scope: str, expires: str, count: str, first: str = "", under: str = "", typed: str = ""
) -> dict[str, object]:
    """The arguments of ``grant`` and ``grant_preview``: a rule made of this request as it was shown, from typed text.

    Raises Unusable.
    """
    try:
        lasting = seconds(expires)
    except ValueError as exc:
        raise Unusable("expires", str(exc)) from exc
    return {
        "approval_id": view.approval_id,
        "action_hash": view.action_hash,
        "scope": scope,
        "expires_s": lasting,
        "count": _whole("count", count),
        "first": _whole("first", first or "0"),
        "under": under,
        "typed": typed.strip(),
    }


def _key(cfg: Config) -> dict[str, object]:
    found = api_key.credential(cfg)
    return {} if found is None else {"credential": {"base_url": found.base_url, "key": found.key}}


def _key_here(folders: Folders) -> dict[str, object]:
    return _key(configuration.load(folders))


def wish_of(
    text: str,
    rounds: str,
    caps: Mapping[str, str],
    checks: Sequence[str],
    *,
    replace_checks: bool = False,
    fresh: bool = False,
) -> dict[str, object]:
    """What an ended session gets to go on with, from typed text.

    ``caps`` by their names in the log, as typed: ``5``, ``+5`` or ``none``; empty = as before.

    Raises Unusable.
    """
    made: dict[str, object] = {
        "text": text.strip(),
        "checks": [c.strip() for c in checks if c.strip()],
        "replace_checks": replace_checks,
    }
    if fresh:
        made["fresh"] = True
    if rounds.strip():
        made["rounds"] = _whole("rounds", rounds)
        if not made["rounds"]:
            raise Unusable("rounds", "at least one round is needed")
    if replace_checks and not made["checks"]:
        raise Unusable("checks", "give the checks that are to hold instead")
    new: dict[str, int | None] = {}
    more: dict[str, int] = {}
    for name, typed in caps.items():
        value = typed.strip()
        if value.lower() == "none":
            new[name] = None
        elif value.startswith("+"):
            more[name] = _amount(name, value[1:])
        elif value:
            new[name] = _amount(name, value)
    return made | ({"caps": new} if new else {}) | ({"more": more} if more else {})


def _amount(name: str, text: str) -> int:
    cap = Cap.of_field(name)
    try:
        return _whole(name, text) if cap is None else amount(cap, text)
    except ValueError as exc:
        raise Unusable(name, str(exc)) from exc


def amount(cap: Cap, text: str) -> int:
    """So much of what a cap counts, from typed text. Raises ValueError."""
    typed = text.strip()
    if cap.in_usd:
        return usd_to_nano(typed.removeprefix("$"))
    return seconds(typed) if cap.in_seconds and not typed.isdigit() else counted(_whole(cap.field, typed))


_MOST_DIGITS = 40
"""Of a number that is typed."""


def _whole(field: str, text: str) -> int:
    clean = text.replace(",", "").replace("_", "").strip()
    if not clean.isascii() or not clean.isdigit() or len(clean) > _MOST_DIGITS:
        raise Unusable(field, f"{text.strip()!r} is not a whole number")
    return int(clean)
