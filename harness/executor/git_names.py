"""Names that git takes into no tree. Pure; standard library only."""

from __future__ import annotations

_INVISIBLE = frozenset(
    "\u200c\u200d\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u206a\u206b\u206c\u206d\u206e\u206f\ufeff"
)
_FIRST = frozenset(".gG") | _INVISIBLE


def refused_by_git(name: str) -> bool:
    """True for names that git takes into no tree: ``.git`` in any spelling that some file system reads as it."""
    if "\\" in name:
        return any(refused_by_git(part) for part in name.split("\\") if part)
    if name[0] not in _FIRST:
        return False
    plain = "".join(c for c in name if c not in _INVISIBLE).split(":")[0].rstrip(" .").lower()
    return plain in (".git", "git~1")
