"""Wants of the machine that end by themselves: no open file, process or memory is to be had just now."""

from __future__ import annotations

import errno

_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})
_NO_THREAD = "can't start new thread"


def scarce(exc: BaseException | None) -> bool:
    """True when such a want is behind ``exc``, also when it was the reason of another failure."""
    while exc is not None:
        if _lacks(exc):
            return True
        exc = exc.__cause__ or exc.__context__
    return False


def _lacks(exc: BaseException) -> bool:
    if isinstance(exc, OSError):
        return exc.errno in _ERRORS
    return isinstance(exc, MemoryError) or (isinstance(exc, RuntimeError) and str(exc) == _NO_THREAD)
