"""Starting the supervisor from a terminal: it gets the key that the terminal's environment holds, and no variable that
holds one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from harness.protocol import api_key, credential
from harness.protocol import config as configuration
from harness.protocol.client import Client, ensure_supervisor
from harness.protocol.paths import Folders


def supervisor(folders: Folders, *, name: str, tell: Callable[[str], None] | None = None) -> Client:
    """A connection, starting the supervisor when nobody answers. Raises Unreachable, ForeignState, FolderError."""
    drop: tuple[str, ...] = ()
    key: credential.Credential | None = None
    # the verbs that need settings report it; a look at the floor must still work
    with contextlib.suppress(configuration.ConfigError):
        config = configuration.load(folders)
        drop = (config.model.api_key_env,)
        key = api_key.credential(config)
    return ensure_supervisor(folders, name=name, drop=drop, key=key, tell=tell)
