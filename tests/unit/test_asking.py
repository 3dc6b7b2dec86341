"""Whether a reply ends in a question: a corpus of endings and what is decided, and properties that hold for any
text.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.reports.question_detector import MOST_WORDS, TITLE, asked, words
from tests.unit.asking_corpus import ENDS, WAITS

ASKS = [
    "Which database should I use?",
    "I read the code.\n\nShould the parser keep accepting tabs?",
    "Two designs would work. Do you want the fast one or the simple one?",
    "Everything but the last step is done. May I delete `old/`?",
    "Is `v1` still in use? I found no caller, but the docs name it. **Should I drop it?**",
    "Should I use SQLite or Postgres? Please let me know.",
    "Should I use SQLite or Postgres? I can do either.",
    "Should I merge them? Thanks!",
    "Which of these do you want?\n\n1. Keep the old API\n2. Break it now\n3. Both, behind a flag",
    "I see two ways. Which one should I take?\n- rewrite the loop\n- cache the result",
    "Please choose one of these options:\n\n- A: rewrite\n- B: patch",
    "I found two readings of the goal. Let me know which you prefer.",
    "The goal names no port. Tell me what you want and I go on.",
    "I cannot go on without the password rules. I need your decision.",
    "The two specs contradict each other, so I stopped. Please clarify which is right.",
    "I am waiting for your confirmation before I touch the schema.",
    "Open questions:\n\n- Is the cap in cents?\n- Should zero be allowed?",
    "Would you like me to also update the changelog?",
    "Shall I run this?\n\n```sh\nrm -rf build\n```",
    "Shall I go on with the second half (about two hours)? 🙂",
    "(Or should I ask the maintainers first?)",
    "You meant the v2 API, right?",
    "What should the limit be?!",
    "How many workers are wanted?",
    "Soll ich die alte Tabelle löschen?",
    "Ich habe beide Varianten geprüft. Bitte entscheide, welche bleibt.",
    "¿Quieres que borre la tabla?",
    "Dois-je supprimer l'ancienne table ?",
    "要删除旧表吗？",
    "古いテーブルを削除しますか？",
    "古いテーブルを削除してもよろしいでしょうか。",
    "هل أحذف الجدول القديم؟",
    "Να διαγράψω τον παλιό πίνακα\u037e",
    "Να διαγράψω τον παλιό πίνακα;",
    "Ջնջե՞մ հին աղյուսակը։",
    "Удалить старую таблицу?",
    "See [the notes](https://example.org/a?b=c). Is that the format you want?",
    "Should I delete the old table or keep it? I have stopped here until I hear from you.",
    "Do you want me to:\n1. rewrite it\n2. patch it\n\nI'll wait for your reply.",
    "Which option do you prefer?\n- A\n- B\n\nMy recommendation is A.",
    "Which one is authoritative? I have not changed anything yet.",
    "Which one is authoritative? I haven't touched the schema yet. Thanks!",
    "I would drop the table now. Is that ok?",
    "Which file did you mean? (I see a.txt and b.txt.)",
    "Please provide the API token so I can proceed.",
    "Both ways are prepared. Waiting for your go-ahead.",
    "I have stopped here until you decide between the two.",
    "Do you want me to continue? [y/N]",
    "Should I continue? Yes/No",
    "The table has rows. Please confirm before I drop it.",
    "Both are ready. Please confirm.",
    "Let me know how you would like me to proceed.",
    "Two tests contradict each other. Let me know how to proceed.",
    "I need more information: what is the expected format?",
    "I'm blocked: the key is missing. Please provide it.",
    "I can't proceed without credentials. Please provide the API key.",
    "I need the API key to continue.",
    "I'll need you to run `make migrate` first, then tell me the output.",
    "Waiting on your input before continuing.",
    "Standing by for your decision.",
    "Does that look right to you before I apply it to production?",
    "Which one? I'd go with B unless you object.",
    "Should I go with A? Otherwise I'll stop here.",
    "Should I also fix the flaky test? I left it as is for now.",
    "Sound good? If so, I'll run the migration.",
    "Questions for you:\n- Do we support Windows?\n- Which Python?\n\nI'll wait for your answers before continuing.",
    "Two options:\n\nA) Rewrite\nB) Patch\n\nWhich one do you want me to take? I'd suggest B.",
    "You will have to choose between speed and size.",
    "I see both `foo` and `bar`. Which is canonical?\n\nI've left the code untouched.",
    "Should I make the retry exponential?\n\nIf you have no preference I'd do exponential with jitter.",
    "Both are possible. Your call.",
    "Let me know once you've set the token and I'll continue.",
    "Once you confirm, I'll delete the branch.",
    "Welche Variante bevorzugst du? Ich würde B nehmen.",
    "Sag mir bitte, welche Variante du willst.",
    "Ich brauche deine Entscheidung: A oder B.",
    "¿Prefieres A o B? Yo elegiría B.",
    "Dime cuál prefieres.",
    "Merci de confirmer avant que je supprime la table.",
    "Quelle option préférez-vous ? Je choisirais B.",
    "请选择一个方案。",
    "请确认是否继续。",
    "どちらかを選んでください。",
]

DONE = [
    "",
    "All done.",
    "All 14 tests pass. Committed as 3f2a1c.",
    "Let me know if you want anything else?",
    "Let me know if you want anything else.",
    "All tests pass. Is there anything else you'd like me to do?",
    "Done. Anything else?",
    "Would you like me to do anything else?",
    "Can I help with something else?",
    "Any questions?",
    "The parser is ported. Do you have any further questions?",
    "Does that help?",
    "Finished. Does this make sense?",
    "What's next?",
    "What would you like me to do next?",
    "How can I help?",
    "Feel free to ask if anything is unclear?",
    "It is one line now. Neat, isn't it?",
    "No framework, no cache. Who needs them?",
    "Why did it fail? Because the clock was read twice.",
    "Should I have used a lock? I decided against it, as there is one writer.",
    "What changed?\n\n- the parser\n- its tests",
    "## What is left?\n\n- nothing",
    "Done.\n\n## Questions?",
    "I added the prompt:\n\n```python\ninput('Are you sure?')\n```",
    "I added the prompt:\n\n```python\nx = input('Are you sure?')",
    "The pattern is `colou?r`",
    "It now matches colou?r and a.*?",
    "See https://example.org/search?",
    'The program now asks "Delete everything?"',
    "The dialog says:\n\n> Do you want to continue?",
    "| question | answer |\n| --- | --- |\n| ready? | yes |",
    "The ternary is `a ? b : c`.",
    "Fixed. The regular expression ended in `?`",
    "int f(void) { return 1; }\nreturn f();",
    "Let me know if you would prefer option B.",
    "I chose option B; tell me if that is wrong.",
    "The old table is gone. Gibt es sonst noch etwas?",
    "Listo. ¿Algo más?",
    "C'est fait. Autre chose ?",
    "完成了。还有其他问题吗？",
    "できました。他に何かありますか？",
    "Nothing asks here.\n\n1. First\n2. Second",
    "???",
    "Thanks!",
    "Should I have used a lock? I did not, as there is one writer.",
    "Please provide feedback on the pull request.",
    "I waited for the tests. All pass.",
    "The server waits until you stop it.",
    "What changed?\n\n- the parser\n\nI recommend reading the diff.",
    "Everything works. (The cache is off.)",
    "Nothing has been pushed yet.",
    "Is it fast? Sounds good?",
    "Would you like any changes?",
    "Want me to make any adjustments?",
    "The user is asked to choose one of three themes.",
    "Users can choose between dark and light.",
    "You can choose either theme in the settings.",
    "The docs now say which option to choose.",
    "The dialog lets people pick one.",
    "The workflow is paused until you approve it in the dialog; that is the feature.",
    "Please run `make install` before the tests.",
    "Who doesn't love a green build?",
    "How cool is that?",
    "I left the flag as it was.",
    "Everything is in place; let me know when you want to release.",
    "Should anything break, revert commit abc123.",
    "Users are told to please confirm their address.",
    "The wizard waits for your confirmation in step 3.",
    "Once you confirm the dialog, the file is deleted.",
    "The new flag decides which backend is used.",
    "Passt das so für dich?",
    "Brauchst du noch etwas?",
    "Чем ещё могу помочь?",
    "Есть ещё вопросы?",
    "还需要我做什么吗？",
    "더 도와드릴 것이 있을까요?",
    "Nog iets anders?",
    "Czy mogę pomóc w czymś jeszcze?",
    "Başka bir şey var mı?",
]


def test_the_corpus_is_large_enough() -> None:
    every = [*ASKS, *DONE, *WAITS, *ENDS]
    assert len(every) >= 500
    assert len(set(every)) == len(every)


@pytest.mark.parametrize("reply", [*ASKS, *WAITS])
def test_it_asks(reply: str) -> None:
    question = asked(reply)
    assert question
    assert "\n" not in question
    assert asked(f"I looked at it.\n\n{reply}\n\n")


@pytest.mark.parametrize("reply", [*DONE, *ENDS])
def test_it_is_done(reply: str) -> None:
    assert asked(reply) == ""
    assert asked(f"Should I go on?\n\nYes, I did.\n\n{reply}") == ""


def test_the_question_itself_is_named() -> None:
    assert asked("I did much.\n\nIt works. Should I drop `v1`? Please let me know.") == "Should I drop `v1`?"


@given(st.text(alphabet=st.sampled_from("?？؟;. \n`~>-#|*\"')!abÄか。1)"), max_size=200))
def test_any_text_gets_an_answer_of_one_short_line(text: str) -> None:
    found = asked(text)
    assert "\n" not in found
    assert len(found) <= TITLE
    assert asked("x" * 100_000 + "\n\n" + text) == found or not text.strip()


def test_long_words_keep_their_end() -> None:
    text = words("a" * 20_000 + "\n\nWhich one?")
    assert text.endswith("Which one?")
    assert len(text) < MOST_WORDS + 100
    assert words(" short? ") == "short?"
