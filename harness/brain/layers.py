"""What every request begins with, layer by layer: a table of pure functions from the view to a text.

A request shows the instructions and tools, the layers of `BEGINNING` in this order, each text a block of its own, and
then the turns. What a layer shows must follow from the log alone, so that every brain builds the same request: the view
folds the record that brought it, and keeps that record's place in ``begins_seq``. It should change seldom: a change is
in the very next request and breaks the prompt cache from there on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from harness.brain.view import View
from harness.domain.request_layers import GOAL, HANDOFF, MEMORY, TASK
from harness.plan.files.criteria import spoken

_CRITERIA = "Done criteria: the harness runs these commands when you say you are finished, and each must pass."


@dataclass(frozen=True, slots=True)
class Layer:
    """``text`` gives what is shown, empty for nothing; ``name`` is what its tokens count for (`events.layers`)."""

    name: str
    text: Callable[[View], str]


def goal(v: View) -> str:
    """The goal in its own words: never cut, never summarised."""
    return v.state.intent.goal if v.state.intent is not None else ""


def criteria(v: View) -> str:
    """The done criteria as they were given: never cut, never summarised."""
    return "\n".join([_CRITERIA, *(f"- {spoken(command)}" for command in v.criteria)]) if v.criteria else ""


def contract(v: View) -> str:
    """What planner and evaluator agreed on before the work: never cut, never summarised."""
    return v.contract


def remembered(v: View) -> str:
    """What is known from beyond this conversation, as data with its origin."""
    return v.memory


def rules(v: View) -> str:
    """The project's own rules, as the context began with them."""
    return v.rules


def handed(v: View) -> str:
    """What must be known of what is not shown any more."""
    return v.handoff


def task(v: View) -> str:
    """The page of the task at hand, when a plan is worked through one after the other."""
    return v.task


def summary(v: View) -> str:
    """What a model wrote of a task that outgrew its context."""
    return v.summary


BEGINNING: tuple[Layer, ...] = (
    Layer(GOAL, goal),
    Layer(GOAL, criteria),
    Layer(GOAL, contract),
    Layer(MEMORY, remembered),
    Layer(MEMORY, rules),
    Layer(HANDOFF, handed),
    Layer(HANDOFF, summary),
    Layer(TASK, task),
)


def beginning(v: View) -> list[tuple[str, str]]:
    """(layer, text) of all that has something to show, in order."""
    return [(layer.name, text) for layer in BEGINNING if (text := layer.text(v)).strip()]
