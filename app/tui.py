"""Open the screen: settings read and checked, then the application until the user detaches."""

from __future__ import annotations

import gc

from harness.protocol.config import ConfigError, load
from harness.protocol.paths import Folders


def run(folders: Folders, session: str | None = None) -> int:
    """Show the floor (or one session) until the user leaves; returns the exit code. Raises ConfigError on unusable settings."""
    gc.disable()  # until the first paint: loading makes many objects and no garbage, and collecting meanwhile costs a tenth of the start

    from app import keymap, models, themes
    from app.watch_app import WatchApp

    settings = load(folders)
    if settings.ui.theme not in themes.NAMES:
        raise ConfigError(settings.file, 1, "ui.theme", f"{settings.ui.theme!r} is not a theme; known: {', '.join(themes.NAMES)}")
    try:
        keys = keymap.build(settings.ui.preset, settings.ui.keys)
    except keymap.KeymapError as exc:
        raise ConfigError(settings.file, 1, "", str(exc)) from exc
    app = WatchApp(folders, keys, theme=settings.ui.theme, session=session, first=models.first_look(folders))
    return app.run() or app.return_code or 0
