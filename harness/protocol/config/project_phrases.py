"""The phrases that a person bound to commands for one repository, kept in the state folder; and a repository's own file
of phrases, which counts once a person accepted its bytes.

The supervisor is the one writer.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from harness.linux import durable, own_file

FILE = ".watchfloor/phrases.toml"
"""In a repository: ``"Tests pass" = "make test"``, a line each."""
MOST_BYTES = 64 * 1024
LEAST_HASH = 12
"""Digits of a digest that name a file for a person."""
_KEPT = "phrases.json"
_MOST_PROJECTS = 1000


class Project(msgspec.Struct, frozen=True):
    """What a person said of one repository: its ``phrases``, and the SHA-256 of each `FILE` that counts."""

    phrases: dict[str, str] = {}
    accepted: tuple[str, ...] = ()

    def counts(self, data: bytes) -> bool:
        """Whether a person accepted a file with these bytes."""
        return digest(data) in self.accepted


def digest(data: bytes) -> str:
    """What a file of phrases is accepted by."""
    return hashlib.sha256(data).hexdigest()


class Unreadable(Exception):
    """What was kept cannot be read; the message names the file and what to do."""


def load(state: Path, common: Path) -> Project:
    """What was said of the repository whose worktrees share ``common``. Raises Unreadable."""
    return _all(state).get(_key(common), Project())


def counting(own: Mapping[str, str], configured: Mapping[str, str], project: Project) -> dict[str, str]:
    """What phrases mean: by what a person said of the project before the configuration, and that before the
    repository's ``own``.
    """
    return {**own, **configured, **project.phrases}


def keep(state: Path, common: Path, said: Mapping[str, str], accepted: str = "") -> None:
    """Keep phrases that a person bound (one with an empty command is forgotten), and a digest that was accepted. Raises
    OSError, Unreadable: then nothing of what was kept is lost.
    """
    known = _all(state)
    before = known.pop(_key(common), Project())
    phrases = {text: command for text, command in {**before.phrases, **said}.items() if command}
    digests = tuple(dict.fromkeys([*before.accepted, accepted])) if accepted else before.accepted
    known[_key(common)] = Project(phrases, digests)
    newest = dict(list(known.items())[-_MOST_PROJECTS:])
    durable.swap_file(state / _KEPT, msgspec.json.format(msgspec.json.encode(newest)))


def bindings(data: bytes) -> dict[str, str]:
    """The phrases of a file. Raises ValueError, which says what is wrong with it."""
    try:
        whole = tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise ValueError(f"{FILE} cannot be read: {exc}") from exc
    for phrase, command in whole.items():
        if not isinstance(command, str) or not command.strip() or not phrase.strip():
            raise ValueError(f'{FILE}: {phrase!r} needs a command: "Tests pass" = "make test"')
    return {phrase: str(command) for phrase, command in whole.items()}


def _key(common: Path) -> str:
    return str(common).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _all(state: Path) -> dict[str, Project]:
    file = state / _KEPT
    try:
        return msgspec.json.decode(own_file.read(file), type=dict[str, Project])
    except FileNotFoundError:
        return {}
    except (OSError, msgspec.DecodeError) as exc:
        raise Unreadable(f"{file} cannot be read ({exc}), so no phrase bound here counts; mend or remove it") from exc
