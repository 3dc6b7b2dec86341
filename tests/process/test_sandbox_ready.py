"""A sandbox that stands ready for the next calls: each has a place of its own in it, and nothing of one call is there
for another.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.executor import spawn
from harness.executor.warm_sandbox import Ready
from harness.linux.proc import descendants
from harness.sandbox import bubblewrap, limits, namespace_clone
from tests.fleetlib import alive, wait_for
from tests.process.test_sandbox_run import Ground, ends

pytestmark = pytest.mark.sandbox


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


@pytest.fixture
def ready() -> Iterator[Ready]:
    made = Ready()
    yield made
    for child in made.drop():
        os.waitpid(child, 0)


def begun(call: spawn.Spawn, ready: Ready) -> tuple[int, int, int]:
    """(pid, output, results) of a call that was started."""
    output, ours = os.pipe2(os.O_CLOEXEC)
    results, told = os.pipe2(os.O_CLOEXEC)
    pid = spawn.start(call, ours, told, ready)
    os.close(ours)
    os.close(told)
    return pid, output, results


def ended(call: spawn.Spawn, pid: int, output: int, results: int) -> tuple[spawn.CallOutcome, str]:
    text = ends(output).decode()
    result = ends(results)
    _, status = os.waitpid(pid, 0)
    os.close(output)
    os.close(results)
    return spawn.outcome(call, status, result), text


def ran(call: spawn.Spawn, ready: Ready) -> tuple[spawn.CallOutcome, str]:
    return ended(call, *begun(call, ready))


def shell(ground: Ground, script: str) -> spawn.Spawn:
    return ground.command("shell", script=script)


def read(ground: Ground, path: str) -> spawn.Spawn:
    return ground.command("file", "read_file", input={"path": path})


LEAVE = (
    "echo secret > /tmp/left; echo secret > /dev/shm/left; mkdir /tmp/home/left; echo $$ > /tmp/pid;"
    " ipcmk -M 100 >/dev/null; sleep 600 >/dev/null 2>&1 & echo $!"
)
FIND = "ls -A /tmp/home /dev/shm; cat /tmp/left; ipcs -m | grep 0x; ls -d /proc/[0-9]*"


def test_a_program_finds_nothing_of_the_one_before(ground: Ground, ready: Ready) -> None:
    first = shell(ground, LEAVE)
    ready.prepare(first.argv)
    builder = ready.pid
    outcome, text = ran(first, ready)
    assert (outcome.status, ready.pid) == ("ok", builder)
    assert int(text) > 1
    outcome, text = ran(shell(ground, FIND), ready)
    assert "No such file" in text
    told = [line for line in text.splitlines() if line.strip() and "No such file" not in line]
    assert told[:2] == ["/dev/shm:", "/tmp/home:"]
    assert [line.removeprefix("/proc/") for line in told[2:]] == ["1", *[line[6:] for line in told[3:]]]
    assert len(told) <= 5, f"the one who oversees, the shell and what it runs: {told}"
    assert ready.pid == builder


def test_readers_share_one_sandbox_and_see_what_is_there_now(ground: Ground, ready: Ready) -> None:
    file = ground.worktree / "a.txt"
    seen = set()
    for number in range(3):
        file.write_text(f"line {number}\n")
        outcome, text = ran(read(ground, "a.txt"), ready)
        assert outcome.status == "ok"
        assert f"line {number}" in text
        seen.add(ready.pid)
    assert len(seen) == 1
    assert seen != {0}


def test_two_readers_at_once_do_not_disturb_each_other(ground: Ground, ready: Ready) -> None:
    (ground.worktree / "a.txt").write_text("one\n")
    (ground.worktree / "b.txt").write_text("two\n")
    calls = [read(ground, name) for name in ("a.txt", "b.txt")]
    started = [begun(call, ready) for call in calls]
    texts = [ended(call, *parts)[1] for call, parts in zip(calls, started, strict=True)]
    assert "one" in texts[0]
    assert "two" in texts[1]


def test_another_folder_under_the_same_name_gets_another_sandbox(ground: Ground, ready: Ready) -> None:
    (ground.worktree / "a.txt").write_text("old\n")
    ready.prepare(read(ground, "a.txt").argv)
    builder = ready.pid
    ground.worktree.rename(ground.worktree.with_name("moved"))
    ground.worktree.mkdir()
    (ground.worktree / "a.txt").write_text("new\n")
    outcome, text = ran(read(ground, "a.txt"), ready)
    assert outcome.status == "ok"
    assert "new" in text
    assert ready.pid != builder


def test_a_sandbox_that_died_meanwhile_is_built_again(ground: Ground, ready: Ready) -> None:
    call = shell(ground, "echo fine")
    ready.prepare(call.argv)
    builder = ready.pid
    os.kill(builder, signal.SIGKILL)
    wait_for("it to be gone", lambda: not alive(builder))
    outcome, text = ran(call, ready)
    assert (outcome.status, text) == ("ok", "fine\n")


def test_a_sandbox_that_somebody_stopped_is_built_again(ground: Ground, ready: Ready) -> None:
    call = shell(ground, "echo once")
    assert ran(shell(ground, "true"), ready)[0].status == "ok"
    builder = ready.pid
    os.kill(builder, signal.SIGSTOP)
    outcome, text = ran(call, ready)
    assert (outcome.status, text) == ("ok", "once\n")
    assert ready.pid != builder
    os.waitpid(builder, 0)


def test_who_keeps_the_sandbox_of_one_call_is_not_waited_for(
    ground: Ground, ready: Ready, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = namespace_clone.Place.begin

    def stopped_behind_it(place: namespace_clone.Place, fds: dict[int, int]) -> int:
        pid = begin(place, fds)
        os.kill(place.warden, signal.SIGSTOP)
        return pid

    monkeypatch.setattr(namespace_clone.Place, "begin", stopped_behind_it)
    call = replace(shell(ground, "echo once"), plain=False)
    outcome, text = ran(call, ready)
    assert (outcome.status, text) == ("ok", "once\n")


def test_a_place_that_nobody_takes_leaves_nothing(ground: Ground, ready: Ready) -> None:
    ready.prepare(shell(ground, "true").argv)
    ready.enter()
    waiting = ready.pids
    assert len(waiting) == 2
    for child in ready.drop():
        os.waitpid(child, 0)
        waiting -= {child}
    assert (waiting, ready.pids) == (frozenset(), frozenset())


def test_a_place_that_died_is_made_again(ground: Ground, ready: Ready) -> None:
    call = shell(ground, "echo fine")
    ready.prepare(call.argv)
    builder = ready.pid
    ready.enter()
    (place,) = ready.pids - {builder}
    os.kill(place, signal.SIGKILL)
    wait_for("it to be gone", lambda: not alive(place))
    outcome, text = ran(call, ready)
    assert (outcome.status, text) == ("ok", "fine\n")
    for child in (builder, place):
        os.waitpid(child, 0)


def test_a_sandbox_that_cannot_be_built_says_why(ground: Ground, ready: Ready) -> None:
    call = shell(ground, "echo never")
    at = call.argv.index("--chdir")
    call.argv[at:at] = ["--ro-bind", "/no/such/folder", "/mnt"]
    outcome, text = ran(call, ready)
    assert outcome.status == "refused"
    assert "/no/such/folder" in text
    assert "never" not in text


def test_the_systems_small_settings_are_copies_that_nobody_can_change(ground: Ground, ready: Ready) -> None:
    call = shell(
        ground, "cat /etc/passwd; echo x >> /etc/passwd || echo closed; grep -cE ' /(etc|run)/' /proc/self/mountinfo"
    )
    bound = [source for word, source in zip(call.argv, call.argv[1:], strict=False) if word == "--ro-bind"]
    told, copies = bubblewrap.with_copies(call.argv, 10)
    for fd in copies.values():
        os.close(fd)
    assert len(told) == len(call.argv) + 2 * len(copies), "each takes the place of its mount"
    outcome, text = ran(call, ready)
    assert outcome.status == "ok"
    assert text.startswith(Path("/etc/passwd").read_text())
    assert "closed" in text
    settings = [
        source
        for source in bound
        if source.startswith("/etc/") or source.startswith(os.path.dirname(bubblewrap.__file__))
    ]
    assert int(text.splitlines()[-1]) == len(settings) - len(copies)


def test_what_is_no_small_file_is_bound_as_it_is(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"x" * (1 << 20))
    os.mkfifo(tmp_path / "fifo")
    args = ["bwrap", "--ro-bind", "/usr", "/usr", "--ro-bind", "/nowhere", "/etc/group", "--"]
    for name, target in (("large", "/etc/services"), ("fifo", "/etc/passwd"), ("", "/etc/alternatives")):
        args[1:1] = ["--ro-bind", str(tmp_path / name), target]
    assert bubblewrap.with_copies(args, 10) == (args, {})


def test_a_call_has_no_capability_and_only_its_own_descriptors(ground: Ground, ready: Ready) -> None:
    call = shell(ground, "grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb)' /proc/self/status; ls /proc/self/fd | tr '\\n' ' '")
    ready.prepare(call.argv)
    outcome, text = ran(call, ready)
    assert outcome.status == "ok"
    *capabilities, descriptors = text.splitlines()
    assert [int(line.split()[1], 16) for line in capabilities] == [0] * 5
    assert descriptors.split() == ["0", "1", "2", "3"], "3 is the folder that ls itself reads"


def test_a_stopped_call_is_over_when_nothing_of_it_lives(ground: Ground, ready: Ready) -> None:
    mark = ground.worktree / "alive"
    call = shell(ground, "setsid sh -c 'while :; do date > alive; done' & echo up; sleep 600")
    pid, output, results = begun(call, ready)
    wait_for("it to be at work", mark.exists)
    inside = descendants(pid)
    spawn.stop(call, pid)
    os.waitpid(pid, 0)
    assert not any(map(alive, inside))
    mark.unlink()
    ends(output)
    os.close(output)
    os.close(results)
    assert not mark.exists(), "nobody writes any more"


def test_who_oversees_a_program_shows_it_nothing(ground: Ground, ready: Ready) -> None:
    looks = "cat /proc/1/environ; cat /proc/1/maps; echo '{}' >/proc/1/fd/4; ls /proc/1/root/"
    outcome, text = ran(shell(ground, f"{looks}; kill -9 1; kill -STOP 1; cat /proc/1/comm"), ready)
    assert outcome.status == "ok", "no signal arrives there"
    assert text.splitlines()[-1] == namespace_clone.INMATE.decode()
    assert text.count("Permission denied") == 4, text


def test_a_call_has_a_loopback_and_mounts_that_only_it_can_fill(ground: Ground, ready: Ready) -> None:
    script = (
        "import os, socket\n"
        "server = socket.create_server(('127.0.0.1', 0)); socket.create_connection(server.getsockname())\n"
        "print(*[os.statvfs(p).f_blocks * os.statvfs(p).f_frsize for p in ('/tmp', '/dev/shm')])\n"
        "print(oct(os.stat('/tmp').st_mode), os.stat('/tmp/home').st_mode & 0o777, os.getcwd())\n"
        "for path in ('/proc/sys/kernel/hostname', '/proc/sysrq-trigger', '/dev/left', '/left'):\n"
        "    try: open(path, 'w').write('b')\n"
        "    except OSError: print('closed')\n"
    )
    outcome, text = ran(ground.command("exec", argv=[bubblewrap.base_python(), "-c", script]), ready)
    sizes, modes, *writes = text.splitlines()
    assert outcome.status == "ok"
    assert [int(size) for size in sizes.split()] == [limits.DEFAULT.tmp, limits.DEFAULT.shm]
    assert modes == f"0o41777 {0o755} {ground.worktree}"
    assert writes == ["closed"] * 4


def test_what_stands_ready_ends_with_its_owner(ground: Ground) -> None:
    read_end, write_end = os.pipe()
    owner = os.fork()
    if owner == 0:
        mine = Ready()
        mine.prepare(shell(ground, "true").argv)
        mine.enter()
        os.write(write_end, json.dumps(sorted(mine.pids)).encode())
        signal.pause()
    standing = json.loads(os.read(read_end, 100))
    assert all(map(alive, standing))
    os.kill(owner, signal.SIGKILL)
    os.waitpid(owner, 0)
    wait_for("the sandbox to be gone", lambda: not any(map(alive, standing)))
    os.close(read_end)
    os.close(write_end)
