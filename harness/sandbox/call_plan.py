"""What the keeper tells the process of a call: made by `spawn`, read by `runner`, one line of JSON in between. Standard
library only, and little of it: every call pays for it.
"""

from __future__ import annotations

import json
from typing import NamedTuple


class Bounds(NamedTuple):
    """What the process puts on itself and so on everything it starts (`harness.sandbox.rlimits`); None = no limit.

    ``each``: bytes of each process; ``sysctl``: the settings of its own namespaces too, where they are not those that
    ``host`` names; ``group``: it enters a cgroup.
    """

    nice: int
    processes: int
    shm: int
    file: int | None
    each: int | None
    sysctl: bool
    group: bool
    host: dict[str, str]


class CallPlan(NamedTuple):
    """``cwd_identity`` and ``program`` are what was shown, empty where nobody was shown one; ``outside`` says where the
    paths outside of the worktree are mounted; ``closed`` are folders of which no program may come; ``no_output`` is why
    there is no earlier output to read.
    """

    kind: str
    tool: str
    input: dict[str, object]
    argv: list[str]
    script: str
    cwd: str
    cwd_identity: dict[str, object]
    program: dict[str, object]
    root: str
    env: dict[str, str]
    limits: Bounds
    sandboxed: bool
    no_output: str = ""
    outside: dict[str, list[str]] = {}
    network: bool = False
    hosts: list[str] = []
    host_net: str = ""
    writable: list[str] = []
    scratch: str = ""
    push: dict[str, object] | None = None
    closed: list[str] = []


def encode(plan: CallPlan) -> bytes:
    """One line, without its line feed."""
    fields = {**plan._asdict(), "limits": plan.limits._asdict()}
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass")


def decode(line: bytes) -> CallPlan:
    """What `encode` made."""
    fields = json.loads(line)
    return CallPlan(**{**fields, "limits": Bounds(**fields["limits"])})
