"""The fork server of brains: ``python -P -s -m harness.brain.brain_nursery --fd N``, with the SDK loaded and frozen."""

from __future__ import annotations

import contextlib
import sys

from harness.agents import fork_server
from harness.brain import warm
from harness.brain.builtin import BuiltIn
from harness.linux import groups, heap


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    sock = fork_server.inherited("Fork server of brains; started by the supervisor.", argv)
    groups.lower_ours()
    fork_server.harden()
    heap.give_back()
    context = warm.load()
    nursery = fork_server.Nursery(sock, lambda spec, desk: BuiltIn(spec, desk, context))
    warm.freeze()
    with contextlib.suppress(ConnectionError):  # the supervisor is gone: the end of the stream, met while writing
        nursery.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
