"""Patterns over paths: what they mean, and that being ready for many paths changes nothing of it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checks.protected_files import CONFIGURATION, DATA, TESTS
from harness.domain.path_patterns import fits

NAMES = st.sampled_from(["tests", "test_a.py", "a", "aa", "conftest.py", "x.snap", ".cargo", "golden", "é", "a\nb"])
PATHS = st.lists(NAMES, min_size=1, max_size=5).map("/".join)
PIECES = st.sampled_from(["tests", "*", "**", "a*", "?", "*.py", ".cargo", "golden", "a", "test_*.py"])
PATTERNS = st.lists(PIECES, min_size=1, max_size=4).map("/".join)


def meant(path: str, pattern: str) -> bool:
    """The pattern by its definition, one whole expression over the path."""
    made = ""
    for piece in re.split(r"(\*\*/|\*\*|\*|\?)", pattern):
        made += {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}.get(piece, re.escape(piece))
    anywhere = "" if "/" in pattern else "(?:.*/)?"
    return re.fullmatch(f"{anywhere}{made}(?:/.*)?", path, re.DOTALL) is not None


@given(PATHS, st.lists(PATTERNS, max_size=4))
def test_a_path_fits_where_one_of_the_patterns_means_it(path: str, patterns: list[str]) -> None:
    assert fits(path, patterns) is any(meant(path, one) for one in patterns)


@given(PATHS, st.sampled_from([TESTS, DATA, CONFIGURATION]))
def test_the_long_lists_mean_what_their_patterns_do(path: str, patterns: tuple[str, ...]) -> None:
    assert fits(path, patterns) is any(meant(path, one) for one in patterns)


@pytest.mark.parametrize(
    ("path", "pattern", "fit"),
    [
        ("src/conftest.py", "conftest.py", True),
        ("conftest.py/x", "conftest.py", True),
        ("src/testdata/a/b", "**/testdata/**", True),
        ("src/testdata", "**/testdata/**", False),
        ("a/.cargo/config", ".cargo/**", False),
        (".cargo/config", "./.cargo/**", True),
    ],
)
def test_examples(path: str, pattern: str, fit: bool) -> None:
    assert fits(path, (pattern,)) is fit
