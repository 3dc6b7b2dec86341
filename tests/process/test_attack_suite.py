"""The attack suite notices what it is there for: each of its looks from outside, and each kind of claim from inside,
can fail.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.sandbox import bubblewrap
from tests.attack.__main__ import Heard, run, table, users
from tests.attack.families import kernel, paths
from tests.attack.ground import DRIVER, Ground, ground
from tests.attack.model import Escape, Family, Inside, Outside, Result
from tests.attack.play import attempts_of, batches, carry_out, turns
from tests.attack.registry import FAMILIES
from tests.attack.watch import inhabitants
from tests.process.keeperlib import wait_until

pytestmark = pytest.mark.sandbox


@pytest.fixture(scope="module")
def field() -> Iterator[Ground]:
    with ground() as made:
        yield made


def seen(field: Ground) -> str:
    return "; ".join(field.watch.look(field.keeper))


def family(*attempts: Inside | Outside) -> Family:
    return Family("made here", lambda _ground, _dice: attempts)


def play(field: Ground, tried: Family) -> list[Result]:
    return [result for turn in turns(field, [tried], "root", 1, 0) for result in carry_out(field, turn.attempts)]


def test_a_host_that_nobody_touched_is_quiet(field: Ground) -> None:
    assert seen(field) == ""


def test_every_change_of_a_file_is_seen(field: Ground) -> None:
    secret = field.base / "beside" / "secret.txt"
    text = secret.read_text()
    for change in (
        lambda: secret.write_text("other"),
        lambda: secret.write_text(text),
        lambda: secret.chmod(0o666),
        lambda: os.link(secret, field.base / "state" / "linked"),
        lambda: secret.rename(secret.with_name("moved")),
        lambda: secret.with_name("moved").rename(secret),
        lambda: (secret.parent / "planted").mkdir(),
        lambda: (secret.parent / "link").symlink_to("/etc"),
        lambda: (field.repo / ".git" / "hooks" / "post-checkout").write_text("x"),
        lambda: (field.repo / ".git" / "refs" / "heads" / "main").write_text("0" * 40 + "\n"),
    ):
        change()
        assert "was changed" in seen(field)
        assert seen(field) == "", "each difference is told once"


def test_everybody_who_knocks_is_seen(field: Ground) -> None:
    doors = field.doors
    for address in (*map(str, doors.paths.values()), str(doors.inside), "\0" + doors.abstract):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(address)
        assert "connected" in seen(field), address
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", "\0" + doors.abstract + "d")
    assert "message arrived" in seen(field)
    socket.create_connection(("127.0.0.1", doors.port)).close()
    assert "tcp" in seen(field)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"x", ("127.0.0.1", doors.port))
    assert "udp" in seen(field)


def test_what_is_done_to_a_process_is_seen(field: Ground) -> None:
    pid = field.victim.pid
    os.kill(pid, signal.SIGUSR1)
    wait_until("the signal is noted", lambda: "got signals" in seen(field))
    os.kill(pid, signal.SIGSTOP)
    wait_until("it is stopped", lambda: "stopped" in seen(field))
    os.kill(pid, signal.SIGCONT)
    wait_until("it goes on and noted it", lambda: "got signals" in seen(field))
    before = os.getpriority(os.PRIO_PROCESS, pid)
    os.setpriority(os.PRIO_PROCESS, pid, before + 3)
    assert "nice" in seen(field)
    if os.geteuid() == 0:
        os.setpriority(os.PRIO_PROCESS, pid, before)
        assert seen(field) == ""


def test_what_outlives_its_call_is_seen_and_ended(field: Ground) -> None:
    root = str(field.tree.root)
    command = [
        bubblewrap.find().path,
        "--unshare-user",
        "--unshare-pid",
        "--dev-bind",
        "/",
        "/",
        "--tmpfs",
        "/mnt",
        "--bind",
        root,
        "/mnt" + root,
    ]
    stays = subprocess.Popen([*command, "sleep", "600"])
    try:
        wait_until("its sandbox stands", lambda: inhabitants(field.base))
        (told,) = field.watch.left(field.keeper, 0.1)
        assert "outlived their call" in told
        stays.wait(20)
        wait_until("all of it is gone", lambda: not inhabitants(field.base))
    finally:
        stays.kill()
        stays.wait()


CLAIMS = {
    "abstract": "return connect(socket.AF_UNIX, socket.SOCK_STREAM, '\\0' + given['abstract'])",
    "path": "return connect(socket.AF_UNIX, socket.SOCK_STREAM, given['sockets'][0])",
    "tcp": "return connect(socket.AF_INET, socket.SOCK_STREAM, ('127.0.0.1', given['port']))",
    "past the filter": "return past_filter((310, 270)[MACHINE], os.getpid(), 0, 1, 0, 1, 0)",
    "read": "return read(given['targets'][0])",
    "write": "return write(given['beside'] + '/planted-by-the-driver')",
    "a program": "return run('/bin/true')",
}


def test_without_a_sandbox_the_attempts_go_through(field: Ground, tmp_path: Path) -> None:
    """The same driver on the open host: what is refused inside is refused by the sandbox, and not because an attempt is
    broken.
    """
    (tmp_path / "batch").write_text(json.dumps([{"name": name, "code": code} for name, code in CLAIMS.items()]))
    (tmp_path / "given").write_text(json.dumps(field.given))
    argv = [sys.executable, "-I", "-S", str(DRIVER), *(str(tmp_path / name) for name in ("batch", "given", "results"))]
    done = subprocess.run(argv, capture_output=True, check=True, cwd=tmp_path)
    results = {line["name"]: line for line in map(json.loads, (tmp_path / "results").read_text().splitlines())}
    assert {name for name, line in results.items() if line["went"]} == set(CLAIMS), results
    assert field.watch.secrets("the output", done.stdout) == ["the output holds the secret of file beside"]
    told = seen(field)
    assert "abstract" in told
    assert "planted-by-the-driver" in told


def test_escapes_are_told_and_pinned_to_their_attempt(field: Ground) -> None:
    def reach_out(ground: Ground) -> None:
        (ground.base / "beside" / "reached").write_text("x")

    def say_so(_ground: Ground) -> None:
        raise Escape("it happened")

    secret = json.dumps(field.tokens["memory"])
    tried = family(
        Inside("harmless", "return 'fine'", claim=False),
        Inside("claims", "return 'fine'"),
        Inside("refused", "raise OSError(1, 'no')"),
        Inside("shows a secret", f"os.write(1, {secret}.encode()); return 'shown'", claim=False),
        Inside("keeps a secret", f"open('kept', 'w').write({secret}); return 'kept'", claim=False),
        Inside("ends its own call", "os.kill(-1, 9)", claim=False),
        Outside("reaches out", reach_out),
        Outside("says so", say_so),
    )
    results = {result.name: result for result in play(field, tried)}
    escaped = {name for name, result in results.items() if result.status == "escaped"}
    assert escaped == {"claims", "shows a secret", "keeps a secret", "reaches out", "says so"}
    assert "secret of memory" in results["shows a secret"].detail
    assert "reached" in results["reaches out"].detail


def test_a_broken_attempt_is_no_refusal(field: Ground) -> None:
    with pytest.raises(RuntimeError, match="broken"):
        play(field, family(Inside("typo", "return nonsense")))


def test_a_seed_gives_the_same_attempts_again(field: Ground) -> None:
    for each in FAMILIES:
        first, again = ([a.name for a in attempts_of(field, each, "root", 7, 3)] for _ in range(2))
        assert first == again, each.name
    one, other = (
        [a.name for a in attempts_of(field, Family("paths", paths.attempts), "root", seed, 1)] for seed in (1, 2)
    )
    assert one != other


def test_every_family_lists_attempts_and_each_name_once(field: Ground) -> None:
    for each in FAMILIES:
        names = [attempt.name for attempt in attempts_of(field, each, "root", 1, 0)]
        assert len(names) == len(set(names)) > 0, each.name


def test_attempts_of_one_access_share_calls(field: Ground) -> None:
    listed = attempts_of(field, Family("kernel", kernel.attempts), "root", 1, 0)
    parts = list(batches(listed))
    assert [attempt for part in parts for attempt in (part if isinstance(part, list) else [part])] == listed
    assert len(parts) < len(listed) / 10


def test_the_table_adds_up() -> None:
    rows = {("paths", "root"): Counter(refused=3, escaped=1), ("kernel", "nobody"): Counter(refused=2, skipped=4)}
    lines = [line.split() for line in table(rows).splitlines()]
    assert lines == [
        ["family", "user", "attempts", "refused", "escaped", "skipped"],
        ["paths", "root", "4", "3", "1", "0"],
        ["kernel", "nobody", "6", "2", "0", "4"],
        ["all", "10", "5", "1", "4"],
    ]


def test_how_far_a_run_came_is_told() -> None:
    heard = Heard("root")
    heard.take({"round": 0, "attempts": 3}, 1)
    for name in ("a", "b"):
        heard.take({"family": "paths", "round": 0, "name": name, "status": "refused", "detail": ""}, 1)
    assert heard.reached().startswith("root: 2 of 3 listed attempts, 0 generated; no time for the others")
    heard.take({"family": "paths", "round": 0, "name": "c", "status": "escaped", "detail": "it did"}, 1)
    heard.take({"round": 1, "attempts": 9}, 1)
    heard.take({"family": "paths", "round": 1, "name": "d", "status": "refused", "detail": ""}, 1)
    assert heard.reached() == "root: 3 of 3 listed attempts, 1 generated"
    assert len(heard.bad) == 1


def test_another_seed_tries_the_same_list_in_another_order(field: Ground) -> None:
    one, other = ([str(turn) for turn in turns(field, FAMILIES, "root", seed, 0)] for seed in (1, 2))
    assert one != other
    assert sorted(one) == sorted(other)


def test_who_is_told_to_end_says_what_was_tried_and_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    over = threading.Event()
    heard = Heard(next(user for user, why in users() if not why))
    running = threading.Thread(target=run, args=(heard, 1, float("inf"), ["--only", "kernel"], over))
    monkeypatch.setenv("TMPDIR", str(home := Path(tempfile.mkdtemp(prefix="wf-told-"))))
    running.start()
    wait_until("a first attempt", lambda: heard.rows)
    over.set()
    running.join(60)
    assert not running.is_alive()
    assert heard.bad == []
    assert list(home.iterdir()) == []
    home.rmdir()


def test_what_does_not_come_to_its_end_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.attack.__main__.REST_S", 0.0)
    heard = Heard(next(user for user, why in users() if not why))
    run(heard, 1, time.monotonic(), ["--only", "kernel", "--round", "0"], threading.Event())
    assert len(heard.bad) == 1
    assert "did not come to their end" in heard.bad[0]
