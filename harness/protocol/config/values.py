"""What a value in ``config.toml`` may be, section by section, and what it becomes."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial

from harness.protocol.config.amounts import counted, seconds, size, usd_to_nano
from harness.protocol.config.credential import url_problem
from harness.protocol.config.profiles import LEAST_CONTEXT
from harness.protocol.config.sections import (
    FRESH,
    JUDGE_AT,
    MOST_EVIDENCE_ROUNDS,
    MOST_WITNESSES,
    SCREENS,
    SECTIONS,
    LimitsConfig,
)

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
_ITEMS = {"hooks": "a command", "memory": "a pattern"}
"""What the lists of these sections hold."""
LONGEST_RUN_S = 3600
"""Seconds that anything in the fence may take at most (`tools.MAX_TIMEOUT_S`): a setting cannot ask for more."""
_MOST_BYTES = 1 << 60
_LEAST_BYTES = {"memory": 64 << 20, "process_memory": 64 << 20, "memory_free": 0, "disk_free": 0}
_NEVER = frozenset(("/", "/usr", "/etc", "/tmp", "/root", "/home", "/opt", "/var", "/run", "/proc", "/sys", "/dev"))


def value_of(section: str, key: str, raw: object) -> object:
    """The value of a known key, as its section takes it. Raises ValueError, which says what it must be."""
    own = _OWN.get(section, {})
    if (special := own.get(key, own.get(""))) is not None:
        return special(key, raw)
    kind = SECTIONS[section].__annotations__[key]
    return _KINDS[kind.partition("[")[0]](section, key, raw)


def _int(raw: object) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or raw < 0:
        raise ValueError("must be a whole number, 0 or more")
    return raw


def _seconds(raw: object) -> int:
    """A stretch of time, or a number of seconds. Raises ValueError."""
    return seconds(raw) if isinstance(raw, str) else _int(raw)


def _amount(raw: object) -> int:
    """Nano-USD of an amount as a file gives it. Raises ValueError."""
    if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
        raise ValueError('must be an amount in USD such as "2.50", or false for none')
    return usd_to_nano(raw if isinstance(raw, str) else f"{raw:.9f}".rstrip("0").rstrip("."))


def _brief_after(_key: str, raw: object) -> int:
    if raw is False:
        return 0
    after = seconds(raw) if isinstance(raw, str) else _int(raw)
    if after < 0:
        raise ValueError("must be a stretch of time such as 4h, or false for never")
    return after


def _of_caps(key: str, raw: object) -> int | None:
    """A cap of ``[caps]``: an amount, a stretch of time or a number; false = none. Raises ValueError."""
    if raw is False:
        return None
    if key.endswith("_usd"):
        return _amount(raw)
    return _seconds(raw) if key == "session_wall" else counted(_int(raw))


def _of_limits(key: str, raw: object) -> int | None:
    """A limit: a number for what is counted, a size for what is weighed, false for none where there may be none."""
    optional = "None" in LimitsConfig.__annotations__[key]
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
    if value > _MOST_BYTES:
        raise ValueError("is more than any machine has" + ("; write false for no limit" if optional else ""))
    return value


def _stopped(_key: str, raw: object) -> int:
    """A keeper is asked every few seconds only, so less than ten could not be kept. Raises ValueError."""
    value = seconds(raw) if isinstance(raw, str) else _int(raw)
    if not 10 <= value <= 7 * 86_400:
        raise ValueError("must be a stretch of time between 10s and 7d")
    return value


def _of_jobs(key: str, raw: object) -> int:
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


def _of_undo(key: str, raw: object) -> int:
    """A size of ``[undo]``, or its number of names. Raises ValueError."""
    if isinstance(raw, str) and "%" in raw:
        raise ValueError("must be a size such as 512MiB")
    return size(raw) if isinstance(raw, str) and key != "names" else _int(raw)


def _of_alarms(key: str, raw: object) -> int:
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


def _of_notify(key: str, raw: object) -> int:
    """A stretch of time of ``[notify]``, a week at most. Raises ValueError."""
    if raw is False and key == "again":
        return 0
    value = seconds(raw) if isinstance(raw, str) else _int(raw)
    if value > 7 * 86_400 or (key == "cool_down" and not value):
        raise ValueError("must be a stretch of time such as 30s or 15m, a week at most; only dwell may be 0")
    if key == "again" and value < 60:
        raise ValueError("must be at least 1m, or false for never")
    return value


def _texts(section: str, _key: str, raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list) or not all(isinstance(x, str) for x in raw):
        raise ValueError("must be a list of strings")
    return tuple(_listed(section, x) for x in raw)


def _table(_section: str, _key: str, raw: object) -> dict[str, str]:
    if not isinstance(raw, dict) or not all(isinstance(v, str) for v in raw.values()):
        raise ValueError("must be a table of strings")
    return dict(raw)


def _yes_or_no(_section: str, _key: str, raw: object) -> bool:
    if not isinstance(raw, bool):
        raise ValueError("must be true or false")
    return raw


def _number(section: str, key: str, raw: object) -> int:
    if key.startswith("reply_") and raw == 0:
        raise ValueError("must be at least 1 second")
    number = _int(raw)
    if key == "evidence_rounds" and number > MOST_EVIDENCE_ROUNDS:
        raise ValueError(f"must be between 0 and {MOST_EVIDENCE_ROUNDS}")
    if key == "witnesses" and not 1 <= number <= MOST_WITNESSES:
        raise ValueError(f"must be between 1 and {MOST_WITNESSES}")
    if key == "context_tokens" and number < LEAST_CONTEXT:
        raise ValueError(f"must be at least {LEAST_CONTEXT}: a hand-off and the turns beside it need that room")
    if number < 1 and (key == "keep" or section in ("plan", "hooks")):
        raise ValueError("must be at least 1")
    if key in ("setup_s", "seconds") and number > LONGEST_RUN_S:
        raise ValueError(f"must be at most {LONGEST_RUN_S} seconds")
    return number


def _text(section: str, key: str, raw: object) -> str:
    if not isinstance(raw, str):
        raise ValueError("must be a string")
    if (section, key) == ("notify", "apprise"):
        return _own_file(raw)
    if section == "notify" and raw not in SCREENS:
        raise ValueError(f"must be one of {', '.join(SCREENS)}")
    if section == "plan" and raw not in (known := FRESH if key == "fresh" else JUDGE_AT):
        raise ValueError(f"must be one of {', '.join(known)}")
    if key == "base_url" and raw and (problem := url_problem(raw)):
        raise ValueError(problem)
    return raw


def _own_file(raw: str) -> str:
    """A file that is named from the root or from the home folder. Raises ValueError."""
    path = os.path.expanduser(raw)
    if not os.path.isabs(path) or "\0" in raw:
        raise ValueError("must be the whole path of a file, such as ~/.config/apprise.yml")
    return path


def _listed(section: str, text: str) -> str:
    """One item of a list: a pattern of files, a command, or a folder."""
    if section == "ratchet":
        return _pattern(text)
    if section == "notify":
        if not text or "\0" in text:
            raise ValueError("a program and its arguments must not be empty nor hold a null character")
        return text
    if (what := _ITEMS.get(section)) is not None:
        if not text.strip():
            raise ValueError(f"{what} must not be empty")
        return text
    return _folder(text)


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


_OWN: dict[str, dict[str, Callable[[str, object], int | None]]] = {
    "caps": {"": _of_caps},
    "limits": {"": _of_limits, "strict": partial(_yes_or_no, "limits")},
    "undo": {"": _of_undo},
    "processes": {"stopped": _stopped},
    "jobs": {"": _of_jobs},
    "alarms": {"": _of_alarms},
    "notify": dict.fromkeys(("dwell", "cool_down", "again"), _of_notify),
    "ui": {"brief_after": _brief_after},
}
"""Sections, or keys of one, whose values are written in units: read by key ("" = any of the section)."""
_KINDS: dict[str, Callable[[str, str, object], object]] = {
    "tuple": _texts,
    "dict": _table,
    "bool": _yes_or_no,
    "int": _number,
    "str": _text,
}
"""The others, by what the section says they are."""
