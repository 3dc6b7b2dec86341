"""Where programs are: by the folders of a PATH, and bash by its usual places.

Standard library only; also used inside the sandbox.
"""

from __future__ import annotations

import os

_BASH = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")


def bash() -> str:
    """Where bash is; empty when it is not installed."""
    return next((path for path in _BASH if os.access(path, os.X_OK)), "")


def which(name: str, path: str) -> str:
    """The first executable file of that name in the absolute folders of ``path``; empty when there is none."""
    for folder in path.split(":"):
        candidate = os.path.join(folder, name)
        if folder.startswith("/") and os.access(candidate, os.X_OK) and os.path.isfile(candidate):
            return candidate
    return ""
