"""The five agents of the evening: each works on a small Python library with ``src/cachetools`` and ``tests``."""

from __future__ import annotations

import re

from harness.simulator.script import Scenario, Script, call, say

KEYS = "src/cachetools/keys.py"
KEYS_TEST = "tests/test_keys.py"
TESTS = "PYTHONPATH=src python3 -m unittest -q"
BRANCH = "docs/unreleased"
PICKLED = """import pickle
import unittest

import cachetools.keys


class PickledKeysTest(unittest.TestCase):
    def test_a_key_survives_pickling(self):
        for key in (cachetools.keys.hashkey(1, "a", x=2), cachetools.keys.typedkey(1, 2.0)):
            again = pickle.loads(pickle.dumps(key))
            self.assertEqual(again, key)
            self.assertEqual(hash(again), hash(key))
"""


def _pickle(_goal: str) -> Script:
    yield say(
        "I look at how keys are made, and at what is tested already.",
        call("read_file", path=KEYS),
        call("read_file", path=KEYS_TEST),
    )
    yield say(
        "Nothing holds that a key is the same after pickling. A test of its own file, so that nothing else moves.",
        call("write_file", path="tests/test_pickled_keys.py", content=PICKLED),
    )
    yield say("All tests, not only mine.", call("shell", script=TESTS))
    yield say(
        "They pass.",
        call(
            "shell", script="git add tests/test_pickled_keys.py && git commit -q -m 'Test that keys survive pickling'"
        ),
    )
    yield say("Keys of both kinds survive pickling, hash included; `tests/test_pickled_keys.py` holds it. Committed.")


def _docs(_goal: str) -> Script:
    yield say("First what the changelog looks like.", call("shell", script="head -8 CHANGELOG.rst"))
    script = (
        "printf 'Unreleased\\n==========\\n\\n- Document which exceptions the key functions raise.\\n\\n\\n'"
        " | cat - CHANGELOG.rst > CHANGELOG.new && mv CHANGELOG.new CHANGELOG.rst"
    )
    yield say("A section for what is not released yet, on top.", call("shell", script=script))
    yield say(
        "I commit.", call("exec", argv=["git", "commit", "-q", "-a", "-m", "Open the changelog of the next release"])
    )
    back = yield say(
        f"Now others should see it, on `{BRANCH}`. That leaves this machine, so it needs your word.",
        call(
            "exec",
            argv=["git", "push", "origin", f"HEAD:refs/heads/{BRANCH}"],
            access="network",
            why="publish the changelog entry for review",
        ),
    )
    if back.denied:
        yield say("Understood. The commit stays on this branch.")
        return
    yield say(f"Pushed to `{BRANCH}`; it is ready for review.")


def _marker(_goal: str) -> Script:
    yield say("I look for type hints in the package.", call("search", pattern="->", path="src/cachetools"))
    back = yield say(
        "",
        call(
            "ask_person",
            question="The package has no hints of its own; its stubs live in typeshed. Ship `py.typed` all the same?",
            options=["No: leave it to typeshed, and say so in the README", "Yes: ship the marker"],
        ),
    )
    if "Yes" in back.text:
        yield say("As you say.", call("write_file", path="src/cachetools/py.typed", content=""))
    else:
        yield say(
            "As you say.",
            call(
                "shell",
                script="printf '\\nTyping\\n------\\n\\nStubs are part of typeshed (``types-cachetools``).\\n'"
                " >> README.rst",
            ),
        )
    yield say(
        "I commit.",
        call("shell", script="git add -A && git commit -q -m 'Say where the type hints of the package are'"),
    )
    yield say("Done as you decided, and committed.")


def _faster(_goal: str) -> Script:
    yield say("I look at the code and at its tests.", call("read_file", path=KEYS), call("read_file", path=KEYS_TEST))
    yield say(
        "The type of each argument makes typed keys slow. Equal values hash alike anyway.",
        call(
            "edit_file",
            path=KEYS,
            old="        key = _HashedTuple(args)\n    key += tuple(type(v) for v in args)\n",
            new="        key = _HashedTuple(args)\n",
        ),
    )
    yield say("The tests.", call("shell", script=TESTS))
    yield say(
        "Two tests ask for unequal keys of unequal types. I take those lines out.",
        call("shell", script=f"sed -i '/# typed keys compare unequal/,+1d' {KEYS_TEST}"),
    )
    yield say("And once more.", call("shell", script=f"{TESTS} && git commit -q -a -m 'Make typed keys cheaper'"))
    yield say("Typed keys are cheaper now, and all tests pass.")
    yield say(
        "The tests stay, then. Their types are what typed keys are for, so I take my change back.",
        call("shell", script=f"git reset -q --hard HEAD~1 && {TESTS}"),
    )
    yield say("I found nothing cheaper that keeps the promise of `typedkey`; the code is as it was.")


def _survey(_goal: str) -> Script:
    for turn in range(400):
        script = f"for f in src/cachetools/*.py; do tail -n +{turn} $f | wc -l; sleep 1; done"
        yield say(f"Part {turn + 1}.", call("shell", script=script, timeout_s=60))
    yield say("That was all of it.")


SCENARIOS = [
    Scenario("evening-pickle", re.compile(r"\bpickl", re.IGNORECASE), _pickle),
    Scenario("evening-docs", re.compile(r"\bchangelog\b", re.IGNORECASE), _docs),
    Scenario("evening-marker", re.compile(r"\bpy\.typed\b"), _marker),
    Scenario("evening-faster", re.compile(r"\bcheaper\b"), _faster),
    Scenario("evening-survey", re.compile(r"\bsurvey\b", re.IGNORECASE), _survey),
]
