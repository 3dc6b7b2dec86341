"""``config.toml``: models, caps, sandbox and screen settings. Read from the user's folder only, never from a
repository.

Every key is known here; an unknown key or a wrong type is an error that names file, line and key.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from harness.domain.settings.reading import Source
from harness.domain.settings.toml_text import Unusable
from harness.linux import own_file
from harness.protocol.config.sections import Profile, Sections
from harness.protocol.paths import Folders


class ConfigError(Unusable):
    """A setting cannot be used."""


class Config(Sections, frozen=True, kw_only=True):
    """All settings, and the file they came from (which may not exist: then these are the defaults)."""

    file: Path

    def profile(self, model: str) -> Profile:
        """The profile with the longest name that this model's begins with."""
        fitting = [name for name in self.profiles if model.startswith(name)]
        return self.profiles[max(fitting, key=len)] if fitting else Profile()


RENAMED = {"fence": "sandbox"}
"""Sections that had another name."""


def parse(file: Path, text: str) -> Config:
    """Settings from TOML text. Raises ConfigError."""
    return Config(file=file, **msgspec.structs.asdict(Source(text, file, ConfigError, RENAMED).read(Sections)))


def load(folders: Folders) -> Config:
    """The user's settings, or the defaults when there is no file. Raises ConfigError."""
    try:
        text = own_file.text(folders.config_file)
    except FileNotFoundError:
        return Config(file=folders.config_file)
    except (OSError, UnicodeDecodeError) as exc:
        raise ConfigError(folders.config_file, 1, "", f"cannot be read: {exc}") from exc
    config = parse(folders.config_file, text)
    own = [
        folders.state,
        folders.runtime,
        folders.config,
        *([Path(config.model.api_key_file).expanduser()] if config.model.api_key_file else []),
    ]
    for shown in config.sandbox.read:
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
            raise Source(text, folders.config_file, ConfigError).failure(("sandbox", "read"), why)
    return config
