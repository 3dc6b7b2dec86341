"""What screens need of the application. It implements this; they know no more of it, so that neither imports the other
in a circle.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import TYPE_CHECKING, Protocol, cast

from textual.app import App

from app.client.feed import Feed
from app.client.snapshot import Snapshot
from app.framework.handlers import Handlers
from app.input.keymap import Keymap
from harness.protocol.paths import Folders

if TYPE_CHECKING:
    from widgets.log.log_rows import LogSource


class Host(Protocol):
    """The application as its screens see it; what Textual gives every application they ask their ``app`` for."""

    folders: Folders
    keys: Keymap
    feed: Feed
    prefix: str
    """The first key of a sequence while its second one is awaited, else empty."""
    frames: int
    """How often the terminal was painted."""

    drafts: dict[str, str]
    """What was written to a request and not sent, by its id."""

    @property
    def snapshot(self) -> Snapshot:
        """What is known now."""

    def log_of(self, sid: str) -> LogSource:
        """The log of a session, from wherever it can be read."""

    def wake(self) -> None:
        """Something on screen has more to read: go on until nothing has."""

    @property
    def everywhere(self) -> Handlers:
        """What works on every screen that does not do it itself."""

    async def no_hand(self, key: str) -> str:
        """Why the key or click now handled, ``key`` in words, must not decide; empty when a hand pressed it."""

    def input_age(self) -> float:
        """Seconds since the input that is being handled was made."""

    def tell(self, text: str, *, bad: bool = False) -> None:
        """A short notice; the text is untrusted."""

    def explain(self, why: str) -> None:
        """Say why a key does nothing now; while that is shown, pressing on does not say it again."""

    def send(self, done: str, op: str, **arguments: object) -> None:
        """Send a request beside everything else; say what the reply notes, else ``done``, or why it was refused."""

    async def change(self, done: str, op: str, arguments: Mapping[str, object], unsure: str = "") -> None:
        """As `send`, and come back when that was said; ``unsure`` is what may hold all the same when no answer came."""

    def run_beside(self, work: Coroutine[object, object, object]) -> None:
        """Run a coroutine owned by the application, without holding up keys."""

    def open_session(self, sid: str, tab: str = "") -> None:
        """Show one session."""

    def open_review(self, sid: str) -> None:
        """Show the work of one session, to look at it and to send comments back."""

    def comments_kept(self, sid: str) -> int:
        """How many comments on the work of one session were not sent back to it."""

    def open_queue(self, approval_id: str) -> None:
        """Show the queue, on this request when one is named."""


def host_of(app: App[object]) -> Host:
    """The application that is running, as its screens see it."""
    return cast("Host", app)
