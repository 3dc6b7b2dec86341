"""The roles at hand: those that ship here, and the user's own in the configuration folder (``roles/NAME.toml``), which
stand before a shipped one of the same name.
"""

from __future__ import annotations

import functools
from importlib.resources import files
from pathlib import Path

from harness.linux import own_file
from harness.roles.role import MAX_BYTES, Role, RoleError, parse

BUILT_IN = "built in"
FOLDER = "roles"
"""The folder of the user's own, in the configuration folder."""


@functools.cache
def shipped() -> dict[str, Role]:
    """The roles that ship with Watchfloor, by name."""
    found = {}
    for item in files("harness.roles").joinpath("builtin").iterdir():
        name, _, ending = item.name.rpartition(".")
        if ending == "toml":
            found[name] = parse(name, item.read_text("utf-8"), BUILT_IN)
    return dict(sorted(found.items()))


def names(config: Path) -> list[str]:
    """Every role there is, the user's own among them (blocking)."""
    own = [path.stem for path in (config / FOLDER).glob("*.toml")]
    return sorted({*shipped(), *own})


def find(config: Path, name: str) -> tuple[Role, str] | None:
    """The role of that name, and where it stands; None when there is none (blocking). Raises RoleError."""
    if "/" in name or name.startswith("."):
        return None
    path = config / FOLDER / f"{name}.toml"
    try:
        text = own_file.text(path, MAX_BYTES)
    except FileNotFoundError:
        role = shipped().get(name)
        return None if role is None else (role, BUILT_IN)
    except (OSError, UnicodeDecodeError) as exc:
        why = (exc.strerror if isinstance(exc, OSError) else "") or str(exc)
        raise RoleError(str(path), 1, "", f"cannot be read: {why}") from exc
    return parse(name, text, str(path)), str(path)
