"""An endpoint's address and its key: what either must be before a key is sent anywhere."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Credential:
    """An endpoint and the key that belongs to it; a key is never sent to another endpoint."""

    base_url: str
    key: str = field(repr=False)


@functools.lru_cache(maxsize=64)
def url_problem(url: str) -> str:
    """Why no key may be sent to this address, or nothing. Never quotes a user name or a password."""
    try:
        parts = urlsplit(url)
        port_ok = parts.port is None or parts.port > 0
    except ValueError:
        return "is not an address such as https://api.example.com"
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or not port_ok
        or not url.isascii()
        or not url.isprintable()
        or " " in url
    ):
        return "is not an address such as https://api.example.com"
    if "@" in parts.netloc:
        return (
            "holds a user name or password, which would end up in logs; give the key with model.api_key_file or the"
            " environment"
        )
    return "must end with its path: no ? or #" if parts.query or parts.fragment else ""


def key_problem(key: str) -> str:
    """Why this cannot be an API key, or nothing.

    An HTTP library that refuses such a key would quote it in its error.
    """
    return (
        ""
        if key.isascii() and key.isprintable() and " " not in key
        else "the key holds blanks, line breaks or characters that no key has"
    )
