"""Calls that name their hosts: those and nothing else, through a proxy that lives as long as the call.

All servers are on loopback.
"""

from __future__ import annotations

import contextlib
import http.server
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.domain.actions.action import from_wire
from harness.executor import runner, spawn
from harness.linux import proc
from harness.policy.build import build_action
from harness.protocol.config.sections import SandboxConfig
from harness.sandbox import bubblewrap, egress_relay, namespace_clone
from harness.workspace.facts.gather import gather
from tests.process.keeperlib import Keepers, action, allowed, keepers, wait_until
from tests.process.pushlib import Ground, git

pytestmark = pytest.mark.sandbox
LISTED = "127.0.0.2"
OTHER = "127.0.0.3"
GET = "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"
DIRECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 5)"


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        self.server.seen.append((self.path, self.headers.get("Host")))  # type: ignore[attr-defined]


class Server:
    """Files of a folder, served at one loopback address; ``seen`` are (path, Host) of its requests."""

    def __init__(self, address: str, folder: Path) -> None:
        def handler(*args: Any) -> _Handler:
            return _Handler(*args, directory=str(folder))

        self._http = http.server.ThreadingHTTPServer((address, 0), handler)
        self.seen: list[tuple[str, str | None]] = []
        self._http.seen = self.seen  # type: ignore[attr-defined]
        self.host = address
        self.port = self._http.server_port
        self.url = f"http://{address}:{self.port}"
        self._thread = threading.Thread(target=self._http.serve_forever)
        self._thread.start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """(a server to be named, another one)."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "hello.txt").write_text("hello\n")
    with contextlib.ExitStack() as stack:
        both = []
        for address in (LISTED, OTHER):
            both.append(Server(address, folder))
            stack.callback(both[-1].close)
        yield both[0], both[1]


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    return Ground(tmp_path, monkeypatch)


def judged(ground: Ground, hosts: list[str], *argv: str) -> dict[str, Any]:
    given = {"argv": list(argv), "access": "network", "hosts": hosts}
    made = build_action(
        "s1", "c1.0", "toolu_1", "exec", given, gather(ground.tree, "exec", given, SandboxConfig())
    ).to_wire()
    assert "refused" not in made
    return made


def call(ground: Ground, hosts: list[str], *argv: str) -> tuple[spawn.CallOutcome, str]:
    return ground.run(judged(ground, hosts, *argv))


def python(ground: Ground, hosts: list[str], code: str, *argv: str) -> tuple[spawn.CallOutcome, str]:
    return call(ground, hosts, bubblewrap.base_python(), "-c", code, *argv)


def test_the_action_says_what_can_be_reached(ground: Ground) -> None:
    made = judged(ground, ["PyPI.org", "files.example:8443", "pypi.org"], "true")
    assert made["effects"] == ["network:pypi.org", "network:files.example:8443"]
    assert (made["sandbox"]["network"], made["sandbox"]["hosts"]) == (False, ["pypi.org", "files.example:8443"])
    assert made["env"]["https_proxy"] == made["env"]["HTTPS_PROXY"] == f"http://127.0.0.1:{egress_relay.PORT}"


def test_a_named_host_is_reached_by_the_programs_people_use(ground: Ground, served: tuple[Server, Server]) -> None:
    server = served[0]
    named = [f"{server.host}:{server.port}"]
    assert python(ground, named, GET, f"{server.url}/hello.txt") == (spawn.CallOutcome("ok", 0, [], ""), "hello\n")
    assert server.seen[-1] == ("/hello.txt", f"{server.host}:{server.port}")
    if (curl := Path("/usr/bin/curl")).exists():
        assert call(ground, named, str(curl), "-sS", f"{server.url}/hello.txt")[1] == "hello\n"
        tunnelled = call(ground, named, str(curl), "-sS", "--proxytunnel", f"{server.url}/hello.txt")
        assert tunnelled == (spawn.CallOutcome("ok", 0, [], ""), "hello\n")


def test_git_clones_from_a_named_host(ground: Ground, served: tuple[Server, Server]) -> None:
    server = served[0]
    git(ground.base / "served", "clone", "-q", "--bare", str(ground.repo), "x.git")
    git(ground.base / "served" / "x.git", "update-server-info")
    outcome, text = call(ground, [f"{server.host}:{server.port}"], "git", "clone", "-q", f"{server.url}/x.git", "copy")
    assert outcome.status == "ok", text
    assert (ground.tree.root / "copy" / ".git").is_dir()


def test_what_is_not_named_is_refused_with_a_reason(ground: Ground, served: tuple[Server, Server]) -> None:
    server, other = served
    named = [f"{server.host}:{server.port}"]
    for url in (
        other.url,
        f"http://{server.host}:{other.port}",
        f"http://localhost:{server.port}",
        "http://evil.invalid",
    ):
        code = GET.replace("urllib.request.urlopen", "urllib.request.build_opener(urllib.request.ProxyHandler()).open")
        outcome, text = python(ground, named, f"import os; os.environ['no_proxy'] = ''\n{code}", f"{url}/hello.txt")
        assert outcome.status == "error", text
        assert f"is not among the hosts this call named ({named[0]})" in text
    assert other.seen == []
    assert server.seen == []


def test_there_is_no_way_past_the_proxy(ground: Ground, served: tuple[Server, Server]) -> None:
    server = served[0]
    named = [f"{server.host}:{server.port}"]
    for address in (server.host, "127.0.0.1"):
        assert python(ground, named, DIRECT, address, str(server.port))[0].status == "error"
    _, text = python(
        ground, named, "import os; print([fd for fd in range(3, 64) if os.path.exists(f'/proc/self/fd/{fd}')])"
    )
    assert text == "[]\n", "no descriptor of the proxy may stay open in the command"
    _, text = python(
        ground, named, "print(open('/proc/net/route').read().count(chr(10)), open('/proc/net/dev').read().count(':'))"
    )
    assert text == "1 1\n", "the call has a network of its own with nothing but loopback"


def test_loopback_inside_stays_the_calls_own(ground: Ground, served: tuple[Server, Server]) -> None:
    code = """
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://localhost:{server.server_port}/").status)
"""
    _, text = python(ground, [f"{LISTED}:{served[0].port}"], code)
    assert text.splitlines()[-1] == "200", text


def test_the_machines_own_loopback_is_reached_only_when_it_is_named(ground: Ground, tmp_path: Path) -> None:
    folder = tmp_path / "own"
    folder.mkdir()
    (folder / "hello.txt").write_text("own\n")
    server = Server("127.0.0.1", folder)
    try:
        for name in ("localhost", "127.0.0.1"):
            _, text = python(ground, [f"{name}:{server.port}"], GET, f"http://{name}:{server.port}/hello.txt")
            assert text == "own\n"
    finally:
        server.close()


def test_requests_that_are_read_differently_elsewhere_are_refused(
    ground: Ground, served: tuple[Server, Server]
) -> None:
    server, other = served
    named = f"{server.host}:{server.port}"
    code = f"""
import socket, sys
for request in sys.argv[1:]:
    with socket.create_connection(("127.0.0.1", {egress_relay.PORT}), 10) as s:
        s.sendall(bytes.fromhex(request))
        print(s.recv(65536).split()[1].decode())
"""
    tries = [
        f"CONNECT {named}\0.evil.invalid:80 HTTP/1.1",
        f"CONNECT me@{named} HTTP/1.1",
        f"CONNECT {server.host}.:{server.port} HTTP/1.1",
        f"CONNECT 127.2:{server.port} HTTP/1.1",
        f"CONNECT 2130706434:{server.port} HTTP/1.1",
        f"CONNECT 0x7f.0.0.2:{server.port} HTTP/1.1",
        f"CONNECT 127.0.0.02:{server.port} HTTP/1.1",
        f"CONNECT [::ffff:{server.host}]:{server.port} HTTP/1.1",
        f"CONNECT b\xfccher.invalid:{server.port} HTTP/1.1",
        f"CONNECT {server.host} HTTP/1.1",
        f"GET http://{named}@{other.host}:{other.port}/ HTTP/1.1",
        f"GET https://{named}/ HTTP/1.1",
        f"GET /hello.txt HTTP/1.1\r\nHost: {named}",
        f"GET http://{named}/ HTTP/1.1\r\n folded: x",
        f"GET http://{named}/ HTTP/1.1\nHost: {other.host}",
        f"GET  http://{named}/ HTTP/1.1",
        f"get http://{named}/ HTTP/1.1",
    ]
    requests = [f"{line}\r\n\r\n".encode("latin-1").hex() for line in tries]
    outcome, text = python(ground, [named], code, *requests)
    assert outcome.status == "ok", text
    assert set(text.split()) <= {"400", "403"}, text
    assert len(text.split()) == len(tries)
    assert server.seen == []
    assert other.seen == []


def test_the_host_header_is_the_one_that_was_dialled(ground: Ground, served: tuple[Server, Server]) -> None:
    server = served[0]
    fields = "Host: evil.invalid\\r\\nProxy-Authorization: x"
    code = f"""
import socket, sys
with socket.create_connection(("127.0.0.1", {egress_relay.PORT}), 10) as s:
    s.sendall(b"GET {server.url}/hello.txt HTTP/1.1\\r\\n{fields}\\r\\n\\r\\n")
    print(s.makefile("rb").read().decode().endswith("hello\\n"))
"""
    assert python(ground, [f"{server.host}:{server.port}"], code)[1] == "True\n"
    assert server.seen == [("/hello.txt", f"{server.host}:{server.port}")]


def test_connections_are_capped_and_the_next_call_is_not_harmed(ground: Ground, served: tuple[Server, Server]) -> None:
    server = served[0]
    named = [f"{server.host}:{server.port}"]
    code = f"""
import socket
open_ones = [socket.create_connection(("127.0.0.1", {egress_relay.PORT}), 10) for _ in range(90)]
closed = 0
for s in open_ones[64:]:
    closed += s.recv(1) == b""
print(closed)
"""
    assert python(ground, named, code)[1] == "26\n"
    assert python(ground, named, GET, f"{server.url}/hello.txt")[1] == "hello\n"


# -- its life --------------------------------------------------------------------------------------


def proxies(host: str) -> list[int]:
    """Living proxies that were started for ``host``."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            if name.isdigit() and host.encode() in (words := Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")):
                found += [int(name)] if any(word.endswith(b"sandbox/egress_proxy.py") for word in words) else []
    return found


def test_the_proxy_ends_with_its_call(ground: Ground) -> None:
    name = f"t{os.getpid()}.invalid"
    made = judged(ground, [name], "sleep", "600")
    ready = spawn.command(from_wire(made), ground.folder, ground.folder.spool / "1")
    null = os.open("/dev/null", os.O_RDWR)
    results, result = os.pipe()
    pid = spawn.start(ready, null, result)
    os.close(result)
    os.close(null)
    assert b"running" in os.read(results, 1000)
    assert len(proxies(name)) == 1
    spawn.stop(ready, pid)
    os.waitpid(pid, 0)
    os.close(results)
    wait_until("the proxy is gone", lambda: not proxies(name))


def test_without_its_proxy_nothing_runs(ground: Ground) -> None:
    made = judged(ground, [f"u{os.getpid()}.invalid"], "touch", "ran")
    ready = spawn.command(from_wire(made), ground.folder, ground.folder.spool / "1")
    ours, theirs = socket.socketpair()
    results, result = os.pipe()
    null = os.open("/dev/null", os.O_RDWR)
    given = {0: null, 1: null, 2: null, 3: ready.action_fd, 4: result, egress_relay.CHANNEL_FD: theirs.fileno()}
    pid = namespace_clone.spawn(ready.argv, given, runner.main)
    for end in (ours, theirs):
        end.close()
    for fd in (result, null, ready.action_fd):
        os.close(fd)
    _, status = os.waitpid(pid, 0)
    with open(results, "rb") as said:
        assert spawn.outcome(ready, status, said.read()).status == "refused"
    assert not (ground.tree.root / "ran").exists()


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Keepers]:
    with keepers(tmp_path / "fleet") as fleet:
        yield fleet


def test_a_keeper_that_is_killed_leaves_no_proxy(fleet: Keepers, tmp_path: Path) -> None:
    name = f"k{os.getpid()}.invalid"
    work = tmp_path / "work"
    work.mkdir()
    what = action(work, "c0.0", ["sleep", "600"], access="network")
    what["sandbox"]["hosts"] = [name]
    keeper = fleet.spawn()
    link = fleet.supervisor()
    link.append(*allowed(what))
    link.call("execute", call_id="c0.0")
    (proxy,) = wait_until("the proxy runs", lambda: proxies(name))
    who = proc.identify(proxy)
    assert who is not None
    fleet.kill(keeper["pid"])
    wait_until("the proxy is gone", lambda: not proc.alive(who))


def test_a_keeper_runs_such_a_call_to_its_end(fleet: Keepers, tmp_path: Path, served: tuple[Server, Server]) -> None:
    work = tmp_path / "work"
    work.mkdir()
    server = served[0]
    named = f"{server.host}:{server.port}"
    argv = [bubblewrap.base_python(), "-c", GET, f"{server.url}/hello.txt"]
    what = action(work, "c0.0", argv, access="network", env=egress_relay.environment([server.host]))
    what["sandbox"]["hosts"] = [named]
    fleet.spawn()
    link = fleet.supervisor()
    link.append(*allowed(what))
    link.call("execute", call_id="c0.0")

    def ends() -> list[dict[str, Any]]:
        return [record["data"] for record in fleet.log() if record["type"] == "tool.ended"]

    (end,) = wait_until("the call has ended", ends)
    assert (end["status"], end["preview"]) == ("ok", "hello\n")
    wait_until("the proxy is gone", lambda: not proxies(named))
