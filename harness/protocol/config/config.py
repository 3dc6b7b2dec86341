"""``config.toml``: models, caps, fence and screen settings. Read from the user's folder only, never from a repository.

Every key is known here; an unknown key or a wrong type is an error that names file, line and key.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from harness.linux import own_file
from harness.linux.own_file import Unusable
from harness.protocol.config import profiles
from harness.protocol.config.profiles import Profiles
from harness.protocol.config.sections import (
    SECTIONS,
    AlarmsConfig,
    CapsConfig,
    CheckpointConfig,
    FenceConfig,
    HooksConfig,
    JobsConfig,
    LimitsConfig,
    MemoryConfig,
    ModelConfig,
    NotifyConfig,
    PlanConfig,
    ProcessesConfig,
    RatchetConfig,
    UiConfig,
    UndoConfig,
)
from harness.protocol.config.values import value_of
from harness.protocol.paths import Folders


class ConfigError(Unusable):
    """A setting cannot be used."""


class Config(msgspec.Struct, frozen=True):
    """All settings, and the file they came from (which may not exist: then these are the defaults)."""

    file: Path
    model: ModelConfig = ModelConfig()
    caps: CapsConfig = CapsConfig()
    fence: FenceConfig = FenceConfig()
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
    profiles: Profiles = Profiles()
    ui: UiConfig = UiConfig()


def parse(file: Path, source: str) -> Config:
    """Settings from TOML text. Raises ConfigError."""
    data = own_file.tables(source, file, ConfigError)
    made: dict[str, object] = {}
    for section, table in data.items():
        if section == "profiles" and isinstance(table, dict):
            made[section] = _profiles(file, source, table)
            continue
        cls = SECTIONS.get(section)
        if cls is None:
            raise ConfigError(
                file,
                _line_of(source, section, section),
                section,
                f"unknown section; known: {', '.join([*SECTIONS, 'profiles'])}",
            )
        if not isinstance(table, dict):
            raise ConfigError(file, _line_of(source, "", section), section, f"must be a section: write [{section}]")
        known = cls.__struct_fields__
        values: dict[str, object] = {}
        for key, raw in table.items():
            line = _line_of(source, section, key)
            if key not in known:
                raise ConfigError(file, line, f"{section}.{key}", f"unknown key; known: {', '.join(sorted(known))}")
            try:
                values[key] = value_of(section, key, raw)
            except ValueError as exc:
                raise ConfigError(file, line, f"{section}.{key}", str(exc)) from exc
        made[section] = cls(**values)
    return msgspec.structs.replace(Config(file), **made)


def _profiles(file: Path, source: str, table: dict[str, object]) -> Profiles:
    try:
        return profiles.parse(table)
    except profiles.BadProfile as exc:
        raise ConfigError(file, _line_of(source, "profiles", exc.key), f"profiles.{exc.key}", str(exc)) from exc


def load(folders: Folders) -> Config:
    """The user's settings, or the defaults when there is no file. Raises ConfigError."""
    try:
        source = own_file.text(folders.config_file)
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
