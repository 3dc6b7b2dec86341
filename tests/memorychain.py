"""What is wrong with a chain of versions of a memory."""

from __future__ import annotations

from collections.abc import Iterable

from harness.memory.records import DELETED, Written, sha_of


def broken(versions: Iterable[Written]) -> str:
    """What is wrong with a memory's chain of versions, in words; empty when each stands on the one before."""
    before: Written | None = None
    for version in versions:
        if before is not None and version.version != before.version + 1:
            return f"{version.key}: version {version.version} follows {before.version}"
        if before is not None and version.before not in (before.sha, ""):
            return f"{version.key}: version {version.version} was made on {version.before[:12]}"
        if version.op != DELETED and version.sha != sha_of(version.text):
            return f"{version.key}: version {version.version} is not its text"
        before = version
    return ""
