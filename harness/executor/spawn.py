"""From a judged action to a process: all that the keeper needs to run one call. Standard library only.

How the keeper runs a call::

    spawn = command(action, folder, folder.spool / "7")      # may raise SpawnError (SandboxUnavailable when there is no
    sandbox) out_r, out_w = os.pipe2(os.O_CLOEXEC); res_r, res_w = os.pipe2(os.O_CLOEXEC) pid = start(spawn, out_w,
    res_w) closes spawn.action_fd; out_w and res_w stay yours os.close(out_w); os.close(res_w)
    # at once: the child must be their only holder ... read out_r (spool it, at most spawn.output_bytes, count and drop
    # the
    rest) and res_r (small) until both end ... _, status = os.waitpid(pid, 0) result = outcome(spawn, status,
    result_bytes)             # -> status ok | error | refused, exit code, files changed

In the child: 0 is /dev/null, 1 and 2 are the output pipe, 3 a sealed memfd with the plan (one line of JSON, and behind
it the output of an earlier call when the tool reads that), 4 the result pipe; in the sandbox 5 is the host's
``/proc/sys/kernel``, where cgroups are ours 6 is the call's ``cgroup.procs``, for a call that names hosts 7 is a socket
to its proxy, all closed by the runner before anything else runs. Nothing else is open.
The child leads a session of its own. On a time limit or a cancel: ``stop(spawn, pid)``, and ``stop(spawn, pid,
force=True)`` when it is still there two seconds later; then read both pipes to their end and wait as above. Both read
ends must be close-on-exec: when the keeper dies, their vanishing (and the parent-death signal) is what keeps a
half-started child from running.

The result pipe carries JSON lines: ``{"running": true}`` just before the effect, then, except for exec, shell and
check, one result. A child that ended without the first line had no effect at all: the sandbox could not be built, and
the call counts as refused.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.domain.actions.access import SANDBOXED, Access
from harness.domain.actions.action import (
    Action,
    CheckAction,
    ExecAction,
    FileAction,
    PushAction,
    RecordAction,
    ShellAction,
)
from harness.domain.addresses import BadAddress, normal_host
from harness.domain.calls.call_states import CallEnd
from harness.domain.text import fields
from harness.executor import outputs, remotes, runner
from harness.executor.warm_sandbox import Ready
from harness.protocol.paths import SessionFolder
from harness.sandbox import bubblewrap, call_plan, cgroups, egress_relay, fork_exec, namespace_clone, rlimits
from harness.sandbox.bubblewrap import SandboxUnavailable
from harness.sandbox.call_plan import Bounds, CallPlan
from harness.sandbox.limits import DEFAULT, Limits
from harness.tools import registry

__all__ = ["CallOutcome", "SandboxUnavailable", "Spawn", "SpawnError", "command", "outcome", "start", "stop"]

ACTION_FD = 3
RESULT_FD = 4
WAY_OUT_FD = egress_relay.CHANNEL_FD
PROXY_CHANNEL_FD = 3
PROXY_CALL_FD = 4
_groups: list[Path | None] = []  # our delegated cgroup, once it was looked for
_FOREIGN = ("proc", "dev", "sys")


class SpawnError(Exception):
    """The action cannot be run as it stands; nothing was started. The message is for the model and the human."""


@dataclass(frozen=True, slots=True)
class Spawn:
    """One call, ready to start. ``env`` is that of the outer process; the tool's own travels in the plan behind
    ``action_fd``.

    ``grows`` are the folders that count against the session's disk limits; ``group`` is its cgroup, made at the start.
    """

    call: str
    kind: str
    argv: list[str]
    env: dict[str, str]
    cwd: str
    sandboxed: bool
    action_fd: int
    timeout_s: int
    output_bytes: int
    limits: Limits
    grows: list[str]
    group: cgroups.Group | None
    hosts: tuple[str, ...] = ()
    """The only hosts that the call can reach, through a proxy that lives as long as the call."""
    plain: bool = False
    """It asks for nothing beyond the session's own sandbox, as the next call most likely does not either."""
    reads: bool = False
    """It changes nothing, so others of the kind may run beside it."""


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """How a call ended: ``status`` ok, error or refused (nothing ran).

    ``note`` explains a refusal or a failed file tool.
    """

    status: str
    exit_code: int | None
    files_changed: list[str]
    note: str


def command(action: Action, folder: SessionFolder, spool_base: Path, limits: Limits = DEFAULT) -> Spawn:
    """Build the process of one action.

    Raises SandboxUnavailable or SpawnError; the caller owns ``action_fd`` until `start`.
    """
    if isinstance(action, RecordAction):
        raise SpawnError(f"{action.tool} is answered by the supervisor; there is nothing to run")
    sandboxed = action.access in SANDBOXED
    worktree = _worktree(action)
    group = _group(action, folder)
    given = _input(action, folder)
    output, no_output = _output(action, given, folder)
    plan = CallPlan(
        kind=action.kind,
        tool=action.tool,
        input=given,
        argv=list(action.argv) if isinstance(action, ExecAction | PushAction) else [],
        script=action.script if isinstance(action, ShellAction | CheckAction) else "",
        cwd=action.cwd,
        cwd_identity=fields.table(action.world, "cwd"),
        program=fields.table(action.world, "program"),
        root=worktree,
        env=dict(action.env),
        limits=_bounds(limits, sandboxed, group is not None),
        sandboxed=sandboxed,
        no_output=no_output,
    )
    argv, plan = _sandboxed(action, plan, folder, limits) if sandboxed else _open(action, plan, folder, spool_base)
    return Spawn(
        call=action.call,
        kind=action.kind,
        argv=argv,
        env={},
        cwd=plan.cwd,
        sandboxed=sandboxed,
        action_fd=_sealed(call_plan.encode(plan) + b"\n" + output),
        timeout_s=action.timeout_s,
        output_bytes=action.output_bytes,
        limits=limits,
        grows=[worktree, *(source for source, _, mode in action.sandbox.binds if mode == "rw")],
        group=group,
        hosts=tuple(plan.hosts),
        plain=action.access == Access.SANDBOX,
        reads=only_reads(action),
    )


def _bounds(limits: Limits, sandboxed: bool, group: bool) -> Bounds:
    return Bounds(
        nice=limits.nice,
        processes=limits.processes,
        shm=limits.shm,
        file=limits.file,
        each=None if group else limits.each(),
        sysctl=sandboxed,
        group=group,
        host=rlimits.namespaces(),
    )


def only_reads(action: Action) -> bool:
    """True for a call that changes nothing anywhere: our own code that only reads, or a check in a sandbox in which no
    place can be written.
    """
    if isinstance(action, CheckAction):
        return action.access == Access.SANDBOX and action.sandbox.sandboxed and not action.sandbox.writable
    return isinstance(action, FileAction) and not registry.writes_file(action.tool)


def start(spawn: Spawn, output_fd: int, result_fd: int, ready: Ready | None = None) -> int:
    """Start it, in the sandbox that stands ``ready`` if there is one; returns the pid of the child to wait for.

    Raises OSError when even the outer program cannot be started.
    """
    opened = [null := os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC), spawn.action_fd]
    fds = {0: null, 1: output_fd, 2: output_fd, ACTION_FD: spawn.action_fd, RESULT_FD: result_fd}
    try:
        if spawn.sandboxed:
            opened.append(os.open("/proc/sys/kernel", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
            fds[rlimits.SYSCTL_FD] = opened[-1]
        if spawn.group is not None:
            opened.append(spawn.group.create(spawn.limits))
            fds[rlimits.GROUP_FD] = opened[-1]
        return _with_way_out(spawn, fds, ready) if spawn.hosts else _begin(spawn, fds, ready)
    finally:
        for fd in opened:
            os.close(fd)


def _begin(spawn: Spawn, fds: dict[int, int], ready: Ready | None) -> int:
    if not spawn.sandboxed:
        return fork_exec.spawn(spawn.argv, spawn.env, fds)
    if ready is None or not spawn.plain:
        return namespace_clone.spawn(spawn.argv, fds, runner.main)
    try:
        return ready.take(spawn.argv).begin(fds)
    except namespace_clone.StandsStill:
        ready.drop()
        return ready.take(spawn.argv).begin(fds)


def _with_way_out(spawn: Spawn, fds: dict[int, int], ready: Ready | None) -> int:
    """Start the call and, beside it, the proxy that dials its hosts; without the proxy nothing runs. Raises OSError."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        pid = _begin(spawn, {**fds, WAY_OUT_FD: theirs.fileno()}, ready)
        try:
            _start_proxy(ours.fileno(), pid, spawn.hosts)
        except OSError:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
    return pid


def _start_proxy(channel: int, call: int, hosts: tuple[str, ...]) -> None:
    pidfd = os.pidfd_open(call)
    null = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    program = os.path.join(os.path.dirname(os.path.abspath(bubblewrap.__file__)), "egress_proxy.py")
    fds = {0: null, 1: null, 2: null, PROXY_CHANNEL_FD: channel, PROXY_CALL_FD: pidfd}
    try:
        fork_exec.spawn([bubblewrap.base_python(), "-I", "-S", program, *hosts], {}, fds)
    finally:
        os.close(null)
        os.close(pidfd)


def stop(spawn: Spawn, pid: int, *, force: bool = False) -> None:
    """Kill the call's whole process tree.

    Outside the sandbox the first try lets the process that watches over the call do it, which then ends when nothing is
    left.
    """
    if spawn.group is not None and (spawn.sandboxed or force):
        spawn.group.kill()
    try:
        if not spawn.sandboxed and not force:
            os.kill(pid, signal.SIGTERM)
            return
        if not spawn.sandboxed:  # a process namespace dies with its first process
            fork_exec.kill_below(pid)
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def outcome(spawn: Spawn, wait_status: int, result: bytes) -> CallOutcome:
    """Read the child's end.

    A file tool that died without a result, or a sandbox that could not be built, is never an ok.
    """
    code = os.waitstatus_to_exitcode(wait_status)
    exit_code = code if code >= 0 else 128 - code
    lines: list[dict[str, object]] = []
    for raw in result.splitlines():
        try:
            value = json.loads(raw)
        except ValueError:
            continue  # cut in the middle by a kill
        if isinstance(value, dict):
            lines.append(value)
    final = next((line for line in reversed(lines) if "status" in line), None)
    if final is not None:
        return _reached(final)
    if not any("running" in line for line in lines):
        return CallOutcome(
            "refused", exit_code, [], "the sandbox could not be built, so nothing ran; the output says why"
        )
    if spawn.kind in (FileAction.KIND, PushAction.KIND):
        return CallOutcome("error", exit_code, [], f"the tool ended with code {exit_code} before it gave its result")
    return CallOutcome("ok" if exit_code == 0 else "error", exit_code, [], "")


def _reached(final: Mapping[str, object]) -> CallOutcome:
    """What the process itself says of its end."""
    status = str(final["status"])
    code = final.get("exit_code")
    changed = final.get("files_changed")
    return CallOutcome(
        status if status in (CallEnd.OK, CallEnd.ERROR, CallEnd.REFUSED) else "error",
        code if isinstance(code, int) else None,
        [str(path) for path in changed] if isinstance(changed, list) else [],
        str(final.get("note", "")),
    )


def _group(action: Action, folder: SessionFolder) -> cgroups.Group | None:
    if not _groups:
        try:
            _groups.append(cgroups.find())
        except cgroups.NotDelegated:
            _groups.append(None)
    base = _groups[0]
    return None if base is None else cgroups.of_call(base, folder.root.name, action.call)


def _worktree(action: Action) -> str:
    path = action.sandbox.worktree
    if not path.startswith("/"):
        raise SpawnError("the action names no worktree")
    return path


def _input(action: Action, folder: SessionFolder) -> dict[str, object]:
    if action.input is not None:
        return dict(action.input)  # a copy: the plan may name the path more exactly than the model did
    if (ref := action.input_blob) is None:
        return {}
    from harness.eventlog import blobs, framing

    try:
        value = json.loads(blobs.get(folder.blobs, ref.sha))
    except (framing.LogError, OSError, ValueError) as exc:
        raise SpawnError(f"the input of the call is damaged or missing (blob {ref.sha}): {exc}") from exc
    if not isinstance(value, dict):
        raise SpawnError(f"the input of the call is no object (blob {ref.sha})")
    return value


def _output(action: Action, given: Mapping[str, object], folder: SessionFolder) -> tuple[bytes, str]:
    """What an earlier call gave, for the tool that reads it, or why there is none: the sandbox shows nothing else of
    the log.
    """
    if action.tool != registry.READ_OUTPUT:
        return b"", ""
    try:
        return outputs.of_call(folder, str(given.get("call", ""))), ""
    except outputs.NoOutput as exc:
        return b"", str(exc)


def _sealed(data: bytes) -> int:
    fd = os.memfd_create("plan", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with open(fd, "wb", closefd=False) as file:
        file.write(data)
    os.lseek(fd, 0, os.SEEK_SET)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return fd


def _sandboxed(action: Action, plan: CallPlan, folder: SessionFolder, limits: Limits) -> tuple[list[str], CallPlan]:
    bwrap = bubblewrap.find()
    profile = action.sandbox
    cwd = os.path.normpath(plan.cwd)
    if cwd != plan.root and not cwd.startswith(plan.root + "/"):
        raise SpawnError(f"cwd {cwd} is not inside the worktree {plan.root}")
    hosts = list(profile.hosts)
    network = action.access == Access.NETWORK and not hosts
    if hosts and (action.access != Access.NETWORK or not _plain(hosts)):
        raise SpawnError(
            "the action names hosts that are not spelled as they are dialled, or without access to a network"
        )
    if profile.network != network or not profile.sandboxed:
        raise SpawnError("the action contradicts itself: its sandbox is not that of the access it was judged with")
    mounts, places = _outside(action, folder) if action.access == Access.OUTSIDE else ([], {})
    # the path as it was judged and shown, not as the model spelled it
    given = {**plan.input, "path": next(iter(places))} if places else plan.input
    plan = plan._replace(
        cwd=cwd,
        input=given,
        outside=places,
        network=network,
        hosts=hosts,
        host_net=os.readlink("/proc/self/ns/net"),
        writable=[
            *profile.write,
            *(target for _, target, mode in profile.binds if mode == "rw"),
            *(mount[1] for mount in mounts if mount[2]),
        ],
    )
    try:
        # bwrap itself starts in the root of the worktree: a subfolder may be missing, which is for the runner to say
        # clearly
        argv = bubblewrap.arguments(
            bwrap.path, profile, network=network, cwd=plan.root, outside=mounts, tmp=limits.tmp, shm=limits.shm
        )
    except ValueError as exc:
        raise SpawnError(str(exc)) from exc
    for path in profile.read:
        if (owner := _ours(path, folder)) is not None:
            raise SpawnError(f"the sandbox would show {path}, which holds Watchfloor's own {owner}")
    return argv, plan


def _plain(hosts: list[str]) -> bool:
    try:
        return all(normal_host(host) == host for host in hosts)
    except BadAddress:
        return False


def _outside(action: Action, folder: SessionFolder) -> tuple[list[tuple[str, str, bool]], dict[str, list[str]]]:
    mounts: list[tuple[str, str, bool]] = []
    places: dict[str, list[str]] = {}
    for number, path in enumerate(action.outside):
        named = path.startswith("/") and os.path.normpath(path) == path and "\0" not in path
        if not named or path == "/" or path.split("/")[1] in _FOREIGN:
            raise SpawnError(f"the path {path} cannot be opened from outside the worktree")
        if os.path.realpath(path) != path:
            raise SpawnError(
                f"{path} is or lies behind a symbolic link to {os.path.realpath(path)}; name that path itself"
            )
        if (owner := _ours(path, folder)) is not None:
            raise SpawnError(f"{path} belongs to Watchfloor's own {owner}, which no tool may open")
        parent, name = os.path.split(path)
        if not isinstance(action, FileAction):
            mounts.append((path, path, False))
        elif registry.writes_file(action.tool):
            if not os.path.isdir(parent):
                raise SpawnError(f"the folder {parent} does not exist; outside the worktree no folders are created")
            mounts.append((parent, f"{bubblewrap.OUTSIDE}/{number}", True))
            places[path] = [f"{bubblewrap.OUTSIDE}/{number}", name]
        elif os.path.lexists(path):
            mounts.append((path, f"{bubblewrap.OUTSIDE}/{number}/{name}", False))
            places[path] = [f"{bubblewrap.OUTSIDE}/{number}", name]
        else:
            raise SpawnError(f"{path} does not exist")
    return mounts, places


def _ours(path: str, folder: SessionFolder) -> str | None:
    """Which folder of ours lies at, below or above ``path``: ``state``, ``runtime`` or none."""
    for name, own in (
        ("state", str(folder.root.parent.parent)),
        ("runtime folder", str(folder.keeper_socket.parent.parent)),
    ):
        if path == own or path.startswith(own + "/") or own.startswith(path.rstrip("/") + "/"):
            return name
    return None


def _open(action: Action, plan: CallPlan, folder: SessionFolder, spool_base: Path) -> tuple[list[str], CallPlan]:
    """Outside the sandbox: the runner stays as the parent of the command, so that everything below it can be found and
    killed.
    """
    if isinstance(action, FileAction):
        raise SpawnError("a file tool never runs outside the sandbox; use access outside")
    plan = plan._replace(
        scratch=f"{spool_base}.scratch",
        push=action.to.to_wire() if isinstance(action, PushAction) else None,
        closed=remotes.closed(
            action.sandbox.write,
            action.sandbox.binds,
            (str(folder.root.parent.parent), str(folder.keeper_socket.parent.parent)),
        ),
    )
    runs = os.path.join(os.path.dirname(os.path.abspath(__file__)), "runner.py")
    return [bubblewrap.base_python(), "-I", "-S", runs], plan
