"""A session in a file of its own, for the verbs that only look: taken apart into a folder for as long as they look."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from app.cli.context import Context
from app.cli.output import safe, warn
from app.cli.shelf import Shelf
from harness.events import bundle
from harness.protocol.client import Client
from harness.protocol.paths import Folders


def file_of(text: str) -> Path | None:
    """The bundle that is meant; None when it is the name of a session."""
    meant = "/" in text or text.endswith(bundle.SUFFIX)
    return Path(text) if meant else None


@contextmanager
def look(ctx: Context, ids: Sequence[str]) -> Iterator[tuple[Client | Shelf, list[str]]]:
    """Who answers about these sessions, and what they are called there: the supervisor, or a bundle that is the only
    one named.

    Raises NotABundle, OSError.
    """
    file = file_of(ids[0]) if len(ids) == 1 else None
    if file is None:
        with ctx.connect() as client:
            yield client, list(ids)
        return
    with shelf(file) as (made, sid):
        yield made, [sid]


@contextmanager
def shelf(file: Path) -> Iterator[tuple[Shelf, str]]:
    """The session of a bundle as a state folder that nobody drives, and its id. Raises NotABundle, OSError."""
    with TemporaryDirectory(prefix="watchfloor-look-") as made:
        root = Path(made)
        parts = root / "parts"
        parts.mkdir()
        checked = bundle.unpack(file, parts)
        assert checked.manifest is not None
        for problem in checked.problems:
            warn(f"watchfloor: {safe(file.name)}: {safe(problem)}")
        folders = Folders(root / "state", root / "run", root / "config")
        folders.sessions.mkdir(parents=True)
        parts.rename(folders.session(checked.manifest.sid).root)
        yield Shelf(folders), checked.manifest.sid
