"""A place where a session's work touches how tests are found, run, compared or ended, as clients and a judge see it."""

from __future__ import annotations

import msgspec


class Steered(msgspec.Struct, frozen=True):
    """A place that changes how tests run; ``line`` is 0 for the file as a whole. Texts are untrusted: whoever shows
    them passes the display function.
    """

    path: str
    line: int
    why: str

    @property
    def told(self) -> str:
        """``file:line: why``."""
        where = f"{self.path}:{self.line}" if self.line else self.path
        return f"{where}: {self.why}"
