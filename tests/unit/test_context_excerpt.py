"""A large output in a request: short whatever it holds, with its ends, and with the way to the rest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.brain.context.excerpt import excerpt
from harness.simulator.tokens import of_text


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=9000), st.integers(9000, 1 << 30))
def test_it_is_short_and_keeps_both_ends(preview: str, size: int) -> None:
    text = excerpt(preview, size, "c12.0")
    assert len(text.encode()) < 3072 + 200
    *_, note = text.split("\n")
    assert note.startswith(f"[{size} bytes in all")
    assert "read_output with call c12.0" in note
    first = preview.split("\n")[0]
    last = preview.split("\n")[-1]
    assert text.startswith(first[:250].rstrip("\n"))
    assert last[-500:] in text


def test_five_megabytes_cost_less_than_a_thousand_tokens() -> None:
    lines = [f"tests/test_{n}.py::test_number_{n} PASSED in 0.{n} s" for n in range(300)]
    text = excerpt("\n".join(lines), 5 << 20, "c12.0")
    assert of_text(text) < 1000
    assert lines[0] in text.split("\n")
    assert lines[-1] in text.split("\n")
