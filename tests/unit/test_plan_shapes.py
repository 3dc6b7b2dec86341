"""Plan files in the shapes that people have: each loads as expected, or is refused by naming what was seen and what to
write instead; a flip changes one word.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.plan import specification
from harness.plan.files import criteria, spellings
from harness.plan.files.formats import BadPlan, Plan, flipped, read
from harness.plan.files.guard import tampered
from harness.plan.phases import phased
from tests.unit.test_plan_phases import Told

SHAPES = Path(__file__).parent.parent / "data" / "plans" / "shapes"
EXPECTED: dict[str, dict[str, Any]] = json.loads((SHAPES / "expected.json").read_bytes())
LOADED = [name for name, outcome in EXPECTED.items() if "entries" in outcome]
REFUSED = [name for name, outcome in EXPECTED.items() if "refused" in outcome]
SPECS = [name for name, outcome in EXPECTED.items() if "lines" in outcome]


def test_every_shape_has_an_expected_outcome() -> None:
    assert {path.name for path in SHAPES.iterdir()} - {"expected.json"} == set(EXPECTED)
    assert len(EXPECTED) >= 30


@pytest.mark.parametrize("name", LOADED)
def test_a_shape_loads(name: str) -> None:
    plan = read((SHAPES / name).read_bytes())
    made = phased(plan)
    seen = [
        [
            entry.id,
            entry.passes,
            list(entry.depends_on),
            len(criteria.commands(entry.criteria)),
            len(criteria.problems(entry.criteria)) or (0 if entry.criteria else 1),
        ]
        for entry in plan.entries
    ]
    outcome = EXPECTED[name]
    assert seen == outcome["entries"]
    assert [one.name for one in made.phases] == outcome.get("phases", [""])
    assert outcome.get("notes", "") in "; ".join(plan.notes)
    assert outcome.get("unread", "") in "; ".join(plan.unread)
    assert bool(plan.notes) == ("notes" in outcome)
    assert bool(plan.unread) == ("unread" in outcome)


@pytest.mark.parametrize("name", REFUSED)
def test_a_shape_is_refused_by_naming_what_was_seen_and_what_to_write(name: str) -> None:
    with pytest.raises(BadPlan) as refused:
        specification.check((SHAPES / name).read_bytes())
    for words in EXPECTED[name]["refused"]:
        assert words in str(refused.value)


@pytest.mark.parametrize("name", SPECS)
def test_a_specification_is_read_by_its_headings(name: str) -> None:
    seen = specification.look((SHAPES / name).read_bytes())
    outcome = EXPECTED[name]
    told = [[line.where, line.under, isinstance(line.found, criteria.Criterion)] for line in seen.lines]
    assert [line[::2] for line in told] == [line[::2] for line in outcome["lines"]]
    assert [under for _, under, _ in told] == [
        under or seen.lines[n].under for n, (_, under, _) in enumerate(outcome["lines"])
    ]
    assert len(seen.unread) == outcome.get("unread", 0)
    assert bool(seen.notes) == ("notes" in outcome)
    assert outcome.get("notes", "") in "; ".join(seen.notes)


@pytest.mark.parametrize("name", LOADED)
def test_a_flip_of_a_shape_changes_one_word_and_back(name: str) -> None:
    data = (SHAPES / name).read_bytes()
    plan = read(data)
    for index, entry in enumerate(plan.entries):
        made = flipped(plan, {index: not entry.passes})
        begin = entry.at
        end = len(made.text) - (len(plan.text) - entry.end)
        assert made.text[:begin] == plan.text[:begin]
        assert made.text[end:] == plan.text[entry.end :]
        assert '"' not in made.text[begin:end].strip('"')
        assert made.entries[index].passes is not entry.passes
        assert type(json.loads(made.text[begin:end])) in (type(json.loads(plan.text[entry.at : entry.end])), bool)
        assert flipped(made, {index: entry.passes}).text.encode() == data
        assert tampered(plan, made.text.encode()) == [f"{entry.id} was set to {str(not entry.passes).lower()}"]


def test_a_status_becomes_the_word_that_the_file_has_for_it() -> None:
    items = [{"id": n, "title": n, "status": word} for n, word in (("a", "todo"), ("b", "Completed"), ("c", "FAILING"))]
    plan = read(json.dumps(items).encode())
    assert [entry.words for entry in plan.entries] == [
        ('"todo"', '"Completed"'),
        ('"todo"', '"Completed"'),
        ('"FAILING"', '"Completed"'),
    ]
    alone = read(json.dumps(items[2:]).encode())
    assert alone.entries[0].words == ('"FAILING"', '"PASSING"')


def test_priorities_in_words_and_numbers_say_what_comes_first() -> None:
    def first(*priorities: object) -> str:
        items = [{"id": str(n), "title": "t", "passes": False, "priority": p} for n, p in enumerate(priorities)]
        return Told(json.dumps({"tasks": items}).encode()).next()

    assert first("low", "high", "medium") == "1"
    assert first("P2", "P0", "P1") == "1"
    assert first(3, 0, 1) == "1"
    assert first("Should Have", "Must Have") == "1"
    assert first(None, "2") == "1"


NAMES = {
    "list": list(spellings.LISTS),
    "title": list(spellings.TITLE),
    "state": [*spellings.DECIDED, *spellings.STATUS],
    "order": list(spellings.AFTER),
    "criteria": [*spellings.CRITERIA, *spellings.COMMANDS, *spellings.EITHER],
}


def respelled(draw: st.DrawFn, name: str) -> str:
    snake = "".join(f"_{c.lower()}" if c.isupper() else c for c in name)
    return draw(st.sampled_from([name, snake, snake.replace("_", "-"), name.upper()]))


@st.composite
def shapes(draw: st.DrawFn) -> tuple[bytes, list[tuple[bool, list[str]]]]:
    """A plan in any of the spellings, and what it says: which entries pass, and what each waits for."""
    names = {kind: draw(st.sampled_from(known)) for kind, known in NAMES.items()}
    key = {kind: respelled(draw, name) for kind, name in names.items()}
    said: list[tuple[bool, list[str]]] = []
    items: list[dict[str, object]] = []
    for number in range(draw(st.integers(1, 4))):
        passes = draw(st.booleans())
        waits = draw(st.lists(st.sampled_from([f"e{n}" for n in range(number)]), unique=True)) if number else []
        word = draw(st.sampled_from(spellings.DONE if passes else list(spellings.OPEN)))
        state: object = passes if names["state"] in spellings.DECIDED else draw(st.sampled_from([word, word.title()]))
        pairs = [("id", f"e{number}"), (key["title"], "Words"), (key["state"], state)]
        pairs += [(key["order"], waits), (key["criteria"], [f"make e{number}"])]
        items.append(dict(draw(st.permutations(pairs))))
        said.append((passes, waits))
    whole: object = {"about": "x", key["list"]: items}
    whole = draw(st.sampled_from([whole, items, {"plan": whole}]))
    return json.dumps(whole, indent=draw(st.sampled_from([None, 2])), ensure_ascii=draw(st.booleans())).encode(), said


def _stands(plan: Plan) -> list[tuple[bool, list[str]]]:
    return [(entry.passes, list(entry.depends_on)) for entry in plan.entries]


@settings(max_examples=150, deadline=None)
@given(shapes(), st.data())
def test_whatever_its_keys_are_called_a_plan_says_the_same(
    shape: tuple[bytes, list[tuple[bool, list[str]]]], more: st.DataObject
) -> None:
    data, said = shape
    plan = read(data)
    phased(plan)
    assert _stands(plan) == said
    assert all(entry.criteria for entry in plan.entries)
    wanted = more.draw(st.fixed_dictionaries({}, optional={i: st.booleans() for i in range(len(said))}))
    made = flipped(plan, wanted)
    assert _stands(made) == [(wanted.get(i, passes), waits) for i, (passes, waits) in enumerate(said)]
    assert flipped(made, {i: passes for i, (passes, _) in enumerate(said)}).text.encode() == data


def test_the_reference_lists_every_key_that_is_read() -> None:
    table = (Path(__file__).parents[2] / "docs" / "reference" / "plan-files.md").read_text("utf-8")
    for names in (*NAMES.values(), spellings.ID, spellings.WAYS, spellings.BEFORE, spellings.GROUPS):
        assert all(f"`{name}`" in table for name in names)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("make boil", True),
        ("make sure the kettle boils", False),
        ("go test ./...", True),
        ("go to the page /login", False),
        ("npm test", True),
        ("./check.sh all", True),
        ("node is running", False),
        ("Open the page", False),
        ("python -m pytest -q", True),
        ("CI=1 yarn test", True),
    ],
)
def test_a_command_is_told_from_a_sentence(text: str, command: bool) -> None:
    assert criteria.is_command(text) is command
