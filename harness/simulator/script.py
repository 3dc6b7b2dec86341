"""What a scenario is: a deterministic policy, written as a generator that yields turns and is sent what came back.

The simulator keeps no conversation. Each request carries the whole of it; the generator is replayed over the earlier
turns and its next yield is the reply. So a harness may crash, retry or resume as it likes and meets the same "model"
again. Turns that a hand-off stands for are replayed too, without what came back.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

from harness.simulator.faults import Fault


@dataclass(frozen=True, slots=True)
class Call:
    """One tool use."""

    tool: str
    input: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """One reply of the model: text, tool calls (parallel when several), faults that strike earlier attempts at it."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    thinking: str = ""
    faults: tuple[Fault, ...] = ()
    stop_reason: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """What one call gave back."""

    tool: str
    input: dict[str, Any]
    text: str
    is_error: bool

    @property
    def denied(self) -> bool:
        """The human or the policy said no."""
        return self.is_error and bool(
            re.search(r"\b(denied|declined|rejected|refused|not allowed)\b", self.text, re.IGNORECASE)
        )


@dataclass(frozen=True, slots=True)
class Heard:
    """The user's turn after a reply: results of its calls in order, and texts said."""

    results: tuple[Result, ...] = ()
    texts: tuple[str, ...] = ()
    lost: bool = False
    """The request does not show it any more: only a hand-off stands for it."""

    @property
    def text(self) -> str:
        """All of it, for policies that only look for a word."""
        return "\n".join([*(r.text for r in self.results), *self.texts])

    @property
    def denied(self) -> bool:
        return any(r.denied for r in self.results)


_HANDOFF = re.compile(r"Hand-off from the earlier part of this session\b[^:]*: (\d+) earlier replies")
_SUMMARY = re.compile(r"\bsummary\b.*\bunder exactly these headings\b", re.DOTALL)
_BESIDE = re.compile(
    "Done criteria: |Rules of this project, |Summary of your current task, |Contract of this session, "
    "|Hand-off from the tasks before this one"
    rf"|{_HANDOFF.pattern}"
)

Script = Generator[Turn, Heard, None]


@dataclass(frozen=True, slots=True)
class Scenario:
    """``pattern`` is searched in the first user message; ``play`` gets that text."""

    name: str
    pattern: re.Pattern[str]
    play: Callable[[str], Script]


def call(tool: str, /, **arguments: Any) -> Call:
    """Shorthand; a trailing underscore of an argument's name is dropped."""
    return Call(tool, {name.rstrip("_"): value for name, value in arguments.items()})


def say(text: str, *calls: Call, faults: tuple[Fault, ...] = (), thinking: str = "") -> Turn:
    return Turn(text, calls, thinking, faults)


def texts_of(content: str | list[dict[str, Any]]) -> Iterator[str]:
    """Texts of a message's content."""
    if isinstance(content, str):
        yield content
        return
    for block in content:
        if block.get("type") == "text":
            yield str(block["text"])


def goal_of(messages: list[dict[str, Any]]) -> str:
    """The first user message, which a scenario is chosen by, without what a harness puts beside the goal."""
    return "\n".join(text for text in texts_of(messages[0]["content"]) if not _BESIDE.match(text))


def earlier_turns(messages: list[dict[str, Any]]) -> int:
    """How many turns a hand-off stands for."""
    found = (_HANDOFF.match(text) for text in texts_of(messages[0]["content"]))
    return next((int(match[1]) for match in found if match), 0)


def _uses(message: dict[str, Any]) -> dict[str, dict[str, Any]]:
    content = message["content"]
    return {str(b["id"]): b for b in content if b.get("type") == "tool_use"} if isinstance(content, list) else {}


def heard(assistant: dict[str, Any], user: dict[str, Any]) -> Heard:
    """The user's turn seen with the calls it answers."""
    uses = _uses(assistant)
    content = user["content"]
    results: dict[str, Result] = {}
    for block in content if isinstance(content, list) else []:
        if block.get("type") == "tool_result":
            use = uses[str(block["tool_use_id"])]
            text = "\n".join(texts_of(block.get("content") or ""))
            results[str(block["tool_use_id"])] = Result(
                str(use["name"]), dict(use["input"]), text, bool(block.get("is_error"))
            )
    return Heard(tuple(results[i] for i in uses if i in results), tuple(texts_of(content)))


IDLE = Turn("There is nothing left for me to do here.")


def _wanted_headings(messages: list[dict[str, Any]]) -> list[str]:
    """The headings of a summary that the newest words ask for; none when they ask for no summary."""
    newest = list(texts_of(messages[-1]["content"]))[-1:]
    asked = newest[0] if newest else ""
    return [line for line in asked.split("\n") if line.startswith("## ")] if _SUMMARY.search(asked) else []


def _summary(messages: list[dict[str, Any]], headings: list[str]) -> str:
    said = [text for message in messages if message["role"] == "assistant" for text in texts_of(message["content"])]
    newest = " ".join((said or ["nothing yet"])[-1].split())[:200]
    return "\n\n".join(f"{heading}\n{len(messages)} messages seen; the newest reply: {newest}" for heading in headings)


def reply(scenario: Scenario, messages: list[dict[str, Any]]) -> Turn:
    """The next turn of a validated conversation. A script that has ended answers `IDLE`.

    Any model writes a summary when it is asked for one, whatever its script would do next.
    """
    if headings := _wanted_headings(messages):
        return Turn(_summary(messages, headings))
    script = scenario.play(goal_of(messages))
    try:
        turn = next(script)
        for _ in range(earlier_turns(messages)):
            turn = script.send(Heard(lost=True))
        for assistant, user in zip(messages[1::2], messages[2::2], strict=True):
            turn = script.send(heard(assistant, user))
    except StopIteration:
        return IDLE
    finally:
        script.close()
    return turn
