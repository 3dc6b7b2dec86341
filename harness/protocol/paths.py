"""Where Watchfloor keeps things: the three folders and the fixed names inside them.

Standard library and ``platformdirs`` (imported only when no override is set), because every process, the keeper too,
needs it.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

STATE_VERSION = 1
CHECKPOINTS = "checkpoints.git"
"""In a session's folder: a git repository of ours with the commits of its checkpoints."""
STOPPING = "supervisor.stopping"
"""Written into the runtime folder when a supervisor is asked to stop, with its pid: dying while it leaves is no reason
to start it again.
"""


class FolderError(Exception):
    """A folder of ours cannot be used; the message names the folder, what is wrong and what to do."""


@dataclass(frozen=True, slots=True)
class Folders:
    """The state, runtime and configuration folders of one fleet."""

    state: Path
    runtime: Path
    config: Path

    @property
    def sessions(self) -> Path:
        return self.state / "sessions"

    @property
    def archive(self) -> Path:
        """What stays of removed sessions, until somebody purges it."""
        return self.state / "archive"

    @property
    def worktrees(self) -> Path:
        return self.state / "worktrees"

    @property
    def ledger(self) -> Path:
        return self.state / "ledger"

    @property
    def memory(self) -> Path:
        """The log of what is remembered outside all contexts."""
        return self.state / "memory"

    @property
    def grants(self) -> Path:
        """The log of rules that a person made of requests."""
        return self.state / "grants"

    @property
    def index(self) -> Path:
        return self.state / "index.sqlite"

    @property
    def supervisor_log(self) -> Path:
        return self.state / "supervisor.log"

    @property
    def supervisor_socket(self) -> Path:
        return self.runtime / "supervisor.sock"

    @property
    def supervisor_lock(self) -> Path:
        return self.state / "supervisor.lock"

    @property
    def guardian_lock(self) -> Path:
        return self.state / "guardian.lock"

    @property
    def keeper_sockets(self) -> Path:
        return self.runtime / "keepers"

    @property
    def policy_file(self) -> Path:
        return self.config / "policy.toml"

    @property
    def config_file(self) -> Path:
        return self.config / "config.toml"

    def session(self, sid: str) -> SessionFolder:
        return SessionFolder(self.sessions / sid, self.keeper_sockets / f"{sid}.sock")


@dataclass(frozen=True, slots=True)
class SessionFolder:
    """Names inside one session's folder."""

    root: Path
    keeper_socket: Path

    @property
    def log(self) -> Path:
        return self.root / "log"

    @property
    def blobs(self) -> Path:
        return self.root / "blobs"

    @property
    def snapshots(self) -> Path:
        return self.root / "snapshots"

    @property
    def touched(self) -> Path:
        """Which records of the log name which file; derived (`harness.reports.touched`)."""
        return self.root / "touched"

    @property
    def spool(self) -> Path:
        return self.root / "spool"

    @property
    def jobs(self) -> Path:
        """What running jobs printed, and how jobs ended."""
        return self.root / "jobs"

    @property
    def vault(self) -> Path:
        """States of the worktree, for undo."""
        return self.root / "vault"

    @property
    def checkpoints(self) -> Path:
        return self.root / CHECKPOINTS

    @property
    def git(self) -> Path:
        """Private git directory and objects of the session's worktree."""
        return self.root / "git"

    @property
    def lock(self) -> Path:
        return self.root / "keeper.lock"


def resolve(env: dict[str, str] | None = None) -> Folders:
    """Folders from ``WATCHFLOOR_STATE``, ``WATCHFLOOR_RUNTIME``, ``WATCHFLOOR_CONFIG``, else the XDG places.

    A set state folder without a set runtime folder puts the runtime folder inside it, so that two fleets never meet.
    """
    e = os.environ if env is None else env
    state = e.get("WATCHFLOOR_STATE")
    runtime = e.get("WATCHFLOOR_RUNTIME")
    config = e.get("WATCHFLOOR_CONFIG")
    if state is None or config is None or (runtime is None and state is None):
        import platformdirs

        default_state = platformdirs.user_state_path("watchfloor")
        default_config = platformdirs.user_config_path("watchfloor")
    else:
        default_state = Path()
        default_config = default_state
    state_path = Path(state).absolute() if state else default_state
    config_path = Path(config).absolute() if config else default_config
    if runtime:
        runtime_path = Path(runtime).absolute()
    elif state is None and e.get("XDG_RUNTIME_DIR"):
        runtime_path = Path(e["XDG_RUNTIME_DIR"]) / "watchfloor"
    else:
        runtime_path = state_path / "run"
    return Folders(state_path, runtime_path, config_path)


def ensure_private(path: Path) -> None:
    """Create ``path`` with mode 0700, or check that it is ours and closed to others.

    Raises FolderError when it cannot be made, belongs to another user, is a symbolic link, or is open to others.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        st = path.lstat()
    except OSError as exc:
        raise FolderError(
            f"cannot use folder {path}: {exc.strerror or exc}; make it writable or set"
            " WATCHFLOOR_STATE/WATCHFLOOR_RUNTIME"
        ) from exc
    if stat.S_ISLNK(st.st_mode):
        raise FolderError(f"folder {path} is a symbolic link; point the setting at the real folder")
    if st.st_uid != os.getuid():
        raise FolderError(f"folder {path} belongs to uid {st.st_uid}, not to you; choose another folder")
    if st.st_mode & 0o077:
        try:
            path.chmod(0o700)
        except OSError as exc:
            raise FolderError(f"folder {path} is open to other users and cannot be closed: {exc.strerror}") from exc
    if not os.access(path, os.W_OK | os.X_OK):
        raise FolderError(f"folder {path} is not writable; make it writable or set WATCHFLOOR_STATE/WATCHFLOOR_RUNTIME")
