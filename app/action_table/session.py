"""Actions of a session's screen."""

from __future__ import annotations

from app.action_table.action import Action, act

ACTIONS: tuple[Action, ...] = (
    act(
        "tab.next",
        "Next tab",
        "Transcript, log, plan, diff, cost, why.",
        "right_square_bracket",
        "session",
        "tabs",
        15,
        palette=False,
    ),
    act(
        "tab.previous",
        "Previous tab",
        "Transcript, log, plan, diff, cost, why.",
        "left_square_bracket",
        "session",
        palette=False,
    ),
    act("log.search", "Search in the log", "Find text; n and N move between hits.", "slash", "session", "search", 17),
    act("log.filter", "Filter the log", "Show only some kinds of events.", "f", "session", "filter", 18),
    act(
        "log.unfilter",
        "Leave the filter of the log",
        "Show all events again.",
        "escape",
        "session",
        "show all",
        11,
        palette=False,
    ),
    act("log.next", "Next hit", "The next hit of the search, towards the end.", "n", "session", palette=False),
    act("log.previous", "Previous hit", "The hit before.", "N", "session", palette=False),
    act("log.up", "Up", "One row back; it stops following the end.", "up k", "session", palette=False),
    act("log.down", "Down", "One row on.", "down j", "session", palette=False),
    act("log.page_up", "Page up", "One page back.", "pageup ctrl+u", "session", palette=False),
    act("log.page_down", "Page down", "One page on.", "pagedown ctrl+d space", "session", palette=False),
    act("log.first", "First", "To the beginning.", "home g", "session", palette=False),
    act("log.last", "Last", "To the end; it is followed again.", "end G", "session", "end", 0, palette=False),
    act(
        "log.record",
        "Open the row",
        "The whole of a call or a text; in the log, everything that one record says.",
        "enter",
        "session",
        "open",
        16,
        palette=False,
    ),
    act(
        "session.export",
        "Export the session",
        "One file in the folder that the screen was opened in: log, payloads, costs, plan, its branch.",
        "X",
        "session",
    ),
    act("session.reload", "Read again", "Read what is shown here again.", "R", "session costs memory rules review"),
)
