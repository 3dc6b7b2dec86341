"""The nursery of brains loads the SDK without what no brain asks for, and whole when it cannot do without."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from harness.brain.api import lean_sdk
from harness.brain.brain_nursery import WHOLE
from harness.protocol.connection import frames

_LOADED = """
import sys
from harness.brain.api import lean_sdk
lean_sdk.leave_out()
from harness.brain.api import warm
warm.load()
for name in lean_sdk.UNUSED:
    below = [m for m in sys.modules if m == name or m.startswith(name + ".")]
    print(name, len(below), all(type(sys.modules[m]) is lean_sdk.StandIn for m in below))
"""


def test_a_reply_a_refusal_and_a_count_need_nothing_of_what_is_left_out() -> None:
    ran = subprocess.run([sys.executable, "-P", "-s", "-c", _LOADED], capture_output=True, text=True, check=True)
    told = {name: (int(count), left) for name, count, left in map(str.split, ran.stdout.splitlines())}
    assert told.keys() == set(lean_sdk.UNUSED)
    assert {name for name, (_, left) in told.items() if left != "True"} == set(), "loaded after all"
    assert {name for name, (count, _) in told.items() if not count} == set(), "the SDK has no such part any more"


def test_it_is_not_made_lean_once_it_is_loaded() -> None:
    import anthropic

    before = list(sys.meta_path)
    with pytest.raises(RuntimeError, match="loaded already"):
        lean_sdk.leave_out()
    assert sys.meta_path == before
    assert anthropic.types.beta.BetaMessage.__name__ == "BetaMessage"


@pytest.mark.parametrize("whole", [False, True])
def test_a_nursery_that_cannot_load_it_lean_loads_it_whole(tmp_path: Path, whole: bool) -> None:
    if whole:  # an SDK that does not let go of what it has
        (tmp_path / "sitecustomize.py").write_text("import anthropic\n")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(60)
        nursery = subprocess.Popen(
            [sys.executable, "-P", "-s", "-m", "harness.brain.brain_nursery", "--fd", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            env=os.environ | {"PYTHONPATH": str(tmp_path)},
            stderr=subprocess.PIPE,
            text=True,
        )
        theirs.close()
        ours.sendall(frames.encode({"id": 1, "op": "none"}))
        decoder = frames.Decoder()
        replies: list[bytes] = []
        while not replies:
            replies = list(decoder.feed(ours.recv(1 << 16)))
        command = Path(f"/proc/{nursery.pid}/cmdline").read_bytes().decode().split("\0")
    said = nursery.communicate(timeout=60)[1]
    assert frames.parse(replies[0])["error"]["code"] == "bad_op"
    assert (WHOLE in command) is whole
    assert ("it is loaded whole" in said) is whole
    assert nursery.returncode == 0
