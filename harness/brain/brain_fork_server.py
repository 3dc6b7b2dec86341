"""The fork server of brains: ``python -P -s -m harness.brain.brain_fork_server --fd N``, with the SDK loaded and
frozen.
"""

from __future__ import annotations

import contextlib
import gc
import sys

from harness.agents import fork_server
from harness.linux import groups, heap


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    sock = fork_server.inherited("Fork server of brains; started by the supervisor.", argv)
    groups.lower_ours()
    fork_server.harden()
    heap.give_back()
    gc.disable()  # what is loaded stays: looking for garbage among it took a fifth of the time
    import httpx2

    from harness.brain.builtin import BuiltIn

    context = httpx2.create_ssl_context()  # shared by all brains; it holds no connection
    forks = fork_server.ForkServer(sock, lambda spec, agent_context: BuiltIn(spec, agent_context, context))
    gc.collect()
    gc.freeze()
    with contextlib.suppress(ConnectionError):  # the supervisor is gone: the end of the stream, met while writing
        forks.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
