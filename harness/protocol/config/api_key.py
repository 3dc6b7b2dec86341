"""The endpoint that a configuration names, and the key for it, from a file or the environment."""

from __future__ import annotations

import functools
import os
from pathlib import Path

from harness.linux import own_file
from harness.protocol.config.config import Config, ConfigError
from harness.protocol.config.credential import Credential, key_problem, url_problem

DEFAULT_BASE_URL = "https://api.anthropic.com"


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
    return own_file.text(path).strip()


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
            why = exc.strerror if isinstance(exc, OSError) and exc.strerror else str(exc)
            todo = "write the key into it, or take the setting out and set the key in the environment"
            raise ConfigError(config.file, 1, "model.api_key_file", f"{path} cannot be read: {why}; {todo}") from exc
        source = "model.api_key_file"
    else:
        key = e.get(config.model.api_key_env, "").strip()
        source = f"{config.model.api_key_env} in the environment"
    if problem := key_problem(key):
        raise ConfigError(config.file, 1, source, problem)
    return Credential(url, key) if key else None
