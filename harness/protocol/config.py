"""``config.toml``: models, caps, fence and screen settings. Read from the user's folder only, never from a repository.

Every key is known here; an unknown key or a wrong type is an error that names file, line and key.
"""

from __future__ import annotations

import functools
import os
import re
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from harness.protocol import profiles
from harness.protocol.paths import Folders
from harness.protocol.profiles import LEAST_CONTEXT, Profiles

DEFAULT_BASE_URL = "https://api.anthropic.com"
NANO = 1_000_000_000
FRESH = ("per-task", "per-iteration", "never")
SCREENS = ("bell", "osc9", "osc777", "off")


class ConfigError(Exception):
    """A setting cannot be used; the message names file, line and key."""

    def __init__(self, file: Path, line: int, key: str, why: str) -> None:
        super().__init__(f"{file}, line {line}: {key}: {why}" if key else f"{file}, line {line}: {why}")
        self.file = file
        self.line = line
        self.key = key
        self.why = why


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """``context_tokens``: the size that a session's requests are kept within, whatever the model's window, because
    every turn pays for all that it reads again. ``reply_*_s``: longest wait for the beginning of a reply, between two
    pieces of its content (pings are none), and for all of it.
    """

    default: str = "claude-sonnet-5-5"
    base_url: str = ""
    api_key_file: str = ""
    api_key_env: str = "ANTHROPIC_API_KEY"
    max_tokens: int = 8192
    context_tokens: int = 80_000
    max_rounds: int = 5
    reply_first_s: int = 300
    reply_silence_s: int = 300
    reply_total_s: int = 3600


@dataclass(frozen=True, slots=True)
class CapsConfig:
    """USD caps in nano-USD, durations in seconds; None = no cap. ``session_*`` are the defaults of a launch."""

    session_usd: int | None = 5 * NANO
    session_tokens: int | None = None
    session_wall: int | None = None
    session_calls: int | None = None
    day_usd: int | None = 50 * NANO
    day_tokens: int | None = None
    fleet_usd: int | None = None
    fleet_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class FenceConfig:
    """Extra folders readable inside the fence, extra PATH entries, extra environment (never secrets)."""

    read: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    timeout_s: int = 600
    output_bytes: int = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class LimitsConfig:
    """What a call may take of this machine, with all its processes. Sizes in bytes, None = no limit.

    0 for ``memory`` means three quarters of the machine's, for ``process_memory`` as much as ``memory``. ``disk`` and
    ``disk_files`` limit how far a session's files grow; ``memory_free``, ``disk_free`` are what the machine keeps;
    ``cpu_percent`` 100 is one core.
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

    def to_wire(self) -> dict[str, int | None]:
        """Plain values by name, as the keeper takes them."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class UndoConfig:
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
        return asdict(self)


@dataclass(frozen=True, slots=True)
class JobsConfig:
    """Commands that outlive their call. ``limit``: seconds after which one is ended that names no limit of its own,
    ``longest``: the most it can name, ``at_once``: how many a session has at a time, ``log``: about how many bytes of
    output are kept of each, ``grace``: seconds that one has to end when it is asked to.
    """

    limit: int = 86_400
    longest: int = 7 * 86_400
    at_once: int = 4
    log: int = 16 << 20
    grace: int = 10

    def to_wire(self) -> dict[str, int]:
        """What the keeper needs of it."""
        return {"at_once": self.at_once, "grace_s": self.grace}


@dataclass(frozen=True, slots=True)
class RatchetConfig:
    """Patterns over paths of a repository, on top of the built-in ones (`harness.plan.protected`).

    ``protect``: further files that decide whether work is done; ``free``: files that an agent may change all the same.
    """

    protect: tuple[str, ...] = ()
    free: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckpointConfig:
    """When a session's state becomes a checkpoint without a milestone, after so many ``minutes`` of change (0 = never),
    and how many stay.
    """

    minutes: int = 15
    keep: int = 50


@dataclass(frozen=True, slots=True)
class PlanConfig:
    """How a session goes through its plan: ``fresh`` says when its context begins anew (per-task, per-iteration,
    never); so many ``attempts`` at each entry; ``setup_s`` seconds for ``init.sh``; ``commit`` says whether the harness
    commits what a finished task left uncommitted.
    """

    fresh: str = "per-task"
    attempts: int = 3
    setup_s: int = 300
    commit: bool = True


@dataclass(frozen=True, slots=True)
class HooksConfig:
    """Commands that run in the fence after an agent's edits, each within ``seconds``."""

    after_edit: tuple[str, ...] = ()
    seconds: int = 60


@dataclass(frozen=True, slots=True)
class AlarmsConfig:
    """When a session that runs wants a look, 0 = never: ``silent`` seconds without a sign of work, ``no_progress_usd``
    nano-USD within an hour without a step closer to its goal, ``minute_usd`` nano-USD a minute, ``same_failure``
    failures of one check in a row in the same way.
    """

    silent: int = 1800
    no_progress_usd: int = 5 * NANO
    minute_usd: int = NANO
    same_failure: int = 5


@dataclass(frozen=True, slots=True)
class NotifyConfig:
    """How a person is called who does not watch. ``command``: a program and its arguments that get each notice on their
    input, instead of the desktop's own (``desktop``: whether that is used); ``screen``: what an open screen does that
    nobody watches (one of `SCREENS`); ``dwell``: seconds that something waits first, ``cool_down``: seconds between two
    notices, ``again``: seconds after which what is risky is named again (0 = never).
    """

    command: tuple[str, ...] = ()
    desktop: bool = True
    screen: str = "bell"
    dwell: int = 20
    cool_down: int = 120
    again: int = 900


@dataclass(frozen=True, slots=True)
class UiConfig:
    """How the screen looks and is steered; ``brief_after``: seconds of absence after which it opens with what happened
    (0 = never).
    """

    theme: str = "dark"
    preset: str = "default"
    brief_after: int = 4 * 3600
    keys: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Config:
    """All settings, and the file they came from (which may not exist: then these are the defaults)."""

    file: Path
    model: ModelConfig = field(default_factory=ModelConfig)
    caps: CapsConfig = field(default_factory=CapsConfig)
    fence: FenceConfig = field(default_factory=FenceConfig)
    limits: LimitsConfig = field(default_factory=LimitsConfig)
    undo: UndoConfig = field(default_factory=UndoConfig)
    jobs: JobsConfig = field(default_factory=JobsConfig)
    ratchet: RatchetConfig = field(default_factory=RatchetConfig)
    checkpoints: CheckpointConfig = field(default_factory=CheckpointConfig)
    plan: PlanConfig = field(default_factory=PlanConfig)
    hooks: HooksConfig = field(default_factory=HooksConfig)
    alarms: AlarmsConfig = field(default_factory=AlarmsConfig)
    notify: NotifyConfig = field(default_factory=NotifyConfig)
    profiles: Profiles = field(default_factory=Profiles)
    ui: UiConfig = field(default_factory=UiConfig)


@dataclass(frozen=True, slots=True)
class Credential:
    """An endpoint and the key that belongs to it; a key is never sent to another endpoint."""

    base_url: str
    key: str = field(repr=False)


_SECTIONS: dict[str, type] = {
    "model": ModelConfig,
    "caps": CapsConfig,
    "fence": FenceConfig,
    "limits": LimitsConfig,
    "undo": UndoConfig,
    "jobs": JobsConfig,
    "ratchet": RatchetConfig,
    "checkpoints": CheckpointConfig,
    "plan": PlanConfig,
    "hooks": HooksConfig,
    "alarms": AlarmsConfig,
    "notify": NotifyConfig,
    "ui": UiConfig,
}
_DURATION = re.compile(r"(\d+)\s*([smhd])")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*(KiB|MiB|GiB|TiB|%)")
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_RANGES = {
    "processes": (16, 4_000_000),
    "nice": (0, 19),
    "cpu_weight": (1, 10_000),
    "cpu_percent": (1, 1_000_000),
    "disk_files": (1, 1 << 62),
}
_OF_JOBS = {
    "limit": (1, 365 * 86_400),
    "longest": (1, 365 * 86_400),
    "at_once": (0, 64),
    "log": (3 << 20, 1 << 30),
    "grace": (0, 600),
}
_LEAST_BYTES = {"memory": 64 << 20, "process_memory": 64 << 20, "memory_free": 0, "disk_free": 0}
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def usd_to_nano(text: str) -> int:
    """``"12.50"`` → nano-USD. Raises ValueError on anything that is no non-negative amount."""
    m = re.fullmatch(r"\$?(\d+)(?:\.(\d{1,9}))?", text.strip())
    if not m:
        raise ValueError(f"{text!r} is not an amount in USD such as 2 or 2.50")
    return int(m[1]) * NANO + int((m[2] or "0").ljust(9, "0"))


def seconds(text: str) -> int:
    """``"8h"``, ``"90m"``, ``"1d 2h"`` → seconds. Raises ValueError."""
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        raise ValueError(f"{text!r} is not a duration such as 90m, 8h or 2d")
    return sum(int(n) * _SECONDS[u] for n, u in parts)


def size(text: str) -> int:
    """``"512MiB"``, ``"1.5 GiB"`` → bytes; ``"75%"`` → of this machine's memory. Raises ValueError."""
    m = _SIZE.fullmatch(text.strip())
    if not m:
        raise ValueError(f"{text!r} is not a size such as 512MiB or 10GiB")
    if m[2] == "%":
        if float(m[1]) > 100:
            raise ValueError(f"{text!r} is more memory than there is")
        return int(float(m[1]) / 100 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return int(float(m[1]) * _UNITS[m[2]])


def _limit(key: str, raw: Any) -> int | None:
    """A limit: a number for what is counted, a size for what is weighed, false for none where there may be none."""
    optional = "None" in str({f.name: f.type for f in fields(LimitsConfig)}[key])
    if raw is False:
        if not optional:
            raise ValueError("cannot be switched off; give a higher limit")
        return None
    if key in _RANGES:
        low, high = _RANGES[key]
        if (value := _int(raw)) < low or value > high:
            raise ValueError(f"must be between {low} and {high}")
        return value
    if isinstance(raw, str):
        if "%" in raw and "memory" not in key:
            raise ValueError("must be a size such as 512MiB; only memory limits can be a part of the machine's memory")
        value = size(raw)
    else:
        value = _int(raw)
    if value < (least := _LEAST_BYTES.get(key, 1 << 20)):
        raise ValueError(
            f"must be at least {least >> 20} MiB (write a size such as 512MiB)"
            + (", or false for no limit" if optional else "")
        )
    return value


def _of_jobs(key: str, raw: Any) -> int:
    """A setting of ``[jobs]``: a stretch of time, a size or a number. Raises ValueError."""
    if key == "at_once":
        value = _int(raw)
    elif isinstance(raw, str):
        value = size(raw) if key == "log" else seconds(raw)
    else:
        value = _int(raw)
    low, high = _OF_JOBS[key]
    if value < low or value > high:
        raise ValueError(f"must be between {low} and {high}")
    return value


def _line_of(source: str, section: str, key: str) -> int:
    inside = section == ""
    for number, line in enumerate(source.splitlines(), 1):
        text = line.strip()
        if text.startswith("["):
            inside = text.strip("[] ").split(".")[0] == section
            if inside and (not key or key == section or text.strip("[] ") == f"{section}.{key}"):
                return number
        elif inside and re.match(rf'"?{re.escape(key)}"?\s*=', text):
            return number
    return 1


def _amount(raw: Any) -> int:
    """Nano-USD of an amount as a file gives it. Raises ValueError."""
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        raise ValueError('must be an amount in USD such as "2.50", or false for none')
    return usd_to_nano(raw if isinstance(raw, str) else f"{raw:.9f}".rstrip("0").rstrip("."))


def _of_alarms(key: str, raw: Any) -> int:
    """A setting of ``[alarms]``: a stretch of time, an amount or a number; false = never. Raises ValueError."""
    if raw is False:
        return 0
    if key.endswith("_usd"):
        value = _amount(raw)
    else:
        value = seconds(raw) if isinstance(raw, str) and key == "silent" else _int(raw)
    if not value:
        raise ValueError("must be more than 0, or false for no such alarm")
    return value


def _of_notify(key: str, raw: Any) -> int:
    """A stretch of time of ``[notify]``, a week at most. Raises ValueError."""
    if raw is False and key == "again":
        return 0
    value = seconds(raw) if isinstance(raw, str) else _int(raw)
    if value > 7 * 86_400 or (key == "cool_down" and not value):
        raise ValueError("must be a stretch of time such as 30s or 15m, a week at most; only dwell may be 0")
    if key == "again" and value < 60:
        raise ValueError("must be at least 1m, or false for never")
    return value


def _value(section: str, key: str, raw: Any) -> Any:
    if (section, key) == ("ui", "brief_after"):
        if raw is False:
            return 0
        after = seconds(raw) if isinstance(raw, str) else _int(raw)
        if after < 0:
            raise ValueError("must be a stretch of time such as 4h, or false for never")
        return after
    if section == "alarms":
        return _of_alarms(key, raw)
    if section == "notify" and key not in ("command", "desktop", "screen"):
        return _of_notify(key, raw)
    if section == "caps":
        if raw is False:
            return None
        if key.endswith("_usd"):
            return _amount(raw)
        if key == "session_wall":
            return seconds(raw) if isinstance(raw, str) else _int(raw)
        return _int(raw)
    if section == "limits":
        return _limit(key, raw)
    if section == "jobs":
        return _of_jobs(key, raw)
    if section == "undo":
        if isinstance(raw, str) and "%" in raw:
            raise ValueError("must be a size such as 512MiB")
        return size(raw) if isinstance(raw, str) and key != "names" else _int(raw)
    default = {f.name: f for f in fields(_SECTIONS[section])}[key]
    kind = str(default.type)
    if kind.startswith("tuple"):
        if not isinstance(raw, list) or not all(isinstance(x, str) for x in raw):
            raise ValueError("must be a list of strings")
        return tuple(_listed(section, x) for x in raw)
    if kind.startswith("dict"):
        if not isinstance(raw, dict) or not all(isinstance(v, str) for v in raw.values()):
            raise ValueError("must be a table of strings")
        return dict(raw)
    if kind == "bool":
        if not isinstance(raw, bool):
            raise ValueError("must be true or false")
        return raw
    if kind == "int":
        if key.startswith("reply_") and raw == 0:
            raise ValueError("must be at least 1 second")
        if key == "keep" and _int(raw) < 1:
            raise ValueError("must be at least 1")
        if key == "context_tokens" and _int(raw) < LEAST_CONTEXT:
            raise ValueError(f"must be at least {LEAST_CONTEXT}: a hand-off and the turns beside it need that room")
        if section in ("plan", "hooks") and _int(raw) < 1:
            raise ValueError("must be at least 1")
        return _int(raw)
    if not isinstance(raw, str):
        raise ValueError("must be a string")
    if section == "notify" and raw not in SCREENS:
        raise ValueError(f"must be one of {', '.join(SCREENS)}")
    if section == "plan" and raw not in FRESH:
        raise ValueError(f"must be one of {', '.join(FRESH)}")
    if key == "base_url" and raw and (problem := url_problem(raw)):
        raise ValueError(problem)
    return raw


def _listed(section: str, text: str) -> str:
    """One item of a list: a pattern of files, a command, or a folder."""
    if section == "ratchet":
        return _pattern(text)
    if section == "notify":
        if not text or "\0" in text:
            raise ValueError("a program and its arguments must not be empty nor hold a null character")
        return text
    if section == "hooks":
        if not text.strip():
            raise ValueError("a command must not be empty")
        return text
    return _folder(text)


_NEVER = frozenset(("/", "/usr", "/etc", "/tmp", "/root", "/home", "/opt", "/var", "/run", "/proc", "/sys", "/dev"))


def _folder(text: str) -> str:
    """An absolute folder that may be shown inside the fence; whole system folders would open what the fence closes."""
    path = os.path.normpath(os.path.expanduser(text))
    if not os.path.isabs(path):
        raise ValueError(f"{text!r} must be an absolute path (or begin with ~)")
    if path in _NEVER or path.startswith(("/proc/", "/sys/")) or path == os.path.normpath(os.path.expanduser("~")):
        raise ValueError(f"{text!r} is too much to show inside the fence; name the folders below it that are needed")
    return path


def _pattern(text: str) -> str:
    """A pattern over paths inside a repository."""
    if not text.strip("/ ") or text.startswith("/") or ".." in text.split("/"):
        raise ValueError(f"{text!r} must be a path inside the repository, in which * and ** may stand")
    return text


def _int(raw: Any) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or raw < 0:
        raise ValueError("must be a whole number, 0 or more")
    return raw


def parse(file: Path, source: str) -> Config:
    """Settings from TOML text. Raises ConfigError."""
    import tomllib  # only where there is a file: the floor's first paint does not wait for the parser

    try:
        data = tomllib.loads(source)
    except tomllib.TOMLDecodeError as exc:
        m = re.search(r"line (\d+)", str(exc))
        raise ConfigError(file, int(m[1]) if m else source.count("\n") + 1, "", str(exc)) from exc
    made: dict[str, Any] = {}
    for section, table in data.items():
        if section == "profiles" and isinstance(table, dict):
            made[section] = _profiles(file, source, table)
            continue
        cls = _SECTIONS.get(section)
        if cls is None:
            raise ConfigError(
                file,
                _line_of(source, section, section),
                section,
                f"unknown section; known: {', '.join([*_SECTIONS, 'profiles'])}",
            )
        if not isinstance(table, dict):
            raise ConfigError(file, _line_of(source, "", section), section, f"must be a section: write [{section}]")
        known = {f.name for f in fields(cls)}
        values: dict[str, Any] = {}
        for key, raw in table.items():
            line = _line_of(source, section, key)
            if key not in known:
                raise ConfigError(file, line, f"{section}.{key}", f"unknown key; known: {', '.join(sorted(known))}")
            try:
                values[key] = _value(section, key, raw)
            except ValueError as exc:
                raise ConfigError(file, line, f"{section}.{key}", str(exc)) from exc
        made[section] = cls(**values)
    return Config(file, **made)


def _profiles(file: Path, source: str, table: dict[str, Any]) -> Profiles:
    try:
        return profiles.parse(table)
    except profiles.BadProfile as exc:
        raise ConfigError(file, _line_of(source, "profiles", exc.key), f"profiles.{exc.key}", str(exc)) from exc


def load(folders: Folders) -> Config:
    """The user's settings, or the defaults when there is no file. Raises ConfigError."""
    try:
        source = folders.config_file.read_text("utf-8")
    except FileNotFoundError:
        return Config(folders.config_file)
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(folders.config_file, 1, "", f"cannot be read: {exc}") from exc
    config = parse(folders.config_file, source)
    own = [
        folders.state,
        folders.runtime,
        folders.config,
        *([Path(config.model.api_key_file).expanduser()] if config.model.api_key_file else []),
    ]
    for shown in config.fence.read:
        real = os.path.realpath(shown)
        if hidden := next(
            (
                o
                for o in map(os.path.realpath, own)
                if real == o or o.startswith(real + "/") or real.startswith(o + "/")
            ),
            None,
        ):
            why = f"{shown!r} would show {hidden} to every tool, which is Watchfloor's own; name narrower folders"
            raise ConfigError(folders.config_file, _line_of(source, "fence", "read"), "fence.read", why)
    return config


def url_problem(url: str) -> str:
    """Why no key may be sent to this address, or nothing. Never quotes a user name or a password."""
    try:
        parts = urlsplit(url)
        port_ok = parts.port is None or parts.port > 0
    except ValueError:
        return "is not an address such as https://api.example.com"
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or not port_ok
        or not url.isascii()
        or not url.isprintable()
        or " " in url
    ):
        return "is not an address such as https://api.example.com"
    if "@" in parts.netloc:
        return (
            "holds a user name or password, which would end up in logs; give the key with model.api_key_file or the"
            " environment"
        )
    return "must end with its path: no ? or #" if parts.query or parts.fragment else ""


def key_problem(key: str) -> str:
    """Why this cannot be an API key, or nothing.

    An HTTP library that refuses such a key would quote it in its error.
    """
    return (
        ""
        if key.isascii() and key.isprintable() and " " not in key
        else "the key holds blanks, line breaks or characters that no key has"
    )


def base_url(config: Config, env: dict[str, str] | None = None) -> str:
    """The endpoint: configuration, else ``ANTHROPIC_BASE_URL``, else the vendor's."""
    e = os.environ if env is None else env
    return (config.model.base_url or e.get("ANTHROPIC_BASE_URL") or DEFAULT_BASE_URL).rstrip("/")


def _version(info: os.stat_result) -> tuple[int, ...]:
    """Changes whenever a file does."""
    return info.st_dev, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns


@functools.lru_cache(maxsize=1)
def _text(path: Path, version: tuple[int, ...]) -> str:
    """What this version of the key file holds: every request asks. Raises OSError, UnicodeDecodeError."""
    return path.read_text("utf-8").strip()


def credential(config: Config, env: dict[str, str] | None = None) -> Credential | None:
    """The key for `base_url`, from the key file or the environment; None when there is none.

    Raises ConfigError on an unusable one.
    """
    e = os.environ if env is None else env
    url = base_url(config, env)
    if problem := url_problem(url):
        raise ConfigError(
            config.file,
            1,
            "model.base_url" if config.model.base_url else "ANTHROPIC_BASE_URL in the environment",
            problem,
        )
    if config.model.api_key_file:
        path = Path(os.path.expanduser(config.model.api_key_file))
        try:
            key = _text(path, _version(path.stat()))
        except (OSError, UnicodeDecodeError) as exc:
            raise ConfigError(config.file, 1, "model.api_key_file", f"{path} cannot be read: {exc}") from exc
        source = "model.api_key_file"
    else:
        key = e.get(config.model.api_key_env, "").strip()
        source = f"{config.model.api_key_env} in the environment"
    if problem := key_problem(key):
        raise ConfigError(config.file, 1, source, problem)
    return Credential(url, key) if key else None
