"""Wants of the machine that end by themselves: no open file, process or memory is to be had just now."""

from __future__ import annotations

import errno

_ERRORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN})


def scarce(exc: BaseException | None) -> bool:
    """True when such a want is behind ``exc``, also when it was the reason of another failure."""
    while exc is not None:
        if isinstance(exc, OSError) and exc.errno in _ERRORS:
            return True
        exc = exc.__cause__ or exc.__context__
    return False
