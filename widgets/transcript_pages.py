"""The rows of one session's transcript, read from its log a page at a time, wherever somebody looks."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.events import blobs, earlier, said
from harness.events import types as t
from harness.events.framing import LogError
from harness.events.offsets import OffsetIndex
from harness.events.transcript import PAGE, Page, Row

_KEPT = 6
_MOST_BYTES = 1 << 20
_EMPTY_PAGES = 64
_LATER = (b'"type":"tool.', b'"type":"approval.')


class Place(NamedTuple):
    """Where a row stands: its page, and its number in it."""

    page: int
    row: int


class Pages:
    """The transcript of a log folder, by place. Not thread-safe."""

    def __init__(self, folder: Path) -> None:
        """A folder that does not exist (yet) is an empty log. Raises NewerLog, OSError."""
        self._index = OffsetIndex(folder)
        self._blobs = folder.parent / "blobs"
        self._pages: dict[int, Page] = {}

    def close(self) -> None:
        self._index.close()
        self._pages.clear()

    @property
    def records(self) -> int:
        """Records of the log, as last looked at."""
        return len(self._index)

    def extend(self) -> int:
        """Look at the disk again; the number of new records, negative when the writer took some back.

        Raises LogError, OSError.
        """
        added = self._index.extend()
        if added < 0:
            self._pages.clear()
        return added

    def rows(self, number: int) -> list[Row]:
        """The rows of a page, as far as the log goes. Raises LogError, OSError."""
        page = self._pages.pop(number, None) or Page(number)
        self._pages[number] = page
        while len(self._pages) > _KEPT:
            del self._pages[next(iter(self._pages))]
        head = len(self._index)
        while page.wants(head):
            for line in self._index.lines(page.next, min(head, page.next + PAGE)):
                if not page.wants(head):
                    break
                self._feed(page, line)
        return page.rows

    def _feed(self, page: Page, line: bytes) -> None:
        if page.next >= page.stop and not any(kind in line[:120] for kind in _LATER):
            page.skip()
            return
        try:
            record = t.decode(line)
        except msgspec.DecodeError:
            page.damaged()
            return
        if record.seq != page.next:
            page.damaged()
        else:
            page.take(record, self._prose(record.body))

    def _prose(self, body: t.Body) -> str | None:
        """The prose of a reply that lies beside the log; None when it stands in the record, or cannot be read."""
        if not isinstance(body, t.ModelMessage) or body.parts_blob is None or body.parts_blob.bytes > _MOST_BYTES:
            return None
        try:
            return said.text_of(earlier.parts_in(blobs.get(self._blobs, body.parts_blob.sha)))
        except (LogError, OSError, ValueError):
            return None

    # -- moving ------------------------------------------------------------------------------------

    def row(self, place: Place) -> Row:
        """The row at a place that one of the methods below named. Raises LogError, OSError."""
        return self.rows(place.page)[place.row]

    def last(self) -> Place | None:
        """The newest row; None when there is none."""
        return self._back((len(self._index) - 1) // PAGE)

    def before(self, place: Place) -> Place | None:
        """The row above; None at the beginning."""
        if place.row > 0:
            return Place(place.page, place.row - 1)
        return self._back(place.page - 1)

    def after(self, place: Place) -> Place | None:
        """The row below; None at the end."""
        if place.row + 1 < len(self.rows(place.page)):
            return Place(place.page, place.row + 1)
        return self._on(place.page + 1)

    def at(self, seq: int) -> Place | None:
        """The row that the record ``seq`` began, or the next one after it, or the last one."""
        number = max(0, seq) // PAGE
        if number * PAGE >= len(self._index):
            return self.last()
        found = next((i for i, row in enumerate(self.rows(number)) if row.seq >= seq), None)
        if found is not None:
            return Place(number, found)
        return self._on(number + 1) or self.last()

    def _back(self, number: int) -> Place | None:
        # Pages without a row are rare, and a long stretch of them ends the way rather than holding up the screen.
        for page in range(number, max(-1, number - _EMPTY_PAGES), -1):
            if rows := self.rows(page):
                return Place(page, len(rows) - 1)
        return None

    def _on(self, number: int) -> Place | None:
        pages = -(-len(self._index) // PAGE)
        return next(
            (Place(page, 0) for page in range(number, min(pages, number + _EMPTY_PAGES)) if self.rows(page)), None
        )

    # -- the whole of a row ------------------------------------------------------------------------

    def behind(self, row: Row) -> list[t.Record]:
        """The records that a row stands for, as far as they can be read. Raises LogError, OSError."""
        found = []
        for seq in row.records:
            try:
                found.append(t.decode(self._index.line(seq)))
            except (msgspec.DecodeError, IndexError):
                continue
        return found

    @property
    def payloads(self) -> Path:
        """The folder of payloads too big for a record."""
        return self._blobs
