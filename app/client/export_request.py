"""Asking for the export of a session: a process of its own makes it, so that neither screen nor supervisor waits."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from harness.bundle import session_bundle
from harness.domain.export_order import ExportMade, ExportOrder
from harness.domain.text.formatting import counted
from harness.protocol.paths import Folders

COMMAND = (sys.executable, "-P", "-s", "-m", "harness.workspace.export.session_export")
"""Takes what `order` makes on its standard input, and answers with what `made_of` reads."""


class NotExported(Exception):
    """Nothing was made; the message says why."""


def file_name(name: str, sid: str) -> str:
    """What a bundle is called where nobody names it."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "-" for c in name)[:40]
    return f"{plain or 'session'}-{sid}{session_bundle.SUFFIX}"


def order(folders: Folders, session: Path, file: Path, *, thin: bool = False, checkpoints: bool = False) -> bytes:
    """The order to export the session in this folder of its own to ``file``."""
    return msgspec.json.encode(
        ExportOrder(
            session=str(session),
            ledger=str(folders.ledger),
            file=str(file.absolute()),
            thin=thin,
            checkpoints=checkpoints,
        )
    )


def made_of(reply: bytes) -> ExportMade:
    """What was made. Raises NotExported."""
    try:
        answer = msgspec.json.decode(reply, type=dict[str, object])
        if "error" in answer:
            raise NotExported(str(answer["error"]))
        return msgspec.convert(answer, ExportMade)
    except msgspec.DecodeError as exc:
        raise NotExported("the process that exports died; run it again, and report it when it dies again") from exc


async def run(order: bytes) -> ExportMade:
    """What was made of this order. Raises NotExported."""
    try:
        process = await asyncio.create_subprocess_exec(
            *COMMAND,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        out, _ = await process.communicate(order)
    except OSError as exc:
        raise NotExported(f"the process that exports cannot be started: {exc.strerror or exc}") from exc
    return made_of(out)


def told(made: ExportMade) -> str:
    """One line about what was made, still untrusted."""
    commits = f", {counted(made.commits, 'ref')} of its work" if made.commits else ", no commits"
    held = f"{made.records:,} records, {made.payloads:,} payloads{commits}"
    return f"{made.file}: {made.bytes:,} bytes, {held}"
