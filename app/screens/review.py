"""Reviewing a session's work: its files and their lines, what was viewed, and comments that are sent back to it."""

from __future__ import annotations

import os
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static, TextArea

from app.client import requests
from app.client.snapshot import Dirty, Snapshot
from app.framework.handlers import Handler, Handlers, bindings
from app.review import publishing, review_store
from app.review.comments import Review, anchor_of, message, touches_told
from app.screens.base import WatchScreen
from app.screens.dialogs.continuing import ContinueDialog
from app.screens.dialogs.dialogs import Ask, said
from app.screens.dialogs.publish import PublishDialog
from app.screens.dialogs.taking import MergeDialog
from app.screens.session_commands import not_merging
from app.screens.why import WhyScreen
from app.terminal.clipboard import Selected
from harness.domain.states import Desired
from harness.domain.steered import Steered
from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import counted
from harness.protocol.client import SupervisorError, Unreachable
from harness.protocol.config import config as configuration
from harness.views.replies import Compared
from harness.views.session_views import SessionRow
from widgets.base.entry_list import EntryList, Item
from widgets.base.help_bar import HelpBar
from widgets.diff.patch import patch_display
from widgets.diff.patch_files import FilePatch, Place, files_of, find, next_hunk, rows_of_hunk
from widgets.diff.patch_view import PatchView
from widgets.fleet.fleet_bar import Banner

_WIDE = 100
"""Cells from which on the files stand beside the lines instead of above them."""
_VIEWED = "✓"
_CUT = "NOT ALL IS SHOWN: the patch is longer than 2 MiB"
_LETTERS = {"added": "new", "untracked": "new", "deleted": "gone", "renamed": "moved", "modified": "", "type": "type"}


class SendBack(Ask[str]):
    """The whole message before it is sent, to be read and changed."""

    def __init__(self, row: SessionRow, text: str) -> None:
        how = "It goes on with this" if row.ended else "It reads this at its next turn"
        super().__init__("Send back to", row.name, f"{how}; change what you like:", said, lines=True, value=text)

    def fields(self) -> list[Widget]:
        return [TextArea(self._value, soft_wrap=True, show_line_numbers=False, id="field", classes="tall")]


class ReviewScreen(WatchScreen):
    """Looking moves nothing; comments stay until they were sent, also when the screen is closed."""

    DEFAULT_CSS = """
    ReviewScreen #about { height: 1; padding: 0 1; }
    ReviewScreen #work { height: 1fr; layout: vertical; }
    ReviewScreen #work EntryList { height: auto; max-height: 5; border-bottom: solid $border-blurred; }
    ReviewScreen #work.wide { layout: horizontal; }
    ReviewScreen #work.wide EntryList {
        width: 34; height: 1fr; max-height: 100%; border-bottom: none; border-right: solid $border-blurred;
    }
    ReviewScreen PatchView { height: 1fr; width: 1fr; }
    ReviewScreen #touches { height: auto; max-height: 5; padding: 0 1; color: $warning; }
    ReviewScreen #said { height: auto; max-height: 4; padding: 0 2; color: $warning; }
    """
    SCOPES: ClassVar[tuple[str, ...]] = ("review",)
    BINDINGS: ClassVar[list[BindingType]] = bindings("review")
    AUTO_FOCUS: ClassVar[str | None] = "PatchView"

    def __init__(self, sid: str, review: Review) -> None:
        super().__init__()
        self.sid = sid
        self.review = review
        self.files: list[FilePatch] = []
        self._file = 0
        self._trouble = "reading …"
        self._cut = False
        self._seen = ""
        self._touches: list[Steered] = []
        self._needle = ""
        self._sending = False
        self._no_forge = publishing.missing(os.environ)

    def compose(self) -> ComposeResult:
        yield Banner()
        yield Static(id="about")
        yield Static(id="touches")
        with Container(id="work"):
            files = EntryList()
            files.can_focus = False
            yield files
            yield PatchView()
        yield Static(id="said")
        yield HelpBar()

    def on_mount(self) -> None:
        super().on_mount()
        self._fold(self.app.size.width)
        self._paint()
        self.host.run_beside(self._read())

    def on_resize(self, event: events.Resize) -> None:
        self._fold(event.size.width)

    def _fold(self, width: int) -> None:
        self.query_one("#work").set_class(width >= _WIDE, "wide")

    @property
    def view(self) -> PatchView:
        """The lines of the current file."""
        return self.query_one(PatchView)

    @property
    def list(self) -> EntryList:
        """The files."""
        return self.query_one(EntryList)

    @property
    def target(self) -> SessionRow | None:
        """The session that is reviewed."""
        return self.host.snapshot.rows.get(self.sid)

    @property
    def file(self) -> FilePatch | None:
        """The file that is shown."""
        return self.files[self._file] if self._file < len(self.files) else None

    @property
    def _place(self) -> Place:
        return self._file, self.view.at

    def sync(self, snapshot: Snapshot, dirty: Dirty) -> bool:
        if dirty & Dirty.LINK:
            self.query_one(Banner).say(
                "" if snapshot.live else snapshot.link.text, calm=snapshot.link.state == "connecting"
            )
        if dirty & Dirty.ROWS:
            self._paint_about()
            self.show_keys()
        return False

    # -- what is shown -----------------------------------------------------------------------------

    async def _read(self) -> None:
        try:
            found = await self.host.feed.reply(Compared, "diff", sid=self.sid)
        except (SupervisorError, Unreachable) as exc:
            self._trouble = str(exc)
            if self.stands:
                self._paint_about()
                self.host.tell(f"no diff: {exc}", bad=True)
            return
        before = self.file.path if self.file is not None else ""
        self.files = files_of(found.patch, found.files)
        self._trouble = "" if self.files else "it changed nothing"
        self._cut = found.truncated
        self._seen = found.seen
        self._touches = found.touches
        self._file = next((at for at, file in enumerate(self.files) if file.path == before), 0)
        if self.stands:
            self._paint(self.view.at if before else 0)

    def _paint(self, at: int | None = None) -> None:
        """Show everything anew, with this row of the file as the current line (None: the one that is)."""
        self.list.set_items([self._item(file) for file in self.files])
        self.list.move(self._file - self.list.at)
        if (file := self.file) is not None:
            marked = [row for row in range(len(file.rows)) if anchor_of(file, row) in self.review.comments]
            self.view.set_rows(file.rows, set(marked), self.view.at if at is None else at)
        self._paint_about()
        self.show_keys()

    def _paint_about(self) -> None:
        row = self.target
        name = to_display(row.name if row is not None else self.sid, limit=40)
        said = self._trouble
        if self.files:
            seen = sum(self.review.has_seen(file) for file in self.files)
            said = f"{seen} of {len(self.files)} viewed"
        if row is not None and row.merged:
            said += f" · merged into {row.merged}"
        if comments := len(self.review.comments):
            said += f" · {counted(comments, 'comment')} to send back"
        cut = f"  {_CUT}" if self._cut else ""
        self._paint_touches()
        self.query_one("#about", Static).update(
            Content.assemble((f"Review {name}", "bold"), f"  {to_display(said, limit=200)}", (cut, "bold $error"))
        )

    def _paint_touches(self) -> None:
        """Where the work touches how tests are found, run, compared or ended: the file at hand first."""
        here = self.file.path if self.file is not None else ""
        ordered = sorted(self._touches, key=lambda one: one.path != here)
        field = self.query_one("#touches", Static)
        field.display = bool(ordered)
        field.update(Content(touches_told(ordered)))

    def _item(self, file: FilePatch) -> Item:
        counts = "not text" if file.added is None else f"+{file.added} -{file.removed or 0}"
        seen = self.review.has_seen(file)
        comments = sum(anchor.path == file.path for anchor in self.review.comments)
        words = " ".join(
            part
            for part in (
                _VIEWED if seen else " ",
                f"✎{comments}" if comments else "",
                file.path,
                _LETTERS.get(file.status, file.status or "not in the list of files"),
            )
            if part
        )
        return Item(words, "quiet" if seen else "text", counts, "", "quiet")

    def on_patch_view_moved(self) -> None:
        """What was said about the current line stands below."""
        file = self.file
        said = self.review.comments.get(anchor_of(file, self.view.at)) if file is not None else None
        field = self.query_one("#said", Static)
        field.display = said is not None
        field.update(Content(to_display(said.text, limit=600) if said is not None else ""))

    def on_click(self) -> None:
        if self.list.at != self._file:
            self._go((self.list.at, 0))

    def _go(self, place: Place | None) -> None:
        if place is None or not self.files:
            return
        self._file = place[0]
        self._paint(place[1])

    # -- actions -----------------------------------------------------------------------------------

    def selected_text(self) -> Selected | None:
        file = self.file
        if file is None:
            return None
        hunk = rows_of_hunk(file, self.view.at)
        return Selected("the hunk", lambda: "\n".join(patch_display(row.text) for row in hunk), file.path)

    def handlers(self) -> Handlers:
        return {
            "review.up": Handler(lambda: self.view.go(self.view.at - 1), self._nothing),
            "review.down": Handler(lambda: self.view.go(self.view.at + 1), self._nothing),
            "review.page_up": Handler(lambda: self.view.page(-1), self._nothing),
            "review.page_down": Handler(lambda: self.view.page(1), self._nothing),
            "review.first": Handler(lambda: self.view.go(0), self._nothing),
            "review.last": Handler(lambda: self.view.go(10**9), self._nothing),
            "review.left": Handler(lambda: self.view.slide(-1), self._nothing),
            "review.right": Handler(lambda: self.view.slide(1), self._nothing),
            "review.next": Handler(lambda: self._hunk(1), self._nothing),
            "review.previous": Handler(lambda: self._hunk(-1), self._nothing),
            "review.next_file": Handler(lambda: self._step(1), self._nothing),
            "review.previous_file": Handler(lambda: self._step(-1), self._nothing),
            "review.viewed": Handler(self._viewed, self._nothing),
            "review.comment": Handler(self._comment, self._nothing),
            "review.why": Handler(self._why, self._nothing),
            "review.search": Handler(self._search, self._nothing),
            "review.hit": Handler(lambda: self._hit(1), self._not_searched),
            "review.hit_before": Handler(lambda: self._hit(-1), self._not_searched),
            "review.send": Handler(self._send, self._not_sending, self._sending_means),
            "session.merge": Handler(self._merge, self._not_merging),
            "review.publish": Handler(self._publish, self._not_publishing),
            "session.reload": Handler(lambda: self.host.run_beside(self._read())),
        }

    def _nothing(self) -> str:
        return "" if self.files else f"there is nothing to look at: {self._trouble}"

    def _not_searched(self) -> str:
        return self._nothing() or ("" if self._needle else "nothing was searched for yet")

    def _not_sending(self) -> str:
        row = self.target
        if row is None:
            return "this session is gone"
        if row.desired == Desired.STOPPED and not row.ended:
            return f"{row.name} is being stopped; send it back when it has ended"
        return "it is being sent" if self._sending else ""

    def _sending_means(self) -> str:
        row = self.target
        if self.review.comments or row is None:
            return ""
        return "continue" if row.ended else "say"

    def _not_merging(self) -> str:
        row = self.target
        return not_merging(row) if row is not None else "this session is gone"

    def _merge(self) -> None:
        if row := self.target:
            self.app.push_screen(MergeDialog(row, self._seen, self._touches))

    def _not_publishing(self) -> str:
        row = self.target
        if row is None:
            return "this session is gone"
        if not row.ended:
            return f"{row.name} has not ended; its work may still change"
        return f"there is nothing to publish: {self._trouble}" if not self.files else self._no_forge

    def _publish(self) -> None:
        if row := self.target:
            self.app.push_screen(PublishDialog(row, self._seen))

    def _hunk(self, step: int) -> None:
        place = next_hunk(self.files, self._place, step)
        if place is None:
            self.host.explain("this is the last hunk" if step > 0 else "this is the first hunk")
        self._go(place)

    def _step(self, step: int) -> None:
        self._go((max(0, min(len(self.files) - 1, self._file + step)), 0))

    def _viewed(self) -> None:
        """Mark the file, and go on to the next one that was not viewed."""
        file = self.file
        if file is None:
            return
        seen = self.review.turn(file)
        self._keep()
        if not seen:
            self._paint()
            return
        order = [*range(self._file + 1, len(self.files)), *range(self._file)]
        ahead = next((at for at in order if not self.review.has_seen(self.files[at])), None)
        if ahead is None:
            self._paint()
        else:
            self._go((ahead, 0))

    def _keep(self) -> None:
        try:
            review_store.store(self.host.folders.state, self.sid, self.review)
        except OSError as exc:
            self.host.tell(f"this review is not kept beyond this screen: {exc.strerror or exc}", bad=True)

    def _comment(self) -> None:
        file = self.file
        if file is None:
            return
        at = self.view.at
        before = self.review.comments.get(anchor_of(file, at))
        text = file.rows[at].text if anchor_of(file, at).line else "The file as a whole."

        def written(said: str | None) -> None:
            if said is not None:
                self.review.say(file, at, said)
                self._keep()
                self._paint()

        self.app.push_screen(
            Ask(
                "Comment on",
                file.path,
                text,
                str.strip,
                lines=True,
                value=before.text if before is not None else "",
                submit="keep",
            ),
            written,
        )

    def _why(self) -> None:
        if (file := self.file) is not None:
            row = file.rows[self.view.at]
            folder = self.host.folders.session(self.sid).root
            self.app.push_screen(WhyScreen(folder, file.path, row.text[1:] if row.role == "add" else ""))

    def _search(self) -> None:
        def given(text: str | None) -> None:
            if text:
                self._needle = text
                self._hit(1)

        self.app.push_screen(
            Ask("Search in", "all files", "Text, whatever its case.", said, value=self._needle, submit="search"), given
        )

    def _hit(self, step: int) -> None:
        place = find(self.files, self._needle, self._place, step)
        if place is None:
            self.host.tell(f"{self._needle}: found nowhere")
        self._go(place)

    def _send(self) -> None:
        row = self.target
        if row is None:
            return
        if row.ended and not self.review.comments:
            self.app.push_screen(ContinueDialog(row))
        else:
            self._ask_send(row, message(self.review) if self.review.comments else "")

    def _ask_send(self, row: SessionRow, text: str) -> None:
        def checked(text: str | None) -> None:
            if text:
                self.host.run_beside(self._send_back(text))

        self.app.push_screen(SendBack(row, text), checked)

    async def _send_back(self, text: str) -> None:
        """Send the comments, and forget them once the supervisor has them; those written meanwhile stay."""
        row = self.target
        if row is None or self._sending:
            return
        self._sending = True
        sent = dict(self.review.comments)
        try:
            if row.ended:
                wish = requests.wish_of(text, "", {}, [])
                await self.host.feed.call("continue", **requests.go_on(self.host.folders, row.sid, wish))
            else:
                await self.host.feed.call("say", **requests.say(row.sid, text))
        except (SupervisorError, Unreachable, configuration.ConfigError) as exc:
            self.host.tell(f"{row.name}: your {'comments stay' if sent else 'words were not sent'}: {exc}", bad=True)
            if self.app.screen is self and not sent:
                self._ask_send(row, text)
            return
        finally:
            self._sending = False
        for anchor, comment in sent.items():
            if self.review.comments.get(anchor) == comment:
                del self.review.comments[anchor]
        self._keep()
        what = "comments" if sent else "words"
        self.host.tell(f"{row.name}: has your {what}" + ("; it goes on" if row.ended else ""))
        if self.stands:
            self._paint()
