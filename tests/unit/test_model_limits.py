"""What an endpoint says of a model, and what is made of it."""

from __future__ import annotations

import json

import anthropic
import httpx2
import pytest

from harness.agents.agent_spec import Spec
from harness.brain import model_limits, prompt
from harness.domain.model_limits import UNTOLD, ModelLimits
from harness.protocol.config.credential import Credential
from harness.supervisor.endpoints.known_models import KnownModels

SPEC = Spec("s", "f", "k", "u", 1, "", Credential("", ""), "claude-sonnet-5-5")


def asked(answer: httpx2.Response | Exception) -> tuple[ModelLimits | None, list[httpx2.Request]]:
    seen: list[httpx2.Request] = []

    def respond(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        if isinstance(answer, Exception):
            raise answer
        return answer

    http = anthropic.DefaultHttpxClient(transport=httpx2.MockTransport(respond))
    client = anthropic.Anthropic(api_key="k", base_url="http://127.0.0.1:9", max_retries=0, http_client=http)
    return model_limits.ask(client, "a/b c"), seen


def test_the_model_is_asked_for_by_its_name() -> None:
    told, seen = asked(httpx2.Response(200, json={"max_input_tokens": 150_000, "max_tokens": 4096}))
    assert told == ModelLimits(150_000, 4096)
    assert [(r.method, r.url.raw_path) for r in seen] == [("GET", b"/v1/models/a%2Fb%20c")]


@pytest.mark.parametrize("status", [400, 401, 403, 404, 405, 501])
def test_an_endpoint_that_does_not_tell_is_not_asked_again(status: int) -> None:
    assert asked(httpx2.Response(status, json={"type": "error"}))[0] == UNTOLD


@pytest.mark.parametrize(
    "answer", [httpx2.Response(429), httpx2.Response(529), httpx2.Response(302), httpx2.ConnectError("no"), OSError()]
)
def test_an_endpoint_that_cannot_tell_now_raises_nothing(answer: httpx2.Response | Exception) -> None:
    assert asked(answer)[0] is None


@pytest.mark.parametrize(
    "body",
    [
        "<html>a page</html>",
        "[]",
        "null",
        "{}",
        json.dumps({"max_input_tokens": "many", "max_tokens": True}),
        json.dumps({"max_input_tokens": 5, "max_tokens": -1}),
        json.dumps({"max_input_tokens": 1e30, "max_tokens": 1 << 40}),
    ],
)
def test_numbers_that_cannot_be_are_not_believed(body: str) -> None:
    for kind in ("application/json", "text/html"):
        told, _ = asked(httpx2.Response(200, content=body.encode(), headers={"content-type": kind}))
        assert told in (None, UNTOLD)


def test_what_is_told_counts_and_else_the_table() -> None:
    table = model_limits.sizes(SPEC, UNTOLD)
    assert (table.window, table.output) == (prompt.context_window(SPEC.model), SPEC.max_tokens) == (1_000_000, 8192)
    told = model_limits.sizes(SPEC, ModelLimits(60_000, 2048))
    assert (told.window, told.output) == (60_000, 2048)
    assert told.room == told.most < table.room
    assert model_limits.sizes(SPEC, ModelLimits(0, 128_000)) == table, "no longer reply than is set"
    assert prompt.context_window("claude-haiku-5-5", 1_000_000) == 160_000, "what its price rules out"
    assert prompt.context_window("somebody-else", 400_000) == 400_000


def test_what_was_told_is_known_to_those_that_follow_for_its_endpoint_and_model() -> None:
    known = KnownModels()
    known.note("http://a", "m", ModelLimits(1, 2))
    assert known.find("http://a", "m") == ModelLimits(1, 2)
    assert known.find("http://b", "m") is None
    assert known.find("http://a", "n") is None
