"""A review of one session's work as a person makes it: which files were viewed, and what was said about which lines."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness.domain.steered import Steered
from harness.domain.text.display_safe import to_display
from widgets.diff.patch_files import FilePatch

_QUOTED = 160
_PATH = 300
_PLACES = 4
_FIRST = "I looked at your work. Please see to each of these, then finish again."


@dataclass(frozen=True, slots=True, order=True)
class Anchor:
    """A line that something is said about; ``line`` 0 is the file as a whole, ``old`` a line that was removed."""

    path: str
    line: int = 0
    old: bool = False


@dataclass(frozen=True, slots=True)
class Comment:
    """What a person said, and the line (untrusted) as it was then."""

    text: str
    line: str


@dataclass(slots=True)
class Review:
    """A file that changes after it was viewed is not viewed any more."""

    viewed: dict[str, str] = field(default_factory=dict)
    comments: dict[Anchor, Comment] = field(default_factory=dict)

    def has_seen(self, file: FilePatch) -> bool:
        """True when the current version of this file was marked as viewed."""
        return self.viewed.get(file.path) == digest(file)

    def turn(self, file: FilePatch) -> bool:
        """Toggle the mark of being viewed; True if it is marked now."""
        if self.has_seen(file):
            del self.viewed[file.path]
            return False
        self.viewed[file.path] = digest(file)
        return True

    def say(self, file: FilePatch, row: int, text: str) -> None:
        """Set the comment on this row, replacing any earlier one; empty text deletes it."""
        anchor = anchor_of(file, row)
        if text.strip():
            self.comments[anchor] = Comment(text.strip(), file.rows[row].text if anchor.line else "")
        else:
            self.comments.pop(anchor, None)


def digest(file: FilePatch) -> str:
    """Hash of a file's diff, to notice that it changed after it was viewed."""
    lines = "\n".join((file.status, *(row.text for row in file.rows)))
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()


def anchor_of(file: FilePatch, row: int) -> Anchor:
    """The file and line, old or new, that a comment on this row refers to."""
    one = file.rows[row]
    return Anchor(file.path, one.new or one.old, old=not one.new and one.old > 0)


def touches_told(places: Sequence[Steered]) -> str:
    """Where the work touches how tests are found, run, compared or ended, a line each; empty where it does not."""
    if not places:
        return ""
    more = len(places) - _PLACES
    lines = [to_display(one.told, limit=_PATH) for one in places[:_PLACES]]
    rest = f" (and {more} more: watchfloor diff --stat ID)" if more > 0 else ""
    return "\n".join((f"touches how tests are found, run, compared or ended{rest}:", *lines))


def message(review: Review) -> str:
    """All comments as one message to the agent, by file and line. Quoted code is cut to one line and displayed safely,
    so that it cannot be mistaken for the person's words.
    """
    said = [_FIRST]
    for number, (anchor, comment) in enumerate(sorted(review.comments.items()), 1):
        where = to_display(anchor.path, limit=_PATH)
        if anchor.line:
            before = " as it was before your change" if anchor.old else ""
            where += f", line {anchor.line}{before}"
        quoted = f"\n   > {to_display(comment.line, limit=_QUOTED)}" if comment.line else ""
        words = "\n   ".join(comment.text.split("\n"))
        said.append(f"{number}. {where}{quoted}\n   {words}")
    return "\n\n".join(said)
