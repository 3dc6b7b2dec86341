"""What is remembered beyond one conversation, for the person: lessons to decide, memories with their versions."""

from __future__ import annotations

import time
from typing import ClassVar

import msgspec
from textual.app import ComposeResult
from textual.binding import BindingType

from app.client import requests
from app.client.snapshot import Dirty, Snapshot
from app.framework.handlers import Handler, Handlers, bindings, in_list
from app.screens.base import WatchScreen
from harness.domain.text import formatting
from harness.protocol.client import SupervisorError, Unreachable
from harness.views.memory_views import LessonView, MemoriesShown, MemoryVersions, MemoryView, VersionView
from widgets.base.fact_list import FactList
from widgets.base.help_bar import HelpBar
from widgets.fleet.fleet_bar import Banner
from widgets.fleet.memory_list import Entry, MemoryList, name_of, whose

_BY_ITSELF = "when you believe it, or another session says the same"
_SHA = 16
"""Digits of a hash that are shown: enough to tell two versions apart."""
_FAILURES = (SupervisorError, Unreachable, msgspec.ValidationError)


class MemoryScreen(WatchScreen):
    """A list, and below it all of what is selected."""

    CSS_PATH = "memory.tcss"
    SCOPES: ClassVar[tuple[str, ...]] = ("memory",)
    BINDINGS: ClassVar[list[BindingType]] = bindings("memory")
    AUTO_FOCUS: ClassVar[str | None] = "MemoryList"

    def __init__(self) -> None:
        super().__init__()
        self._entries: list[Entry] = []
        self._versions: list[VersionView] = []
        self._read_of: Entry | None = None

    def compose(self) -> ComposeResult:
        yield Banner()
        yield MemoryList()
        yield FactList(dom_id="memory")
        yield HelpBar()

    def on_mount(self) -> None:
        super().on_mount()
        self._reload()

    @property
    def list(self) -> MemoryList:
        """The list."""
        return self.query_one(MemoryList)

    @property
    def selected(self) -> Entry | None:
        """What keys act on; nothing before the screen stands."""
        return self.list.selected if self.is_mounted and self.query(MemoryList) else None

    def sync(self, snapshot: Snapshot, dirty: Dirty) -> bool:
        if dirty & Dirty.LINK:
            self.show_link(snapshot)
        return False

    # -- reading -----------------------------------------------------------------------------------

    def _reload(self) -> None:
        self.host.run_beside(self._read())

    async def _read(self) -> None:
        try:
            found = await self.host.feed.reply(MemoriesShown, "memories")
        except _FAILURES as exc:
            self.host.tell(f"no memory: {exc}", bad=True)
            return
        self._entries = [*found.lessons, *found.memories]
        if self.stands:
            self.list.set_entries(self._entries, self.host.snapshot.names, time.time())

    def on_memory_list_chosen(self) -> None:
        self._show()
        self.show_keys()
        chosen = self.selected
        if isinstance(chosen, MemoryView) and chosen != self._read_of:
            self._read_of = chosen
            self.host.run_beside(self._read_versions(chosen))

    async def _read_versions(self, of: MemoryView) -> None:
        try:
            found = await self.host.feed.reply(MemoryVersions, "memory_history", scope=of.scope, of=of.of, key=of.key)
        except _FAILURES:
            return  # what it says now stands there; rolling back asks again
        if self.stands and self._read_of == of:
            self._versions = found.versions
            self._show()

    def _show(self) -> None:
        chosen = self.selected
        facts = self.query_one("#memory", FactList)
        if chosen is None:
            text = "Nothing is remembered yet. Agents leave lessons here; watchfloor memory set KEY TEXT adds your own."
            facts.set_facts([("", text)])
        elif isinstance(chosen, LessonView):
            facts.set_facts(_of_lesson(chosen, self.host.snapshot.names))
        else:
            known = self._versions if self._read_of is not None and name_of(self._read_of) == name_of(chosen) else []
            facts.set_facts(_of_memory(chosen, known, self.host.snapshot.names))

    # -- actions -----------------------------------------------------------------------------------

    def handlers(self) -> Handlers:
        return {
            **in_list(lambda: self.list, self._nothing),
            "memory.accept": Handler(self._accept, self._no_lesson),
            "memory.reject": Handler(self._reject, self._no_lesson),
            "memory.rollback": Handler(self._roll_back, self._no_memory),
            "memory.forget": Handler(self._forget, self._no_memory),
            "session.reload": Handler(self._reload),
        }

    def _nothing(self) -> str:
        return "" if self._entries else "nothing is remembered yet"

    def _no_lesson(self) -> str:
        return self._nothing() or self._is_no(LessonView, "this is no lesson that waits for you")

    def _no_memory(self) -> str:
        return self._nothing() or self._is_no(MemoryView, "this is no memory yet")

    def _is_no(self, kind: type, words: str) -> str:
        return "" if isinstance(self.selected, kind) else words

    def _accept(self) -> None:
        from app.screens.dialogs.dialogs import Confirm

        lesson = self.selected
        if not isinstance(lesson, LessonView):
            return
        every = "every session" if lesson.scope == "user" else "every session on this repository"
        does = (
            f"It is forgotten: {every} goes on without it." if lesson.removes else f"{every.capitalize()} is shown it."
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self._ask("it is remembered", "lesson_accept", lesson=lesson.lesson)

        self.app.push_screen(Confirm("Believe", lesson.key, f"{does} It says: {lesson.text}", "believe"), answered)

    def _reject(self) -> None:
        from app.screens.dialogs.dialogs import Ask

        lesson = self.selected
        if not isinstance(lesson, LessonView):
            return

        def answered(why: str | None) -> None:
            if why is not None:
                self._ask("it will not be remembered", "lesson_reject", lesson=lesson.lesson, why=why)

        text = "Saying it again does not bring it in. Why not? (kept with the decision)"
        self.app.push_screen(Ask("Refuse", lesson.key, text, str.strip, submit="deny"), answered)

    def _forget(self) -> None:
        from app.screens.dialogs.dialogs import Confirm

        memory = self.selected
        if not isinstance(memory, MemoryView):
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._ask("forgotten", "memory_remove", **requests.memory(memory))

        text = "The next request of every session is without it. Its versions stay, and can be brought back."
        self.app.push_screen(Confirm("Forget", memory.key, text, "forget"), answered)

    def _roll_back(self) -> None:
        memory = self.selected
        if isinstance(memory, MemoryView):
            self.host.run_beside(self._ask_version(memory))

    async def _ask_version(self, memory: MemoryView) -> None:
        from app.screens.dialogs.versions import VersionDialog

        try:
            found = await self.host.feed.reply(
                MemoryVersions, "memory_history", scope=memory.scope, of=memory.of, key=memory.key
            )
        except _FAILURES as exc:
            self.host.tell(f"{memory.key}: {exc}", bad=True)
            return

        def answered(to: int | None) -> None:
            if to is not None:
                self._ask("rolled back", "memory_rollback", **requests.memory(memory), to=to)

        if self.app.screen is self:  # not above a question that was opened meanwhile
            self.app.push_screen(VersionDialog(memory.key, found.versions, time.time()), answered)

    def _ask(self, done: str, op: str, **arguments: object) -> None:
        self.host.run_beside(self._change(done, op, arguments))

    async def _change(self, done: str, op: str, arguments: dict[str, object]) -> None:
        await self.host.change(done, op, arguments)
        await self._read()


def _of_lesson(x: LessonView, names: dict[str, str]) -> list[tuple[str, str]]:
    said = ", ".join(names.get(sid, sid) for sid in x.sightings)
    wants = "that it be forgotten" if x.removes else x.text
    return [
        ("lesson", f"{x.key}, for {_place(x.scope, x.of, names)}"),
        ("said by", said),
        ("wants", wants),
        ("enters", _BY_ITSELF if x.scope == "repository" and not x.removes else "when you believe it"),
    ]


def _of_memory(x: MemoryView, versions: list[VersionView], names: dict[str, str]) -> list[tuple[str, str]]:
    newest = x.newest
    facts = [
        ("memory", f"{x.key}, of {_place(x.scope, x.of, names)}"),
        ("by", f"{newest.by}, {formatting.zoned(newest.ts)}" + (f": {newest.why}" if newest.why else "")),
        ("sha", newest.sha[:_SHA]),
        *([("until", formatting.zoned(newest.expires))] if newest.expires else []),
        ("text", newest.text),
    ]
    now = time.time()
    for number, v in enumerate(versions):
        words_of = f"v{v.version} {v.op} {formatting.age(v.ts, now)} ago by {v.by}"
        facts.append(("versions" if number == 0 else "", f"{words_of}: {v.text}" if v.sha else words_of))
    return facts


def _place(scope: str, of: str, names: dict[str, str]) -> str:
    name = whose(scope, of, names)
    return {"session": f"session {name}", "user": "you"}.get(scope, f"{name} ({of})")
