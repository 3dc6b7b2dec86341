"""Preconditions of an action that leaves the sandbox, observed again just before it starts. Standard library only, no
child process.

Whoever builds an action fills ``pre`` with this same `observe`, so that building and checking can never read the world
differently.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping, Sequence

from harness.domain.actions.action import Action, ExecAction, PushAction
from harness.domain.addresses import strip_credential
from harness.domain.text import fields
from harness.executor import deleted
from harness.linux import programs, safe_files

ABSENT = "absent"
FOREIGN = "that of another repository"
NO_COMMIT = "not a commit"
"""What stands for a HEAD or a ref that holds anything else: its text may be that of any file, so it is never repeated.
"""
_LARGE = 256 << 20
_CONFIG = 4 << 20
_DEPTH = 8
QUICK = ("worktree", "cwd")
"""Preconditions that cost one look at a name; to observe any other one files are read."""
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_USERINFO = re.compile(r"://[^/@\s]*@")


def observe(action: Action) -> dict[str, object]:
    """The present value of every precondition that ``action.pre`` names.

    ``files`` {path relative to the worktree, or absolute: SHA-256 of its bytes | "absent"}, ``head`` (commit of the
    session's HEAD), ``worktree`` and ``cwd`` {"dev", "ino"}, ``program`` (see `program`), ``url`` (push: what the
    repository's configuration gives for ``remote``), ``refs`` {local ref: commit | "absent"}, ``deletes`` {name of what
    a plain deletion takes away: `deleted.state`}. Something that cannot be read becomes a text that equals no expected
    value.
    """
    expected = action.world
    worktree = action.sandbox.worktree
    seen: dict[str, object] = {}
    if "files" in expected:
        seen["files"] = file_states({path: os.path.join(worktree, path) for path in fields.table(expected, "files")})
    if "head" in expected:
        seen["head"] = head(worktree, action.sandbox.binds)
    if "worktree" in expected:
        seen["worktree"] = identity(worktree)
    if "cwd" in expected:
        seen["cwd"] = identity(action.cwd)
    if "program" in expected:
        name = action.argv[0] if isinstance(action, ExecAction) else programs.bash()
        seen["program"] = program(name, action.cwd, action.env.get("PATH", ""))
    if "url" in expected:
        remote = action.remote if isinstance(action, PushAction) else ""
        seen["url"] = remote_url(common_dir(worktree), remote)
    if "deletes" in expected:
        seen["deletes"] = {
            name: deleted.state(os.path.join(action.cwd, name)) for name in fields.table(expected, "deletes")
        }
    if "refs" in expected:
        common = common_dir(worktree)
        seen["refs"] = {name: ref(common, name) for name in fields.table(expected, "refs")}
    return seen


def difference(expected: Mapping[str, object], observed: Mapping[str, object]) -> list[str]:
    """What is no longer as it was judged, one sentence each; empty means nothing changed."""
    found: list[str] = []
    for key in sorted(expected.keys() | observed.keys()):
        old = expected.get(key)
        new = observed.get(key)
        if isinstance(old, dict) and isinstance(new, dict) and key not in ("worktree", "cwd", "program"):
            found += [
                _sentence(key, name, old.get(name), new.get(name))
                for name in sorted(old.keys() | new.keys())
                if old.get(name) != new.get(name)
            ]
        elif old != new:
            found.append(_sentence(key, "", old, new))
    return found


def _sentence(key: str, name: str, old: object, new: object) -> str:
    if key == "files":
        if old == ABSENT:
            return f"{name} did not exist and now does"
        return f"{name} is gone" if new == ABSENT else f"{name} has other content than what was approved"
    if key == "deletes":
        return f"what would be deleted as {name} is not what was shown"
    if key == "cwd":
        return "the folder it runs in is another one than what was shown"
    if key == "program":
        return (
            "the program is another one than what was shown"
            f" ({_short((new or {}).get('path') if isinstance(new, dict) else new)})"
        )
    what = {
        "head": "the session's commit",
        "worktree": "the worktree folder",
        "url": "the remote's address",
        "refs": f"ref {name}",
    }.get(key, f"{key} {name}".strip())
    return f"{what} was {_short(old)} and is now {_short(new)}"


def _short(value: object) -> str:
    """At most 200 characters, without the user name and password of an address."""
    return "nothing" if value is None else _USERINFO.sub("://", str(value)[:200])


def file_states(paths: Mapping[str, str]) -> dict[str, str]:
    """`file_state` of several files by name. Together they are read up to 256 MiB, in the order of their names."""
    room = _LARGE
    found = dict[str, str]()
    for name in sorted(paths):
        found[name], used = _state(paths[name], room)
        room -= used
    return found


def file_state(path: str) -> str:
    """SHA-256 of the bytes behind ``path`` (links followed once, then the opened file is read), "absent", or why it is
    neither.

    For a file over 256 MiB its identity, size and times stand for the bytes: the keeper must not stand still for a
    minute.
    """
    return _state(path, _LARGE)[0]


def _state(path: str, room: int) -> tuple[str, int]:
    """(state, bytes read) of one file of which at most ``room`` bytes may be read."""
    try:
        fd = safe_files.regular(os.path.realpath(path))
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT, 0
    except safe_files.Unreadable:
        return "not a regular file", 0
    except (OSError, ValueError) as exc:
        return f"unreadable: {exc.strerror if isinstance(exc, OSError) else exc}", 0
    try:
        info = os.fstat(fd)
        if info.st_size > room:
            return f"large: {info.st_dev}:{info.st_ino} {info.st_size} bytes, changed {info.st_ctime_ns}", 0
        digest = hashlib.sha256()
        left = info.st_size
        while left >= 0 and (chunk := os.read(fd, min(1 << 20, left + 1))):
            digest.update(chunk)
            left -= len(chunk)
        return (
            ("unreadable: it grows while it is read", info.st_size) if left < 0 else (digest.hexdigest(), info.st_size)
        )
    except OSError as exc:
        return f"unreadable: {exc.strerror}", 0
    finally:
        os.close(fd)


def identity(path: str) -> dict[str, int]:
    """``dev`` and ``ino`` of a folder or file; empty when nothing is there, or a link (which may have the number of
    what it replaced).
    """
    try:
        info = os.lstat(path)
    except OSError:
        return {}
    return {} if stat.S_ISLNK(info.st_mode) else {"dev": info.st_dev, "ino": info.st_ino}


def program(name: str, cwd: str, path: str) -> dict[str, object]:
    """What executing ``name`` in ``cwd`` would run: ``path`` with every link resolved, ``dev``, ``ino``, ``sha``; empty
    when there is nothing.
    """
    found = os.path.join(cwd, name) if "/" in name else programs.which(name, path)
    if not name or not os.path.exists(found):
        return {}
    real = os.path.realpath(found)
    return {"path": real, **identity(real), "sha": file_state(real)}


def git_dir(worktree: str) -> str:
    """The git directory that a worktree's ``.git`` names (a folder, or a file with ``gitdir:``), or itself when bare;
    empty when none.
    """
    dot = os.path.join(worktree, ".git")
    if os.path.isdir(dot) and not os.path.islink(dot):
        return dot
    text = _text(dot)
    if text.startswith("gitdir: "):
        return os.path.normpath(os.path.join(worktree, text.removeprefix("gitdir: ")))
    return worktree if os.path.isfile(os.path.join(worktree, "HEAD")) else ""


def common_dir(worktree: str) -> str:
    """The repository's common git directory, from a worktree, a main checkout or a bare repository."""
    return _common(git_dir(worktree))


def _common(folder: str) -> str:
    common = _text(os.path.join(folder, "commondir")) if folder else ""
    return os.path.normpath(os.path.join(folder, common)) if common else folder


def head(worktree: str, binds: Sequence[tuple[str, str, str]]) -> str:
    """Commit of the session's HEAD, read where the sandboxed agent writes it (the private folder bound over the git
    directory).

    "absent" when nothing is there or its branch has no commit, "not a commit" for anything but a commit or a ref, "that
    of another repository" when the worktree's ``.git`` leads elsewhere than to the folder the private one is bound
    over.
    """
    folder = git_dir(worktree)
    private = next((bind[0] for bind in binds if bind[1] == folder and bind[2] == "rw"), None) if binds else folder
    if private is None:
        return FOREIGN
    return _resolve(private, private if binds else _common(folder), "HEAD", _DEPTH)


def ref(common: str, name: str) -> str:
    """Commit of a full ref name in a repository, "absent", or "not a commit"."""
    return _resolve(common, common, name, _DEPTH)


def _resolve(folder: str, common: str, name: str, depth: int) -> str:
    if not folder or depth == 0 or ".." in name.split("/") or name.startswith("/"):
        return ABSENT
    text = _pointer(folder, name)
    if text in (ABSENT, "") and name != "HEAD":  # each worktree has its own
        text = _pointer(common, name)
    target = text.removeprefix("ref:").strip()
    if text.startswith("ref:"):
        return _resolve(folder, common, target, depth - 1) if target.startswith("refs/") else NO_COMMIT
    if text not in (ABSENT, ""):
        return text if _COMMIT.fullmatch(text) else NO_COMMIT
    for line in _text(os.path.join(common, "packed-refs"), _CONFIG * 16).splitlines():
        commit, _, packed = line.partition(" ")
        if packed == name:
            return commit if _COMMIT.fullmatch(commit) else NO_COMMIT
    return ABSENT


def _pointer(folder: str, name: str) -> str:
    """The text of a HEAD or ref file, "absent", or "not a commit" when what is there is no small file of the folder's
    own.
    """
    try:
        return safe_files.read_beneath(folder, name, safe_files.SMALL).decode("utf-8", "replace").strip()
    except (FileNotFoundError, NotADirectoryError):
        return ABSENT
    except (OSError, ValueError):
        return NO_COMMIT


def remote_url(common: str, remote: str) -> str:
    """The last ``pushurl``, else ``url``, that the repository's own configuration gives for ``remote``, or "absent";
    never a credential.

    Includes are not followed.
    """
    inside = False
    found = {"url": ABSENT, "pushurl": ABSENT}
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


def _text(path: str, limit: int = _CONFIG) -> str:
    """The text of a file that the repository's owner keeps; empty when there is none that can be read."""
    try:
        return safe_files.read(path, limit).decode("utf-8", "replace").strip()
    except (OSError, ValueError):
        return ""
