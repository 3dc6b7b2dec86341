"""Writes the long demo's almanac, one feature a task, as a model does that is mostly right.

It reads in the page of its task which feature is wanted. What it does is the same whatever comes back, so that it can
be replayed over turns that a hand-off stands for: it claims some features wrongly first, and tries once to change a
test instead of the code.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from harness.simulator.almanac.features import FEATURES, Feature
from harness.simulator.script import Call, Scenario, Script, call, say

_TASK = re.compile(r"^Task \d+ of this session\b.*? work on (US-\d+) of", re.MULTILINE)
_JOB = re.compile(r"\bj\d+\b")
WEAKENED = "days_in_year"
"""The feature whose test the model weakens instead of writing it."""


def module_text(done: list[Feature], name: str) -> str:
    code = "\n\n".join(feature.code for feature in done if feature.module == name)
    return f'"""{name.capitalize()}."""\n\n\n{code}'


def _write(done: list[Feature], feature: Feature, why: str) -> Call:
    path = f"almanac/{feature.module}.py"
    return call("write_file", path=path, content=module_text(done, feature.module), why=why)


def _weaken(feature: Feature) -> Call:
    head = f"class {feature.name.title().replace('_', '')}(unittest.TestCase):\n    def test(self):\n"
    path = f"tests/test_{feature.module}.py"
    return call("edit_file", path=path, old=head, new=f"{head}        return\n", why="the test is too strict")


def _assumed() -> Script:
    """An assumption that proves wrong."""
    yield say(
        "I assumed one formula for every wind; it holds from 5 km/h on.",
        call(
            "plan",
            action="replan",
            text="the formula that I had in mind is for miles an hour",
            steps=["use the metric formula", "round to one place"],
        ),
    )


def _stubborn() -> Script:
    """The same call, failing three times."""
    for _ in range(3):
        yield say("Is there a dictionary to look words up in?", call("exec", argv=["cat", "/nowhere/words.txt"]))


def _soaked() -> Script:
    """A job of its own, waited for."""
    back = yield say("Before the last ones: a soak.", call("exec", argv=["python3", "-m", "tools.soak", "3"], job=True))
    name = _JOB.search(back.text)
    yield say("I wait for it.", call("job", action="wait", **({"job": name[0]} if name else {})))


BEFORE: dict[str, Callable[[], Script]] = {"wind_chill": _assumed, "plural": _stubborn, "compound": _soaked}
"""What happens before a feature is written."""


def _task(feature: Feature) -> Script:
    before = list(FEATURES[: FEATURES.index(feature)])
    if feature.name in BEFORE:
        yield from BEFORE[feature.name]()
    if feature.name == WEAKENED:
        yield say(f"{feature.id}: its test stands in the way.", _weaken(feature))
        yield say(f"{feature.id} is done, all tests pass.")
    if feature.first_try:
        wrong = replace(feature, code=feature.first_try)
        yield say(f"{feature.id}: {feature.does}.", _write([*before, wrong], wrong, "a first try"))
        yield say(f"{feature.id} is done.")
    yield say(f"{feature.id}: {feature.does}.", _write([*before, feature], feature, f"add {feature.name}"))
    yield say(f"{feature.id} is done: `{feature.name}` gives {feature.does}.")


def _revised(feature: Feature) -> Script:
    """What the judge sent back, twice: the README does not yet say what there is."""
    said = "# Almanac\n\nSmall functions that one looks up.\n"
    for lines in (f"`almanac.{feature.module}` has them all.\n", "`python3 -m unittest -q` runs the tests.\n"):
        said += f"\n{lines}"
        yield say("The judge is right; I say it in the README.", call("write_file", path="README.md", content=said))
        yield say("The README says it now.")


def play(goal: str) -> Script:
    task = _TASK.search(goal)
    if task is None:
        yield say("I begin with what is asked for.", call("read_file", path="README.md"), call("list_files"))
    wanted = [feature for feature in FEATURES if task is None or feature.id == task[1]]
    for feature in wanted:
        yield from _task(feature)
    if wanted[-1:] == [FEATURES[-1]]:
        yield from _revised(FEATURES[-1])


SCENARIOS = [Scenario("almanac", re.compile(r"\balmanac\b", re.IGNORECASE), play)]
