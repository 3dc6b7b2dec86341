"""A real HTTP server with scripted replies, for tests of the brain: bytes go out as given, requests are kept."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Event = dict[str, Any]


def sse(events: Iterable[Event]) -> bytes:
    """The bytes of an event stream."""
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def reply(
    *blocks: Event,
    stop: str | None = "tool_use",
    usage: Event | None = None,
    message_id: str = "msg_1",
    chunk: int = 7,
    final: bool = True,
    details: Event | None = None,
) -> list[Event]:
    """The events of one reply; text and tool inputs come in pieces of ``chunk`` characters."""
    counts = {
        "input_tokens": 100,
        "cache_read_input_tokens": 20,
        "cache_creation_input_tokens": 3,
        "output_tokens": 1,
        **(usage or {}),
    }
    message: Event = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": "claude-test",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": counts,
    }
    events: list[Event] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    for i, block in enumerate(blocks):
        events += _block(i, block, chunk)
    if final:
        delta = {"stop_reason": stop, "stop_sequence": None, **({"stop_details": details} if details else {})}
        events += [{"type": "message_delta", "delta": delta, "usage": {"output_tokens": 42}}, {"type": "message_stop"}]
    return events


def _pieces(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]


def _block(i: int, block: Event, size: int) -> list[Event]:
    kind = block["type"]
    if kind == "text":
        start: Event = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"], size)]
    elif kind == "thinking":
        start = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"], size)]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    else:
        start = {"type": "tool_use", "id": block["id"], "name": block["name"], "input": {}}
        raw = block["raw"] if "raw" in block else json.dumps(block["input"])
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *_pieces(raw, size)]]
    return [
        {"type": "content_block_start", "index": i, "content_block": start},
        *({"type": "content_block_delta", "index": i, "delta": d} for d in deltas),
        {"type": "content_block_stop", "index": i},
    ]


@dataclass
class Answer:
    """One scripted HTTP answer. ``hold`` keeps the connection open after the bytes until the event is set."""

    body: bytes
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    hold: threading.Event | None = None
    length: bool = True
    """Announce the true length; False: close the connection at the end, as a cut stream does."""
    forever: bytes = b""
    """Sent again and again after the body, until the brain leaves."""
    before: threading.Event | None = None
    """Nothing at all is said before it is set."""


def stream(*blocks: Event, **options: Any) -> Answer:
    return Answer(sse(reply(*blocks, **options)), headers={"content-type": "text/event-stream"}, length=False)


def error(status: int, kind: str, message: str = "no", **extra: Any) -> Answer:
    details = extra.pop("details", None)
    body = {"type": "error", "error": {"type": kind, "message": message, **({"details": details} if details else {})}}
    return Answer(json.dumps(body).encode(), status, {"content-type": "application/json", **extra})


Script = Callable[[dict[str, Any]], Answer]


class ModelServer:
    """``script`` decides on each request body; without one, ``answers`` go out in order.

    ``count``: what count_tokens says (None = 404).
    """

    def __init__(self, *answers: Answer, script: Script | None = None, count: int | None = 50) -> None:
        self.answers = deque(answers)
        self.script = script
        self.count = count
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.arrived = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.serve(self, body)

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def serve(self, http: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        if "count_tokens" in http.path:
            found = self.count is not None
            self._send(
                http,
                Answer(
                    json.dumps({"input_tokens": self.count}).encode() if found else b"{}",
                    200 if found else 404,
                    {"content-type": "application/json"},
                ),
            )
            return
        with self.arrived:
            self.requests.append(body)
            self.headers.append({k.lower(): v for k, v in http.headers.items()})
            answer = self.script(body) if self.script is not None else self.answers.popleft()
            self.arrived.notify_all()
        self._send(http, answer)

    def _send(self, http: BaseHTTPRequestHandler, answer: Answer) -> None:
        try:
            if answer.before is not None:
                answer.before.wait(60)
            http.send_response(answer.status)
            for name, value in answer.headers.items():
                http.send_header(name, value)
            if answer.length:
                http.send_header("content-length", str(len(answer.body)))
            else:
                http.close_connection = True
                http.send_header("connection", "close")
            http.end_headers()
            http.wfile.write(answer.body)
            http.wfile.flush()
            while answer.forever:
                http.wfile.write(answer.forever)
                http.wfile.flush()
                time.sleep(0.01)
            if answer.hold is not None:
                answer.hold.wait(60)
        except (BrokenPipeError, ConnectionResetError):
            http.close_connection = True  # the brain was killed, which is what some tests do

    def wait_requests(self, count: int, within_s: float = 30.0) -> None:
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.requests) >= count, within_s), (
                f"{len(self.requests)} of {count} requests arrived"
            )

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
