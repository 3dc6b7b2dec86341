"""A recorded stream with a tool call, cut at every byte: never a call that could run."""

from __future__ import annotations

from collections.abc import Iterator

import anthropic
import httpx2
import pytest

from harness.brain.api import stream
from harness.brain.api.retry import Failure
from harness.events.types import Usage
from harness.tools import registry
from tests.process.brainlib import reply, sse

CALL = {
    "type": "tool_use",
    "id": "toolu_1",
    "name": "shell",
    "input": {"script": "rm -rf build && echo ü", "why": "clean"},
}
BODY = sse(
    reply(
        {"type": "thinking", "thinking": "hm", "signature": "cw=="},
        {"type": "text", "text": "Cleaning."},
        CALL,
        chunk=9,
    )
)
STOP = BODY.rindex(b"event: message_stop")
REQUEST = stream.AttemptRequest(
    "claude-test",
    100,
    [],
    [tool.definition() for tool in registry.TABLE.values()],
    b'[{"role":"user","content":[{"type":"text","text":"go"}]}]',
)


class Cut(httpx2.SyncByteStream):
    """The first ``size`` bytes; then the end of the stream, or a broken connection."""

    def __init__(self, size: int, broken: bool) -> None:
        self._size = size
        self._broken = broken

    def __iter__(self) -> Iterator[bytes]:
        for at in range(0, self._size, 512):
            yield BODY[at : min(self._size, at + 512)]
        if self._broken:
            raise httpx2.ReadError("connection reset by peer")


def outcomes(broken: bool, sizes: range) -> list[stream.ModelReply | Failure]:
    bodies = iter([Cut(size, broken) for size in sizes])
    headers = {"content-type": "text/event-stream"}
    http = anthropic.DefaultHttpxClient(
        transport=httpx2.MockTransport(lambda _: httpx2.Response(200, headers=headers, stream=next(bodies)))
    )
    with anthropic.Anthropic(
        api_key="k", base_url="http://cut.invalid", max_retries=0, http_client=http, open_telemetry=False
    ) as client:
        return [stream.attempt(client, REQUEST, lambda: None) for _ in sizes]


@pytest.mark.parametrize("broken", [False, True])
def test_cut_at_every_byte_runs_nothing(broken: bool) -> None:
    """Before ``message_stop`` no cut gives a reply; each one is a failure that another attempt may mend: free until the
    first event is whole, of unknown cost from there on.
    """
    found = outcomes(broken, range(STOP + 1))
    assert len(found) == STOP + 1
    for size, outcome in enumerate(found):
        assert isinstance(outcome, Failure), f"cut at byte {size} became a reply"
        assert outcome.kind in ("cut", "network") or (size == 0 and outcome.kind == "page"), f"byte {size}: {outcome}"
    free = [outcome.usage == Usage() for outcome in found if isinstance(outcome, Failure)]
    begun = free.index(False)
    assert 0 <= BODY.index(b"\n\n") + 2 - begun <= 1
    assert not any(free[begun:])


@pytest.mark.parametrize("broken", [False, True])
def test_inside_the_last_event_only_the_whole_message_counts(broken: bool) -> None:
    """The content is whole here; still only a readable ``message_stop`` makes a reply, and then the call is exactly the
    recorded one.
    """
    for outcome in outcomes(broken, range(STOP + 1, len(BODY) + 1)):
        if isinstance(outcome, stream.ModelReply):
            assert outcome.content[-1] == CALL
        else:
            assert outcome.usage is None
    assert isinstance(outcomes(broken, range(len(BODY), len(BODY) + 1))[0], stream.ModelReply)
