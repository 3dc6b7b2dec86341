"""Does a reply end by asking the person something? Pure and conservative: polite closings, rhetoric, quotations and
code ask nothing.

A question that is missed ends the session, with the words on record; one that is seen where none is
costs a night. So only the end of the reply counts: its last paragraph, or the question right before a list, a quotation
or code that it closes with, and before a paragraph that only waits or thanks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

TITLE = 300
MOST_WORDS = 8000
_END = 6000
"""Characters at the end of a reply that are looked at: a question stands in its last paragraph."""

_FENCE = re.compile(r"\s{0,3}(```+|~~~+)")
_ITEM = re.compile(r"\s*([-*•+]|\(?[0-9]{1,2}[.)]|\(?[A-Za-z][.)])\s+\S")
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


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.I | re.S)


_HANDS_OVER = _any(
    r"(please |just )?(let me know|tell me|advise|confirm|thanks|thank"
    r" you|cheers|danke|gracias|merci)[\s\w,']{0,24}[.!\u2026]*",
    r"(i('m| am)|i'?ll be) (happy|glad|fine) (with|to (do|go with|take)) (either|any|both)\b.*",
    r"i can do either.*",
    r"((so|for now|until then|meanwhile),? )?(i|we)('ve|'m|'ll|'re| have| am| are| will)? ?(now )?"
    r"(stop(ped)?|wait(ing|ed)?|paus(ed|ing|e)|hold(ing)?|blocked)\b.*",
    r"(waiting|awaiting|blocked|paused|stopped|standing by|on hold)\b.*",
    r"(i|we)(('ve|'ll| have| has| did| do| will| wo| ca| could| had|'m| am)"
    r" ?(not|n't)|cannot)\b.*\b(anything|yet|until|before|without|so far)\b.*",
    r"(nothing|no (files?|changes?|code)) (is|was|were|has|have)\b.*\b(yet|so far|until)\b.*",
    r"(my|the) (recommendation|suggestion|preference|default)\b.*|(i|we)('d| would)?"
    r" (recommend|suggest|lean|prefer|propose)\b.*",
    r"(i|we)('d| would) (go with|go for|take|choose|pick|use|keep|vote for|opt for)\b.*",
    r"if you (have no|don't have an?|have none|don't mind|don't care)\b.*",
    r"(otherwise|if not|if so|if yes),? (i|we)('ll|'d| will| would| can)\b.*",
    r"(i|we)('ve| have)? left (it|this|that|them|both|everything|the [\w ]{1,30}?)\b.*"
    r"\b(for now|untouched|unchanged|as (it )?(is|was))\b.*",
    r"ich (würde|empfehle|schlage|tendiere|warte|habe noch nichts)\b.*",
    r"(yo )?(elegiría|recomiendo|sugiero|prefiero|preferiría|espero)\b.*",
    r"je (choisirais|recommande|suggère|préfère|préférerais|prendrais|attends)\b.*",
    r"\(.*\)[.]?",
    r"\[.*\]|yes/no|y/n",
)
"""A whole sentence behind a question that only hands over: thanks, waiting, what was not done yet, what it would
choose, a remark in brackets, the answers it knows.
"""

_BEGS = _any(
    r"\b(let me know|tell me|please say|^say) (which|whether)\b",
    r"\b(let me know|tell me|please say|^say) (what|how) you('d| would)? (want|like|prefer|decide)\b",
    r"\b(let me know|tell me|please say|^say) (how (to|i should|we should)|what to do|what i should)\b",
    r"\b(let me know|tell me|please say|^say) your (choice|preference|decision)\b",
    r"\bplease (choose|decide|pick|select|specify|clarify|advise)\b",
    r"\bplease (confirm|tell me) (which|whether|that|how|what|before|so)\b|\bplease confirm\W*$",
    r"\bplease (provide|supply|send|share|give|grant|enter|paste|add|set)\b"
    r"(?! (any |your |me )*(feedback|comments?|a star)).*\b(so (that )?(i|we) can|before i|to (go"
    r" on|continue|proceed))\b",
    r"(^|[,;:] )(now |so |then |please )?(choose|pick|decide) (one|between|which|either)\b",
    r"\byou('ll| will)? (have|need) to (choose|pick|decide) (one|between|which|either|whether)\b",
    r"\bi('ll| will)? need you to\b",
    r"^(it's |it is |that's )?(your call|up to you)\W*$",
    r"\b(let me know|tell me) (once|when|as soon as) (you|it|that|this)\b.*\b(i'll|i will|i can)\b",
    r"^(once|as soon as|if|when) you (confirm|approve|agree|decide|answer|reply|choose)\b.*\bi('ll| will| can)\b",
    r"\bi (still )?need (the|an?|your|access|more)\b.*\b(to|before i can|so i can) (continue|proceed|go on|finish)\W*$",
    r"\b(need|waiting (for|on)|awaiting|wait (for|on)|standing by for) your (final )?"
    r"(decision|choice|answers?|reply|response|input|confirmation|call|approval|permission|ok|okay|go[- ]ahead)\b",
    r"\b(wait|waiting|stopped|paused|on hold) (here )?until (i hear|you (say|tell|decide|answer|reply|confirm))\b",
    r"\bbitte (entscheide|wähle|bestätige|sag mir)\b",
    r"\bsage? mir (bitte)?,? ?(welche|ob|wie|was)",
    r"\bich (brauche|warte auf) (deine|ihre|eure)"
    r" (entscheidung|antwort|zustimmung|bestätigung|freigabe|erlaubnis)\b",
    r"\b(dime|dígame|por favor,? (confirma|elige|indica|decide|aclara))\b",
    r"\bnecesito tu (decisión|respuesta|confirmación)",
    r"\b(dis-moi|dites-moi) (quel|si|comment|ce que)"
    r"|\b(veuillez|merci de) (me )?(confirmer|choisir|préciser|indiquer|dire)\b",
    r"\b(dimmi|mi dica|me diga|diga-me) (quale|qual|se|come|como|cosa|o que)\b",
    r"请(您|你)?(选择|决定|指示|告诉我)|请(您|你)?确认是否",
    r"(選んで|お選び|ご指示|ご判断|教えて)ください",
)
"""It asks for a choice without a question mark."""

_BLOCKED = _any(
    r"\b(i|we)('m| am|'re| are)? (blocked|stuck)\b",
    r"\b(i|we) (can ?not|can't|am unable to|are unable to|could not|couldn't) (proceed|continue|go on|finish)\b",
)
_GIVE = _any(
    r"^please (provide|supply|send|share|give|grant|enter|paste|add|set|run)\b"
    r"(?! (any |your |me )*(feedback|comments?))",
)
"""A request that asks only when a sentence before it says that nothing goes on without."""

_OPENS = _any(
    r"[*_ ]*(so,? )?(do you want|would you (like|prefer)|should (i|we)|shall (i|we)|may i|can i|could you|which)\b"
)
"""A question that its list completes: ``Do you want me to:``."""

_ADDRESSES = _any(
    r"\b(which|should (i|we)|shall (i|we)|do you|would you|could you|can you|will you|may i|can i|are you)\b",
    r"\b(is it ok|prefer|want me|like me|choose|option|decide)\b",
    r"\b(welche[rsn]?|soll ich|möchtest du|möchten sie|willst du)\b",
    r"\b(cuál|prefieres|quieres|debo)\b",
    r"\b(lequel|laquelle|préfères|préférez|dois-je|voulez-vous|veux-tu)\b",
    r"哪|还是|どちら|どれ",
)
"""It speaks to the person."""

_CLOSING = _any(
    r"\b(anything|something|nothing|what) else\b",
    r"\belse (i can|you need|you'd like|you would like)\b",
    r"\banything (further|more|unclear)\b",
    r"\banything you('d| would)? (want|like|need)\b",
    r"(^|you )need (any )?(more|further) (help|changes|info|information|detail|details)\b",
    r"\b(any|some) (other |further |more )?(changes|adjustments|tweaks|edits|modifications)\W*$",
    r"\b(further|more|other|additional) (help|assistance|questions|requests|changes)\b",
    r"^(any |do you have (any )?|got (any )?)?(other |further |more"
    r" )?(questions|thoughts|comments|feedback|remarks|concerns)( so far)?\W*$",
    r"\bhow can i (help|assist)\b",
    r"\bwhat('s| is)? next\b",
    r"\bwhat would you like (me )?(to do|to work on)( next| now)?\W*$",
    r"\bwhat (should|shall|can) (i|we) do next\b",
    r"\b(does|did|do|hope) (that|this|it)( all)? (help|make sense|answer|look (good|ok|okay|right)|sound good|work for"
    r" you)\b(?!.*\bbefore (i|we)\b)",
    r"^(?!(is|are) (that|this|it|those) (ok|okay)\b)(\w+ ){0,2}(make sense|makes sense|sounds? good|looks? good|all"
    r" good|clear|okay|ok)\W*$",
    r"\b(let me know|feel free|happy to|glad to)\b.*\b(if|should)\b",
    r"\b(sonst noch|noch (etwas|was|fragen|weitere)|weitere fragen|was anderes|etwas anderes)\b",
    r"\b(algo más|otra cosa|algo mais|mais alguma|qualcos'altro|altro)\b",
    r"\b(autre chose|d'autres? (questions?|choses?|besoins?))\b",
    r"\bpasst (das|es|alles)( so)?( für (dich|sie|euch))?\W*$|\bbrauchst du noch\b",
    r"\b(nog iets|iets anders|verder nog)\b|\b(coś jeszcze|czymś jeszcze|jeszcze (coś|jakieś))\b",
    r"\b(başka bir|başka sorunuz)",
    r"чем(-то)? ещ[её]|что-?(то|нибудь)? ещ[её]|(есть|остались) (ещ[её] |другие |какие-то )*вопрос",
    r"더 (도와|필요|궁금)|다른 (질문|도움)",
    r"还有(什么|其他|别的)|还需要(我|什么|其他)|其他(的)?(问题|需要|帮)|他に(も|何|ご)|ほかに",
)
"""A polite closing: nothing depends on its answer."""

_CONDITIONAL = re.compile(r"^if (so|yes),? (i|we)('ll|'d| will| would| can)\b", re.I)
"""What makes something depend on the question before it, however polite that sounds."""

_RHETORIC = _any(
    r"^(neat|nice|cool|great|elegant|simple|easy|pretty|not bad|fun|who knew|why not|so what|right|eh|huh|guess"
    r" what|the result|the catch)\b[^.!]*$",
    r"\b(isn't it|aren't they|doesn't it|wasn't it|don't you think|who would have|what could go wrong|huh|eh)\W*$",
    r"\bwho (needs|knew|wants|doesn't|wouldn't)\b|^isn't (that|it|this)\b|^how \w+ is (that|this)\W*$",
)
"""It asks nobody, unless it also speaks to the person."""


def asked(reply: str) -> str:
    """The question that ``reply`` ends in, at most `TITLE` characters on one line; empty when it asks nothing."""
    followed = False
    for kind, text in reversed(_blocks(reply)):
        if kind == "aside":
            followed = True
            continue
        if kind == "item":
            if not followed and (found := _question(text)) and not _CLOSING.search(found):
                return _one_line(found)
            followed = True
            continue
        if found := _before_a_list(text) if followed else _last(text):
            return _one_line(found)
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
        elif line.lstrip().startswith((">", "|", "#")) or set(line.strip()) <= set("-*_= "):
            found.append(("aside", ""))
        elif _ITEM.match(line):
            found.append(("item", line.strip()))
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
    return all(_HANDS_OVER.fullmatch(sentence.strip("*_ ")) for sentence in _sentences(text[-_END:]))


def _before_a_list(text: str) -> str:
    """What asks right before a list, code or a quotation: it must address the person, for headings ask too ("What
    changed?").
    """
    last = (_sentences(text) or [""])[-1]
    if not _ADDRESSES.search(last) or _CLOSING.search(last):
        return ""
    return (
        last
        if _question(last)
        or (last.rstrip("*_ ").endswith((":", "\uff1a")) and (_BEGS.search(last) or _OPENS.match(last)))
        else ""
    )


def _last(text: str) -> str:
    """The question in which a paragraph ends; sentences that only hand over may stand behind it."""
    sentences = _sentences(text[-_END:])
    while sentences:
        last = sentences.pop()
        if _question(last):
            return "" if _CLOSING.search(last) or (_RHETORIC.search(last) and not _ADDRESSES.search(last)) else last
        if _GIVE.search(last) and any(_BLOCKED.search(sentence) for sentence in sentences):
            return last
        if _CONDITIONAL.search(last) and sentences and _question(sentences[-1]):
            return sentences[-1]
        if _BEGS.search(last) and not _CLOSING.search(last):
            return f"{sentences[-1]} {last}" if sentences and _question(sentences[-1]) else last
        if not _HANDS_OVER.fullmatch(last.strip("*_ ")):
            return ""
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
