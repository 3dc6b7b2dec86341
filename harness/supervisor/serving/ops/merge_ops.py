"""What clients may ask about bringing a session's work into a branch: a table of operations of its own."""

from __future__ import annotations

from pathlib import Path

import msgspec

from harness.events.work import merge_events
from harness.supervisor.base.errors import LinkLost, OpError
from harness.supervisor.endpoints.credentials import given_credential
from harness.supervisor.fleet.session import Session
from harness.supervisor.serving.finding import Find
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.supervisor.sessions import continuing
from harness.supervisor.sessions.taking.merging import Asked
from harness.views.merge_views import HandedBack, Merged, MergeLooked
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.merge.merge import MergeRequest

_WAYS = (merge_events.MERGE, merge_events.SQUASH, merge_events.REBASE)
_MOST_MESSAGE = 16 * 1024


class MergeOps:
    """``merge_look`` (where it would go), ``merge``, whose reply comes when it has ended, however that was, and
    ``resolve``.
    """

    def __init__(self, parts: Parts, find: Find) -> None:
        self._p = parts
        self._find = find

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {"merge_look": self.look, "merge": self.merge, "resolve": self.resolve}

    async def look(self, c: Connection, m: Fields) -> MergeLooked:
        """Where a session's work would be merged, and what stands in the way."""
        session = await self._find(m)
        return MergeLooked(merge=await self._p.merging.look(session, parse(m, session).wish))

    async def merge(self, c: Connection, m: Fields) -> Merged:
        """Merge a session's work into a branch; the reply comes when that has ended."""
        session = await self._find(m)
        asked = parse(m, session)
        try:
            ended = await self._p.merging.run(session, asked, c.by)
        except (WorkspaceError, LinkLost) as exc:
            code = exc.code if isinstance(exc, WorkspaceError) else "lost"
            raise OpError(code, f"the merge was broken off: {exc}", "see what came of it, then merge again") from exc
        finally:
            self._p.conductor.put_away(session)  # it got its keeper only for this
        return Merged(**msgspec.structs.asdict(ended), name=session.name)

    async def resolve(self, c: Connection, m: Fields) -> HandedBack:
        """Hand the conflicts of a merge back to the agent."""
        session = await self._find(m)
        body, told = await self._p.merging.hand_back(session, text_of(m, "text", _MOST_MESSAGE).strip(), c.by)
        if (key := given_credential(m.get("credential"))) is not None:
            self._p.credentials.add(key)
        wish = continuing.ContinueRequest(text=told)
        await self._p.continuing.run(session, wish, self._p.budget_service.of(session.sid).spent, c.by, (body,))
        return HandedBack(sid=session.sid, name=session.name, into=body.into, onto=body.onto)


def parse(m: Fields, session: Session) -> Asked:
    """What is asked for. Raises OpError ``bad_request``."""
    how = text_of(m, "how") or merge_events.MERGE
    if how not in _WAYS:
        raise OpError("bad_request", f"how must be one of {', '.join(_WAYS)}")
    intent = session.state.intent
    repo = text_of(m, "repo") or (intent.repo if intent is not None else "")
    if not repo.startswith("/") or "\0" in repo:
        raise OpError("bad_request", "repo must be an absolute path")
    wish = MergeRequest(how, Path(repo), text_of(m, "into"), text_of(m, "message", _MOST_MESSAGE))
    return Asked(wish, m.get("checks") is not False, m.get("commit") is True, text_of(m, "seen", 64))
