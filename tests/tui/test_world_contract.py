"""The tests' small supervisor answers and pushes what the real one does: the same requests go to both, on states that
are alike, and what comes back has the same shape.
"""

from __future__ import annotations

import ast
import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.eventlog import blobs
from harness.events import types as t
from harness.memory.records import Place, Scope
from harness.projections.state.row_state import Liveness
from harness.protocol.connection import frames
from harness.protocol.paths import Folders
from harness.views.session_views import ApprovalView, FleetView, SessionRow
from tests.fleetlib import Fleet, fleet, git, make_repository, play, wait_for
from tests.tui import app_world
from tests.tui.app_world import PUSH, World, point, work
from tests.tui.taking_world import kept

pytestmark = pytest.mark.sandbox

ASK = [("exec", {"argv": ["true"], "access": "unsandboxed", "why": "because"})]
QUESTION = [("ask_person", {"question": "Shall it go on?"})]
LESSONS = [
    ("memory", {"action": "write", "scope": "user", "key": key, "text": f"{key}, always"}) for key in ("tabs", "spaces")
]
WORK = [("shell", {"script": "echo one > one"})]
JOB = [("shell", {"script": "while [ ! -e never ]; do sleep 0.1; done", "job": True})]
PAYLOAD = b"a payload"
COMMITS = {
    name: [("shell", {"script": f"echo {name} > {name}; git add {name}; git commit -qm {name}"})]
    for name in ("taken", "clash")
}
MERGE = {"how": "merge", "into": "", "message": "", "checks": True, "commit": False}
LAUNCH = {"repo": "$repo", "checks": [], "model": "claude-haiku-5-5", "caps": {}, "base_url": "$endpoint"}
GRANT = {"scope": "session", "expires_s": 3600, "count": 2, "first": 0, "under": ""}
STRUCTS: dict[str, Any] = {
    "row": SessionRow,
    "rows": list[SessionRow],
    "approval": ApprovalView,
    "approvals": list[ApprovalView],
    "fleet": FleetView,
    "usage": t.Usage,
}
"""Parts of a reply whose fields may be left out; each must be what its type says, and nothing else."""

ASKING = {"call", "reply", "call_within", "send", "ask", "_ask"}
"""How the screen's files name what they ask the supervisor."""


class Line:
    """A plain connection: frames as they are, without anything that a client makes of them."""

    def __init__(self, folders: Folders, *, greet: bool = True) -> None:
        self._sock = frames.connect(folders.supervisor_socket, 30.0)
        self._decoder = frames.Decoder()
        self._arrived: list[dict[str, Any]] = []
        self.pushes: list[dict[str, Any]] = []
        self._number = 0
        if greet:
            assert self.ask("hello", proto=frames.PROTOCOL, client="test")["ok"]

    def ask(self, op: str, **arguments: Any) -> dict[str, Any]:
        """The reply, or the refusal; what is pushed meanwhile is kept."""
        self._number += 1
        self._sock.sendall(frames.encode({"id": self._number, "op": op, **arguments}))
        while True:
            message = self._next()
            if "push" not in message:
                assert message.pop("id") == self._number
                return message

    def listen(self, *kinds: str) -> None:
        """Wait until a push of each of these kinds came."""
        while not set(kinds) <= {push["push"] for push in self.pushes}:
            self._next()

    def _next(self) -> dict[str, Any]:
        while not self._arrived:
            data = self._sock.recv(1 << 16)
            assert data, "the connection was cut"
            self._arrived += [frames.parse(body) for body in self._decoder.feed(data)]
        message = self._arrived.pop(0)
        if "push" in message:
            self.pushes.append(message)
        return message

    def close(self) -> None:
        self._sock.close()


@dataclass
class Side:
    """One of the two supervisors, with what a request has to name."""

    folders: Folders
    repo: Path
    names: dict[str, str] = field(default_factory=dict)
    """Session ids by role, requests as ``role.approval`` and ``role.hash``, calls as ``role.call``."""

    def filled(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments with ``$role`` replaced by what it is on this side."""
        known = self.names | {"repo": str(self.repo)}
        return {
            name: known[value[1:]] if isinstance(value, str) and value.startswith("$") else value
            for name, value in arguments.items()
        }


def _real(f: Fleet) -> Side:
    side = Side(f.folders, f.repository(), {"endpoint": f.base_url})
    asking = ("asking", "deciding", "deferring", "granting", "undone", "paused", "covered")
    ended = ("over", "again", "gone", *COMMITS)
    f.run("supervisor", "start")
    line = Line(f.folders)
    for role in (*asking, *ended):
        goal = play(WORK, ASK, "All done.") if role in asking else play(COMMITS.get(role, LESSONS), "All done.")
        side.names[role] = line.ask("launch", **side.filled(LAUNCH | {"goal": goal, "name": role}))["sid"]
    for role, goal, checks in (("failing", play("Done."), ["test -e nothing"]), ("jobbing", play(JOB, QUESTION), [])):
        asked_for = LAUNCH | {"goal": goal, "name": role, "checks": checks}
        side.names[role] = line.ask("launch", **side.filled(asked_for))["sid"]
    for role in asking:
        f.wait_state(side.names[role], "waiting")
        (view,) = (v for v in line.ask("approvals")["approvals"] if v["sid"] == side.names[role])
        side.names[f"{role}.approval"] = view["approval_id"]
        side.names[f"{role}.hash"] = view["action_hash"]
        ended_call = f.wait_event(side.names[role], "tool.ended").body
        assert isinstance(ended_call, t.ToolEnded)
        side.names[f"{role}.call"] = ended_call.call_id
    for role in ended:
        f.wait_state(side.names[role], "done")
        # put away: its keeper and its brain have left
        wait_for("it is put away", lambda role=role: line.ask("undo_points", sid=side.names[role])["ok"])
    f.wait_state(side.names["failing"], "failed")
    f.wait_state(side.names["jobbing"], "waiting")
    side.names["payload"] = blobs.put(f.folders.session(side.names["asking"]).blobs, PAYLOAD)[0]
    _remembered(side, line)
    _granted(side, line)
    _clashing(side, line)
    line.close()
    return side


def _remembered(side: Side, line: Line) -> None:
    """A memory of two versions; the lessons were left by those that have ended."""
    for text in ("long", "short"):
        assert line.ask("memory_set", scope="user", key="tone", text=text)["ok"]
    for lesson in line.ask("memories")["lessons"]:
        side.names[lesson["key"]] = lesson["lesson"]


def _granted(side: Side, line: Line) -> None:
    """A rule that stands, made of a request that it decided."""
    made = line.ask(
        "grant",
        **side.filled(GRANT | {"approval_id": "$covered.approval", "action_hash": "$covered.hash"}),
        typed="covered",
    )
    side.names["grant"] = made["grant"]["grant"]


def _clashing(side: Side, line: Line) -> None:
    """The branch has the file of one session otherwise, so that its merge does not fit."""
    (side.repo / "clash").write_text("ours\n")
    git(side.repo, "add", "clash")
    git(side.repo, "commit", "-qm", "ours")
    assert line.ask("merge", sid=side.names["clash"], **MERGE)["outcome"] == "conflicts"
    assert line.ask("checkpoint", sid=side.names["taken"], label="by hand")["ok"]


def _stand_in(world: World, repo: Path) -> Side:
    side = Side(world.folders, repo, {"endpoint": "http://127.0.0.1:9"})
    for role in ("asking", "deciding", "deferring", "granting", "undone", "paused", "covered"):
        session = world.add(role, t.LeaseGranted(gen=1, epoch=3), *work(), repo=str(repo))
        view = world.ask(session, PUSH)
        world.points[session.sid] = [point("c1000.0", "exec", "pytest -q", changed=1)]
        session.diff["files"] = [{"path": "one", "status": "added", "added": 1, "removed": 0}]
        side.names |= {
            role: session.sid,
            f"{role}.approval": view.approval_id,
            f"{role}.hash": view.action_hash,
            f"{role}.call": "c1000.0",
        }
    for role in ("over", "again", "gone", *COMMITS):
        session = world.add(role, repo=str(repo))
        session.live = Liveness(False, False)
        world.log(session, t.SessionEnded(outcome="done", verified=False))
        side.names[role] = session.sid
    failing = world.add("failing", t.SessionEnded(outcome="failed", reason="1 of 1 checks fails"), repo=str(repo))
    jobbing = world.add(
        "jobbing", t.JobStarted(clock=0.0, job="j1", call_id="c1000.0", what="make", limit_s=60), repo=str(repo)
    )
    side.names |= {"failing": failing.sid, "jobbing": jobbing.sid}
    side.names["payload"] = blobs.put(world.folders.session(side.names["asking"]).blobs, PAYLOAD)[0]
    world.conflict(world.sessions[side.names["clash"]])
    world.kept.append(kept("k1", "hand", "by hand"))
    for text in ("long", "short"):
        world.remember(Place(Scope.USER), "tone", text)
    for key in ("tabs", "spaces"):
        world.propose(Place(Scope.USER), key, f"{key}, always", "s1")
    covered = next(v for v in world.approvals() if v.approval_id == side.names["covered.approval"])
    side.names["grant"] = world.stand(covered, "session", 2).grant
    side.names |= {lesson.first.key: lesson.ident for lesson in world.memories.pending()}
    return side


@contextmanager
def served(world: World) -> Iterator[None]:
    """The world on a loop of its own, so that both sides are asked in the same way."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(world.start(), loop).result(30)
    try:
        yield
    finally:
        asyncio.run_coroutine_threadsafe(world.stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        for session in world.sessions.values():
            session.writer.close()


@pytest.fixture(scope="session")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Side, Side]]:
    root = tmp_path_factory.mktemp("world")
    world = World(app_world.folders(root))
    stand_in = _stand_in(world, make_repository(root / "repo"))
    with fleet() as f, served(world):
        yield _real(f), stand_in


def shape(value: object, name: str = "") -> object:
    """Keys and types; None where nothing can be said: an empty list, a null."""
    if name in STRUCTS:
        msgspec.convert(value, STRUCTS[name])
        many = isinstance(value, list)
        fields = set(STRUCTS[name].__args__[0].__struct_fields__ if many else STRUCTS[name].__struct_fields__)
        for entry in value if isinstance(value, list) else [value]:
            assert set(entry) <= fields
        return name
    if isinstance(value, dict):
        return {key: shape(entry, key) for key, entry in value.items()}
    if isinstance(value, list):
        return [shape(entry) for entry in value[:1]]
    return None if value is None else type(value).__name__


def alike(a: object, b: object) -> bool:
    """True when two shapes are the same as far as both are known."""
    if a is None or b is None or a == [] or b == []:
        return True
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(alike(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return alike(a[0], b[0])
    return a == b


DONE: list[tuple[str, dict[str, Any]]] = [
    ("hello", {"proto": frames.PROTOCOL, "client": "tui"}),
    ("subscribe", {}),
    ("sessions", {}),
    ("watching", {"watched": True}),
    ("approvals", {}),
    ("approval", {"approval_id": "$asking.approval"}),
    ("changes", {"approval_id": "$asking.approval", "offset": 0}),
    ("diff", {"sid": "$asking"}),
    ("read", {"sid": "$asking", "from_seq": 0, "most_bytes": 4096}),
    ("plan", {"sid": "$asking"}),
    ("timeline", {"sid": "$asking"}),
    ("brief", {"sid": "$asking", "since": "2020-01-01T00:00:00.000Z"}),
    ("receipts", {"sid": "$asking"}),
    ("costs", {}),
    ("memories", {}),
    ("memory_history", {"scope": "user", "key": "tone"}),
    ("memory_rollback", {"scope": "user", "key": "tone", "to": 1}),
    ("memory_remove", {"scope": "user", "key": "tone"}),
    ("lesson_accept", {"lesson": "$tabs"}),
    ("lesson_reject", {"lesson": "$spaces"}),
    ("undo_points", {"sid": "$asking"}),
    ("undo", {"sid": "$undone", "to": "$undone.call"}),
    ("say", {"sid": "$asking", "text": "go on"}),
    ("desire", {"sid": "$paused", "state": "paused"}),
    ("defer", {"approval_id": "$deferring.approval"}),
    ("snooze", {"sid": "$failing", "seconds": 3600}),
    ("job_cancel", {"sid": "$jobbing", "job": "j1"}),
    ("blob", {"sid": "$asking", "sha": "$payload", "offset": 0, "most": 4096}),
    (
        "decide",
        {
            "approval_id": "$deciding.approval",
            "decision": "deny",
            "action_hash": "$deciding.hash",
            "shown_hash": "0" * 64,
            "message": "no",
        },
    ),
    ("outcome", {"sid": "$deciding", "approval_id": "$deciding.approval", "call_id": ""}),
    (
        "grant_preview",
        GRANT | {"approval_id": "$asking.approval", "action_hash": "$asking.hash"},
    ),
    (
        "grant",
        GRANT | {"approval_id": "$granting.approval", "action_hash": "$granting.hash", "typed": "granting"},
    ),
    ("grants", {"ended": True}),
    ("revoke", {"grant": "$grant"}),
    ("continue", {"sid": "$again", "text": "once more"}),
    ("remove", {"sid": "$gone"}),
    ("merge_look", {"sid": "$taken"}),
    ("merge", MERGE | {"sid": "$taken"}),
    ("resolve", {"sid": "$clash", "text": "keep both"}),
    ("checkpoints", {"sid": "$taken"}),
    ("fork", {"sid": "$taken", "checkpoint": "", "goal": play("Done."), "name": "other"}),
    ("launch", LAUNCH | {"goal": play("Done."), "name": "new"}),
    ("starts", {"repo": "$repo"}),
    ("phrases", {"repo": "$repo", "plan": "", "start": ""}),
]

REFUSED: list[tuple[str, str, dict[str, Any]]] = [
    ("unknown_op", "dance", {}),
    ("not_found", "session", {"sid": "nobody"}),
    ("not_found", "diff", {"sid": "nobody"}),
    ("no_repo", "starts", {"repo": "/not/there"}),
    ("no_repo", "phrases", {"repo": "/not/there"}),
    ("not_found", "read", {"sid": "nobody", "from_seq": 0, "most_bytes": 4096}),
    ("not_found", "plan", {"sid": "nobody"}),
    ("not_found", "desire", {"sid": "nobody", "state": "paused"}),
    ("not_found", "say", {"sid": "nobody", "text": "hello"}),
    ("not_found", "continue", {"sid": "nobody", "text": "hello"}),
    ("not_found", "remove", {"sid": "nobody"}),
    ("not_found", "memory_history", {"scope": "user", "key": "nothing"}),
    ("not_found", "memory_rollback", {"scope": "user", "key": "nothing", "to": 1}),
    ("not_found", "memory_remove", {"scope": "user", "key": "nothing"}),
    ("not_found", "lesson_accept", {"lesson": "l000000000"}),
    ("not_found", "lesson_reject", {"lesson": "l000000000"}),
    ("not_found", "undo_points", {"sid": "nobody"}),
    ("not_found", "undo", {"sid": "nobody", "to": "c1.0"}),
    ("not_found", "undo", {"sid": "$asking", "to": "c77.7"}),
    ("not_found", "approval", {"approval_id": "abbbbbbb"}),
    ("not_found", "changes", {"approval_id": "abbbbbbb", "offset": 0}),
    ("bad_request", "changes", {"approval_id": "$asking.approval", "offset": "far"}),
    ("not_open", "decide", {"approval_id": "abbbbbbb", "decision": "allow", "action_hash": ""}),
    ("not_open", "defer", {"approval_id": "abbbbbbb"}),
    ("no_alarm", "snooze", {"sid": "$asking", "seconds": 3600}),
    ("not_found", "job_cancel", {"sid": "$asking", "job": "j1"}),
    ("not_found", "blob", {"sid": "$asking", "sha": "0" * 64, "offset": 0, "most": 4096}),
    ("bad_request", "blob", {"sid": "$asking", "sha": "0", "offset": 0, "most": 4096}),
    ("bad_option", "decide", {"approval_id": "$asking.approval", "decision": "dance", "action_hash": "$asking.hash"}),
    ("stale", "decide", {"approval_id": "$asking.approval", "decision": "allow", "action_hash": "0" * 64}),
    ("stale", "grant", GRANT | {"approval_id": "$asking.approval", "action_hash": "0" * 64, "typed": ""}),
    ("not_open", "grant_preview", GRANT | {"approval_id": "abbbbbbb", "action_hash": ""}),
    ("not_found", "revoke", {"grant": "gnothing"}),
    ("bad_request", "desire", {"sid": "$asking", "state": "dancing"}),
    ("ended", "desire", {"sid": "$over", "state": "running"}),
    ("bad_request", "say", {"sid": "$asking", "text": "  "}),
    ("ended", "say", {"sid": "$over", "text": "hello"}),
    ("not_ended", "continue", {"sid": "$asking", "text": "hello"}),
    ("busy", "remove", {"sid": "$asking"}),
    ("not_ended", "merge", MERGE | {"sid": "$asking"}),
    ("not_ended", "merge_look", {"sid": "$asking"}),
    ("nothing", "resolve", {"sid": "$over", "text": ""}),
    ("not_found", "fork", {"sid": "$taken", "checkpoint": "k77", "goal": "", "name": ""}),
    ("bad_goal", "launch", {"repo": "$repo", "goal": " ", "checks": [], "caps": {}}),
    ("no_repo", "launch", {"repo": "/nowhere/at/all", "goal": "x", "checks": [], "caps": {}}),
]


def asked(side: Side, op: str, arguments: dict[str, Any]) -> dict[str, Any]:
    line = Line(side.folders)
    try:
        return line.ask(op, **side.filled(arguments))
    finally:
        line.close()


def test_every_operation_of_the_stand_in_is_compared() -> None:
    known = {name.removeprefix("_op_") for name in dir(World) if name.startswith("_op_")}
    assert known - {"session"} == {op for op, _ in DONE}


def test_every_operation_that_the_screen_asks_for_is_compared() -> None:
    """The screen's files are read for what they ask, so that none of its requests is only ever refused in the tests."""
    known = {op for op, _ in DONE} | {"session"}
    root = Path(__file__).resolve().parents[2] / "app"
    files = [path for path in root.rglob("*.py") if path.relative_to(root).parts[0] not in ("cli", "demo")]
    found = [(path.name, words) for path in files for words in requests(ast.parse(path.read_text("utf-8")))]
    assert len(found) > 40
    assert not [(name, words) for name, words in found if not words & known]


def requests(tree: ast.AST) -> Iterator[set[str]]:
    """The single words that are given to a way of asking, one of which names the operation."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ASKING:
            words = {str(a.value) for a in node.args if isinstance(a, ast.Constant) and str(a.value).isidentifier()}
            if words:
                yield words


@pytest.mark.parametrize(("op", "arguments"), DONE, ids=[op for op, _ in DONE])
def test_replies_have_the_same_shape(sides: tuple[Side, Side], op: str, arguments: dict[str, Any]) -> None:
    real, stand_in = (asked(side, op, arguments) for side in sides)
    assert real["ok"], real
    assert alike(shape(real), shape(stand_in)), f"{shape(real)}\n{shape(stand_in)}"


def test_a_session_has_the_same_shape_but_for_its_folded_state(sides: tuple[Side, Side]) -> None:
    real, stand_in = (asked(side, "session", {"sid": "$asking"}) for side in sides)
    assert real.pop("state").keys() == stand_in.pop("state").keys()
    assert alike(shape(real), shape(stand_in))


@pytest.mark.parametrize(("code", "op", "arguments"), REFUSED, ids=[f"{op}-{code}" for code, op, _ in REFUSED])
def test_the_same_requests_are_refused_in_the_same_way(
    sides: tuple[Side, Side], code: str, op: str, arguments: dict[str, Any]
) -> None:
    for side in sides:
        reply = asked(side, op, arguments)
        assert not reply["ok"], reply
        assert reply["error"]["code"] == code, reply
        assert reply["error"].keys() - {"hint"} == {"code", "message"}
        assert all(isinstance(said, str) for said in reply["error"].values())


def test_neither_answers_who_did_not_say_hello(sides: tuple[Side, Side]) -> None:
    for side in sides:
        line = Line(side.folders, greet=False)
        assert line.ask("sessions")["error"]["code"] == "hello_first"
        line.close()


def test_pushes_have_the_same_shape_and_begin_with_all_there_is(sides: tuple[Side, Side]) -> None:
    first: list[list[dict[str, Any]]] = []
    for side in sides:
        line = Line(side.folders)
        line.ask("subscribe")
        line.listen("rows", "approvals")
        first.append(line.pushes[:2])
        assert {row["sid"] for row in line.pushes[0]["rows"]} >= {side.names["asking"], side.names["over"]}
        line.pushes.clear()
        asked(side, "say", {"sid": "$asking", "text": "and then"})
        line.listen("rows")
        first[-1].append(next(push for push in line.pushes if push["push"] == "rows"))
        line.close()
    for ours, theirs in zip(*first, strict=True):
        assert alike(shape(ours), shape(theirs)), f"{shape(ours)}\n{shape(theirs)}"
