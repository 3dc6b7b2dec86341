"""After a reboot: what ran goes on without a client, what was stopped or paused stays so, and no stranger is taken for
one of ours.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from harness.eventlog.writer import LogWriter
from harness.events import types as t
from harness.linux.proc import identify
from tests.fleetlib import HOLD, Fleet, alive, fleet, play, power_off, wait_for

ASK = play([("exec", {"argv": ["true"], "access": "network"})], "Done.")
OTHER_BOOT = "00000000-1111-2222-3333-444444444444"
CRON_ENV = {"HOME": os.environ.get("HOME", "/"), "LOGNAME": "user", "SHELL": "/bin/sh", "PATH": "/usr/bin:/bin"}


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def power_cut(f: Fleet) -> None:
    """Everything of the fleet dies at once, and the runtime folder, which a boot empties, with it."""
    power_off(f)
    keepers = {
        r.body.pid
        for sid in os.listdir(f.folders.sessions)
        for r in f.records(sid)
        if isinstance(r.body, t.KeeperStarted)
    }
    for pid in keepers:  # their environment names nobody
        if alive(pid):
            os.kill(pid, signal.SIGKILL)
    wait_for("everything to be dead", lambda: not any(alive(pid) for pid in keepers) and not f.processes())
    shutil.rmtree(f.folders.runtime)


def by_hand(f: Fleet) -> subprocess.CompletedProcess[str]:
    """Install on a machine that has neither a user's systemd nor cron: the files and the words."""
    bare = {**f.env, "PATH": "/nonexistent", "XDG_RUNTIME_DIR": "", "DBUS_SESSION_BUS_ADDRESS": ""}
    return subprocess.run(
        [sys.executable, "-P", "-s", "-m", "app.main", "service", "install"], env=bare, capture_output=True, text=True
    )


def boot(f: Fleet) -> None:
    """What cron does after a boot: the line's command by /bin/sh, in an environment of its own."""
    line = (f.folders.state / "service" / "crontab.line").read_text().strip()
    command = line.removeprefix("@reboot ").replace("\\%", "%")
    subprocess.Popen(
        ["/bin/sh", "-c", command], env=CRON_ENV, cwd="/", stdin=subprocess.DEVNULL, start_new_session=True
    )


def test_the_service_line_brings_a_fleet_back(f: Fleet) -> None:
    running = f.launch(
        play([("exec", {"argv": ["sh", "-c", "echo ran >> effects.txt"]})], [HOLD], "Done."), name="running"
    )
    asking = f.launch(ASK, name="asking")
    paused = f.launch(ASK, name="paused")
    stopped = f.launch(ASK, name="stopped")
    f.wait_event_count(running, "tool.started", 2)
    for sid in (asking, paused, stopped):
        f.wait_state(sid, "waiting")
    f.run("pause", paused)
    f.run("stop", stopped)
    f.wait_event(stopped, "session.ended")
    installed = by_hand(f)
    assert installed.returncode == 1, "nothing was installed, and that is said"
    assert "neither a systemd" in installed.stdout
    assert str(f.folders.state / "service" / "crontab.line") in installed.stdout
    unit = (
        f.folders.state / "service" / next(n for n in os.listdir(f.folders.state / "service") if n.endswith(".service"))
    ).read_text()
    assert "sk-" not in unit + installed.stdout
    effects = f.folders.worktrees / running / "effects.txt"
    assert effects.read_text() == "ran\n"
    power_cut(f)
    boot(f)
    f.wait_event_count(running, "keeper.started", 2)
    assert f.wait_state(asking, "waiting")["name"] == "asking"
    assert f.state(paused).desired == "paused"
    assert f.row(stopped)["state"] == "stopped"
    # the call that was at work; it ran inside the sandbox, so the agent is told and goes on
    f.wait_event(running, "tool.in_doubt")
    f.wait_state(running, "done")
    assert effects.read_text() == "ran\n"
    assert not any(isinstance(r.body, t.KeeperStarted) and r.seq > 3 for r in f.records(stopped)), (
        "nothing of what was stopped started again"
    )
    assert f.violations() == []


def test_a_session_that_thought_goes_on_without_a_client(f: Fleet) -> None:
    """Wherever the power went in its turns: nobody is asked, and nobody has to look."""
    f.run("supervisor", "start")
    by_hand(f)
    sid = f.launch(
        play(*([("exec", {"argv": ["sh", "-c", f"echo {i} > {i}.txt"]})] for i in range(24)), "Done."), name="one"
    )
    f.wait_event_count(sid, "model.message", 2)
    os.kill(f.simulator.pid, signal.SIGSTOP)  # it cannot come to its end before all of it is dead
    try:
        power_cut(f)
    finally:
        os.kill(f.simulator.pid, signal.SIGCONT)
    assert f.state(sid).ended is None
    boot(f)
    f.wait_event(sid, "session.ended")
    f.wait_state(sid, "done")
    assert not any(r.type == "approval.requested" for r in f.records(sid))
    assert f.violations() == []


def test_processes_of_another_boot_are_strangers(f: Fleet) -> None:
    """Numbers and start times repeat after a boot: a brain and a keeper of another boot id are dead, whoever has their
    numbers.
    """
    sid = f.launch(play([HOLD], "Done."), name="one")
    f.wait_event(sid, "tool.started")
    power_cut(f)
    stranger = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        who = identify(stranger.pid)
        assert who is not None
        state = f.state(sid)
        log = LogWriter.open(f.folders.session(sid).log, sid)
        bodies = (
            t.KeeperStarted(pid=who.pid, start=who.start, boot=OTHER_BOOT),
            t.LeaseGranted(gen=state.lease_gen + 1, epoch=1, pid=who.pid, start=who.start, boot=OTHER_BOOT),
        )
        for body in bodies:
            wire = t.to_wire(body)
            log.append(wire["type"], wire["data"], actor="keeper")
        log.commit(True)
        log.close()
        f.run("supervisor", "start")
        lease = wait_for(
            "the stranger's lease to end", lambda: (s := f.state(sid)).lease is None or s.lease.pid != who.pid
        )
        assert lease
        f.run("stop", sid)
        f.wait_event(sid, "session.ended")
        f.run("supervisor", "stop", "--sessions", "stop")
        assert stranger.poll() is None, "a stranger with the number of ours was left alone"
    finally:
        stranger.kill()
        stranger.wait()


def stands(pid: int) -> bool:
    """Stopped, or gone: the short sleeps of a `HOLD` come and go."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "TZX"
    except (FileNotFoundError, ProcessLookupError):
        return True


def tell_all(pids: Iterable[int], what: signal.Signals) -> None:
    """Those that live: who goes on first may end another one before its turn, as it does with a place not used."""
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, what)


def test_a_fleet_that_was_frozen_whole_goes_on(f: Fleet) -> None:
    """As a machine that sleeps: every process stands still, and goes on later."""
    sid = f.launch(play([HOLD], [("exec", {"argv": ["true"]})], "Done."), name="one")
    f.wait_event(sid, "tool.started")
    ours = [f.supervisor_pid(), f.keeper_pid(sid), f.brain_pid(sid)]
    everybody = dict.fromkeys([*ours, *(pid for pid, _ in f.processes())])
    tell_all(everybody, signal.SIGSTOP)
    wait_for("everything to stand still", lambda: all(stands(pid) for pid in everybody))
    assert all(alive(pid) for pid in ours)
    tell_all(everybody, signal.SIGCONT)
    f.release(sid)
    f.wait_state(sid, "done")
    assert f.violations() == []


CRONTAB = """#!/bin/sh
# A crontab with a spool of its own: the interface of the real one, for one test's user.
case "$1" in
  -l) if [ -e "$CRON_SPOOL.broken" ]; then echo "crontab: $CRON_SPOOL: Input/output error" >&2; exit 1
      elif [ -e "$CRON_SPOOL" ]; then cat "$CRON_SPOOL"; else echo "no crontab for you" >&2; exit 1; fi ;;
  -) cat > "$CRON_SPOOL" ;;
esac
"""


def with_cron(f: Fleet) -> Path:
    """The spool of a machine that has cron and no user's systemd."""
    programs = f.root / "bin"
    spool = f.root / "spool"
    programs.mkdir()
    (programs / "crontab").write_text(CRONTAB)
    (programs / "crontab").chmod(0o755)
    (programs / "systemctl").write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
    (programs / "systemctl").chmod(0o755)
    f.extra |= {
        "PATH": f"{programs}:bin:{f.root / 'none'}:{os.environ['PATH']}",
        "CRON_SPOOL": str(spool),
        "HOME": str(f.root),
    }
    return spool


def test_install_and_remove_with_cron(f: Fleet) -> None:
    spool = with_cron(f)
    spool.write_text("0 5 * * * backup\n")
    assert f.run("service", "status", check=False).returncode == 1
    told = f.run("service", "install").stdout
    assert "crontab" in told
    assert "the key is read from" in told
    f.run("service", "install")
    table = spool.read_text()
    assert table.count("@reboot") == 1
    assert table.startswith("0 5 * * * backup\n")
    assert "sk-" not in table
    assert f.json("service", "status")[0]["cron"] is True
    assert "removed" in f.run("service", "remove").stdout
    assert spool.read_text() == "0 5 * * * backup\n"
    assert "no service" in f.run("service", "remove").stdout


def test_the_line_names_where_this_shell_finds_programs(f: Fleet) -> None:
    spool = with_cron(f)
    f.run("service", "install")
    path = next(word for word in shlex.split(spool.read_text().replace("\\%", "%")) if word.startswith("PATH="))
    entries = path.removeprefix("PATH=").split(":")
    assert entries[0] == str(f.root / "bin")
    assert "bin" not in entries, "where a relative name leads depends on who starts it"
    f.extra["PATH"] = f"{f.root / 'bin'}:/usr/bin:/bin"
    assert f.json("service", "status")[0]["cron"] is True, "the line of another shell is this fleet's line too"


def test_a_crontab_that_cannot_be_read_is_left_as_it_is(f: Fleet) -> None:
    spool = with_cron(f)
    spool.write_text("0 5 * * * backup\n")
    spool.with_name("spool.broken").touch()
    for what in ("install", "remove"):
        done = f.run("service", what, check=False)
        assert done.returncode == 5
        assert "Input/output error" in done.stderr
    assert "Input/output error" in f.run("service", "status", check=False).stdout
    assert spool.read_text() == "0 5 * * * backup\n"


def test_a_crontab_of_any_encoding_keeps_its_bytes(f: Fleet) -> None:
    spool = with_cron(f)
    table = "0 5 * * * ls /home/Jürgen\r\n".encode("latin-1")
    spool.write_bytes(table)
    f.run("service", "install")
    assert spool.read_bytes().startswith(table)
    assert b"@reboot" in spool.read_bytes()
    f.run("service", "remove")
    assert spool.read_bytes() == table


def test_a_key_of_the_shell_is_said_to_be_missing_after_a_boot(f: Fleet) -> None:
    f.folders.config_file.write_text(f'[model]\nbase_url = "{f.base_url}"\n')
    f.extra |= {"ANTHROPIC_API_KEY": "sk-of-this-shell"}
    told = by_hand(f).stdout
    assert "api_key_file" in told
    assert "sk-of-this-shell" not in told + (f.folders.state / "service" / "crontab.line").read_text()
