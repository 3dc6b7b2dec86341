"""Scenarios written in the goal itself: ``play: [{"text": …, "calls": [[tool, input], …]}, …]``; ``long: N``, N turns
of ordinary work and a pause; ``commands: N by TOOL``, N turns of one small shell command each; ``a file a task``, for a
plan whose entries are numbers: each task writes ``<entry>.txt``; ``asks for the rest``, of what it was shown a part of.
"""

from __future__ import annotations

import json
import re
from typing import Any

from harness.simulator.script import Call, Scenario, Script, Turn


def _play(goal: str) -> Script:
    text = goal[goal.index("play:") + 5 :]
    turns, _ = json.JSONDecoder().raw_decode(text.strip())
    for turn in turns:
        yield Turn(
            turn.get("text", ""),
            tuple(Call(tool, _full(arguments)) for tool, arguments in turn.get("calls", [])),
            stop_reason=turn.get("stop_reason", ""),
        )


def _full(arguments: dict[str, Any]) -> dict[str, Any]:
    """``{"times": N, "of": TEXT}`` is a long text, which no command line would take."""
    return {k: v["of"] * v["times"] if isinstance(v, dict) and "times" in v else v for k, v in arguments.items()}


def _long(goal: str) -> Script:
    """In turn: write 3 KB, read it, print 20 KB, edit it, list; ``n<turn>.txt`` says how far it is."""
    for turn in range(int(goal.split("long:")[1].split()[0])):
        path = f"n{turn - turn % 5}.txt"
        script = f"seq -f '{turn} %010.0f' 1500"
        calls = (
            Call("write_file", {"path": path, "content": f"first\n{turn:06d}\n" + "a line of ordinary length\n" * 120}),
            Call("read_file", {"path": path}),
            Call("shell", {"script": script}),
            Call("edit_file", {"path": path, "old": "first\n", "new": f"edited in turn {turn}\n"}),
            Call("list_files", {}),
        )
        yield Turn(f"Turn {turn}.", (calls[turn % 5],))
    yield Turn("A pause.", (Call("exec", {"argv": ["sleep", "600"], "timeout_s": 600}),))


_COMMAND_IN = {"shell": "script", "Bash": "command"}
"""The argument that takes the command, by the name an agent gives its shell."""


def _commands(goal: str) -> Script:
    """Each turn writes its number, from 0 on, into the file ``turn``."""
    count, tool = goal.split("commands:")[1].split(" by ")
    name = tool.split()[0]
    for turn in range(int(count)):
        yield Turn(f"Turn {turn}.", (Call(name, {_COMMAND_IN[name]: f"echo {turn} > turn"}),))


_TASK = re.compile(r"^Task \d+ of this session\b.*? work on (\d+) of", re.MULTILINE)


def _file_a_task(goal: str) -> Script:
    """What it is at is read in the page that each task begins with."""
    entry = _TASK.search(goal)
    if entry is not None:
        yield Turn(f"{entry[1]} is a file.", (Call("write_file", {"path": f"{entry[1]}.txt", "content": "done\n"}),))
    yield Turn("It is done.")


_READ_IT = re.compile(r"read_output with call (c\d+\.\d+)")


def _asks_for_the_rest(goal: str) -> Script:
    """It edits, and says that it is done; whatever it is then shown a part of, it reads from its first line on."""
    heard = yield Turn("An edit.", (Call("write_file", {"path": "a.txt", "content": "x\n"}),))
    for _ in range(2):
        named = _READ_IT.findall("\n".join(heard.texts))
        heard = yield Turn("More.", tuple(Call("read_output", {"call": one, "limit": 1}) for one in named))
        heard = yield Turn("It is done.")


SCENARIOS = [
    Scenario("asks-for-the-rest", re.compile(r"\basks for the rest\b"), _asks_for_the_rest),
    Scenario("file-a-task", re.compile(r"\ba file a task\b"), _file_a_task),
    Scenario("commands", re.compile(r"commands:\s*\d+ by \w+"), _commands),
    Scenario("long", re.compile(r"long:\s*\d+"), _long),
    Scenario("scripted", re.compile(r"play:\s*\["), _play),
]
