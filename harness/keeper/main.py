"""One keeper's life: lock, recover, listen, announce, serve, leave. Standard library only."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable

from harness.domain.calls.call_lifecycle import CallError
from harness.eventlog.reader import DamagedLog
from harness.eventlog.writer import LogBusy, LogError, NoSpace
from harness.keeper.log import background_verify, checkpoint
from harness.keeper.log.appender import Appender
from harness.keeper.loop.errors import OpError
from harness.keeper.loop.event_loop import Loop
from harness.keeper.loop.fault_points import FaultError, Faults
from harness.keeper.ops import KeeperOps
from harness.keeper.recover import recover
from harness.linux import kernel, proc
from harness.protocol import locks
from harness.protocol.paths import FolderError, SessionFolder, ensure_private

HOUSEKEEPING_S = 30.0
_LOCK_WAIT = 0.2


class StartError(Exception):
    """The keeper cannot start; ``error`` is what the fork server replies: code, message, and for damage file, offset,
    seq, text.
    """

    def __init__(self, code: str, message: str, hint: str = "", **more: object) -> None:
        super().__init__(message)
        self.error: dict[str, object] = {"code": code, "message": message, **({"hint": hint} if hint else {}), **more}


def serve(folder: SessionFolder, sid: str, announce: Callable[[proc.Identity], None]) -> None:
    """Be the keeper of one session until told to leave; ``announce`` is called once it listens.

    Raises StartError before that.
    """
    kernel.hide_memory()
    kernel.adopt_orphans()
    for sig in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(sig, signal.SIG_IGN)
    me = proc.identify(os.getpid())
    if me is None:
        raise StartError("io", "/proc does not show this process; the keeper needs a mounted /proc")
    faults = _faults()
    lock = _lock(folder)
    try:
        mine = _folder(folder)
        journal = _open(folder, sid)
        try:
            try:
                recover(journal, folder, me)
                loop = Loop(folder.keeper_socket)
            except (NoSpace, OpError, LogError, OSError) as exc:
                raise _start_error(exc, folder) from exc
            ops = KeeperOps(loop, journal, folder, sid, me, faults)
            look = _looker(loop, ops, folder, mine)
            _signals(loop, ops, look)
            _housekeeping(loop, look)
            _prove(loop, ops, journal, folder)
            announce(me)
            loop.run()
        finally:
            try:
                journal.close()
            except LogError as exc:
                print(f"keeper: {exc}", file=sys.stderr, flush=True)
    finally:
        os.close(lock)


def _faults() -> Faults:
    try:
        return Faults(os.environ.pop("WATCHFLOOR_FAULT", ""))
    except FaultError as exc:
        raise StartError("bad_request", str(exc)) from exc


def _lock(folder: SessionFolder) -> int:
    """The session's lock, held until the process ends."""
    try:
        ensure_private(folder.root)
        ensure_private(folder.keeper_socket.parent)
        fd = locks.take(folder.lock, _LOCK_WAIT)
    except (FolderError, OSError) as exc:
        raise _start_error(exc, folder) from exc
    if fd is None:
        raise StartError("already_running", f"a keeper of this session holds {folder.lock}", "connect to its socket")
    return fd


def _folder(folder: SessionFolder) -> os.stat_result:
    """Which folder this keeper keeps, whatever its name becomes."""
    try:
        return os.stat(folder.root)
    except OSError as exc:
        raise _start_error(exc, folder) from exc


def _open(folder: SessionFolder, sid: str) -> Appender:
    try:
        return Appender(folder, sid)
    except (LogError, CallError, KeyError, TypeError, ValueError, OSError) as exc:
        raise _start_error(exc, folder) from exc


def _start_error(exc: Exception, folder: SessionFolder) -> StartError:
    match exc:
        case DamagedLog():
            hint = "the records before it are good; nothing was changed"
            return StartError(
                "damaged", str(exc), hint, file=str(exc.file), offset=exc.offset, seq=exc.seq, text=exc.why
            )
        case NoSpace():
            return StartError("no_space", exc.what, "free some space, then try again")
        case LogBusy():
            return StartError("already_running", str(exc), "another process writes this log; end it first")
        case OpError():
            return StartError(exc.code, exc.message, exc.hint)
        case LogError() | FolderError():
            return StartError("unusable", str(exc))
        case OSError():
            return StartError(
                "io",
                f"session folder {folder.root}: {exc.strerror or exc}" + (f" ({exc.filename})" if exc.filename else ""),
            )
        case _:
            return StartError(
                "unusable", f"the log of {folder.root} holds a record that does not fit the ones before it: {exc}"
            )


def _signals(loop: Loop, ops: KeeperOps, look: Callable[[], None]) -> None:
    """SIGTERM leaves, SIGUSR1 has it look at its socket and its folder; both arrive through a descriptor, so no turn is
    interrupted.
    """
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setblocking(False)
    signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
    for sig in (signal.SIGTERM, signal.SIGUSR1):
        signal.signal(sig, lambda _sig, _frame: None)

    def arrived(_keep: socket.socket = theirs) -> None:
        for number in ours.recv(256):
            if number == signal.SIGTERM:
                ops.told_to_end()
            elif number == signal.SIGUSR1:
                look()

    loop.watch(ours.fileno(), arrived)


def _prove(loop: Loop, ops: KeeperOps, journal: Appender, folder: SessionFolder) -> None:
    """Have verified what was not read at the start. Damage there is met by the next keeper, which reads everything: it
    names the place and does not start.
    """
    if journal.unproved is None:
        return

    def damaged(text: str) -> None:
        print(f"keeper: {text}; this keeper leaves", file=sys.stderr, flush=True)
        with contextlib.suppress(OSError):  # then the next keeper finds it in the same way
            checkpoint.drop(folder.root)
        ops.terminate()

    try:
        ops.beside.add(background_verify.begin(loop, folder.log, journal.unproved, damaged, ops.beside.discard))
    except OSError as exc:
        print(f"keeper: the older part of the log cannot be verified now: {exc}", file=sys.stderr, flush=True)


def _housekeeping(loop: Loop, look: Callable[[], None]) -> None:
    def again() -> None:
        look()
        loop.call_later(HOUSEKEEPING_S, again)

    loop.call_later(HOUSEKEEPING_S, again)


def _looker(loop: Loop, ops: KeeperOps, folder: SessionFolder, mine: os.stat_result) -> Callable[[], None]:
    """Looks whether this keeper can still be found, and has anything to keep: a folder that is gone, or in whose place
    another one was put, is no longer its own.
    """

    def look() -> None:
        try:
            there: os.stat_result | None = os.stat(folder.root)
        except FileNotFoundError:
            there = None
        except OSError:
            return  # nobody can say now
        if there is None or not os.path.samestat(mine, there):
            why = "is gone" if there is None else "was replaced by another one"
            print(f"keeper: the session's folder {why}, so this keeper leaves", file=sys.stderr, flush=True)
            ops.terminate()
            return
        loop.rebind_if_lost()

    return look
