"""The sections of ``config.toml``: what can be set, in which unit, and what holds when it is not."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from harness.domain.settings.amounts import DURATION, MEMORY, MOST, MOST_BYTES, MOST_S, NANO, SIZE, USD
from harness.protocol.config.choices import MOST_EVIDENCE_ROUNDS, Fresh, JudgeAt, Screen
from harness.protocol.config.forms import ADDRESS, ARGUMENT, FILE, FILLED, FOLDER, PATTERN, tokens

DAY = 86_400
LEAST_CONTEXT = 20_000
CONTEXT = "a number of tokens, with room for a hand-off and the turns beside it"
LEAST_CLEARING = 10_000
LEAST_COMPACTION = 50_000
LONGEST_RUN_S = 3600
"""Seconds that anything in the sandbox may take at most (`tools.MAX_TIMEOUT_S`): a setting cannot ask for more."""
MOST_WITNESSES = 20


class ModelConfig(msgspec.Struct, frozen=True):
    """The model and how requests to it are made."""

    default: str = "claude-sonnet-5-5"
    """Model of a session whose launch names none."""
    base_url: Annotated[str, ADDRESS] = ""
    """Address of the endpoint; empty for Anthropic's own, or what ``ANTHROPIC_BASE_URL`` says."""
    api_key_file: str = ""
    """File that holds the API key alone; used instead of the environment."""
    api_key_env: str = "ANTHROPIC_API_KEY"
    """Environment variable that holds the API key."""
    max_tokens: Annotated[int, Meta(ge=0)] = 8192
    """The longest reply that is asked for."""
    context_tokens: Annotated[int, Meta(ge=LEAST_CONTEXT, description=CONTEXT)] = 80_000
    """The size that each request is kept within, whatever the model's window: every turn pays for all that it reads
    again.
    """
    max_rounds: Annotated[int, Meta(ge=0)] = 5
    """How often an agent goes on after it said that it was finished and a check failed."""
    evidence_rounds: Annotated[int, Meta(ge=0, le=MOST_EVIDENCE_ROUNDS)] = 1
    """How often an agent is asked for evidence before its word alone ends work that no check and no judge decides."""
    reply_first_s: Annotated[int, Meta(ge=1)] = 300
    """Longest wait for the beginning of a reply."""
    reply_silence_s: Annotated[int, Meta(ge=1)] = 300
    """Longest wait between two pieces of a reply's content; pings do not count."""
    reply_total_s: Annotated[int, Meta(ge=1)] = 3600
    """Longest time for a whole reply."""


class CapsConfig(msgspec.Struct, frozen=True):
    """Hard limits of what may be spent. Amounts are held in nano-USD, durations in seconds."""

    session_usd: Annotated[int, Meta(ge=0, le=MOST), USD] | None = 5 * NANO
    """What a session may cost, unless its launch says otherwise."""
    session_tokens: Annotated[int, Meta(ge=0, le=MOST)] | None = None
    """Tokens of a session, likewise."""
    session_wall: Annotated[int, Meta(ge=0, le=MOST_S), DURATION] | None = None
    """Time since the launch of a session, likewise. Time in which nobody could work does not count."""
    session_calls: Annotated[int, Meta(ge=0, le=MOST)] | None = None
    """Tool calls of a session, likewise."""
    day_usd: Annotated[int, Meta(ge=0, le=MOST), USD] | None = 50 * NANO
    """What all sessions together may cost in a day (UTC)."""
    day_tokens: Annotated[int, Meta(ge=0, le=MOST)] | None = None
    """Tokens of all sessions in a day."""
    fleet_usd: Annotated[int, Meta(ge=0, le=MOST), USD] | None = None
    """What all sessions together may cost, ever."""
    fleet_tokens: Annotated[int, Meta(ge=0, le=MOST)] | None = None
    """Tokens of all sessions, ever."""


class SandboxConfig(msgspec.Struct, frozen=True):
    """What an agent's calls can see of this machine, and how long they may take."""

    read: tuple[Annotated[str, FOLDER], ...] = ()
    """Folders that calls can read besides the system's and their worktree."""
    path: tuple[Annotated[str, FOLDER], ...] = ()
    """Folders put in front of ``PATH``."""
    env: dict[str, str] = {}
    """Extra environment variables. Never put a secret here."""
    timeout_s: Annotated[int, Meta(ge=0)] = 600
    """How long a call may run that names no limit of its own."""
    output_bytes: Annotated[int, Meta(ge=0)] = 8 * 1024 * 1024
    """How much output of a call is kept."""


class LimitsConfig(msgspec.Struct, frozen=True):
    """What a call, with all its processes, may take of this machine."""

    memory: Annotated[int, Meta(ge=64 << 20, le=MOST_BYTES), MEMORY] | None = 0
    """Memory of all processes of a call, with its ``/tmp`` and ``/dev/shm``; ``0`` is three quarters of the
    machine's. May be written as a share: ``\"50%\"``.
    """
    process_memory: Annotated[int, Meta(ge=64 << 20, le=MOST_BYTES), MEMORY] | None = 0
    """Private data of each process, used where there are no cgroups; ``0`` is as much as ``memory``."""
    memory_free: Annotated[int, Meta(ge=0, le=MOST_BYTES), MEMORY] | None = 512 << 20
    """Memory that the machine keeps, at most 1/32 of all: when less is left, calls are ended, the largest first."""
    processes: Annotated[int, Meta(ge=16, le=4_000_000)] = 4096
    """Processes and threads of a call."""
    tmp: Annotated[int, Meta(ge=1 << 20, le=MOST_BYTES), SIZE] = 2 << 30
    """Size of the call's own ``/tmp``."""
    shm: Annotated[int, Meta(ge=1 << 20, le=MOST_BYTES), SIZE] = 1 << 30
    """Size of the call's own ``/dev/shm``, and of its System V shared memory."""
    disk: Annotated[int, Meta(ge=1 << 20, le=MOST_BYTES), SIZE] | None = 10 << 30
    """How far a session's files may grow beyond what it began with."""
    disk_files: Annotated[int, Meta(ge=1, le=1 << 62)] | None = 500_000
    """How many files a session may add."""
    disk_free: Annotated[int, Meta(ge=0, le=MOST_BYTES), SIZE] | None = 1 << 30
    """Room that the disk keeps, at most 5 % of it: a call that writes while less is left is ended."""
    file: Annotated[int, Meta(ge=1 << 20, le=MOST_BYTES), SIZE] | None = 4 << 30
    """Size of one file."""
    nice: Annotated[int, Meta(ge=0, le=19)] = 5
    """Priority, from 0 (as yours) to 19 (lowest)."""
    cpu_weight: Annotated[int, Meta(ge=1, le=10_000)] = 50
    """Share of the processor against others, where 100 is usual; needs cgroups."""
    cpu_percent: Annotated[int, Meta(ge=1, le=1_000_000)] | None = None
    """The most of the processor that a call gets, where 100 is one core; needs cgroups."""
    strict: bool = False
    """Run nothing where the kernel itself cannot hold the limits that are set."""

    def to_wire(self) -> dict[str, int | None]:
        """Plain values by name, as the keeper takes them."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if name != "strict"}


class UndoConfig(msgspec.Struct, frozen=True):
    """How much of a worktree is kept before each call, so that it can be brought back."""

    file_bytes: Annotated[int, Meta(ge=0, le=MOST_BYTES), SIZE] = 64 << 20
    """A larger file is left out."""
    tree_bytes: Annotated[int, Meta(ge=0, le=MOST_BYTES), SIZE] = 4 << 30
    """How much is kept of one state; small files go first."""
    names: Annotated[int, Meta(ge=0)] = 1_000_000
    """A worktree with more names is not kept: each call that may change files then asks first."""
    history_bytes: Annotated[int, Meta(ge=0, le=MOST_BYTES), SIZE] = 1 << 30
    """How much is kept of the changes between states; beyond it the oldest states expire."""

    def to_wire(self) -> dict[str, int]:
        """Plain values by name, as the keeper takes them."""
        return msgspec.structs.asdict(self)


class ProcessesConfig(msgspec.Struct, frozen=True):
    """How processes of Watchfloor are looked after."""

    stopped: Annotated[int, Meta(ge=10, le=7 * DAY), DURATION] = 60
    """How long a keeper or an agent's process that was stopped by a signal stays until another one takes its place.
    """


class JobsConfig(msgspec.Struct, frozen=True):
    """Commands that outlive their call."""

    limit: Annotated[int, Meta(ge=1, le=365 * DAY), DURATION] = 86_400
    """How long a job may run that names no limit of its own."""
    longest: Annotated[int, Meta(ge=1, le=365 * DAY), DURATION] = 7 * 86_400
    """The longest limit that a job can name."""
    at_once: Annotated[int, Meta(ge=0, le=64)] = 4
    """How many jobs a session may have at a time."""
    log: Annotated[int, Meta(ge=3 << 20, le=1 << 30), SIZE] = 16 << 20
    """About how much output is kept of each job."""
    grace: Annotated[int, Meta(ge=0, le=600), DURATION] = 10
    """How long a job has to end when it is asked to."""


class RatchetConfig(msgspec.Struct, frozen=True):
    """Patterns of files that decide whether work is done, on top of those that always do."""

    protect: tuple[Annotated[str, PATTERN], ...] = ()
    """Further files that agents cannot change."""
    free: tuple[Annotated[str, PATTERN], ...] = ()
    """Files that agents may change all the same."""


class CheckpointConfig(msgspec.Struct, frozen=True):
    """When a session's state becomes a checkpoint without a milestone."""

    minutes: Annotated[int, Meta(ge=0)] = 15
    """After so many minutes with changes; 0 is never."""
    keep: Annotated[int, Meta(ge=1)] = 50
    """How many checkpoints a session keeps."""


class PlanConfig(msgspec.Struct, frozen=True):
    """How a session works through its plan."""

    fresh: Fresh = "per-task"
    """When the context begins anew: ``per-task``, ``per-iteration`` or ``never``."""
    attempts: Annotated[int, Meta(ge=1)] = 3
    """How many attempts each entry gets."""
    setup_s: Annotated[int, Meta(ge=1, le=LONGEST_RUN_S)] = 300
    """How long the repository's ``init.sh`` may run."""
    commit: bool = True
    """Commit what a finished task left uncommitted."""
    judge_at: JudgeAt = "end"
    """When a judge looks: at the ``end`` alone, or at each ``task`` as well."""
    phrases: dict[str, str] = {}
    """Criteria in these words are decided by these commands."""


class HooksConfig(msgspec.Struct, frozen=True):
    """Commands that run in the sandbox after an agent's edits."""

    after_edit: tuple[Annotated[str, FILLED], ...] = ()
    """The commands, in order."""
    seconds: Annotated[int, Meta(ge=1, le=LONGEST_RUN_S)] = 60
    """How long each may run."""


class MemoryConfig(msgspec.Struct, frozen=True):
    """Which lessons of agents are remembered for their repository without a person's word on each.

    A session and its forks count as one witness. Two sessions that read the same text count as two: nobody can tell.
    """

    promote: tuple[Annotated[str, FILLED], ...] = ()
    """Patterns of keys: a lesson with such a key is remembered."""
    witnesses: Annotated[int, Meta(ge=1, le=MOST_WITNESSES)] = 2
    """How many sessions must have said the same."""


class AlarmsConfig(msgspec.Struct, frozen=True):
    """When a running session calls for a look."""

    silent: Annotated[int, Meta(gt=0, le=MOST_S), DURATION] | None = 1800
    """No sign of work for so long."""
    no_progress_usd: Annotated[int, Meta(gt=0, le=MOST), USD] | None = 5 * NANO
    """Spent within an hour without a step closer to the goal."""
    minute_usd: Annotated[int, Meta(gt=0, le=MOST), USD] | None = NANO
    """Spent within a minute."""
    same_failure: Annotated[int, Meta(gt=0)] | None = 5
    """The same check failed in the same way so many times in a row."""


class NotifyConfig(msgspec.Struct, frozen=True):
    """How a person is called who is not watching."""

    command: tuple[Annotated[str, ARGUMENT], ...] = ()
    """A program with its arguments that gets each notice on its standard input."""
    desktop: bool = True
    """Use the desktop's own notices when there is no ``command`` and no ``apprise``."""
    screen: Screen = "bell"
    """What an open screen does that nobody watches: ``bell``, ``osc9``, ``osc777`` or ``off``."""
    dwell: Annotated[int, Meta(ge=0, le=7 * DAY), DURATION] = 20
    """How long something waits before it is announced."""
    cool_down: Annotated[int, Meta(ge=1, le=7 * DAY), DURATION] = 120
    """Least time between two notices."""
    again: Annotated[int, Meta(ge=60, le=7 * DAY), DURATION] | None = 900
    """How long until a risky request is announced again."""
    apprise: Annotated[str, FILE] = ""
    """Configuration file of Apprise, used when there is no ``command``."""
    title: bool = True
    """Count what waits in the terminal's title."""


class UiConfig(msgspec.Struct, frozen=True):
    """How the screen looks and which keys it has."""

    theme: str = "dark"
    """``dark``, ``light`` or ``ansi``."""
    preset: str = "default"
    """Keys as in ``default``, ``tmux`` or ``zellij``."""
    brief_after: Annotated[int, Meta(ge=0, le=MOST_S), DURATION] | None = 4 * 3600
    """After so long an absence the screen opens with what happened."""
    keys: dict[str, str] = {}
    """Keys by the id of their action (``docs/keys.md``)."""


class Profile(msgspec.Struct, frozen=True):
    """Settings for a model, or for all models whose names begin so."""

    working_tokens: Annotated[int, tokens(LEAST_CONTEXT)] = 0
    """The size that requests are kept within; 0 is ``model.context_tokens``."""
    api_clearing: Annotated[int, tokens(LEAST_CLEARING)] = 0
    """Input size from which the endpoint clears old tool results itself; 0 is never."""
    api_compaction: Annotated[int, tokens(LEAST_COMPACTION)] = 0
    """Input size from which the endpoint summarises what came before; 0 is never."""
    api_memory: bool = False
    """Use the endpoint's own memory tool in place of Watchfloor's."""
    fresh: Fresh | None = None
    """As ``plan.fresh``, for this model; without it as for every model."""
    cache_hour: bool = False
    """Keep the prompt cache for an hour, not five minutes."""


class Sections(msgspec.Struct, frozen=True):
    """The whole file."""

    model: ModelConfig = ModelConfig()
    caps: CapsConfig = CapsConfig()
    sandbox: SandboxConfig = SandboxConfig()
    limits: LimitsConfig = LimitsConfig()
    undo: UndoConfig = UndoConfig()
    processes: ProcessesConfig = ProcessesConfig()
    jobs: JobsConfig = JobsConfig()
    ratchet: RatchetConfig = RatchetConfig()
    checkpoints: CheckpointConfig = CheckpointConfig()
    plan: PlanConfig = PlanConfig()
    hooks: HooksConfig = HooksConfig()
    memory: MemoryConfig = MemoryConfig()
    alarms: AlarmsConfig = AlarmsConfig()
    notify: NotifyConfig = NotifyConfig()
    ui: UiConfig = UiConfig()
    profiles: dict[str, Profile] = {}
