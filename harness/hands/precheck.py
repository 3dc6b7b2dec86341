"""Preconditions of an action that leaves the fence, observed again just before it starts. Standard library only, no child process.

Whoever builds an action fills ``pre`` with this same `observe`, so that building and checking can never read the world differently.
"""

from __future__ import annotations

import hashlib
import os
import stat
from typing import Any

from harness.events.addresses import strip_credential

ABSENT = "absent"
_LARGE = 256 << 20
_DEPTH = 8


def observe(action: dict[str, Any]) -> dict[str, Any]:
    """The present value of every precondition that ``action["pre"]`` names.

    ``files`` {path relative to the worktree, or absolute: SHA-256 of its bytes | "absent"}, ``head`` (commit of the session's HEAD),
    ``worktree`` {"dev", "ino"}, ``url`` (push: what the repository's configuration gives for ``remote``), ``refs`` {local ref: commit | "absent"}.
    Something that cannot be read becomes a text that equals no expected value.
    """
    expected: dict[str, Any] = action.get("pre") or {}
    worktree = worktree_of(action)
    seen: dict[str, Any] = {}
    if "files" in expected:
        seen["files"] = {path: file_state(os.path.join(worktree, path)) for path in expected["files"]}
    if "head" in expected:
        seen["head"] = head(worktree, (action.get("fence") or {}).get("binds", []))
    if "worktree" in expected:
        seen["worktree"] = _identity(worktree)
    if "url" in expected:
        seen["url"] = remote_url(common_dir(worktree), str(action.get("remote", "")))
    if "refs" in expected:
        common = common_dir(worktree)
        seen["refs"] = {name: ref(common, name) for name in expected["refs"]}
    return seen


def difference(expected: dict[str, Any], observed: dict[str, Any]) -> list[str]:
    """What is no longer as it was judged, one sentence each; empty means nothing changed."""
    found: list[str] = []
    for key in sorted(expected.keys() | observed.keys()):
        old, new = expected.get(key), observed.get(key)
        if isinstance(old, dict) and isinstance(new, dict) and key != "worktree":
            found += [_sentence(key, name, old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys()) if old.get(name) != new.get(name)]
        elif old != new:
            found.append(_sentence(key, "", old, new))
    return found


def _sentence(key: str, name: str, old: object, new: object) -> str:
    if key == "files":
        if old == ABSENT:
            return f"{name} did not exist and now does"
        return f"{name} is gone" if new == ABSENT else f"{name} has other content than what was approved"
    what = {"head": "the session's commit", "worktree": "the worktree folder", "url": "the remote's address", "refs": f"ref {name}"}.get(
        key, f"{key} {name}".strip()
    )
    return f"{what} was {_short(old)} and is now {_short(new)}"


def _short(value: object) -> str:
    return "nothing" if value is None else str(value)[:200]


def worktree_of(action: dict[str, Any]) -> str:
    """Root of the worktree that an action's relative paths start from."""
    profile = action.get("fence") or {}
    return str(profile.get("worktree") or (profile.get("write") or [action.get("cwd") or "/"])[0])


def file_state(path: str) -> str:
    """SHA-256 of the bytes behind ``path`` (links followed once, then the opened file is read), "absent", or why it is neither."""
    try:
        fd = os.open(os.path.realpath(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except OSError as exc:
        return f"unreadable: {exc.strerror}"
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode):  # before Python wraps it: a folder is no file object
        os.close(fd)
        return "not a regular file"
    with open(fd, "rb") as file:
        if info.st_size > _LARGE:  # the keeper must not stand still for a minute; identity and times stand for the bytes
            return f"large: {info.st_dev}:{info.st_ino} {info.st_size} bytes, changed {info.st_ctime_ns}"
        try:
            return hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as exc:
            return f"unreadable: {exc.strerror}"


def _identity(path: str) -> dict[str, int]:
    try:
        info = os.lstat(path)
    except OSError:
        return {}
    return {"dev": info.st_dev, "ino": info.st_ino}


def git_dir(worktree: str) -> str:
    """The git directory that a worktree's ``.git`` names (a folder, or a file with ``gitdir:``), or itself when bare; empty when none."""
    dot = os.path.join(worktree, ".git")
    if os.path.isdir(dot):
        return dot
    text = _text(dot)
    if text.startswith("gitdir: "):
        return os.path.normpath(os.path.join(worktree, text.removeprefix("gitdir: ")))
    return worktree if os.path.isfile(os.path.join(worktree, "HEAD")) else ""


def common_dir(worktree: str) -> str:
    """The repository's common git directory, from a worktree, a main checkout or a bare repository."""
    folder = git_dir(worktree)
    common = _text(os.path.join(folder, "commondir")) if folder else ""
    return os.path.normpath(os.path.join(folder, common)) if common else folder


def head(worktree: str, binds: list[list[str]]) -> str:
    """Commit of the session's HEAD, read where the fenced agent writes it (the private folder bound over the git directory)."""
    folder = git_dir(worktree)
    private = next((bind[0] for bind in binds if bind[1] == folder), folder)
    return _resolve(private, common_dir(worktree), "HEAD", _DEPTH)


def ref(common: str, name: str) -> str:
    """Commit of a full ref name in a repository, or "absent"."""
    return _resolve(common, common, name, _DEPTH)


def _resolve(folder: str, common: str, name: str, depth: int) -> str:
    if not folder or depth == 0 or ".." in name.split("/") or name.startswith("/"):
        return ABSENT
    text = _text(os.path.join(folder, name)) or _text(os.path.join(common, name))
    if text.startswith("ref: "):
        return _resolve(folder, common, text.removeprefix("ref: ").strip(), depth - 1)
    if text:
        return text
    for line in _text(os.path.join(common, "packed-refs")).splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name:
            return commit
    return ABSENT


def remote_url(common: str, remote: str) -> str:
    """The last ``pushurl``, else ``url``, that the repository's own configuration gives for ``remote``, or "absent"; never a credential.

    Includes are not followed.
    """
    inside, found = False, {"url": ABSENT, "pushurl": ABSENT}
    wanted = f'[remote "{remote}"]'
    for raw in _text(os.path.join(common, "config")).splitlines():
        line = raw.strip()
        if line.startswith("["):
            inside = line.startswith(wanted)
            line = line.removeprefix(wanted).strip() if inside else line
        key, equals, value = line.partition("=")
        if inside and equals and key.strip().lower() in found:
            value = value.strip()
            value = value[1:-1] if len(value) > 1 and value[0] == value[-1] == '"' else value
            found[key.strip().lower()] = strip_credential(value)[0]
    return found["url"] if found["pushurl"] == ABSENT else found["pushurl"]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(4 << 20).strip()
    except OSError:
        return ""
