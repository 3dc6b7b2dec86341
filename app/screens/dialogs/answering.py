"""Answering a question where it is seen: a line to write in, the offered answers by their numbers, and a draft that
stays when the line is closed.
"""

from __future__ import annotations

from collections.abc import Callable

from rich.cells import cell_len
from textual import events
from textual.app import App
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static, TextArea

from app.client import requests
from app.framework.application import Host
from app.screens.dialogs.dialogs import Dialog
from harness.domain.calls.approval_kind import SPOKEN, Request
from harness.domain.text.display_safe import to_display, to_display_lines
from harness.protocol.client import SupervisorError, Unreachable
from harness.protocol.config import config as configuration
from harness.tools import person_tool
from harness.tools.person_tool import Answer, read
from harness.views.session_views import ApprovalView

_WRAP = 70
"""Cells of a line of the dialog."""
_INSTRUCTION = "Your text is its next instruction."
_RESULT = "Your text becomes the result of the call; nothing runs."


class AnswerField(TextArea):
    """Sends on enter; what is pasted keeps its lines."""

    class Submitted(Message):
        """Enter was pressed."""

    async def _on_key(self, event: events.Key) -> None:
        if event.key == "enter":
            event.stop()
            event.prevent_default()
            self.post_message(self.Submitted())
            return
        await super()._on_key(event)


class AnswerDialog(Dialog[Answer]):
    """The question, its offered answers and a line. A number is said back, and sent by the second enter."""

    def __init__(self, view: ApprovalView, draft: str) -> None:
        what = _INSTRUCTION if view.kind in SPOKEN else _RESULT
        if view.kind == Request.QUESTION and view.call_id:
            what = "The agent waits for your answer in the middle of its work."
        super().__init__("Answer", view.session_name, _sentence(view.title, what), submit="send")
        self._view = view
        self._draft = draft
        self._offered = person_tool.choices(view.detail)
        self._confirmed = ""
        self._shown = Content("")

    def fields(self) -> list[Widget]:
        lines = to_display_lines(str(self._view.detail.get("asks", "")))
        asked = [Content(line) for line in lines] if self._view.detail.get("asks") else []
        asked += [
            Content.assemble((f" {number} ", "bold $warning"), to_display(option))
            for number, option in enumerate(self._offered, 1)
        ]
        last = f" to {len(self._offered)}" if len(self._offered) > 1 else ""
        hint = f"1{last}, or words of your own" if self._offered else ""
        field = AnswerField(self._draft, soft_wrap=True, show_line_numbers=False, placeholder=hint, id="field")
        self._shown = Content("\n").join(asked)
        return [*([VerticalScroll(Static(self._shown), id="asked")] if asked else []), field]

    def on_mount(self) -> None:
        super().on_mount()
        field = self.field
        field.focus()
        field.move_cursor(field.document.end)
        for asked in self.query("#asked").results(VerticalScroll):
            rows = sum(1 + cell_len(line) // _WRAP for line in self._shown.plain.split("\n"))
            asked.styles.height = min(rows, max(4, self.app.size.height // 4))
            asked.scroll_end(animate=False)  # where it asks, and what it offers

    @property
    def field(self) -> AnswerField:
        """Where the answer is written."""
        return self.query_one(AnswerField)

    @property
    def text(self) -> str:
        """What is written now."""
        return self.field.text

    @property
    def draft(self) -> str:
        """What was written last."""
        return self._draft

    @property
    def submit_key(self) -> str:
        return "enter"

    async def on_answer_field_submitted(self) -> None:
        await self.action_do("form.submit")

    def on_text_area_changed(self) -> None:
        self._draft = self.text
        if self._confirmed and self._confirmed != self.text.strip():
            self._confirmed = ""
            self.complain("")

    def submit(self) -> None:
        try:
            answer = read(self.text, len(self._offered))
        except ValueError as exc:
            self.complain(str(exc))
            return
        if answer.number is not None and self._confirmed != self.text.strip():
            self._confirmed = self.text.strip()
            chosen = to_display(self._offered[answer.number - 1])
            self.query_one("#error", Static).update(
                Content.assemble(("enter again answers: ", "bold $warning"), (chosen, "bold"))
            )
            return
        self.dismiss(answer)


def ask(app: App[object], host: Host, view: ApprovalView, answered: Callable[[Answer], None]) -> None:
    """Open the line for a request, with what was written to it before; `answered` gets what is sent.

    What was written stays as a draft until the answer was accepted.
    """
    dialog = AnswerDialog(view, host.drafts.get(view.approval_id, ""))

    def closed(answer: Answer | None) -> None:
        host.drafts[view.approval_id] = dialog.draft
        if answer is not None:
            answered(answer)

    app.push_screen(dialog, closed)


async def send(host: Host, view: ApprovalView, answer: Answer) -> None:
    """Answer a request that no card was shown of, and say what came of it."""
    try:
        request = requests.decide(host.folders, view, "answer", message=answer.message, value=answer.number)
        await host.feed.call("decide", **request)
    except (SupervisorError, configuration.ConfigError) as exc:
        host.tell(f"{exc}; what you wrote is kept", bad=True)
    except Unreachable as exc:
        host.tell(f"{exc.message}; the question is still open as far as this screen knows", bad=True)
    else:
        host.drafts.pop(view.approval_id, None)
        host.tell(f"{view.session_name}: answered")


def _sentence(title: str, more: str) -> str:
    return f"{title}{'' if title.endswith(('?', '!', '.', '…')) else '.'} {more}"
