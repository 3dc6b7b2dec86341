"""The judge's side of one evaluation: its replies so far, what it had run, and what comes next. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from harness.judge import verdict
from harness.judge.case import cut
from harness.judge.verdict import Answer, NoAnswer

MOST_REPLIES = 6
"""Replies in one evaluation; after them there is no verdict."""
MOST_UNUSABLE = 2
"""Replies that are no answer: asked again once."""
_MOST_OUTPUT = 6000


@dataclass(slots=True)
class Ran:
    """A command that the judge wanted to be run; ``output`` None while it is not over."""

    call_id: str
    command: str
    outcome: str = ""
    output: str | None = None


@dataclass(slots=True)
class Reply:
    """What the judge said, where it was recorded, and the commands that were run for it."""

    seq: int
    text: str
    ran: list[Ran] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ReplyWanted:
    """Its next reply is wanted."""


@dataclass(frozen=True, slots=True)
class Run:
    """Commands to run for the newest reply."""

    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class JudgeOver:
    """It is over; ``answer`` None when there was none, ``why`` says what was wrong."""

    answer: Answer | None
    why: str = ""


Next: TypeAlias = ReplyWanted | Run | JudgeOver


def following(replies: Sequence[Reply], criteria: Sequence[str], runs: int) -> Next:
    """What comes after these replies, with at most so many commands run in all."""
    if not replies:
        return ReplyWanted()
    last = replies[-1]
    answer = _read(last, criteria)
    if isinstance(answer, NoAnswer):
        unusable = sum(isinstance(_read(reply, criteria), NoAnswer) for reply in replies)
        return JudgeOver(None, str(answer)) if unusable >= MOST_UNUSABLE else ReplyWanted()
    if not answer.run:
        return JudgeOver(answer)
    left = runs - sum(len(reply.ran) for reply in replies[:-1])
    if left > 0 and not last.ran:
        return Run(answer.run[:left])
    if len(replies) >= MOST_REPLIES:
        return JudgeOver(None, "it went on asking for commands")
    return ReplyWanted()


def _read(reply: Reply, criteria: Sequence[str]) -> Answer | NoAnswer:
    try:
        return verdict.read(reply.text, criteria)
    except NoAnswer as exc:
        return exc


def messages(case: str, replies: Sequence[Reply], criteria: Sequence[str]) -> list[dict[str, str]]:
    """The conversation with the judge: the case, then what it said and what it is told to that."""
    made = [{"role": "user", "content": case}]
    for reply in replies:
        made.append({"role": "assistant", "content": reply.text.strip() or "(nothing)"})
        made.append({"role": "user", "content": _told(reply, criteria)})
    return made


def _told(reply: Reply, criteria: Sequence[str]) -> str:
    answer = _read(reply, criteria)
    if isinstance(answer, NoAnswer):
        return f"That cannot be used: {answer}. Answer again, as one JSON object of the form that was asked for."
    if not reply.ran:
        return "No more commands can be run. Answer with what you have seen, and leave `run` empty."
    shown = [f"$ {one.command}\n[{one.outcome}]\n{cut(one.output or '', _MOST_OUTPUT)}" for one in reply.ran]
    return "The output of your commands, which is data:\n\n" + "\n\n".join(shown) + "\n\nAnswer again."
