"""The launch form: repository, goal, checks, name, model, cap; what cannot be used is said beside the field."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static, TextArea

from app import requests
from app.screens.dialogs import Notice
from app.screens.form import Form
from harness.events.untrusted import to_display
from harness.events.words import NANO
from harness.protocol import amounts
from harness.protocol import config as configuration
from harness.protocol.client import SupervisorError, Unreachable
from widgets.help_bar import HelpBar


@dataclass(frozen=True, slots=True)
class Wish:
    """What the form says, as typed."""

    repo: str
    goal: str
    checks: str
    name: str
    model: str
    cap: str


class FieldError(ValueError):
    """One field cannot be used."""

    def __init__(self, field: str, why: str) -> None:
        super().__init__(why)
        self.field = field


def request_of(wish: Wish, cfg: configuration.Config) -> dict[str, Any]:
    """The arguments of ``launch``. Raises FieldError naming the field."""
    repo = os.path.abspath(os.path.expanduser(wish.repo.strip() or "."))
    if not os.path.isdir(repo):
        raise FieldError("repo", "there is no such folder")
    if not wish.goal.strip():
        raise FieldError("goal", "say what the agent should achieve")
    cap: int | None = None
    if wish.cap.strip().lower() != "none":
        try:
            cap = amounts.usd_to_nano(wish.cap)
        except ValueError as exc:
            raise FieldError("cap", f"{exc}; or none") from exc
    try:
        return requests.launch(
            cfg,
            repo=repo,
            goal=wish.goal.strip(),
            checks=[line.strip() for line in wish.checks.splitlines() if line.strip()],
            name=wish.name.strip(),
            model=wish.model.strip(),
            caps=requests.caps_of(cfg, {"usd_nano": cap}),
        )
    except configuration.ConfigError as exc:
        raise FieldError("model", str(exc)) from exc


NO_CRITERION = "nothing says when it is done; launch once more to go by the agent's word alone (it stays marked ◇)"
_LABELS = {
    "repo": ("Repository", "a git repository; the agent gets a worktree of its own"),
    "goal": ("Goal", "what should be true in the end"),
    "checks": ("Checks", "one command a line; done means: the harness saw all of them pass"),
    "cap": ("Cap in USD", "never passed; reaching it parks the session and asks; or none"),
    "name": ("Name", "empty = made from the goal"),
    "model": ("Model", ""),
}


class LaunchForm(Form):
    """Launch a session; closes when the supervisor has the intent durably."""

    CSS_PATH = "launch.tcss"

    def __init__(self) -> None:
        super().__init__()
        self._sending = False
        self._asked = False
        """Nothing says when it is done, and that was asked about."""

    def compose(self) -> ComposeResult:
        cfg = self._config()
        cap = "none" if cfg.caps.session_usd is None else f"{cfg.caps.session_usd / NANO:.2f}"
        with Vertical(id="launch"):
            yield Static(Content.styled("Launch a session", "bold"), id="title")
            with VerticalScroll(id="fields", can_focus=False):
                yield from self._label("repo")
                yield Input(self._guess(), id="repo")
                yield from self._label("goal")
                yield TextArea("", soft_wrap=True, show_line_numbers=False, id="goal", tab_behavior="focus")
                yield from self._label("checks")
                yield TextArea("", soft_wrap=False, show_line_numbers=False, id="checks", tab_behavior="focus")
                yield from self._label("cap")
                yield Input(cap, id="cap")
                yield from self._label("name")
                yield Input("", id="name")
                yield from self._label("model")
                yield Input(cfg.model.default, id="model")
            yield Static("", id="error")
            yield HelpBar()

    def _label(self, field: str) -> list[Static]:
        title, text = _LABELS[field]
        return [
            Static(
                Content.assemble((title, "bold"), (f"  {text}", "$text-muted")), classes="label", id=f"label-{field}"
            )
        ]

    def _config(self) -> configuration.Config:
        try:
            return configuration.load(self.host.folders)
        except configuration.ConfigError as exc:
            self.host.tell(f"{exc}; the defaults are shown", bad=True)
            return configuration.Config(self.host.folders.config_file)

    def _guess(self) -> str:
        """The repository that the screen was opened in, else that of the newest session."""
        here = Path.cwd()
        for folder in (here, *here.parents):
            if (folder / ".git").exists():
                return str(folder)
        rows = sorted(self.host.snapshot.rows.values(), key=lambda r: r.created)
        return to_display(rows[-1].repo) if rows else str(here)

    def on_mount(self) -> None:
        keys = self.host.keys
        self.query_one(HelpBar).set_entries(
            [
                ("form.submit", keys.shown("form.submit"), "launch"),
                ("", "tab", "next field"),
                ("form.cancel", keys.shown("form.cancel"), "cancel"),
            ]
        )
        self.query_one("#goal").focus()

    async def on_help_bar_pressed(self, message: HelpBar.Pressed) -> None:
        message.stop()
        if message.action:
            await self.action_do(message.action)
        else:
            self.focus_next()

    def complain(self, text: str) -> None:
        self._complain("", text)

    def _wish(self) -> Wish:
        text = {name: self.query_one(f"#{name}", Input).value for name in ("repo", "name", "model", "cap")}
        areas = {name: self.query_one(f"#{name}", TextArea).text for name in ("goal", "checks")}
        return Wish(**text, **areas)

    def _complain(self, field: str, why: str) -> None:
        for name in _LABELS:
            self.query_one(f"#label-{name}").set_class(name == field, "-wrong")
        self.query_one("#error", Static).update(
            Content(to_display(f"{_LABELS[field][0]}: {why}" if field in _LABELS else why, limit=400))
        )
        if field in _LABELS:
            self.query_one(f"#{field}").focus()

    def submit(self) -> None:
        if self._sending:
            return
        try:
            request = request_of(self._wish(), configuration.load(self.host.folders))
        except FieldError as exc:
            self._complain(exc.field, str(exc))
            return
        except configuration.ConfigError as exc:
            self._complain("", str(exc))
            return
        if not request["checks"] and not self._asked:
            self._asked = True
            self._complain("checks", NO_CRITERION)
            return
        self._sending = True
        self.query_one("#error", Static).update(Content("launching …"))
        self.host.run_beside(self._launch(request))

    async def _launch(self, request: dict[str, Any]) -> None:
        try:
            reply = await self.host.feed.call("launch", **request)
        except (SupervisorError, Unreachable) as exc:
            if self.is_open:
                self._complain(_field_of(str(exc)), str(exc))
            return
        finally:
            self._sending = False
        self.host.tell(
            f"launched {reply.get('name', '')}"
            + ("" if request["checks"] else "; without checks it ends on the agent's word")
        )
        if self.is_open:
            self.dismiss(str(reply.get("sid", "")))
        if warnings := [str(text) for text in reply.get("warnings", [])]:
            self.app.push_screen(Notice("Launched", str(reply.get("name", "")), "; ".join(warnings)))


def _field_of(message: str) -> str:
    """The field that a refusal is about, as far as its words tell."""
    lowered = message.lower()
    for word, field in (("repositor", "repo"), ("git", "repo"), ("model", "model"), ("cap", "cap"), ("name", "name")):
        if word in lowered:
            return field
    return ""
