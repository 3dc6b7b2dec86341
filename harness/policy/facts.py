"""What the pure policy needs to know of the world, gathered beforehand by `harness.workspace.facts.gather.gather`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from harness.domain.actions.destination import LocalRemote, Named
from harness.domain.denied import NOTHING, Denied

Bind = tuple[str, str, str]
"""(source, destination inside the sandbox, ``ro`` | ``rw``)"""


@dataclass(frozen=True, slots=True)
class SandboxFacts:
    """What the sandbox of this session makes visible: extra readable paths, writable paths, binds in mount order."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    binds: tuple[Bind, ...] = ()

    def only_read(self) -> SandboxFacts:
        """The same, with nothing that can be written."""
        written = ((path, path) for path in self.write)
        shown = (*written, *((source, at) for source, at, _ in self.binds))
        return SandboxFacts(self.read, (), tuple((source, at, "ro") for source, at in shown))


@dataclass(frozen=True, slots=True)
class Target:
    """Where a push really leads, after the user's own rewrites of addresses. No credential is in it."""

    url: str
    """The final address; for a local remote its git folder."""
    named: Named
    """The address as it is written."""
    repository: str
    """The git folder whose objects are pushed."""
    local: LocalRemote | None = None
    """What a local remote would run as the user."""
    refused: str = ""
    """Why nobody may push there."""
    others: int = 0
    """Further addresses of the same remote, which are not pushed to."""
    seen: str | None = None
    """The remote's address as `harness.executor.preconditions` reads it from the repository's configuration; None when
    it has no name there.
    """


@dataclass(frozen=True, slots=True)
class Facts:
    """A snapshot of the worktree and the session's surroundings at the moment an action is judged.

    All paths are absolute with symbolic links resolved, except the keys of ``resolved`` (the paths as the input writes
    them) and ``hashes`` (relative to the worktree).
    """

    worktree: str
    branch: str
    """The session's branch without ``refs/heads/``."""
    head: str
    """The commit the agent's HEAD is at."""
    home: str
    remotes: Mapping[str, str] = field(default_factory=dict)
    """Push URL by remote name, as the repository's configuration has it (may hold a credential: it never enters an
    action).
    """
    target: Target | None = None
    """Where the push in question leads; None for everything else, and for a push that is not understood."""
    sandbox: SandboxFacts = SandboxFacts()
    env: Mapping[str, str] = field(default_factory=dict)
    """The whole environment of a sandboxed child."""
    open_env: Mapping[str, str] = field(default_factory=dict)
    """The whole environment of a child outside the sandbox: the user's own home, no secret in a value."""
    folder: str = "."
    """What relative paths of a call count from, and where it runs when it names no folder, from the top of the
    worktree.
    """
    begin: str = ""
    """Where it runs instead while that folder is not there."""
    identity: Mapping[str, int] = field(default_factory=dict)
    """``dev`` and ``ino`` of the worktree's folder."""
    cwd_identity: Mapping[str, int] = field(default_factory=dict)
    """``dev`` and ``ino`` of the folder that the call runs in."""
    program: Mapping[str, object] = field(default_factory=dict)
    """The program of a call outside the sandbox: ``path`` (links resolved), ``dev``, ``ino``, ``sha``; empty when there
    is none.
    """
    deletes: Mapping[str, str] = field(default_factory=dict)
    """What a plain deletion outside the sandbox takes away, as `harness.executor.deleted` sees it, by the names it has.
    """
    snapshot: str = ""
    """The kept state of the worktree that a person is shown; empty when nobody is asked."""
    unprotected: str = ""
    """Why the state before the call cannot be kept; empty when it can."""
    resolved: Mapping[str, str] = field(default_factory=dict)
    """Each path named by the input → where it really leads."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of files that the input names, or ``absent``; absolute names for files outside the worktree."""
    commits: Mapping[str, str] = field(default_factory=dict)
    """Source names of a push → commit, only those that resolve."""
    remote_refs: Mapping[str, str] = field(default_factory=dict)
    """Full ref name → commit at the remote that a push names; a missing name is absent there."""
    tree: Mapping[str, object] | None = None
    """shfmt's syntax tree of a shell script; None = it does not parse (or there is no script)."""
    own: tuple[str, ...] = ()
    """Watchfloor's own folders and the file with its key: no tool opens them, whatever a policy says."""
    denied: Denied = NOTHING
    """What the roles of the session keep from it, in the worktree and in the ``repository`` of the person."""
    repository: str = ""
    timeout_s: int = 600
    """Default and upper bound of a call's running time in seconds."""
    output_bytes: int = 8 * 1024 * 1024
    """Bytes of output that are kept."""
    job_s: int = 86_400
    """Seconds after which a job is ended that names no limit of its own; ``job_most_s`` is the most it can name."""
    job_most_s: int = 7 * 86_400
    job_log_bytes: int = 16 << 20
    """About how many bytes of a job's output are kept."""
