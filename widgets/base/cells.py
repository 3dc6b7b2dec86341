"""Cells, counts and state marks: the small vocabulary that every line of the screen is drawn with. Pure."""

from __future__ import annotations

import re
from bisect import bisect_left

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from harness.domain import outcomes, problems
from harness.domain.calls.approval_kind import Request
from harness.domain.states import State
from harness.domain.text.display_safe import to_display
from harness.views.session_views import SessionRow

ELLIPSIS = "…"
_ASKING = tuple(f"{problems.request(kind)}: " for kind in (Request.TOOL, Request.QUESTION))
_WORD = re.compile(" *[^ ]+")
_ITEM = re.compile(r" *(?:[-*+•]|\d{1,3}[.)]) +| +")

# One mark per state; every one is a single cell in all common terminal fonts, and the word always stands beside it.
MARKS: dict[str, str] = {
    State.WAITING: "◆",
    State.RUNNING: "●",
    State.STARTING: "○",
    State.PARKED: "‖",
    State.LIMITED: "◷",
    State.DONE: "✓",
    State.FAILED: "✗",
    State.STOPPED: "■",
    State.LOST: "!",
    State.UNKNOWN: "◌",
}

QUESTION = "?"
"""Waiting because the agent asks something."""
NO_CRITERION = "∅"
"""Nothing but its agent's word decides whether it is done."""
STILL = "="
"""Done, and every check passes as it did before the work."""
UNVERIFIED = "~"
"""Done, and nothing but somebody's word says so."""
_PROVED = {outcomes.JUDGED: MARKS[State.DONE], outcomes.VERIFIED: MARKS[State.DONE], outcomes.STILL_PASSES: STILL}

# Which colour role a state is drawn in; the roles are component classes of the widgets.
ROLES: dict[str, str] = {
    State.WAITING: "attention",
    State.RUNNING: "good",
    State.STARTING: "good",
    State.PARKED: "quiet",
    State.LIMITED: "attention",
    State.DONE: "good",
    State.FAILED: "bad",
    State.STOPPED: "quiet",
    State.LOST: "attention",
    State.UNKNOWN: "attention",
}


def mark(state: str) -> str:
    """The one-cell mark of a state; a state this version does not know is shown as unknown."""
    return MARKS.get(state, MARKS[State.UNKNOWN])


def row_mark(row: SessionRow) -> str:
    """The mark of a session: done by checks that still pass, or by somebody's word, and a question, have their own."""
    if row.state == State.DONE:
        return _PROVED.get(row.proof, NO_CRITERION if row.no_criterion else UNVERIFIED)
    return QUESTION if row.asks == Request.QUESTION else mark(row.state)


def doing(row: SessionRow) -> str:
    """What it does now, as it is, without the words that its mark and its group say already."""
    said = next((words for words in _ASKING if row.state == State.WAITING and row.detail.startswith(words)), "")
    return row.detail[len(said) :]


def role(state: str) -> str:
    """``attention``, ``good``, ``bad`` or ``quiet``."""
    return ROLES.get(state, "attention")


def count(number: int) -> str:
    """A count in at most five cells: ``999``, ``12.3k``, ``4.5M``."""
    if number < 1000:
        return str(number)
    for unit, size in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        value = number / size
        if value < 99.95:
            return f"{value:.1f}{unit}"
        if value < 999.5 or unit == "G":
            return f"{value:.0f}{unit}"
    return str(number)


def length(text: str) -> int:
    """How many cells a text takes."""
    return cell_len(text)


def fit(text: str, width: int) -> str:
    """Exactly ``width`` cells: padded with blanks, or cut with an ellipsis."""
    if width <= 0:
        return ""
    if cell_len(text) <= width:
        return text + " " * (width - cell_len(text))
    return set_cell_size(text, width - 1) + ELLIPSIS


def clip(text: str, width: int) -> str:
    """At most ``width`` cells, cut with an ellipsis."""
    return text if cell_len(text) <= width else fit(text, width)


def safe(text: str, width: int) -> str:
    """Untrusted text for one line of ``width`` cells: displayed safely, then cut."""
    return clip(to_display(text[: max(16, width * 4)]), width)


def wrap(text: str, width: int) -> list[str]:
    """Safe text in lines of at most ``width`` cells (two at least), broken between words; what goes on stands under the
    text of a list's item. A word longer than a line is cut.
    """
    width = max(2, width)
    if cell_len(text) <= width:
        return [text]
    item = _ITEM.match(text)
    hang = min(cell_len(item[0]), width // 2) if item else 0
    lines: list[str] = []
    line = ""
    used = 0
    for word in _WORD.findall(text):
        cells = cell_len(word)
        if used > hang and used + cells > width:
            lines.append(line)
            line = " " * hang
            used = hang
            word = word.lstrip(" ")
            cells = cell_len(word)
        while used + cells > width:
            head = chop_cells(word, width - used)[0] or word[0]
            if used and cell_len(head) > width - used:  # a wide character has no room behind what only hangs
                lines += [line] if line.strip() else []
                line = ""
                used = 0
                continue
            lines.append(line + head)
            word = word[len(head) :]
            line = " " * hang
            used = hang
            cells = cell_len(word)
        line += word
        used += cells
    return [*lines, line]


def head(text: str, width: int, rows: int) -> list[str]:
    """Untrusted text in at most so many lines of ``width`` cells; what has no room is counted at the end."""
    whole = wrap(to_display(text), width)
    if len(whole) <= rows:
        return whole

    def over(limit: int) -> bool:
        return len(wrap(to_display(text, limit=limit), width)) > rows

    limit = bisect_left(range(rows * width), True, key=over)
    return wrap(to_display(text, limit=max(0, limit - 1)), width)


def bar(used: int, limit: int | None, width: int) -> tuple[str, str]:
    """(filled, empty) parts of a meter of ``width`` cells; a used part is never drawn as nothing."""
    if limit is None or width <= 0:
        return "", ""
    share = 1.0 if limit <= 0 else min(1.0, used / limit)
    full = min(width, max(1 if used > 0 else 0, int(share * width + 0.5)))
    if share < 1.0 and full == width and width > 1:
        full = width - 1
    return "━" * full, "─" * (width - full)


def plan(row: SessionRow, width: int) -> tuple[tuple[str, str], ...]:
    """How many entries of its plan pass, in figures and as a meter of ``width`` cells: (text, role) from left to right;
    its checks are among them.
    """
    done, rest = bar(row.plan_passed, row.plan_total, width)
    whole = row.plan_passed == row.plan_total
    figures = f"plan {row.plan_passed}/{row.plan_total} "
    return (figures, "good" if whole else "quiet"), (done, "good" if whole else "meter"), (rest, "quiet")


def lines(row: SessionRow) -> str:
    """The lines that it added and removed, as ``+40-3``; empty while nobody counted them."""
    if row.files is None:
        return ""
    return f"+{count(row.lines_added)}-{count(row.lines_removed)}" if row.files else "–"


class Line:
    """Builds one strip: runs from the left, runs from the right, and the gap between them filled."""

    __slots__ = ("_left", "_right", "_used", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self._left: list[tuple[str, Style]] = []
        self._right: list[tuple[str, Style]] = []
        self._used = 0

    @property
    def room(self) -> int:
        """Cells still free."""
        return max(0, self.width - self._used)

    def left(self, text: str, style: Style) -> Line:
        """Append trusted or already safe text, cut to the free room."""
        text = clip(text, self.room) if text else ""
        if text:
            self._left.append((text, style))
            self._used += cell_len(text)
        return self

    def right(self, text: str, style: Style) -> Line:
        """Add text at the right edge (before what is there already); left out when it does not fit whole."""
        cells = cell_len(text)
        if text and cells <= self.room:
            self._right.insert(0, (text, style))
            self._used += cells
        return self

    def strip(self, base: Style, fill: str = " ", fill_style: Style | None = None) -> Strip:
        """The finished strip; ``base`` lies under every run."""
        segments = [Segment(text, base + style) for text, style in self._left]
        if self.room:
            segments.append(Segment(fill * self.room, base + fill_style if fill_style else base))
        segments += [Segment(text, base + style) for text, style in self._right]
        return Strip(segments, self.width)


def window(text: str, style: Style, left: int, width: int, fill: Style) -> Strip:
    """``width`` cells of a text from cell ``left`` on; an ellipsis stands at each end that something is cut off."""
    whole = Strip([Segment(text, style)])
    shown = whole.crop_extend(left, left + width, fill)
    before = left > 0 and whole.cell_length > 0
    after = whole.cell_length > left + width
    if width <= before + after or not (before or after):
        return shown
    mark = Strip([Segment(ELLIPSIS, style)])
    parts = [mark] * before + [shown.crop(int(before), width - after)] + [mark] * after
    return Strip.join(parts)
