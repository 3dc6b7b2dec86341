"""The diff widget: roles that text cannot forge, safe text, jumps, two sizes."""

from __future__ import annotations

import difflib
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App, ComposeResult

from harness.views.replies import FileDiff
from tests.tui.painted import painted
from widgets.diff.diff_view import DiffView, code_display, patch_display, roles

PATCH = """diff --git a/src/a.py b/src/a.py
index 111..222 100644
--- a/src/a.py
+++ b/src/a.py
@@ -1,3 +1,4 @@ def f():
 one
--- two
+++ two
+\x1b[31mred\u202e
 three
diff --git a/b.txt b/b.txt
new file mode 100644
--- /dev/null
+++ b/b.txt
@@ -0,0 +1,50 @@
""" + "".join(f"+            line {i}\n" for i in range(50))


class Host(App[None]):
    def compose(self) -> ComposeResult:
        yield DiffView()


def grid(app: App[None]) -> list[str]:
    return [strip.text.rstrip(" ▁▂▃▄▅▆▇█") for strip in painted(app.screen)]


def test_roles_are_counted_out_not_guessed() -> None:
    found = roles(PATCH.split("\n")[:15])
    assert found == [
        "file",
        "meta",
        "meta",
        "meta",
        "hunk",
        "context",
        "remove",
        "add",
        "add",
        "context",
        "file",
        "meta",
        "meta",
        "meta",
        "hunk",
    ]
    assert roles(["@@ nonsense", "+x", "@@ -1 +1 @@", "-a", "+b", "\\ No newline at end of file", "+late"]) == [
        "hunk", "meta", "hunk", "remove", "add", "meta", "meta",
    ]  # fmt: skip


@given(st.lists(st.text("ab+-@ \\", max_size=6), max_size=12), st.lists(st.text("ab+-@ \\", max_size=6), max_size=12))
def test_every_real_change_gets_its_role(old: list[str], new: list[str]) -> None:
    lines = list(difflib.unified_diff(old, new, "a/x", "b/x", lineterm=""))
    found = roles(lines)
    assert found.count("add") - found.count("remove") == len(new) - len(old)
    assert all(role in ("meta", "hunk") or line[:1] in "+- " for line, role in zip(lines, found, strict=True))


@given(
    st.text(st.sampled_from(" \t\x1bab⟨⟩␉\u202e"), max_size=90),
    st.text(st.sampled_from(" \t\x1bab⟨⟩␉\u202e"), max_size=90),
)
def test_code_is_displayed_without_loss(one: str, other: str) -> None:
    assert (code_display(one) == code_display(other)) == (one == other)
    assert all(unicodedata.category(ch) not in ("Cc", "Cf") for ch in patch_display("+" + one))


@pytest.mark.parametrize("size", [(80, 24), (120, 40)])
async def test_it_shows_scrolls_and_jumps(size: tuple[int, int]) -> None:
    app = Host()
    async with app.run_test(size=size) as pilot:
        view = app.query_one(DiffView)
        await pilot.pause()
        assert grid(app)[0] == "no changes"
        view.set_diff(
            PATCH,
            [
                FileDiff("src/a.py", "M", 2, 1),
                FileDiff("b\x07.txt", "A", 50, 0),
            ],
        )
        view.focus()
        await pilot.pause()
        rows = grid(app)
        assert rows[0].split() == ["M", "+2", "-1", "src/a.py"]
        assert rows[1].split() == ["A", "+50", "-0", "b␇.txt"]
        assert "+␛[31mred⟨U+202E⟩" in rows
        assert "+            line 0" in rows, "indentation is kept"
        assert view.files == 2
        tops = []
        for key in ("right_curly_bracket", "right_curly_bracket", "left_curly_bracket"):
            await pilot.press(key)
            await pilot.pause()
            tops.append(grid(app)[0])
        assert tops == [
            "diff --git a/src/a.py b/src/a.py",
            "diff --git a/b.txt b/b.txt",
            "diff --git a/src/a.py b/src/a.py",
        ]
        assert grid(app)[0] == "diff --git a/src/a.py b/src/a.py"
        await pilot.press("end")
        await pilot.pause()
        view.scroll_end(animate=False)
        await pilot.pause()
        assert "line 49" in "\n".join(grid(app))
        view.set_diff("", empty="nothing yet")
        await pilot.pause()
        assert grid(app)[0] == "nothing yet"


async def test_wide_text_is_cut_by_cells_and_can_be_scrolled_to() -> None:
    app = Host()
    async with app.run_test(size=(40, 10)) as pilot:
        view = app.query_one(DiffView)
        view.set_diff("@@ -0,0 +1 @@\n+" + "漢字" * 30 + "end\n")
        await pilot.pause()
        view.scroll_to(x=30, animate=False)
        await pilot.pause()
        assert "漢" in grid(app)[1]
