"""Stocked state folders: many ended sessions with real logs, made by the real writer."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.eventlog.writer import LogWriter
from harness.events import types as t
from harness.protocol.client import Client, Unreachable
from harness.protocol.connection.transport import UnixSocket
from harness.protocol.paths import Folders, ensure_private


def ended_session(folders: Folders, sid: str, number: int) -> None:
    """One finished session: intent, a few events, done."""
    folder = folders.session(sid)
    for path in (folder.root, folder.log, folder.blobs, folder.spool):
        ensure_private(path)
    log = LogWriter.open(folder.log, sid)
    intent = t.SessionIntent(
        name=f"job-{number}",
        goal=f"Do job {number}",
        repo="/srv/repo",
        branch=f"watchfloor/{sid}",
        worktree="/srv/wt",
        model="claude-haiku-5-5",
    )
    bodies: list[t.Body] = [
        intent,
        t.SessionCreated(base="0" * 40, worktree="/srv/wt", branch=intent.branch),
        t.UserMessage(text=intent.goal, origin="goal"),
        *[t.HarnessNote(level="info", text=f"step {i} of job {number}") for i in range(20)],
        t.SessionEnded(outcome="done", verified=True, reason="all checks pass"),
    ]
    for body in bodies:
        wire = t.to_wire(body)
        log.append(wire["type"], wire["data"], actor="harness")
    log.commit(sync=False)
    log.close()


@contextmanager
def stocked(count: int) -> Iterator[tuple[Folders, dict[str, str]]]:
    """Folders with ``count`` ended sessions, and the environment that names them; the supervisor is stopped
    afterwards.
    """
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as root:
        base = Path(root)
        folders = Folders(base / "state", base / "run", base / "config")
        for path in (folders.state, folders.sessions, folders.runtime, folders.config):
            ensure_private(path)
        for i in range(count):
            ended_session(
                folders, f"s{i:09d}".replace("0", "a").replace("1", "b").replace("8", "c").replace("9", "d"), i
            )
        env = os.environ | {
            "WATCHFLOOR_STATE": str(folders.state),
            "WATCHFLOOR_RUNTIME": str(folders.runtime),
            "WATCHFLOOR_CONFIG": str(folders.config),
        }
        try:
            yield folders, env
        finally:
            stop(folders)


def stop(folders: Folders) -> None:
    """Stop the supervisor of a bench fleet and its sessions."""
    try:
        with Client(UnixSocket(folders.supervisor_socket), timeout=20) as client:
            client.call("shutdown", sessions="stop")
    except Unreachable:
        return
