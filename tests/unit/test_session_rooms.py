"""What the supervisor knows of a session beside its log: troubles by owner, and records that one room alone writes."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.problems import NONE, Trouble
from harness.supervisor.fleet.troubles import Owner, Troubles

SUPERVISOR = Path(__file__).resolve().parents[2] / "harness" / "supervisor"
OWNERS = get_args(Owner)
WRITERS = {
    "work": "sessions/conductor.py",
    "running": "calls/call_flow.py",
    "shown": "calls/approvals.py",
    "published": "calls/repository/publishing.py",
    "extent": "upkeep/extents.py",
    "kept_states": "calls/checkpoints.py",
    "printed": "upkeep/job_lines.py",
    "track": "calls/repository/publishing.py",
    "thinking": "sessions/brains.py",
}
"""The records of `fleet/rooms.py` and `fleet/thinking.py` by their name in a session, and the one file that writes
each; of the track that is whether something is still to be published.
"""
MUTATING = {"add", "append", "clear", "discard", "extend", "pop", "popitem", "remove", "setdefault", "update"}

said = st.tuples(st.sampled_from(OWNERS), st.sampled_from(["hold", "fail", "block"]), st.integers(0, 3))


def troubles() -> Troubles:
    return Troubles(lambda: None)


@given(st.lists(said))
def test_only_its_owner_takes_a_trouble_back(told: list[tuple[Owner, str, int]]) -> None:
    found = troubles()
    for owner, how, cause in told:
        getattr(found, how)(owner, Trouble("silent", f"{owner} {how} {cause}"))
    for owner in OWNERS:
        others = [one for one in found.blocks if one != owner]
        worst = found.worst
        found.unblock(owner)
        found.mended(owner)
        assert list(found.blocks) == others
        assert worst.cause.startswith(f"{owner} ") or found.worst == worst
    assert (found.worst, list(found.blocks), found.held) == (NONE, [], False)


def test_what_waits_for_a_person_is_shown_before_what_ends_by_itself() -> None:
    found = troubles()
    found.hold("log", Trouble("damaged", "a bad line"))
    found.fail("step", Trouble("gone", "no keeper"))
    assert (found.worst.kind, found.held) == ("damaged", True)
    found.linked()
    assert (found.worst.kind, found.held) == ("damaged", True), "a link mends no log"
    found.released()
    assert (found.worst, found.held) == (NONE, False)


def test_of_two_that_weigh_the_same_the_last_is_shown() -> None:
    found = troubles()
    for owner, kind in (("call", "poisoned"), ("step", "gone"), ("call", "silent")):
        found.fail(owner, Trouble(kind, owner))  # type: ignore[arg-type]
    assert found.worst.kind == "silent"
    found.mended("call")
    assert found.worst.kind == "gone", "what the other one said stands"


def test_a_row_changes_only_when_something_was_said_or_taken_back() -> None:
    changes: list[int] = []
    found = Troubles(lambda: changes.append(1))
    found.block("money", Trouble("ledger", "closed"))
    found.block("money", Trouble("ledger", "closed"))
    found.unblock("money")
    found.unblock("money")
    found.mended("step")
    found.linked()
    found.released()
    assert len(changes) == 2


def of_session(node: ast.expr) -> list[str]:
    """``["running", "executing"]`` for ``session.running.executing``; empty for what is not of a session."""
    names: list[str] = []
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        if isinstance(node, ast.Attribute):
            names.insert(0, node.attr)
        node = node.func if isinstance(node, ast.Call) else node.value
    if not isinstance(node, ast.Name):
        return []
    if node.id == "self" and names[:1] == ["_session"]:
        return names[1:]
    return names if node.id in ("session", "s") else []


def writes(tree: ast.AST) -> Iterator[tuple[int, list[str]]]:
    """Lines at which something of a session is assigned, deleted or changed in place."""
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.Delete):
            targets = node.targets
        elif isinstance(node, ast.AugAssign | ast.AnnAssign):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATING:
            targets = [node.func.value]
        for target in targets:
            for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                if names := of_session(part):
                    yield part.lineno, names


SOURCES = sorted(str(p.relative_to(SUPERVISOR)) for p in SUPERVISOR.rglob("*.py"))


@pytest.mark.parametrize("path", [p for p in SOURCES if p != "fleet/session.py"])
def test_a_session_is_written_by_itself_and_each_record_of_it_by_its_room(path: str) -> None:
    found = [
        f"line {line}: session.{'.'.join(names)}"
        for line, names in writes(ast.parse((SUPERVISOR / path).read_text("utf-8")))
        if not allowed(path, names)
    ]
    assert not found, f"{path} writes what is not its own: {found}"


def allowed(path: str, names: list[str]) -> bool:
    return WRITERS.get(names[0]) == path and len(names) > 1


def test_the_check_knows_a_write() -> None:
    text = "session.running.executing.add(1)\nsession.held = 1\ns.shown.cards[a] = b\nx = session.work\ndel session.a"
    assert [(line, names[0]) for line, names in sorted(writes(ast.parse(text)))] == [
        (1, "running"),
        (2, "held"),
        (3, "shown"),
        (5, "a"),
    ]
    assert not allowed("calls/judging.py", ["shown", "cards"])
    assert not allowed("sessions/conductor.py", ["work"]), "a record stays; what is in it changes"


def test_each_owner_of_troubles_is_one_file() -> None:
    files = defaultdict(set)
    for path in SOURCES:
        for node in ast.walk(ast.parse((SUPERVISOR / path).read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                first = node.args[0]
                if node.func.attr in ("hold", "fail", "block") and isinstance(first, ast.Constant):
                    files[first.value].add(path)
    assert set(files) == set(OWNERS), "a word for everybody who finds trouble, and nobody without"
    assert {owner: paths for owner, paths in files.items() if len(paths) > 1} == {}
