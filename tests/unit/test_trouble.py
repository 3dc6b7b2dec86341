"""Every trouble that the source can report has its words; none of them speaks of our insides; what ends by itself is no
failure.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import astuple

from app.action_table import registry
from app.cli.grammar import parser
from harness.domain import problems as trouble
from harness.domain.calls.approval_kind import Request
from harness.domain.problems import CODES, FLEET, PARKED, PARTS, REQUESTS, SESSION, Trouble
from harness.domain.states import ParkedFor
from harness.events import types as t
from harness.projections.apply import fold
from harness.projections.state.row_state import Liveness
from harness.supervisor.upkeep import health
from harness.views.rows import row
from harness.views.session_views import ERRORS, NEEDS_YOU, RUNNING, FleetView, TroubleView, troubled
from widgets.fleet.fleet_bar import trouble_phrase

HARNESS = Path(trouble.__file__).parents[1]
INSIDE = re.compile(
    r"\b(lease|epoch|fold|poisoned|in_doubt|no_space|keeper|brain|hands|quarantine\w*|reservation|fork server|guardian"
    r"|generation)\b",
    re.IGNORECASE,
)
TABLES = {"SESSION": SESSION, "PARKED": PARKED, "FLEET": FLEET}


Part = ast.Call | ast.Assign | ast.Dict | ast.Subscript
Source = list[tuple[Path, list[Part]]]


@pytest.fixture(scope="module")
def source() -> Source:
    return [
        (path, [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, Part)])
        for path in sorted(HARNESS.rglob("*.py"))
        if "simulator" not in path.parts
    ]


def calls(source: Source, name: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call of a function or class of this name, with where it stands."""
    for path, nodes in source:
        for node in nodes:
            if isinstance(node, ast.Call) and name in (getattr(node.func, "id", ""), getattr(node.func, "attr", "")):
                yield f"{path.relative_to(HARNESS)}:{node.lineno}", node


def texts(node: ast.expr) -> set[str]:
    """The texts that an expression can be, as far as it is made of literals."""
    if isinstance(node, ast.IfExp):
        return texts(node.body) | texts(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def argument(call: ast.Call, at: int, name: str) -> set[str]:
    given = [k.value for k in call.keywords if k.arg == name] + call.args[at : at + 1]
    return texts(given[0]) if given else set()


def test_every_code_of_a_refusal_has_its_words(source: Source) -> None:
    found = {code: where for where, call in calls(source, "OpError") for code in argument(call, 0, "code")}
    for path, nodes in source:  # errors that carry their code on the class, or set it before they are raised
        for node in nodes:
            if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "code" for target in node.targets):
                found |= {code: f"{path.relative_to(HARNESS)}:{node.lineno}" for code in texts(node.value) if code}
            if isinstance(node, ast.Dict):  # as a process puts it on the wire
                pairs = zip(node.keys, node.values, strict=True)
                found |= dict.fromkeys(
                    (code for key, value in pairs if key and texts(key) == {"code"} for code in texts(value)), str(path)
                )
    assert len(found) > 50, "the search finds what is there"
    assert {"no_space", "poisoned", "stale_epoch", "git_failed"} <= found.keys()
    assert {code: where for code, where in found.items() if code not in CODES} == {}
    assert set(CODES.values()) <= SESSION.keys()


def test_every_reason_to_park_has_its_words(source: Source) -> None:
    untyped = {why for _, call in calls(source, "SessionParked") for why in argument(call, 99, "why")} | {
        why for _, call in calls(source, "Park") for why in argument(call, 0, "why")
    }
    assert not untyped, "why an agent leaves is a ParkedFor: the checker of types knows them all then"
    assert set(ParkedFor) <= PARKED.keys()


def test_every_kind_of_request_has_its_words() -> None:
    assert REQUESTS.keys() == set(Request)
    for kind in Request:
        assert trouble.requested(kind).person, "a request waits for a person"


def test_every_part_that_is_set_aside_has_its_name(source: Source) -> None:
    found = {part for _, call in calls(source, "quarantine") for part in argument(call, 1, "part")}
    assert found == {"brain", "supervisor"}
    assert found <= PARTS.keys()


def test_every_trouble_of_a_session_comes_from_the_table(source: Source) -> None:
    kinds = {where: kind for where, call in calls(source, "Trouble") for kind in argument(call, 0, "kind")}
    assert len(kinds) > 5
    assert {where: kind for where, kind in kinds.items() if kind not in SESSION} == {}
    problems = set()
    for _, nodes in source:
        for node in nodes:
            if isinstance(node, ast.Subscript) and getattr(node.value, "attr", "") == "problems":
                problems |= texts(node.slice)
    assert {"policy", "config", "watch"} <= problems
    assert problems <= FLEET.keys()


@pytest.mark.parametrize(("table", "kind"), [(name, kind) for name, table in TABLES.items() for kind in table])
def test_words_are_for_people(table: str, kind: str) -> None:
    words = TABLES[table][kind]
    assert words.headline
    assert words.next, "it says what happens next by itself"
    assert words.do or not words.person, "what waits for a person says what to do"
    assert len(words.headline) <= 56, "it is readable in a row"
    for text in astuple(words):
        assert isinstance(text, bool) or not INSIDE.search(text), text
    if words.action:
        assert words.action in registry.BY_ID
    if words.command:
        verb = words.command.split()[1]
        assert words.command.startswith("watchfloor ")
        assert f" {verb} " in f" {' '.join(parser.build().format_help().split())} ", "the command exists"


@pytest.mark.parametrize("text", [*REQUESTS.values(), *PARTS.values()])
def test_short_words_are_for_people_too(text: str) -> None:
    assert not INSIDE.search(text)


def started() -> list[t.Body]:
    return [
        t.SessionIntent(
            goal="g",
            repo="/r",
            branch="b",
            worktree="/w",
            base_url="u",
            model="m",
            name="n",
            checks=[],
            credential="",
            caps=t.Caps(),
        ),
        t.SessionCreated(worktree="/w", branch="b", base="0" * 40),
    ]


ASKS = t.ApprovalRequested(
    approval_id="a1", kind="in_doubt", title="did this happen? git push", options=["done"], call_id="c1", action_hash=""
)


PARKED_ALIVE = Liveness(keeper=True, brain=False)


def record(seq: int, body: t.Body) -> t.Record:
    return t.Record(seq, "2026-01-02T03:00:00Z", "test", 0, body)


def made(*bodies: t.Body, live: Liveness = PARKED_ALIVE) -> tuple[str, str, str, str, str]:
    found = row("s1", fold(record(i, body) for i, body in enumerate([*started(), *bodies])), live)
    assert not INSIDE.search(found.detail), found.detail
    return found.state, found.group, found.detail, found.next, found.do


def test_rows_say_what_comes_next() -> None:
    assert made(ASKS) == (
        "waiting",
        NEEDS_YOU,
        "in doubt: did this happen? git push",
        PARKED["in_doubt"].next,
        PARKED["in_doubt"].do,
    )
    limited = made(t.SessionParked(why="limited"))
    assert limited[:3] == ("limited", RUNNING, "waits for the model's endpoint")
    assert limited[3] == PARKED["limited"].next
    assert made(t.SessionParked(why="no_space"))[2] == "the disk is full"
    assert made(t.SessionParked(why="something_new"))[2] == "something new"
    assert made(t.SessionDesired(state="paused"))[4] == "resume it"
    assert made(t.Quarantined(part="brain", reason="it died", restarts=3))[:3] == (
        "failed",
        ERRORS,
        "its agent's process failed 3 times: it died",
    )
    gone = made(live=Liveness(False, False))
    assert gone[0] == "lost"
    assert gone[1] == RUNNING, "it comes back by itself and needs nobody"
    working = made(live=Liveness(True, True))
    assert working[3:] == ("", "")


def test_trouble_that_ends_by_itself_is_no_failure() -> None:
    plain = row("s1", fold(record(i, body) for i, body in enumerate(started())), Liveness(True, True))
    full = troubled(plain, Trouble("no_space", "No space left on device"), held=False)
    assert (full.state, full.group, full.detail, full.evidence) == (
        "limited",
        RUNNING,
        "the disk is full",
        "No space left on device",
    )
    assert full.next == SESSION["no_space"].next
    held = troubled(plain, Trouble("gone", "why"), held=True)
    assert (held.state, held.group, held.command) == ("failed", ERRORS, "watchfloor resume s1")
    assert (held.detail, held.next) == (SESSION["gone"].headline, SESSION["set_aside"].next), (
        "what it was, and that nothing is tried any more"
    )
    unread = troubled(plain, Trouble("disk", "Permission denied"), held=True)
    assert (unread.state, unread.detail, unread.do) == ("failed", SESSION["disk"].headline, SESSION["set_aside"].do), (
        "nothing is tried any more: it must not say so"
    )
    asking = row("s1", fold(record(i, body) for i, body in enumerate([*started(), ASKS])), Liveness(True, False))
    assert troubled(asking, Trouble("no_space", "full"), held=False) == asking, (
        "a request is not hidden by what ends by itself"
    )


def test_the_worst_of_the_fleet_comes_first() -> None:
    found = health.fleet(
        {"policy": "line 3", "index": "", "disk": "3 MiB free", "ledger": "it is damaged", "new": "something"}
    )
    assert [view.headline for view in found] == [
        FLEET[kind].headline for kind in ("disk", "ledger", "policy", "warning")
    ]
    assert all(isinstance(view, TroubleView) and view.next for view in found)
    assert trouble_phrase(FleetView(troubles=found), 0.0) == "disk almost full"
    assert trouble_phrase(FleetView(), 0.0) == ""


def test_room_on_the_disk(tmp_path: Path) -> None:
    assert health.room(tmp_path) == "" or "MiB free" in health.room(tmp_path)
    assert "cannot be examined" in health.room(tmp_path / "not there")
