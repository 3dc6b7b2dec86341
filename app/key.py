"""The key of this environment, as a request hands it over.

The supervisor may have been started by somebody who had none, and after a reboot nobody else remembers it; so whatever
makes an agent think again (launch, resume, continue, retry) brings it along, from the command line and from the screen
alike.
"""

from __future__ import annotations

from typing import Any

from harness.protocol import config as configuration
from harness.protocol.paths import Folders


def of(cfg: configuration.Config) -> dict[str, Any]:
    """``{"credential": {"base_url", "key"}}``, or nothing when no key is configured here.

    Raises ConfigError on an unusable one.
    """
    found = configuration.credential(cfg)
    return {"credential": {"base_url": found.base_url, "key": found.key}} if found is not None else {}


def here(folders: Folders) -> dict[str, Any]:
    """The same, by the configuration as it is now. Raises ConfigError."""
    return of(configuration.load(folders))
