"""Real calls through the sandbox, started exactly as the keeper starts them."""

from __future__ import annotations

import hashlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness.domain.actions.action import from_wire
from harness.eventlog import blobs
from harness.executor import preconditions, spawn
from harness.executor.selftest import run
from harness.protocol.paths import SessionFolder
from harness.sandbox import bubblewrap, fork_exec
from harness.sandbox.limits import Limits

pytestmark = pytest.mark.sandbox
PATIENCE_S = 60.0


class Ground:
    """A session's folders and a way to run calls in its worktree."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.limits = Limits()
        self.worktree = base / "state" / "worktrees" / "s1"
        self.folder = SessionFolder(base / "state" / "sessions" / "s1", base / "run" / "keepers" / "k.sock")
        self.worktree.mkdir(parents=True)
        self.folder.spool.mkdir(parents=True)

    def action(self, kind: str, tool: str = "", **fields: Any) -> dict[str, Any]:
        worktree = str(self.worktree)
        env = bubblewrap.environment(worktree)
        profile = bubblewrap.profile(worktree, [], [], [], network=fields.get("access") == "network").to_wire()
        made = {
            "v": 1,
            "call": "c1.0",
            "tool": tool or kind,
            "kind": kind,
            "cwd": worktree,
            "access": "sandbox",
            "env": env,
            "sandbox": profile,
            **fields,
        }
        if kind == "file":
            made.setdefault("path", fields.get("input", {}).get("path", "."))
        if made["access"] == "unsandboxed" and "pre" not in made:
            made["pre"] = preconditions.observe(from_wire({**made, "pre": {"cwd": {}, "program": {}}}))
        return made

    def command(self, kind: str, tool: str = "", **fields: Any) -> spawn.Spawn:
        return spawn.command(
            from_wire(self.action(kind, tool, **fields)), self.folder, self.folder.spool / "1", self.limits
        )

    def call(self, kind: str, tool: str = "", **fields: Any) -> tuple[spawn.CallOutcome, str]:
        outcome, output, survivors = run(self.command(kind, tool, **fields))
        assert not survivors
        return outcome, output.decode()

    def shell(self, script: str, **fields: Any) -> tuple[spawn.CallOutcome, str]:
        return self.call("shell", script=script, **fields)


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def ends(fd: int) -> bytes:
    """Everything until nobody holds the other end of the pipe any more."""
    data = bytearray()
    end = time.monotonic() + PATIENCE_S
    while True:
        assert select.select([fd], [], [], max(0.0, end - time.monotonic()))[0], "something still holds the output pipe"
        if not (chunk := os.read(fd, 65536)):
            return bytes(data)
        data += chunk


# -- commands --------------------------------------------------------------------------------------


def test_exit_codes_and_output_are_the_commands_own(ground: Ground) -> None:
    assert ground.call("exec", argv=["true"]) == (spawn.CallOutcome("ok", 0, [], ""), "")
    assert ground.call("exec", argv=["false"])[0] == spawn.CallOutcome("error", 1, [], "")
    assert ground.shell("echo out; echo err >&2; exit 7") == (spawn.CallOutcome("error", 7, [], ""), "out\nerr\n")
    assert ground.shell("kill -9 $$")[0].exit_code == 137
    outcome, text = ground.call("exec", argv=["no-such-program"])
    assert (outcome.status, outcome.exit_code) == ("error", 127)
    assert "no such program" in text
    (ground.worktree / "not-executable").write_text("x")
    assert ground.call("exec", argv=["./not-executable"])[0].exit_code == 126
    assert ground.call("check", script="test -d .")[0].status == "ok"


def test_arguments_reach_the_program_exactly(ground: Ground) -> None:
    arguments = ["", "a b", "$(id)", "-n", "ünï", "*", "new\nline"]
    _, text = ground.call(
        "exec", argv=[bubblewrap.base_python(), "-c", "import json, sys; print(json.dumps(sys.argv[1:]))", *arguments]
    )
    assert json.loads(text) == arguments


def test_the_environment_is_the_actions_and_nothing_else(ground: Ground) -> None:
    _, text = ground.call("exec", argv=["env", "-0"], env={"PATH": "/usr/bin:/bin", "ONE": "1"})
    assert dict(item.split("=", 1) for item in text.strip("\0").split("\0")) == {"PATH": "/usr/bin:/bin", "ONE": "1"}


def test_input_is_empty_and_the_folder_is_as_asked(ground: Ground) -> None:
    (ground.worktree / "src").mkdir()
    assert (
        ground.shell("pwd; cat; tty; umask", cwd=str(ground.worktree / "src"))[1]
        == f"{ground.worktree}/src\nnot a tty\n0022\n"
    )
    outcome, text = ground.shell("pwd", cwd=str(ground.worktree / "nothing"))
    assert outcome.status == "refused"
    assert "cannot be entered" in text
    with pytest.raises(spawn.SpawnError, match="not inside the worktree"):
        ground.command("shell", script="pwd", cwd="/")
    with pytest.raises(spawn.SpawnError, match="not inside the worktree"):
        ground.command("shell", script="pwd", cwd=f"{ground.worktree}/../s2")


def test_ordinary_work_is_possible(ground: Ground) -> None:
    script = """set -e
    git init -q -b main . && git add -A && git commit -q --allow-empty -m one && git log --oneline | wc -l
    python3 - <<'P'
import http.server, multiprocessing, socket, sqlite3, tempfile, threading, urllib.request
server = http.server.HTTPServer(("localhost", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://localhost:{server.server_port}/").status)
print(multiprocessing.get_context("fork").Pool(2).map(abs, [-1, -2]))
sqlite3.connect("x.sqlite").execute("create table t (a)")
tempfile.NamedTemporaryFile().write(b"x")
left, right = socket.socketpair()
P
    """
    outcome, text = ground.shell(script)
    assert outcome.status == "ok", text
    assert [line for line in text.split("\n") if "GET /" not in line] == ["1", "200", "[1, 2]", ""]


def test_five_tricks_around_names_write_and_reach_nothing(ground: Ground) -> None:
    target = ground.base / "target"
    script = f"""
    cp /bin/cp ./innocent; ./innocent /etc/hostname {target} 2>/dev/null
    echo x > /proc/self/root{target}; echo x > /proc/1/root{target}
    for ld in /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1; do [ -e $ld ] && $ld /bin/touch {target}.2; done
    python3 -c 'import subprocess; subprocess.run(["touch", "{target}.3"])'
    ln -s {ground.base} way; echo x > way/target
    exec 3<>/dev/tcp/192.0.2.1/80 && echo connected
    """
    _, text = ground.shell(script)
    assert "connected" not in text
    assert sorted(path.name for path in ground.base.iterdir()) == ["state"]


def test_read_write_and_binds_of_the_profile(ground: Ground) -> None:
    for name in ("readable", "writable", "source", "masked"):
        (ground.base / name).mkdir()
        (ground.base / name / "f").write_text(name)
    worktree = str(ground.worktree)
    base = str(ground.base)
    binds = [[f"{base}/source", f"{base}/masked", "ro"]]
    profile = bubblewrap.profile(
        worktree, [f"{base}/readable", f"{base}/nothing"], [f"{base}/writable"], binds
    ).to_wire()
    _, text = ground.shell(
        f"cd {base}; cat readable/f writable/f masked/f; echo 2 > writable/f; echo 2 > readable/f; echo 2 > masked/f;"
        " ls source",
        sandbox=profile,
    )
    assert text.startswith("readablewritablesource")
    assert (ground.base / "writable/f").read_text() == "2\n"
    assert (ground.base / "readable/f").read_text() == "readable"
    assert text.count("Read-only file system") == 2
    assert "cannot access 'source'" in text


@pytest.mark.parametrize("path", ["/", "/home", "/proc/1", "relative", "/a/../b", "/dev"])
def test_a_profile_that_opens_too_much_is_refused(ground: Ground, path: str) -> None:
    with pytest.raises(ValueError, match="sandbox path"):
        bubblewrap.profile(str(ground.worktree), [path], [], [])
    with pytest.raises(spawn.SpawnError, match="sandbox path"):
        ground.command(
            "shell",
            script="true",
            sandbox={**bubblewrap.profile(str(ground.worktree), [], [], []).to_wire(), "read": [path]},
        )


def test_a_sandbox_that_shows_our_own_folders_or_is_not_that_of_its_access_is_refused(ground: Ground) -> None:
    plain = bubblewrap.profile(str(ground.worktree), [], [], []).to_wire()
    for path in (
        ground.base,
        ground.base / "state",
        ground.folder.root,
        ground.base / "run",
        ground.folder.keeper_socket,
    ):
        with pytest.raises(spawn.SpawnError, match="Watchfloor's own"):
            ground.command("shell", script="true", sandbox={**plain, "read": [str(path)]})
        with pytest.raises(spawn.SpawnError, match="Watchfloor's own"):
            ground.command(
                "file", "write_file", access="outside", outside=[str(path)], input={"path": str(path), "content": ""}
            )
    for changed in ({"network": True}, {"sandboxed": False}):
        with pytest.raises(spawn.SpawnError, match="contradicts"):
            ground.command("shell", script="true", sandbox={**plain, **changed})


def test_the_network_opens_only_the_network(ground: Ground) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as unix:
        here = os.getcwd()
        os.chdir(ground.worktree)
        unix.bind("s.sock")
        os.chdir(here)
        unix.listen()
        connect = "import socket; socket.socket(socket.AF_UNIX).connect('s.sock')"
        script = f'exec 3<>/dev/tcp/127.0.0.1/{server.getsockname()[1]} && echo tcp; python3 -c "{connect}"; ls /run'
        _, text = ground.shell(script, access="network")
        assert text.startswith("tcp\n")
        assert "PermissionError" in text
        assert "cannot access '/run'" in text
        assert "tcp\n" not in ground.shell(script)[1]


def test_a_big_input_comes_from_its_blob(ground: Ground) -> None:
    content = "ä" * 300_000
    ground.folder.blobs.mkdir()
    sha, size = blobs.put(ground.folder.blobs, json.dumps({"path": "big", "content": content}).encode())
    outcome, _ = ground.call("file", "write_file", input_blob={"sha": sha, "bytes": size})
    assert outcome == spawn.CallOutcome("ok", 0, ["big"], "")
    assert (ground.worktree / "big").read_text() == content
    with pytest.raises(spawn.SpawnError, match="damaged or missing"):
        ground.command("file", "write_file", input_blob={"sha": "0" * 64, "bytes": 1})
    sha, size = blobs.put(ground.folder.blobs, b'[["path", "big"]]')
    with pytest.raises(spawn.SpawnError, match="no object"):
        ground.command("file", "write_file", input_blob={"sha": sha, "bytes": size})


# -- file tools ------------------------------------------------------------------------------------


def test_file_tools_give_text_and_result(ground: Ground) -> None:
    outcome, text = ground.call("file", "write_file", input={"path": "src/a.py", "content": "x = 1\n"})
    assert (outcome.status, outcome.files_changed) == ("ok", ["src/a.py"])
    assert text == "created src/a.py (1 lines, 6 bytes)"
    assert ground.call("file", "read_file", input={"path": "src/a.py"})[1] == "     1\tx = 1"
    assert ground.call("file", "edit_file", input={"path": "src/a.py", "old": "1", "new": "2"})[0].files_changed == [
        "src/a.py"
    ]
    assert ground.call("file", "list_files", input={})[1] == "src/a.py"
    assert ground.call("file", "search", input={"pattern": "x ="})[1] == "src/a.py:1:x = 2"
    outcome, text = ground.call("file", "read_file", input={"path": "../../../etc/passwd"})
    assert (outcome.status, outcome.exit_code) == ("error", 1)
    assert "leads out of the worktree" in text
    assert outcome.note == text


def test_outside_opens_exactly_one_path(ground: Ground) -> None:
    folder = ground.base / "elsewhere"
    folder.mkdir()
    (folder / "f").write_text("one\n")
    (folder / "other").write_text("other\n")
    path = str(folder / "f")
    assert (
        ground.call("file", "read_file", access="outside", outside=[path], input={"path": "~/spelled/otherwise"})[1]
        == "     1\tone"
    )
    outcome, _ = ground.call(
        "file", "edit_file", access="outside", outside=[path], input={"path": path, "old": "one", "new": "two"}
    )
    assert outcome == spawn.CallOutcome("ok", 0, [path], "")
    assert (folder / "f").read_text() == "two\n"
    new = str(folder / "new")
    assert ground.call("file", "write_file", access="outside", outside=[new], input={"path": new, "content": "n"})[
        0
    ].files_changed == [new]
    assert (folder / "other").read_text() == "other\n"
    assert sorted(os.listdir(folder)) == ["f", "new", "other"]
    assert (
        ground.call("file", "list_files", access="outside", outside=[str(folder)], input={"path": str(folder)})[
            0
        ].status
        == "ok"
    )
    assert ground.call("file", "read_file", input={"path": path})[0].status == "error"


def test_outside_refuses_what_nobody_should_open(ground: Ground) -> None:
    (ground.base / "link").symlink_to("/etc/hostname")
    for path, words in (
        (str(ground.base / "link"), "symbolic link"),
        (str(ground.folder.root / "log"), "Watchfloor's own state"),
        ("/proc/1/environ", "cannot be opened"),
        ("relative", "cannot be opened"),
        ("/srv/a\0b", "cannot be opened"),
        (str(ground.base / "missing"), "does not exist"),
    ):
        with pytest.raises(spawn.SpawnError, match=words):
            ground.command("file", "read_file", access="outside", outside=[path], input={"path": path})


def test_the_git_file_of_a_worktree_cannot_be_replaced(ground: Ground) -> None:
    (ground.worktree / ".git").write_text("gitdir: /somewhere\n")
    _, text = ground.shell("echo x > .git; rm -f .git; mv .git other; ln -sf /etc .git; true")
    assert "busy" in text
    assert "protected" in ground.call("file", "write_file", input={"path": ".git", "content": "x"})[1]
    assert (ground.worktree / ".git").read_text() == "gitdir: /somewhere\n"


# -- ends ------------------------------------------------------------------------------------------

DAEMON = """
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in (1, 2, 15):
        signal.signal(number, signal.SIG_IGN)
    print("daemon", flush=True)
    signal.pause()
os.wait()
"""


def test_a_daemon_ends_with_its_call(ground: Ground) -> None:
    (ground.worktree / "d.py").write_text(DAEMON)
    # run() itself asserts that the output pipe ended
    outcome, _ = ground.shell("mkfifo p; python3 d.py > p & head -n 1 p")
    assert outcome.exit_code == 0


@pytest.mark.parametrize("access", ["sandbox", "unsandboxed"])
def test_stopping_kills_the_whole_tree(ground: Ground, access: str) -> None:
    (ground.worktree / "d.py").write_text(DAEMON)
    env = {"PATH": f"{bubblewrap.base_prefix()}/bin:/usr/bin:/bin"}
    call = ground.command("shell", script="trap '' TERM; python3 d.py; sleep 600", access=access, env=env)
    out_r, out_w = os.pipe2(os.O_CLOEXEC)
    res_r, res_w = os.pipe2(os.O_CLOEXEC)
    pid = spawn.start(call, out_w, res_w)
    os.close(out_w)
    os.close(res_w)
    try:
        assert os.read(out_r, 100) == b"daemon\n"
        assert b"running" in os.read(res_r, 100)
        spawn.stop(call, pid)
        assert ends(out_r) == b""
        _, status = os.waitpid(pid, 0)
        assert spawn.outcome(call, status, b'{"running": true}\n').status == "error"
        spawn.stop(call, pid, force=True)  # a second stop of what is gone is harmless
    finally:
        os.close(out_r)
        os.close(res_r)


KEEPER = """
import json, os, sys, time
from pathlib import Path
from harness.domain.actions.action import from_wire
from harness.executor import spawn
from harness.protocol.paths import SessionFolder
action, root, out_w = json.loads(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
os.set_inheritable(out_w, False)
res_r, res_w = os.pipe2(os.O_CLOEXEC)
pid = spawn.start(spawn.command(from_wire(action), SessionFolder(root, root), root / "1"), out_w, res_w)
os.close(out_w); os.close(res_w)
time.sleep(600)
"""


@pytest.mark.parametrize("access", ["sandbox", "unsandboxed"])
def test_a_killed_keeper_leaves_nothing(ground: Ground, access: str) -> None:
    (ground.worktree / "d.py").write_text(DAEMON)
    env = {"PATH": f"{bubblewrap.base_prefix()}/bin:/usr/bin:/bin"}
    action = ground.action("shell", script="python3 d.py; sleep 600", access=access, env=env)
    out_r, out_w = os.pipe2(os.O_CLOEXEC)
    keeper = subprocess.Popen(
        [sys.executable, "-c", KEEPER, json.dumps(action), str(ground.folder.root), str(out_w)], pass_fds=[out_w]
    )
    os.close(out_w)
    try:
        assert os.read(out_r, 100) == b"daemon\n"
        keeper.send_signal(signal.SIGKILL)
        assert ends(out_r) == b""
    finally:
        keeper.kill()
        keeper.wait()
        os.close(out_r)


def test_without_a_keeper_nothing_starts(ground: Ground) -> None:
    for access in ("sandbox", "unsandboxed"):
        call = ground.command("shell", script="touch ran", access=access)
        out_r, out_w = os.pipe2(os.O_CLOEXEC)
        res_r, res_w = os.pipe2(os.O_CLOEXEC)
        os.close(res_r)
        pid = spawn.start(call, out_w, res_w)
        os.close(out_w)
        os.close(res_w)
        _, status = os.waitpid(pid, 0)
        os.close(out_r)
        assert spawn.outcome(call, status, b"").status == "refused"
    assert list(ground.worktree.iterdir()) == []


def test_a_large_file_is_cut_off_by_the_limit(ground: Ground) -> None:
    ground.limits = Limits(file=1 << 20)
    outcome, text = ground.shell("dd if=/dev/zero of=big bs=64k count=64 status=none; echo ended with $?")
    assert outcome.status == "ok"
    assert "ended with 153" in text
    assert (ground.worktree / "big").stat().st_size == 1 << 20


# -- secrets ---------------------------------------------------------------------------------------


def test_a_key_in_the_parents_environment_is_nowhere_inside(ground: Ground) -> None:
    secret = "sk-canary-9d1f7b3a"
    script = """
import json, os, sys
from pathlib import Path
from harness.domain.actions.action import from_wire
from harness.executor import selftest, spawn
from harness.protocol.paths import SessionFolder
action, root = from_wire(json.loads(sys.argv[1])), Path(sys.argv[2])
outcome, output, _ = selftest.run(spawn.command(action, SessionFolder(root, root), root / "1"))
print(outcome.status); print(output.decode())
"""
    look = "env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n'; cat /proc/self/mountinfo; true"
    action = ground.action("shell", script=look)
    env = {**os.environ, "ANTHROPIC_API_KEY": secret}
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(action), str(ground.folder.root)],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.startswith("ok\n")
    assert "GIT_CONFIG_NOSYSTEM=1" in done.stdout
    assert secret not in done.stdout
    assert "ANTHROPIC" not in done.stdout


# -- outside the sandbox, by a human's word ----------------------------------------------------------


def test_unsandboxed_runs_exactly_what_was_approved(ground: Ground) -> None:
    beside = ground.base / "beside"
    outcome, text = ground.call(
        "exec", argv=["touch", str(beside)], access="unsandboxed", env={"PATH": "/usr/bin:/bin"}
    )
    assert outcome.status == "ok", text
    assert beside.exists()
    assert ground.shell(
        "env | grep -v -e ^PWD -e ^SHLVL -e ^_= | sort; exit 3",
        access="unsandboxed",
        env={"PATH": "/usr/bin:/bin", "A": "b"},
    ) == (
        spawn.CallOutcome("error", 3, [], ""),
        "A=b\nPATH=/usr/bin:/bin\n",
    )
    with pytest.raises(spawn.SpawnError, match="never runs outside"):
        ground.command("file", "write_file", access="unsandboxed", input={"path": "x", "content": ""})


def test_a_program_of_the_worktree_runs_from_the_approved_bytes(ground: Ground) -> None:
    program = ground.worktree / "build.sh"
    program.write_text("#!/bin/sh\necho approved $1\n")
    program.chmod(0o755)
    draft = ground.action("exec", argv=["./build.sh", "now"], access="unsandboxed", env={"PATH": "/usr/bin:/bin"})
    action = {**draft, "pre": preconditions.observe(from_wire(draft))}
    assert action["pre"]["program"]["sha"] == hashlib.sha256(program.read_bytes()).hexdigest()
    assert ground.call(**_fields(action))[1] == "approved now\n"
    program.write_text("#!/bin/sh\necho swapped\n")
    assert preconditions.difference(action["pre"], preconditions.observe(from_wire(action))) == [
        f"the program is another one than what was shown ({program})"
    ]
    outcome, text = ground.call(**_fields(action))
    assert outcome.status == "refused"
    assert "not the file that was approved" in text
    for pre in ({}, {"program": {}}, {"cwd": action["pre"]["cwd"]}):
        outcome, text = ground.call(**_fields({**action, "pre": pre}))
        assert outcome.status == "refused"
        assert "swapped" not in text


def test_the_folder_it_runs_in_is_the_one_that_was_shown(ground: Ground) -> None:
    inside = ground.worktree / "sub"
    beside = ground.base / "beside"
    inside.mkdir()
    beside.mkdir()
    action = ground.action(
        "exec", argv=["touch", "mark"], access="unsandboxed", env={"PATH": "/usr/bin:/bin"}, cwd=str(inside)
    )
    inside.rmdir()
    inside.symlink_to(beside)
    assert preconditions.difference(action["pre"], preconditions.observe(from_wire(action))) == [
        "the folder it runs in is another one than what was shown"
    ]
    outcome, text = ground.call(**_fields(action))
    assert outcome.status == "refused"
    assert "another folder" in text
    assert list(beside.iterdir()) == []


def _fields(action: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in action.items() if key not in ("v", "call")}


def test_a_program_swapped_all_the_time_is_never_run(ground: Ground) -> None:
    good = ground.base / "good"
    bad = ground.base / "bad"
    name = ground.worktree / "tool"
    for path, word in ((good, "approved"), (bad, "swapped")):
        path.write_text(f"#!/bin/sh\necho {word}\n")
        path.chmod(0o755)
    os.link(good, name)
    action = ground.action("exec", argv=["./tool"], access="unsandboxed", env={"PATH": "/usr/bin:/bin"})
    other = ground.worktree / "other"
    os.link(bad, other)
    call = "libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2)"
    swap = f"import ctypes, sys\nlibc = ctypes.CDLL(None)\nprint('on', flush=True)\nwhile {call} == 0: pass"
    swapper = subprocess.Popen([sys.executable, "-c", swap, str(name), str(other)], stdout=subprocess.PIPE)
    try:
        assert swapper.stdout is not None
        assert swapper.stdout.readline() == b"on\n"
        for _ in range(60):
            outcome, text = ground.call(**_fields(action))
            assert "swapped\n" not in text
            assert outcome.status in ("ok", "refused")
        assert swapper.poll() is None
    finally:
        swapper.kill()
        swapper.communicate()


# -- the keeper's footprint ------------------------------------------------------------------------


def test_the_keeper_loads_nothing_heavy() -> None:
    script = (
        "import sys, harness.executor.spawn, harness.executor.preconditions, harness.tools.registry;"
        " print(sorted(sys.modules))"
    )
    loaded = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    for name in ("subprocess", "asyncio", "msgspec", "tempfile", "importlib.metadata", "logging"):
        assert f"'{name}'" not in loaded


def test_children_get_only_their_descriptors() -> None:
    extra = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(extra, True)
    read_end, write_end = os.pipe2(os.O_CLOEXEC)
    try:
        pid = fork_exec.spawn(
            ["/bin/sh", "-c", "ls /proc/self/fd | tr '\\n' ' '"],
            {"PATH": "/usr/bin:/bin"},
            {0: extra, 1: write_end, 2: write_end},
        )
        os.close(write_end)
        assert ends(read_end) == b"0 1 2 3 "  # 3 is the folder that ls itself reads
        os.waitpid(pid, 0)
    finally:
        os.close(extra)
        os.close(read_end)


def test_capturing_has_a_time_limit() -> None:
    assert fork_exec.capture(["/bin/sleep", "infinity"], {}, 0.2)[0] == -signal.SIGKILL
