"""Starting the supervisor from a terminal: it gets the key that the terminal's environment holds, and no variable that
holds one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial

from harness.protocol.client import Client, GivenAtStart, ensure_supervisor
from harness.protocol.paths import Folders


def supervisor(folders: Folders, *, name: str, tell: Callable[[str], None] | None = None) -> Client:
    """A connection, starting the supervisor when nobody answers. Raises Unreachable, ForeignState, FolderError."""
    return ensure_supervisor(folders, name=name, given=partial(_given, folders), tell=tell)


def _given(folders: Folders) -> GivenAtStart:
    from harness.protocol.config import (  # most commands find a supervisor, and need no settings for that
        api_key,
        config,
    )

    drop: tuple[str, ...] = ()
    # the verbs that need settings report it; a look at the floor must still work
    with contextlib.suppress(config.ConfigError):
        settings = config.load(folders)
        drop = (settings.model.api_key_env,)
        return GivenAtStart(drop, api_key.credential(settings))
    return GivenAtStart(drop)
