"""Which supervisor has the say in a session, by its epoch, and which brain, by its lease. Standard library only."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from dataclasses import asdict, replace

from harness.keeper.log.appender import Appender
from harness.keeper.log.state import Lease
from harness.keeper.loop.errors import OpError
from harness.keeper.loop.requests import EndLease, GrantLease
from harness.protocol.connection.frames import members


class Authority:
    """The newest epoch that was here, and the secret of the brain that holds the lease.

    ``write`` puts a durable record of the keeper's own into the log; raises OpError, NoSpace, Poisoned.
    """

    def __init__(self, journal: Appender, write: Callable[[str, dict[str, object]], None]) -> None:
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

    def check(self, gen: int, secret: str, pid: int) -> None:
        """Raises OpError ``stale_lease`` unless this generation holds the lease, knows its secret and is the process
        that it was granted to: a fork server that died before it answered may have forked another one with both.
        """
        lease = self._journal.memory.lease
        if (
            lease is None
            or gen != lease.gen
            or pid != lease.pid
            or not self._secret
            or not hmac.compare_digest(self._secret, secret.encode("utf-8", "replace"))
        ):
            raise OpError("stale_lease", f"generation {gen} does not hold the lease of this session")

    def grant(self, wanted: GrantLease) -> bool:
        """Give the lease to the brain that a supervisor names; False when it holds it already, under a keeper that
        died. Raises OpError, NoSpace, Poisoned.
        """
        secret = wanted.secret.encode("utf-8", "replace")
        memory = self._journal.memory
        lease = Lease(wanted.gen, wanted.epoch, wanted.pid, wanted.start, wanted.boot)
        if lease.epoch != self.epoch:
            raise OpError("stale_epoch", f"the supervisor's epoch is {self.epoch}, not {lease.epoch}")
        if not secret:
            raise OpError("bad_request", "secret is empty")
        if memory.lease is not None and not self._secret and replace(memory.lease, epoch=lease.epoch) == lease:
            self._secret = secret
            return False
        if lease.gen <= memory.gen:
            raise OpError(
                "stale_lease", f"generation {memory.gen} was granted already, the next must be higher than that"
            )
        self._write("lease.granted", asdict(lease))
        self._secret = secret
        return True

    def end(self, wanted: EndLease) -> None:
        """The lease is over. Raises OpError, NoSpace, Poisoned."""
        lease = self._journal.memory.lease
        if lease is None or lease.gen != wanted.gen:
            raise OpError("stale_lease", f"generation {wanted.gen} does not hold the lease")
        self._write("lease.ended", members(wanted))
        self._secret = b""
