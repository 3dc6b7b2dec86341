"""The three themes: dark, light, and ANSI (the terminal's own sixteen colours)."""

from __future__ import annotations

import contextlib
from pathlib import Path

from textual.theme import BUILTIN_THEMES, Theme

NAMES = ("dark", "light", "ansi")
FILE = "theme"
"""In the state folder: the theme that was chosen on a screen."""

DARK = Theme(
    name="dark",
    primary="#6cb6ff",
    secondary="#8ddb8c",
    accent="#7ee0d2",
    foreground="#d7dee6",
    background="#0f1318",
    surface="#151b22",
    panel="#1d2630",
    success="#7bc77b",
    warning="#f0b449",
    error="#ff7b72",
    dark=True,
    variables={
        "border": "#6cb6ff",
        "border-blurred": "#35414d",
        "block-cursor-background": "#274a6b",
        "block-cursor-foreground": "#f2f6fa",
        "scrollbar": "#2b3641",
        "scrollbar-background": "#0f1318",
        "scrollbar-hover": "#3d4b59",
        "scrollbar-active": "#6cb6ff",
        "text-muted": "#8695a4",
        "text-disabled": "#5b6874",
    },
)

LIGHT = Theme(
    name="light",
    primary="#0b5cad",
    secondary="#1a7f37",
    accent="#0a6e6a",
    foreground="#1d2329",
    background="#fbfbf9",
    surface="#f3f3ef",
    panel="#e6e8e6",
    success="#1a7f37",
    warning="#9a5b00",
    error="#c2232e",
    dark=False,
    variables={
        "border": "#0b5cad",
        "border-blurred": "#bcc3c9",
        "block-cursor-background": "#cfe3f7",
        "block-cursor-foreground": "#10151a",
        "scrollbar": "#cdd2d6",
        "scrollbar-background": "#fbfbf9",
        "scrollbar-hover": "#aeb6bd",
        "scrollbar-active": "#0b5cad",
        "text-muted": "#5c6771",
        "text-disabled": "#98a1a9",
    },
)


def themes() -> list[Theme]:
    """All themes to register, in cycling order."""
    base = BUILTIN_THEMES["ansi-dark"]
    variables = dict(base.variables) | {"border-blurred": "ansi_bright_black"}
    ansi = Theme(
        name="ansi",
        ansi=True,
        primary="ansi_blue",
        secondary="ansi_cyan",
        warning="ansi_yellow",
        error="ansi_red",
        success="ansi_green",
        accent="ansi_cyan",
        foreground="ansi_default",
        background="ansi_default",
        surface="ansi_default",
        panel="ansi_default",
        boost="ansi_default",
        variables=variables,
    )
    return [DARK, LIGHT, ansi]


def remembered(file: Path) -> str:
    """The theme that was chosen last; empty when none was, or it is none of ours."""
    try:
        name = file.read_text("utf-8")[:40].strip()
    except (OSError, ValueError):
        return ""
    return name if name in NAMES else ""


def remember(file: Path, name: str) -> None:
    """Keep the choice for the next screen, where that is possible."""
    with contextlib.suppress(OSError):
        file.write_text(name + "\n", "utf-8")


def following(name: str) -> str:
    """The theme after this one."""
    return NAMES[(NAMES.index(name) + 1) % len(NAMES)] if name in NAMES else NAMES[0]
