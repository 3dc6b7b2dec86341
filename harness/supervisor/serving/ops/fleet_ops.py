"""What clients may ask of the whole fleet: how it stands, what it cost, whether its records hold."""

from __future__ import annotations

from harness.bundle import payloads
from harness.eventlog.reader import verify
from harness.supervisor.base.threads import at_home
from harness.supervisor.fleet.session import Session
from harness.supervisor.money import paid
from harness.supervisor.serving.fleet_feed import FleetFeed
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.supervisor.upkeep import health
from harness.views.cost_views import Costs
from harness.views.replies import (
    ConfigInForce,
    Invariants,
    LogChecked,
    PolicyInForce,
    SessionChecked,
    Sessions,
    Status,
    Verified,
    ViolationView,
)


class FleetOps:
    """``status``, ``sessions``, ``costs``, ``verify``, ``invariants``."""

    def __init__(self, parts: Parts, feed: FleetFeed) -> None:
        self._p = parts
        self._feed = feed

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {
            "status": self.status,
            "sessions": self.sessions,
            "costs": self.costs,
            "verify": self.verify,
            "invariants": self.invariants,
        }

    async def status(self, c: Connection, m: Fields) -> Status:
        """How the fleet and its supervisor stand, and what is wrong."""
        p = self._p
        view = self._feed.fleet_view()
        troubled = [
            f"session {s.name}: {why}" for s in p.fleet for why in (s.trouble, *map(str, s.blocks.values())) if why
        ]
        policy = p.settings.policy
        config = p.settings.config
        return Status(
            fleet=view,
            sandbox=await p.sandbox.result(),
            policy=PolicyInForce(source=policy.source, hash=policy.hash, rules=len(policy.rules)),
            config=ConfigInForce(file=str(config.file), model=config.model.default),
            problems=[*view.warnings, *troubled],
            troubles=[*view.troubles, *health.sessions(p.fleet)],
        )

    async def sessions(self, c: Connection, m: Fields) -> Sessions:
        """A row for each session, and the fleet's totals."""
        return Sessions(rows=self._p.fleet.rows(), fleet=self._feed.fleet_view())

    async def costs(self, c: Connection, m: Fields) -> Costs:
        """What sessions, days and the fleet have cost."""
        p = self._p
        sessions = ((p.fleet.row(session), session.state.usage) for session in p.fleet)
        return paid.costs(self._feed.fleet_view(), sessions, p.budget_service.books)

    async def verify(self, c: Connection, m: Fields) -> Verified:
        """Check every byte of one session's log and payloads, or of all, and of the ledger."""
        wanted = [self._p.fleet.find(text_of(m, "sid"))] if m.get("sid") else list(self._p.fleet)

        def look(session: Session) -> SessionChecked:
            report = verify(session.folder.log)
            problem = (
                f"{report.problem.file} at byte {report.problem.offset}, record {report.problem.seq}:"
                f" {report.problem.why}"
                if report.problem
                else "; ".join(payloads.wrong(session.folder.log, session.folder.blobs))
            )
            return SessionChecked(
                sid=session.sid,
                name=session.name,
                ok=report.ok and not problem,
                records=report.records,
                problem=problem,
            )

        found = [await at_home(look, s) for s in wanted if s.folder.log.is_dir()]
        ledger = None
        if not m.get("sid") and self._p.folders.ledger.is_dir():
            report = await at_home(verify, self._p.folders.ledger)
            wrong = report.problem.why if report.problem else ""
            ledger = LogChecked(ok=report.ok, records=report.records, problem=wrong)
        return Verified(sessions=found, ledger=ledger)

    async def invariants(self, c: Connection, m: Fields) -> Invariants:
        """Check the invariants of the whole fleet."""
        from harness.supervisor.upkeep import invariants  # only who asks pays for the checker

        rows = {
            s.sid: self._p.fleet.row(s)
            for s in self._p.fleet
            if s.loaded or (s.indexed is not None and s.indexed.current)
        }
        found = await at_home(lambda: invariants.check(self._p.folders, live=True, index=rows))
        return Invariants(violations=[ViolationView(id=v.id, sid=v.sid, text=v.text) for v in found])
