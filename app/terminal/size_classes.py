"""The classes that style a screen by the terminal's size. Textual sets them after the first two frames."""

from __future__ import annotations

from textual.app import App


def size_classes(app: App[object]) -> str:
    """Those that hold now, for a screen that is about to be made."""
    width, height = app.size
    steps = ((width, app.HORIZONTAL_BREAKPOINTS or []), (height, app.VERTICAL_BREAKPOINTS or []))
    return " ".join(max(step for step in known if step[0] <= cells)[1] for cells, known in steps if known)
