"""What the service billed: per key, per conversation, in integer nano-USD.

Tests hold the client's ledger against it.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass, field

from harness.simulator.catalog import Model, Tokens, cost

KEEP = 500


@dataclass(slots=True)
class Account:
    """Sums over requests."""

    requests: int = 0
    errors: int = 0
    nano: int = 0
    tokens: Tokens = field(default_factory=Tokens)

    def as_dict(self) -> dict[str, object]:
        return {"requests": self.requests, "errors": self.errors, "nano": self.nano, "tokens": asdict(self.tokens)}


@dataclass(slots=True)
class Meter:
    """Accounts by key and by conversation (key, scenario and goal), and the newest requests."""

    total: Account = field(default_factory=Account)
    keys: dict[str, Account] = field(default_factory=dict)
    conversations: dict[tuple[str, str, str], Account] = field(default_factory=dict)
    recent: deque[dict[str, object]] = field(default_factory=lambda: deque(maxlen=KEEP))

    def _accounts(self, key: str, scenario: str, goal: str) -> tuple[Account, Account, Account]:
        return (
            self.total,
            self.keys.setdefault(key, Account()),
            self.conversations.setdefault((key, scenario, goal), Account()),
        )

    def bill(self, key: str, scenario: str, goal: str, model: Model, used: Tokens) -> int:
        """Add one request that produced output; returns its cost."""
        nano = cost(model, used)
        for account in self._accounts(key, scenario, goal):
            account.requests += 1
            account.nano += nano
            account.tokens += used
        return nano

    def failed(self, key: str, scenario: str, goal: str) -> None:
        """Count one request that was answered with an error and costs nothing."""
        for account in self._accounts(key, scenario, goal):
            account.errors += 1

    def report(self) -> dict[str, object]:
        """What ``/_sim/usage`` returns."""
        return {
            "total": self.total.as_dict(),
            "keys": {key: account.as_dict() for key, account in self.keys.items()},
            "conversations": [
                {"key": key, "scenario": scenario, "goal": goal, **account.as_dict()}
                for (key, scenario, goal), account in self.conversations.items()
            ],
        }
