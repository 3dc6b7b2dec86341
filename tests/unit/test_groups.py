"""A session's processes are put behind those of others as a whole, where the kernel groups by session."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from harness.linux import groups
from tests.autogroup import grouping

pytestmark = pytest.mark.skipif(not grouping(), reason="this kernel does not group processes by session")
NOBODY = 65534


def session(code: str) -> str:
    """What a Python prints that leads a session of its own."""
    command = [sys.executable, "-c", f"from harness.linux import groups; {code}"]
    return subprocess.run(command, capture_output=True, text=True, check=True, start_new_session=True).stdout


def test_a_session_is_lowered_and_what_it_starts_is_in_its_group() -> None:
    of_a_child = "from harness.linux import groups; print(groups.nice())"
    child = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {of_a_child!r}])"
    assert session(f"groups.lower(4); {child}") == "4\n"
    assert groups.nice() in (0, None)  # ours is as it was: nobody else was lowered


def test_a_session_that_began_before_the_kernel_grouped_has_no_value() -> None:
    assert groups.value(b"") is None
    assert groups.value(b"/autogroup-17 nice -3\n") == -3


def test_without_privileges_the_second_of_two_waits_for_its_turn() -> None:
    leave = f"import os; from harness.linux import kernel; os.setuid({NOBODY}); kernel.prctl(kernel.PR_SET_DUMPABLE, 1)"
    anybody = leave if os.geteuid() == 0 else "pass"
    twice = "groups.lower_ours(1, tries=50); groups.lower_ours(2, tries=50); print(groups.nice())"
    assert session(f"{anybody}; {twice}") == "2\n"


def test_a_value_that_the_kernel_refuses_changes_nothing() -> None:
    assert session("groups.lower(99); print(groups.nice())") == "0\n"
