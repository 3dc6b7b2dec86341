"""Refusals as values: a code for programs, a message and a hint for people."""

from __future__ import annotations

import errno

from harness.domain.problems import NONE, Trouble
from harness.eventlog.writer import NoSpace
from harness.linux.scarce import scarce
from harness.workspace.git.errors import held
from harness.workspace.git.locks import RepositoryBusy

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_SHORTLY = 5.0
FOR_NOW = frozenset({"no_space", "scarce"})
"""Codes of what is asked again after a while, however often."""


class OpError(Exception):
    """An operation was refused; ``code`` is part of the protocol, the texts say what is wrong and what to do."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def to_wire(self) -> dict[str, str]:
        """The ``error`` member of a reply."""
        wire = {"code": self.code, "message": self.message}
        if self.hint:
            wire["hint"] = self.hint
        return wire


class Later(Exception):
    """Something only has to wait: the step is done again after ``seconds``.

    ``trouble`` is shown meanwhile, as what ends by itself.
    """

    def __init__(self, seconds: float, trouble: Trouble = NONE) -> None:
        super().__init__(str(trouble))
        self.seconds = seconds
        self.trouble = trouble


class LinkLost(Exception):
    """The connection to a keeper or a fork server ended before the answer came."""


_SAID_FULL = (
    "No space left on device",
    "Out of diskspace",
    "unable to write file",
    "unable to write new",
    "n't write '",
)
"""Git says it in words only; from the third on, what it says of a file, an index or a ref that was written in part."""


def out_of_space(exc: BaseException | None) -> bool:
    """True when a full disk (or quota) is behind ``exc``: whatever failed is done again when there is room."""
    while exc is not None:
        full = (
            isinstance(exc, NoSpace)
            or (isinstance(exc, OSError) and exc.errno in _FULL)
            or (isinstance(exc, OpError) and exc.code == "no_space")
        )
        if full or any(said in str(exc) for said in _SAID_FULL):
            return True
        exc = exc.__cause__ or exc.__context__
    return False


def locked(exc: BaseException | None) -> bool:
    """True when another git holds what ``exc`` needs, or left its lock file behind."""
    while exc is not None:
        if getattr(exc, "code", "") == RepositoryBusy.code or held(str(exc)):
            return True
        exc = exc.__cause__ or exc.__context__
    return False


def refusal(exc: BaseException) -> OpError | None:
    """What a person is told of an operation that failed for such a want; None when it failed for anything else."""
    if not scarce(exc):
        return None
    words = Trouble("scarce").words
    return OpError("scarce", f"{words.headline} ({exc})", f"try it again in a moment; if it lasts, {words.do}")


def for_now(exc: BaseException, what: str) -> Later | None:
    """How long to wait when ``what`` failed for a want that ends by itself; None when it was anything else."""
    if out_of_space(exc):
        return Later(_SHORTLY, Trouble("no_space", f"{what}: {exc}"))
    if scarce(exc):
        return Later(_SHORTLY, Trouble("scarce", f"{what}: {exc}"))
    if locked(exc):
        return Later(_SHORTLY, Trouble("locked", f"{what}: {exc}"))
    return None
