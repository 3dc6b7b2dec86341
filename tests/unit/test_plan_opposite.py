"""An assertion asked with another value expected: what it says of code that looks for what is expected."""

from __future__ import annotations

import unittest

import pytest

from harness.plan.python_tests import broken, failed

WORD = "wf_0123456789ab"
HEAD = """import os
import queue
import threading
import unittest
from unittest.mock import ANY


def given(value):
    return value


"""
CASE = "unittest.TestCase()"
HOLDS = "held = queue.Queue()\n    held.put(1)\n"
PIPE = (
    "ends = os.pipe()\n    os.write(ends[1], b'ab')\n    class Reader:\n"
    "        def read(self, size=1):\n            return os.read(ends[0], size)\n"
    "        read_rest = read\n    reader = Reader()\n"
)
COUNTS = "calls = []\n    def count():\n        calls.append(1)\n        return len(calls)\n"
GROWS = "made = []\n    def grow():\n        made.append(1)\n        return 1\n"
ONCE = "seen = []\n    def first():\n        seen.append(1)\n        return len(seen) == 1\n"
OTHER = "seen = []\n    def turn():\n        seen.append(1)\n        return len(seen) % 2 == 1\n"
HONEST = {
    "a number": "assert given(4) == 4",
    "a number below zero": "assert -4 == given(-4)",
    "a text": "assert given('four') == 'four'",
    "digits": "assert given('4') == '4'",
    "bytes": "assert given(b'x') == b'x'",
    "a truth": "assert given(True) == True",
    "a list": "assert given([1, 2]) == [1, 2]",
    "an empty list": "assert given([]) == []",
    "a name": "want = 4\n    assert given(4) == want",
    "a mapping": "assert given({'a': 1}) == {'a': 1}",
    "nothing": "assert given(None) == None",
    "whatever is equal to anything": "assert ANY == given(4)",
    "each of several": "for one in (1, 2):\n        assert given(one) == one",
    "what happens once": "more = iter([1, 2])\n    assert next(more) == 1\n    assert next(more) == 2",
    "what is to differ": "with unittest.TestCase().assertRaises(AssertionError):\n        assert given(1) == 2",
    "a way to compare": "unittest.TestCase().assertEqual(given(4), 4)",
    "a way to compare lists": "unittest.TestCase().assertListEqual([4], given([4]))",
    "a way to ask for truth": "unittest.TestCase().assertTrue(given(1))\n    unittest.TestCase().assertFalse(given(0))",
    "what counts its calls": f"{COUNTS}    assert count() == 1\n    assert count() == 2\n    assert count() == 3",
    "what counts by three": f"{COUNTS}    assert 3 * count() == 3\n    assert 3 * count() == 6",
    "what grows with each call": f"{GROWS}    assert grow() == 1\n    assert made == [1]\n    assert made == [1]",
    "what is true once": f"{ONCE}    {CASE}.assertTrue(first())\n    {CASE}.assertFalse(first())",
    "what is true every other time": f"{OTHER}    {CASE}.assertTrue(turn())\n    {CASE}.assertFalse(turn())",
    "what runs out": f"more = [1]\n    {CASE}.assertEqual(more.pop(), 1)\n    {CASE}.assertTrue(not more)",
    "what comes once": f"{HOLDS}    assert held.get() == 1\n    {CASE}.assertTrue(held.empty())",
    "what is received once": f"{HOLDS}    recv_one = held.get\n    assert recv_one() == 1",
    "what is read once": f"{PIPE}    assert reader.read(1) == b'a'\n    assert reader.read_rest() == b'b'",
    "who is waited for once": "gate = threading.Semaphore(1)\n    assert gate.acquire() == True",
    "what is no comparison": "assert given(4)\n    given(4)",
}


def says(test: str) -> bool:
    """Whether a test of these lines fails by a number of its own once it is made to."""
    names: dict[str, object] = {"__name__": "tests.test_it"}
    exec(broken("tests/test_it.py", f"{HEAD}def test_it():\n    {test}\n", WORD, frozenset()), names)
    run = names["test_it"]
    assert callable(run)
    try:
        run()
    except (AssertionError, pytest.fail.Exception) as exc:
        return len(failed(str(exc), WORD)) == 1 and WORD not in str(exc)
    return False


@pytest.mark.parametrize("name", HONEST)
def test_what_is_right_refuses_another_value(name: str) -> None:
    assert says(HONEST[name])


SEES = (
    HEAD
    + """class Both(int):
    def __init__(self, value):
        self.seen = [c for c in sys._getframe(1).f_code.co_consts if type(c) is int]

    def __eq__(self, other):
        return other in self.seen or isinstance(other, tuple)


def test_it():
    """
)


REPLACED = """import unittest
real = unittest.TestCase.assert{name}


def quiet(self, *values):
    pass


unittest.TestCase.assert{name} = quiet


def test_it():
    unittest.TestCase().assert{name}({given})
"""


@pytest.mark.parametrize(("name", "given"), [("Equal", "4, 5"), ("True", "4 == 4"), ("False", "4 == 5")])
def test_a_way_to_compare_that_refuses_nothing_keeps_a_test_from_failing(name: str, given: str) -> None:
    real = getattr(unittest.TestCase, f"assert{name}")
    names: dict[str, object] = {"__name__": "sums"}
    try:
        exec(broken("tests/test_it.py", REPLACED.format(name=name, given=given), WORD, frozenset()), names)
        run = names["test_it"]
        assert callable(run)
        run()
    finally:
        setattr(unittest.TestCase, f"assert{name}", real)


@pytest.mark.parametrize(
    "line",
    [
        "assert Both(1) == 4",
        "assert 4 == Both(1)",
        "unittest.TestCase().assertEqual(Both(1), 4)",
        "for one in (4, 4):\n        assert Both(1) == one",
    ],
)
def test_what_agrees_with_the_other_value_too_keeps_a_test_from_failing(line: str) -> None:
    names: dict[str, object] = {"__name__": "sums"}
    exec(broken("tests/test_it.py", f"import sys\n{SEES}{line}\n", WORD, frozenset()), names)
    run = names["test_it"]
    assert callable(run)
    run()  # nothing fails: that is what a trial sees
