"""`docs/reference/configuration.md`. What a value must be is said as the errors of the file say it."""

from __future__ import annotations

import re

import msgspec

from harness.domain.settings.reading import form_of, must_be
from harness.protocol.config.sections import Profile, Sections
from tests.reference.markdown import MADE, doc, notes, table

_EXAMPLE = re.compile(r' such as "[^"]+"')
_ABOUT = f"""# Configuration

The keys of `config.toml` (`~/.config/watchfloor/`, or the folder that `WATCHFLOOR_CONFIG` names). An unknown key or a \
value that cannot be used is an error that names file, line and key. An amount is written `"2.50"` or `2`, a duration \
`"90s"`, `"30m"`, `"4h"` or `"1d 2h"` (a plain number means seconds), a size `"512MiB"` or `"10GiB"` (a plain number \
means bytes). How the settings act: [the user guide](../user-guide.md#configuration).

{MADE}
"""


def page() -> str:
    """Every section with its keys."""
    lines = [_ABOUT]
    kinds = {field.name: field.type for field in msgspec.structs.fields(Sections)}
    for section, kind in {**kinds, 'profiles."MODEL"': Profile}.items():
        if section != "profiles":
            words = notes(kind)
            rows = [_row(field, words.get(field.encode_name, "")) for field in msgspec.structs.fields(kind)]
            lines += [f"## `[{section}]`", "", doc(kind), "", *table(("key", "value", "default", "meaning"), rows)]
    return "\n".join(lines)


def _row(field: msgspec.structs.FieldInfo, words: str) -> tuple[str, str, str, str]:
    value = _EXAMPLE.sub("", must_be(field.type)).replace("or false for", "or `false` for")
    return f"`{field.encode_name}`", value, _default(field), words


def _default(field: msgspec.structs.FieldInfo) -> str:
    value = field.default
    if isinstance(value, bool) or (value is None and "for none" in must_be(field.type)):
        return "`false`" if not value else "`true`"
    if isinstance(value, int):
        form = form_of(field.type)
        return f"`{value}`" if form is None or not value else f'`"{form.shown(value)}"`'
    return f'`"{value}"`' if isinstance(value, str) else "none"
