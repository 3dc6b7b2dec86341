"""What really goes to the model: a way station between a fleet and its simulator that keeps each request."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.fleetlib import Fleet


class Recorder:
    """The bodies of the requests for a message, in the order in which they came; and what was asked of models."""

    def __init__(self) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.asked: list[str] = []
        """Paths of what was only read."""
        self.told: bytes | None = None
        """What is answered to these, in the place of the endpoint; empty cuts them off."""
        self.of_model: dict[str, bytes] = {}
        """The same for single models."""

    def of(self, goal: str) -> list[str]:
        """All text that the requests of the session with this goal showed, request by request."""
        return [json.dumps(b, ensure_ascii=False) for b in self.bodies if goal in json.dumps(b["messages"][0])]


@contextmanager
def recorded(f: Fleet) -> Iterator[Recorder]:
    """Every request of this fleet passes here; to be entered before its first session is launched."""
    found = Recorder()
    target = urlsplit(f.base_url)

    class Station(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.path.startswith("/v1/messages") and "count_tokens" not in self.path:
                found.bodies.append(json.loads(body))
            onward = http.client.HTTPConnection(target.hostname or "", target.port)
            onward.request("POST", self.path, body, dict(self.headers))
            answer = onward.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "connection", "content-length", "date", "server"):
                    self.send_header(name, value)
            self.send_header("connection", "close")
            self.end_headers()
            while piece := answer.read1():
                self.wfile.write(piece)
            self.close_connection = True
            onward.close()

        def do_GET(self) -> None:
            found.asked.append(self.path)
            told = found.of_model.get(self.path.rpartition("/")[2], found.told)
            if told is None:
                onward = http.client.HTTPConnection(target.hostname or "", target.port)
                onward.request("GET", self.path, headers=dict(self.headers))
                told = onward.getresponse().read()
                onward.close()
            self.close_connection = True
            if not told:
                return
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(told)))
            self.end_headers()
            self.wfile.write(told)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Station)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    here = f"http://127.0.0.1:{server.server_address[1]}"
    f.folders.config_file.write_text(f.folders.config_file.read_text().replace(f.base_url, here))
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
