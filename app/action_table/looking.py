"""Actions of looking back at what happened, and of the review of a session's work."""

from __future__ import annotations

from app.action_table.action import Action, act

ACTIONS: tuple[Action, ...] = (
    # looking back
    act(
        "go.brief",
        "What happened since you looked",
        "Passed criteria, commits, decisions, restarts, anomalies and spend; each line opens its record.",
        "b",
        "floor queue session",
        "since",
        26,
    ),
    act(
        "go.history",
        "Decided requests",
        "What became of every request that is not open any more, step by step.",
        "h",
        "queue",
        "decided",
        27,
    ),
    act(
        "back.open",
        "Open the record",
        "All of the record, or of the request, that the line is about.",
        "enter",
        "back",
        "open",
        1,
    ),
    act("back.session", "Open its session", "The session that the line is about.", "i", "back", "session", 2),
    act(
        "back.tab",
        "The other list",
        "What happened, or the decided requests.",
        "tab shift+tab",
        "back",
        "other list",
        3,
    ),
    act("back.earlier", "From earlier on", "Begin a day earlier.", "o", "back", "a day earlier", 4),
    # review
    act(
        "session.review",
        "Review its work",
        "Its files and their changes, hunk by hunk; comments on lines are sent back to it.",
        "d",
        "floor session",
        "review",
        41,
    ),
    act("review.up", "Up", "One line back.", "up k", "review", palette=False),
    act("review.down", "Down", "One line on.", "down j", "review", palette=False),
    act("review.page_up", "Page up", "One page back.", "pageup ctrl+u", "review", palette=False),
    act("review.page_down", "Page down", "One page on.", "pagedown ctrl+d", "review", palette=False),
    act("review.first", "First line", "To the beginning of the file.", "home g", "review", palette=False),
    act("review.last", "Last line", "To the end of the file.", "end G", "review", palette=False),
    act("review.left", "Left", "Back to the beginning of long lines.", "left h", "review", palette=False),
    act("review.right", "Right", "The rest of long lines.", "right l", "review", palette=False),
    act(
        "review.next", "Next hunk", "Its first change; at the end of a file, the next one's.", "n", "review", "hunk", 10
    ),
    act(
        "review.previous",
        "Previous hunk",
        "Its first change; at the beginning of a file, the last one of the file before.",
        "p",
        "review",
    ),
    act(
        "review.next_file", "Next file", "The file below in the list.", "right_square_bracket tab", "review", "file", 12
    ),
    act(
        "review.previous_file",
        "Previous file",
        "The file above in the list.",
        "left_square_bracket shift+tab",
        "review",
    ),
    act(
        "review.viewed",
        "Viewed",
        "Mark the file as viewed and go on to the next that is not; a file that changes loses its mark.",
        "space",
        "review",
        "viewed",
        14,
    ),
    act(
        "review.comment",
        "Comment on the line",
        "Also changes what you said there; an empty comment is taken away. Nothing is sent yet.",
        "c enter",
        "review",
        "comment",
        11,
    ),
    act(
        "review.why",
        "Why this line",
        "The calls that wrote it: their reasons, who let them run, what became of them. Of other lines, the file's.",
        "i",
        "review",
        "why",
        15,
    ),
    act(
        "review.send",
        "Send back",
        "Comments, or words of your own, shown first: an ended session goes on with them, a running one reads them.",
        "s",
        "review",
        "send back",
        13,
    ),
    act(
        "review.publish",
        "Ask for a review at the forge",
        "Push its branch and have your gh or glab open a pull or merge request (asks first).",
        "P",
        "review",
        "pr",
        42,
        asks=True,
    ),
    act("review.search", "Search", "Text in all files; f and F move between hits.", "slash", "review", "search", 43),
    act("review.hit", "Next hit", "The next line with the text, from the end on at the beginning.", "f", "review"),
    act("review.hit_before", "Previous hit", "The line with the text before.", "F", "review"),
)
