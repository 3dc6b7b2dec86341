"""What a check says against what it said before the work, and what shows that a session's work is done, in words. Pure.

Words of a record and of JSON are written with ``_``, those for a person with blanks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from harness.domain.text.formatting import counted

PASSED = "passed"
FAILED = "failed"
UNKNOWN = "unknown"
"""What a check said before the work."""
NOW_PASSES = "now_passes"
STILL_PASSES = "still_passes"
PASSES = "passes"
"""Of one that passes, and of which nobody knows what it said before the work."""
FAILS = "fails"
WORDS = {NOW_PASSES: "now passes", STILL_PASSES: "still passes", PASSES: "passes", FAILS: "fails"}
_SEVERAL = {NOW_PASSES: "now pass", STILL_PASSES: "still pass", PASSES: "pass", FAILS: "fail"}

JUDGED = "judged"
"""A judge who saw the change is satisfied with it."""
VERIFIED = "verified"
"""Every check passes on the originals, and at least one of them failed before the work."""
NOT_VERIFIED = "not_verified"
"""Neither of these, nor that every check still passes (`STILL_PASSES`)."""
PROOFS = {JUDGED: "judged", VERIFIED: "verified", STILL_PASSES: "still passes", NOT_VERIFIED: "not verified"}
MEANS = {
    JUDGED: "a judge who saw the change and no word of the agent is satisfied",
    VERIFIED: "every check passes, and at least one of them failed before the work",
    STILL_PASSES: "every check passes, as each of them did before the work",
    NOT_VERIFIED: "nothing but its agent's word, or a person's, says that it is done",
}


def outcome(before: str, *, passed: bool) -> str:
    """How a check stands that said ``before`` then."""
    if not passed:
        return FAILS
    return {FAILED: NOW_PASSES, PASSED: STILL_PASSES}.get(before, PASSES)


def entry_outcome(before: Sequence[str]) -> str:
    """How an entry that passes stands whose checks said this before the work."""
    if FAILED in before:
        return NOW_PASSES
    return STILL_PASSES if before and set(before) == {PASSED} else PASSES


def told(outcomes: Iterable[str]) -> str:
    """How many of them stand how: ``2 now pass, 1 still passes``; nothing where that is not known."""
    counts = Counter(outcomes)
    parts = [
        f"{counts[one]} {WORDS[one] if counts[one] == 1 else _SEVERAL[one]}"
        for one in (NOW_PASSES, STILL_PASSES)
        if counts[one]
    ]
    return ", ".join(parts)


def on_result(found: Sequence[str]) -> str:
    """What the checks on the result of a merge show, and no more than that."""
    if not found:
        return "no check ran on the result"
    said = told(found)
    also = "; each of them did before the work, too" if set(found) == {STILL_PASSES} else ""
    return f"{counted(len(found), 'check')} passed on the result" + (f": {said}{also}" if said else "")
