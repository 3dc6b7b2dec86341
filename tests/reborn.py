"""What makes a fork the program that would have been started in its place: its descriptors, signals, session,
environment, and the words by which the kernel shows it.
"""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NoReturn

from harness.linux import kernel

_FREE = 64
"""Descriptors from here on are in nobody's way while others get their places."""
_PR_SET_MM = 35
_PR_SET_MM_MAP = 14
_NO_FILE = 0xFFFFFFFF


class _Map(ctypes.Structure):
    """The kernel's ``prctl_mm_map``."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("start_code", "end_code", "start_data", "end_data", "start_brk", "brk")),
        *((name, ctypes.c_uint64) for name in ("start_stack", "arg_start", "arg_end", "env_start", "env_end", "auxv")),
        ("auxv_size", ctypes.c_uint32),
        ("exe_fd", ctypes.c_uint32),
    )


_kept: list[mmap.mmap] = []
"""What the kernel reads of us must stay."""


def show(argv: Sequence[str], env: Mapping[str, str]) -> None:
    """Let /proc show these words and this environment as ours. Raises OSError."""
    words = b"".join(os.fsencode(word) + b"\0" for word in argv)
    named = b"".join(os.fsencode(f"{name}={value}") + b"\0" for name, value in env.items())
    block = mmap.mmap(-1, len(words) + len(named), flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    block.write(words + named)
    _kept.append(block)
    begin = ctypes.addressof(ctypes.c_char.from_buffer(block))
    with open("/proc/self/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    start_code, end_code, start_stack = (int(fields[at]) for at in (23, 24, 25))
    start_data, end_data, start_brk = (int(fields[at]) for at in (42, 43, 44))
    sbrk = ctypes.CDLL(None).sbrk
    sbrk.restype = ctypes.c_void_p
    shown = _Map(
        start_code,
        end_code,
        start_data,
        end_data,
        start_brk,
        sbrk(0),
        start_stack,
        begin,
        begin + len(words),
        begin + len(words),
        begin + len(words) + len(named),
        0,
        0,
        _NO_FILE,
    )
    kernel.prctl(_PR_SET_MM, _PR_SET_MM_MAP, ctypes.byref(shown), ctypes.sizeof(shown))


def can_show() -> bool:
    """Whether this kernel lets a process say what is shown of it; tried with what is shown of us already."""
    try:
        show([sys.executable, *sys.orig_argv[1:]], os.environ)
    except OSError:
        return False
    return True


def place(given: Mapping[int, int]) -> None:
    """Put descriptors at their places (place to descriptor)."""
    aside = {at: fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _FREE) for at, fd in given.items()}
    for at, fd in aside.items():
        os.dup2(fd, at)


def close_others(kept: Callable[[int], bool] = os.get_inheritable) -> None:
    """Close what a started program would not have: it has the descriptors that are inherited."""
    for name in os.listdir("/proc/self/fd"):
        try:
            if not kept(int(name)):
                os.close(int(name))
        except OSError:  # the one by which the folder was listed
            continue


def run(
    program: Callable[[], int],
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    mask: Iterable[int] | None = None,
    default: Collection[int] = (),
) -> NoReturn:
    """Be ``program`` from here on, started with these words: ``argv`` as the kernel shows them, of which it gets those
    behind the module's name.
    """
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        if number in default or callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    if mask is not None:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    close_others()
    os.environ.clear()
    os.environ.update(env)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
    show(argv, env)
    sys.stderr = sys.__stderr__
    sys.argv = list(argv[argv.index("-m") + 1 :]) if "-m" in argv else list(argv[1:])
    end(program)


def end(program: Callable[[], int]) -> NoReturn:
    """Run a program and leave as it does, but for what Python takes apart when it ends: that is most of a command's
    time in a process that has so much loaded.
    """
    code = 1
    try:
        code = program()
    except SystemExit as exc:
        code = exc.code if isinstance(exc.code, int) else int(exc.code is not None)
        if isinstance(exc.code, str):
            print(exc.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
    threading._shutdown()  # type: ignore[attr-defined]
    leave(code)


def leave(code: int) -> NoReturn:
    """End at once, once what was said has gone out."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            code = code or 120
    os._exit(code)
