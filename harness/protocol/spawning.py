"""What a supervisor asks of the processes that fork keepers and agents, and what they answer. Standard library only."""

from __future__ import annotations

from dataclasses import dataclass

from harness.protocol.connection.op import Op


@dataclass(frozen=True, slots=True)
class Spawned:
    """The process that was forked (`harness.linux.proc.Identity`)."""

    pid: int
    start: int
    boot: str


@dataclass(frozen=True, slots=True)
class SpawnKeeper(Op[Spawned]):
    """Fork a keeper for this session; ``state`` and ``runtime`` are folders, ``fault`` is where a test has it fail."""

    OP = "spawn"
    sid: str
    state: str
    runtime: str
    fault: str | None = None


@dataclass(frozen=True, slots=True)
class SpawnAgent(Op[Spawned]):
    """Fork an agent; ``brain`` is what it has to know (`harness.agents.agent_spec.Spec`)."""

    OP = "spawn"
    brain: dict[str, object]


@dataclass(frozen=True, slots=True)
class Exited:
    """Pushed once one of them has ended."""

    pid: int
    code: int
