"""What runs as the tool's process: puts the last walls around itself, then does the work or starts the command.
Standard library only.

Started as ``python -I -S …/harness/executor/runner.py`` with the plan on descriptor 3 and the result pipe on 4 (see
`harness.executor.spawn`). Inside the sandbox it confines itself (limits, Landlock, system-call filter) and executes;
outside of it, it stays as parent of the command, so that everything the command started ends with the call.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
from typing import NoReturn

# isolated mode knows only the standard library; our own code comes last, so it can shadow nothing
if __name__ == "__main__":
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from harness.domain.actions.action_kind import ActionKind
from harness.executor import confined_paths, files
from harness.executor.file_tool import Places, ToolError
from harness.linux import kernel, programs
from harness.sandbox import call_plan, landlock, rlimits, seccomp
from harness.sandbox.call_plan import CallPlan

ACTION_FD = 3
RESULT_FD = 4
PROGRAM_BYTES = 256 << 20
"""How large a program may be that runs from a copy."""
NOT_FOUND = 127
NOT_RUNNABLE = 126
REFUSED = 125
_IGNORED = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores them; the command must not inherit that."""


class Refusal(Exception):
    """Nothing may run; the message says why."""


def say(**fields: object) -> None:
    """One line on the result pipe."""
    os.write(RESULT_FD, json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace") + b"\n")


def out(text: str) -> None:
    """Text for the model, on the output pipe."""
    view = memoryview(text.encode("utf-8", "replace"))
    while view:
        view = view[os.write(1, view) :]


def end(status: str, code: int, note: str = "", changed: list[str] | None = None) -> NoReturn:
    """Give the result and leave without running anybody's exit handlers."""
    say(status=status, exit_code=code, note=note[:2000], files_changed=changed or [])
    os._exit(code)


def learn() -> None:
    """Find out once what is the same for every call on this machine: those that are forked from here know it."""
    seccomp.learn()
    landlock.abi()
    rlimits.kernel_version()


def main() -> NoReturn:
    """Read the plan and carry it out; never returns."""
    with open(ACTION_FD, "rb") as file:
        plan = call_plan.decode(file.readline())
        output = file.read()
    os.set_inheritable(RESULT_FD, False)
    os.umask(0o022)
    try:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        bound(plan)
        if plan.sandboxed:
            way_out(plan)
            confine(plan)
            sandboxed(plan, output)
        else:
            outside(plan)
    except Refusal as exc:
        out(f"{exc}\n")
        end("refused", REFUSED, str(exc))
    except OSError as exc:
        out(f"{exc}\n")
        end("error", NOT_RUNNABLE, str(exc))
    os._exit(REFUSED)


def bound(plan: CallPlan) -> None:
    """The limits of the call; without them nothing runs."""
    try:
        rlimits.join_group(plan.limits.group)
        rlimits.apply(plan.limits, sandboxed=plan.sandboxed)
    except OSError as exc:
        raise Refusal(f"the limits of this call could not be set: {exc}") from exc


def announce() -> None:
    """Say that the effect begins now, unless nobody is left to hear it: without a keeper nothing starts."""
    poller = select.poll()
    poller.register(RESULT_FD, 0)
    if any(mask & select.POLLERR for _, mask in poller.poll(0)):
        os._exit(REFUSED)
    say(running=True)


def way_out(plan: CallPlan) -> None:
    """For a call that names its hosts: let the proxy outside answer on this network's loopback.

    Raises Refusal, OSError.
    """
    if not plan.hosts:
        return
    from harness.sandbox import egress_relay  # loaded before the fork by `spawn`: inside the sandbox it cannot be

    if os.readlink("/proc/self/ns/net") == plan.host_net:
        raise Refusal("the sandbox shares the network of the machine although it must not")
    if not egress_relay.hand_over():
        raise Refusal("the proxy for the named hosts did not start, so nothing ran")


def confine(plan: CallPlan) -> None:
    """All walls that a process can put around itself; anything that fails stops the call."""
    try:
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        own_network = os.readlink("/proc/self/ns/net") != plan.host_net
        if not own_network and not plan.network:
            raise Refusal("the sandbox shares the network of the machine although it must not")
        landlock.restrict([path for path in [*plan.writable, "/tmp"] if os.path.exists(path)])
        seccomp.apply(network=plan.network)
    except (OSError, seccomp.Unsupported) as exc:
        raise Refusal(f"the sandbox could not be closed: {exc}") from exc


def sandboxed(plan: CallPlan, output: bytes) -> NoReturn:
    """Inside: do the file tool here, or start the command and end with it."""
    if plan.kind == ActionKind.FILE:
        file_tool(plan, output)
    enter(plan.cwd, plan.cwd_identity)
    path, argv = program(plan)
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # the keeper's memory is still behind us, and the program sees us
    announce()
    oversee(path, argv, plan.env)


def file_tool(plan: CallPlan, output: bytes) -> NoReturn:
    """Run one of the file tools and give its text on the output pipe."""
    kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # the keeper's memory is still behind us: no program replaces it here
    announce()
    places = Places(
        confined_paths.Root(plan.root),
        {path: (place[0], place[1]) for path, place in plan.outside.items()},
        tuple(folder for folder in plan.env.get("PATH", "/usr/bin:/bin").split(":") if folder.startswith("/")),
        output,
        plan.no_output,
        os.path.relpath(plan.cwd, plan.root) if plan.cwd not in ("", plan.root) else "",
    )
    try:
        result = files.run(plan.tool, plan.input, places)
    except ToolError as exc:
        out(str(exc))
        end("error", 1, str(exc))
    out(result.text)
    end("ok", 0, "", list(result.files_changed))


def enter(cwd: str, shown: dict[str, object]) -> None:
    """Change to the call's folder, opened once and held against what was ``shown`` (empty = nobody was shown one);
    raises Refusal naming it.
    """
    try:
        folder = os.open(cwd, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as exc:
        raise Refusal(f"the folder {cwd} cannot be entered: {exc.strerror}") from exc
    info = os.fstat(folder)
    if shown and shown != {"dev": info.st_dev, "ino": info.st_ino}:
        raise Refusal(f"nothing was run: {cwd} is another folder than what was approved")
    try:
        os.fchdir(folder)
    except OSError as exc:
        raise Refusal(f"the folder {cwd} cannot be entered: {exc.strerror}") from exc
    os.close(folder)


def program(plan: CallPlan) -> tuple[str, list[str]]:
    """(path to execute, argv) of an exec, shell or check; raises Refusal when the program is not there."""
    if plan.kind in (ActionKind.SHELL, ActionKind.CHECK):
        bash = programs.bash()
        if not bash:
            raise Refusal("bash is not installed; use exec")
        return bash, ["bash", "--norc", "--noprofile", "-c", plan.script]
    argv = plan.argv
    if "/" in argv[0]:
        return argv[0], argv
    if path := programs.which(argv[0], plan.env.get("PATH", "/usr/bin:/bin")):
        return path, argv
    announce()
    out(f"{argv[0]}: there is no such program in PATH ({plan.env.get('PATH', '')})\n")
    end("error", NOT_FOUND, f"{argv[0]} is not installed")


def become(path: str | int, argv: list[str], env: dict[str, str]) -> NoReturn:
    """Replace this process by the command."""
    for number in _IGNORED:
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execve(path, argv, env)
    except OSError as exc:
        not_started(argv, exc)


def oversee(path: str, argv: list[str], env: dict[str, str]) -> NoReturn:
    """Start the command as a child that shares our memory until it is another program, which costs less than to become
    it; end with its exit code, and with us whatever else it started.
    """
    try:
        child = os.posix_spawn(path, argv, env, setpgroup=0, setsigmask=[], setsigdef=_IGNORED)
    except OSError as exc:
        not_started(argv, exc)
    os._exit(wait_for(child))


def not_started(argv: list[str], exc: OSError) -> NoReturn:
    """The command's own failure (126, 127), as in a shell."""
    code = NOT_FOUND if isinstance(exc, FileNotFoundError) else NOT_RUNNABLE
    out(f"{argv[0]}: {exc.strerror}\n")
    end("error", code, f"{argv[0]}: {exc.strerror}")


def outside(plan: CallPlan) -> NoReturn:
    """Outside the sandbox: run the command as a child and leave nothing of it behind."""
    kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGTERM)
    from harness.executor import push

    path: str | int
    if plan.kind == ActionKind.PUSH:
        env = push.environment(plan.env)
        try:
            argv = prepare_push(plan, env)
            path = push.which("git", env)
        except push.PushError as exc:
            raise Refusal(str(exc)) from exc
    else:
        env = plan.env
        enter(plan.cwd, plan.cwd_identity)
        name, argv = program(plan)
        path = verified(name, plan)

    def leave(_number: int, _frame: object) -> None:
        clean(plan)
        os._exit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, leave)
    announce()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        become(path, argv, env)
    code = wait_for(child)
    clean(plan)
    if plan.kind == ActionKind.PUSH:
        end(
            "ok" if code == 0 else "error",
            code,
            "" if code == 0 else "git refused the push; its words are in the output",
        )
    os._exit(code)


def clean(plan: CallPlan) -> None:
    """Kill what the command left running, and remove the scratch repository of a push."""
    from harness.sandbox import fork_exec

    fork_exec.kill_below(os.getpid())
    if plan.kind == ActionKind.PUSH:
        import shutil

        shutil.rmtree(plan.scratch, ignore_errors=True)


def prepare_push(plan: CallPlan, env: dict[str, str]) -> list[str]:
    """Recheck where the push leads and make the scratch repository; returns the push command.

    Raises PushError or Refusal.
    """
    from harness.domain.actions.destination import Destination
    from harness.executor import push

    to = Destination.from_wire(plan.push or {})
    push.check(to.url, to.refspecs)
    place = push.place_of(to, env, plan.closed)
    now = push.remote_refs(place.url, [spec.ref for spec in to.refspecs], env)
    if changes := push.moved(to.refspecs, now):
        raise Refusal(f"nothing was pushed, because the remote changed since this was shown: {'; '.join(changes)}")
    push.scratch(plan.scratch, to.repository or "", to.refspecs[0].sha)
    os.chdir(plan.scratch)
    name, known = push.aimed(place.url, env)
    env |= {**known, "GIT_DIR": plan.scratch}
    return push.command(
        name,
        to.refspecs,
        force=to.force,
        hooks=bool(place.hooks or place.programs or not place.folder),
    )


def verified(path: str, plan: CallPlan) -> str | int:
    """The program to execute: exactly the file that was approved. One where an agent can write runs from a sealed copy
    of the approved bytes, one that is only reached through such a place by its real path, any other as it was named.
    """
    from harness.executor import remotes

    approved = plan.program
    real = os.path.realpath(path)
    walls = remotes.Walls([plan.root, *plan.closed])
    file = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    info = os.fstat(file)
    seen = {"path": real, "dev": info.st_dev, "ino": info.st_ino}
    if not approved or seen != {name: approved.get(name) for name in seen}:
        os.close(file)
        raise Refusal(f"nothing was run: {path} is not the program that was approved")
    for way in (os.path.join(os.getcwd(), path), real):
        if walls.pass_by(way):
            os.close(file)
            return way
    if info.st_size > PROGRAM_BYTES:
        os.close(file)
        raise Refusal(
            f"nothing was run: {path} is larger than {PROGRAM_BYTES >> 20} MiB and lies where an agent can write"
        )
    import fcntl
    import hashlib

    with open(file, "rb") as source:
        data = source.read()
    if hashlib.sha256(data).hexdigest() != approved.get("sha"):
        raise Refusal(f"nothing was run: {path} is not the file that was approved, its content changed")
    # stays open across exec: a script's interpreter reads it through /dev/fd
    copy = os.memfd_create("program", os.MFD_ALLOW_SEALING)
    with open(copy, "wb", closefd=False) as target:
        target.write(data)
    fcntl.fcntl(
        copy, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
    )
    os.set_inheritable(copy, True)
    return copy


def wait_for(child: int) -> int:
    """Reap everything until ``child`` has ended; returns its exit code as a shell would."""
    while True:
        pid, status = os.wait()
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


if __name__ == "__main__":
    main()
