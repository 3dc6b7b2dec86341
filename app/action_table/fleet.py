"""Actions of the fleet, of memory, and of forms."""

from __future__ import annotations

from app.action_table.action import Action, act

ACTIONS: tuple[Action, ...] = (
    # fleet
    act(
        "table.filter",
        "Filter the fleet",
        "Show only some sessions: words, state:waiting, repo:shop, group:review, is:asking, spent:>1, age:>2h;"
        " a minus before one turns it round.",
        "slash",
        "fleet",
        "filter",
        12,
    ),
    act("table.unfilter", "Leave the filter", "Show all sessions again.", "escape", "fleet", "all", 11, palette=False),
    act("table.sort_right", "Sort by the next column", "The column to the right.", "right l", "fleet", "sort", 16),
    act("table.sort_left", "Sort by the column before", "The column to the left.", "left h", "fleet"),
    act("table.turn", "Turn the order round", "The greatest first, or the least.", "o", "fleet", "turn", 64),
    act("table.group", "Group the fleet", "By state, by repository, or not at all.", "b", "fleet", "group", 18),
    act(
        "table.timeline",
        "Timeline of the fleet",
        "What ran, waited, failed and ended, and when; once more shows the columns again.",
        "T",
        "fleet",
        "timeline",
        17,
    ),
    act("table.longer", "Longer time", "The timeline shows more time.", "right_square_bracket", "fleet", "longer", 13),
    act(
        "table.shorter", "Shorter time", "The timeline shows less time.", "left_square_bracket", "fleet", "shorter", 13
    ),
    act(
        "table.mark",
        "Mark the session",
        "What is done to sessions is done to those with a mark; marking goes on to the next one.",
        "space",
        "fleet",
        "mark",
        14,
        palette=False,
    ),
    act("table.mark_all", "Mark all shown", "Once more takes their marks away.", "asterisk", "fleet", "mark all", 15),
    act(
        "table.pause",
        "Pause the marked sessions",
        "They stop at their next turn; without a mark, the selected one. One question lists whom it reaches.",
        "p",
        "fleet",
        "pause",
        40,
    ),
    act(
        "table.resume",
        "Resume the marked sessions",
        "Paused ones, and those that stand still, go on; one question lists them.",
        "u",
        "fleet",
        "resume",
        41,
    ),
    act(
        "table.stop",
        "Stop the marked sessions",
        "End them; one question lists them. Worktrees and logs stay.",
        "s",
        "fleet",
        "stop",
        50,
    ),
    act(
        "table.raise",
        "Raise the caps of the marked sessions",
        "So many dollars more for each that waits at its own cap; one question lists them.",
        "plus",
        "fleet",
        "raise",
        13,
    ),
    act(
        "table.archive",
        "Archive the marked sessions",
        "Delete the worktrees of ended ones; one question lists them; unsaved work never, logs stay.",
        "D",
        "fleet",
        "archive",
        55,
    ),
    act("table.page_up", "Page up", "One page back.", "pageup ctrl+u", "fleet", palette=False),
    act("table.page_down", "Page down", "One page on.", "pagedown ctrl+d", "fleet", palette=False),
    # memory
    act(
        "memory.accept",
        "Believe the lesson",
        "It is remembered from now on; asks once more.",
        "a",
        "memory",
        "believe",
        10,
    ),
    act("memory.reject", "Refuse the lesson", "Saying it again does not bring it in.", "x", "memory", "refuse", 11),
    act(
        "memory.rollback",
        "Roll back the memory",
        "Choose an earlier version, or none; the next request of every session shows that.",
        "u",
        "memory",
        "roll back",
        12,
    ),
    act(
        "memory.forget", "Forget the memory", "Its versions stay and can be brought back.", "d", "memory", "forget", 13
    ),
    # forms
    act("form.submit", "Submit", "Send the form.", "ctrl+y", "form", "send", 1, palette=False, decides=True),
    act("form.cancel", "Cancel", "Close without doing anything.", "escape", "form", "cancel", 2, palette=False),
)
