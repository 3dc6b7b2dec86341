"""Checks that are no test runner: Python that is made to fail, and what shares a process with what it decides about."""

from __future__ import annotations

import subprocess
import sys

import pytest

from harness.plan.inline import bare, code_of, doctested, failing, shares, with_code
from harness.plan.scripts import simple_commands

WORD = "wf_0123456789ab"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("python3 -c 'assert 1'", "assert 1"),
        ('python3 -Ic "assert 1"', "assert 1"),
        ("python3.11 -B -c 'a = 1; assert a > 0'", "a = 1; assert a > 0"),
        ("python3 -c 'assert 1' && true", ""),
        ("python3 -c 'assert 1' | grep x", ""),
        ("cd src; python3 -c 'assert 1'", ""),
        ('python3 -c "assert $N"', ""),
        ('python3 -c "assert `x`"', ""),
        ("python3 check.py", ""),
        ("python3 -m app -c 'x'", ""),
        (".venv/bin/python -c 'assert 1'", ""),
        ("grep -c 'x' y", ""),
        ("python3 -c 'unclosed", ""),
        ("", ""),
    ],
)
def test_code_that_is_the_whole_check_is_found(command: str, code: str) -> None:
    assert code_of(command) == code
    if code:
        assert code_of(with_code(command, "print('x')")) == "print('x')"


@pytest.mark.parametrize(
    "code", ["x = 1", "import sys; sys.exit(0)", "from __future__ import annotations\nx: int = 1", "1 / 0", ""]
)
def test_code_that_is_made_to_fail_fails_whatever_came_of_it(code: str) -> None:
    for made in (failing(code, WORD), bare(WORD)):
        done = subprocess.run([sys.executable, "-c", made], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        assert WORD in done.stderr


def test_what_is_no_python_is_left() -> None:
    assert failing("assert (", WORD) == ""


@pytest.mark.parametrize(
    ("text", "shared"),
    [
        ("node check.js", "node"),
        ("javac A.java && java -cp . A", "java"),
        ("python3 -m app check", "python3 -m app"),
        ("python3 -m compileall -q app", ""),
        ("x=1; python3 -c 'assert 1' && true", "python3 -c"),
        ("python3 -I -c 'assert 1' && true", ""),
        ("grep -q x README.md", ""),
        ("true", ""),
    ],
)
def test_what_runs_in_one_process_with_code_of_the_worktree_is_named(text: str, shared: str) -> None:
    assert shares([text], {"app", "app.py"}.__contains__) == shared


@pytest.mark.parametrize("command", ["python3 -m doctest a.py", "\n" * 5000 + "python3 -m doctest a.py"])
def test_whoever_changes_the_words_of_a_command_changes_nobody_elses(command: str) -> None:
    simple_commands(command)[0].clear()
    assert simple_commands(command) == [["python3", "-m", "doctest", "a.py"]]
    assert doctested([command]) == {"a.py"}
