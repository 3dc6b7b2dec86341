"""Actions of every screen."""

from __future__ import annotations

from app.action_table.action import EVERYWHERE, Action, act

ACTIONS: tuple[Action, ...] = (
    act(
        "app.detach",
        "Detach",
        "Leave the screen. Every agent goes on; open Watchfloor anywhere and all of it is there.",
        "q ctrl+q",
        EVERYWHERE,
        "detach",
        90,
    ),
    act(
        "app.palette",
        "Command palette",
        "Find and run any action by name.",
        "ctrl+p",
        EVERYWHERE,
        "commands",
        80,
        palette=False,
    ),
    act("app.help", "Help", "All keys of this screen.", "question_mark f1", EVERYWHERE, "help", 100),
    act("app.theme", "Next theme", "Cycle through the dark, light and ANSI themes.", "t", EVERYWHERE),
    act(
        "app.reconnect",
        "Start or reconnect the supervisor",
        "Try the supervisor's socket at once, and start it when nobody answers.",
        "ctrl+r",
        EVERYWHERE,
    ),
    act(
        "app.copy",
        "Copy what is selected",
        "Text for the terminal's clipboard: a session's line, a row, a record, a card, a hunk.",
        "y",
        EVERYWHERE,
        decides=True,
    ),
    act(
        "app.copy_name",
        "Copy its id",
        "The id of what is selected, as the command line takes it; in a review the file's path.",
        "Y",
        EVERYWHERE,
        decides=True,
    ),
    act("go.floor", "Go to the floor", "All sessions, their live logs and the head of the queue.", "1", EVERYWHERE),
    act("go.queue", "Go to the queue", "Every open request, the most deserving first.", "2", EVERYWHERE, "queue", 20),
    act("go.costs", "Go to the costs", "What every session has spent.", "3", EVERYWHERE),
    act(
        "go.fleet",
        "Go to the fleet",
        "Every session in one table: sorted, filtered, grouped, and many dealt with at once.",
        "4",
        EVERYWHERE,
    ),
    act(
        "go.memory",
        "Go to the memory",
        "What is remembered beyond one conversation, and the lessons that wait for you.",
        "5",
        EVERYWHERE,
    ),
    act("go.back", "Back", "Close this screen.", "escape", EVERYWHERE, "back", 70, palette=False),
    act(
        "session.launch",
        "Launch a session",
        "Give an agent a repository, a goal and a cap.",
        "n",
        "floor queue costs fleet",
        "launch",
        30,
    ),
)
