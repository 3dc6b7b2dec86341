"""The life of an agent's process: take up the log, feed it to the agent, carry out one step after the other, leave when
there is nothing to think about.

Synchronous, one thread. Exit codes: 0 parked, ended or told to leave; 75 fenced or cut off from the keeper or (too
long) from the supervisor; 70 a defect of ours, which is put on record first when possible.
"""

from __future__ import annotations

import random
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import assert_never

import msgspec

from harness.agents import steps
from harness.agents.accounts import Accounts
from harness.agents.agent import Agent
from harness.agents.agent_context import AgentContext
from harness.agents.agent_spec import Spec
from harness.agents.errors import CannotGoOn, Conflict, Fenced, Interruption, NoSupervisor, Refused
from harness.agents.journal import Journal
from harness.domain.calls.call_id import name_call
from harness.domain.states import ParkedFor
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.projections.state.session_state import SessionState
from harness.tools import registry

OK = 0
DEFECT = 70
AGAIN = 75
_SUPERVISOR_S = 600.0
_UNKNOWN_S = 60.0
_LONGEST_PAUSE_S = 15.0
_IDLE_S = 60.0
_DAMAGE = (LogError, CannotGoOn, msgspec.DecodeError)


Make = Callable[[Spec, AgentContext], Agent]


class Host:
    """One incarnation of one agent. ``step`` carries out what it wants next."""

    def __init__(self, agent_context: AgentContext, agent: Agent) -> None:
        self._desk = agent_context
        self._agent = agent

    def run(self) -> int:
        """Until there is nothing to do. Raises Interruption, CannotGoOn."""
        self._reach_supervisor()
        if self._desk.session.lease_gen <= 1:
            self._agent.start()
        else:
            self._agent.resume()
        while True:
            self._reach_supervisor()
            code = self.step()
            if code is not None:
                return code

    def step(self) -> int | None:
        """Ask and act once; the exit code when the agent is to leave."""
        try:
            return self._carry_out(self._agent.propose())
        except Conflict:
            self._desk.follow(1.0)
        except NoSupervisor:
            pass  # `run` looks for it again before the next step
        return None

    def _carry_out(self, step: steps.Step) -> int | None:
        append = self._desk.append
        match step:
            case steps.Again():
                return None
            case steps.Propose():
                at = self._desk.head  # what is said while a large input is stored was not thought about
                calls = step.calls
                append([self._desk.proposal(call_id, call.tool, call.input, call.ref) for call_id, call in calls], at)
            case steps.Check():
                at = self._desk.head
                named = ((name_call(at, i), command) for i, command in enumerate(step.commands))
                append([self._desk.proposal(call_id, registry.CHECK, {"command": c}, "") for call_id, c in named], at)
            case steps.Judge():
                append([t.EvaluationRequested(cycle=step.cycle, entry=step.task)])
            case steps.Say():
                said = t.UserMessage(text=step.text, origin="harness", jobs=list(step.jobs), evidence=step.evidence)
                append([said])
            case steps.Wait():
                self._desk.follow(_IDLE_S, self._desk.accounts.link)
            case steps.Park():
                append(parked(step))
                self._agent.park()
                return OK
            case steps.Turned():
                append(turned(self._desk.session, step))
            case steps.End():
                append(
                    [
                        t.SessionEnded(
                            outcome=step.outcome,
                            reason=step.reason,
                            verified=step.verified,
                            still=step.still,
                            judged=step.judged,
                            summary=step.summary,
                        )
                    ]
                )
                self._agent.park()
                return OK
            case steps.Leave():
                self._agent.park()
                return OK
            case _:
                assert_never(step)
        return None

    def _reach_supervisor(self) -> None:
        """Come back only with a supervisor; nothing is appended meanwhile.

        Raises NoSupervisor, Fenced when trying is of no use any more.
        """
        accounts = self._desk.accounts
        pause = 0.05
        begun = time.monotonic()
        while not accounts.alive:
            try:
                accounts.connect()
            except (NoSupervisor, Refused) as exc:
                spent = time.monotonic() - begun
                if isinstance(exc, Refused) and spent > _UNKNOWN_S:
                    raise Fenced(f"the supervisor refuses this brain: {exc}") from exc
                if spent > _SUPERVISOR_S:
                    raise NoSupervisor(f"no supervisor for {spent:.0f} s: {exc}") from exc
                self._desk.follow(pause * random.uniform(0.5, 1.0))
                pause = min(_LONGEST_PAUSE_S, pause * 2)
        problems = accounts.problems
        accounts.problems = []
        if problems:
            notes = [t.HarnessNote(level="warning", text=text, component="brain") for text in problems]
            self._desk.append_anyway(notes)


def parked(step: steps.Park) -> list[t.Body]:
    """The records of a park."""
    park = t.SessionParked(
        why=step.why,
        detail=step.detail,
        since=step.since,
        verdict=step.verdict,
        verified=step.verified,
        still=step.still,
    )
    return [park] if step.breaker is None else [step.breaker, park]


def turned(s: SessionState, step: steps.Turned) -> list[t.Body]:
    """The records of a task that is over."""
    at = s.iterations
    over = t.IterationEnded(n=at.n, entry=at.entry, outcome=step.outcome, reason=step.reason)
    return [t.ApproachFailed(entry=at.entry, what=step.what, why=step.why), over] if step.why else [over]


def run(spec: Spec, make: Make) -> int:
    """Live one agent's life in this process; its exit code."""
    journal = Journal(Path(spec.folder))
    agent_context = AgentContext(journal, Accounts(Path(spec.supervisor_socket), spec.sid, spec.gen, spec.secret))
    agent = make(spec, agent_context)
    agent_context.serves(agent)
    broken = None
    try:
        journal.load(agent.memory(), agent.recall)
    except _DAMAGE as exc:
        journal.following = False
        broken = exc
    try:
        journal.join(Path(spec.keeper_socket), spec.gen, spec.secret)
    except Interruption as exc:
        return _say(spec, str(exc), AGAIN)
    try:
        if broken is not None:
            raise broken
        agent_context.live = True
        return Host(agent_context, agent).run()
    except Interruption as exc:
        return _say(spec, str(exc), AGAIN)
    except CannotGoOn as exc:
        return _record(spec, journal, [t.SessionParked(why=ParkedFor.ERROR, detail=str(exc)[:2000])], str(exc), OK)
    except _DAMAGE as exc:
        why = f"the brain cannot go on with this log: {exc}"
        return _record(spec, journal, [t.SessionParked(why=ParkedFor.ERROR, detail=why[:2000])], str(exc), OK)
    except Exception as exc:
        traceback.print_exc()
        note = t.HarnessNote(
            level="error",
            text=f"the brain met a defect of its own: {type(exc).__name__}: {exc}"[:2000],
            component="brain",
        )
        return _record(spec, journal, [note], str(exc), DEFECT)
    finally:
        journal.close()


def _record(spec: Spec, journal: Journal, bodies: Sequence[t.Body], said: str, code: int) -> int:
    journal.following = False
    try:
        journal.append(bodies)
    except (Interruption, Refused) as exc:
        return _say(spec, f"{said}; and it could not be put on record: {exc}", AGAIN)
    return _say(spec, said, code)


def _say(spec: Spec, text: str, code: int) -> int:
    print(f"brain of {spec.sid} (gen {spec.gen}): {text}", file=sys.stderr, flush=True)
    return code
