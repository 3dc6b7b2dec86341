"""Actions of the floor's panes."""

from __future__ import annotations

from app.action_table.action import Action, act

ACTIONS: tuple[Action, ...] = (
    act(
        "pane.left",
        "Pane to the left",
        "Move to the pane on the left, at the edge to the list.",
        "left h",
        "panes",
        palette=False,
    ),
    act("pane.right", "Pane to the right", "Move to the pane on the right.", "right l", "panes", palette=False),
    act("pane.up", "Pane above", "Move to the pane above.", "up k", "panes", palette=False),
    act("pane.down", "Pane below", "Move to the pane below.", "down j", "panes", palette=False),
    act(
        "pane.split_right",
        "Split the pane to the right",
        "A second pane beside this one.",
        "vertical_line backslash",
        "floor panes",
        "split",
        62,
    ),
    act("pane.split_below", "Split the pane below", "A second pane under this one.", "minus underscore", "floor panes"),
    act(
        "pane.close", "Close the pane", "Close the current pane; the session goes on.", "X", "floor panes", "close", 63
    ),
    act(
        "pane.zoom",
        "Zoom the pane",
        "Give the current pane the whole wall, or give it back.",
        "z",
        "floor panes",
        "zoom",
        64,
    ),
    act(
        "pane.pin",
        "Pin the session to the pane",
        "The current pane keeps the selected session; once more lets it follow the selection.",
        "space",
        "floor panes",
        "pin",
        66,
    ),
    act(
        "pane.wider",
        "Wider pane",
        "Move the border of the current pane.",
        "right_square_bracket",
        "floor panes",
        palette=False,
    ),
    act(
        "pane.narrower",
        "Narrower pane",
        "Move the border of the current pane.",
        "left_square_bracket",
        "floor panes",
        palette=False,
    ),
    act(
        "pane.taller",
        "Taller pane",
        "Move the border of the current pane.",
        "right_curly_bracket",
        "floor panes",
        palette=False,
    ),
    act(
        "pane.shorter",
        "Shorter pane",
        "Move the border of the current pane.",
        "left_curly_bracket",
        "floor panes",
        palette=False,
    ),
    act("pane.even", "Even panes", "Give all panes the same room.", "equals_sign", "floor panes"),
    act(
        "pane.page_up",
        "Scroll the log back",
        "One page back in the current pane.",
        "pageup ctrl+u",
        "floor panes",
        palette=False,
    ),
    act(
        "pane.page_down",
        "Scroll the log on",
        "One page on in the current pane.",
        "pagedown ctrl+d",
        "floor panes",
        palette=False,
    ),
)
