"""The fork server of brains: ``python -P -s -m harness.brain.brain_nursery --fd N``, with the SDK loaded and frozen."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import traceback
from typing import NoReturn

from harness.agents import fork_server
from harness.brain.api import lean_sdk
from harness.linux import groups, heap, shared_memory

WHOLE = "--whole-sdk"


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    given = sys.argv[1:] if argv is None else argv
    sock = fork_server.inherited("Fork server of brains; started by the supervisor.", [a for a in given if a != WHOLE])
    groups.lower_ours()
    fork_server.harden()
    heap.give_back()
    gc.disable()  # what is loaded stays: looking for garbage among it took a fifth of the time
    try:
        if WHOLE not in given:
            lean_sdk.leave_out()
        from harness.brain.api import warm
        from harness.brain.builtin import BuiltIn

        context = warm.load()
    except Exception:
        if WHOLE in given:
            raise
        _again_whole(sock.fileno(), given)
    nursery = fork_server.Nursery(sock, lambda spec, desk: BuiltIn(spec, desk, context))
    shared_memory.freeze()
    with contextlib.suppress(ConnectionError):  # the supervisor is gone: the end of the stream, met while writing
        nursery.serve()
    return 0


def _again_whole(fd: int, given: list[str]) -> NoReturn:
    """An SDK that cannot do without what was left out is loaded whole, by this process from its beginning."""
    traceback.print_exc()
    print(
        "brain nursery: the SDK does not load without its unused parts; it is loaded whole", file=sys.stderr, flush=True
    )
    os.set_inheritable(fd, True)
    os.execv(sys.executable, [sys.executable, "-P", "-s", "-m", "harness.brain.brain_nursery", *given, WHOLE])


if __name__ == "__main__":
    sys.exit(main())
