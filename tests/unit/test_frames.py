"""Frames survive any splitting of the stream and refuse what is none."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.protocol.connection import frames

JSON = st.dictionaries(
    st.text(max_size=8), st.one_of(st.text(max_size=20), st.integers(), st.booleans(), st.none()), max_size=4
)


@given(st.lists(JSON, max_size=8), st.lists(st.integers(1, 50), max_size=20))
def test_any_split_gives_the_same_messages(messages: list[dict[str, object]], cuts: list[int]) -> None:
    stream = b"".join(frames.encode(m) for m in messages)
    decoder = frames.Decoder()
    seen = []
    at = 0
    for cut in [*cuts, len(stream)]:
        seen += [frames.parse(b) for b in decoder.feed(stream[at : at + cut])]
        at += cut
    assert seen == json.loads(json.dumps(messages))


def test_refuses_giants_and_non_objects() -> None:
    with pytest.raises(frames.FrameError):
        list(frames.Decoder().feed(b"\xff\xff\xff\xff"))
    for body in (b"[]", b"x", b"\xff"):
        with pytest.raises(frames.FrameError):
            frames.parse(body)


def test_lone_surrogates_do_not_break_a_frame() -> None:
    assert frames.parse(next(iter(frames.Decoder().feed(frames.encode({"t": "\ud800"}))))) == {"t": "?"}


def test_long_socket_paths_work(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120) / ("y" * 120)
    deep.mkdir(parents=True)
    server = frames.listen(deep / "a.sock")
    assert (deep / "a.sock").stat().st_mode & 0o777 == 0o600
    got: list[bytes] = []

    def serve() -> None:
        conn, _ = server.accept()
        got.append(conn.recv(10))
        conn.close()

    thread = threading.Thread(target=serve)
    thread.start()
    with frames.connect(deep / "a.sock") as client:
        client.sendall(b"hi")
        assert client.recv(1) == b""
    thread.join()
    server.close()
    assert got == [b"hi"]
