"""What an approval card is made from: title, diff and the view itself.

The action is the only source; the agent's claim stays apart.
"""

from __future__ import annotations

import shlex

import msgspec

from harness.domain.actions.action import Action, ExecAction, FileAction, PushAction, RecordAction
from harness.domain.text.fields import Wire
from harness.executor import files
from harness.linux import safe_files
from harness.projections.state.session_state import OpenApproval, SessionState
from harness.supervisor.calls.queue import comparison
from harness.supervisor.calls.queue.comparison import Side
from harness.supervisor.fleet.call_records import OpenCall
from harness.tools import registry
from harness.tools.summary import script_line
from harness.tools.tool import Writes
from harness.views.approval_views import as_recorded
from harness.views.session_views import NOT_COMPARED, ApprovalView

MAX_DIFF_SOURCE = 2 << 20
_TITLE = 200
_ABSENT = "nothing there"
_RISKS = ("low", "medium", "high", "critical")


def title(action: Action) -> str:
    """One line that says what would run (untrusted text as it is)."""
    if isinstance(action, PushAction):
        refs = ", ".join(spec.ref for spec in action.to.refspecs)
        text = f"push to {action.remote or action.to.url}: {refs}"
    elif isinstance(action, ExecAction):
        text = shlex.join(action.argv)
    elif isinstance(action, FileAction):
        text = f"{action.tool} {action.path}"
    elif isinstance(action, RecordAction):
        given = action.input or {}
        text = " ".join([action.tool, *(str(given[name]) for name in ("action", "scope", "key") if name in given)])
    else:
        text = script_line(action.script)
    return text if len(text) <= _TITLE else text[: _TITLE - 1] + "…"


def _now(folder: str, path: str) -> Side:
    """The file as it is; without bytes when it is absent, behind a link, no regular file or too large to compare."""
    try:
        return Side.of(safe_files.read_named(folder, path, MAX_DIFF_SOURCE))
    except (FileNotFoundError, NotADirectoryError):
        return Side(None, _ABSENT)
    except (OSError, ValueError) as exc:
        return Side(None, f"not read: it {getattr(exc, 'strerror', '') or type(exc).__name__}")


def whole_diff(action: Action, given: dict[str, object]) -> str:
    """All that a write or edit would change in the file as it is now (blocking); empty for other tools.

    ``given`` is the tool's whole input.
    """
    if not isinstance(action, FileAction) or not registry.writes_file(action.tool):
        return ""
    now = _now(action.cwd, action.path)
    if registry.writes(action.tool) is Writes.PIECE:
        return _edit(now, given)
    text = comparison.compare(now, Side.of(str(given.get("content", "")).encode("utf-8", "surrogatepass")))
    if now.body is None and now.words != _ABSENT:
        return f"{NOT_COMPARED}what is there now is too large or no plain file; it is replaced by what follows\n{text}"
    return text


def _edit(now: Side, given: dict[str, object]) -> str:
    old = str(given.get("old", ""))
    new = str(given.get("new", ""))
    before = now.body
    if before is None:
        return comparison.replaced(old, new, f"the file to edit is not there, too large or no plain file ({now.words})")
    find, put = files.endings_of(before, old.encode(), new.encode())
    count = before.count(find)
    every = bool(given.get("all"))
    size = len(before) + count * (len(put) - len(find))
    if count == 0 or (count > 1 and not every):
        return comparison.replaced(
            old, new, f"the text to replace occurs {count} times in the file as it is now, so that the call would fail"
        )
    if size > 2 * MAX_DIFF_SOURCE:
        return comparison.replaced(
            old,
            new,
            f"the text to replace occurs {count:,} times; the file would grow from {len(before):,} to {size:,} bytes",
        )
    return comparison.compare(now, Side.of(before.replace(find, put)))


def unread(why: Exception) -> str:
    """In place of a comparison that could not be made."""
    return f"{NOT_COMPARED}what it would change cannot be read: {' '.join(str(why).split())}"


def diff(action: Action, given: dict[str, object]) -> str:
    """What a card shows of `whole_diff` (blocking)."""
    return comparison.on_card(whole_diff(action, given))


def risk(judged: str, shown: str) -> str:
    """The risk of a request: one step higher, and high at least, when its card cannot show all that would change."""
    if not comparison.left_out(shown) or judged not in _RISKS:
        return judged
    return _RISKS[min(max(_RISKS.index(judged) + 1, _RISKS.index("high")), len(_RISKS) - 1)]


def view(
    sid: str, s: SessionState, a: OpenApproval, call: OpenCall | None, action: Wire | None, shown_diff: str
) -> ApprovalView:
    """The card of one open request, with the action as it is recorded."""
    made = msgspec.structs.replace(as_recorded(sid, s, a), action=action, diff=shown_diff)
    if call is None:
        return made
    made = msgspec.structs.replace(made, tool=call.proposed.tool, claim=call.proposed.claim)
    if (judged := call.judged) is None:
        return made
    return msgspec.structs.replace(made, effects=judged.effects, rule=judged.rule, reason=judged.reason)
