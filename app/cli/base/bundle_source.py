"""A session in a file of its own, for the verbs that only look: taken apart into a folder for as long as they look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from app.cli.base.arguments import Refused
from app.cli.base.context import Context
from app.cli.base.offline_fleet import OfflineReader
from app.cli.base.output import safe, warn
from harness.bundle import session_bundle
from harness.protocol.client import Client
from harness.protocol.paths import Folders
from harness.protocol.session_names import is_session_id


def file_of(text: str) -> Path | None:
    """The bundle that is meant; None when it is the name of a session."""
    meant = "/" in text or text.endswith(session_bundle.SUFFIX)
    return Path(text) if meant else None


@contextmanager
def look(ctx: Context, ids: Sequence[str]) -> Iterator[tuple[Client | OfflineReader, list[str]]]:
    """Who answers about these sessions, and what they are called there: the supervisor, the disk where there must be
    none, or a bundle that is the only one named.

    Raises NotABundle, Refused.
    """
    file = file_of(ids[0]) if len(ids) == 1 else None
    if file is None:
        with ctx.look() as client:
            yield client, list(ids)
        return
    with reader(file) as (made, sid):
        yield made, [sid]


@contextmanager
def reader(file: Path) -> Iterator[tuple[OfflineReader, str]]:
    """The session of a bundle as a state folder that nobody drives, and its id. Raises NotABundle, Refused."""
    with TemporaryDirectory(prefix="watchfloor-look-") as made:
        root = Path(made)
        parts = root / "parts"
        parts.mkdir()
        with reading(file):
            checked = session_bundle.unpack(file, parts)
        sid = checked.manifest.sid if checked.manifest is not None else ""
        if not is_session_id(sid):  # it becomes the name of a folder
            raise session_bundle.NotABundle(f"{file.name}: {sid[:40]!r} is no session's id")
        for problem in checked.problems:
            warn(f"watchfloor: {safe(file.name)}: {safe(problem)}")
        folders = Folders(root / "state", root / "run", root / "config")
        folders.sessions.mkdir(parents=True)
        parts.rename(folders.session(sid).root)
        try:
            yield OfflineReader(folders), sid
        except msgspec.DecodeError as exc:
            raise session_bundle.NotABundle(f"{file.name}: a record of its log cannot be understood: {exc}") from exc


@contextmanager
def reading(file: Path) -> Iterator[None]:
    """Has a file that cannot be read, or has no space to be unpacked, refused by name. Raises Refused."""
    try:
        yield
    except OSError as exc:
        raise Refused(f"{safe(str(file))} cannot be read: {exc.strerror or exc}") from exc
