"""Where keys stand in a file of settings, and what is said of one that cannot be used."""

from __future__ import annotations

from typing import Annotated

import msgspec
import pytest
from msgspec import Meta

from harness.domain.settings.amounts import DURATION, SIZE
from harness.domain.settings.reading import Source
from harness.domain.settings.toml_text import Place, Unusable, lines

TEXT = '''# a comment
top = 1
prompt = """
tools = "not this one" \\"""
[limits]
""""
tools = [
  "a", # ]
  ["]"],
]

[limits]  # section
usd = 1
"quoted.key" = {inner = 1, more = 2}
a.b = 1
[profiles."m.1"]
x = 1
[[rule]]
tool = 'a'
[rule.sub]
y = 1
[[rule]]
tool = 'b'
'''


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize(
    ("place", "line"),
    [
        (("top",), 2),
        (("prompt",), 3),
        (("tools",), 7),
        (("limits",), 12),
        (("limits", "usd"), 13),
        (("limits", "quoted.key"), 14),
        (("limits", "a", "b"), 15),
        (("profiles", "m.1", "x"), 17),
        (("rule", 0, "tool"), 19),
        (("rule", 0, "sub", "y"), 21),
        (("rule", 1), 22),
        (("rule", 1, "tool"), 23),
    ],
)
def test_each_key_has_the_line_in_which_it_begins(place: Place, line: int, ending: str) -> None:
    assert lines(TEXT.replace("\n", ending))[place] == line


@pytest.mark.parametrize(
    "text",
    [
        "x = [\n" + '"]",\n' * 20_000 + "]\n",
        "[" + ".".join("a" * 30_000) + "]\n",
        'x = """' + '\n"]' * 20_000 + '"""""\n',
    ],
)
def test_no_text_holds_up_who_looks_for_a_line(text: str) -> None:
    assert lines(f"{text}last = 1\n[z]\n")[("z",)] == text.count("\n") + 2


class Inner(msgspec.Struct, frozen=True):
    wait: Annotated[int, Meta(ge=10, le=7 * 86_400), DURATION] = 60
    room: Annotated[int, Meta(ge=1 << 20, le=1 << 40), SIZE] | None = None
    name: str = ""


class Outer(msgspec.Struct, frozen=True):
    inner: Inner = Inner()
    every: dict[str, Inner] = {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '\n[inner]\nwait = "9s"',
            'line 3: inner.wait: must be a duration such as "90m" between 10s and 7d',
        ),
        ('[inner]\nwait = "9s"', ', not "9s"'),
        ("[inner]\nwait = false", "7d, not false"),
        ("[inner]\nroom = 5", "1MiB or more, or false for none, not 5"),
        (f"[inner]\nroom = {1 << 50}", "between 1MiB and 1TiB, or false for none, not 1125899906842624"),
        ("[inner]\nname = 5", "inner.name: must be a string, not 5"),
        ("[inner]\nwiat = 5", "line 2: inner.wiat: unknown key; did you mean wait? known: wait, room, name"),
        ("[inne]\n", "line 1: inne: unknown section; did you mean inner? known: inner, every"),
        ("inner = {wait = 1}", "line 1: inner.wait: must be"),
        ("[every.'a b']\nname = true\n", 'line 2: every."a b".name: must be a string, not true'),
        ("[every]\na = 3\n", "line 2: every.a: must be a section: write [every.a], not 3"),
    ],
)
def test_an_error_names_line_key_and_value_and_what_it_must_be(text: str, said: str) -> None:
    with pytest.raises(Unusable) as caught:
        Source(text, "f.toml", Unusable).read(Outer)
    assert said in str(caught.value)


def test_values_are_read_in_their_units_and_false_is_none() -> None:
    made = Source('[inner]\nwait = "1h 1s"\nroom = false\n[every.a]\nroom = "2MiB"', "f.toml", Unusable).read(Outer)
    assert made == Outer(Inner(3601, None), {"a": Inner(room=2 << 20)})
