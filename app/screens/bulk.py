"""Acting on many sessions at once: one dialog lists those affected, then one request is sent for each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from textual.widget import Widget
from textual.widgets import Input

from app.client import requests
from app.framework.application import Host
from app.framework.bulk import Act, Reach, outcome
from app.screens.dialogs.dialogs import Dialog
from app.screens.session_commands import not_going_on, not_pausing, not_removing, not_resuming
from harness.domain.calls.approval_kind import Request
from harness.domain.calls.cap_request import CapRequest
from harness.domain.settings.amounts import usd_to_nano
from harness.domain.text.formatting import cap_text, counted, spend_cell
from harness.protocol.client import SupervisorError, Unreachable
from harness.protocol.config.config import ConfigError
from harness.views.session_views import ApprovalView, SessionRow
from widgets.base.fact_list import FactList
from widgets.fleet.fleet_filter import repository

Ask: TypeAlias = Callable[[str], Awaitable[Mapping[str, object]]]
RAISE = "raise"
_MOST_LINES = 40
STOP = Act(
    "stop",
    "Stop",
    "What runs now is killed, the agents end. Worktrees, branches and logs stay; only continuing takes one up again.",
    "stop",
    "stopping",
    not_going_on,
)
PAUSE = Act(
    "pause", "Pause", "Each agent stops at its next turn; resume continues it.", "pause", "pausing", not_pausing
)
RESUME = Act(
    "resume",
    "Resume",
    "Let paused sessions, and those that stand still, go on.",
    "resume",
    "resumed",
    not_resuming,
)
ARCHIVE = Act(
    "archive",
    "Archive",
    "Their worktrees are deleted, logs and costs stay (watchfloor ls --archived). One that holds work which is neither"
    " committed nor pushed is refused and stays.",
    "archive",
    "archived",
    not_removing,
)


def raising(views: Sequence[ApprovalView]) -> Act:
    """Raise dollar caps, of sessions with an open request at their own dollar cap."""
    waiting = {view.sid for view in views if at_own_cap(view)}

    def not_raising(row: SessionRow) -> str:
        return "" if row.sid in waiting else f"{row.name} does not wait at a cap of its own in dollars"

    return Act(
        RAISE, "Raise the cap of", "How many dollars more shall each of them have?", "raise", "raised", not_raising
    )


def at_own_cap(view: ApprovalView) -> bool:
    """True when this request asks to raise a dollar cap of its own session, not of the fleet."""
    return of_dollars(view) is not None


def of_dollars(view: ApprovalView) -> CapRequest | None:
    """The cap that this request asks about, if it is a dollar cap of one session and can be raised; else None."""
    said = CapRequest.of(view.detail) if view.kind == Request.CAP and "raise" in view.options else None
    return said if said is not None and said.cap.of_session and said.cap.in_usd else None


class BulkDialog(Dialog[int]):
    """Lists the sessions affected and those left alone. Returns True, or with ``amount`` the sum typed, in nano-USD."""

    DEFAULT_CSS = """
    BulkDialog FactList { max-height: 40vh; background: $surface; }
    """

    def __init__(self, act: Act, found: Reach, hidden: frozenset[str], *, amount: bool = False) -> None:
        count = len(found.targets)
        super().__init__(act.verb, counted(count, "session"), act.does, submit=act.yes)
        self._found = found
        self._hidden = hidden
        self._act = act
        self._amount = amount

    def fields(self) -> list[Widget]:
        return [FactList(dom_id="reach"), *([Input("1.00", id="field")] if self._amount else [])]

    def on_mount(self) -> None:
        super().on_mount()
        facts = [(f"will {self._act.id}", self._line(row)) for row in self._found.targets]
        facts += [("left alone", why) for _, why in self._found.spared]
        listed = self.query_one(FactList)
        listed.set_facts(facts)
        listed.styles.height = min(_MOST_LINES, 2 * len(facts))
        self.call_after_refresh(self._fit)
        self.query_one("#field" if self._amount else "#reach").focus()

    def _fit(self) -> None:
        """Shrink the list to its content, once layout has wrapped it."""
        listed = self.query_one(FactList)
        listed.styles.height = min(_MOST_LINES, listed.virtual_size.height)

    def _line(self, row: SessionRow) -> str:
        hidden = " · marked, not shown" if row.sid in self._hidden else ""
        cap = f"{spend_cell(row.spent_nano, row.unknown_nano)} of {cap_text(row.cap_nano)}"
        now = f"{row.state}: {row.detail}" if row.detail else row.state
        return f"{row.name} · {repository(row)} · {cap if self._amount else now}{hidden}"

    def result(self) -> int | bool:
        if not self._amount:
            return True
        more = usd_to_nano(self.query_one(Input).value.strip().removeprefix("$"))
        if more <= 0:
            raise ValueError("say how many dollars more, such as 2.50")
        return more


async def carry_out(host: Host, act: Act, targets: Sequence[SessionRow], ask: Ask) -> None:
    """Ask for each in turn and report the result once. ``ask`` takes a session's id and raises if it is refused."""
    refused: dict[str, str] = {}
    notes: list[str] = []
    for row in targets:
        try:
            notes.append(str((await ask(row.sid)).get("note") or ""))
        except SupervisorError as exc:
            refused[row.name] = str(exc) if len(targets) == 1 else exc.message  # not the remedy each time
        except (Unreachable, ConfigError) as exc:
            refused[row.name] = str(exc)
    host.tell(outcome(act, len(targets) - len(refused), refused, list(filter(None, notes))), bad=bool(refused))


def asking(host: Host, act: Act, more: int) -> Ask:
    """The function that requests this act for one session; ``more`` is what a raise adds, in nano-USD."""
    wanted = {"stop": "stopped", "pause": "paused", "resume": "running"}

    async def ask(sid: str) -> Mapping[str, object]:
        if act.id == "archive":
            return await host.feed.call("remove", sid=sid)
        if act.id == RAISE:
            view = next((v for v in host.snapshot.approvals if v.sid == sid and at_own_cap(v)), None)
            said = of_dollars(view) if view is not None else None
            if view is None or said is None:
                raise Unreachable("it does not wait at its cap any more")
            value = said.limit + more
            return await host.feed.call("decide", **requests.decide(host.folders, view, "raise", value=value))
        reason = "stopped by you" if act.id == "stop" else None
        return await host.feed.call("desire", **requests.desire(host.folders, sid, wanted[act.id], reason))

    return ask
