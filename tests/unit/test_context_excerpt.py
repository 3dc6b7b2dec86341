"""A large output in a request: short whatever it holds, with its ends, and with the way to the rest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.brain.context.excerpt import excerpt
from harness.events import types as t
from harness.simulator.tokens import of_text
from tests.unit.test_brain_loop import World, shape, use


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
    w = World()
    w.ask()
    w.reply("tool_use", use(1))
    (call_id,) = w.propose()
    kept = t.BlobRef("0" * 64, 5 << 20)
    w.put(t.ToolEnded(call_id=call_id, status="ok", preview="\n".join(lines), exit_code=0, output=kept))
    text = next(b["content"] for b in shape(w.view)[-1]["content"] if b["type"] == "tool_result")
    assert text == excerpt("\n".join(lines), 5 << 20, call_id)
    assert of_text(text) < 1000
    assert lines[0] in text.split("\n")
    assert lines[-1] in text.split("\n")
    assert w.view.measure().now < 1000
