"""Questions of a launch at a terminal: which commands decide phrases of its plan."""

from __future__ import annotations

import msgspec

from app.cli.base.output import safe, say
from app.client.replies import ask
from harness.domain.text.formatting import counted
from harness.protocol.client import Client
from harness.protocol.config.project_phrases import FILE
from harness.views.launch_request import LaunchRequest
from harness.views.replies import PhrasesLook

_SHOWN = 300
_ASKED = 5
"""Phrases that are asked about, the most frequent first."""


def asked(client: Client, request: LaunchRequest) -> LaunchRequest:
    """The request with what a person bound. Without an answer nothing is bound. Raises what ``ask`` does."""
    seen = _look(client, request)
    if seen.offered:
        say(f"{FILE} of the repository says what decides criteria in these words:")
        for phrase, command in seen.offered.items():
            say(f"  “{safe(phrase, _SHOWN)}”: {safe(command, _SHOWN)}")
        if _answer("Let these count here from now on? [y/N] ").lower() in ("y", "yes"):
            request = msgspec.structs.replace(request, accept_phrases=seen.file)
            seen = _look(client, request)
    said = dict(request.phrases)
    for offer in seen.unbound[:_ASKED]:
        count = counted(offer.count, "criterion", "criteria")
        say(f"“{safe(offer.text, _SHOWN)}” ({count} of the plan): no command decides it.")
        guess = f" (enter: {safe(offer.guess, _SHOWN)}; -: none)" if offer.guess else " (empty: none)"
        command = _answer(f"Command that decides it here from now on{guess}: ", unanswered="-") or offer.guess
        if command not in ("", "-"):
            said[offer.text] = command
    return msgspec.structs.replace(request, phrases=said)


def _look(client: Client, request: LaunchRequest) -> PhrasesLook:
    wanted = {"repo": request.repo, "plan": request.plan, "start": request.start, "phrases": request.phrases}
    return ask(client, PhrasesLook, "phrases", **wanted, accept_phrases=request.accept_phrases)


def _answer(question: str, unanswered: str = "") -> str:
    """What is typed; at the end of the input what counts as none."""
    try:
        return input(question).strip()
    except EOFError:
        return unanswered
