"""The line below the card: whether what is on screen can be decided now, or what is missing for that. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from textual.content import Content

from app.input.arming import Arming
from app.input.keymap import Keymap
from app.screens import queue_words
from harness.views.session_views import ApprovalView, FleetView


@dataclass(frozen=True, slots=True)
class Looked:
    """How far the card was seen. ``at_end``: its last line is on screen, and it is longer than the screen; ``rings``:
    it is a session whose alarm rings, ``helps``: the action that has a session go on, empty when none does.
    """

    arming: Arming
    at_end: bool
    foldable: bool = False
    rings: bool = False
    helps: str = ""


def standing(keys: Keymap, view: ApprovalView | None, looked: Looked, now: float) -> Content:
    """The line at ``now`` (seconds, monotonic); empty where nothing can be approved."""
    if view is None:
        return Content("")
    if not view.options:
        what = "its alarm" if looked.rings else "it"
        puts_off = f"; {keys.shown('queue.defer')} puts {what} off for an hour" if view.deferred is None else ""
        goes_on = f"{keys.shown(looked.helps)} has it go on; " if looked.helps else ""
        return Content.styled(f"{goes_on}{keys.shown('queue.session')} opens its session{puts_off}", "$text-muted")
    if not queue_words.approving(view):
        return Content("")
    what = queue_words.approval(view)[1]
    more = "; then type the session's name" if view.risk == "critical" else ""
    if looked.foldable:
        more += f" · {keys.shown('queue.facts')} facts"
    return armed(keys, looked, now, what + more)


def armed(keys: Keymap, looked: Looked, now: float, does: str) -> Content:
    """How far it is from being armed, or what its key ``does`` now."""
    if looked.arming.unread:
        if looked.at_end:
            return _warning("▲ skipped: ", f"{keys.shown('queue.card_up')} shows what was not on screen yet")
        return _warning("▼ more below: ", f"{keys.shown('queue.card_down')} shows it, then this can be approved")
    if not looked.arming.armed(now):
        return Content.styled("○ looking …", "$text-muted")
    return Content.assemble((f"● {keys.shown('queue.approve')} ", "bold $success"), (does, "$text-muted"))


def nothing_open(keys: Keymap, fleet: FleetView) -> Content:
    """What stands in place of list and card while nobody needs a person: what goes on, and where to look back."""
    counts = {"running": fleet.running, "parked": fleet.parked, "to review": fleet.review}
    going = [f"{count} {what}" for what, count in counts.items() if count]
    lines: list[Content] = [Content.assemble(("✓ ", "bold $success"), ("Nothing needs you.", "bold"))]
    if going:
        lines.append(Content(f"  {' · '.join(going)}"))
    lines.append(Content(""))
    for action, what in (
        ("go.history", "shows what was decided, and what became of each request"),
        ("go.brief", "shows what happened since you looked"),
        ("go.floor", "goes to the floor"),
    ):
        lines.append(Content.assemble((f"  {keys.shown(action)}", "bold"), (f" {what}", "$text-muted")))
    return Content("\n").join(lines)


def _warning(head: str, text: str) -> Content:
    return Content.assemble((head, "bold $warning"), (text, "$text-muted"))
