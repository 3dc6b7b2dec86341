"""Where a push really goes, and what it would run there. Standard library only.

git starts ``receive-pack`` inside a local remote as the user, with that repository's hooks, and no setting of our
command line reaches it. So a local remote must be one that the user configured and that no agent can write, and what it
would run belongs to what is shown.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from harness.domain.actions.destination import LocalRemote, Named
from harness.domain.addresses import strip_credential
from harness.linux import safe_files
from harness.sandbox import fork_exec

HOOKS = (
    "pre-receive",
    "update",
    "proc-receive",
    "reference-transaction",
    "post-receive",
    "post-update",
    "push-to-checkout",
    "pre-auto-gc",
)
"""Every hook that ``receive-pack``, or what it starts, may run."""
_NOWHERE = "/nonexistent"
_PROGRAMS = ("core.fsmonitor", "core.alternaterefscommand", "gc.recentobjectshook")
_OFF = (
    "",
    "false",
    "no",
    "off",
    "0",
    "true",
    "yes",
    "on",
    "1",
)  # of core.fsmonitor: switched off, or git's own watcher
_SUFFIXES = ("/.git", "", ".git/.git", ".git")  # in the order in which git tries them
_SCHEMES = {"https": "https", "http": "http:https", "git": "git", "ssh": "ssh", "git+ssh": "ssh", "ssh+git": "ssh"}
_URL = re.compile(r"([A-Za-z0-9][A-Za-z0-9+.-]*)://")
_LIST_S = 10.0
_CONFIG_BYTES = 1 << 20
_SMALL = 64 << 10
_LINKS = 40


class PushError(Exception):
    """The push cannot be made as it stands; nothing was sent."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a push would end. ``url`` may hold a credential that a rewrite added.

    ``folder`` is the git folder of a local remote; ``hooks`` and ``programs`` (names of settings) are what would run
    there as the user; ``files`` is what this account rests on.
    """

    url: str
    folder: str = ""
    hooks: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


Entry = tuple[str, str, str]
"""(file or "" for none, key in git's lower-case form, value)"""


def find(named: Named, env: Mapping[str, str], closed: Iterable[str]) -> Place:
    """Where ``named`` leads with the user's own ``insteadOf`` and ``pushInsteadOf``.

    ``closed`` are folders that an agent can write, or ours. Asks nobody over the network. Raises PushError with a
    sentence when nobody may push there.
    """
    entries = configuration(env, _NOWHERE)
    url = rewritten(named.address, entries, pushurl=named.pushurl)
    files = _standard(env) | {file: None for file, key, _ in entries if file and (key.startswith(("url.", "include")))}
    path = local_path(url)
    if path is None:
        protocols(url)
        return Place(url, files=tuple(files))
    shown = named.address if url == named.address else f"{named.address} (which your git configuration leads to {url})"
    if not named.configured:
        raise PushError(
            f"{shown} is a folder of this machine, where a push runs the hooks it finds as the user; only a local"
            " remote that the user has configured in the repository may be pushed to, by its name"
        )
    if path.startswith("~"):
        raise PushError(f"{shown}: write the folder of this remote in full, from the root")
    place = look(os.path.join(named.base, path), env, closed)
    return Place(place.folder, place.folder, place.hooks, place.programs, tuple(files | dict.fromkeys(place.files)))


def configuration(env: Mapping[str, str], git_dir: str) -> list[Entry]:
    """Every setting that git would see with this environment in ``git_dir``. Raises PushError."""
    program = which("git", env)
    safe = {**env, "GIT_DIR": git_dir, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}
    try:
        code, output = fork_exec.capture(
            [program, "config", "--list", "-z", "--show-origin"], safe, _LIST_S, limit=_CONFIG_BYTES, errors=False
        )
    except OSError as exc:
        raise PushError(f"git cannot be started: {exc.strerror}") from exc
    if code != 0 or len(output) >= _CONFIG_BYTES:
        raise PushError("the user's git configuration cannot be read, so nobody knows where this push would go")
    parts = output.decode("utf-8", "surrogateescape").split("\0")
    entries: list[Entry] = []
    for origin, entry in zip(parts[::2], parts[1::2], strict=False):
        key, _, value = entry.partition("\n")
        entries.append((origin.removeprefix("file:") if origin.startswith("file:") else "", key, value))
    return entries


def _standard(env: Mapping[str, str]) -> dict[str, None]:
    """The user's own configuration files, whether they exist or not."""
    home = env.get("HOME", "/")
    return {
        os.path.join(env.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git/config"): None,
        os.path.join(home, ".gitconfig"): None,
    }


def rewritten(address: str, entries: Iterable[Entry], *, pushurl: bool = False) -> str:
    """``address`` as git rewrites it, once: the longest prefix wins; ``pushInsteadOf`` first, never for a
    ``pushurl``.
    """
    rules: dict[str, dict[str, list[str]]] = {"pushinsteadof": {}, "insteadof": {}}
    for _, key, value in entries:
        base, dot, kind = key.removeprefix("url.").rpartition(".")
        if key.startswith("url.") and dot and kind in rules:
            rules[kind].setdefault(base, []).append(value)
    for kind in ("insteadof",) if pushurl else ("pushinsteadof", "insteadof"):
        found = ""
        longest = -1
        for base, prefixes in rules[kind].items():
            for prefix in prefixes:
                if address.startswith(prefix) and len(prefix) > longest:
                    found = base
                    longest = len(prefix)
        if longest >= 0:
            return found + address[longest:]
    return address


def local_path(url: str) -> str | None:
    """The folder that git would push to without any network, as written (maybe relative); None for other addresses."""
    if url.startswith("file://"):
        return "/" + os.fsdecode(unquote_to_bytes(url.removeprefix("file://"))).lstrip("/")
    if _URL.match(url):
        return None
    colon = url.find(":")
    slash = url.find("/")
    return url if colon < 0 or 0 <= slash < colon else None


def protocols(url: str) -> str:
    """The protocols that git may use for an address of the network, as GIT_ALLOW_PROTOCOL has them.

    Raises PushError for an address that needs any other.
    """
    helper, colons, _ = url.partition("::")  # `ext::command` and its like run programs
    if not url or url.startswith("-") or any(ord(char) < 32 for char in url) or (colons and helper.isalnum()):
        raise PushError(f"the address {url[:200]!r} is not one that git may push to")
    scheme = _URL.match(url)
    if scheme is None:
        return "ssh"
    if scheme[1] not in _SCHEMES:
        raise PushError(
            f"the address {strip_credential(url)[0][:200]!r} needs a helper program for {scheme[1]}; only"
            f" {', '.join(_SCHEMES)} are pushed to from here"
        )
    return _SCHEMES[scheme[1]]


def which(name: str, env: Mapping[str, str]) -> str:
    """Absolute path of a program by the PATH of ``env``; raises PushError when it is not there."""
    for folder in env.get("PATH", "/usr/local/bin:/usr/bin:/bin").split(":"):
        path = os.path.join(folder, name)
        if folder.startswith("/") and os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    raise PushError(f"the program {name} is not in PATH ({env.get('PATH', '')})")


class Walls:
    """Folders that nothing of a push may come from or pass through, known by name and by device and inode."""

    def __init__(self, closed: Iterable[str]) -> None:
        self._names = tuple(dict.fromkeys(name for path in closed for name in (path, os.path.realpath(path))))
        self._same: dict[tuple[int, int], str] = {}
        for path in self._names:
            try:
                info = os.stat(path)
            except OSError:
                continue
            self._same[(info.st_dev, info.st_ino)] = path

    def real(self, path: str, what: str) -> str:
        """``path`` with its links resolved. Raises PushError when any step of the way lies where an agent can write."""
        here = "/"
        todo = path.split("/")[::-1]
        links = 0
        while todo:
            part = todo.pop()
            if part in ("", "."):
                continue
            here = os.path.dirname(here) if part == ".." else os.path.join(here, part)
            self._check(here, path, what)
            try:
                target = os.readlink(here)
            except OSError:  # not a link, or not there
                continue
            links += 1
            if links > _LINKS:
                raise PushError(f"{what} {path} leads through too many links")
            here = "/" if target.startswith("/") else os.path.dirname(here)
            todo += target.split("/")[::-1]
        return here

    def pass_by(self, path: str) -> bool:
        """True when no step of the way to ``path`` lies where an agent can write."""
        try:
            self.real(path, "the path")
        except PushError:
            return False
        return True

    def _check(self, here: str, path: str, what: str) -> None:
        by_name = next((wall for wall in self._names if here == wall or here.startswith(wall.rstrip("/") + "/")), "")
        try:
            info = os.stat(here, follow_symlinks=False)
        except OSError:
            found = by_name
        else:
            found = by_name or self._same.get((info.st_dev, info.st_ino), "")
        if found:
            raise PushError(
                f"{what} {path} lies in or leads through {found}, where an agent can write or which is Watchfloor's"
                " own; nothing there may take part in a push"
            )


def look(path: str, env: Mapping[str, str], closed: Iterable[str]) -> Place:
    """The git folder of a local remote and all that it would run. Raises PushError."""
    walls = Walls(closed)
    folder, common = _git_folder(walls, path)
    entries = configuration(env, folder)
    files = [walls.real(file, "the configuration file") for file, _, _ in entries if file]
    last = {key: value for _, key, value in entries}
    if last.get("receive.denycurrentbranch", "").lower() == "updateinstead":
        raise PushError(
            f"{folder} takes pushed files into its working folder (receive.denyCurrentBranch = updateInstead), "
            "where programs would meet them; push there yourself"
        )
    hooks_folder = walls.real(_hooks_folder(last.get("core.hookspath", ""), folder, common, env), "the hooks folder")
    hooks: list[str] = []
    for name in HOOKS:
        hook = os.path.join(hooks_folder, name)
        files.append(hook)
        if os.path.lexists(hook):
            walls.real(hook, "the hook")
            hooks.append(name)
    programs = [key for key in _PROGRAMS if key in last and (key != "core.fsmonitor" or last[key].lower() not in _OFF)]
    programs += [key for key in last if re.fullmatch(r"hook\..*\.command", key, re.DOTALL)]
    files.insert(0, os.path.join(common, "config"))
    return Place(folder, folder, tuple(hooks), tuple(programs), tuple(dict.fromkeys(files)))


def _git_folder(walls: Walls, path: str) -> tuple[str, str]:
    """(git folder, folder with its configuration and hooks) of the repository that git finds at ``path``."""
    for suffix in _SUFFIXES:
        real = walls.real(path.rstrip("/") + suffix, "the remote")
        try:
            mode = os.lstat(real).st_mode
        except OSError:
            continue
        if stat.S_ISREG(mode):
            text = _small(real)
            if not text.startswith("gitdir: "):
                raise PushError(f"{real} does not name a git folder")
            real = walls.real(os.path.join(os.path.dirname(real), text.removeprefix("gitdir: ")), "the remote")
        elif not stat.S_ISDIR(mode) or not os.path.lexists(os.path.join(real, "HEAD")):
            continue
        if os.path.lexists(os.path.join(real, ".git")):
            raise PushError(f"{real} holds another repository in .git, so nobody can say which one a push would reach")
        inner = os.path.join(real, "commondir")
        common = walls.real(os.path.join(real, _small(inner)), "the remote") if os.path.lexists(inner) else real
        for name in ("HEAD", "objects", "refs"):
            walls.real(os.path.join(real if name == "HEAD" else common, name), "the remote")
        _small(walls.real(os.path.join(common, "config"), "the configuration file"), _CONFIG_BYTES)
        return real, common
    raise PushError(f"{path} is not a git repository, so the remote does not answer")


def _hooks_folder(setting: str, folder: str, common: str, env: Mapping[str, str]) -> str:
    if not setting:
        return os.path.join(common, "hooks")
    if setting.startswith("~/"):
        return os.path.join(env.get("HOME", "/"), setting[2:])
    if setting.startswith(("~", "%(")):
        raise PushError(f"core.hooksPath of {folder} is {setting!r}; write it in full, from the root")
    return os.path.join(folder, setting)


def _small(path: str, limit: int = _SMALL) -> str:
    """The text of a small regular file, read without following a link or waiting. Raises PushError."""
    try:
        return safe_files.read(path, limit).decode("utf-8", "surrogateescape").strip()
    except safe_files.Unreadable as exc:
        raise PushError(f"{path} is not a file of a repository: it is no regular file or too large") from exc
    except OSError as exc:
        raise PushError(f"{path} cannot be read: {exc.strerror}") from exc


def account(place: Place) -> LocalRemote | None:
    """What an action says of a local remote; None for one elsewhere."""
    return LocalRemote(place.folder, tuple(place.hooks), tuple(place.programs)) if place.folder else None


def closed(write: Iterable[str], binds: Iterable[tuple[str, str, str]], own: Iterable[str]) -> list[str]:
    """The folders of a sandbox that an agent can write (worktree, sources of writable binds), and Watchfloor's own."""
    sources = [source for source, _, mode in binds if mode == "rw"]
    return list(dict.fromkeys([*write, *sources, *own]))
