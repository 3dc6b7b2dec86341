"""Whether a text holds what must never be remembered: a key, a password, a token. Pure.

It errs to the side of refusing: whoever is refused says it in other words.
"""

from __future__ import annotations

import re

_KEY_BEGINS = "-----BEGIN"
_KEY_ENDS = "-----END"
_FORMS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("a private key", re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY")),
    ("an API key", re.compile(r"\b(?:sk|pk|rk)[-_](?:ant|live|test|proj|sim)?[-_A-Za-z0-9]{12,}")),
    ("an access key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    ("a token", re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|npm_|pypi-|hf_)[A-Za-z0-9_-]{16,}")),
    ("a web token", re.compile(r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}")),
    ("a password in an address", re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]{3,}@", re.I)),
    (
        "a credential of a request's header",
        re.compile(
            r"\bauthorization[\"']?\s*[:=][\s\\\"']*(?:[a-z]+[\s\\]+)?(?=[^\s\"']*\d)[^\s\"'<>{}$]{8,}",
            re.I,
        ),
    ),
    (
        "a password",
        re.compile(r"\b(?:password|passwd|passphrase)\b[\"']?\s*[:=]\s*[\"']?(?=[^\s\"']*\d)[^\s\"'<>{}$]{6,}", re.I),
    ),
    (
        "a value behind a word like token",
        re.compile(
            r"\b(?:secret|api[_-]?key|access[_-]?key|auth[_-]?token|token|bearer)\b"
            r"[\"']?\s*[:=]\s*[\"']?(?=[^\s\"']*\d)[^\s\"'<>{}$]{8,}",
            re.I,
        ),
    ),
)


def found(text: str, known: tuple[str, ...] = ()) -> str:
    """What kind of secret is in the text, in words; empty for none. ``known`` are secrets that we hold ourselves."""
    if any(key and key in text for key in known):
        return "a key of this fleet"
    return next((name for name, form in _FORMS if form.search(text)), "")


def in_lines(text: str, known: tuple[str, ...] = ()) -> list[str]:
    """What `found` says of each line. A private key counts to its end, and what only lines together make is in all."""
    kinds: list[str] = []
    inside = ""
    lines = text.split("\n")
    for line in lines:
        what = inside or found(line, known)
        kinds.append(what)
        if inside or (what and _KEY_BEGINS in line):
            inside = "" if _KEY_ENDS in line.rpartition(_KEY_BEGINS)[2] else what
    rest = "\n".join(line for line, what in zip(lines, kinds, strict=True) if not what)
    together = found(rest, known)
    return [what or together for what in kinds]
