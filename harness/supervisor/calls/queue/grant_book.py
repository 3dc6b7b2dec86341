"""The rules that a person made, and their one writer. A log that cannot be read or written allows nothing: requests are
asked about as without rules.
"""

from __future__ import annotations

from pathlib import Path
from typing import TypeAlias

from harness.eventlog.side_log import Kind
from harness.policy.grant_records import Entry, decode
from harness.policy.granted import Grants
from harness.supervisor.base.side_log_writer import Book, BookWords

GRANTS: Kind[Grants, Entry] = Kind("grants", "a rule", Grants, Grants.apply, decode, lambda entry: "supervisor")
GrantBook: TypeAlias = Book[Grants, Entry]
_WORDS = BookWords("the rules that you made cannot be read, so every request asks", "this is not on record")


def open_book(folder: Path) -> GrantBook:
    """The book of this folder."""
    return Book(GRANTS, folder, _WORDS)
