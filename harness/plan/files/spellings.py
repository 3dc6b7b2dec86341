"""The keys and words that plan files use for the same things: the one table of them. Pure.

Keys are compared without case, ``_`` and ``-``: `acceptance_criteria` is `acceptanceCriteria`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

FEATURES = "features"
STORIES = "userStories"
TASKS = "tasks"
LISTS = {FEATURES: "F", STORIES: "US", "stories": "S", TASKS: "T", "items": "I"}
"""What a list of entries may be called, and what the ids begin with of entries that have none."""
GROUPS = ("phases", "epics", "milestones", "sprints")
"""What a list of phases may be called that have their entries inside."""
ID = ("id", "key", "uid", "taskId", "storyId", "featureId")
TITLE = ("title", "name", "feature", "task", "story", "userStory", "summary", "subject", "content", "description")
ABOUT = ("description", "details")
DECIDED = ("passes", "passed", "passing", "done", "completed", "complete", "isComplete", "isDone", "finished")
"""Keys whose value is true or false."""
STATUS = ("status", "state")
"""Keys whose value is one of the words below; read where none of `DECIDED` is there."""
CRITERIA = (
    "acceptanceCriteria",
    "acceptance",
    "criteria",
    "successCriteria",
    "exitCriteria",
    "definitionOfDone",
    "doneWhen",
    "validation",
)
"""Sentences."""
COMMANDS = (
    "verifyCommands",
    "verifyCommand",
    "verificationCommands",
    "verificationCommand",
    "testCommands",
    "testCommand",
    "checkCommand",
    "commands",
    "command",
)
"""Commands, as they are run."""
EITHER = ("verify", "verification", "test", "tests", "checks", "check")
"""Sentences or commands."""
WAYS = ("steps", "testSteps", "verificationSteps", "testStrategy")
"""Sentences that are criteria only where the entry has no others; a command among them always is one."""
AFTER = (
    "depends_on",
    "dependencies",
    "dependency",
    "depends",
    "blockedBy",
    "blockers",
    "requires",
    "needs",
    "after",
    "prerequisites",
    "prereqs",
    "waitsFor",
)
"""Entries that must pass first."""
BEFORE = ("blocks",)
"""Entries that must wait for this one."""
PRIORITY = "priority"

DONE = ("done", "completed", "complete", "passed", "passing", "pass", "finished", "verified", "implemented", "closed")
OPEN = {
    "pending": "done",
    "todo": "done",
    "to do": "done",
    "not started": "done",
    "open": "closed",
    "new": "done",
    "backlog": "done",
    "planned": "done",
    "ready": "done",
    "draft": "done",
    "in progress": "done",
    "active": "done",
    "doing": "done",
    "wip": "done",
    "started": "done",
    "review": "done",
    "in review": "done",
    "needs review": "done",
    "blocked": "done",
    "incomplete": "complete",
    "failing": "passing",
    "failed": "passed",
    "fail": "pass",
    "unverified": "verified",
}
"""What an entry is called that does not pass, and what it becomes where the file itself has no word for that."""
SET_ASIDE = ("cancelled", "canceled", "deferred", "deprecated", "skipped", "wontfix", "wont do", "obsolete", "archived")
"""What an entry is called that nobody is to work on."""
PRIORITIES = {
    "critical": 1,
    "urgent": 1,
    "highest": 1,
    "blocker": 1,
    "must": 2,
    "must have": 2,
    "high": 2,
    "should": 3,
    "should have": 3,
    "medium": 3,
    "normal": 3,
    "could": 4,
    "could have": 4,
    "low": 4,
    "lowest": 5,
    "wont": 5,
    "nice to have": 5,
}
_P = re.compile(r"p(\d)")

ORDER_LIKE = re.compile(
    r"depend|blocked_?by|blocker|blocks|prereq|predecessor|successor|requires?$|^after|^before|waits?_?for|follows"
    r"|precede",
    re.IGNORECASE,
)
STATE_LIKE = re.compile(
    r"status|^state$|^(?:is|was)?_?(?:done|complete|completed|pass|passes|passed|passing|finished|implemented|ready)$",
    re.IGNORECASE,
)
CRITERION_LIKE = re.compile(
    r"criteri|verif|acceptance|^tests?$|test_?(?:command|step|case|plan)|command|assert|^checks?", re.IGNORECASE
)
"""Keys that are none of the table's and look as if they were meant."""


def plain(key: str) -> str:
    """A key or word without what differs between spellings of it."""
    return re.sub(r"[\s_-]+", "", key).lower()


def word(text: str) -> str:
    """A word of a status or priority, with single spaces between its parts."""
    return re.sub(r"[\s_-]+", " ", text.replace("'", "").replace("’", "")).strip().lower()


def present(item: Mapping[str, object], names: tuple[str, ...]) -> list[str]:
    """The keys of ``item`` that mean one of these names, by the order of the names; the exact spelling comes first."""
    by_name: dict[str, list[str]] = {}
    for key in item:
        by_name.setdefault(plain(key), []).append(key)
    found: list[str] = []
    for name in names:
        for key in sorted(by_name.get(plain(name), ()), key=lambda one: one != name):
            if key not in found:
                found.append(key)
    return found


KNOWN = frozenset(
    plain(name)
    for names in (ID, TITLE, ABOUT, DECIDED, STATUS, CRITERIA, COMMANDS, EITHER, WAYS, AFTER, BEFORE, (PRIORITY,))
    for name in names
)


def passes(text: str) -> bool | None:
    """Whether a word of a status says that it passes; None for a word that says neither."""
    said = word(text)
    if said in DONE:
        return True
    return False if said in OPEN else None


def set_aside(text: str) -> bool:
    """Whether a word of a status says that nobody is to work on it."""
    return word(text) in SET_ASIDE


def as_spelled(name: str, like: str) -> str:
    """A word of ours in the letters and with the separators of another."""
    if like.isupper():
        return name.upper()
    return name.capitalize() if like[:1].isupper() else name


def priority(value: object) -> int | None:
    """The lowest comes first; None for what says nothing."""
    if isinstance(value, str):
        said = word(value)
        if (found := _P.fullmatch(said)) is not None:
            return int(found[1]) + 1
        if said in PRIORITIES:
            return PRIORITIES[said]
        value = int(said) if said.isascii() and said.isdecimal() and len(said) < 10 else None
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 31:
        return value
    return None
