"""The rows of one session's transcript, read from its log a page at a time, wherever somebody looks."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.eventlog import blobs
from harness.eventlog.framing import LogError
from harness.events import message_parts
from harness.events import types as t
from harness.reports.transcript import PAGE, Page
from harness.reports.transcript_row import Row
from widgets.log.log_rows import LogSource

_KEPT = 6
_MOST_BYTES = 1 << 20
_EMPTY_PAGES = 64
_LATER = (b'"type":"tool.', b'"type":"approval.')


class Place(NamedTuple):
    """Where a row stands: its page, and its number in it."""

    page: int
    row: int


class Pages:
    """The transcript of a log, by place. Not thread-safe."""

    def __init__(self, source: LogSource) -> None:
        """Raises LogError, OSError."""
        self._index = source()
        self.waiting = False
        """Set when a page was looked at that is not all here; whoever cares clears it before."""
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

    def arrived(self) -> bool:
        """True when records came that a page was waiting for."""
        return self._index.arrived()

    def rows(self, number: int) -> list[Row]:
        """The rows of a page, as far as the log goes and is here. Raises LogError, OSError."""
        page = self._pages.pop(number, None) or Page(number)
        self._pages[number] = page
        while len(self._pages) > _KEPT:
            del self._pages[next(iter(self._pages))]
        head = len(self._index)
        while page.wants(head):
            if not self._index.has(page.next, min(head, page.next + PAGE)):
                self.waiting = True
                break
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
        home = self._index.home
        if not isinstance(body, t.ModelMessage) or body.parts_blob is None or body.parts_blob.bytes > _MOST_BYTES:
            return None
        if home is None:
            return None
        try:
            return message_parts.text_of(message_parts.decode(blobs.get(home / "blobs", body.parts_blob.sha)))
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
        """The row that the record ``seq`` began, or the next one, or the last one; None while that is not here."""
        number = max(0, seq) // PAGE
        if number * PAGE >= len(self._index):
            return self.last()
        found = next((i for i, row in enumerate(self.rows(number)) if row.seq >= seq), None)
        if found is not None:
            return Place(number, found)
        if self._missing(number):
            return None
        return self._on(number + 1) or self.last()

    def _back(self, number: int) -> Place | None:
        # Pages without a row are rare, and a long stretch of them ends the way rather than holding up the screen.
        for page in range(number, max(-1, number - _EMPTY_PAGES), -1):
            if rows := self.rows(page):
                return Place(page, len(rows) - 1)
            if self._missing(page):
                return None
        return None

    def _missing(self, number: int) -> bool:
        """True when records of a page that was looked at are not here yet."""
        page = self._pages.get(number)
        return page is not None and page.wants(len(self._index))

    def _on(self, number: int) -> Place | None:
        pages = -(-len(self._index) // PAGE)
        for page in range(number, min(pages, number + _EMPTY_PAGES)):
            if self.rows(page):
                return Place(page, 0)
            if self._missing(page):
                return None
        return None

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
    def home(self) -> Path | None:
        """The session's folder, where it is on our disk."""
        return self._index.home
