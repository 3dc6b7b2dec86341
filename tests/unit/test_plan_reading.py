"""Which checks only read: those may run side by side before the work."""

from __future__ import annotations

import pytest

from harness.checks.reading_only import only_reads


@pytest.mark.parametrize(
    "command",
    [
        "test -f README.md",
        "[ -s a ] && ! grep -rn TODO src",
        "! grep -q x a.txt 2>/dev/null",
        "sleep 0.05; test -f 3.txt",
        "wc -l < a.txt | grep -q 3",
        "cmp a b >/dev/null 2>&1 || false",
        "grep -q 'a b' notes.txt && true",
    ],
)
def test_what_only_reads(command: str) -> None:
    assert only_reads(command)


@pytest.mark.parametrize(
    "command",
    [
        "",
        "npm test",
        "python3 -m unittest",
        "echo x > a.txt",
        "cat a >> b",
        "test -f $(touch x)",
        "test -f `touch x`",
        "grep -q x a | tee b",
        "find . -delete",
        "sort -o a a",
        "sed -i s/a/b/ a",
        "true; rm a",
        "env rm a",
        "X=1 ./run",
        "diff <(touch x) a",
        "true # and\nrm a",
        "if true; then rm a; fi",
        "cat a &> b",
    ],
)
def test_what_may_write_or_is_not_certain(command: str) -> None:
    assert not only_reads(command)
