"""Which supervisor has the say in a session, by its epoch, and which brain, by its lease. Standard library only."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Any

from harness.session.appender import Journal
from harness.session.errors import OpError
from harness.session.request_fields import number, text


class Authority:
    """The newest epoch that was here, and the secret of the brain that holds the lease.

    ``write`` puts a durable record of the keeper's own into the log; raises OpError, NoSpace, Poisoned.
    """

    def __init__(self, journal: Journal, write: Callable[[str, dict[str, Any]], None]) -> None:
        self._journal = journal
        self._write = write
        self.epoch = journal.memory.epoch
        self._secret = b""

    def take_over(self, epoch: int) -> None:
        """A supervisor of this epoch is here. Raises OpError ``stale_epoch`` when a newer one was."""
        if epoch < self.epoch:
            raise OpError(
                "stale_epoch", f"a supervisor of epoch {self.epoch} has been here; epoch {epoch} has no say any more"
            )
        self.epoch = epoch

    def check(self, gen: int, secret: str) -> None:
        """Raises OpError ``stale_lease`` unless this generation holds the lease and knows its secret."""
        lease = self._journal.memory.lease
        if (
            lease is None
            or gen != lease["gen"]
            or not self._secret
            or not hmac.compare_digest(self._secret, secret.encode("utf-8", "replace"))
        ):
            raise OpError("stale_lease", f"generation {gen} does not hold the lease of this session")

    def grant(self, message: dict[str, Any]) -> bool:
        """Give the lease to the brain that a supervisor names; False when it holds it already, under a keeper that
        died. Raises OpError, NoSpace, Poisoned.
        """
        data = {
            "gen": number(message, "gen"),
            "epoch": number(message, "epoch"),
            "pid": number(message, "pid"),
            "start": number(message, "start"),
            "boot": text(message, "boot"),
        }
        secret = text(message, "secret").encode("utf-8", "replace")
        memory = self._journal.memory
        if data["epoch"] != self.epoch:
            raise OpError("stale_epoch", f"the supervisor's epoch is {self.epoch}, not {data['epoch']}")
        if not secret:
            raise OpError("bad_request", "secret is empty")
        if (
            memory.lease is not None
            and not self._secret
            and all(memory.lease.get(name) == data[name] for name in ("gen", "pid", "start", "boot"))
        ):
            self._secret = secret
            return False
        if number(message, "gen") <= memory.gen:
            raise OpError(
                "stale_lease", f"generation {memory.gen} was granted already, the next must be higher than that"
            )
        self._write("lease.granted", data)
        self._secret = secret
        return True

    def end(self, message: dict[str, Any]) -> None:
        """The lease is over. Raises OpError, NoSpace, Poisoned."""
        gen = number(message, "gen")
        lease = self._journal.memory.lease
        if lease is None or lease["gen"] != gen:
            raise OpError("stale_lease", f"generation {gen} does not hold the lease")
        data: dict[str, Any] = {"gen": gen, "reason": text(message, "reason")}
        if message.get("exit_code") is not None:
            data["exit_code"] = number(message, "exit_code")
        self._write("lease.ended", data)
        self._secret = b""
