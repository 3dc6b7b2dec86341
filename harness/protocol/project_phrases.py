"""The phrases that a person bound to commands for one repository, kept in the state folder; and a repository's own file
of phrases, which counts once a person accepted its bytes.

The supervisor is the one writer.
"""

from __future__ import annotations

import contextlib
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


def load(state: Path, common: Path) -> Project:
    """What was said of the repository whose worktrees share ``common``; nothing where it cannot be read."""
    return _all(state).get(_key(common), Project())


def keep(state: Path, common: Path, said: Mapping[str, str], accepted: str = "") -> None:
    """Keep phrases that a person bound (one with an empty command is forgotten), and a digest that was accepted. Raises
    OSError.
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
    with contextlib.suppress(OSError, msgspec.DecodeError):
        return msgspec.json.decode(own_file.read(state / _KEPT), type=dict[str, Project])
    return {}
