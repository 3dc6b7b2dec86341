"""A process that works for long does not gather what it freed."""

from __future__ import annotations

import sys

from harness.linux.spares import Spares
from harness.sandbox import limits

TURNS = 1000


def test_blocks_of_memory_do_not_gather_with_the_work_that_was_done() -> None:
    """Each turn makes tuples from iterators, as a call of a keeper does: they ended among the spares of their length,
    one more of each with every turn.
    """
    wire = limits.DEFAULT.to_wire()
    spares = Spares()
    spares.used()
    before = sys.getallocatedblocks()
    for turn in range(TURNS):
        wire = limits.from_wire(wire).to_wire()
        assert tuple(str(turn + number) for number in range(7))
        spares.used()
    assert sys.getallocatedblocks() - before < TURNS // 4
