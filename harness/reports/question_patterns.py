"""What people who ask, wait, hand over or take leave say, as patterns over one sentence of a reply. Pure."""

from __future__ import annotations

import re


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.I | re.S)


HANDS_OVER = _any(
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

BEGS = _any(
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
    r"^pending your\b",
    r"^(i('m| am)|we('re| are)|now|i('ll| will)|i|we)? ?(await(ing)?|(wait|hold)(ing)? (for|on)|stand(ing)? by for) "
    r"(your |any |the )?(further |more |next |new )?(instructions?|input|directions?|guidance|orders|decision|choice"
    r"|answers?|reply|response|feedback|confirmation|approval|permission|go[- ]ahead)\b(?! (from|of|in) the\b)",
    r"^(i('m| am) )?standing by\W*$",
    r"(^|\bi('d| would| will|'ll)? )(still )?(need|like|want|require|appreciate) (a|your) (final )?"
    r"(input|decision|choice|answer|confirmation|approval|guidance|permission|go[- ]ahead|ok|okay|call|word|sign-?off"
    r"|help|advice)\b",
    r"\bhold(ing)? off until\b|\bwaiting to hear from you\b|\b(say so|confirm) and (i\b|i'll)",
    r"\byour (call|decision)\W*$",
    r"\bj'ai besoin de (votre|ta) (décision|confirmation|réponse|accord|avis)\b",
    r"\b(i|we) (still )?need (the following|these|two things|three things)\b",
    r"^to (go on|continue|proceed|finish)[^.]*?,? (i|we)('ll| will)? (still )?need\b",
    r"^(if (that's|that is|this is|it's|you're|you are) (fine|ok|okay|good|alright|happy)"
    r"( (with|by) (you|this|that|it))?|unless you (object|say|tell|want|prefer)\b[^,]*), (i|we)('ll| will| would|'d)\b",
    r"^(kindly|please) (confirm|advise|choose|decide)\W*$|\bsay which( one)?\W*$",
    r"^(it's |it is )?up to you (whether|which)",
    r"^(please )?(choose|pick|select|decide)( one( of (these|them|the following))?)?:\W*$",
    r"^((so|before .*|to (continue|proceed|go on)),? )?i (still )?need to know (which|whether|if|what|how|where|who)\b",
    r"^before (continuing|proceeding|starting|going (on|further)|(i|we) (continue|proceed|go on|start|do))\b[^,]*,?"
    r" (i|we)('ll| will)? (still )?need\b",
    r"^(so|and|now)?,? ?(your (choice|call|pick|decision)|which one|over to you)\s*[:,\u2013\u2014-]",
    r"^(which|welche[rsn]?|quelle?s?|lequel|laquelle|cuál|quale)\b.*\b(do you (want|prefer)|would you|möchtest du"
    r"|willst du|möchten sie|voulez-vous|veux-tu|préf\w+|prefieres|quieres|vuoi|preferisci)\b",
    r"^(could|can|would|will) you (please )?(tell|confirm|clarify|specify|choose|decide|advise|let me know)\b",
    r"^(please |just |simply )*(reply|respond|answer) (with\b|yes\b|no\b|[\"'`\u201c\u2018]|[1a]\b)",
    r"^(please |just |simply )*(type|say|enter) .{1,30}?(\band (i\b|i'll)|\bto (continue|proceed|confirm|go on)\b)",
    r"\b(let me know|tell me) if (i|we) (should|may|can|am to|are to)\b",
    r"\b(let me know|tell me) if you('d| would)? (want|like) me to (go ahead|go on|proceed|continue)\b",
    r"\b(stopp?(ed|ing)|paus(ed|ing)|wait(ing)?|hold(ing)?)\b.*\b(so (that )?you can (decide|choose|pick|confirm|say)"
    r"|for you to (decide|choose|pick|confirm|say|answer|reply))\b",
    r"\b(i|we) (can ?not|can't|won't|will not|do not want to|don't want to)"
    r" (continue|proceed|go on|go ahead|finish|start)\b.*\b(until you|unless you|before you|without your)\b",
    r"^(i('m| am) |it('s| is) )?(not sure|unsure|unclear|not clear) (which|whether|what|how|if)\b.*"
    r"\byou (mean|meant|want|wanted|prefer|would)\b",
    r"\bbitte (entscheide|wähle|bestätigen?( sie)?|sag mir)\b(?!.*\b(dialog|formular)\b)",
    r"^(ich )?bitte um (freigabe|bestätigung|entscheidung|antwort|rückmeldung|erlaubnis|zustimmung)\b",
    r"\b(gib|geben sie) (mir |uns )?(bitte )?bescheid,? (ob|welche\w*|wie|was)\b",
    r"\b(lass|lassen sie) (mich|uns) (bitte )?wissen,? (ob|welche\w*|wie|was)\b",
    r"^(ich )?warte (hier )?auf (deine |ihre |eure )?(weitere[n]? )?(anweisung(en)?|anleitung|rückmeldung|eingabe)\b",
    r"\bich brauche (noch |jetzt )*(eine|deine|ihre) (entscheidung|antwort|bestätigung|freigabe|rückmeldung)\b",
    r"\bje ne (peux|pourrai) (pas|plus) (continuer|poursuivre|avancer)\b.*\b(sans|avant)\b",
    r"\bno puedo (continuar|seguir|avanzar)\b.*\b(sin|hasta)\b|\bnon posso (continuare|procedere|andare avanti)\b.*"
    r"\b(senza|finché)\b|\bnão posso (continuar|prosseguir)\b.*\b(sem|até)\b",
    r"\bohne\b.*\bkann ich nicht (weiter\w*|fortfahren|fortsetzen)\b",
    r"\bsage? mir (bitte)?,? ?(welche|ob|wie|was)",
    r"\bich (brauche|warte auf) (deine|ihre|eure)"
    r" (entscheidung|antwort|zustimmung|bestätigung|freigabe|erlaubnis)\b",
    r"\b(dime|dígame|por favor,? (confirma|elige|indica|decide|aclara))\b",
    r"\bnecesito tu (decisión|respuesta|confirmación)",
    r"\b(j'attends|en attente de|dans l'attente de) (vos |tes |votre |ta |d'autres |de nouvelles )?"
    r"(instructions?|consignes?|décision|confirmation|réponse|accord)\b",
    r"\b(faites|fais)-moi savoir (quel|lequel|laquelle|comment|ce que|si je)",
    r"\b(quedo |estoy )?a la espera de (tus |sus |tu |su |más )?(instrucciones|respuesta|decisión|confirmación)"
    r"|\b(attendo|in attesa di) (le )?(tue |sue |vostre |ulteriori )?(istruzioni|conferma|risposta)"
    r"|\b(aguardo|aguardando|no aguardo de) (as )?(suas |sua |mais )?(instruções|confirmação|resposta|decisão)",
    r"\b(dis-moi|dites-moi) (quel|lequel|laquelle|si|comment|ce que)"
    r"|\b(veuillez|merci de) (me )?(confirmer|choisir|préciser|indiquer|dire)\b",
    r"\b(dimmi|mi dica|me diga|diga-me) (quale|qual|se|come|como|cosa|o que)\b",
    r"请(您|你)?(选择|决定|指示|告诉我)|请(您|你)?确认是否",
    r"等待(您|你)的?(进一步的?)?(指示|确认|回复|决定|批准)|需要(您|你)的?(确认|决定|同意|批准|指示)",
    r"请(您|你)?确认后",
    r"(選んで|お選び|ご指示|ご判断|教えて|確認させて)ください",
    r"(指示|返答|回答|返信|確認|判断|返事)を?お?待ち(して)?(い|お)",
    r"(지시|답변|확인|결정|승인)(을|를)? ?기다",
    r"^(я )?(жду|ожидаю) (ваш|тво|дальнейш|указани|подтвержд)|^(подтвердите|выберите|уточните)\b",
)
"""It asks for a choice without a question mark."""

BLOCKED = _any(
    r"\b(i|we)('m| am|'re| are)? (blocked|stuck)\b",
    r"\b(i|we) (can ?not|can't|am unable to|are unable to|could not|couldn't) (proceed|continue|go on|finish)\b",
)
GIVE = _any(
    r"^please (provide|supply|send|share|give|grant|enter|paste|add|set|run)\b"
    r"(?! (any |your |me )*(feedback|comments?))",
)
"""A request that asks only when a sentence before it says that nothing goes on without."""

OPENS = _any(
    r"[*_ ]*(so,? )?(do you want|would you (like|prefer)|should (i|we)|shall (i|we)|may i|can i|could you|which)\b"
)
"""A question that its list completes: ``Do you want me to:``."""

ADDRESSES = _any(
    r"\b(which|should (i|we)|shall (i|we)|do you|would you|could you|can you|will you|may i|can i|are you)\b",
    r"\b(is it ok|prefer|want me|like me|choose|option|decide)\b",
    r"\b(welche[rsn]?|soll ich|möchtest du|möchten sie|willst du)\b",
    r"\b(cuál|prefieres|quieres|debo)\b",
    r"\b(lequel|laquelle|préfères|préférez|dois-je|voulez-vous|veux-tu)\b",
    r"哪|还是|どちら|どれ",
)
"""It speaks to the person."""

CLOSING = _any(
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
    r"\b(let me know|feel free|happy to|glad to)\b(?!.*\b(which|whether)\b)"
    r"(?!.*\bif (i|we) (should|may|can|am to|are to)\b)"
    r"(?!.*\bif you('d| would)? (want|like) me to (go ahead|go on|proceed|continue)\b).*\b(if|should)\b",
    r"^(if|should|in case) (anything|something|any of|there)\b|^if it (breaks|fails)\b",
    r"^was (that|this|it)\b.*\b(after|looking for|in mind|wanted|meant)\W*$",
    r"\b(sonst noch|noch (etwas|was|fragen|weitere)|weitere fragen|was anderes|etwas anderes)\b",
    r"\b(algo más|otra cosa|algo mais|mais alguma|qualcos'altro|altro)\b",
    r"\b(autre chose|d'autres? (questions?|choses?|besoins?))\b",
    r"\bpasst (das|es|alles)( so)?( für (dich|sie|euch))?\W*$|\bbrauchst du noch\b",
    r"\b(nog iets|iets anders|verder nog)\b|\b(coś jeszcze|czymś jeszcze|jeszcze (coś|jakieś))\b",
    r"\b(başka bir|başka sorunuz)",
    r"чем(-то)? ещ[её]|что-?(то|нибудь)? ещ[её]|(есть|остались) (ещ[её] |другие |какие-то )*вопрос",
    r"더 (도와|필요|궁금)|다른 (질문|도움)",
    r"还有(什么|其他|别的)|还需要(我|什么|其他)|其他(的)?(问题|需要|帮)|如?果?有.*(告诉|联系)我|(あれば|ありましたら)|他に(も|何|ご)|ほかに",
)
"""A polite closing: nothing depends on its answer."""

CONDITIONAL = re.compile(r"^if (so|yes),? (i|we)('ll|'d| will| would| can)\b", re.I)
"""What makes something depend on the question before it, however polite that sounds."""

RHETORIC = _any(
    r"^(neat|nice|cool|great|elegant|simple|easy|pretty|not bad|fun|who knew|why not|so what|right|eh|huh|guess"
    r" what|the result|the catch)\b[^.!]*$",
    r"\b(is|are|was|were|do|does|did|has|have|would|could|wo)n't (it|they|that|he|she)\W*$",
    r"\b(don't you think|who would have|what could go wrong|huh|eh)\W*$",
    r"\bwho (needs|knew|wants|says|said|doesn't|wouldn't)\b|^isn't (that|it|this)\b|^how \w+ is (that|this)\W*$",
)
"""It asks nobody, unless it also speaks to the person."""

LEAVE = _any(
    r"\b(should|shall)\b(?! \w+ have\b)|\bmay (i|we)\b",
    r"^(\w+ )?can (i|we) (proceed|continue|go|delete|drop|push|merge)\b",
    r"\b(do|would) you (want|like|prefer|mind|rather)\b|^(you )?want me to\b|\bdo we want\b",
    r"\b(is it|are you) (ok|okay|fine|alright|sure)\b",
    r"^(is|was) (this|that|it) (the right|what you|right|correct|intended|wanted|meant|still|deliberate|on purpose)\b",
    r"^(ok|okay|safe) to\b|^(what do you think|what would you (choose|do))\b|^(any )?objections?\b",
    r"^(proceed|continue|go (on|ahead)|delete|drop|remove|overwrite|replace|(force[- ])?push|merge|deploy|publish"
    r"|apply|reset|revert|rewrite|wipe|purge|migrate|upgrade|restart|commit|rename|release)\b",
    r"\b(soll(en|te|ten)?|darf ich|dürfen wir|möchtest du|möchten sie|willst du|wollen sie|bevorzugst du)\b",
    r"^ist (das|es) (so )?(gewollt|richtig|in ordnung|ok|okay|beabsichtigt)\b",
    r"\b(voulez-vous|veux-tu|souhaite[sz]-(vous|tu)|dois-je|puis-je|faut-il|préfér\w+-(vous|tu)|préfères-tu)\b",
    r"\b(quieres|quiere|debo|puedo|prefieres|prefiere)\b|^(devo|posso|vuoi|vuole|preferisci|quer|prefere)\b",
    r"^(?!.*(为什么|怎么|如何|なぜ|どうして|왜|어떻게|почему|зачем))(?!как )"
    r".*[\u0400-\u04ff\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7a3]",
)
"""It asks for leave to act, or for a choice: what follows it says what hangs on the answer."""

ANSWERS = _any(
    r"^[\W_]*(yes|no|nope|yeah|not|never|none|neither|both|because|so|thus|therefore|hence|in the end|finally|instead"
    r"|done|good|probably|run|see|set|use|type|call|open|read|try|change|edit|check|visit|look|only|just"
    r"|ja|nein|weil|oui|non|parce|sí|si|porque|sì|perché|sim|não)\b",
    r"^[\W_]*(是的?|不|没有|对|因为|はい|いいえ|なぜなら|네|아니|да|нет|потому)",
    r"\bso (it|they|that|this) (is|are|was|does|did|has)\b|^then use\b",
    r"^[\W_]*(i|we|i've|we've|ich|wir|je|nous|yo)\b"
    r"(?! (see|found|find|can|could|cannot|don't|do not|finde|sehe|kann)\b)",
    r"^[\W_]*(((from|after|before|in|on|at|with|by|via|through|until) )?[a-z0-9'-]+|[a-z0-9'-]+ [a-zäöüß'-]+"
    r"|(from|after|before|in|on|at|with|by|via|through|until) \w+ \w+)[\W_]*$",
    r"^(it|that|this|they|he|she) (is|are|did|does|do|was|were|had|has|can|will|would)(n't| not)?[.,:;!]",
    r"\bso (i|we) (did|do|have|kept|left|took|chose|used|went|made|removed|dropped|added|moved)\b",
)
"""A sentence behind a question that answers it, as a few words without a verb do: nobody else is asked."""

CAVEAT = _any(
    r"^[\W_]*(note|nb|n\.b|warning|caution|careful|attention|important|beware|heads[- ]up|please note|achtung"
    r"|hinweis|warnung|wichtig|attention|remarque|atención|nota|attenzione|atenção|注意)\b",
    r"^[\W_]*(this|that|it|they|these|there)('s|'re| (is|are|will|would|can|may|has|have))?\b.*\b(irreversible|undone"
    r"|undo|reversed|revert|permanent(ly)?|no (backup|copy|way back|undo)|lost|last copy|destructive|destroys?|deletes?"
    r"|rewrites?|overwrites?|data loss)\b",
    r"^(?!.*\b(keine[nm]?|nicht) (mehr )?(nötig|gefahr))"
    r".*(nicht rückgängig|unwiderruflich|irreversibel|kein (backup|zurück)|keine sicherung)",
    r"\b(does not|doesn't|do not|don't) (say|tell|mention|specify)\b|\bsays? nothing\b|\b(ambiguous|unspecified)\b"
    r"|\bnothing (says|tells)\b|\bboth (are|is|work|would|look|seem)\b|\bsagt (dazu )?nichts\b",
    r"irréversible|irreversíve|irreversibile|(est|es) irreversible|(ne|n')\w* (pourra|peut) pas être annul"
    r"|no se puede deshacer|non si può annullare|não pode ser desfeit",
    r"元に戻せ|取り消せ|戻せません|不可恢复|不可逆|无法(撤销|恢复)|되돌릴 수 없|необратим|нельзя (отменить|вернуть)",
)
"""What an answer costs, or that nobody has given one: the question stands before it."""
