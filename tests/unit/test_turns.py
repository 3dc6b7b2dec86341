"""Turns over descriptors: what a handler has let go of is not handled any more."""

from __future__ import annotations

import functools
import os
import socket

from harness.keeper.loop.timers import Turns


def test_a_descriptor_that_is_let_go_of_in_the_same_turn_is_not_handled() -> None:
    turns = Turns()
    pairs = [socket.socketpair() for _ in range(2)]
    handled: list[int] = []

    def run(number: int) -> None:
        handled.append(number)
        other = pairs[1 - number][0]
        turns.unwatch(other.fileno())
        other.close()
        turns.stopping = True

    for number, (ours, theirs) in enumerate(pairs):
        turns.watch(ours.fileno(), functools.partial(run, number))
        theirs.send(b"x")
    turns.run()
    assert len(handled) == 1


def test_one_that_takes_the_number_of_another_in_the_same_turn_is_handled_for_itself() -> None:
    turns = Turns()
    first = socket.socketpair()
    second = socket.socketpair()
    again = socket.socketpair()
    handled: list[str] = []

    def replaced(own: socket.socket, other: socket.socket) -> None:
        handled.append("old")
        number = other.fileno()
        turns.unwatch(number)
        os.dup2(again[0].fileno(), number)
        turns.watch(number, lambda: done(number))
        turns.unwatch(own.fileno())

    def done(number: int) -> None:
        handled.append("new")
        assert os.read(number, 9) == b"again"
        turns.stopping = True

    turns.watch(first[0].fileno(), lambda: replaced(first[0], second[0]))
    turns.watch(second[0].fileno(), lambda: replaced(second[0], first[0]))
    for _, theirs in (first, second, again):
        theirs.send(b"again")
    turns.run()
    assert handled == ["old", "new"]
    for pair in (first, second, again):
        for one in pair:
            one.close()
