"""What those who speak beside the agent have spent in a session, and whether their role allows another request. Pure.

Never counted too low: by what each attempt cost, and with the whole reservation where nobody knows that.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.domain.text.formatting import usd
from harness.events import types as t
from harness.events.plan.contract_events import AGREES, PLANS
from harness.events.plan.evaluation_events import JUDGES
from harness.roles.role import JUDGE, PLANNER, Role

PART = {JUDGES: JUDGE, AGREES: JUDGE, PLANS: PLANNER}
"""By the purpose of a request: whose it is."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Nano-USD, and tokens in and out."""

    nano: int = 0
    tokens: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.nano + other.nano, self.tokens + other.tokens)


@dataclass(slots=True)
class Spent:
    """Built only by `take`: the cost by part, of the whole session."""

    by_part: dict[str, Cost] = field(default_factory=dict)
    reserved: Cost = Cost()

    def of(self, part: str) -> Cost:
        """What this part has cost."""
        return self.by_part.get(part, Cost())

    def take(self, body: t.Body) -> None:
        """Apply one record."""
        match body:
            case t.ModelRequest():
                self.reserved = Cost(body.reserved_nano, body.est_input + body.max_tokens)
            case t.ModelMessage() if body.purpose in PART:
                self._add(body.purpose, Cost(body.cost_nano, body.usage.total))
            case t.ModelSettled() if body.purpose in PART:
                self._add(body.purpose, Cost(body.more_nano, 0))
            case t.ModelFailed() if body.purpose in PART:
                known = body.price_source or body.usage == t.Usage()
                self._add(body.purpose, Cost(body.cost_nano, body.known.total) if known else self.reserved)
            case _:
                pass

    def _add(self, purpose: str, cost: Cost) -> None:
        part = PART[purpose]
        self.by_part[part] = self.of(part) + cost


def refusal(role: Role, spent: Cost, next_one: Cost) -> str:
    """Why a role that cost so much may not send a request that may cost so much; empty when it may."""
    most = role.limits
    if most.usd_nano is not None and spent.nano + next_one.nano > most.usd_nano:
        return _words(role, usd(most.usd_nano), usd(spent.nano), usd(next_one.nano))
    if most.tokens is not None and spent.tokens + next_one.tokens > most.tokens:
        return _words(role, f"{most.tokens:,} tokens", f"{spent.tokens:,}", f"{next_one.tokens:,}")
    return ""


def _words(role: Role, most: str, spent: str, next_one: str) -> str:
    room = f"{spent} are spent, and its next request may cost {next_one}"
    return f"the role {role.name} may spend {most} in a session: {room}"
