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
    """``context_tokens``: the size that a session's requests are kept within, whatever the model's window, because
    every turn pays for all that it reads again. ``reply_*_s``: longest wait for the beginning of a reply, between two
    pieces of its content (pings are none), and for all of it. ``evidence_rounds``: how often an agent is asked for
    evidence before its word alone ends work that no check and no judge decides.
    """

    default: str = "claude-sonnet-5-5"
    base_url: str = ""
    api_key_file: str = ""
    api_key_env: str = "ANTHROPIC_API_KEY"
    max_tokens: int = 8192
    context_tokens: int = 80_000
    max_rounds: int = 5
    evidence_rounds: int = 1
    reply_first_s: int = 300
    reply_silence_s: int = 300
    reply_total_s: int = 3600


class CapsConfig(msgspec.Struct, frozen=True):
    """USD caps in nano-USD, durations in seconds; None = no cap. ``session_*`` are the defaults of a launch."""

    session_usd: int | None = 5 * NANO
    session_tokens: int | None = None
    session_wall: int | None = None
    session_calls: int | None = None
    day_usd: int | None = 50 * NANO
    day_tokens: int | None = None
    fleet_usd: int | None = None
    fleet_tokens: int | None = None


class FenceConfig(msgspec.Struct, frozen=True):
    """Extra folders readable inside the fence, extra PATH entries, extra environment (never secrets)."""

    read: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    env: dict[str, str] = {}
    timeout_s: int = 600
    output_bytes: int = 8 * 1024 * 1024


class LimitsConfig(msgspec.Struct, frozen=True):
    """What a call may take of this machine, with all its processes. Sizes in bytes, None = no limit.

    0 for ``memory`` means three quarters of the machine's, for ``process_memory`` as much as ``memory``. ``disk`` and
    ``disk_files`` limit how far a session's files grow; ``memory_free``, ``disk_free`` are what the machine keeps;
    ``cpu_percent`` 100 is one core. ``strict``: nothing runs where the kernel cannot hold those that are set.
    """

    memory: int | None = 0
    process_memory: int | None = 0
    memory_free: int | None = 512 << 20
    processes: int = 4096
    tmp: int = 2 << 30
    shm: int = 1 << 30
    disk: int | None = 10 << 30
    disk_files: int | None = 500_000
    disk_free: int | None = 1 << 30
    file: int | None = 4 << 30
    nice: int = 5
    cpu_weight: int = 50
    cpu_percent: int | None = None
    strict: bool = False

    def to_wire(self) -> dict[str, int | None]:
        """Plain values by name, as the keeper takes them."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if name != "strict"}


class UndoConfig(msgspec.Struct, frozen=True):
    """What is kept of a worktree before each call, so that it can be brought back. Sizes in bytes.

    A file over ``file_bytes`` is left out, so is what goes beyond ``tree_bytes`` in all; a worktree with more than
    ``names`` names is not kept at all. ``history_bytes`` of changes (at least half of it, and up to twice while calls
    follow each other fast) are kept; what is older expires.
    """

    file_bytes: int = 64 << 20
    tree_bytes: int = 4 << 30
    names: int = 1_000_000
    history_bytes: int = 1 << 30

    def to_wire(self) -> dict[str, int]:
        """Plain values by name, as the keeper takes them."""
        return msgspec.structs.asdict(self)


class ProcessesConfig(msgspec.Struct, frozen=True):
    """``stopped``: seconds until a keeper or a brain that was stopped by a signal is ended, and another one takes its
    place.
    """

    stopped: int = 60


class JobsConfig(msgspec.Struct, frozen=True):
    """Commands that outlive their call. ``limit``: seconds after which one is ended that names no limit of its own,
    ``longest``: the most it can name, ``at_once``: how many a session has at a time, ``log``: about how many bytes of
    output are kept of each, ``grace``: seconds that one has to end when it is asked to.
    """

    limit: int = 86_400
    longest: int = 7 * 86_400
    at_once: int = 4
    log: int = 16 << 20
    grace: int = 10


class RatchetConfig(msgspec.Struct, frozen=True):
    """Patterns over paths of a repository, on top of the built-in ones (`harness.checks.protected_files`).

    ``protect``: further files that decide whether work is done; ``free``: files that an agent may change all the same.
    """

    protect: tuple[str, ...] = ()
    free: tuple[str, ...] = ()


class CheckpointConfig(msgspec.Struct, frozen=True):
    """When a session's state becomes a checkpoint without a milestone, after so many ``minutes`` of change (0 = never),
    and how many stay.
    """

    minutes: int = 15
    keep: int = 50


class PlanConfig(msgspec.Struct, frozen=True):
    """How a session goes through its plan: ``fresh`` says when its context begins anew (per-task, per-iteration,
    never); so many ``attempts`` at each entry; ``setup_s`` seconds for ``init.sh``; ``commit`` says whether the
    harness commits what a finished task left uncommitted; ``phrases``: criteria in these words are decided by
    these commands; ``judge_at`` whether a judge looks at the end alone, or at each task as well.
    """

    fresh: str = "per-task"
    attempts: int = 3
    setup_s: int = 300
    commit: bool = True
    judge_at: str = "end"
    phrases: dict[str, str] = {}


class HooksConfig(msgspec.Struct, frozen=True):
    """Commands that run in the fence after an agent's edits, each within ``seconds``."""

    after_edit: tuple[str, ...] = ()
    seconds: int = 60


class MemoryConfig(msgspec.Struct, frozen=True):
    """Which lessons of agents are remembered for their repository without a person's word each: those whose key fits
    one of the ``promote`` patterns, once so many ``witnesses`` said the same. A session and its forks are one; two that
    read the same text are two, and nobody can tell.
    """

    promote: tuple[str, ...] = ()
    witnesses: int = 2


class AlarmsConfig(msgspec.Struct, frozen=True):
    """When a session that runs wants a look, 0 = never: ``silent`` seconds without a sign of work, ``no_progress_usd``
    nano-USD within an hour without a step closer to its goal, ``minute_usd`` nano-USD a minute, ``same_failure``
    failures of one check in a row in the same way.
    """

    silent: int = 1800
    no_progress_usd: int = 5 * NANO
    minute_usd: int = NANO
    same_failure: int = 5


class NotifyConfig(msgspec.Struct, frozen=True):
    """How a person is called who does not watch. ``command``: a program and its arguments that get each notice on their
    input; ``apprise``: the file that says to Apprise whom to tell (used when there is no command; empty: nobody);
    ``desktop``: whether the desktop's own is used when there is neither; ``screen``: what an open screen does that
    nobody watches (one of `SCREENS`), ``title``: whether its terminal's title counts what waits; ``dwell``: seconds
    that something waits first, ``cool_down``: seconds between two notices, ``again``: seconds after which what is risky
    is named again (0 = never).
    """

    command: tuple[str, ...] = ()
    desktop: bool = True
    screen: str = "bell"
    dwell: int = 20
    cool_down: int = 120
    again: int = 900
    apprise: str = ""
    title: bool = True


class UiConfig(msgspec.Struct, frozen=True):
    """How the screen looks and is steered; ``brief_after``: seconds of absence after which it opens with what happened
    (0 = never).
    """

    theme: str = "dark"
    preset: str = "default"
    brief_after: int = 4 * 3600
    keys: dict[str, str] = {}


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
