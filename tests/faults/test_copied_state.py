"""Copies and moves of a whole state folder, with the original running and without: nothing of the original is ever
reached.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.events import types as t
from harness.protocol import locks
from harness.protocol.paths import Folders
from harness.sandbox import bubblewrap as bwrap
from tests.fleetlib import COMMAND, HOLD, Fleet, alive, fleet, git, kill, play, power_off, wait_for

ASK = play([("exec", {"argv": ["true"], "access": "network"})], "Done.")
WRITES = play([("exec", {"argv": ["sh", "-c", "echo ran >> effects.txt"]})], "Done.")


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def at(f: Fleet, state: Path, runtime: Path | None = None) -> Fleet:
    """The same user's commands on another state folder; its runtime folder lies inside it unless it is given."""
    env = {k: v for k, v in f.env.items() if k != "WATCHFLOOR_RUNTIME"} | {"WATCHFLOOR_STATE": str(state)}
    if runtime is not None:
        env["WATCHFLOOR_RUNTIME"] = str(runtime)
    return dataclasses.replace(f, folders=Folders(state, runtime or state / "run", f.folders.config), env=env)


def copy(f: Fleet, name: str = "copy") -> Fleet:
    target = f.root / name
    subprocess.run(["cp", "-a", str(f.folders.state), str(target)], check=True)
    return at(f, target)


def three(f: Fleet) -> tuple[str, str, str]:
    """One session at work, one that asks, one that has ended."""
    busy = f.launch(play([("exec", {"argv": ["sh", "-c", "echo ran >> effects.txt"]})], [HOLD], "Done."), name="busy")
    asking = f.launch(ASK, name="asking")
    ended = f.launch(WRITES, name="ended")
    f.wait_event_count(busy, "tool.started", 2)
    f.wait_state(asking, "waiting")
    f.wait_event(asking, "lease.ended")  # behind it nothing more is written
    f.wait_state(ended, "done")
    wait_for("the ended session to be put away", lambda: not locks.held(f.folders.session(ended).lock))
    return busy, asking, ended


class Outside(NamedTuple):
    refs: str
    records: dict[str, str]
    """Where git says that its worktrees are."""
    effects: dict[Path, str]


def outside(f: Fleet) -> Outside:
    """What the world outside the state folders looks like."""
    repo = f.repository()
    records = {p.name: (p / "gitdir").read_text() for p in sorted((repo / ".git" / "worktrees").iterdir())}
    return Outside(
        git(repo, "for-each-ref"), records, {p: p.read_text() for p in f.folders.worktrees.glob("*/effects.txt")}
    )


def named(f: Fleet, folder: Path) -> list[tuple[int, str]]:
    """Processes whose command line or environment names a folder."""
    return dataclasses.replace(f, root=folder).processes()


def heads(f: Fleet, sids: tuple[str, ...]) -> dict[str, int]:
    return {sid: len(f.records(sid)) for sid in sids}


# -- a copy, the original running ------------------------------------------------------------------


def test_a_copy_is_only_looked_at(f: Fleet) -> None:
    sids = three(f)
    busy, asking, ended = sids
    before = outside(f)
    logs = heads(f, sids)
    c = copy(f)
    rows = {row["sid"]: row for row in c.json("ls")}
    assert {row["name"] for row in rows.values()} == {"busy", "asking", "ended"}
    assert rows[ended]["state"] == "done"
    assert "not the one of its mark" in c.run("ls").stderr
    assert "adopt" in c.run("ls").stderr
    assert "not driven" in c.run("show", "busy").stdout
    assert "effects.txt" in c.run("logs", busy).stdout
    assert {s["sid"] for s in c.json("cost")[0]["sessions"]} == set(sids)
    assert c.json("cost")[0]["sessions"][0]["spent_nano"] > 0
    assert c.run("verify").returncode == 0
    approval = f.approval(asking)["approval_id"]
    assert [asked["approval_id"] for asked in c.json("approvals")] == [approval]
    refused = (
        ("launch", "--repo", str(f.repository()), "--goal", "x"),
        ("stop", busy),
        ("resume", asking),
        ("pause", busy),
        ("say", busy, "hello"),
        ("approvals", approval),
        ("approve", approval),
        ("rm", "--force", ended),
        ("undo", ended),
        ("diff", busy),
        ("supervisor", "start"),
    )
    for args in refused:
        done = c.run(*args, check=False)
        assert done.returncode in (3, 5), args
        assert "not the one of its mark" in done.stderr, args
    for module in ("harness.supervisor.main", "harness.supervisor.guardian"):
        direct = subprocess.run(
            [shutil.which("python3", path=str(Path(COMMAND).parent)) or "", "-P", "-s", "-m", module],
            env=c.env,
            capture_output=True,
            text=True,
        )
        assert direct.returncode == 3
        assert "refused: " in direct.stderr
    assert named(f, c.folders.state) == []
    assert locks.kept(c.folders) == []
    assert not locks.held(c.folders.supervisor_lock)
    assert outside(f) == before
    assert heads(f, sids) == logs
    f.release(busy)
    f.wait_state(busy, "done")
    f.approve(approval)
    f.wait_state(asking, "done")
    assert f.violations() == []


def test_an_adopted_copy_never_reaches_the_original(f: Fleet) -> None:
    sids = three(f)
    busy, asking, ended = sids
    keepers = {sid: f.keeper_pid(sid) for sid in (busy, asking)}
    before = outside(f)
    logs = heads(f, sids)
    spent = f.json("cost")[0]["fleet"].get("spent_total_nano", 0)
    c = copy(f)
    told = c.json("adopt")[0]
    assert [s["driven"] for s in told["sessions"]] == [False] * 3
    assert all("still there" in s["why"] for s in told["sessions"])
    try:
        rows = {row["sid"]: row for row in c.json("ls")}
        for sid in (busy, asking):
            assert rows[sid]["state"] == "failed"
            assert str(f.folders.state) in rows[sid]["evidence"]
        assert not [a for a in c.json("approvals") if a["options"]], "nothing waits here that cannot be decided here"
        for args in (
            ("stop", busy),
            ("resume", busy),
            ("say", asking, "hello"),
            ("undo", ended),
            ("diff", ended),
            ("rm", ended),
        ):
            assert c.run(*args, check=False).returncode == 5, args
        own = c.launch(play([("exec", {"argv": ["sh", "-c", "echo own > own.txt"]})], "Done."), name="own")
        assert c.wait_state(own, "done")["worktree"].startswith(str(c.folders.worktrees))
        for sid in sids:
            c.run("rm", "--force", sid)
        assert not {row["sid"] for row in c.json("ls")} & set(sids)
    finally:
        c.run("supervisor", "stop", "--sessions", "stop", check=False)
    assert locks.kept(c.folders) == []
    assert {sid: f.keeper_pid(sid) for sid in keepers} == keepers
    assert all(alive(pid) for pid in keepers.values())
    after = outside(f)
    assert after.effects == before.effects
    assert after.records.items() >= before.records.items()
    assert set(before.refs.splitlines()) <= set(after.refs.splitlines())
    assert heads(f, sids) == logs
    assert f.json("cost")[0]["fleet"].get("spent_total_nano", 0) == spent
    f.release(busy)
    f.wait_state(busy, "done")
    assert f.json("undo", ended, "--list"), "the original's own vault is untouched"
    assert f.violations() == []


@pytest.mark.parametrize("adopted", [False, True])
def test_a_copy_with_the_originals_runtime_folder_is_refused(f: Fleet, adopted: bool) -> None:
    busy, _, _ = three(f)
    supervisor = f.supervisor_pid()
    keeper = f.keeper_pid(busy)
    c = copy(f)
    if adopted:
        c.run("adopt")
    wrong = at(f, c.folders.state, f.folders.runtime)
    for args in (
        ("supervisor", "stop", "--sessions", "stop"),
        ("supervisor", "status"),
        ("stop", busy),
        ("supervisor", "start"),
        ("adopt",),
    ):
        done = wrong.run(*args, check=False)
        assert done.returncode != 0, args
        if adopted or args[0] == "adopt":
            assert str(f.folders.state) in done.stderr + done.stdout, args
    assert f.supervisor_pid() == supervisor
    assert f.keeper_pid(busy) == keeper
    assert alive(keeper)
    f.run("supervisor", "stop")  # and not while only keepers live in it either
    done = wrong.run("supervisor", "start", check=False)
    assert done.returncode == 3
    assert "runtime folder" in done.stderr if adopted else "not the one of its mark" in done.stderr
    assert alive(keeper)
    f.run("supervisor", "start")
    f.release(busy)
    f.wait_state(busy, "done")
    assert f.violations() == []


def test_a_keeper_obeys_no_supervisor_of_a_copy(f: Fleet) -> None:
    """Whatever becomes of runtime folders: the keeper itself knows its folder, and the higher epoch of a copy is
    nothing to it.
    """
    busy, _, _ = three(f)
    c = copy(f)
    c.run("adopt")
    keeper = f.keeper_pid(busy)
    from harness.protocol.connection import frames

    st = os.stat(c.folders.session(busy).root)
    with frames.connect(f.folders.session(busy).keeper_socket) as sock:
        sock.sendall(
            frames.encode(
                {
                    "id": 1,
                    "op": "hello",
                    "role": "supervisor",
                    "epoch": 999,
                    "proto": frames.PROTOCOL,
                    "folder": [st.st_dev, st.st_ino],
                }
            )
        )
        reply = frames.parse(next(iter(frames.Decoder().feed(sock.recv(1 << 16)))))
    assert reply["error"]["code"] == "foreign"
    f.release(busy)
    f.wait_state(busy, "done")
    assert f.keeper_pid(busy) == keeper
    assert f.violations() == []


def test_scores_are_read_from_a_state_that_nobody_drives_also_of_removed_sessions(f: Fleet) -> None:
    busy, _, ended = three(f)
    gone = f.launch(WRITES, name="gone")
    f.wait_state(gone, "done")
    figures = f.json("score", gone)[0]
    f.run("rm", "--keep-as-ref", gone)
    c = copy(f)
    assert {one["sid"] for one in c.json("score")} >= {busy, ended}
    for name in (gone, "gone"):
        (kept,) = c.json("score", name)
        assert (kept["sid"], kept["steps"], kept["nano"]) == (gone, figures["steps"], figures["nano"])
    assert c.run("score", "nobody", check=False).returncode == 4
    assert not c.folders.supervisor_socket.exists()
    f.release(busy)
    f.wait_state(busy, "done")


# -- moves -----------------------------------------------------------------------------------------


def rest(f: Fleet, *sids: str) -> None:
    """As after a power cut: nothing of the fleet lives."""
    f.run("supervisor", "stop")
    for sid in sids:
        if locks.held(f.folders.session(sid).lock):
            kill(f.keeper_pid(sid))


def test_a_moved_state_is_recognised_and_goes_on_after_adopt(f: Fleet) -> None:
    busy, asking, ended = three(f)
    rest(f, busy, asking)
    m = at(f, f.root / "elsewhere" / "state")
    m.folders.state.parent.mkdir()
    f.folders.state.rename(m.folders.state)
    assert "not the one of its mark" in m.run("ls").stderr
    refused = m.run("supervisor", "start", check=False)
    assert refused.returncode == 3
    assert "watchfloor adopt" in refused.stderr
    told = m.json("adopt")[0]
    assert [s["why"] for s in told["sessions"]] == [""] * 3
    try:
        m.run("ls")
        waiting = m.wait_state(asking, "waiting")
        assert waiting["worktree"] == str(m.folders.worktrees / asking)
        m.approve(m.approval(asking)["approval_id"])
        m.wait_state(asking, "done")
        # the call that ran when the power went; it ran inside the sandbox, so the agent is told
        m.wait_event(busy, "tool.in_doubt")
        m.wait_state(busy, "done")
        assert sum(r.type == "tool.started" for r in m.records(busy)) == 2, "it is not run again"
        assert (m.folders.worktrees / busy / "effects.txt").read_text() == "ran\n"
        assert "effects.txt" in m.run("diff", ended).stdout
        m.run("undo", ended)
        assert not (m.folders.worktrees / ended / "effects.txt").exists()
        assert not any(getattr(r.body, "status", "") == "refused" for r in m.records(busy) + m.records(asking)), (
            "no call was refused and paid for"
        )
        own = m.launch(play("Done."), name="own")
        m.wait_state(own, "done")
        assert not f.folders.state.exists(), "nothing made the old place again"
        listed = git(f.repository(), "worktree", "list")
        assert str(m.folders.worktrees / busy) in listed
        assert str(f.folders.worktrees) not in listed
        assert m.violations() == []
    finally:
        m.run("supervisor", "stop", "--sessions", "stop", check=False)


def test_a_state_that_is_moved_while_it_runs_is_adopted_only_when_nothing_of_it_lives(f: Fleet) -> None:
    busy, _, _ = three(f)
    keepers = locks.kept(f.folders)
    supervisor = f.supervisor_pid()
    pids = {sid: f.keeper_pid(sid) for sid in keepers}
    m = at(f, f.root / "moved", f.folders.runtime)
    f.folders.state.rename(m.folders.state)
    refused = m.run("adopt", check=False)
    assert refused.returncode == 5
    assert "still works in" in refused.stderr
    assert m.run("stop", busy, check=False).returncode == 3
    wait_for("the supervisor to leave its lost folder", lambda: not alive(supervisor))
    for pid in pids.values():  # each leaves by itself at its next look, within half a minute
        if alive(pid):
            kill(pid)
    wait_for("the guardian to leave", lambda: not locks.held(m.folders.state / "guardian.lock"))
    m.run("adopt")
    try:
        m.run("ls")
        m.wait_event(busy, "tool.in_doubt")
        m.wait_state(busy, "done")
    finally:
        m.run("supervisor", "stop", "--sessions", "stop", check=False)


def test_a_state_that_is_gone_while_it_runs_is_not_made_anew_and_can_be_put_back(f: Fleet) -> None:
    busy = f.launch(play([HOLD], "Done."), name="busy")
    f.wait_event(busy, "tool.started")
    keeper = f.keeper_pid(busy)
    supervisor = f.supervisor_pid()
    os.kill(keeper, signal.SIGSTOP)  # it would leave at its next look, within half a minute
    f.folders.state.rename(f.root / "moved")
    wait_for("the supervisor to leave its lost folder", lambda: not alive(supervisor))
    refused = f.run("ls", check=False)
    assert refused.returncode == 3
    assert f"is gone while processes of it run: the keeper of session {busy} (process {keeper})" in refused.stderr
    assert not f.folders.state.exists(), "nothing stands in the way of putting it back"
    (f.root / "moved").rename(f.folders.state)
    os.kill(keeper, signal.SIGCONT)
    f.run("ls")
    f.release(busy)
    f.wait_state(busy, "done")
    assert f.violations() == []


def test_a_state_replaced_while_it_runs_names_the_processes_to_end(f: Fleet) -> None:
    busy = f.launch(play([HOLD], "Done."), name="busy")
    wait_for("the call to run", lambda: any(command.startswith("sh -c while") for _, command in f.processes()))
    keeper = f.keeper_pid(busy)
    os.kill(keeper, signal.SIGSTOP)  # it would leave at its next look, within half a minute
    f.folders.state.rename(f.root / "old")
    subprocess.run(["cp", "-a", str(f.root / "old"), str(f.folders.state)], check=True)
    refused = f.run("adopt", check=False)
    assert refused.returncode == 5
    assert "was replaced by another one" in refused.stderr
    assert f"process {keeper}" in refused.stderr
    assert "WATCHFLOOR_RUNTIME" not in refused.stderr
    told = f.run("supervisor", "stop", check=False).stderr  # until it has seen that its folder is gone, it answers
    assert "drives" not in told
    power_off(f)
    f.run("adopt")
    f.run("supervisor", "start")
    f.wait_event(busy, "tool.in_doubt")
    f.wait_state(busy, "done")
    assert f.violations() == []


def test_a_copy_whose_original_is_gone_goes_on_and_repeats_nothing(f: Fleet) -> None:
    """A backup: what had been allowed and had not begun is asked anew, since the original may have run it."""
    busy, asking, _ = three(f)
    first = f.approval(asking)["approval_id"]
    c = copy(f)
    f.release(busy)
    f.wait_state(busy, "done")
    f.run("supervisor", "stop", "--sessions", "stop")
    shutil.rmtree(f.folders.state)
    told = c.json("adopt")[0]
    assert [s["why"] for s in told["sessions"]] == [""] * 3
    try:
        c.run("ls")
        c.wait_event(busy, "tool.in_doubt")
        c.wait_state(busy, "done")
        assert (c.folders.worktrees / busy / "effects.txt").read_text() == "ran\n"
        wait_for("the request to be made anew", lambda: c.approval(asking)["approval_id"] != first)
        stale = next(r.body for r in c.records(asking) if isinstance(r.body, t.ApprovalStale))
        assert "original may have been allowed" in stale.difference[0]
        assert c.violations() == []
    finally:
        c.run("supervisor", "stop", "--sessions", "stop", check=False)


def test_a_backup_put_back_at_its_place_is_recognised(f: Fleet) -> None:
    sid = f.launch(ASK, name="one")
    f.wait_state(sid, "waiting")
    rest(f, sid)
    c = copy(f, "backup")
    shutil.rmtree(f.folders.state)
    c.folders.state.rename(f.folders.state)
    assert "not the one of its mark" in f.run("ls").stderr
    assert f.run("supervisor", "start", check=False).returncode == 3
    f.run("adopt")
    f.run("supervisor", "start")
    f.wait_state(sid, "waiting")
    f.approve(f.approval(sid)["approval_id"])
    f.wait_state(sid, "done")
    assert f.violations() == []


# -- another machine, a container ------------------------------------------------------------------


def inside(f: Fleet, binds: list[str], *args: str) -> subprocess.CompletedProcess[str]:
    """A command in a mount namespace of its own."""
    command = [bwrap.find().path, "--dev-bind", "/", "/", *binds, "--", COMMAND, *args]
    return subprocess.run(command, env=f.env, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=90)


def test_a_state_of_another_machine_is_recognised(f: Fleet) -> None:
    sid = f.launch(play("Done."), name="one")
    f.wait_state(sid, "done")
    f.run("supervisor", "stop")
    other = f.root / "machine-id"
    other.write_text("0123456789abcdef0123456789abcdef\n")
    binds = ["--ro-bind", str(other), "/etc/machine-id"]
    looked = inside(f, binds, "ls", "--json")
    assert looked.returncode == 0
    assert json.loads(looked.stdout)["name"] == "one"
    assert "not the one of its mark" in looked.stderr
    assert inside(f, binds, "supervisor", "start").returncode == 3
    assert "not the one of its mark" not in f.run("ls").stderr, "at home it is what it was"


def test_a_copy_mounted_over_the_originals_path_is_recognised(f: Fleet) -> None:
    """A container of the same machine id that sees a copy under the original's name."""
    busy, _, _ = three(f)
    c = copy(f)
    keeper = f.keeper_pid(busy)
    binds = ["--bind", str(c.folders.state), str(f.folders.state)]
    done = inside(f, binds, "supervisor", "start")
    assert done.returncode == 3
    assert "not the one of its mark" in done.stderr
    assert inside(f, binds, "adopt").returncode == 5, "its runtime folder is the original's"
    assert alive(keeper)
    f.release(busy)
    f.wait_state(busy, "done")


# -- a session from elsewhere ----------------------------------------------------------------------


def test_a_session_folder_from_elsewhere_is_looked_at_and_left_alone(f: Fleet) -> None:
    """Somebody copied one session by hand into another fleet's folder."""
    busy, _, _ = three(f)
    other = at(f, f.root / "second")
    own = other.launch(play("Done."), name="own")
    other.wait_state(own, "done")
    other.run("supervisor", "stop")
    subprocess.run(["cp", "-a", str(f.folders.session(busy).root), str(other.folders.sessions)], check=True)
    before = outside(f)
    keeper = f.keeper_pid(busy)
    try:
        other.run("supervisor", "start")
        rows = {row["sid"]: row for row in other.json("ls")}
        assert rows[busy]["state"] == "failed"
        assert "outside this state folder" in rows[busy]["evidence"]
        assert other.run("stop", busy, check=False).returncode == 5
        assert other.run("rm", busy, check=False).returncode == 5
        other.run("rm", "--force", busy)
        assert busy not in {row["sid"] for row in other.json("ls")}
    finally:
        other.run("supervisor", "stop", "--sessions", "stop", check=False)
    assert alive(keeper)
    after = outside(f)
    assert after.records.items() >= before.records.items()
    assert after.effects == before.effects
    f.release(busy)
    f.wait_state(busy, "done")


# -- a session's folder copied beside it -----------------------------------------------------------


def beside(f: Fleet, sid: str) -> str:
    """A copy of a session's folder in the same state folder, under an id of its own."""
    other = sid[:-1] + ("z" if not sid.endswith("z") else "y")  # two of one moment differ in their last digits only
    subprocess.run(["cp", "-a", str(f.folders.session(sid).root), str(f.folders.session(other).root)], check=True)
    return other


def test_removing_a_copy_beside_the_original_leaves_the_original_alone(f: Fleet) -> None:
    busy, _, ended = three(f)
    copies = {beside(f, sid): sid for sid in (busy, ended)}
    before = outside(f)
    keeper = f.keeper_pid(busy)
    f.run("supervisor", "stop")
    rows = {row["sid"]: row for row in f.json("ls")}
    for twin, sid in copies.items():
        assert rows[sid]["state"] in ("running", "done")
        assert f"that of session {sid}" in f.run("rm", twin, check=False).stderr
        f.run("rm", "--force", twin)
        assert twin not in {row["sid"] for row in f.json("ls")}
    assert outside(f) == before
    assert alive(keeper)
    f.release(busy)
    f.wait_state(busy, "done")
    assert (f.folders.worktrees / ended / "effects.txt").exists()
    assert f.violations() == []


def test_removal_touches_no_worktree_but_the_sessions_own(f: Fleet) -> None:
    """Whatever its record says by the time it is removed."""
    busy, _, ended = three(f)
    own = f.launch(WRITES, name="own")
    f.wait_state(own, "done")
    wait_for("the session to be put away", lambda: not locks.held(f.folders.session(own).lock))
    shutil.copy(f.folders.session(ended).git / "workspace.json", f.folders.session(own).git / "workspace.json")
    refused = f.run("rm", own, check=False)
    assert refused.returncode == 5
    assert "not its own" in refused.stderr
    f.run("rm", "--force", own)
    assert not (f.folders.worktrees / own).exists()
    assert (f.folders.worktrees / ended / "effects.txt").exists()
    assert "effects.txt" in f.run("diff", ended).stdout
    f.release(busy)
    f.wait_state(busy, "done")
    assert f.violations() == []
