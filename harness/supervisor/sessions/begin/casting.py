"""Who plays which part in a new session, and how a role's limits bound it."""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import msgspec

from harness.domain.denied import Denied
from harness.events import types as t
from harness.events.session.role_events import PinnedRole
from harness.roles import catalog, pinned
from harness.roles.role import INITIALIZER, JUDGE, MOST_CYCLES, PARTS, PLANNER, WORKER, Role, RoleError, RoleLimits
from harness.supervisor.base.errors import OpError

CYCLES = 3
"""How often a judge looks for each instruction, unless somebody says otherwise."""
REVISIONS = 1
"""How often objections to the contract go back to the planner, unless its role says otherwise."""


@dataclass(frozen=True, slots=True)
class Cast:
    """The roles of a session by part."""

    roles: dict[str, Role]
    judge_model: str = ""
    cycles: int = 0

    @property
    def worker(self) -> Role:
        return self.roles[WORKER]

    @property
    def denied(self) -> Denied:
        """What the session may not read."""
        return functools.reduce(operator.or_, (role.denied for role in self.roles.values()))

    def judge(self, model: str, at: str) -> t.JudgeWanted | None:
        """What the session says of its judge, which without a model of its own takes this one, and looks ``at`` the end
        or each task.
        """
        role = self.roles.get(JUDGE)
        if role is None:
            return None
        cycles = self.cycles or role.limits.cycles or CYCLES
        return t.JudgeWanted(self.judge_model or role.model or model, cycles, at)

    def contract(self, model: str) -> t.ContractWanted | None:
        """What the session says of its contract, whose planner without a model of its own takes this one."""
        role = self.roles.get(PLANNER)
        if role is None:
            return None
        revisions = REVISIONS if role.limits.cycles is None else role.limits.cycles
        return t.ContractWanted(role.model or model, revisions)

    def pinned(self) -> list[PinnedRole]:
        """As the session keeps them."""
        return [pinned.pin(part, role) for part, role in self.roles.items()]


class RoleRequest(Protocol):
    """What a launch says of roles."""

    @property
    def role(self) -> str: ...
    @property
    def judge(self) -> bool: ...
    @property
    def review(self) -> bool: ...
    @property
    def judge_model(self) -> str: ...
    @property
    def judge_cycles(self) -> int: ...
    @property
    def judge_at(self) -> str: ...
    @property
    def plan_from_goal(self) -> str: ...


def of_launch(config: Path, wish: RoleRequest) -> Cast:
    """Who plays which part in the session that is wanted (blocking). Raises OpError."""
    judged = wish.judge or wish.review or bool(wish.judge_model or wish.judge_cycles or wish.judge_at)
    if not 0 <= wish.judge_cycles <= MOST_CYCLES:
        raise OpError("bad_role", f"a judge looks at most {MOST_CYCLES} times, not {wish.judge_cycles}")
    parts = {JUDGE: judged, PLANNER: wish.review, INITIALIZER: bool(wish.plan_from_goal)}
    made = cast(config, wish.role, *(part for part, wanted in parts.items() if wanted))
    if wish.plan_from_goal and not made.roles[INITIALIZER].first:
        why = f"the role {PARTS[INITIALIZER]} does not say how a plan is written"
        raise OpError("bad_role", why, 'give it first = "…"; see: watchfloor roles')
    return replace(made, judge_model=wish.judge_model, cycles=wish.judge_cycles)


def cast(config: Path, worker: str, *others: str) -> Cast:
    """The roles of this configuration folder for the worker and the ``others`` parts (blocking).

    Raises OpError ``bad_role``.
    """
    wanted = {WORKER: worker or PARTS[WORKER], **{part: PARTS[part] for part in others}}
    return Cast({part: _role(config, name) for part, name in wanted.items()})


def _role(config: Path, name: str) -> Role:
    try:
        found = catalog.find(config, name)
    except RoleError as exc:
        raise OpError("bad_role", str(exc), "mend the file; then try: watchfloor roles") from exc
    if found is None:
        known = ", ".join(catalog.names(config))
        raise OpError("bad_role", f"there is no role {name!r}", f"known: {known}; see: watchfloor roles")
    return found[0]


def within(caps: t.Caps, limits: RoleLimits) -> t.Caps:
    """The caps, none of them above the role's limits."""
    given = msgspec.structs.asdict(caps)
    return t.Caps(**{name: least(value, getattr(limits, name)) for name, value in given.items()})


def least(value: int | None, limit: int | None) -> int | None:
    """The smaller of two limits of which each may be none."""
    known = [one for one in (value, limit) if one is not None]
    return min(known) if known else None
