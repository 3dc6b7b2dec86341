"""A running simulator for tests, and a tiny tool loop on the real SDK that plays a scenario against a real folder."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anthropic

KEY = "sk-ant-test-key"
TOOLS: list[dict[str, Any]] = [
    {"name": n, "description": f"{n} tool", "input_schema": {"type": "object"}}
    for n in ("read_file", "write_file", "edit_file", "list_files", "search", "exec", "shell")
]


@dataclass(frozen=True)
class Simulator:
    url: str
    pid: int

    def client(self, key: str = KEY) -> anthropic.Anthropic:
        return anthropic.Anthropic(base_url=self.url, api_key=key, max_retries=0, timeout=20)

    def control(self, path: str, body: object | None = None, method: str = "") -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.url}/_sim/{path}", data=data, method=method or ("GET" if body is None else "POST")
        )
        with urllib.request.urlopen(request, timeout=10) as reply:
            return json.load(reply)


@contextlib.contextmanager
def running(*arguments: str, speed: float = 0, key: str = KEY) -> Iterator[Simulator]:
    """A simulator process that ends with the block."""
    read, write = os.pipe()
    command = [
        sys.executable,
        "-P",
        "-s",
        "-m",
        "harness.simulator",
        "--speed",
        str(speed),
        "--key",
        key,
        "--ready-fd",
        str(write),
        "--exit-on-stdin-eof",
    ]
    process = subprocess.Popen([*command, *arguments], stdin=subprocess.PIPE, pass_fds=(write,))
    os.close(write)
    try:
        with os.fdopen(read) as ready:
            line = ready.readline()
        assert line, f"the simulator did not start: {process.wait(10)}"
        yield Simulator(f"http://127.0.0.1:{json.loads(line)['port']}", process.pid)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        assert process.wait(60) == 0


def run_tool(root: Path, name: str, given: dict[str, Any]) -> tuple[str, bool]:
    """One tool call for real, without a sandbox. Returns (text, is_error)."""
    path = root / str(given.get("path", "."))
    if name == "read_file":
        return path.read_text(), False
    if name == "list_files":
        return "\n".join(sorted(p.name for p in path.iterdir())), False
    if name == "write_file":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(given["content"])
        return "written", False
    if name == "edit_file":
        text = path.read_text()
        if text.count(given["old"]) != 1:
            return f"old text found {text.count(given['old'])} times in {path}", True
        path.write_text(text.replace(given["old"], given["new"]))
        return "edited", False
    made: dict[str, Callable[[], list[str]]] = {
        "exec": lambda: given["argv"],
        "shell": lambda: ["sh", "-c", given["script"]],
        "search": lambda: ["grep", "-rnE", given["pattern"], str(path)],
    }
    done = subprocess.run(made[name](), cwd=root, capture_output=True, text=True, timeout=30)
    return f"exit code {done.returncode}\n{done.stdout}{done.stderr}", done.returncode != 0 and name != "search"


@dataclass
class Played:
    messages: list[dict[str, Any]]
    text: str
    turns: int
    errors: list[str]
    tools: list[str]


def play(
    client: anthropic.Anthropic,
    root: Path,
    goal: str,
    *,
    deny: tuple[str, str] | None = None,
    limit: int = 40,
    model: str = "claude-sonnet-5-5",
) -> Played:
    """Run the loop until the model ends its turn. ``deny``: (word in the call's input, reason)."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": goal}]
    played = Played(messages, "", 0, [], [])
    while played.turns < limit:
        with client.beta.messages.stream(
            model=model,
            max_tokens=4096,
            messages=messages,  # type: ignore[arg-type]
            tools=TOOLS,  # type: ignore[arg-type]
            cache_control={"type": "ephemeral"},
        ) as stream:
            message = stream.get_final_message()
        played.turns += 1
        messages.append({"role": "assistant", "content": [b.to_dict() for b in message.content]})
        played.text = "".join(b.text for b in message.content if b.type == "text") or played.text
        uses = [b for b in message.content if b.type == "tool_use"]
        if not uses:
            return played
        results = []
        for use in uses:
            given: Any = use.input
            played.tools.append(use.name)
            if deny and deny[0] in json.dumps(given):
                text = f"The user denied this call: {deny[1]}"
                bad = True
            else:
                text, bad = run_tool(root, use.name, given)
            if bad:
                played.errors.append(text)
            results.append(
                {"type": "tool_result", "tool_use_id": use.id, "content": text or "(no output)", "is_error": bad}
            )
        messages.append({"role": "user", "content": results})
    return played
