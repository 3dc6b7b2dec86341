"""A record from a frame: read as what it says, or refused in a sentence that names the field."""

from __future__ import annotations

import dataclasses
import json
from types import ModuleType

import msgspec
import pytest

from harness.agents import supervisor_requests as asked
from harness.domain.calls.attempt import AttemptKind
from harness.events.types import Usage
from harness.keeper.loop import requests
from harness.protocol import keeper_requests
from harness.protocol.connection import frames
from harness.protocol.connection.op import BadArgument, Op, Yes, reader
from harness.protocol.connection.struct_json import STRUCT_JSON
from harness.vault import vault_ops
from harness.vault.limits import VaultLimits

OPS: dict[str, Op[object]] = {
    f"{type(op).__module__}.{type(op).__name__}": op
    for op in (
        keeper_requests.SupervisorHello(3, (1, 2), keeps=True),
        keeper_requests.BrainHello(2, "secret"),
        keeper_requests.ViewerHello(),
        keeper_requests.Append((keeper_requests.NewRecord("harness.note", {"text": "x"}),), "C", 7),
        keeper_requests.PutBlob("eA=="),
        keeper_requests.Subscribe(-1),
        keeper_requests.Ping(),
        keeper_requests.Stats(),
        requests.GrantLease(1, 2, "secret", 3, 4, "boot"),
        requests.EndLease(1, "done", 0),
        requests.Execute("c1.0", undo_limits=VaultLimits(names=5), jobs=requests.JobLimits(2, 3)),
        requests.CancelCall("c1.0"),
        requests.CancelJob("j1"),
        requests.TakeState("shown", full=True, since="s1.ab", worked="s0.ab"),
        requests.StatesKept(),
        requests.ExportState("k1", "head", "ground", "s1.ab"),
        requests.UndoCall("u1", "c1.0", "s1.ab", {"kind": "human"}),
        requests.Shutdown(kill=True),
        vault_ops.Take((vault_ops.KeptRoot("w", "/work", (".git",)),), "c1.0", only="w/", action={"tool": "exec"}),
        vault_ops.Observe({"tool": "exec"}),
        vault_ops.Export((), "k1", "head", "ground", "s1.ab"),
        vault_ops.BringBack((vault_ops.KeptRoot("g", "/git"),), "s1.ab", "undo u1", ("w", "g")),
        vault_ops.ListStates(),
    )
}


TO_THE_SUPERVISOR: dict[str, tuple[Op[object], object]] = {
    op.OP: (op, reply)
    for op, reply in (
        (asked.Greet("sid", 2, "secret"), asked.Greeted(4)),
        (asked.Admit("default", "m"), asked.Admitted(held="it is down", since="2026-01-02T03:04:05Z")),
        (asked.Reserve("r1.2", 1, "m", 10, 20, hour=True), asked.Reservation("v1", 7)),
        (asked.Heard(), Yes()),
        (asked.TellDoing("replying", "3 bytes"), Yes()),
        (asked.TellLimits("m", 200_000, 64_000), Yes()),
        (
            asked.Settle("v1", Usage(input=3), asked.AttemptOutcome(AttemptKind.OVERLOADED, "busy", 2.5)),
            asked.Settlement(7, "test", 2.5, Usage(input=3)),
        ),
    )
}
"""With an answer each: read by who has structs loaded, on both ends."""


def test_every_operation_is_here() -> None:
    assert ops_of(keeper_requests, requests, vault_ops) == set(OPS)
    assert ops_of(asked) == {f"{asked.__name__}.{type(op).__name__}" for op, _ in TO_THE_SUPERVISOR.values()}


def ops_of(*rooms: ModuleType) -> set[str]:
    known = [one for room in rooms for one in vars(room).values() if isinstance(one, type)]
    return {f"{one.__module__}.{one.__name__}" for one in known if issubclass(one, Op) and one is not Op}


@pytest.mark.parametrize("name", TO_THE_SUPERVISOR)
def test_what_an_agent_asks_is_what_the_supervisor_reads(name: str) -> None:
    op, reply = TO_THE_SUPERVISOR[name]
    sent = json.loads(STRUCT_JSON.encode({"id": 1, "op": op.OP, **frames.members(op)}))
    assert msgspec.convert(sent, type(op)) == op
    answered = json.loads(STRUCT_JSON.encode(reply))
    assert msgspec.convert({"id": 1, "ok": True, **answered}, op.answered_by()) == reply


def test_what_is_wanted_behind_the_gate_is_what_is_wanted_alone() -> None:
    wanted = asked.Reserve("r1.2", 1, "m", 10, 20)
    sent = json.loads(STRUCT_JSON.encode(frames.members(asked.Admit("default", "m", wanted))))
    assert msgspec.convert(sent, asked.Admit).reserve == msgspec.convert(sent["reserve"], asked.Reserve) == wanted


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
@pytest.mark.parametrize("encode", [frames.dump, STRUCT_JSON.encode], ids=["stdlib", "structs"])
def test_what_is_sent_is_what_is_read(op: Op[object], encode: object) -> None:
    assert callable(encode)
    sent = json.loads(encode({"id": 1, "op": op.OP, **frames.members(op)}))
    assert reader(type(op))(sent) == op


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_a_field_of_another_kind_is_named(op: Op[object]) -> None:
    read = reader(type(op))
    sent = json.loads(frames.dump(frames.members(op)))
    for field in dataclasses.fields(op):
        if field.type == "object":
            continue
        wrong = "x" if str(field.type).startswith("int") else 5
        with pytest.raises(BadArgument, match=r"must be|durability class"):
            read({**sent, field.name: wrong})
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required:
            with pytest.raises(BadArgument, match=field.name):
                read({name: value for name, value in sent.items() if name != field.name})


@pytest.mark.parametrize("op", OPS.values(), ids=OPS)
def test_who_asks_can_read_its_answer(op: Op[object]) -> None:
    """As a supervisor or an agent does it, and as a keeper does."""
    reply = op.answered_by()
    fields = dataclasses.fields(reply)  # type: ignore[arg-type]
    made = reply(**{field.name: _some(str(field.type)) for field in fields})
    sent = json.loads(frames.dump({"id": 1, "ok": True, **frames.members(made)}))
    assert msgspec.convert(sent, reply) == reader(reply)(sent) == made


def _some(kind: str) -> object:
    values: dict[str, object] = {
        "str": "x",
        "str | None": "x",
        "int": 7,
        "int | None": 7,
        "bool": True,
        "object": "x",
        "tuple[int, int] | None": (1, 2),
        "tuple[str, ...]": ("a", "b"),
        "tuple[str, ...] | None": ("a",),
        "dict[str, object] | None": {"head": "x"},
        "ProcessMemory": keeper_requests.ProcessMemory(1, 2, 3),
        "tuple[KeptState, ...]": (vault_ops.KeptState("s1.ab", "c1.0", "now", 1, 0),),
    }
    return values[kind]


def test_what_a_newer_peer_adds_is_left_aside() -> None:
    assert reader(keeper_requests.Subscribe)({"after": 3, "colour": "red"}) == keeper_requests.Subscribe(3)


def test_a_field_that_is_null_is_one_that_says_nothing() -> None:
    assert reader(requests.EndLease)({"gen": 1, "reason": "r", "exit_code": None}) == requests.EndLease(1, "r")
    assert frames.members(requests.EndLease(1, "r")) == {"gen": 1, "reason": "r"}


def test_what_no_frame_can_hold_is_no_field() -> None:
    @dataclasses.dataclass(frozen=True, slots=True)
    class Odd:
        when: set[str]

    with pytest.raises((TypeError, NameError)):
        reader(Odd)
