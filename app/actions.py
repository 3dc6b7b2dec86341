"""The one registry of actions: bindings, palette, help screen, help bar and docs/keys.md are all made from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

Scope: TypeAlias = str
EVERYWHERE = "everywhere"
SCOPES: dict[Scope, str] = {
    EVERYWHERE: "Everywhere",
    "floor": "Floor",
    "panes": "Floor, while the panes have the focus",
    "queue": "Queue",
    "session": "Session",
    "costs": "Costs",
    "memory": "Memory",
    "form": "Forms and questions",
}


@dataclass(frozen=True, slots=True)
class Action:
    """One thing the user can do. ``bar`` is its rank in the help bar (0 = not shown there), ``label`` its words there.

    ``decides``: it takes effect at once, so it must have been pressed by a hand (`app.pace`).
    """

    id: str
    title: str
    help: str
    keys: tuple[str, ...]
    scopes: tuple[Scope, ...]
    label: str = ""
    bar: int = 0
    palette: bool = True
    decides: bool = False


def _a(
    ident: str,
    title: str,
    text: str,
    keys: str,
    scopes: str,
    label: str = "",
    bar: int = 0,
    *,
    palette: bool = True,
    decides: bool = False,
) -> Action:
    return Action(ident, title, text, tuple(keys.split()), tuple(scopes.split()), label, bar, palette, decides)


ACTIONS: tuple[Action, ...] = (
    # everywhere
    _a(
        "app.detach",
        "Detach",
        "Leave the screen. Every agent goes on; open Watchfloor anywhere and all of it is there.",
        "q ctrl+q",
        EVERYWHERE,
        "detach",
        90,
    ),
    _a(
        "app.palette",
        "Command palette",
        "Find and run any action by name.",
        "ctrl+p",
        EVERYWHERE,
        "commands",
        80,
        palette=False,
    ),
    _a("app.help", "Help", "All keys of this screen.", "question_mark f1", EVERYWHERE, "help", 100),
    _a("app.theme", "Next theme", "Cycle through the dark, light and ANSI themes.", "t", EVERYWHERE),
    _a(
        "app.reconnect",
        "Start or reconnect the supervisor",
        "Try the supervisor's socket at once, and start it when nobody answers.",
        "ctrl+r",
        EVERYWHERE,
    ),
    _a("go.floor", "Go to the floor", "All sessions, their live logs and the head of the queue.", "1", EVERYWHERE),
    _a("go.queue", "Go to the queue", "Every open request, the most deserving first.", "2", EVERYWHERE, "queue", 20),
    _a("go.costs", "Go to the costs", "What every session has spent.", "3", EVERYWHERE),
    _a(
        "go.memory",
        "Go to the memory",
        "What is remembered beyond one conversation, and the lessons that wait for you.",
        "4",
        EVERYWHERE,
    ),
    _a("go.back", "Back", "Close this screen.", "escape", EVERYWHERE, "back", 70, palette=False),
    _a(
        "session.launch",
        "Launch a session",
        "Give an agent a repository, a goal and a cap.",
        "n",
        "floor queue costs",
        "launch",
        30,
    ),
    # floor
    _a("list.up", "Previous session", "Move the selection up.", "up k", "floor costs memory", palette=False),
    _a("list.down", "Next session", "Move the selection down.", "down j", "floor costs memory", palette=False),
    _a("list.first", "First session", "Move the selection to the top.", "home g", "floor costs memory", palette=False),
    _a("list.last", "Last session", "Move the selection to the bottom.", "end G", "floor costs memory", palette=False),
    _a(
        "session.open",
        "Open the session",
        "Its log, plan, diff, cost and evidence.",
        "enter",
        "floor costs",
        "open",
        10,
    ),
    _a(
        "session.pause",
        "Pause the session",
        "The agent stops at its next turn; resume continues it.",
        "p",
        "floor session",
        "pause",
        40,
        decides=True,
    ),
    _a(
        "session.resume",
        "Resume the session",
        "Let a paused session, or one that stands still, go on.",
        "u",
        "floor session",
        "resume",
        40,
        decides=True,
    ),
    _a(
        "session.continue",
        "Continue the ended session",
        "Take it up again with words, rounds, dollars or another check.",
        "c",
        "floor session",
        "continue",
        40,
    ),
    _a(
        "session.stop",
        "Stop the session",
        "End it (asks first). Its worktree and log stay; only continuing takes it up again.",
        "s",
        "floor session",
        "stop",
        50,
    ),
    _a(
        "session.remove",
        "Remove the session",
        "Delete an ended session's worktree (asks first); unsaved work is never deleted.",
        "D",
        "floor session",
        "remove",
        55,
    ),
    _a(
        "session.undo",
        "Undo what it changed",
        "Bring its worktree back to what it was before one of its calls (asks first); undoing can be undone.",
        "U",
        "floor session",
        "undo",
        58,
    ),
    _a(
        "session.job",
        "End a job",
        "Have the newest job that it runs end (asks first): SIGTERM, and SIGKILL after its grace.",
        "J",
        "floor session",
        "end job",
        59,
    ),
    _a(
        "session.say",
        "Say something to the agent",
        "Your message is part of its next turn.",
        "m",
        "floor session",
        "say",
        60,
    ),
    _a(
        "session.why",
        "Why this state",
        "Where the state comes from, how old it is and the evidence.",
        "i",
        "floor session",
    ),
    _a(
        "focus.next",
        "Next part of the screen",
        "Move the focus to the next part.",
        "tab",
        "floor queue session",
        palette=False,
    ),
    _a(
        "focus.previous",
        "Previous part of the screen",
        "Move the focus to the previous part.",
        "shift+tab",
        "floor queue session",
        palette=False,
    ),
    _a(
        "focus.panes",
        "To the panes",
        "Move the focus from the list to the panes.",
        "right l",
        "floor",
        "panes",
        25,
        palette=False,
    ),
    _a(
        "view.raw",
        "Transcript or raw events",
        "Switch between what a person reads and every event of the log.",
        "v",
        "floor panes session",
        "raw",
        61,
    ),
    _a(
        "view.plan",
        "Plan",
        "Show the plan with its live state: in the pane in place of the transcript, of a session in its tab.",
        "P",
        "floor panes session",
        "plan",
        63,
    ),
    # panes
    _a(
        "pane.left",
        "Pane to the left",
        "Move to the pane on the left, at the edge to the list.",
        "left h",
        "panes",
        palette=False,
    ),
    _a("pane.right", "Pane to the right", "Move to the pane on the right.", "right l", "panes", palette=False),
    _a("pane.up", "Pane above", "Move to the pane above.", "up k", "panes", palette=False),
    _a("pane.down", "Pane below", "Move to the pane below.", "down j", "panes", palette=False),
    _a(
        "pane.split_right",
        "Split the pane to the right",
        "A second pane beside this one.",
        "vertical_line backslash",
        "floor panes",
        "split",
        62,
    ),
    _a("pane.split_below", "Split the pane below", "A second pane under this one.", "minus underscore", "floor panes"),
    _a("pane.close", "Close the pane", "Close the current pane; the session goes on.", "X", "floor panes", "close", 63),
    _a(
        "pane.zoom",
        "Zoom the pane",
        "Give the current pane the whole wall, or give it back.",
        "z",
        "floor panes",
        "zoom",
        64,
    ),
    _a(
        "pane.pin",
        "Pin the session to the pane",
        "The current pane keeps the selected session; once more lets it follow the selection.",
        "space",
        "floor panes",
        "pin",
        66,
    ),
    _a(
        "pane.wider",
        "Wider pane",
        "Move the border of the current pane.",
        "right_square_bracket",
        "floor panes",
        palette=False,
    ),
    _a(
        "pane.narrower",
        "Narrower pane",
        "Move the border of the current pane.",
        "left_square_bracket",
        "floor panes",
        palette=False,
    ),
    _a(
        "pane.taller",
        "Taller pane",
        "Move the border of the current pane.",
        "right_curly_bracket",
        "floor panes",
        palette=False,
    ),
    _a(
        "pane.shorter",
        "Shorter pane",
        "Move the border of the current pane.",
        "left_curly_bracket",
        "floor panes",
        palette=False,
    ),
    _a("pane.even", "Even panes", "Give all panes the same room.", "equals_sign", "floor panes"),
    _a(
        "pane.page_up",
        "Scroll the log back",
        "One page back in the current pane.",
        "pageup ctrl+u",
        "floor panes",
        palette=False,
    ),
    _a(
        "pane.page_down",
        "Scroll the log on",
        "One page on in the current pane.",
        "pagedown ctrl+d",
        "floor panes",
        palette=False,
    ),
    # queue
    _a("queue.up", "Previous request", "Move the selection up.", "up k", "queue", palette=False),
    _a("queue.down", "Next request", "Move the selection down.", "down j", "queue", palette=False),
    _a(
        "queue.approve",
        "Approve",
        "Let exactly this action run once. Armed half a second after the whole card was shown.",
        "ctrl+y",
        "queue",
        "approve",
        1,
        palette=False,
        decides=True,
    ),
    _a(
        "queue.edit",
        "Approve edited",
        "Change the input first, then let the changed action run once.",
        "e",
        "queue",
        "edit",
        3,
        palette=False,
    ),
    _a("queue.deny", "Deny", "Refuse with a reason that the agent reads.", "r x", "queue", "deny", 2, palette=False),
    _a(
        "queue.answer",
        "Answer",
        "Your text becomes the result of the call, or the agent's next instruction.",
        "w",
        "queue",
        "answer",
        4,
        palette=False,
    ),
    _a("queue.raise", "Raise the cap", "Give the session a higher cap.", "plus", "queue", "raise", 1, palette=False),
    _a(
        "queue.finish",
        "Finish up",
        "One last, capped reply to leave things in order.",
        "f",
        "queue",
        "finish up",
        2,
        palette=False,
        decides=True,
    ),
    _a(
        "queue.stop",
        "Stop the session",
        "End the session that asks (asks first).",
        "s",
        "queue",
        "stop",
        5,
        palette=False,
    ),
    _a(
        "queue.done",
        "It was done",
        "The call in doubt had its effect.",
        "d",
        "queue",
        "was done",
        1,
        palette=False,
        decides=True,
    ),
    _a(
        "queue.accept",
        "It is finished",
        "The session ends here as done; no answer is given.",
        "d",
        "queue",
        "finished",
        5,
        palette=False,
        decides=True,
    ),
    _a(
        "queue.failed",
        "It was not done",
        "The call in doubt had no effect.",
        "o",
        "queue",
        "not done",
        2,
        palette=False,
        decides=True,
    ),
    _a(
        "queue.unknown",
        "Nobody knows",
        "The agent is told that the outcome is unknown.",
        "v",
        "queue",
        "unknown",
        3,
        palette=False,
        decides=True,
    ),
    _a("queue.defer", "Defer", "Put it last; it stays open.", "z", "queue", "defer", 6, palette=False, decides=True),
    _a(
        "queue.session",
        "Open the session that asks",
        "Its log, plan, diff, cost and evidence.",
        "enter",
        "queue",
        "session",
        10,
        palette=False,
    ),
    _a(
        "queue.changes",
        "All that would change",
        "The whole comparison of a write or an edit, also what its card leaves out.",
        "c",
        "queue",
        "changes",
        7,
        palette=False,
    ),
    _a("queue.card_up", "Scroll the card back", "One page back.", "pageup ctrl+u", "queue", palette=False),
    _a(
        "queue.card_down",
        "Scroll the card on",
        "One page on; the card must be seen to its end before it can be approved.",
        "pagedown ctrl+d space",
        "queue",
        "more",
        0,
        palette=False,
    ),
    # session
    _a(
        "tab.next",
        "Next tab",
        "Transcript, log, plan, diff, cost, why.",
        "right_square_bracket",
        "session",
        "tabs",
        15,
        palette=False,
    ),
    _a(
        "tab.previous",
        "Previous tab",
        "Transcript, log, plan, diff, cost, why.",
        "left_square_bracket",
        "session",
        palette=False,
    ),
    _a("log.search", "Search in the log", "Find text; n and N move between hits.", "slash", "session", "search", 17),
    _a("log.filter", "Filter the log", "Show only some kinds of events.", "f", "session", "filter", 18),
    _a("log.next", "Next hit", "The next hit of the search, towards the end.", "n", "session", palette=False),
    _a("log.previous", "Previous hit", "The hit before.", "N", "session", palette=False),
    _a("log.up", "Up", "One row back; it stops following the end.", "up k", "session", palette=False),
    _a("log.down", "Down", "One row on.", "down j", "session", palette=False),
    _a("log.page_up", "Page up", "One page back.", "pageup ctrl+u", "session", palette=False),
    _a("log.page_down", "Page down", "One page on.", "pagedown ctrl+d space", "session", palette=False),
    _a("log.first", "First", "To the beginning.", "home g", "session", palette=False),
    _a("log.last", "Last", "To the end; it is followed again.", "end G", "session", "end", 0, palette=False),
    _a(
        "log.record",
        "Open the row",
        "The whole of a call or a text; in the log, everything that one record says.",
        "enter",
        "session",
        "open",
        16,
        palette=False,
    ),
    _a("session.reload", "Read again", "Read what is shown here again.", "R", "session costs memory"),
    # memory
    _a(
        "memory.accept",
        "Believe the lesson",
        "It is remembered from now on; asks once more.",
        "a",
        "memory",
        "believe",
        10,
    ),
    _a("memory.reject", "Refuse the lesson", "Saying it again does not bring it in.", "x", "memory", "refuse", 11),
    _a(
        "memory.rollback",
        "Roll back the memory",
        "Choose an earlier version, or none; the next request of every session shows that.",
        "u",
        "memory",
        "roll back",
        12,
    ),
    _a("memory.forget", "Forget the memory", "Its versions stay and can be brought back.", "d", "memory", "forget", 13),
    # forms
    _a("form.submit", "Submit", "Send the form.", "ctrl+y", "form", "send", 1, palette=False, decides=True),
    _a("form.cancel", "Cancel", "Close without doing anything.", "escape", "form", "cancel", 2, palette=False),
)

BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}
_SYMBOLS = {
    "question_mark": "?",
    "vertical_line": "|",
    "backslash": "\\",
    "minus": "-",
    "underscore": "_",
    "plus": "+",
    "slash": "/",
    "equals_sign": "=",
    "right_square_bracket": "]",
    "left_square_bracket": "[",
    "right_curly_bracket": "}",
    "left_curly_bracket": "{",
    "full_stop": ".",
    "comma": ",",
    "percent_sign": "%",
    "quotation_mark": '"',
    "escape": "esc",
    "colon": ":",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}
_NAMES = {symbol: name for name, symbol in _SYMBOLS.items() if len(symbol) == 1 and symbol not in "↑↓←→"}


def show_key(key: str) -> str:
    """A key as people write it: ``question_mark`` → ``?``, ``ctrl+b percent_sign`` → ``ctrl+b %``."""
    return " ".join("+".join(_SYMBOLS.get(part, part) for part in chord.split("+")) for chord in key.split(" "))


def key_name(text: str) -> str:
    """The inverse of `show_key` for one chord: ``?`` → ``question_mark``, ``ctrl+%`` → ``ctrl+percent_sign``."""
    if text in _NAMES:
        return _NAMES[text]
    head, plus, tail = text.rpartition("+")
    return f"{head}+{_NAMES.get(tail, tail)}" if plus and head else text


def overlapping(first: Iterable[Scope], second: Iterable[Scope]) -> bool:
    """True when both scopes can be in force at once with equal rank, so that one key cannot mean both."""
    a = set(first)
    b = set(second)
    if a & b:
        return True
    forms = {"form"}
    return (EVERYWHERE in a and not b <= forms) or (EVERYWHERE in b and not a <= forms)


def markdown(keys: dict[str, tuple[str, ...]] | None = None) -> str:
    """docs/keys.md: every action with its keys, by scope."""
    lines = [
        "# Keys",
        "",
        (
            "Made from the action registry (`app/actions.py`); a test keeps it current. Every key can be changed in"
            " `config.toml`:"
        ),
        "",
    ]
    lines += [
        "```toml",
        "[ui]",
        'preset = "tmux"          # default, tmux or zellij',
        "",
        "[ui.keys]",
        '"pane.zoom" = "Z"        # several keys: "z, Z"; a sequence: "ctrl+b z"',
        "```",
        "",
    ]
    for scope, title in SCOPES.items():
        lines += [f"## {title}", "", "| key | action | what it does | id |", "| --- | --- | --- | --- |"]
        for action in ACTIONS:
            if scope in action.scopes:
                shown = ", ".join(f"`{_escape(show_key(k))}`" for k in (keys or {}).get(action.id, action.keys))
                lines.append(f"| {shown} | {action.title} | {action.help} | `{action.id}` |")
        lines.append("")
    return "\n".join(lines)


def _escape(key: str) -> str:
    return key.replace("|", "\\|")


if __name__ == "__main__":
    print(markdown(), end="")
