"""The program as it is, plus one line in ``keys.handled`` for each key press that was dealt with to its end.

The end-to-end tests press a key when the one before has had its effect, however slow the machine is.
"""

from __future__ import annotations

import asyncio
import sys

from textual import events
from textual.app import App

from app.main import main
from app.shell.watch_app import WatchApp

_tasks: set[asyncio.Task[None]] = set()
_deal = App.on_event
_last: list[events.Key] = []


async def _note(app: WatchApp) -> None:
    calm = 0
    while calm < 3:
        await asyncio.sleep(0.01)
        pumps = [app, *app.screen_stack, *([app.focused] if app.focused is not None else [])]
        calm = calm + 1 if app.idle and all(pump.message_queue_size == 0 for pump in pumps) else 0
    with open("keys.handled", "a", encoding="ascii") as file:
        file.write("handled\n")


async def _on_event(self: App[object], event: events.Event) -> None:
    new = isinstance(event, events.Key) and event not in _last  # one that no widget wanted comes by a second time
    if isinstance(event, events.Key):
        _last[:] = [event]
    await _deal(self, event)
    if new and isinstance(self, WatchApp):
        task = asyncio.create_task(_note(self))
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)


if __name__ == "__main__":
    App.on_event = _on_event  # type: ignore[method-assign, assignment]
    sys.exit(main())
