"""What clients may ask about removed sessions: a table of operations of its own."""

from __future__ import annotations

from harness.supervisor.base.errors import OpError
from harness.supervisor.base.threads import at_home
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.supervisor.sessions import archive
from harness.views import archived
from harness.views.replies import ArchivedSessions, Purged


class ArchiveOps:
    """``archived`` lists what is kept of them, ``purge`` deletes it."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {"archived": self.archived, "purge": self.purge}

    async def archived(self, c: Connection, m: Fields) -> ArchivedSessions:
        """What is kept of removed sessions."""
        return ArchivedSessions(rows=await at_home(archived.listed, self._p.folders.archive))

    async def purge(self, c: Connection, m: Fields) -> Purged:
        """Delete what is kept of a removed session, named by its whole id."""
        sid = text_of(m, "sid")
        try:
            done = await at_home(archive.purge, self._p.folders.archive, sid)
        except OSError as exc:
            raise OpError(
                "undeleted",
                f"not everything of {sid} could be deleted: {exc}",
                "mend what is named; the next watchfloor rm or purge deletes the rest",
            ) from exc
        if not done:
            raise OpError("not_found", f"no session {sid!r} is archived", "list them with: watchfloor ls --archived")
        return Purged(sid=sid)
