"""What a keeper asks of its vault's process, and what that answers. Standard library only.

Each is a frame (`harness.protocol.connection.frames`) on an inherited socket: ``{id, op, …}`` → ``{id, ok: true, …}``
or ``{id, ok: false, error: {code, message}, seen?}`` with code ``no_space`` (try again when there is room),
``expired``, ``too_large``, ``damaged`` or ``io``. Any request may carry ``limits`` (`harness.vault.limits`), which
count from then on.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.protocol.connection.op import Op


@dataclass(frozen=True, slots=True)
class KeptRoot:
    """A folder that is kept: the letter that its names begin with, where it is, names in it that are not looked at."""

    letter: str
    path: str
    hidden: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VaultFailure:
    """Why there is no answer: ``code`` for programs, the text for people; ``seen`` all the same."""

    code: str
    message: str
    seen: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class StateTaken:
    """The present state is kept as ``snapshot``; ``changed`` names differ from the one before.

    ``difference`` are sentences on what is another thing than in the state it was compared with; ``worked`` counts the
    names that were worked on since the one that was asked about, ``worked_names`` are the first files of them;
    ``seen`` is what `precheck.observe` says of the action just after.
    """

    snapshot: str
    changed: int
    left_out: int
    left_out_names: tuple[str, ...] = ()
    difference: tuple[str, ...] | None = None
    worked: int | None = None
    worked_names: tuple[str, ...] | None = None
    seen: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Take(Op[StateTaken]):
    """Keep the present state and compare it with ``since`` (only names that begin with ``only``).

    It also looks what ``action`` depends on: reading that may take long, so it is done here, where nobody waits.
    ``writers`` are the processes of jobs, which may write through mappings, of which no hint tells.
    """

    OP = "take"
    roots: tuple[KeptRoot, ...]
    label: str
    full: bool = False
    since: str | None = None
    only: str | None = None
    worked: str | None = None
    action: dict[str, object] | None = None
    writers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Observed:
    """What an action depends on, as `precheck.observe` has it."""

    seen: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Observe(Op[Observed]):
    """Look what an action depends on, and keep nothing."""

    OP = "look"
    action: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class StateExported:
    """The kept state whose content was exported (`vault.export.Exported`)."""

    snapshot: str
    changed: int
    names: int
    left_out: int
    whole: bool


@dataclass(frozen=True, slots=True)
class Export(Op[StateExported]):
    """Keep the present state, and write what a commit of it takes into the session's folder (`vault.export.Frame`)."""

    OP = "export"
    roots: tuple[KeptRoot, ...]
    label: str
    head: str
    ground: str
    since: str
    writers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class StateBroughtBack:
    """``before`` is the state that was there; ``refused`` are the first names that could not be brought back, with
    the reason.
    """

    before: str
    written: int
    removed: int
    refused: tuple[str, ...] = ()
    refused_count: int = 0


@dataclass(frozen=True, slots=True)
class BringBack(Op[StateBroughtBack]):
    """Bring a state back. Roots whose letters are in ``exact`` become what they were; others only get back what they
    lack.
    """

    OP = "bring_back"
    roots: tuple[KeptRoot, ...]
    snapshot: str
    label: str
    exact: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class KeptState:
    """A kept state of the worktree: its name, what it was taken for, when, and how many names changed with it."""

    id: str
    label: str
    ts: str
    changed: int
    left_out: int


@dataclass(frozen=True, slots=True)
class StateList:
    """Kept states, oldest first, and their size in bytes (``stored``)."""

    marks: tuple[KeptState, ...]
    stored: int


@dataclass(frozen=True, slots=True)
class ListStates(Op[StateList]):
    """The states that are kept."""

    OP = "list"
