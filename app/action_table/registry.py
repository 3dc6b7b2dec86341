"""The one registry of actions: bindings, palette, help screen, help bar and docs/keys.md are all made from it."""

from __future__ import annotations

from collections.abc import Iterable

from app.action_table import everywhere, fleet, floor, looking, panes, queue, rules, session
from app.action_table.action import EVERYWHERE, SCOPES, Action, Scope

ACTIONS: tuple[Action, ...] = (
    *everywhere.ACTIONS,
    *floor.ACTIONS,
    *looking.ACTIONS,
    *panes.ACTIONS,
    *queue.ACTIONS,
    *rules.ACTIONS,
    *session.ACTIONS,
    *fleet.ACTIONS,
)

BY_ID: dict[str, Action] = {action.id: action for action in ACTIONS}
_SYMBOLS = {
    "question_mark": "?",
    "vertical_line": "|",
    "backslash": "\\",
    "minus": "-",
    "underscore": "_",
    "plus": "+",
    "slash": "/",
    "equals_sign": "=",
    "right_square_bracket": "]",
    "left_square_bracket": "[",
    "right_curly_bracket": "}",
    "left_curly_bracket": "{",
    "full_stop": ".",
    "comma": ",",
    "asterisk": "*",
    "percent_sign": "%",
    "quotation_mark": '"',
    "escape": "esc",
    "colon": ":",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "up": "↑",
    "down": "↓",
    "left": "←",
    "right": "→",
}
_NAMES = {symbol: name for name, symbol in _SYMBOLS.items() if len(symbol) == 1 and symbol not in "↑↓←→"}


def show_key(key: str) -> str:
    """A key as people write it: ``question_mark`` → ``?``, ``ctrl+b percent_sign`` → ``ctrl+b %``."""
    return " ".join("+".join(_SYMBOLS.get(part, part) for part in chord.split("+")) for chord in key.split(" "))


def key_name(text: str) -> str:
    """The inverse of `show_key` for one chord: ``?`` → ``question_mark``, ``ctrl+%`` → ``ctrl+percent_sign``."""
    if text in _NAMES:
        return _NAMES[text]
    head, plus, tail = text.rpartition("+")
    return f"{head}+{_NAMES.get(tail, tail)}" if plus and head else text


def overlapping(first: Iterable[Scope], second: Iterable[Scope]) -> bool:
    """True when both scopes can be in force at once with equal rank, so that one key cannot mean both."""
    a = set(first)
    b = set(second)
    if a & b:
        return True
    forms = {"form", "launch"}
    if a <= forms and b <= forms:
        return True
    return (EVERYWHERE in a and not b <= forms) or (EVERYWHERE in b and not a <= forms)


def markdown(keys: dict[str, tuple[str, ...]] | None = None) -> str:
    """docs/keys.md: every action with its keys, by scope."""
    lines = [
        "# Keys",
        "",
        (
            "Made from the action registry (`app/action_table/registry.py`); a test keeps it current. Every key can"
            " be changed in `config.toml`:"
        ),
        "",
    ]
    lines += [
        "```toml",
        "[ui]",
        'preset = "tmux"          # default, tmux or zellij',
        "",
        "[ui.keys]",
        '"pane.zoom" = "Z"        # several keys: "z, Z"; a sequence: "ctrl+b z"',
        "```",
        "",
    ]
    for scope, title in SCOPES.items():
        lines += [f"## {title}", "", "| key | action | what it does | id |", "| --- | --- | --- | --- |"]
        for action in ACTIONS:
            if scope in action.scopes:
                shown = ", ".join(f"`{_escape(show_key(k))}`" for k in (keys or {}).get(action.id, action.keys))
                lines.append(f"| {shown} | {action.title} | {action.help} | `{action.id}` |")
        lines.append("")
    return "\n".join(lines)


def _escape(key: str) -> str:
    return key.replace("|", "\\|")


if __name__ == "__main__":
    print(markdown(), end="")
