"""The two kinds of socket under attack: another user's client, planted files, and frames of every wrong shape."""

from __future__ import annotations

import json
import os
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.eventlog import reader
from harness.protocol.connection import frames
from harness.protocol.paths import FolderError, ensure_private
from tests.fleetlib import fleet, play
from tests.process.keeperlib import SID, keepers

NOBODY = 65534
FRAMES = 2000
GROWTH_KB = 24 * 1024


def as_nobody(path: Path) -> str:
    """How a client of another user fares at this socket: denied, closed or answered."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        said = b"failed"
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            with socket.socket(socket.AF_UNIX) as sock:
                sock.settimeout(60)
                try:
                    sock.connect(str(path))
                    sock.sendall(
                        frames.encode(
                            {"id": 1, "op": "hello", "role": "viewer", "proto": frames.PROTOCOL, "client": "evil"}
                        )
                    )
                    said = b"answered" if sock.recv(1) else b"closed"
                except PermissionError:
                    said = b"denied"
                except ConnectionError:
                    said = b"closed"
        finally:
            os.write(write_end, said)
            os._exit(0)
    os.close(write_end)
    with open(read_end, "rb") as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said.decode()


@contextmanager
def opened(*paths: Path) -> Iterator[None]:
    """Folders and sockets opened to everybody, as a careless chmod would."""
    modes = [(path, path.stat().st_mode & 0o777) for path in paths]
    try:
        for path in paths:
            path.chmod(0o777)
        yield
    finally:
        for path, mode in modes:
            path.chmod(mode)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_another_user_gets_nowhere() -> None:
    with fleet() as f:
        sid = f.launch(play([("exec", {"argv": ["true"], "access": "network"})], "Done."))
        f.approval(sid)
        sockets = (f.folders.supervisor_socket, f.folders.session(sid).keeper_socket)
        private = (f.folders.state, f.folders.runtime, f.folders.keeper_sockets, f.folders.session(sid).root)
        assert {path.stat().st_mode & 0o777 for path in private} == {0o700}
        assert {path.stat().st_mode & 0o777 for path in sockets} == {0o600}
        for path in f.folders.state.rglob("*"):
            if path.is_file() and not path.is_relative_to(f.folders.worktrees) and not path.is_symlink():
                assert path.stat().st_mode & 0o077 == 0 or path.is_relative_to(f.folders.session(sid).git), path
        with opened(f.root):
            assert [as_nobody(path) for path in sockets] == ["denied", "denied"]
        with opened(f.root, *private, *sockets):
            assert [as_nobody(path) for path in sockets] == ["closed", "closed"]
        assert f.row(sid)["state"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files to another user")
def test_planted_folders_and_links_are_refused(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    target = tmp_path / "target"
    link = tmp_path / "link"
    theirs.mkdir()
    os.chown(theirs, NOBODY, NOBODY)
    target.mkdir()
    link.symlink_to(target)
    for path, why in ((theirs, "belongs to uid"), (link, "symbolic link")):
        with pytest.raises(FolderError, match=why):
            ensure_private(path)
    wide = tmp_path / "wide"
    wide.mkdir(mode=0o777)
    ensure_private(wide)
    assert wide.stat().st_mode & 0o777 == 0o700


def test_a_planted_link_does_not_become_the_supervisors_log() -> None:
    with fleet() as f:
        victim = f.root / "victim"
        victim.write_text("mine")
        f.folders.supervisor_log.symlink_to(victim)
        done = f.run("ls", check=False)
        assert done.returncode == 3, done.stderr
        assert "Traceback" not in done.stderr
        assert victim.read_text() == "mine"


# -- frames ----------------------------------------------------------------------------------------

ODD: tuple[Any, ...] = (
    None, True, -1, 2**63, 2**70, 1.5, "", "x" * 5000, "\x00\x1b", [], [[]], {}, {"a": {"b": [None]}},
    "../../etc/passwd", [None, 1, "a"], {"": ""}
)  # fmt: skip
NAMES = (
    "sid", "approval_id", "decision", "action_hash", "edited", "value", "message", "state", "reason", "repo", "goal",
    "checks", "caps", "name", "credential", "text", "until", "after", "records", "cls", "expect", "data", "call_id",
    "gen", "epoch", "secret", "pid", "start", "boot", "request_id", "attempt", "model", "est_input", "max_tokens",
    "reservation", "usage", "cost_nano", "unknown", "client", "proto", "role", "force_keep", "base_url", "kill",
    "exit_code", "limits", "undo_limits", "jobs", "label", "full", "since", "worked", "head", "ground", "job",
    "undo_id", "snapshot", "by", "folder", "keeps",
)  # fmt: skip

SUPERVISOR_OPS = (
    "hello", "status", "sessions", "session", "launch", "desire", "remove", "say", "approvals", "approval", "decide",
    "defer", "costs", "diff", "verify", "subscribe", "brain_hello", "reserve", "settle", "nonsense",
)  # fmt: skip


def raw_frames(rng: random.Random) -> bytes:
    """One frame that no sound client sends; some are not even frames."""
    kind = rng.randrange(9)
    if kind == 0:
        return struct.pack(">I", rng.choice((frames.MAX_FRAME + 1, 2**32 - 1)))
    body = (
        rng.randbytes(rng.randrange(300)),
        b"[" * rng.choice((10, 5_000, 200_000)),
        b'{"a":' * rng.choice((10, 5_000, 200_000)),
        b'{"id": ' + b"9" * rng.choice((30, 6000)) + b', "op": "hello"}',
        b'{"id": NaN, "op": "hello"}',
        b'{"id": {"a": 1}, "op": ["hello"], "op": 5}',
        b'"text"',
        b'{"id": 1, "op": "\\ud800"}',
    )[kind - 1]
    return struct.pack(">I", len(body)) + body


def request(rng: random.Random, ops: tuple[str, ...], number: int) -> bytes:
    """A well formed frame with arguments of wrong kinds."""
    arguments = {name: rng.choice(ODD) for name in rng.sample(NAMES, rng.randrange(len(NAMES)))}
    body = json.dumps({**arguments, "id": number, "op": rng.choice(ops)}).encode()
    return struct.pack(">I", len(body)) + body


def greeted(path: Path, hello: dict[str, Any]) -> socket.socket:
    sock = frames.connect(path, 30.0)
    sock.sendall(frames.encode({"id": 0, "op": "hello", "proto": frames.PROTOCOL, **hello}))
    return sock


def drain(sock: socket.socket, until: int) -> list[dict[str, Any]]:
    """Replies up to number ``until``, or to the end of the stream."""
    decoder = frames.Decoder()
    found = list[dict[str, Any]]()
    while not any(m.get("id") == until for m in found):
        try:
            data = sock.recv(1 << 18)
        except ConnectionResetError:
            break
        if not data:
            break
        found += [frames.parse(body) for body in decoder.feed(data)]
    return found


def attack(path: Path, hello: dict[str, Any], ops: tuple[str, ...], seed: int) -> list[dict[str, Any]]:
    """Half of the frames over long-lived connections with a good hello, half over connections that begin or break
    badly; the replies.
    """
    rng = random.Random(seed)
    replies = list[dict[str, Any]]()
    for burst in range(FRAMES // 100):
        with greeted(path, hello) as sock:
            for number in range(1, 51):
                sock.sendall(request(rng, ops, number))
            replies += drain(sock, 50)
        for _ in range(10):
            with frames.connect(path, 30.0) if burst % 2 else greeted(path, hello) as sock:
                try:
                    for _ in range(5):
                        sock.sendall(raw_frames(rng) if rng.random() < 0.6 else request(rng, ops, 1))
                    sock.shutdown(socket.SHUT_WR)
                except OSError:
                    continue  # closed on us in the middle, as it should
                replies += drain(sock, -1)
    return replies


def resident_kb(pid: int) -> int:
    return int(
        next(
            line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS:")
        ).split()[1]
    )


def assert_sound(replies: list[dict[str, Any]]) -> None:
    assert len(replies) > FRAMES // 4
    internal = [r for r in replies if (r.get("error") or {}).get("code") == "internal"]
    assert not internal, internal[:5]


def test_wrong_frames_do_not_hurt_the_supervisor() -> None:
    with fleet() as f:
        sid = f.launch(play([("exec", {"argv": ["true"], "access": "network"})], "Done."))
        asked = f.approval(sid)
        pid = f.supervisor_pid()
        attack(f.folders.supervisor_socket, {"client": "warm"}, SUPERVISOR_OPS, 0)
        before = resident_kb(pid)
        assert_sound(attack(f.folders.supervisor_socket, {"client": "fuzz"}, SUPERVISOR_OPS, 1))
        assert f.supervisor_pid() == pid
        assert resident_kb(pid) - before < GROWTH_KB
        assert "Traceback" not in f.folders.supervisor_log.read_text()
        assert [r["sid"] for r in f.call("sessions")["rows"]] == [sid]
        assert f.approval(sid)["approval_id"] == asked["approval_id"]
        f.approve(asked["approval_id"])
        f.wait_state(sid, "done")
        assert f.violations() == []


@pytest.mark.parametrize("role", ["viewer", "supervisor"])
def test_wrong_frames_do_not_hurt_a_keeper(tmp_path: Path, role: str) -> None:
    with keepers(tmp_path) as house:
        pid = house.spawn()["pid"]
        path = house.folder().keeper_socket
        hello: dict[str, Any] = {"role": role, **({"epoch": 1} if role == "supervisor" else {})}
        ops = (
            "hello",
            "append",
            "lease",
            "lease_end",
            "blob",
            "subscribe",
            "execute",
            "cancel",
            "cancel_job",
            "ping",
            "snapshot",
            "snapshots",
            "export",
            "undo",
            "stats",
            "nonsense",
            "__class__",
        )
        attack(path, hello, ops, 2)
        before = resident_kb(pid)
        assert_sound(attack(path, hello, ops, 3))
        assert resident_kb(pid) - before < GROWTH_KB
        link = house.link()
        assert link.hello("viewer")["pid"] == pid
        assert (
            not (house.folder().root / "keeper.err").exists()
            or b"Traceback" not in (house.folder().root / "keeper.err").read_bytes()
        )
        assert reader.verify(house.folder().log).ok


def test_what_is_appended_stays_readable_json(tmp_path: Path) -> None:
    """Values that Python's JSON takes and nobody else's does must not get into the log."""
    with keepers(tmp_path) as house:
        house.spawn()
        for raw in (
            b"NaN",
            b"Infinity",
            b"-Infinity",
            b"1e999",
            b'[1, {"a": NaN}]',
            b'"\\ud800"',
            b'{"\\udfff": 1}',
            b"9" * 500,
        ):
            with greeted(house.folder().keeper_socket, {"role": "supervisor", "epoch": 1}) as sock:
                body = b'{"id": 1, "op": "append", "records": [{"type": "test.odd", "data": {"v": ' + raw + b"}}]}"
                sock.sendall(struct.pack(">I", len(body)) + body)
                drain(sock, 1)
        for line in reader.read(house.folder().log):
            msgspec.json.decode(line)
        assert house.link().hello("viewer")["sid"] == SID
