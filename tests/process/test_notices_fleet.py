"""A person who does not watch is called once, by real programs, with nothing in it but whose it is and of what kind."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.protocol.client import Client
from harness.protocol.connection.transport import UnixSocket
from tests.fleetlib import KEY, Fleet, fleet, kill, play, wait_for

pytestmark = pytest.mark.sandbox
SOON = '\n[notify]\ndwell = 0\ncool_down = "1s"\n'


def ask(text: str) -> str:
    return play([("ask_person", {"question": text})], "As you say.")


def program(folder: Path, name: str, record: Path) -> Path:
    """Records one line of JSON a run: arguments, input and environment."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(
        "#!/usr/bin/env python3\nimport json, os, sys\n"
        f"with open({str(record)!r}, 'a') as f:\n"
        "    f.write(json.dumps([sys.argv[1:], sys.stdin.read(), dict(os.environ)]) + '\\n')\n"
    )
    path.chmod(0o755)
    return path


def got(record: Path) -> list[Any]:
    return [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []


def told(f: Fleet, approval_id: str) -> bool:
    file = f.folders.state / "notices.json"
    return file.exists() and json.loads(file.read_bytes())["items"].get(approval_id, {}).get("times", 0) > 0


def earlier(f: Fleet, seconds: float) -> None:
    """Everything that was said was said so much longer ago; nobody waits here for what takes a minute at least."""
    file = f.folders.state / "notices.json"
    memory = json.loads(file.read_bytes())
    memory["spoke"] -= seconds
    for one in memory["items"].values():
        one["last"] -= seconds
    file.write_text(json.dumps(memory))


def test_a_person_is_called_once_by_the_desktop_or_a_command_and_not_while_watching() -> None:
    with fleet(config=SOON) as f:
        record = f.root / "record"
        bin_folder = f.root / "bin"
        program(bin_folder, "notify-send", record)
        own = program(bin_folder, "own", record)
        f.extra["PATH"] = f"{bin_folder}{os.pathsep}{os.environ['PATH']}"
        f.extra["ANTHROPIC_API_KEY"] = KEY
        sid = f.launch(ask("rm -rf / \x1b]9;pwned\x07?"), more=("--name=--help <b>$(id)\\n\u202e",))
        asked = f.approval(sid)["approval_id"]
        (args, _, env) = wait_for("the desktop's program", lambda: got(record))[0]
        assert args[:4] == ["--app-name=Watchfloor", "--urgency=normal", "--", "Watchfloor: 1 thing needs you"]
        assert args[4].startswith("--help &lt;b&gt;$(id)/n")
        assert args[4].endswith(": asks you something")
        assert "\u202e" not in args[4]
        assert "pwned" not in str(args)
        assert not [name for name, value in env.items() if "ANTHROPIC" in name or KEY in value]

        wait_for("it is kept", lambda: told(f, asked))
        kill(f.supervisor_pid())
        f.folders.config_file.write_text(
            f.folders.config_file.read_text() + f"command = {json.dumps([str(own), '$(id)', ';ls'])}\n"
        )
        f.run("supervisor", "start")
        f.launch(ask("Which?"), name=f"uses {KEY}")
        args, text, env = wait_for("the person's own command", lambda: got(record)[1:])[0]
        assert args == ["$(id)", ";ls"], "no shell reads it"
        assert text.splitlines()[0] == "Watchfloor: 1 thing needs you", "what was said before the end is not said again"
        assert KEY not in text
        assert env["WATCHFLOOR_URGENCY"] == "normal"

        with Client(UnixSocket(f.folders.supervisor_socket)) as screen:
            screen.call("subscribe")
            seen = f.approval(f.launch(ask("Now?"), name="seen"))["approval_id"]
            wait_for("it counts as seen", lambda: told(f, seen))
            assert len(got(record)) == 2
            screen.call("watching", watched=False)
            f.launch(ask("Anybody?"), name="apart")
            wait_for("the call past a screen that nobody watches", lambda: len(got(record)) == 3)
            assert "apart: asks you something" in got(record)[2][1]

        own.unlink()
        f.launch(ask("Gone?"), name="unsaid")
        wait_for("the failure is shown", lambda: "a notice was not sent" in f.run("doctor", check=False).stdout)
        assert len(got(record)) == 3
        assert f.violations() == []


def test_what_is_risky_is_said_again_and_what_was_put_off_only_when_it_is_back() -> None:
    with fleet(config=f"{SOON}again = 60\n") as f:
        record = f.root / "record"
        own = program(f.root / "bin", "own", record)
        f.folders.config_file.write_text(f.folders.config_file.read_text() + f"command = {json.dumps([str(own)])}\n")
        f.run("supervisor", "start")
        broken = f.launch(
            play([("shell", {"script": "rm notes.txt"})], "Done."), checks=("test -e notes.txt",), name="broken"
        )
        f.wait_state(broken, "failed")
        wait_for("the call for what failed", lambda: len(got(record)) == 1)
        assert "broken: stands still or failed" in got(record)[0][1]
        risky = [("exec", {"argv": ["touch", "here"], "access": "unsandboxed"})]
        asked = f.approval(f.launch(play(risky, "Done."), name="risky"))
        assert asked["risk"] in ("high", "critical")
        wait_for("the call for what is risky", lambda: len(got(record)) == 2)
        assert f"risky: asks to do something ({asked['risk']} risk)" in got(record)[1][1]
        assert got(record)[1][2]["WATCHFLOOR_URGENCY"] == "critical"
        wait_for("it is kept", lambda: told(f, asked["approval_id"]))

        f.run("snooze", broken, "--for", "1h")
        kill(f.supervisor_pid())
        earlier(f, 61.0)
        f.run("supervisor", "start")
        wait_for("what is risky again", lambda: len(got(record)) == 3)
        text = got(record)[2][1]
        assert text.startswith("Watchfloor: 1 thing still needs you\nrisky: "), text
        f.approve(asked["approval_id"])

        wait_for("what is put off is forgotten", lambda: not told(f, f"held:{broken}"))
        f.run("snooze", broken, "--for", "1s")
        wait_for("the call for what is back", lambda: len(got(record)) == 4)
        assert "broken: stands still or failed" in got(record)[3][1]
        assert "risky" not in got(record)[3][1]
        assert f.violations() == []
