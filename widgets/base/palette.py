"""Colour roles from the theme in force.

One table for all our line widgets instead of component classes, whose styling costs a third of a start.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual.color import Color
from textual.theme import Theme
from textual.widget import Widget

# role: (theme colour, bold); the colours are names of Textual's theme variables.
ROLES: dict[str, tuple[str, bool]] = {
    "text": ("foreground", False),
    "name": ("foreground", True),
    "quiet": ("text-muted", False),
    "title": ("text-muted", True),
    "good": ("success", False),
    "bad": ("error", False),
    "attention": ("warning", False),
    "alarm": ("error", True),
    "call": ("warning", True),
    "meter": ("primary", False),
    "heading": ("primary", True),
    "second": ("accent", False),
    "key": ("accent", True),
    "border": ("border-blurred", False),
}
_made: dict[str, tuple[Theme, Mapping[str, Style]]] = {}


def palette(widget: Widget) -> Mapping[str, Style]:
    """Style of every role: those of `ROLES`, and ``selected`` (a background) and ``chosen`` (the same where the focus
    is).
    """
    theme = widget.app.current_theme
    known = _made.get(theme.name)
    if known is None or known[0] is not theme:
        known = theme, _make(theme)
        _made[theme.name] = known
    return known[1]


def _make(theme: Theme) -> dict[str, Style]:
    given = {
        name: value
        for name in ("primary", "accent", "foreground", "success", "warning", "error", "panel")
        if (value := getattr(theme, name)) is not None
    }
    given |= theme.variables
    if not {colour for colour, _ in ROLES.values()} | {"panel"} <= given.keys():
        given = theme.to_color_system().generate() | given
    styles = {
        role: _style(given.get(colour, ""), bold, theme.ansi and colour in ("text-muted", "border-blurred"))
        for role, (colour, bold) in ROLES.items()
    }
    if theme.ansi:
        # A bar is drawn by the part of its cell that is filled, which reversed would be the rest of it.
        styles["meter"] += Style(reverse=False)
        return styles | {"selected": Style(underline=True), "chosen": Style(reverse=True)}
    panel = Style(bgcolor=Color.parse(given["panel"]).rich_color)
    return styles | {"selected": panel, "chosen": panel}


def _style(colour: str, bold: bool, dim: bool) -> Style:
    if dim or colour.startswith("auto") or not colour:
        # A colour relative to the background ("auto 60%") is the terminal's dim in a line widget.
        return Style(dim=True, bold=bold or None)
    return Style(color=Color.parse(colour).rich_color, bold=bold or None)
