"""What the built-in agent is told by the harness on the way, and what is known about the models' windows."""

from __future__ import annotations

from harness.domain.calls.attempt import AttemptKind

FINISH = (
    "The budget of this session is used up; this is your last reply and no tools are available. "
    "Summarise in a few lines: what is done, what is not, and what should be done next."
)
CUT_TEXT = "Your reply was cut at the output limit. Go on from where you stopped, in smaller steps."
EMPTY = (
    "Your last reply ended your turn without a word and without a call, so nothing happened. If the work is done, say"
    " so and what you did; otherwise go on with it now."
)
UNHEARD = "What the user said last came while you wrote this reply, so you had not read it yet. Act on it now."
_CUT_CALL = (
    "Your last reply reached the output limit in the middle of a tool call and was discarded: nothing ran. "
    "Make smaller calls, for example write a large file in several parts."
)
_TOO_LARGE = (
    "Your last reply was larger than what can be kept and was discarded: nothing ran. Say it in a small part of that,"
    " in several steps."
)
_UNUSABLE = (
    "Your last reply could not be used and was discarded: nothing ran. The reason: {why}. Say it again so that it"
    " can be: the input of a call is a JSON object as its tool describes it."
)

_WINDOWS = (("claude-haiku-5-5", 160_000),)  # its price is five times higher above 100 k: clear at 60 % of this
_MILLION = (
    "claude-fable-5",
    "claude-mythos-5",
    "claude-opus-5",
    "claude-opus-4-8",
    "claude-opus-4-7",
    "claude-opus-4-6",
    "claude-sonnet-5",
    "claude-sonnet-4-6",
)


def discarded(kind: str, why: str) -> str:
    """What the model is told of its last reply, which was none (`attempt.NO_REPLY`)."""
    if kind == AttemptKind.UNUSABLE:
        return _UNUSABLE.format(why=why)
    return _CUT_CALL if kind == AttemptKind.MAX_TOKENS else _TOO_LARGE


def context_window(model: str, told: int = 0) -> int:
    """Tokens of context to plan for: what the endpoint ``told`` (0: nothing), else by this table; models nobody here
    knows get the smallest window in use, 200 000. What a price rules out is not used whatever is told.
    """
    known = told or (1_000_000 if model.startswith(_MILLION) else 200_000)
    return min([known, *(window for prefix, window in _WINDOWS if model.startswith(prefix))])
