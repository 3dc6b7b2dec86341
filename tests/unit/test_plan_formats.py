"""Plans as others write them: read, flipped by one word, and guarded against everybody else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.plan import specification
from harness.plan.files.formats import BadPlan, flipped, read
from harness.plan.files.guard import tampered
from harness.plan.files.spellings import FEATURES, STORIES, TASKS

FEATURE_LIST = b"""[
  {
    "category": "functional",
    "description": "A sum of two numbers is shown",
    "steps": ["Open the page", "Type 2 and 2", "See 4"],
    "passes": false
  },
  {"category":"style","description":"The sum is \\u00fcber the line \\"passes\\": true","steps":[],"passes":true}
]
"""
PRD = b"""{
    "project": "Sums", "branchName": "ralph/sums", "x-kept": [1.50, 1e3, null],
    "userStories": [
        {"id": "US-001", "title": "Add", "description": "As a user I add", "acceptanceCriteria": [
            "Run `make test` - exits with code 0", "Typecheck passes"], "priority": 1, "passes": false , "notes": ""},
        {"id": "US-002", "title": "Show", "acceptanceCriteria": [], "priority": 2, "passes"\t:\ttrue,
         "depends_on": ["US-001"], "phase": "second", "passes_note": {"passes": false}}
    ]
}"""
COMPOUND = b'{"project":"Sums","tasks":[{"id":"T-001","title":"Add","acceptanceCriteria":["a"],"passes":false}]}'


def test_the_three_forms_are_read() -> None:
    features = read(FEATURE_LIST)
    assert features.form == FEATURES
    assert [(e.id, e.passes, e.phase) for e in features.entries] == [("F-001", False, ""), ("F-002", True, "")]
    assert features.entries[0].criteria == ("Open the page", "Type 2 and 2", "See 4")
    stories = read(PRD)
    assert stories.form == STORIES
    assert stories.entries[1].depends_on == ("US-001",)
    assert stories.passed == 1
    assert read(COMPOUND).form == TASKS


@pytest.mark.parametrize("data", [FEATURE_LIST, PRD, COMPOUND])
def test_a_flip_changes_one_word(data: bytes) -> None:
    plan = read(data)
    for index, entry in enumerate(plan.entries):
        made = flipped(plan, {index: not entry.passes})
        words = {True: "true", False: "false"}
        expected = plan.text[: entry.at] + words[not entry.passes] + plan.text[entry.end :]
        assert made.text == expected
        assert plan.text[entry.at : entry.end] == words[entry.passes]
        assert [e.passes for e in made.entries] == [e.passes is not (i == index) for i, e in enumerate(plan.entries)]
        assert flipped(made, {index: entry.passes}).text == plan.text


ODD = {
    "a byte order mark": (b"", b"", b"\xef\xbb\xbf"),
    "lines of another system": (b", ", b",\r\n  ", b""),
    "space behind the end": (b"", b"", b""),
    "a number without an end": (b'"passes"', b'"n": ' + b"9" * 9000 + b', "passes"', b""),
    "numbers spelled oddly": (b'"passes"', b'"n": 1e99999, "m": -0.0, "k": 1.10, "passes"', b""),
    "passes further inside": (b'"passes"', b'"x": {"passes": true, "y": [{"passes": true}]}, "passes"', b""),
    "a key in other letters": (b'"passes"', b'"p\\u0061sses"', b""),
    "half a letter": (b'"title"', b'"x": "\\ud800", "title"', b""),
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("data", [FEATURE_LIST, PRD, COMPOUND], ids=["features", "stories", "tasks"])
def test_however_a_plan_is_spelled_a_flip_changes_one_word(data: bytes, name: str) -> None:
    old, new, first = ODD[name]
    odd = first + (data.replace(old, new) if old else data) + b" \n\t\r\n"
    plan = read(odd)
    assert specification.check(odd)[0].where == plan.entries[0].id
    entry = plan.entries[0]
    word = {True: "true", False: "false"}[not entry.passes]
    assert flipped(plan, {0: not entry.passes}).text == f"{plan.text[: entry.at]}{word}{plan.text[entry.end :]}"
    assert plan.text.encode() == odd


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
UNKNOWN = st.dictionaries(st.sampled_from(["x", "note", "Passes", "pass", "priority"]), JSON, max_size=3)


@st.composite
def plans(draw: st.DrawFn) -> bytes:
    form = draw(st.sampled_from([FEATURES, STORIES, TASKS]))
    items: list[dict[str, Any]] = []
    for number in range(draw(st.integers(0, 4))):
        item = draw(UNKNOWN) | {
            "id": f"E{number}",
            "title": draw(st.text('ab\u00e9\\"', min_size=1, max_size=5)),
            "passes": draw(st.booleans()),
        }
        items.append(dict(draw(st.permutations(list(item.items())))))
    whole = items if form == FEATURES else draw(UNKNOWN) | {form: items}
    indent = draw(st.sampled_from([None, 1, 4]))
    return json.dumps(whole, indent=indent, ensure_ascii=draw(st.booleans())).encode()


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(plans(), st.data())
def test_any_plan_survives_flips_but_for_their_words(data: bytes, more: st.DataObject) -> None:
    plan = read(data)
    assert plan.text.encode() == data
    assert tampered(plan, data) == []
    wanted = more.draw(st.fixed_dictionaries({}, optional={i: st.booleans() for i in range(len(plan.entries))}))
    made = flipped(plan, wanted)
    then = json.loads(data)
    for index, passes in wanted.items():
        (then if plan.form == FEATURES else then[plan.form])[index]["passes"] = passes
    assert json.loads(made.text) == then
    assert flipped(made, {index: entry.passes for index, entry in enumerate(plan.entries)}).text.encode() == data
    changed = [plan.entries[i] for i in sorted(wanted) if wanted[i] is not plan.entries[i].passes]
    said = [f"{entry.id} was set to {str(not entry.passes).lower()}" for entry in changed]
    assert tampered(plan, made.text.encode()) == said


@given(st.binary(max_size=100))
def test_any_other_file_is_no_plan(data: bytes) -> None:
    try:
        plan = read(data)
    except BadPlan:
        return
    assert plan.text.encode() == data


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b"[1]",
        b'[{"description": "a"}]',
        b'[{"description": "a", "passes": "true"}]',
        b'[{"description": "", "passes": true}]',
        b'{"tasks": [{"id": "1", "title": "a", "passes": true}, {"id": "1", "title": "b", "passes": true}]}',
        b'[{"description": "a", "passes": false, "passes": true}]',
        b'[{"description": "a", "passes": true, "steps": 1}]',
        b"[" * 100_000,
        b'"\xff"',
        b'{"tasks": [{"id": "' + b"1" * 201 + b'", "title": "a", "passes": true}]}',
        b'{"tasks": [{"id": "1", "title": "a", "passes": true, "phase": "' + b"p" * 201 + b'"}]}',
        b'{"tasks": [{"id": "1", "title": "a", "passes": true, "gate": "' + b"g" * 2001 + b'"}]}',
        b'{"phases": ["' + b"p" * 201 + b'"], "tasks": []}',
    ],
)
def test_what_is_no_plan_is_said(data: bytes) -> None:
    with pytest.raises(BadPlan):
        read(data)


TAMPERED: dict[str, tuple[Any, str]] = {
    "removed": (lambda p: p["userStories"].pop(0), "US-001 was removed"),
    "reordered": (lambda p: p["userStories"].reverse(), "its entries were reordered"),
    "reworded": (lambda p: p["userStories"][0].update(title="Nothing"), "US-001 was reworded"),
    "criteria": (lambda p: p["userStories"][0]["acceptanceCriteria"].pop(), "US-001 was reworded"),
    "flipped": (lambda p: p["userStories"][0].update(passes=True), "US-001 was set to true"),
    "added": (
        lambda p: p["userStories"].append({"id": "US-003", "title": "More", "passes": True}),
        "US-003 was added",
    ),
    "around": (lambda p: p.update(branchName="main"), "what stands around its entries was changed"),
    "emptied": (lambda p: p["userStories"].clear(), "US-001 was removed"),
}


@pytest.mark.parametrize("name", TAMPERED)
def test_what_a_worker_does_to_a_plan_is_told(name: str) -> None:
    change, told = TAMPERED[name]
    whole = json.loads(PRD)
    change(whole)
    assert told in tampered(read(PRD), json.dumps(whole).encode())


def test_features_that_are_reordered_are_not_said_to_be_reworded() -> None:
    """They have no ids of their own: each is called by its place."""
    items = [{"description": text, "passes": False} for text in ("one", "two", "three")]
    plan = read(json.dumps(items).encode())
    assert tampered(plan, json.dumps([items[2], items[0], items[1]]).encode()) == ["its entries were reordered"]
    flipped = [{**items[1], "passes": True}, items[0], items[2]]
    told = ["its entries were reordered", "F-002 was set to true"]
    assert tampered(plan, json.dumps(flipped).encode()) == told


def test_a_plan_that_is_gone_or_no_plan_any_more_is_told() -> None:
    plan = read(PRD)
    assert tampered(plan, None) == ["the plan was deleted"]
    assert "cannot be read" in tampered(plan, b"{")[0]
    assert tampered(plan, json.dumps(json.loads(PRD), indent=8).encode()) == []


EXAMPLES = Path(__file__).parent.parent / "data" / "plans"


@pytest.mark.parametrize(
    ("name", "form", "count"), [("ralph-prd.json", STORIES, 4), ("compound-product-tasks.json", TASKS, 3)]
)
def test_the_examples_of_others_come_back_byte_for_byte_but_for_the_flip(name: str, form: str, count: int) -> None:
    data = EXAMPLES.joinpath(name).read_bytes()
    plan = read(data)
    assert (plan.form, len(plan.entries), plan.passed) == (form, count, 0)
    whole = json.loads(data)
    lines = data.splitlines(keepends=True)
    flips = [number for number, line in enumerate(lines) if line.strip().startswith(b'"passes"')]
    for index in range(count):
        made = flipped(plan, {index: True}).text.encode()
        expected = [*lines]
        expected[flips[index]] = lines[flips[index]].replace(b"false", b"true")
        assert made == b"".join(expected) != data
        assert [e["passes"] for e in json.loads(made)[form]] == [i == index for i in range(count)]
        assert json.loads(made)[form][index] == whole[form][index] | {"passes": True}
        assert flipped(read(made), {index: False}).text.encode() == data
