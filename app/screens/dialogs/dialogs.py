"""Small questions above a screen: confirm, ask for a text, edit the input of an action."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Input, Static, TextArea

from app.screens.dialogs.form import Form, R
from harness.domain.text.display_safe import exact_cells, to_display
from widgets.base.help_bar import HelpBar


class Dialog(Form[R]):
    """A framed question with its keys below. Subclasses add the field and read it in `result`."""

    CSS_PATH = Path(__file__).with_name("dialogs.tcss")

    def __init__(self, title: str, name: str, text: str, *, submit: str) -> None:
        super().__init__()
        self._verb = title
        self._about = name
        self._words = text
        self._submit = submit
        self._complained_of: list[str] | None = None
        """What was written when something was said to be wrong with it."""

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Static(
                Content.assemble((self._verb + " ", "bold"), (to_display(self._about, limit=80), "bold $warning")),
                id="title",
            )
            yield Static(Content(exact_cells(to_display(self._words, limit=600))), id="text")
            yield from self.fields()
            yield Static("", id="error")
            yield HelpBar()

    def fields(self) -> list[Widget]:
        """The input widgets of this dialog."""
        return []

    def on_mount(self) -> None:
        self.query_one(HelpBar).set_entries(self.entries())

    def entries(self) -> list[tuple[str, str, str]]:
        """What its help bar shows: action (empty for the next field), key, label."""
        return [
            ("form.submit", self.submit_key, self._submit),
            ("form.cancel", self.host.keys.shown("form.cancel"), "cancel"),
        ]

    def entries_of_fields(self) -> list[tuple[str, str, str]]:
        """The same with the key between its fields."""
        submit, cancel = Dialog.entries(self)
        return [submit, ("", "tab", "next field"), cancel]

    async def on_help_bar_pressed(self, message: HelpBar.Pressed) -> None:
        message.stop()
        if message.action:
            await self.action_do(message.action)
        else:
            self.focus_next()

    def complain(self, text: str) -> None:
        """Say inline what is wrong, until something else is written."""
        self._complained_of = self._written() if text else None
        self.query_one("#error", Static).update(Content(to_display(text, limit=300)))

    def _written(self) -> list[str]:
        return [*(field.value for field in self.query(Input)), *(field.text for field in self.query(TextArea))]

    def on_input_changed(self, message: Input.Changed) -> None:
        self._changed()

    def on_text_area_changed(self) -> None:
        self._changed()

    def _changed(self) -> None:
        if self._complained_of not in (None, self._written()):
            self.complain("")

    def result(self) -> R:
        """The value to return; raises ValueError (shown inline) while it cannot be used."""
        raise NotImplementedError

    def submit(self) -> None:
        try:
            value = self.result()
        except ValueError as exc:
            self.complain(str(exc))
            return
        self.dismiss(value)


class Confirm(Dialog[bool]):
    """Yes (True) or no (None) about a named session."""

    def __init__(self, verb: str, name: str, text: str, yes: str) -> None:
        super().__init__(verb, name, text, submit=yes)

    def result(self) -> bool:
        return True


class Notice(Dialog[bool]):
    """Something that stays until it was read."""

    def __init__(self, verb: str, name: str, text: str) -> None:
        super().__init__(verb, name, text, submit="read")

    def result(self) -> bool:
        return True

    def entries(self) -> list[tuple[str, str, str]]:
        return super().entries()[:1]


class Ask(Dialog[R]):
    """One text; ``check`` (`said` where any will do) turns it into the result or raises ValueError."""

    def __init__(
        self,
        title: str,
        name: str,
        text: str,
        check: Callable[[str], R],
        *,
        lines: bool = False,
        value: str = "",
        submit: str = "send",
    ) -> None:
        super().__init__(title, name, text, submit=submit)
        self._lines = lines
        self._value = value
        self._check = check

    def fields(self) -> list[Widget]:
        if self._lines:
            return [TextArea(self._value, soft_wrap=True, show_line_numbers=False, id="field")]
        return [Input(self._value, id="field")]

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#field").focus()

    def result(self) -> R:
        if self._lines:
            return self._check(self.query_one("#field", TextArea).text)
        return self._check(self.query_one("#field", Input).value)

    async def on_input_submitted(self) -> None:
        # Enter is enough for a line that only says something; what lets an action run is sent by the chord alone.
        if self._by_enter:
            await self.action_do("form.submit")
        else:
            self.complain(f"enter does not send this; {self.submit_key} does")

    @property
    def _by_enter(self) -> bool:
        return not self._lines and self._submit in ("send", "deny", "search", "keep")

    @property
    def submit_key(self) -> str:
        return "enter" if self._by_enter else super().submit_key


def said(text: str) -> str:
    """The text, which must say something. Raises ValueError."""
    if not text.strip():
        raise ValueError("write something first, or cancel")
    return text.strip()


class EditInput(Dialog[dict[str, object]]):
    """The JSON input of an action in an editor; returns the changed object."""

    def __init__(self, name: str, value: dict[str, object]) -> None:
        super().__init__(
            "Edit and approve for",
            name,
            "What you submit here is judged again by the policy's deny rules, hashed, and run once.",
            submit="approve edited",
        )
        self._before = value

    def fields(self) -> list[Widget]:
        # JSON escapes keep every character visible: what is edited is exactly what is sent.
        text = json.dumps(self._before, indent=2, ensure_ascii=True)
        return [TextArea(text, soft_wrap=True, show_line_numbers=True, id="field", classes="tall")]

    def on_mount(self) -> None:
        super().on_mount()
        self.query_one("#field").focus()

    def result(self) -> dict[str, object]:
        try:
            value = json.loads(self.query_one("#field", TextArea).text)
        except (ValueError, RecursionError) as exc:
            raise ValueError(f"this is not JSON: {exc}") from exc
        if not isinstance(value, dict):
            raise ValueError("the input of an action is a JSON object: { … }")
        if value == self._before:
            raise ValueError("nothing was changed; cancel, and approve the action as it is")
        return value
