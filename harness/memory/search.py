"""Finding memories by words. Pure: a few hundred short texts are read in milliseconds, without an index to keep."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from harness.memory.records import Written

_WORD = re.compile(r"\w+")


def relevance(memory: Written, words: frozenset[str]) -> int:
    """How many of the words it holds; one in the key counts twice."""
    return len(words & _words(memory.text)) + 2 * len(words & _words(memory.key))


def search(memories: Iterable[Written], query: str, most: int) -> list[Written]:
    """Those with any of the words, the one with most of them first, else in the order given."""
    words = _words(query)
    held = [(relevance(memory, words), memory) for memory in memories]
    return [memory for score, memory in sorted(held, key=lambda pair: -pair[0]) if score][:most]


def words_of(text: str) -> frozenset[str]:
    """The words of a text that tell it from others."""
    return frozenset(word for word in _words(text) if len(word) > 3)


@lru_cache(maxsize=2048)  # every session on a repository is shown the same few hundred texts
def _words(text: str) -> frozenset[str]:
    return frozenset(_WORD.findall(text.casefold()))
