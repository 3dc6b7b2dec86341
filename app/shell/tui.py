"""Open the screen: settings read and checked, then the application until the user detaches."""

from __future__ import annotations

import gc
import threading
import time
from concurrent.futures import Future

from harness.protocol.config.config import ConfigError, load
from harness.protocol.paths import Folders

_LOOK_S = 0.1


def run(folders: Folders, session: str | None = None) -> int:
    """Show the floor (or one session) until the user leaves; returns the exit code.

    Raises ConfigError on unusable settings.
    """
    # until the first paint: loading makes many objects and no garbage, and collecting meanwhile costs a tenth of the
    # start
    gc.disable()

    from app.client import snapshot

    # The fleet is asked while the screen's own code is still being read in.
    looked: Future[snapshot.FirstLook] = Future()
    look = threading.Thread(
        target=lambda: looked.set_result(snapshot.first_look(folders)), name="first-look", daemon=True
    )
    look.start()
    from app.client import last_seen
    from app.input import keymap
    from app.shell.navigation import Opening
    from app.shell.watch_app import WatchApp
    from app.terminal import themes

    settings = load(folders)
    if settings.ui.theme not in themes.NAMES:
        raise ConfigError(
            settings.file, 1, "ui.theme", f"{settings.ui.theme!r} is not a theme; known: {', '.join(themes.NAMES)}"
        )
    try:
        keys = keymap.build(settings.ui.preset, settings.ui.keys)
    except keymap.KeymapError as exc:
        raise ConfigError(settings.file, 1, "", str(exc)) from exc
    first: snapshot.FirstLook | None = None
    try:
        first = looked.result(_LOOK_S)
    except TimeoutError:
        looked.add_done_callback(lambda late: late.result().close())  # the feed makes a connection of its own
    theme = themes.remembered(folders.state / themes.FILE) or settings.ui.theme
    away = last_seen.away(folders.state, settings.ui.brief_after, time.time())
    app = WatchApp(folders, keys, theme=theme, opening=Opening(session, away), first=first, notify=settings.notify)
    try:
        return app.run() or app.return_code or 0
    finally:
        last_seen.left(folders.state, time.time())
