"""The launch form: what is common first, the rest folded away; what cannot be used is said beside its field, and the
command line that launches the same stands below.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import ClassVar

import msgspec
from textual import events
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static, TextArea

from app.framework.handlers import Handler, Handlers, bindings
from app.launch import launch_form, launch_history
from app.launch.launch_form import FIELDS, FieldError, Wish
from app.screens.dialogs.dialogs import Ask, Notice, said
from app.screens.dialogs.form import Form
from app.screens.dialogs.picking import Choice, Picker
from harness.domain.text.display_safe import to_display
from harness.protocol.client import SupervisorError, Unreachable
from harness.protocol.config import config as configuration
from harness.protocol.config.choices import FRESH, JUDGE_AT
from harness.roles import catalog
from harness.views.launch_request import LaunchRequest
from harness.views.replies import Launched, PhrasesLook, Starts
from widgets.base import cells
from widgets.base.help_bar import HelpBar

NO_CRITERION = "nothing says when it is done; launch once more to go by the agent's word alone (it stays marked ∅)"
_LOOKED_UP = ("repo", "branch", "plan")
"""Fields for which there is something to choose as far as anybody knows who has not looked."""
_MOST_FILES = 200
_DRAFT = "launch"
"""Where the form is kept among what was written and not sent."""
_PLANS = (".json",)
_OTHER_ROWS = 20
"""What the form needs beside its command."""


class LaunchForm(Form[str]):
    """Launch a session; closes when the supervisor has the intent durably."""

    CSS_PATH = "launch.tcss"
    BINDINGS: ClassVar[list[BindingType]] = bindings("launch", priority=True)

    def __init__(self) -> None:
        super().__init__()
        self._sending = False
        self._asked = False
        """Nothing says when it is done, and that was asked about."""
        self._more = False
        self._cfg = configuration.Config(file=Path())
        self._known = launch_history.Launches()
        self._replaced: Wish | None = None
        """What an earlier launch took the place of."""
        self._begun = Wish("", "", "", "", "", "")
        """The form as it opens when nothing was left in it."""

    # -- what is shown -----------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        self._cfg = self._config()
        self._begun = launch_form.first(self._cfg, self._guess())
        left = self.host.drafts.get(_DRAFT)
        values = asdict(msgspec.json.decode(left, type=Wish) if left else self._begun)
        self._more = any(values[field.id] != getattr(self._begun, field.id) for field in FIELDS if field.more)
        title = "Launch a session" + (", as you left it" if left else "")
        with Vertical(id="launch"):
            yield Static(Content.styled(title, "bold"), id="title")
            with VerticalScroll(id="fields", can_focus=False):
                for field in FIELDS:
                    row = Vertical(
                        Horizontal(Static(field.title, classes="label"), _entry(field, values[field.id])),
                        Static("", classes="wrong"),
                        id=f"row-{field.id}",
                        classes="field",
                    )
                    row.display = not field.more
                    yield row
                yield Static("", id="more")
            yield Static("", id="hint")
            yield Static("", id="command")
            yield Static("", id="error")
            yield HelpBar()

    def _config(self) -> configuration.Config:
        try:
            return configuration.load(self.host.folders)
        except configuration.ConfigError as exc:
            self.host.tell(f"{exc}; the defaults are shown", bad=True)
            return configuration.Config(file=self.host.folders.config_file)

    def _guess(self) -> str:
        """The repository that the screen was opened in, else that of the newest session."""
        here = Path.cwd()
        for folder in (here, *here.parents):
            if (folder / ".git").exists():
                return str(folder)
        rows = sorted(self.host.snapshot.rows.values(), key=lambda r: r.created)
        return to_display(rows[-1].repo) if rows else str(here)

    def on_mount(self) -> None:
        self._known = launch_history.load(self.host.folders.state)
        self._show_more()
        self._show_command()
        self.query_one("#goal").focus()

    def _show_more(self) -> None:
        self.set_class(self._more, "-more")
        for field in FIELDS:
            if field.more:
                self.query_one(f"#row-{field.id}").display = self._more
        key = self.host.keys.shown("launch.more")
        names = ", ".join(field.title.lower() for field in FIELDS if field.more)
        self.query_one("#more", Static).update(Content(f"▾ {key} fewer" if self._more else f"▸ {key} more: {names}"))
        self._show_keys()

    def _show_keys(self) -> None:
        """What the keys do at this field; what there is nothing for is not offered, where no disk has to be asked."""
        words = {"form.submit": "launch", "": "next field"}
        field = self._focused()
        if field in _LOOKED_UP or self._has_phrases(field) or any(self._offers(field)):
            words["launch.choose"] = "choose"
        words["launch.more"] = "fewer" if self._more else "more"
        if self._known.templates or self._known.past or self._elsewhere():
            words["launch.earlier"] = "earlier"
        words |= {"launch.keep": "keep as template", "form.cancel": "cancel"}
        shown = self.host.keys.shown
        self.query_one(HelpBar).set_entries([(do, shown(do) if do else "tab", said) for do, said in words.items()])

    def _show_command(self) -> None:
        try:
            words = launch_form.command_of(self._wish(), self._cfg)
        except FieldError as exc:
            shown = f"$ watchfloor launch …  ({launch_form.BY_ID[exc.field].title}: {exc})"
        else:
            shown = f"$ {launch_form.typed(words)}"
        width = max(20, self.query_one("#command").size.width or 76)
        rows = max(2, min(4, self.size.height - _OTHER_ROWS))
        self.query_one("#command", Static).update(Content("\n".join(cells.head(shown, width, rows))))

    def on_input_changed(self, message: Input.Changed) -> None:
        message.stop()
        self._changed(message.input)

    def on_text_area_changed(self, message: TextArea.Changed) -> None:
        message.stop()
        self._changed(message.text_area)

    def _changed(self, entry: Input | TextArea) -> None:
        """What was said of it, or of the form as it was, holds no longer."""
        self.query_one(f"#row-{entry.id}").remove_class("-wrong")
        if not self._sending:
            self.query_one("#error").display = False
        self._show_command()

    def on_resize(self, _: events.Resize) -> None:
        self.call_after_refresh(self._show_command)

    def on_descendant_focus(self) -> None:
        field = self._focused()
        self.query_one("#hint", Static).update(Content(launch_form.BY_ID[field].hint if field else ""))
        self._show_keys()

    def _focused(self) -> str:
        found = self.focused.id if self.focused is not None else None
        return found if found is not None and found in launch_form.BY_ID else ""

    async def on_help_bar_pressed(self, message: HelpBar.Pressed) -> None:
        message.stop()
        if message.action:
            await self.action_do(message.action)
        else:
            self.focus_next()

    # -- what it says ------------------------------------------------------------------------------

    def _wish(self) -> Wish:
        return Wish(**{field.id: self._text(field.id) for field in FIELDS})

    def _text(self, field: str) -> str:
        entry = self.query_one(f"#{field}")
        if isinstance(entry, TextArea):
            return entry.text
        return entry.value if isinstance(entry, Input) else ""

    def _write(self, field: str, text: str) -> None:
        entry = self.query_one(f"#{field}")
        if isinstance(entry, TextArea):
            entry.load_text(text)
        elif isinstance(entry, Input):
            entry.value = text
            entry.cursor_position = len(text)

    def _fill(self, one: Wish) -> None:
        for field, text in asdict(one).items():
            self._write(field, text)
        self._more = self._more or any(self._text(field.id) for field in FIELDS if field.more)
        self._show_more()
        self._complain("", "")

    # -- its own keys ------------------------------------------------------------------------------

    def handlers(self) -> Handlers:
        return {
            **super().handlers(),
            "form.cancel": Handler(self._leave),
            "launch.more": Handler(self._fold),
            "launch.choose": Handler(self._choose),
            "launch.earlier": Handler(self._earlier),
            "launch.keep": Handler(self._keep),
        }

    def _leave(self) -> None:
        """Close; what was written is there when the form is opened again."""
        self.host.drafts.pop(_DRAFT, None)
        if (written := self._wish()) != self._begun:
            self.host.drafts[_DRAFT] = msgspec.json.encode(written).decode()
        self.dismiss(None)

    def _fold(self) -> None:
        self._more = not self._more
        self._show_more()
        if self._more:
            self.query_one("#branch").focus()
        elif self.focused is None or not self.focused.display or self._hidden():
            self.query_one("#goal").focus()

    def _hidden(self) -> bool:
        field = self._focused()
        return bool(field) and launch_form.BY_ID[field].more and not self._more

    def _choose(self) -> None:
        field = self._focused()
        if field == "branch":
            self.host.run_beside(self._choose_start(self._repository))
            return
        if self._has_phrases(field):
            self.host.run_beside(self._choose_phrase())
            return
        self._offer(field, self._offers(field))

    def _has_phrases(self, field: str) -> bool:
        return field == "phrases" and bool(self._text("plan").strip())

    @property
    def _repository(self) -> str:
        return os.path.abspath(os.path.expanduser(self._text("repo").strip() or "."))

    async def _choose_phrase(self) -> None:
        """Offer what the plan says and no command decides, each with a guess; what is chosen is added."""
        wanted = {"repo": self._repository, "plan": self._text("plan").strip(), "start": self._text("branch").strip()}
        try:
            found = await self.host.feed.reply(PhrasesLook, "phrases", **wanted)
        except (SupervisorError, Unreachable) as exc:
            if self.is_open:
                self.complain(str(exc))
            return
        if self.is_current and self._focused() == "phrases":
            before = self._text("phrases").splitlines()
            lines = (f"{one.text}={one.guess}" for one in found.unbound)
            self._offer("phrases", [line for line in lines if line not in before], before)

    async def _choose_start(self, repo: str) -> None:
        try:
            found = await self.host.feed.reply(Starts, "starts", repo=repo)
        except (SupervisorError, Unreachable) as exc:
            if self.is_open:
                self.complain(str(exc))
            return
        if self.is_current and self._focused() == "branch":
            self._offer("branch", found.starts)

    def _offer(self, field: str, offered: Iterable[str], before: Sequence[str] = ()) -> None:
        """Have one of these texts chosen for the field, behind the lines that stay."""
        found = list(dict.fromkeys(one for one in offered if one))
        if not found:
            self.complain(
                f"there is nothing to choose from for {launch_form.BY_ID[field].title}" if field else "choose a field"
            )
            return

        def chosen(number: int | None) -> None:
            if number is not None:
                self._write(field, "\n".join([*before, found[number]]))

        self.app.push_screen(Picker(launch_form.BY_ID[field].title, [Choice(one) for one in found]), chosen)

    def _offers(self, field: str) -> Iterable[str]:
        """What may be chosen for a field: from the configuration, the sessions there are, earlier launches and the
        disk.
        """
        rows = self.host.snapshot.rows.values()
        earlier = [getattr(one, field) for one in self._known.past] if field else []
        match field:
            case "model" | "judge_model":
                configured = [self._cfg.model.default, *self._cfg.profiles]
                return [*configured, *sorted({r.model for r in rows}), *earlier]
            case "repo":
                return [*earlier, *sorted({r.repo for r in rows}), *_folders(self._text("repo"))]
            case "plan":
                return [*_files(self._text("repo")), *earlier]
            case "write_plan":
                return [launch_form.WRITTEN]
            case "role":
                return catalog.names(self.host.folders.config)
            case "fresh":
                return FRESH
            case "judge_at":
                return JUDGE_AT
            case "judge":
                return ("judge", "review")
            case _:
                return earlier

    def _earlier(self) -> None:
        kept = list(self._known.templates.items())
        others = self._elsewhere()
        wishes = [one for _, one in kept] + list(self._known.past)
        if self._wish() == self._begun and not wishes + others and self._replaced is None:
            self.complain("nothing was launched before, and no template is kept")
            return
        choices = [Choice(f"template {name}", _short(one), one.checks) for name, one in kept]
        choices += [Choice(_short(one), Path(one.repo).name, one.checks) for one in self._known.past]
        if self._replaced is not None:
            choices.append(Choice("what stood here before", _short(self._replaced), self._replaced.checks))
            wishes.append(self._replaced)
        key = self.host.keys.shown("launch.earlier")
        choices.append(Choice("an empty form", f"{key} brings back what is written here"))
        wishes.append(self._begun)
        choices += [Choice(_short(one), f"{Path(one.repo).name}, goal only") for one in others]
        wishes += others

        def chosen(number: int | None) -> None:
            if number is not None:
                self._replaced = written if (written := self._wish()) != self._begun else None
                self._fill(wishes[number])

        self.app.push_screen(Picker("Templates, and what was launched before", choices), chosen)

    def _elsewhere(self) -> list[Wish]:
        return launch_history.elsewhere(self._known, self._begun, self.host.snapshot.rows.values())

    def _keep(self) -> None:
        one = self._wish()
        if launch_history.secret(one):
            self.complain("something here looks like a secret, and templates are kept in a file: take it out first")
            return

        def named(name: str | None) -> None:
            if name:
                self._store(launch_history.kept(self._known, name, one))
                self._show_keys()

        self.app.push_screen(
            Ask("Keep as a template", "", "Its name; one that is there is replaced.", said, submit="keep"), named
        )

    def _store(self, known: launch_history.Launches) -> None:
        self._known = known
        try:
            launch_history.store(self.host.folders.state, known)
        except OSError as exc:
            self.host.tell(f"this launch is not remembered: {exc.strerror or exc}", bad=True)

    # -- launching ---------------------------------------------------------------------------------

    def complain(self, text: str) -> None:
        self._complain("", text)

    def _complain(self, field: str, why: str) -> None:
        for known in FIELDS:
            row = self.query_one(f"#row-{known.id}")
            row.set_class(known.id == field, "-wrong")
            if known.id == field:
                row.query_one(".wrong", Static).update(Content(to_display(f"{known.title}: {why}", limit=400)))
        error = self.query_one("#error", Static)
        error.update(Content("" if field else to_display(why, limit=400)))
        error.display = bool(why) and not field
        if field:
            if launch_form.BY_ID[field].more and not self._more:
                self._more = True
                self._show_more()
            self.query_one(f"#{field}").focus()
            self.call_after_refresh(self.query_one(f"#row-{field}").scroll_visible, animate=False)

    def submit(self) -> None:
        if self._sending:
            return
        one = self._wish()
        try:
            request = launch_form.request_of(one, configuration.load(self.host.folders))
        except FieldError as exc:
            self._complain(exc.field, str(exc))
            return
        except configuration.ConfigError as exc:
            self._complain("", str(exc))
            return
        if not launch_form.decided(one) and not self._asked:
            self._asked = True
            self._complain("checks", NO_CRITERION)
            return
        self._sending = True
        self._complain("", "launching …")
        self.host.run_beside(self._launch(one, request))

    async def _launch(self, one: Wish, request: LaunchRequest) -> None:
        try:
            made = await self.host.feed.reply(Launched, "launch", **msgspec.to_builtins(request))
        except SupervisorError as exc:
            if self.is_open:
                self._complain(launch_form.about(exc.code, exc.message), str(exc))
            return
        except Unreachable as exc:
            if self.is_open:
                self._complain("", str(exc))
            return
        finally:
            self._sending = False
        self.host.drafts.pop(_DRAFT, None)
        self._store(launch_history.launched(self._known, one))
        self.host.tell(
            f"launched {made.name}"
            + ("" if launch_form.decided(one) else "; without checks it ends on the agent's word")
        )
        if self.is_open:
            self.dismiss(made.sid)
        if made.warnings:
            self.app.push_screen(Notice("Launched", made.name, "; ".join(made.warnings)))


def _entry(field: launch_form.Field, value: str) -> Input | TextArea:
    if field.rows == 1:
        return Input(value, id=field.id, compact=True)
    area = TextArea(value, soft_wrap=field.id == "goal", show_line_numbers=False, id=field.id, tab_behavior="focus")
    area.styles.height = field.rows
    return area


def _short(one: Wish) -> str:
    return " ".join(one.goal.split())[:100]


def _folders(typed: str) -> list[str]:
    """Repositories: the folder that is typed, those in it, and those beside it."""
    here = Path(os.path.expanduser(typed.strip() or "."))
    found = [here] if (here / ".git").exists() else []
    for folder in (here, here.parent):
        with contextlib.suppress(OSError):
            inside = sorted(one for one in folder.iterdir() if not one.name.startswith("."))
            found += islice((one for one in inside if (one / ".git").exists()), _MOST_FILES)
    return [str(one) for one in found]


def _files(repo: str) -> list[str]:
    """What may be a plan at the top of the repository, or in a folder of it."""
    here = Path(os.path.expanduser(repo.strip() or "."))
    found: list[Path] = []
    with contextlib.suppress(OSError):
        for one in sorted(here.iterdir())[:_MOST_FILES]:
            if one.suffix in _PLANS and one.is_file():
                found.append(one)
            elif one.is_dir() and not one.name.startswith(".") and one.name != "node_modules":
                with contextlib.suppress(OSError):
                    found += [sub for sub in sorted(one.iterdir())[:_MOST_FILES] if sub.suffix in _PLANS]
    return [str(one.relative_to(here)) for one in found]
