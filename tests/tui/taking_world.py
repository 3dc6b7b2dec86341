"""Taking a session's work in the tests' stand-in for a supervisor."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from harness.events import types as t
from harness.events.work import merge_events as m
from harness.projections.state.merging import MergeLook
from tests.tui.memory_world import Refused

Reply = dict[str, Any]
Writer = asyncio.StreamWriter


def kept(ident: str, why: str, label: str) -> Reply:
    """A checkpoint as the supervisor lists it."""
    return {
        "id": ident,
        "label": label,
        "why": why,
        "ts": "2026-11-21T10:00:00.000Z",
        "through_seq": 3,
        "snapshot": "s1.0",
        "commit": "c" * 40,
        "head": "c" * 40,
        "changed": 1,
        "left_out": 0,
        "passed": None,
    }


def _ended(**how: Any) -> m.MergeEnded:
    by = t.By(client="tui", uid=1, pid=1)
    return m.MergeEnded(merge_id="m1", into="main", onto="a" * 40, head="b" * 40, by=by, **how)


class Taken:
    """The operations that take a session's work, or go on from it elsewhere."""

    def __init__(self) -> None:
        self.conflicts: set[str] = set()
        """Sessions of which both sides changed a file."""
        self.looks = MergeLook(repo="/home/you/shop", into="main", commits=2)
        """Where every merge would go."""
        self.kept: list[Reply] = []
        """The checkpoints of every session, newest first."""

    def _find(self, r: Reply) -> Any:
        raise NotImplementedError

    def log(self, session: Any, *bodies: t.Body) -> None:
        raise NotImplementedError

    def push_rows(self, *sessions: Any) -> None:
        raise NotImplementedError

    def add(self, name: str) -> Any:
        raise NotImplementedError

    def conflict(self, session: Any) -> m.MergeEnded:
        """Its merge does not fit."""
        self.conflicts.add(session.sid)
        ended = _ended(outcome=m.CONFLICTS, how=m.MERGE, conflicts=["src/cart.py"])
        self.log(session, ended)
        return ended

    def _op_merge_look(self, r: Reply, w: Writer) -> Reply:
        session = self._find(r)
        if not session.state.terminal:
            raise Refused("not_ended", f"{session.state.name} has not ended, so its work may still change")
        return {"merge": msgspec.to_builtins(self.looks)}

    def _op_merge(self, r: Reply, w: Writer) -> Reply:
        session = self._find(r)
        if not session.state.terminal:
            raise Refused("not_ended", f"{session.state.name} has not ended, so its work may still change")
        if session.sid in self.conflicts:
            ended = self.conflict(session)
        else:
            ended = _ended(outcome=m.MERGED, how=r["how"], commit="c" * 40)
            self.log(session, ended)
        self.push_rows(session)
        return {**msgspec.to_builtins(ended), "name": session.state.name}

    def _op_resolve(self, r: Reply, w: Writer) -> Reply:
        session = self._find(r)
        ended = session.state.merging.ended
        if ended is None or ended.outcome == m.MERGED:
            raise Refused("nothing", f"nothing keeps the work of {session.state.name} from being merged")
        self.log(session, t.SessionContinued(rounds=0), t.UserMessage(text=r["text"] or "settle it"))
        self.push_rows(session)
        return {"sid": session.sid, "name": session.state.name, "into": ended.into, "onto": "0" * 40}

    def _op_checkpoints(self, r: Reply, w: Writer) -> Reply:
        self._find(r)
        return {"checkpoints": self.kept, "made": len(self.kept)}

    def _op_fork(self, r: Reply, w: Writer) -> Reply:
        parent = self._find(r)
        known = {one["id"] for one in self.kept} | {""}
        if r["checkpoint"] not in known:
            raise Refused("not_found", f"{parent.state.name} has no checkpoint {r['checkpoint']}")
        session = self.add(r["name"] or f"{parent.state.name}-2")
        self.push_rows(session)
        return {
            "sid": session.sid,
            "name": session.state.name,
            "checkpoint_id": r["checkpoint"] or "k1",
            "warnings": [],
            "masked": [],
        }
