"""A thread asks for short turns of the processor; what it starts does not get them."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from harness.linux import time_slices

ASKED_NS = 400_000


def test_a_thread_gets_its_short_turns_and_what_it_starts_has_usual_ones() -> None:
    usual = time_slices.length(0)
    if not usual:
        pytest.skip("this kernel's scheduler does not say how long turns are")
    seen: list[int] = []

    def work() -> None:
        time_slices.shorten(threading.get_native_id(), ASKED_NS)
        seen.append(time_slices.length(0))
        asked = "from harness.linux import time_slices; print(time_slices.length(0))"
        seen.append(int(subprocess.run([sys.executable, "-c", asked], capture_output=True, check=True).stdout))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [ASKED_NS, usual]
    assert time_slices.length(0) == usual


def test_a_thread_that_is_gone_is_an_error() -> None:
    with pytest.raises(OSError, match="No such process"):
        time_slices.shorten(2**22 + 1, ASKED_NS)
