"""`docs/reference/operations.md`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from types import MethodType
from typing import Any, get_type_hints
from unittest.mock import MagicMock

from harness.agents import supervisor_requests
from harness.agents.supervisor_requests import Greet
from harness.keeper import ops as keeper_ops
from harness.keeper.loop import requests as keeper_only
from harness.protocol import keeper_requests, spawning
from harness.protocol.connection.op import Op
from harness.protocol.connection.read_only import LOOKING
from harness.protocol.keeper_requests import BrainHello, SupervisorHello, ViewerHello
from harness.supervisor.serving.client_ops import ClientOps
from harness.vault import vault_ops
from tests.reference.handled import arguments
from tests.reference.markdown import MADE, doc, listed, records, table

_ABOUT = f"""# Operations

What one process of Watchfloor may ask of another. Each request is a frame on a Unix socket: an object `{{id, op, …}}` \
with the arguments beside them, answered by `{{id, ok: true, …}}` with the fields of its reply, or by \
`{{id, ok: false, error: {{code, message, hint?}}}}`. `?` marks what may be left out.

{MADE}
"""
_TITLES = ("operation", "what it does", "arguments", "reply")
_ROLES = {SupervisorHello: "supervisor", BrainHello: "brain", ViewerHello: "viewer"}


def page() -> str:
    """Every operation by who is asked, then the records that they are answered with."""
    replies: dict[str, type[object]] = {}

    def reply(kind: type[object]) -> str:
        replies[kind.__name__] = kind
        return f"`{kind.__name__}`"

    def rows(kinds: Iterable[type[Op[object]]]) -> list[tuple[str, ...]]:
        return [(f"`{kind.OP}`", doc(kind), listed(kind), reply(kind.answered_by())) for kind in kinds]

    handlers = _handlers()
    asked = [(name, handlers[name]) for name in sorted(handlers)]
    clients = [(*_client(name, one)[:3], reply(_client(name, one)[3])) for name, one in asked]
    lines = [_ABOUT, "## A client of the supervisor", ""]
    lines += ["Any process of the same user: the screen, the command line.", ""]
    lines += table(_TITLES, clients)
    lines += ["## An agent's process of the supervisor", "", f"After it said `{Greet.OP}`.", ""]
    lines += table(_TITLES, rows(_ops(supervisor_requests)))
    lines += ["## Peers of a keeper", "", "Each says first, by its `role`, who it is.", ""]
    lines += table(("role", *_TITLES), [(_ROLES[kind], *rows([kind])[0]) for kind in _ROLES])
    kinds = [*_ops(keeper_requests), *_ops(keeper_only)]
    table_of = keeper_ops.OPERATIONS
    served = [(", ".join(table_of[kind.OP].roles), *rows([kind])[0]) for kind in kinds if kind not in _ROLES]
    lines += table(("role", *_TITLES), served)
    lines += ["## A keeper of its vault's process", "", *table(_TITLES, rows(_ops(vault_ops)))]
    lines += ["## The supervisor of the processes that fork keepers and agents", ""]
    lines += table(("asked of", *_TITLES), [(_forks(kind), *rows([kind])[0]) for kind in _ops(spawning)])
    every = {**{kind.__name__: kind for kind in records(replies.values())}, **replies}
    lines += ["## Replies, and the values in them", ""]
    shown = [(f"`{name}`", doc(kind), listed(kind)) for name, kind in sorted(every.items())]
    return "\n".join([*lines, *table(("record", "what it is", "fields"), shown)])


def _handlers() -> dict[str, Callable[..., object]]:
    """The handlers of clients' operations, of a supervisor that has nothing else."""
    parts = MagicMock()
    parts.folders.state = Path("/")
    return dict(ClientOps(parts).table())


def _client(name: str, handler: Callable[..., object]) -> tuple[str, str, str, type[object]]:
    read = ", ".join(f"`{field}` {kind}" for field, kind in arguments(handler).items()) or "–"
    function = handler.__func__ if isinstance(handler, MethodType) else handler
    kind = get_type_hints(function)["return"]
    words = doc(handler)
    return f"`{name}`", words if name in LOOKING else f"{words} *Changes something.*", read, kind


def _ops(module: Any) -> list[type[Op[object]]]:
    """The operations that a module defines, in its order."""
    found = [one for one in vars(module).values() if inspect.isclass(one) and issubclass(one, Op)]
    return [one for one in found if one.__module__ == module.__name__]


def _forks(kind: type[Op[object]]) -> str:
    return "agents' fork server" if kind is spawning.SpawnAgent else "keepers' fork server"
