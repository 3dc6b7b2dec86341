"""`docs/reference/configuration.md`. How a value is written is found by asking the reader of the file."""

from __future__ import annotations

from pathlib import Path

from harness.protocol.config import config, profiles
from harness.protocol.config.amounts import usd_typed
from harness.protocol.config.sections import SECTIONS
from tests.reference.markdown import MADE, FieldText, doc, fields, notes, spelled, table

_ABOUT = f"""# Configuration

The keys of `config.toml` (`~/.config/watchfloor/`, or the folder that `WATCHFLOOR_CONFIG` names). An unknown key or a \
value that cannot be used is an error that names file, line and key. An amount is written `"2.50"` or `2`, a duration \
`"90s"`, `"30m"`, `"4h"` or `"1d 2h"` (a plain number means seconds), a size `"512MiB"` or `"10GiB"` (a plain number \
means bytes). How the settings act: [the user guide](../user-guide.md#configuration).

{MADE}
"""
_UNITS = {
    "size": (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)),
    "duration": (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)),
}
_PROBES = {"amount in USD": ('"0.75"', 750_000_000), "duration": ('"9m"', 540), "size": ('"640MiB"', 640 << 20)}
"""What can only be read as one kind of value, and what it then is."""


def page() -> str:
    """Every section with its keys."""
    lines = [_ABOUT]
    for section, kind in SECTIONS.items():
        words = notes(kind)
        lines += [f"## `[{section}]`", "", doc(kind), ""]
        rows = [_row(section, field, words.get(field.name, "")) for field in fields(kind)]
        lines += table(("key", "value", "default", "meaning"), rows)
    words = notes(profiles.Profile)
    lines += ['## `[profiles."MODEL"]`', "", doc(profiles.Profile), ""]
    own = [(f"`{f.name}`", _plain(f), _default(f, ""), words.get(f.name, "")) for f in fields(profiles.Profile)]
    return "\n".join([*lines, *table(("key", "value", "default", "meaning"), own)])


def _row(section: str, field: FieldText, words: str) -> tuple[str, str, str, str]:
    kind = next((name for name in _PROBES if _fits(section, field.name, *_PROBES[name])), "")
    none = "None" in spelled(field.hint) or (kind and _reads(section, field.name, "false") == 0)
    value = kind or _plain(field)
    return f"`{field.name}`", f"{value}, `false` for none" if none else value, _default(field, kind), words


def _fits(section: str, key: str, written: str, value: int) -> bool:
    return _reads(section, key, written) == value


def _reads(section: str, key: str, written: str) -> object:
    """What a key becomes that is written so; the text itself where it may not be."""
    try:
        made = config.parse(Path("/config.toml"), f"[{section}]\n{key} = {written}\n")
    except config.ConfigError:
        return written
    return getattr(getattr(made, section), key)


def _plain(field: FieldText) -> str:
    hint = spelled(field.hint)
    if hint.startswith("int"):
        unit = {"_s": " of seconds", "seconds": " of seconds", "_bytes": " of bytes", "_tokens": " of tokens"}
        return "number" + next((of for end, of in unit.items() if field.name.endswith(end)), "")
    kinds = {"bool": "true or false", "str": "text", "dict[str, str]": "table of texts"}
    return kinds.get(hint, "list of texts")


def _default(field: FieldText, kind: str) -> str:
    value = field.default
    if value is None or (kind in ("amount in USD", "duration") and value == 0):
        return "`false`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return f'`"{value}"`'
    if isinstance(value, int):
        return f"`{_amount(value, kind)}`"
    return "none"


def _amount(value: int, kind: str) -> str:
    if kind == "amount in USD":
        return f'"{usd_typed(value).removesuffix(".00")}"'
    units = _UNITS.get(kind, ())
    return next((f'"{value // one}{name}"' for name, one in units if value and value % one == 0), str(value))
