"""The spool folder: what a running call leaves on disk before its end is in the log. Standard library only.

Files of one attempt are ``<call_id>-<attempt>`` with ``.out`` (output so far), ``.pid`` (leader of its processes),
``.json`` (the fields of its ``tool.ended``, there before that record) and ``.scratch/`` (a tool's own).
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from harness.linux.durable import replace_file, swap_file
from harness.linux.proc import Identity
from harness.protocol.paths import SessionFolder


def base(folder: SessionFolder, call_id: str, attempt: int) -> Path:
    """Common beginning of the names; the call id was checked when it was proposed."""
    return folder.spool / f"{call_id}-{attempt}"


def open_output(folder: SessionFolder, call_id: str, attempt: int) -> int:
    """A fresh file for a call's output, open for reading and writing. Raises OSError."""
    folder.spool.mkdir(mode=0o700, exist_ok=True)
    return os.open(f"{base(folder, call_id, attempt)}.out", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)


def note_leader(where: Path, who: Identity) -> None:
    """Remember the call's process, so that a later keeper can find what is left of it."""
    swap_file(f"{where}.pid", _json(list(who)))


def leader(where: Path) -> Identity | None:
    value = _load(Path(f"{where}.pid"))
    if isinstance(value, list) and len(value) == 3 and isinstance(value[0], int) and isinstance(value[1], int):
        return Identity(value[0], value[1], str(value[2]))
    return None


def put_result(where: Path, data: dict[str, object]) -> None:
    """Leave a call's result for a later keeper before it is recorded; it outlives this process, not yet the machine.
    Raises OSError.
    """
    swap_file(f"{where}.json", _json(data))


def keep_result(where: Path, data: dict[str, object]) -> None:
    """The same, durable when this returns: for one whose record has to wait. Raises OSError."""
    replace_file(Path(f"{where}.json"), _json(data))


def result(where: Path) -> dict[str, object] | None:
    """The result a call reached, or None when it reached none."""
    value = _load(Path(f"{where}.json"))
    return (
        value
        if isinstance(value, dict) and isinstance(value.get("status"), str) and isinstance(value.get("call_id"), str)
        else None
    )


def clean(folder: SessionFolder, keep: set[str]) -> None:
    """Remove the files of every call that is not in ``keep``."""
    try:
        names = os.listdir(folder.spool)
    except FileNotFoundError:
        return
    for name in names:
        if name.partition("-")[0] not in keep:
            _remove(folder.spool / name)


def _remove(path: Path) -> None:
    """Best effort: what stays is tried again at the next start."""
    with contextlib.suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            for name in os.listdir(path):
                _remove(path / name)
            path.rmdir()
        else:
            path.unlink()


def _load(path: Path) -> object:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
