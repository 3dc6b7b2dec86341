"""The screens' tests play against a small supervisor of their own: it can do nothing that the real one cannot."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import app
from harness.protocol.connection.read_only import LOOKING
from harness.protocol.paths import Folders
from harness.supervisor.serving.client_ops import ClientOps
from harness.supervisor.serving.parts import Parts
from tests.tui.app_world import World

REAL = set(ClientOps(cast(Parts, SimpleNamespace(folders=Folders(*[Path(__file__).parent] * 3)))).table())
"""The names alone: nothing is carried out."""


def asked(function: ast.Call) -> str:
    """The operation that a call sends, when it sends one."""
    name = getattr(function.func, "attr", "") or getattr(function.func, "id", "")
    at = {"call": 0, "send": 1, "call_within": 1, "reply": 1, "reply_within": 2, "ask": 2}.get(name)
    if at is None or len(function.args) <= at:
        return ""
    op = function.args[at]
    return str(op.value) if isinstance(op, ast.Constant) and isinstance(op.value, str) else ""


def test_the_world_answers_only_what_the_supervisor_answers() -> None:
    assert {name.removeprefix("_op_") for name in vars(World) if name.startswith("_op_")} <= REAL


def test_the_program_asks_only_what_the_supervisor_answers() -> None:
    sent = set()
    for path in Path(app.__file__).parent.rglob("*.py"):
        sent |= {
            op for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call) and (op := asked(node))
        }
    assert {"launch", "decide", "desire", "status", "shutdown", "diff", "merge_look", "costs"} <= sent, (
        "the search finds what is there"
    )
    assert sent <= REAL


def test_what_only_looks_is_named_and_exists() -> None:
    """Whoever adds an operation says here whether its reply can be lost without harm."""
    assert LOOKING <= REAL
    assert {
        "checkpoint",
        "compact",
        "continue",
        "decide",
        "defer",
        "desire",
        "fork",
        "grant",
        "job_cancel",
        "launch",
        "lesson_accept",
        "lesson_reject",
        "memory_remove",
        "memory_rollback",
        "memory_set",
        "merge",
        "pull",
        "pull_opened",
        "purge",
        "remove",
        "resolve",
        "restore",
        "revoke",
        "say",
        "shutdown",
        "snooze",
        "undo",
    } == REAL - LOOKING
