"""Who takes over when the guardian and its supervisor are killed together: it waits on a pipe that the guardian holds,
and becomes the next guardian, with the same memory of the credentials. Standard library only.

``python -m harness.protocol.standby PIPE CREDENTIALS``, both descriptors. A guardian that leaves in order says so on
the pipe. See decision 074.
"""

from __future__ import annotations

import contextlib
import os
import select
import sys
import time

LEAVES = b"."
SUCCEEDS = "--succeeds"
"""Says to a guardian that it was started in the place of one that was killed: it gives way to any other, and to a stop.
"""
_LOOK_S = 0.5
_DESCRIPTORS = 256
"""More than a guardian ever has."""


def start(credentials: int) -> int:
    """Start one; the end of the pipe that it watches. Raises OSError."""
    theirs, ours = os.pipe()
    try:
        os.set_inheritable(theirs, True)
        os.posix_spawn(
            sys.executable,
            [sys.executable, "-P", "-s", "-m", "harness.protocol.standby", str(theirs), str(credentials)],
            os.environ,
            setsid=True,
            setsigmask=[],
        )
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return ours


def gone(pipe: int) -> bool:
    """True when nobody waits at the other end any more."""
    waits = select.poll()
    waits.register(pipe, 0)
    return bool(waits.poll(0))


def _wanted() -> bool:
    """Wait until it is certain whether a guardian has to be started: none lives, no supervisor is there to start one,
    and nobody asked for a stop.
    """
    from harness.protocol import locks, paths, stop_mark  # while it only waits it needs none of it

    folders = paths.resolve()
    while not locks.held(folders.guardian_lock):
        if not locks.held(folders.supervisor_lock):
            return folders.state.is_dir() and not stop_mark.names_last(folders.runtime)
        time.sleep(_LOOK_S)
    return False


def main() -> int:
    """Wait, and become the guardian when there is none any more."""
    pipe = int(sys.argv[1])
    credentials = int(sys.argv[2])
    os.set_inheritable(pipe, False)
    for fd in set(range(3, _DESCRIPTORS)) - {pipe, credentials}:  # what the guardian held for others
        with contextlib.suppress(OSError):
            os.close(fd)
    if os.read(pipe, 1) == LEAVES or not _wanted():
        return 0
    print("standby: guardian and supervisor are gone; another one is started", file=sys.stderr, flush=True)
    given = ["--credentials-fd", str(credentials), SUCCEEDS]
    os.execv(sys.executable, [sys.executable, "-P", "-s", "-m", "harness.supervisor.guardian", *given])


if __name__ == "__main__":
    sys.exit(main())
