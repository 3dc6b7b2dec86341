"""How many tests a check ran, by what its runner printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checks.runner_counts import Counts, judge, parse

OUTPUTS = {
    "pytest quiet": ("...\n3 passed in 0.01s\n", Counts(3)),
    "pytest framed": (
        "===== 1 failed, 2 passed, 1 skipped, 1 xfailed, 3 warnings in 75.20s (0:01:15) =====\n",
        Counts(3, 2, 1, 2),
    ),
    "pytest coloured": ("\x1b[32m\x1b[1m4 passed\x1b[0m\x1b[32m in 0.02s\x1b[0m\n", Counts(4)),
    "pytest subtests": ("5 passed, 6 subtests passed in 0.02s\n", Counts(5)),
    "pytest none": ("\nno tests ran in 0.00s\n", Counts(0)),
    "pytest all deselected": ("4 deselected in 0.01s\n", Counts(0, 4)),
    "pytest all skipped": ("ss\n2 skipped in 0.01s\n", Counts(0, 2, 0, 2)),
    "pytest error": ("1 error in 0.10s\n", Counts(1, 0, 1)),
    "unittest": ("Ran 5 tests in 0.001s\n\nOK (skipped=2)\n", Counts(3, 2, 0, 2)),
    "unittest bad": (
        "Ran 5 tests in 0.001s\n\nFAILED (failures=1, errors=1, expected failures=1)\n",
        Counts(4, 1, 2, 1),
    ),
    "unittest none": ("Ran 0 tests in 0.000s\n\nNO TESTS RAN\n", Counts(0)),
    "jest": ("Tests:       1 failed, 2 skipped, 1 todo, 3 passed, 7 total\n", Counts(4, 3, 1)),
    "vitest": (" Test Files  1 passed (1)\n      Tests  3 passed | 1 skipped (4)\n", Counts(3, 1)),
    "mocha": ("  5 passing (10ms)\n  1 pending\n  2 failing\n", Counts(7, 1, 2)),
    "cargo": (
        "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.00s\n"
        "test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
        Counts(4, 3),
    ),
    "go verbose": ("--- PASS: TestA (0.00s)\n--- SKIP: TestB (0.00s)\nok  \tx/y\t0.01s\n", Counts(1, 1)),
    "go packages": ("ok  \tx/y\t0.01s\nok  \tx/z\t(cached) [no tests to run]\n", Counts(1)),
    "node": ("# tests 4\n# pass 3\n# fail 0\n# cancelled 0\n# skipped 1\n# todo 0\n", Counts(3, 1)),
    "bats": ("1..3\nok 1 a\nok 2 b # skip later\nnot ok 3 c\n# (in test file a.bats, line 8)\n", Counts(2, 1, 1)),
    "bats without a test": ("1..0\n", Counts(0)),
    "prove": ("t/a.t .. ok\nAll tests successful.\nFiles=1, Tests=2,  0 wallclock secs\nResult: PASS\n", Counts(2)),
    "minitest": ("2 runs, 1 assertions, 0 failures, 0 errors, 1 skips\n", Counts(1, 1)),
    "phpunit": ("OK (1 test, 1 assertion)\n", Counts(1)),
    "phpunit that skips": ("Tests: 3, Assertions: 1, Failures: 1, Skipped: 1.\n", Counts(2, 1, 1)),
    "jasmine": ("2 specs, 0 failures, 1 pending spec\n", Counts(1, 1)),
    "rspec": ("6 examples, 1 failure, 2 pending\n", Counts(4, 2, 1)),
    "maven": ("Tests run: 5, Failures: 0, Errors: 0, Skipped: 1\n", Counts(4, 1)),
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_what_a_runner_prints_is_counted(name: str) -> None:
    output, counts = OUTPUTS[name]
    assert parse(output) == counts


@pytest.mark.parametrize("output", ["", "all good\n", "I say: 5 passed, really\n", "OK\n", "built in 0.3s\n"])
def test_other_output_tells_of_no_tests(output: str) -> None:
    assert parse(output) is None


@given(st.text(max_size=300))
def test_any_output_can_be_read(output: str) -> None:
    found = parse(output)
    assert found is None or (found.ran >= 0 and found.excused >= 0)


def test_an_exit_code_is_not_enough() -> None:
    first = Counts(5, 1)
    assert judge("pytest -q", 0, "5 passed, 1 skipped in 0.1s\n", first).passed
    assert judge("pytest -q", 0, "7 passed, 1 skipped in 0.1s\n", first).passed
    assert not judge("pytest -q", 1, "5 passed, 1 skipped in 0.1s\n", first).passed
    assert "ran at first" in judge("pytest -q", 0, "4 passed, 1 skipped in 0.1s\n", first).why
    assert "skipped" in judge("pytest -q", 0, "5 passed, 2 skipped in 0.1s\n", first).why
    assert "tells of none" in judge("./check.sh", 0, "", first).why
    assert "no test ran" in judge("./check.sh", 0, "no tests ran in 0.00s\n", None).why
    assert "1 test that failed" in judge("make", 0, "1 failed, 5 passed in 0.1s\n", None).why
    assert judge("! ( pytest )", 0, "1 failed, 5 passed in 0.1s\n", None).passed
    assert judge("( pytest ); test $? -eq 1", 0, "1 failed in 0.1s\n", None).passed


def test_a_test_that_is_skipped_by_no_test_does_not_pass() -> None:
    words = "5 passed, 1 skipped, 1 xfailed in 0.1s\n"
    assert judge("pytest", 0, words, None).passed
    assert "2 tests skipped or expected to fail" in judge("pytest", 0, words, None, excused=False).why
    for words in ("5 passed in 0.1s\n", "5 passed, 1 deselected in 0.1s\n", ""):
        assert judge("pytest -q | cat", 0, words, None, excused=False).passed


@pytest.mark.parametrize(
    "command",
    ["pytest", "python3 -m pytest -q tests", "python -m unittest -q", "go test ./...", "cargo test", "npx jest"],
)
def test_a_test_runner_that_tells_of_no_test_does_not_pass(command: str) -> None:
    assert "no test" in judge(command, 0, "", None).why


@pytest.mark.parametrize(
    "command",
    ["true", "ruff check .", "pytest | tail -1", "pytest > log", "python -m pytest -qq", "test -f pytest.ini"],
)
def test_what_need_not_tell_of_tests_passes_by_its_exit_code(command: str) -> None:
    assert judge(command, 0, "", None).passed


@given(st.integers(1, 50), st.integers(0, 5), st.integers(0, 50), st.integers(0, 5))
def test_a_check_passes_on_no_fewer_tests_and_no_more_skips_than_at_first(a: int, b: int, c: int, d: int) -> None:
    words = f"{c} passed, {d} skipped in 0.10s\n"
    assert judge("pytest", 0, words, Counts(a, b)).passed is (c >= a and d <= b)
