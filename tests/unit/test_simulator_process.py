"""The simulator as a process: how it says that it is ready, and when it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.protocol.connection import frames
from harness.simulator import __main__ as cli

COMMAND = [sys.executable, "-P", "-s", "-m", "harness.simulator"]


def ready(path: Path) -> dict[str, int]:
    deadline = time.monotonic() + 15
    while not path.exists():
        assert time.monotonic() < deadline, "the simulator never became ready"
        time.sleep(0.02)
    found: dict[str, int] = json.loads(path.read_text())
    return found


def test_ready_file_and_sigterm(tmp_path: Path) -> None:
    process = subprocess.Popen([*COMMAND, "--ready-file", str(tmp_path / "ready")], stdin=subprocess.DEVNULL)
    found = ready(tmp_path / "ready")
    assert found["pid"] == process.pid
    assert found["start"] == int(Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


def test_port_taken_is_said_plainly(tmp_path: Path) -> None:
    process = subprocess.Popen([*COMMAND, "--ready-file", str(tmp_path / "ready")], stdin=subprocess.DEVNULL)
    port = ready(tmp_path / "ready")["port"]
    second = subprocess.run([*COMMAND, "--port", str(port)], capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert second.returncode == 2
    assert "in use" in second.stderr
    assert "Traceback" not in second.stderr
    process.terminate()
    process.wait(10)


async def test_ends_once_nobody_listens_any_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "GRACE_S", 0.2)
    monkeypatch.setattr(cli, "LOOK_S", 0.05)
    path = tmp_path / "s.sock"
    sock = frames.listen(path)
    args = cli.parser().parse_args(["--exit-without", str(path), "--ready-file", str(tmp_path / "ready")])
    serving = asyncio.create_task(cli.serve(args))
    done, _ = await asyncio.wait([serving], timeout=0.8)
    assert not done, "it ended although somebody listened"
    sock.close()
    await asyncio.wait_for(serving, 10)
