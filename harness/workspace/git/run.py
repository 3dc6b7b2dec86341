"""Running git so that nothing a repository's configuration says can make it run something else.

Every call gets an environment of its own, the git directory and work tree by name (no discovery in folders an agent can
write), and overrides for every setting that names a program. What lies in an agent's worktree is looked at by `look`,
not by git. GitPython finds the repository, in pure Python.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import stat
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.linux import safe_files
from harness.linux.scarce import scarce
from harness.workspace.git import processes
from harness.workspace.git.errors import GitFailed, GitMissing, GitTooOld, NoCommits, NotARepository

MINIMUM = (2, 32)
TIMEOUT_S = 300.0
_OTHERS = 0o077
_SETTINGS: dict[str, str] = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.pager": "cat",
    "core.editor": "false",
    "sequence.editor": "false",
    "core.askPass": "/bin/false",
    "core.sshCommand": "ssh",
    "core.gitProxy": "",
    "core.alternateRefsCommand": "false",
    "core.quotePath": "false",
    "credential.helper": "",
    "diff.external": "",
    "diff.ignoreSubmodules": "all",
    "diff.noprefix": "false",
    "diff.mnemonicPrefix": "false",
    "diff.renames": "true",
    "color.ui": "false",
    "submodule.recurse": "false",
    "status.submoduleSummary": "false",
    "status.showUntrackedFiles": "all",
    "commit.gpgSign": "false",
    "tag.gpgSign": "false",
    "push.gpgSign": "false",
    "gpg.program": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.ext.allow": "never",
    "safe.directory": "*",
    "core.splitIndex": "false",
    "index.sparse": "false",
    "log.showSignature": "false",
    "i18n.logOutputEncoding": "UTF-8",
    "advice.detachedHead": "false",
}
_NEUTRAL = re.compile(
    r"(filter\..*\.(clean|smudge|process)|diff\..*\.(command|textconv)|merge\..*\.driver|credential\..*\.helper"
    r"|gpg\..*\.(program|defaultkeycommand)"
    r"|hook\..*\.command|remote\..*\.(uploadpack|receivepack|vcs)|trailer\..*\.(command|cmd))\Z",
    re.IGNORECASE | re.DOTALL,
)
_IS_BARE = ("config", "--type=bool", "--get", "core.bare")
_NOT_REQUIRED = re.compile(r"filter\..*\.required\Z", re.IGNORECASE)

_FURTHER = re.compile(rb"include|worktreeconfig", re.IGNORECASE)
"""What a configuration says that is not all of it: settings are in other files, too."""


_IMPERSONAL = ("GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_GLOBAL")
_WHOSE = ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
"""Variables that say where the user's own git looks for their configuration."""


def common_of(git_dir: Path) -> Path:
    """The git directory that holds the objects and branches of the one of a worktree; of any other itself."""
    try:
        return git_dir / safe_files.read_beneath(git_dir, "commondir", 4096).decode("utf-8", "surrogateescape").rstrip(
            "\n"
        )
    except OSError:
        return git_dir


def clean_env() -> dict[str, str]:
    """The environment of our git calls, built from nothing: no inherited ``GIT_*``, no system or user configuration, no
    remote of any kind.

    A partial clone would fetch what is missing, by programs that its configuration names; ``GIT_ALLOW_PROTOCOL``
    forbids every transport. Relative parts of PATH are dropped: git may run in a folder that an agent writes.
    """
    path = ":".join(part for part in os.environ.get("PATH", "").split(":") if part.startswith("/"))
    return {
        "PATH": path or "/usr/local/bin:/usr/bin:/bin",
        "GIT_ALLOW_PROTOCOL": "none",
        "HOME": os.environ.get("HOME", "/"),
        "LC_ALL": "C.UTF-8",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "/bin/false",
        "SSH_ASKPASS": "/bin/false",
        "GIT_PAGER": "cat",
        "GIT_EDITOR": "false",
        "GIT_SSH_COMMAND": "ssh",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
    }


def config_env(settings: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Settings as ``GIT_CONFIG_KEY_n``/``VALUE_n``: they win over every file and may hold any character."""
    env = {"GIT_CONFIG_COUNT": str(len(settings))}
    for index, (key, value) in enumerate(settings):
        env[f"GIT_CONFIG_KEY_{index}"] = key
        env[f"GIT_CONFIG_VALUE_{index}"] = value
    return env


@functools.cache
def version() -> tuple[int, ...]:
    """The installed git's version, checked. Raises GitMissing, GitTooOld, and OSError for want of a file or process."""
    try:
        out = subprocess.run(
            ["git", "version"], env=clean_env(), capture_output=True, check=True, timeout=30, stdin=subprocess.DEVNULL
        ).stdout.decode()
    except (OSError, subprocess.SubprocessError) as exc:
        if scarce(exc):
            raise
        raise GitMissing(f"git cannot be run ({exc}); install git {MINIMUM[0]}.{MINIMUM[1]} or newer") from exc
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", out)
    number = tuple(int(x) for x in found.groups("0")) if found else (0,)
    if number < MINIMUM:
        raise GitTooOld(f"{out.strip()} is too old; install git {MINIMUM[0]}.{MINIMUM[1]} or newer")
    return number


@dataclass(frozen=True, slots=True)
class Git:
    """A repository to run git on.

    ``git_dir`` may be a worktree's administrative directory; ``work_tree`` None = none needed.
    """

    git_dir: Path
    work_tree: Path | None = None
    extra: tuple[tuple[str, str], ...] = ()
    """Overrides for drivers the repository's own configuration defines."""
    more_env: tuple[tuple[str, str], ...] = ()
    personal: bool = False
    """Also what the user and the machine configure is read, which no command that writes may."""

    @classmethod
    def of(cls, git_dir: Path, work_tree: Path | None = None) -> Git:
        """A runner whose overrides cover every filter, diff and merge driver named in the repository's
        configuration.
        """
        version()
        plain = cls(git_dir, work_tree)
        listed = dict(plain.configured())
        extra = [(key, "") for key in listed if _NEUTRAL.match(key)]
        extra += [(key, "false") for key in listed if _NOT_REQUIRED.match(key)]
        return replace(plain, extra=tuple(extra))

    def with_env(self, **env: str) -> Git:
        """The same repository with further environment variables (an index, an object directory)."""
        return replace(self, more_env=(*self.more_env, *env.items()))

    def run(self, *args: str, stdin: bytes | int = b"", ok: Sequence[int] = (0,), timeout: float = TIMEOUT_S) -> bytes:
        """Standard output of ``git ARGS``.

        ``stdin`` is bytes or an open file. Raises GitFailed on a status not in ``ok``.
        """
        return self.call(*args, stdin=stdin, ok=ok, timeout=timeout)[1]

    def call(
        self,
        *args: str,
        stdin: bytes | int = b"",
        ok: Sequence[int] = (0,),
        timeout: float = TIMEOUT_S,
        limit: int | None = None,
    ) -> tuple[int, bytes]:
        """(status, output). ``limit`` stops reading after that many bytes and ends git (the status is then 0)."""
        env = (
            clean_env()
            | config_env([*_SETTINGS.items(), *self.extra])
            | {"GIT_DIR": str(self.git_dir)}
            | dict(self.more_env)
        )
        if self.work_tree is not None:
            env["GIT_WORK_TREE"] = str(self.work_tree)
        if self.personal:
            for name in _IMPERSONAL:
                env.pop(name, None)
            env |= {name: os.environ[name] for name in _WHOSE if name in os.environ}
        return execute(args, env, self.work_tree or self.git_dir, stdin, ok, timeout, limit, umask=self._umask(env))

    def _umask(self, env: Mapping[str, str]) -> int:
        """What the owner of the repository keeps from others, by the folder of its objects, which their own git made:
        a file that we write for them must be as readable as one that they write.
        """
        store = env.get("GIT_OBJECT_DIRECTORY") or str(common_of(self.git_dir) / "objects")
        try:
            return ~stat.S_IMODE(os.stat(store).st_mode) & _OTHERS | stat.S_IWOTH
        except OSError:
            return _OTHERS

    def text(self, *args: str, ok: Sequence[int] = (0,), timeout: float = TIMEOUT_S) -> str:
        """Output as text without its last newline; undecodable bytes are kept as surrogates."""
        return self.run(*args, ok=ok, timeout=timeout).decode("utf-8", "surrogateescape").removesuffix("\n")

    def names(self, *args: str) -> list[str]:
        """NUL-separated output as a list."""
        return [n for n in self.run(*args).decode("utf-8", "surrogateescape").split("\0") if n]

    def configured(self) -> Sequence[tuple[str, str | None]]:
        """The names and values of the repository's own configuration as git reads them, None for a name alone.

        Git is asked once for each text that the file has, and each time when it may read further files. Raises
        GitFailed.
        """
        with contextlib.suppress(OSError, GitFailed):  # git says what is wrong with it
            text = safe_files.read_beneath(common_of(self.git_dir), "config")
            if not _FURTHER.search(text):
                return entries(text)
        return parted(self.run("config", "--list", "-z"))

    def commit(self, name: str) -> str | None:
        """The commit that ``name`` leads to, or None."""
        status, out = self.call(
            "rev-parse", "--quiet", "--verify", "--end-of-options", f"{name}^{{commit}}", ok=(0, 1, 128)
        )
        return out.decode().strip() if status == 0 else None


def execute(
    args: Sequence[str],
    env: Mapping[str, str],
    cwd: Path,
    stdin: bytes | int = b"",
    ok: Sequence[int] = (0,),
    timeout: float = TIMEOUT_S,
    limit: int | None = None,
    umask: int = -1,
) -> tuple[int, bytes]:
    """Run git in a process group of its own; in time or never (`processes`). Raises GitFailed, GitMissing."""
    try:
        done = processes.run(["git", *args], env, cwd, stdin, timeout, limit, umask)
    except (processes.Overdue, processes.TooMuch) as exc:
        raise GitFailed(args[0], -1, str(exc)) from exc
    except (FileNotFoundError, NotADirectoryError) as exc:
        if not cwd.is_dir():
            raise GitFailed(args[0], -1, f"folder {cwd} is gone") from exc
        raise GitMissing("git is not installed or not on PATH") from exc
    if done.status not in ok:
        raise GitFailed(args[0], done.status, done.err.decode("utf-8", "replace"))
    return done.status, done.out


@functools.lru_cache(maxsize=64)
def entries(config: bytes) -> tuple[tuple[str, str | None], ...]:
    """The names and values of one configuration file with this text, without what it includes. Raises GitFailed."""
    return parted(execute(("config", "--file", "-", "--list", "-z"), clean_env(), Path("/"), config)[1])


def parted(listed: bytes) -> tuple[tuple[str, str | None], ...]:
    """What ``git config --list -z`` wrote."""
    parts = (entry.partition("\n") for entry in listed.decode("utf-8", "surrogateescape").split("\0") if entry)
    return tuple((name, value if newline else None) for name, newline, value in parts)


@dataclass(frozen=True, slots=True)
class Repository:
    """A repository to make worktrees of.

    ``root`` is the user's working tree (or the bare directory), ``common`` the shared git directory.
    """

    root: Path
    git_dir: Path
    common: Path
    bare: bool

    @property
    def git(self) -> Git:
        """A runner on the user's own checkout."""
        return Git.of(self.git_dir, None if self.bare else self.root)


def open_repository(path: Path) -> Repository:
    """The repository that ``path`` is in; worktrees, submodules and bare repositories count.

    Raises NotARepository, GitTooOld, GitMissing, and what stands for the want of a file or process.
    """
    version()  # first: without a git the import fails with a page of its own
    import git
    from git.exc import InvalidGitRepositoryError, NoSuchPathError

    real = Path(os.path.realpath(path))
    try:
        with git.Repo(str(real), search_parent_directories=True, expand_vars=False) as repo:
            git_dir = Path(repo.git_dir)
            common = Path(repo.common_dir)
            tree = repo.working_tree_dir
    except NoSuchPathError as exc:
        raise NotARepository(f"{path} does not exist; give the folder of a git repository") from exc
    except (InvalidGitRepositoryError, ValueError, OSError) as exc:
        if scarce(exc):
            raise
        os.close(os.open(os.devnull, os.O_RDONLY))  # GitPython takes the want of a file for the want of a repository
        raise NotARepository(
            f"{path} is not a git repository; run `git init` and commit there first, or give another folder"
        ) from exc
    common = Path(os.path.realpath(git_dir / common))
    git_dir = Path(os.path.realpath(git_dir))
    if tree is None and git_dir.name == ".git" and Git(git_dir).text(*_IS_BARE, ok=(0, 1)) == "false":
        tree = git_dir.parent  # by the configuration of this checkout, which is read after the shared one
    bare = tree is None
    return Repository(git_dir if bare else Path(os.path.realpath(str(tree))), git_dir, common, bare)


def head_commit(repository: Repository) -> str:
    """The commit a new session starts from. Raises NoCommits."""
    head = Git.of(repository.git_dir).commit("HEAD")
    if head is None:
        try:
            Git.of(repository.git_dir).run("rev-parse", "--git-dir")
        except GitFailed as exc:  # an extension or a form that it does not know
            said = " ".join(exc.stderr.split())
            why = f"git {'.'.join(map(str, version()))} cannot read {repository.root} ({said}); install a newer git"
            raise NotARepository(why) from exc
        raise NoCommits(f"{repository.root} has no commits yet; make a first commit, then launch again")
    return head
