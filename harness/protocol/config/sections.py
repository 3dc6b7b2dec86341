"""The sections of ``config.toml``: what can be set, in which unit, and what holds when it is not."""

from __future__ import annotations

import msgspec

from harness.protocol.config.amounts import NANO

FRESH = ("per-task", "per-iteration", "never")
JUDGE_AT = ("end", "task")
MOST_EVIDENCE_ROUNDS = 20
MOST_WITNESSES = 20
SCREENS = ("bell", "osc9", "osc777", "off")


class ModelConfig(msgspec.Struct, frozen=True):
    """The model and how requests to it are made."""

    default: str = "claude-sonnet-5-5"
    """Model of a session whose launch names none."""
    base_url: str = ""
    """Address of the endpoint; empty for Anthropic's own, or what ``ANTHROPIC_BASE_URL`` says."""
    api_key_file: str = ""
    """File that holds the API key alone; used instead of the environment."""
    api_key_env: str = "ANTHROPIC_API_KEY"
    """Environment variable that holds the API key."""
    max_tokens: int = 8192
    """The longest reply that is asked for."""
    context_tokens: int = 80_000
    """The size that each request is kept within, whatever the model's window: every turn pays for all that it reads
    again.
    """
    max_rounds: int = 5
    """How often an agent goes on after it said that it was finished and a check failed."""
    evidence_rounds: int = 1
    """How often an agent is asked for evidence before its word alone ends work that no check and no judge decides."""
    reply_first_s: int = 300
    """Longest wait for the beginning of a reply."""
    reply_silence_s: int = 300
    """Longest wait between two pieces of a reply's content; pings do not count."""
    reply_total_s: int = 3600
    """Longest time for a whole reply."""


class CapsConfig(msgspec.Struct, frozen=True):
    """Hard limits of what may be spent. Amounts are held in nano-USD, durations in seconds."""

    session_usd: int | None = 5 * NANO
    """What a session may cost, unless its launch says otherwise."""
    session_tokens: int | None = None
    """Tokens of a session, likewise."""
    session_wall: int | None = None
    """Time since the launch of a session, likewise. Time in which nobody could work does not count."""
    session_calls: int | None = None
    """Tool calls of a session, likewise."""
    day_usd: int | None = 50 * NANO
    """What all sessions together may cost in a day (UTC)."""
    day_tokens: int | None = None
    """Tokens of all sessions in a day."""
    fleet_usd: int | None = None
    """What all sessions together may cost, ever."""
    fleet_tokens: int | None = None
    """Tokens of all sessions, ever."""


class FenceConfig(msgspec.Struct, frozen=True):
    """What an agent's calls can see of this machine, and how long they may take."""

    read: tuple[str, ...] = ()
    """Folders that calls can read besides the system's and their worktree."""
    path: tuple[str, ...] = ()
    """Folders put in front of ``PATH``."""
    env: dict[str, str] = {}
    """Extra environment variables. Never put a secret here."""
    timeout_s: int = 600
    """How long a call may run that names no limit of its own."""
    output_bytes: int = 8 * 1024 * 1024
    """How much output of a call is kept."""


class LimitsConfig(msgspec.Struct, frozen=True):
    """What a call, with all its processes, may take of this machine."""

    memory: int | None = 0
    """Memory of all processes of a call, with its ``/tmp`` and ``/dev/shm``; ``0`` is three quarters of the
    machine's. May be written as a share: ``\"50%\"``.
    """
    process_memory: int | None = 0
    """Private data of each process, used where there are no cgroups; ``0`` is as much as ``memory``."""
    memory_free: int | None = 512 << 20
    """Memory that the machine keeps, at most 1/32 of all: when less is left, calls are ended, the largest first."""
    processes: int = 4096
    """Processes and threads of a call."""
    tmp: int = 2 << 30
    """Size of the call's own ``/tmp``."""
    shm: int = 1 << 30
    """Size of the call's own ``/dev/shm``, and of its System V shared memory."""
    disk: int | None = 10 << 30
    """How far a session's files may grow beyond what it began with."""
    disk_files: int | None = 500_000
    """How many files a session may add."""
    disk_free: int | None = 1 << 30
    """Room that the disk keeps, at most 5 % of it: a call that writes while less is left is ended."""
    file: int | None = 4 << 30
    """Size of one file."""
    nice: int = 5
    """Priority, from 0 (as yours) to 19 (lowest)."""
    cpu_weight: int = 50
    """Share of the processor against others, where 100 is usual; needs cgroups."""
    cpu_percent: int | None = None
    """The most of the processor that a call gets, where 100 is one core; needs cgroups."""
    strict: bool = False
    """Run nothing where the kernel itself cannot hold the limits that are set."""

    def to_wire(self) -> dict[str, int | None]:
        """Plain values by name, as the keeper takes them."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if name != "strict"}


class UndoConfig(msgspec.Struct, frozen=True):
    """How much of a worktree is kept before each call, so that it can be brought back."""

    file_bytes: int = 64 << 20
    """A larger file is left out."""
    tree_bytes: int = 4 << 30
    """How much is kept of one state; small files go first."""
    names: int = 1_000_000
    """A worktree with more names is not kept: each call that may change files then asks first."""
    history_bytes: int = 1 << 30
    """How much is kept of the changes between states; beyond it the oldest states expire."""

    def to_wire(self) -> dict[str, int]:
        """Plain values by name, as the keeper takes them."""
        return msgspec.structs.asdict(self)


class ProcessesConfig(msgspec.Struct, frozen=True):
    """How processes of Watchfloor are looked after."""

    stopped: int = 60
    """How long a keeper or an agent's process that was stopped by a signal stays until another one takes its place;
    10s to 7d.
    """


class JobsConfig(msgspec.Struct, frozen=True):
    """Commands that outlive their call."""

    limit: int = 86_400
    """How long a job may run that names no limit of its own."""
    longest: int = 7 * 86_400
    """The longest limit that a job can name."""
    at_once: int = 4
    """How many jobs a session may have at a time."""
    log: int = 16 << 20
    """About how much output is kept of each job."""
    grace: int = 10
    """How long a job has to end when it is asked to."""


class RatchetConfig(msgspec.Struct, frozen=True):
    """Patterns of files that decide whether work is done, on top of those that always do."""

    protect: tuple[str, ...] = ()
    """Further files that agents cannot change."""
    free: tuple[str, ...] = ()
    """Files that agents may change all the same."""


class CheckpointConfig(msgspec.Struct, frozen=True):
    """When a session's state becomes a checkpoint without a milestone."""

    minutes: int = 15
    """After so many minutes with changes; 0 is never."""
    keep: int = 50
    """How many checkpoints a session keeps."""


class PlanConfig(msgspec.Struct, frozen=True):
    """How a session works through its plan."""

    fresh: str = "per-task"
    """When the context begins anew: ``per-task``, ``per-iteration`` or ``never``."""
    attempts: int = 3
    """How many attempts each entry gets."""
    setup_s: int = 300
    """How long the repository's ``init.sh`` may run."""
    commit: bool = True
    """Commit what a finished task left uncommitted."""
    judge_at: str = "end"
    """When a judge looks: at the ``end`` alone, or at each ``task`` as well."""
    phrases: dict[str, str] = {}
    """Criteria in these words are decided by these commands."""


class HooksConfig(msgspec.Struct, frozen=True):
    """Commands that run in the sandbox after an agent's edits."""

    after_edit: tuple[str, ...] = ()
    """The commands, in order."""
    seconds: int = 60
    """How long each may run."""


class MemoryConfig(msgspec.Struct, frozen=True):
    """Which lessons of agents are remembered for their repository without a person's word on each.

    A session and its forks count as one witness. Two sessions that read the same text count as two: nobody can tell.
    """

    promote: tuple[str, ...] = ()
    """Patterns of keys: a lesson with such a key is remembered."""
    witnesses: int = 2
    """How many sessions must have said the same."""


class AlarmsConfig(msgspec.Struct, frozen=True):
    """When a running session calls for a look."""

    silent: int = 1800
    """No sign of work for so long."""
    no_progress_usd: int = 5 * NANO
    """Spent within an hour without a step closer to the goal."""
    minute_usd: int = NANO
    """Spent within a minute."""
    same_failure: int = 5
    """The same check failed in the same way so many times in a row."""


class NotifyConfig(msgspec.Struct, frozen=True):
    """How a person is called who is not watching."""

    command: tuple[str, ...] = ()
    """A program with its arguments that gets each notice on its standard input."""
    desktop: bool = True
    """Use the desktop's own notices when there is no ``command`` and no ``apprise``."""
    screen: str = "bell"
    """What an open screen does that nobody watches: ``bell``, ``osc9``, ``osc777`` or ``off``."""
    dwell: int = 20
    """How long something waits before it is announced."""
    cool_down: int = 120
    """Least time between two notices."""
    again: int = 900
    """How long until a risky request is announced again."""
    apprise: str = ""
    """Configuration file of Apprise, used when there is no ``command``."""
    title: bool = True
    """Count what waits in the terminal's title."""


class UiConfig(msgspec.Struct, frozen=True):
    """How the screen looks and which keys it has."""

    theme: str = "dark"
    """``dark``, ``light`` or ``ansi``."""
    preset: str = "default"
    """Keys as in ``default``, ``tmux`` or ``zellij``."""
    brief_after: int = 4 * 3600
    """After so long an absence the screen opens with what happened."""
    keys: dict[str, str] = {}
    """Keys by the id of their action (``docs/keys.md``)."""


SECTIONS: dict[str, type[msgspec.Struct]] = {
    "model": ModelConfig,
    "caps": CapsConfig,
    "fence": FenceConfig,
    "limits": LimitsConfig,
    "undo": UndoConfig,
    "processes": ProcessesConfig,
    "jobs": JobsConfig,
    "ratchet": RatchetConfig,
    "checkpoints": CheckpointConfig,
    "plan": PlanConfig,
    "hooks": HooksConfig,
    "memory": MemoryConfig,
    "alarms": AlarmsConfig,
    "notify": NotifyConfig,
    "ui": UiConfig,
}
"""By their name in the file; ``[profiles]`` is read by `protocol.profiles`."""
