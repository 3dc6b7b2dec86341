"""Rules in the tests' stand-in for a supervisor: what it says of them, and what it was asked."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from harness.events.body import By
from harness.views.grant_views import GrantPreview, GrantView, PastRequest, RevokedView
from harness.views.session_views import ApprovalView
from tests.tui.memory_world import Refused

Reply = dict[str, Any]
Writer = asyncio.StreamWriter


class Granting:
    """The operations on rules."""

    def __init__(self) -> None:
        self.grants: list[GrantView] = []
        self.critical = False
        self.words = ["exec: make", "effect unsandboxed", "in {worktree}"]

    def asked(self, r: Reply) -> ApprovalView:
        """The open request that is meant. Raises Refused."""
        raise NotImplementedError

    def _op_grants(self, r: Reply, w: Writer) -> Reply:
        return {"grants": msgspec.to_builtins([g for g in self.grants if r.get("ended") or not g.ended])}

    def _op_grant_preview(self, r: Reply, w: Writer) -> Reply:
        view = self.asked(r)
        past = PastRequest(
            sid=view.sid,
            session=view.session_name,
            approval_id=view.approval_id,
            title=view.title,
            ts=view.ts,
            decision="open",
        )
        problem = "a script gets a rule for exactly this" if r["first"] else ""
        found = [] if problem else [past]
        preview = GrantPreview(
            words=self.words, critical=self.critical, past=found, looked_at=0 if problem else 7, problem=problem
        )
        return {"preview": msgspec.to_builtins(preview)}

    def _op_grant(self, r: Reply, w: Writer) -> Reply:
        view = self.asked(r)
        if self.critical and r["typed"] != view.session_name:
            raise Refused("untyped", "this is critical: type the name of its session")
        return {"grant": msgspec.to_builtins(self.stand(view, r["scope"], r["count"])), "decided": 1}

    def stand(self, view: ApprovalView, scope: str, count: int) -> GrantView:
        """A rule stands, made of this request."""
        made = GrantView(
            grant=f"g{len(self.grants):07}",
            scope=scope,
            of=view.sid,
            title=view.title,
            words=self.words,
            asked_by=view.rule,
            ts=view.ts,
            expires="2099-01-01T00:00:00.000Z",
            count=count,
            typed=self.critical,
            uses=[],
            ended="",
            sid=view.sid,
            approval_id=view.approval_id,
            by=By("tui", 1000, 1),
        )
        self.grants.append(made)
        return made

    def _op_revoke(self, r: Reply, w: Writer) -> Reply:
        if all(g.grant != r["grant"] for g in self.grants):
            raise Refused("not_found", f"there is no rule {r['grant']}")
        gone = RevokedView(by=By("tui", 1000, 1), ts="2026-01-01T00:00:00.000Z", why="")
        self.grants = [
            msgspec.structs.replace(g, ended="revoked", revoked=gone) if g.grant == r["grant"] else g
            for g in self.grants
        ]
        return {}
