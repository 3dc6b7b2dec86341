"""Which keys mean which actions: defaults, presets, the user's own; sequences such as ``ctrl+b %``; conflicts found at
start.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from app.action_table.registry import ACTIONS, BY_ID, key_name, overlapping, show_key

# tmux: the prefix and the keys of its default table. zellij: its alt keys and the pane mode as a sequence.
PRESETS: dict[str, dict[str, str]] = {
    "default": {},
    "tmux": {
        "pane.split_right": "ctrl+b %",
        "pane.split_below": 'ctrl+b "',
        "pane.close": "ctrl+b x",
        "pane.zoom": "ctrl+b z",
        "pane.left": "left, h, ctrl+b left",
        "pane.right": "right, l, ctrl+b right",
        "pane.up": "up, k, ctrl+b up",
        "pane.down": "down, j, ctrl+b down",
        "pane.even": "ctrl+b space",
        "focus.next": "tab, ctrl+b o",
        "session.launch": "n, ctrl+b c",
        "app.detach": "q, ctrl+q, ctrl+b d",
        "app.palette": "ctrl+p, ctrl+b :",
        "app.help": "?, f1, ctrl+b ?",
    },
    "zellij": {
        "pane.split_right": "ctrl+t r, alt+n",
        "pane.split_below": "ctrl+t d",
        "pane.close": "ctrl+t x",
        "pane.zoom": "ctrl+t f",
        "pane.left": "left, h, alt+h, alt+left",
        "pane.right": "right, l, alt+l, alt+right",
        "pane.up": "up, k, alt+k, alt+up",
        "pane.down": "down, j, alt+j, alt+down",
        "pane.even": "alt+equals_sign",
        "app.detach": "q, ctrl+q, ctrl+o d",
    },
}


class KeymapError(ValueError):
    """A key setting cannot be used; the message names the setting and what is wrong."""


class Keymap(msgspec.Struct, frozen=True):
    """Keys of every action: single chords, and sequences as (prefix, key)."""

    keys: Mapping[str, tuple[str, ...]]

    @property
    def sequences(self) -> dict[tuple[str, str], list[str]]:
        """(prefix, key) → actions bound to it."""
        made: dict[tuple[str, str], list[str]] = {}
        for action, keys in self.keys.items():
            for key in keys:
                prefix, blank, second = key.partition(" ")
                if blank:
                    made.setdefault((prefix, second), []).append(action)
        return made

    @property
    def prefixes(self) -> frozenset[str]:
        """Keys that only open a sequence."""
        return frozenset(prefix for prefix, _ in self.sequences)

    def bindings(self) -> dict[str, str]:
        """Changed action id → comma-separated chords, as Textual's keymap takes it.

        An action that has only sequences gets a key that nobody can press.
        """
        made = {}
        mapped = self._mapped()
        for action, keys in self.keys.items():
            if action not in mapped:
                continue  # each mapped key slows every key press
            single = [key for key in keys if " " not in key]
            made[action] = ",".join(single) if single else f"unbound_{action}"
        return made

    def _mapped(self) -> set[str]:
        """The changed actions, and all that share a key with one of them: a key in Textual's keymap is taken away from
        every action that is not in it.
        """
        mapped = {action for action, keys in self.keys.items() if keys != BY_ID[action].keys}
        while True:
            taken = {key for action in mapped for key in (*BY_ID[action].keys, *self.keys[action])}
            sharing = {action for action, keys in self.keys.items() if not taken.isdisjoint(keys)}
            if sharing <= mapped:
                return mapped
            mapped |= sharing

    def shown(self, action: str) -> str:
        """The first key of an action as people write it; empty when it has none."""
        keys = self.keys.get(action, ())
        return show_key(keys[0]) if keys else ""


def parse_keys(text: str) -> tuple[str, ...]:
    """``"z, ctrl+b %"`` → ``("z", "ctrl+b percent_sign")``. A lone comma is written ``comma``. Raises KeymapError."""
    made: list[str] = []
    for part in text.split(","):
        chords = part.split()
        if not chords or len(chords) > 2:
            raise KeymapError(f"{text!r}: a key is one chord such as ctrl+y, or a prefix and a key such as 'ctrl+b z'")
        made.append(" ".join(key_name(chord) for chord in chords))
    return tuple(made)


def build(preset: str, own: Mapping[str, str], file: Path | None = None) -> Keymap:
    """The keymap in force. Raises KeymapError naming the file, the setting and the clash."""
    where = f"{file}: " if file else ""
    if preset not in PRESETS:
        raise KeymapError(f"{where}ui.preset: {preset!r} is not a preset; known: {', '.join(PRESETS)}")
    keys: dict[str, tuple[str, ...]] = {action.id: action.keys for action in ACTIONS}
    for ident, text in PRESETS[preset].items():
        keys[ident] = parse_keys(text)
    for ident, text in own.items():
        if ident not in BY_ID:
            raise KeymapError(f"{where}ui.keys: there is no action {ident!r}; the ids stand in docs/keys.md")
        try:
            keys[ident] = parse_keys(text)
        except KeymapError as exc:
            raise KeymapError(f"{where}ui.keys.{ident}: {exc}") from exc
    _check(keys, where)
    return Keymap(keys)


def _check(keys: Mapping[str, tuple[str, ...]], where: str) -> None:
    for ident in ("queue.approve",):
        for key in keys[ident]:
            if "+" not in key.split(" ")[-1] or key.split(" ")[-1].startswith("shift+"):
                raise KeymapError(
                    f"{where}ui.keys.{ident}: {show_key(key)!r} is too easily pressed; approving needs a chord such as"
                    " ctrl+y"
                )
    owners: dict[str, list[str]] = {}
    for ident, bound in keys.items():
        for key in bound:
            for other in owners.get(key, ()):
                if _clash(ident, other):
                    raise KeymapError(
                        f"{where}ui.keys: {show_key(key)!r} is bound to both {other} and {ident}; give one of them"
                        " another key"
                    )
            owners.setdefault(key, []).append(ident)
    prefixes = {key.split(" ")[0] for bound in keys.values() for key in bound if " " in key}
    for key in sorted(prefixes & owners.keys()):
        raise KeymapError(
            f"{where}ui.keys: {show_key(key)!r} opens a sequence and cannot also be the key of {owners[key][0]}"
        )


# Pairs that share a key on purpose: at most one of the two is available at a time, and the help bar shows which.
_ALTERNATIVES = frozenset(
    frozenset(pair)
    for pair in (
        ("session.pause", "session.resume"),
        ("queue.done", "queue.accept"),
        ("queue.fresh", "queue.believe"),
        ("queue.changes", "session.continue"),
        ("queue.unfold", "session.resume"),
        ("go.back", "table.unfilter"),
        ("go.back", "log.unfilter"),
    )
)


def _clash(first: str, second: str) -> bool:
    if frozenset({first, second}) in _ALTERNATIVES:
        return False
    a = BY_ID[first].scopes
    b = BY_ID[second].scopes
    # Panes are nested in the floor and take precedence, so a key may mean one thing there and another on the list.
    if {"panes"} in (set(a), set(b)) and set(a) != set(b):
        return overlapping(set(a) - {"floor"}, set(b) - {"floor"})
    return overlapping(a, b)
