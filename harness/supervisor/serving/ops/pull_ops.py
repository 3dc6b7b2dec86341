"""What clients may ask about sending a session's work to a remote: a table of operations of its own."""

from __future__ import annotations

import msgspec

from harness.domain.text import secret_scan
from harness.events import types as t
from harness.supervisor.base.errors import OpError
from harness.supervisor.serving.finding import Find
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.supervisor.sessions.taking.pulling import PublishRequest
from harness.views.pull_views import Pulled, PullLooked, SecretsFound
from harness.views.replies import DONE, Done


class PullOps:
    """``pull_look`` (nothing is sent), ``pull_secrets`` (what of a request's texts looks like a secret), ``pull`` (the
    push, answered when it ended) and ``pull_opened``.
    """

    def __init__(self, parts: Parts, find: Find) -> None:
        self._p = parts
        self._find = find

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {
            "pull_look": self.look,
            "pull_secrets": self.secrets,
            "pull": self.push,
            "pull_opened": self.opened,
        }

    async def look(self, c: Connection, m: Fields) -> PullLooked:
        """What a push of a session's work would send."""
        session = await self._find(m)
        try:
            view = await self._p.pulling.look(session, parse(m), ready=m.get("ready") is True)
        finally:
            self._p.conductor.put_away(session)  # it got its keeper only for this
        return PullLooked(pull=view)

    async def secrets(self, c: Connection, m: Fields) -> SecretsFound:
        """The kind of secret in each line of each text, empty for none; our own keys are known here alone."""
        texts = m.get("texts")
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise OpError("bad_request", "texts must be a list of texts")
        keys = self._p.credentials.keys()
        return SecretsFound(found=[secret_scan.in_lines(text, keys) for text in texts])

    async def push(self, c: Connection, m: Fields) -> Pulled:
        """Push a session's work; the reply comes when that has ended."""
        session = await self._find(m)
        try:
            ended, view = await self._p.pulling.push(session, parse(m), c.by)
        finally:
            self._p.conductor.put_away(session)  # it got its keeper only for this
        return Pulled(**msgspec.structs.asdict(ended), name=session.name, pull=view)

    async def opened(self, c: Connection, m: Fields) -> Done:
        """Record that a program opened the request for review."""
        session = await self._find(m)
        body = t.PullOpened(
            branch=text_of(m, "branch"), address=text_of(m, "address"), program=text_of(m, "program", 40), by=c.by
        )
        try:
            await self._p.pulling.opened(session, body)
        finally:
            self._p.conductor.put_away(session)  # it got its keeper only for this
        return DONE


def parse(m: Fields) -> PublishRequest:
    """What is asked for. Raises OpError ``bad_request``."""
    return PublishRequest(
        remote=text_of(m, "remote") or "origin",
        branch=text_of(m, "branch").removeprefix("refs/heads/"),
        commit=m.get("commit") is True,
        force=m.get("force") is True,
        seen=text_of(m, "seen", 64),
        address=text_of(m, "address"),
    )
