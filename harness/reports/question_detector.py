"""Does a reply end by asking the person something? Pure and conservative: polite closings, rhetoric, quotations and
code ask nothing.

A question that is missed ends the session, with the words on record; one that is seen where none is
costs a night. So only the end of the reply counts: its last paragraph, or the question right before a list, a quotation
or code that it closes with, and before a paragraph that only waits or thanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.reports import question_patterns as say

TITLE = 300
MOST_WORDS = 8000
_REASONS = 3
"""Sentences behind a question that may say what hangs on its answer."""
_END = 6000
"""Characters at the end of a reply that are looked at: a question stands in its last paragraph."""

_FENCE = re.compile(r"\s{0,3}(```+|~~~+)")
_ITEM = re.compile(
    r"\s*([-*•+]|\(?[0-9]{1,2}[.)]|\[[0-9]{1,2}\]|\(?[A-Za-z][.)])\s+\S"
    r"|\s*(\*\*|__|#+ )?(option|variant|choice) [A-Z0-9]\b"
    r"|\s*(\*\*|__|#+ )?[A-Z0-9](\*\*|__|:|\*\*:)\s",
    re.I,
)
_INDENTED = re.compile(r"( {4}|\t)")
# Latin, wide, Arabic, doubled, interrobang, Greek, Armenian, Ethiopic, Vai
_MARKS = "?\uff1f\u061f\u2047\u2048\u2049\u203d\u037e\u055e\u1367\ua60f"
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\([^)\s]*\)")
_TRAIL = re.compile(r"[\s*_~)\]\uff09\u3011\u300d\u300f>\U0001F300-\U0001FAFF\u2600-\u27bf\ufe0f!]+$")
_QUOTED = re.compile(r"[\"'\u201d\u2019\u00bb\u201c][\s*_~.)]*$")
_NO_WORD = re.compile(r"://|[*=<>|\\$^]")
_SENTENCE = re.compile(
    rf"(?<=[.!\u3002\uff01{_MARKS}])(?<!\b[A-Za-z]\.)\s+"
    rf"|(?<=[.!{_MARKS}][)\"*_\u201d\u00bb])\s+|(?<=[\u3002\uff01\uff1f])"
)
_GREEK = re.compile(r"[\u0370-\u03ff].*;$", re.S)
_JAPANESE = re.compile(r"(です|ます|でしょう|ません|ました)か[。.]?$")


def asked(reply: str) -> str:
    """The question that ``reply`` ends in, at most `TITLE` characters on one line; empty when it asks nothing."""
    followed = False
    for kind, text in reversed(_blocks(reply)):
        if kind == "aside":
            followed = True
            continue
        if kind == "item":
            if not followed and (found := _question(text)) and not say.CLOSING.search(found):
                return _one_line(found)
            followed = True
            continue
        if found := _before_a_list(text) if followed else _last(text):
            return _one_line(found)
        if _caveats(text):
            continue
        if followed or not _only_hands_over(text):
            return ""
        followed = True
    return ""


def words(reply: str) -> str:
    """What a request quotes of a reply: all of it, or of a very long one its end, where the question stands."""
    text = reply.strip()
    return (
        text if len(text) <= MOST_WORDS else f"[… {len(text) - MOST_WORDS} characters left out …]\n{text[-MOST_WORDS:]}"
    )


def _blocks(reply: str) -> list[tuple[str, str]]:
    """(kind, text) in order: ``prose`` paragraphs, list ``item``s, and ``aside``s (code, quotations, tables, headings),
    which say nothing themselves.
    """
    found: list[tuple[str, str]] = []
    fence = ""
    fresh = True
    for line in _lines(reply):
        mark = _FENCE.match(line)
        if fence:
            if (
                mark
                and mark.group(1)[0] == fence[0]
                and len(mark.group(1)) >= len(fence)
                and not line.strip().strip(fence[0])
            ):
                fence = ""
            continue
        if mark:
            fence = mark.group(1)
            found.append(("aside", ""))
        elif not line.strip():
            fresh = True
            continue
        elif fresh and _INDENTED.match(line) and not (found and found[-1][0] == "item"):
            found.append(("aside", ""))
        elif _ITEM.match(line):
            found.append(("item", line.strip()))
        elif line.lstrip().startswith((">", "|", "#")) or set(line.strip()) <= set("-*_= "):
            found.append(("aside", ""))
        elif found and not fresh and found[-1][0] in ("prose", "item"):
            found[-1] = (found[-1][0], f"{found[-1][1]}\n{line.strip()}")
        else:
            found.append(("prose", line.strip()))
        fresh = False
    return found


def _lines(reply: str) -> Iterator[str]:
    """Lines of a reply; of a line without an end only its end is looked at."""
    for line in reply.split("\n"):
        yield line if len(line) <= _END else line[-_END:]


def _only_hands_over(text: str) -> bool:
    return all(say.HANDS_OVER.fullmatch(sentence.strip("*_ ")) for sentence in _sentences(text[-_END:]))


def _caveats(text: str) -> bool:
    return all(say.CAVEAT.search(sentence.strip("*_ ")) for sentence in _sentences(text[-_END:]))


def _before_a_list(text: str) -> str:
    """What asks right before a list, code or a quotation: it must address the person, for headings ask too ("What
    changed?").
    """
    last = (_sentences(text) or [""])[-1]
    if say.CLOSING.search(last):
        return ""
    if _question(last):
        return last if say.ADDRESSES.search(last) else ""
    opens = last.rstrip("*_ ").endswith((":", "\uff1a"))
    return last if opens and (say.BEGS.search(last) or say.OPENS.match(last)) else ""


def _last(text: str) -> str:
    """The question in which a paragraph ends; sentences may stand behind it that hand over, or say what hangs on its
    answer.
    """
    sentences = _sentences(text[-_END:])
    behind: list[str] = []
    while sentences:
        last = sentences.pop()
        if _question(last):
            return last if _open(last, behind) else ""
        if not behind and (found := _begs(last, sentences)):
            return found
        if say.HANDS_OVER.fullmatch(last.strip("*_ ")):
            continue
        behind.append(last)
        if len(behind) > _REASONS or (say.ANSWERS.search(last) and not say.CAVEAT.search(last)):
            return ""
    return ""


def _open(question: str, behind: list[str]) -> bool:
    """It asks the person, and what stands behind it does not answer it."""
    if say.CLOSING.search(question) or (say.RHETORIC.search(question) and not say.ADDRESSES.search(question)):
        return False
    if any(_goes_on(sentence) for sentence in behind) and not question[0].islower():
        return False  # the mark stood within a sentence
    return all(say.CAVEAT.search(sentence) for sentence in behind) or bool(say.LEAVE.search(question))


def _goes_on(sentence: str) -> bool:
    word = sentence.split()[0]
    return word.isalpha() and word.islower()


def _begs(sentence: str, before: list[str]) -> str:
    """What asks without a question mark, with the question before it."""
    if say.GIVE.search(sentence) and any(say.BLOCKED.search(earlier) for earlier in before):
        return sentence
    asks = before[-1] if before and _question(before[-1]) else ""
    if asks and say.CONDITIONAL.search(sentence):
        return asks
    if say.BEGS.search(sentence) and not say.CLOSING.search(sentence):
        return f"{asks} {sentence}".lstrip()
    return ""


def _sentences(text: str) -> list[str]:
    """The sentences that hold a word."""
    plain = _masked(text.replace("\n", " "))
    cuts = [0, *(place for found in _SENTENCE.finditer(plain) for place in found.span()), len(plain)]
    parts = (text[a:b].strip() for a, b in zip(cuts[::2], cuts[1::2], strict=True))
    return [part for part in parts if any(c.isalnum() for c in part)]


def _masked(text: str) -> str:
    """The text, as long as before, with what stands in code and in the addresses of links made plain."""
    return _LINK.sub(
        lambda m: "]" + "x" * (len(m[0]) - 1), _CODE.sub(lambda m: "`" + "x" * (len(m[0]) - 2) + "`", text)
    )


def _question(sentence: str) -> str:
    """The sentence when it ends in a question mark of any script that closes words: no quotation, address, pattern or
    expression.
    """
    plain = _masked(sentence)
    if _QUOTED.search(plain):
        return ""
    end = _TRAIL.sub("", plain)
    if not end:
        return ""
    marked = (
        end[-1] in _MARKS
        or bool(_GREEK.search(end[-200:]))
        or bool(_JAPANESE.search(end))
        or (end[-1] in ".\u0589" and "\u055e" in end[-60:])
    )
    word = (end.split() or [""])[-1]
    return sentence if marked and not _NO_WORD.search(word) and any(c.isalnum() for c in end) else ""


def _one_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= TITLE else "…" + line[-TITLE + 1 :]
