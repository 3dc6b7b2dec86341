"""The names of calls: made in one place, and read there."""

from __future__ import annotations

import pytest

from harness.domain.calls.call_id import name_call, proposed_on, together


def test_a_name_says_on_which_head_a_call_was_proposed_and_with_which() -> None:
    assert name_call(12) == "c12.0"
    assert proposed_on(name_call(12, 3)) == 12
    assert together(name_call(12, 3)) == together(name_call(12)) != together(name_call(13))
    with pytest.raises(ValueError, match="toolu"):
        proposed_on("toolu_1")
