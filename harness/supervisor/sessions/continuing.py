"""Taking an ended session up again: what may be given, what follows from it, and the one batch of records that says
so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from harness.domain.calls.approval_kind import RESUMED
from harness.domain.cap import Cap
from harness.domain.decision import Decision
from harness.domain.states import Desired, State
from harness.events import types as t
from harness.projections.state.session_state import SessionState
from harness.supervisor.base.errors import OpError
from harness.supervisor.calls.call_caps import wall_used
from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session
from harness.supervisor.sessions.begin.launch import Launcher
from harness.supervisor.sessions.begin.launch_request import MAX_CHECKS
from harness.supervisor.sessions.conductor import Conductor
from harness.supervisor.sessions.keepers import Keepers
from harness.supervisor.sessions.taking import at_rest
from harness.tools import registry, validation
from harness.workspace.git.errors import DamagedWorktree, WorkspaceError
from harness.workspace.tree import worktrees

MAX_TEXT = 256 * 1024
MAX_ROUNDS = 1000
_PUT_AWAY_S = 20.0
"""Seconds for an end that is being carried out."""
_LOOK_S = 10.0
"""Seconds for a look at the worktree."""

STOPPED = (
    "The person stopped this session and now lets it go on. Look at the worktree again, then go on towards the goal."
)
MORE_MONEY = "The person raised the budget: your tools are back. Go on towards the goal from where you stopped."
UNDONE = "Since your last reply the person undid some of your work in the worktree; look at it again before you go on."


class ContinueRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of ``continue``.

    ``caps`` are new limits (None lifts one), ``more`` what is added to those in force; units as in `Caps`. ``fresh``:
    with a context that begins anew.
    """

    text: str = ""
    rounds: int = 0
    caps: dict[str, int | None] = {}
    more: dict[str, int] = {}
    checks: list[str] = []
    replace_checks: bool = False
    fresh: bool = False


def parse(arguments: Mapping[str, object]) -> ContinueRequest:
    """Raises OpError: ``bad_request`` naming the field, ``bad_check``, ``bad_caps``."""
    try:
        wish = msgspec.convert(
            {k: v for k, v in arguments.items() if k in ContinueRequest.__struct_fields__}, ContinueRequest
        )
    except msgspec.ValidationError as exc:
        raise OpError("bad_request", f"continue: {exc}") from exc
    if len(wish.text) > MAX_TEXT:
        raise OpError(
            "bad_request",
            f"the message is longer than {MAX_TEXT // 1024} Ki characters",
            "put the details into a file and name it",
        )
    if not 0 <= wish.rounds <= MAX_ROUNDS:
        raise OpError("bad_request", f"rounds must be a number from 1 to {MAX_ROUNDS}")
    for command in wish.checks:
        if problem := validation.validate(registry.CHECK, {"command": command}):
            raise OpError("bad_check", problem)
    if strange := sorted({*wish.caps, *wish.more} - set(t.Caps.__struct_fields__)):
        raise OpError("bad_caps", f"there is no cap {strange[0]!r}", f"known: {', '.join(t.Caps.__struct_fields__)}")
    if any(v is not None and v < 0 for v in (*wish.caps.values(), *wish.more.values())):
        raise OpError("bad_caps", "a cap must not be negative")
    return wish


def records(sid: str, s: SessionState, wish: ContinueRequest, used: t.Caps, by: t.By) -> list[t.Body]:
    """What taking session ``sid`` up again puts on record; ``used`` is what counts against its caps.

    Pure. Raises OpError.
    """
    name = s.name
    text = wish.text.strip()
    if s.ended is None and wish.fresh and s.desired != Desired.STOPPED and not _more_than_words(wish):
        return _anew(s, text, by)
    if s.ended is None:
        raise OpError("not_ended", f"{name} has not ended", _instead(sid, s))
    checks = list(dict.fromkeys([*(() if wish.replace_checks else s.checks), *wish.checks]))
    if len(checks) > MAX_CHECKS:
        raise OpError("bad_check", f"more than {MAX_CHECKS} checks")
    caps = _caps(s.caps, wish, used)
    told = _told(s, text)
    passing = s.ended.verified or s.ended.still
    rerun = bool(checks) and not passing
    more = text or told or rerun or wish.fresh
    if not (more or s.ended.outcome == State.FAILED or set(checks) != set(s.checks)):
        why = f"its checks pass: {s.ended.reason}" if passing else "it has no check that could fail"
        raise OpError(
            "nothing",
            f"{name} is done and there is nothing to continue with ({why})",
            "give words for the agent, or another check",
        )
    going_on = t.SessionContinued(
        rounds=wish.rounds,
        caps=caps if caps != s.caps else None,
        checks=checks if checks != list(s.checks) or wish.replace_checks else None,
        by=by,
    )
    return [
        going_on,
        *([t.ContextWanted(fresh=True, by=by)] if wish.fresh else []),
        *(t.UserMessage(text=line, origin="harness", by=by) for line in told),
        *([t.UserMessage(text=text, by=by)] if text else []),
    ]


def _more_than_words(wish: ContinueRequest) -> bool:
    """True when it changes what only an end can change."""
    return bool(wish.rounds or wish.caps or wish.more or wish.checks)


def _anew(s: SessionState, text: str, by: t.By) -> list[t.Body]:
    """A session that has not ended begins anew at its next turn; what resuming answers is answered."""
    why = "you let it begin anew"
    answered = [a.approval_id for a in s.approvals.values() if a.kind in RESUMED]
    return [
        t.ContextWanted(fresh=True, by=by),
        *([t.UserMessage(text=text, by=by)] if text else []),
        t.SessionDesired(state=Desired.RUNNING, reason=Decision.FRESH, by=by),
        *(t.ApprovalWithdrawn(approval_id=a, why=why) for a in answered),
    ]


def _told(s: SessionState, text: str) -> list[str]:
    """What the harness says itself to an agent that goes on: what it could not know, and what to do where nobody says
    it.
    """
    assert s.ended is not None
    told = [UNDONE] if s.undone_since else []
    if not text and s.finish_up is not None:
        told.append(MORE_MONEY)
    elif not text and s.ended.outcome == State.STOPPED:
        told.append(STOPPED)
    return told


def _instead(sid: str, s: SessionState) -> str:
    """The way that exists for a session that has not ended."""
    if s.desired == Desired.STOPPED:
        return "it is being stopped; try again in a moment"
    if s.approvals:
        return f"it waits for you; see what it asks: watchfloor approvals {next(iter(s.approvals))}"
    if s.desired == Desired.PAUSED:
        return f"it is paused; let it go on: watchfloor resume {sid}"
    return f"tell it what you want: watchfloor say {sid} TEXT"


def _caps(now: t.Caps, wish: ContinueRequest, used: t.Caps) -> t.Caps:
    """The caps from now on.

    Raises OpError ``bad_caps`` for one that is used up already, and for more of what has no limit.
    """
    values: dict[str, int | None] = dict(wish.caps)
    for name, more in wish.more.items():
        limit = getattr(now, name)
        if limit is None:
            raise OpError(
                "bad_caps",
                f"there is no cap {_option(name)} to add to",
                "it has no limit of that kind; leave it out, or set one",
            )
        values[name] = limit + more
    for name, value in values.items():
        spent = getattr(used, name) or 0
        if value is not None and value <= spent:
            cap = Cap.of_field(name)
            shown = f"{spent:,} are used" if cap is None or not cap.in_usd else f"{cap.amount(spent)} are spent"
            raise OpError("bad_caps", f"the cap {_option(name)} is used up already: {shown}", "give more than that")
    return msgspec.structs.replace(now, **values)


def _option(field: str) -> str:
    """What a person calls the cap in this field."""
    cap = Cap.of_field(field)
    return cap.option if cap is not None else field


def used_of(s: SessionState, spent_nano: int | None, now: datetime) -> t.Caps:
    """What counts against each cap of a session."""
    return t.Caps(
        usd_nano=s.spent_nano if spent_nano is None else spent_nano,
        tokens=s.usage.total,
        wall_s=wall_used(s, now),
        tool_calls=s.tool_calls,
    )


class Continuing:
    """Answers the op. A session that has ended gets its keeper back; its worker then does the rest."""

    def __init__(self, fleet: Fleet, keepers: Keepers, conductor: Conductor, launcher: Launcher) -> None:
        self._fleet = fleet
        self._keepers = keepers
        self._conductor = conductor
        self._launcher = launcher

    async def run(
        self, session: Session, wish: ContinueRequest, spent_nano: int | None, by: t.By, first: Sequence[t.Body] = ()
    ) -> None:
        """Durable when it returns, in one batch with the records ``first``.

        Raises OpError: ``not_ended``, ``nothing``, ``busy``, ``no_worktree``, ``bad_caps``, ``bad_check``,
        ``stopping``.
        """
        async with self._launcher.under_way():
            try:
                await self._locked(session, wish, spent_nano, by, first)
            finally:
                if session.state.terminal and session.link is not None:
                    self._conductor.start(session)  # it got its keeper for nothing: that leaves again
            self._conductor.release(session)

    async def _locked(
        self, session: Session, wish: ContinueRequest, spent_nano: int | None, by: t.By, first: Sequence[t.Body]
    ) -> None:
        if not session.state.terminal and session.state.desired != Desired.STOPPED:
            bodies = records(session.sid, session.state, wish, t.Caps(), by)  # says why not, or begins anew
            async with session.lock:
                await session.append(*first, *bodies)
            return
        while True:
            if not await self._fleet.until(lambda: session.work.task is None, _PUT_AWAY_S):
                raise OpError("busy", at_rest.not_yet(session), "try again in a moment")
            async with session.lock:
                if session.work.task is not None:
                    continue  # an undo has just given it work again
                if session.removing:
                    raise OpError("not_found", f"{session.name} was just removed")
                bodies = records(
                    session.sid, session.state, wish, used_of(session.state, spent_nano, datetime.now(UTC)), by
                )
                await self._still_there(session)
                await self._keepers.take_up(session)
                await session.append(*first, *bodies)
                return

    async def _still_there(self, session: Session) -> None:
        """Raise OpError ``no_worktree`` when the session's worktree, which was made, is gone."""
        s = session.state
        if s.created is None or s.intent is None:
            return  # it was never made: making it is tried again
        try:
            await session.look("looking for its worktree", _LOOK_S, lambda: _whole(session))
        except (WorkspaceError, OSError) as exc:
            repo = s.intent.repo
            branch = s.intent.branch
            hint = (
                f"its commits are on branch {branch}: git -C {repo} switch --detach {branch}, then: watchfloor launch"
                f" --repo {repo} --goal TEXT"
            )
            raise OpError("no_worktree", f"{session.name} cannot go on: {exc}", hint) from exc


def _whole(session: Session) -> None:
    """Blocking. Raises WorkspaceError, OSError."""
    tree = worktrees.open_worktree(private_of(session))
    for what, folder in (
        ("its worktree", tree.root),
        ("git's record of its worktree", tree.admin),
        ("its git folder", tree.private),
    ):
        if os.path.islink(folder) or not os.path.isdir(folder):
            raise DamagedWorktree(f"{what} {folder} is gone")
