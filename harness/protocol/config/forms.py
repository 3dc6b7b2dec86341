"""Checks of texts in ``config.toml``: addresses, paths, patterns, commands. Each raises ValueError."""

from __future__ import annotations

import os

from harness.domain.settings.reading import Form
from harness.protocol.config.credential import url_problem

_NEVER = frozenset(("/", "/usr", "/etc", "/tmp", "/root", "/home", "/opt", "/var", "/run", "/proc", "/sys", "/dev"))


def _address(text: str) -> str:
    if text and (problem := url_problem(text)):
        raise ValueError(problem)
    return text


def _own_file(text: str) -> str:
    path = os.path.expanduser(text)
    if not os.path.isabs(path) or "\0" in text:
        raise ValueError(f"{text!r} must be the whole path of a file, such as ~/.config/apprise.yml")
    return path


def _folder(text: str) -> str:
    """An absolute folder that may be shown inside the sandbox, which whole system folders would open."""
    path = os.path.normpath(os.path.expanduser(text))
    if not os.path.isabs(path):
        raise ValueError(f"{text!r} must be an absolute path (or begin with ~)")
    if path in _NEVER or path.startswith(("/proc/", "/sys/")) or path == os.path.normpath(os.path.expanduser("~")):
        raise ValueError(f"{text!r} is too much to show inside the sandbox; name the folders below it that are needed")
    return path


def _pattern(text: str) -> str:
    """A pattern over paths inside a repository."""
    if not text.strip("/ ") or text.startswith("/") or ".." in text.split("/"):
        raise ValueError(f"{text!r} must be a path inside the repository, in which * and ** may stand")
    return text


def _argument(text: str) -> str:
    if not text or "\0" in text:
        raise ValueError(f"{text!r} must not be empty nor hold a null character")
    return text


def _filled(text: str) -> str:
    return _argument(text if text.strip() else "")


def tokens(least: int) -> Form:
    """A number of tokens, or 0."""

    def read(number: int) -> int:
        if number and number < least:
            raise ValueError(f"must be {words}, not {number}")
        return number

    words = f"0, or a number of tokens from {least:,} on"
    return Form(read, words, (int,))


ADDRESS = Form(_address)
FILE = Form(_own_file)
FOLDER = Form(_folder)
PATTERN = Form(_pattern)
ARGUMENT = Form(_argument)
FILLED = Form(_filled)
