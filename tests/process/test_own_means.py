"""A session whose model's profile has the endpoint compact by itself and bring its own memory tool, on a real fleet."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

import pytest

from harness.budget import prices
from harness.eventlog import blobs
from harness.events import message_parts
from harness.events import types as t
from tests.fleetlib import HOLD, fleet, kill, play
from tests.process.recorder import recorded

pytestmark = pytest.mark.timeout(300)
PROFILE = """
[profiles."claude-haiku"]
working_tokens = 150000
api_compaction = 50000
api_memory = true
"""
PIECE = {"times": 1000, "of": "a line of ordinary length\n"}


HOURLY = """
[profiles."claude-haiku"]
cache_hour = true
"""


def memory(command: str, **given: Any) -> tuple[str, dict[str, Any]]:
    return "memory", {"command": command, **given}


def test_the_endpoints_own_compaction_and_memory_tool() -> None:
    notes = "/memories/notes.md"
    goal = play(
        *[[("write_file", {"path": f"big{n}.txt", "content": PIECE})] for n in range(9)],
        [HOLD],
        [
            memory("view", path="/memories"),
            memory("create", path=notes, file_text="begin with a.txt\n"),
            memory("insert", path=notes, insert_line=1, insert_text="then b.txt"),
            memory("create", path=notes, file_text="again"),
            memory("view", path="/etc/passwd"),
        ],
        [memory("rename", old_path=notes, new_path="/memories/d/plan.md"), memory("view", path="/memories/d/plan.md")],
        [memory("create", path="/memories/x", file_text="gone soon"), memory("delete", path="/memories/x")],
        "All is written.",
    )
    with fleet(config=PROFILE) as f, recorded(f) as sent:
        sid = f.launch(goal)
        f.wait_event_count(sid, "tool.started", 10)
        kill(f.brain_pid(sid))
        f.release(sid)
        f.wait_state(sid, "done")
        records = f.records(sid)
        replies = [r.body for r in records if isinstance(r.body, t.ModelMessage)]
        (compacted,) = [b for b in replies if b.compaction is not None]
        stored = compacted.parts_blob
        parts = compacted.parts or message_parts.decode(
            blobs.get(f.folders.session(sid).blobs, stored.sha if stored else "")
        )
        block = next(part for part in parts if isinstance(part, message_parts.Private)).data
        assert (block["type"], "What came before" in block["content"]) == ("compaction", True)
        assert compacted.compaction is not None
        assert compacted.compaction.given >= 50_000 > compacted.context.total
        notes_told = [r.body.text for r in records if isinstance(r.body, t.HarnessNote)]
        assert any("the endpoint summarised by itself what came before" in text for text in notes_told)
        leases = [r.seq for r in records if isinstance(r.body, t.LeaseGranted)]
        assert len(leases) > 1
        carried = [b for b in sent.bodies if '"compaction"' in json.dumps(b["messages"])]
        assert len(carried) >= 4, "every later request has it, those of the next brain too"
        assert all(any(block in m["content"] for m in b["messages"]) for b in carried), "as it came"
        assert all(
            {"type": "memory_20250818", "name": "memory"} in [_plain(one) for one in b["tools"]] for b in carried
        )
        state = f.state(sid)
        assert state.context.tokens < 50_000
        assert not any(isinstance(r.body, (t.ContextCleared, t.ContextReset, t.ContextCompacted)) for r in records)
        with urllib.request.urlopen(f"{f.base_url}/_sim/usage", timeout=60) as answer:
            billed = json.load(answer)["total"]["nano"]
        assert sum(b.cost_nano for b in replies) == billed, "what the compaction took is in the ledger"

        calls = {r.body.call_id for r in records if isinstance(r.body, t.ToolProposed) and r.body.tool == "memory"}
        ends = [r.body for r in records if isinstance(r.body, t.ToolEnded) and r.body.call_id in calls]
        assert [b.status for b in ends] == ["ok", "ok", "ok", "error", "refused", "ok", "ok", "ok", "ok"]
        assert ends[3].preview == f"File {notes} already exists"
        assert "begins with /memories" in ends[4].preview
        assert ends[6].preview.split("\n")[1:3] == ["     1\tbegin with a.txt", "     2\tthen b.txt"]
        judged = {r.body.call_id for r in records if isinstance(r.body, t.ToolJudged)}
        assert {b.call_id for b in ends if b.status == "ok"} <= judged, "they pass the gate as every call"
        changed = [(b.scope, b.key, b.op) for r in records if isinstance(b := r.body, t.MemoryChanged)]
        assert changed == [
            ("session", "notes.md", "created"),
            ("session", "notes.md", "modified"),
            ("session", "d/plan.md", "created"),
            ("session", "notes.md", "deleted"),
            ("session", "x", "created"),
            ("session", "x", "deleted"),
        ]
        (listed,) = f.json("memory", "ls")
        assert [(m["scope"], m["of"], m["key"]) for m in listed["memories"]] == [("session", sid, "d/plan.md")]
        assert f.violations() == []


def _plain(tool: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tool.items() if name != "cache_control"}


def test_a_prompt_cache_of_an_hour_is_asked_for_paid_for_and_reserved() -> None:
    goal = play([("write_file", {"path": "a.txt", "content": PIECE})], [("exec", {"argv": ["true"]})], "Done.")
    for config, ttl in ((HOURLY, "1h"), ("", None)):
        with fleet(config=config) as f, recorded(f) as sent:
            sid = f.launch(goal)
            f.wait_state(sid, "done")
            marks = [block["cache_control"].get("ttl") for body in sent.bodies for block in marked(body)]
            assert set(marks) == {ttl}
            assert len(marks) >= 3 * len(sent.bodies)
            used = [r.body.usage for r in f.records(sid) if isinstance(r.body, t.ModelMessage)]
            hour = sum(u.cache_write_1h for u in used)
            five = sum(u.cache_write_5m for u in used)
            assert (hour > 0, five > 0) == ((True, False) if ttl else (False, True))
            first = next(r.body for r in f.records(sid) if isinstance(r.body, t.ModelRequest))
            tokens = (first.est_input, first.max_tokens)
            dear, cheap = (prices.worst_case(first.model, *tokens, hour_writes=hourly).nano for hourly in (True, False))
            assert dear > cheap, "what it may cost at most is more"
            assert first.reserved_nano == (dear if ttl else cheap)
            assert f.violations() == []


def marked(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The blocks of a request that have a cache breakpoint."""
    said_in = [block for message in body["messages"] for block in message["content"]]
    return [block for block in (*body["tools"], *body["system"], *said_in) if "cache_control" in block]
