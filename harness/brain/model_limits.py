"""What the endpoint says of a model: how much it takes in, and the longest reply it gives.

Asked once (`GET /v1/models/{id}`), and told to the supervisor for the brains that follow. What nobody can say is taken
from the table in `prompt.py`.
"""

from __future__ import annotations

from typing import cast
from urllib.parse import quote

import anthropic
import httpx2
from anthropic._types import RequestOptions

from harness.agents.agent_spec import Spec
from harness.brain import prompt
from harness.brain.context.sizes import Sizes
from harness.domain.model_limits import UNTOLD, ModelLimits

_TIMEOUT_S = 10.0
_REFUSED = frozenset({400, 401, 403, 404, 405, 410, 501})
"""Answers of an endpoint that does not tell; whatever else goes wrong may be over by the next brain."""


def ask(client: anthropic.Anthropic, model: str) -> ModelLimits | None:
    """What it says, `UNTOLD` where it does not tell; None when no answer came now. It never raises: the request itself
    shows what is wrong with an endpoint.
    """
    options: RequestOptions = {"timeout": _TIMEOUT_S}
    try:
        told = client.get(f"/v1/models/{quote(model, safe='')}", cast_to=object, options=options)
    except anthropic.APIStatusError as exc:
        return UNTOLD if exc.status_code in _REFUSED else None
    except (anthropic.AnthropicError, httpx2.HTTPError, OSError, ValueError):
        return None
    # an endpoint that is no Messages API may answer 200 with anything
    found = cast(dict[str, object], told) if isinstance(told, dict) else {}
    return ModelLimits.of(found.get("max_input_tokens"), found.get("max_tokens"))


def sizes(spec: Spec, told: ModelLimits) -> Sizes:
    """The sizes of a context of this model, as far as the endpoint tells, else by the table."""
    window = prompt.context_window(spec.model, told.window)
    return Sizes(spec.context_tokens, window, longest(spec.max_tokens, told), bytes=told.bytes)


def unfit(model: str, size: int, room: int, told: ModelLimits) -> str:
    """Why a request of about ``size`` tokens, with ``room`` for its reply, is not sent; empty when it is."""
    most = Sizes(window=prompt.context_window(model, told.window), output=room).most
    return f"about {size:,} tokens, over the {most:,} that {model} can be sent" if size > most else ""


def longest(wanted: int, told: ModelLimits) -> int:
    """The longest reply that may be asked for."""
    return min(wanted, told.output) if told.output else wanted
