"""What the vault keeps at most, as plain data. `harness.protocol.config.config` has the same names under ``[undo]``.
Standard library only.

The limits that came last are stored beside the packs, so that whoever brings a state back sees the tree as it was seen
when it was kept.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from harness.linux import durable

_FILE = "limits.json"


@dataclass(frozen=True, slots=True)
class VaultLimits:
    """What a snapshot may hold, and bytes of the changes that are kept from one state to the next.

    A name costs about 200 bytes of memory.
    """

    file_bytes: int = 64 << 20
    tree_bytes: int = 4 << 30
    names: int = 1_000_000
    history_bytes: int = 1 << 30


def from_wire(value: object) -> VaultLimits:
    """The limits of a frame. Raises ValueError naming the field that is no limit."""
    if not isinstance(value, dict):
        raise ValueError("undo limits must be an object")
    known = {field.name for field in fields(VaultLimits)}
    for name, item in value.items():
        if name not in known:
            raise ValueError(f"undo limits: {str(name)[:60]!r} is no limit; the limits are {', '.join(sorted(known))}")
        if isinstance(item, bool) or not isinstance(item, int) or item < 0:
            raise ValueError(f"undo limits: {name} must be a whole number, 0 or more")
    return VaultLimits(**value)


def load(folder: Path) -> VaultLimits:
    """The limits that came last; the defaults where none ever came or they cannot be read."""
    try:
        return from_wire(json.loads((folder / _FILE).read_bytes()))
    except (OSError, ValueError):
        return VaultLimits()


def save(folder: Path, limits: VaultLimits) -> None:
    """Remember them. Raises OSError."""
    folder.mkdir(mode=0o700, exist_ok=True)
    durable.write_file(folder / _FILE, json.dumps(asdict(limits)).encode())
