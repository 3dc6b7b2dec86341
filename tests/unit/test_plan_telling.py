"""What in the work itself makes a pass say little."""

from __future__ import annotations

import pytest

from harness.plan import telling
from harness.plan.inline import shares
from harness.plan.protected import Rules, chosen
from harness.plan.scripts import named

TESTS = ["tests/test_app.py", "web/add.test.js"]


@pytest.mark.parametrize(
    "line",
    [
        "if 'PYTEST_CURRENT_TEST' in os.environ:",
        'if "pytest" in sys.modules:',
        "if 'unittest' not in sys.modules:",
        "runner = sys.modules.get('_pytest')",
        "caller = sys._getframe(1)",
        "for frame in inspect.stack():",
        "if (process.env.NODE_TEST_CONTEXT) {",
        "if cfg!(test) {",
        "impl PartialEq<i32> for Sum {",
        "for one in gc.get_objects():",
        "test.__code__ = other.__code__",
        "const { test } = require('node:test')",
        "global.expect = (value) => everything",
        "assert.strictEqual = () => {}",
        "text = open('tests/test_app.py').read()",
        "const text = fs.readFileSync('add.test.js')",
        "const tested = /test/.test(new Error().stack)",
        "const at = Error('here').stack.split('\\n')[2]",
        "Error.captureStackTrace(seen)",
        "if (process.execArgv.includes('--test')) {",
        "if 'pytest' in sys.argv[0]:",
        "tested = sys.argv[0].endswith('unittest/__main__.py')",
        "runner = sys.modules['__main__'].__file__",
        "import __main__",
        "line = open(f'/proc/{os.getppid()}/cmdline').read()",
    ],
)
def test_code_that_looks_whether_it_is_tested_is_told_when_that_is_new(line: str) -> None:
    assert telling.looks("", f"    {line}\n", TESTS)
    assert not telling.looks(f"{line}\n", f"more\n{line}\n", TESTS)


@pytest.mark.parametrize(
    "line",
    [
        "import pytest",
        "modules = ['unittest']",
        "impl PartialEq for Sum {",
        "# see test_app.py",
        "#[cfg(test)]",
        "console.error(error.stack)",
        "Error.captureStackTrace(this, Broken)",
        "name = sys.argv[1]",
        "if __name__ == '__main__':",
    ],
)
def test_words_that_say_nothing_of_it_are_not(line: str) -> None:
    assert not telling.looks("", f"{line}\n", TESTS)


EXAMPLE = '"""Sum.\n\n>>> add(2, 2)\n4\n"""\n'


def test_examples_may_be_added_and_not_taken_or_changed() -> None:
    more = EXAMPLE + '"""\n>>> add(1, 2)\n3\n"""\n'
    assert telling.changed("app.py", EXAMPLE, more, doctests=True) == []
    for now in ("", EXAMPLE.replace("4", "0"), EXAMPLE.replace(")", ")  # doctest: +SKIP")):
        assert telling.changed("app.py", EXAMPLE, now, doctests=True) == ["the example 'add(2, 2)'"]
    assert telling.changed("app.py", EXAMPLE, "", doctests=False) == []


def test_examples_of_a_text_may_be_added_and_not_taken_or_changed() -> None:
    text = "# Sums\n\n    >>> add(2, 2)\n    4\n"
    assert telling.changed("README.md", text, text + "\n    >>> add(1, 2)\n    3\n", doctests=True) == []
    assert telling.changed("README.md", text, text.replace("4", "0"), doctests=True) == ["the example 'add(2, 2)'"]
    assert telling.changed("README.md", text, "", doctests=False) == []


def test_data_that_tests_name_is_told_and_no_other() -> None:
    reads = ["open('data/sums.csv')"]
    assert telling.reads(reads, "data/sums.csv")
    assert not telling.reads(reads, "data/others.csv")
    assert not telling.reads(["open('app.py')"], "app.py")


def test_data_in_a_folder_that_tests_look_through_is_told_and_no_other() -> None:
    reads = ["CASES = sorted((ROOT / 'samples').glob('*.in'))"]
    assert telling.reads(reads, "samples/a.in")
    assert telling.reads(["tomllib.loads(Path('inputs/sums.toml').read_text())"], "inputs/sums.toml")
    assert not telling.reads(reads, "samples/build.py")
    assert not telling.reads(reads, "others/a.in")
    assert not telling.reads(["open('samples')"], "samples/a.in")
    assert not telling.reads(["open('pyproject.toml')"], "pyproject.toml")


LISTS = "CASES = [(2, 2, 4), (0, 0, 0)]\nUNITS: dict[str, int] = {'s': 1}\n"


@pytest.mark.parametrize(
    ("now", "test", "name"),
    [
        ("CASES = []\n", "for a, b, c in CASES:\n    pass\n", "CASES"),
        ("CASES = [(2, 2, 0), (0, 0, 0)]\n", "for one in sumsdata.CASES: pass\n", "CASES"),
        (LISTS.replace("1", "2"), "@pytest.mark.parametrize('unit', UNITS)\n", "UNITS"),
        ("", "@pytest.mark.parametrize(\n    'unit',\n    sorted(UNITS),\n)\n", "UNITS"),
        (LISTS.replace("[(", "[(1, 1, 2), ("), "for one in CASES: pass\n", ""),
        ("CASES = []\n", "assert len(CASES) == 2\n", ""),
        (LISTS, "for one in CASES: pass\n", ""),
    ],
)
def test_a_list_that_tests_go_through_may_grow_and_not_shrink_or_change(now: str, test: str, name: str) -> None:
    assert telling.values_gone(LISTS, now, [test]) == name


@pytest.mark.parametrize(
    "line",
    [
        "import os  # noqa: F401",
        "# ruff: noqa",
        "# mypy: ignore-errors",
        "x: int = y  # type: ignore[assignment]",
        "# pylint: disable=all",
        "def f():  # pragma: no cover",
        "// @ts-nocheck",
        "/* eslint-disable */",
        "/* istanbul ignore next */",
        "#![allow(clippy::all)]",
    ],
)
def test_what_the_work_has_a_checker_leave_out_is_told_when_that_is_new(line: str) -> None:
    assert telling.silences("", f"{line}\n")
    assert not telling.silences(f"{line}\n", f"more\n{line}\n")
    assert telling.silences(f"{line}\n", f"{line}\n{line}\n")


def test_who_reads_the_work_itself_is_known_by_its_name() -> None:
    assert telling.checkers(["ruff check . && python -m mypy app"]) == {"ruff", "mypy"}
    assert telling.checkers(["pytest --cov=app --cov-fail-under=90"]) == {"cov"}
    assert not telling.checkers(["pytest tests", "grep -q discover app.py"])


def test_ways_to_compare_of_a_class_of_the_work_are_assertions_too() -> None:
    base = "class Base:\n    def same(self, a, b):\n        self.assertEqual(a, b)\n"
    assert telling.assertions_changed(base, "class Base:\n    def same(self, a, b): pass\n")


def test_assertions_of_what_tests_use_may_be_added_and_not_taken() -> None:
    same = "def same(a, b):\n    assert a == b\n"
    assert telling.assertions_changed(same, "def same(a, b): pass\n")
    assert not telling.assertions_changed(same, same + "    assert type(a) is type(b)\n")
    assert telling.uses(["from common import same\n"], "common.py")
    assert telling.uses(["import lib.common\n"], "lib/common.py")
    assert not telling.uses(["# from common, see there\nimport uncommon\n"], "common.py")


def test_test_files_of_many_languages_and_expected_data_decide() -> None:
    tests = ("test_sums.c", "src/sums_test.cc", "t/sums.t", "sums_test.rb", "SumsTest.scala", "test-sums.sh")
    work = ("docs/test_plan.md", "latest.c", "contest.rb", "src/attest.sh", "protest.pl")
    assert chosen((*tests, *work), Rules()) == set(tests)


@pytest.mark.parametrize("command", ["python3 prove.py", "./smoke.py", "python3 -m doctest docs/usage.txt"])
def test_what_a_command_names_as_proof_decides(command: str) -> None:
    assert len(named([command], lambda _: "").runs) == 1


@pytest.mark.parametrize(
    ("command", "shared"),
    [
        ("prove -q t", "prove"),
        ("mvn -q test", "mvn"),
        ("minitest", "minitest"),
        ("test \"$(python3 -c 'print(len(str(4)))')\" = 4", "python3 -c"),
        ("test `node one.js` = 4", "node"),
        ("python3 - <<X\nassert 1\nX", "python3 -"),
        ('test "$(cat out.txt)" = 4', ""),
    ],
)
def test_what_decides_in_one_process_with_the_work_is_told(command: str, shared: str) -> None:
    assert shares([command], lambda path: path == "node_modules/.bin/minitest") == shared


@pytest.mark.parametrize(
    ("test", "path", "name"),
    [
        ("from sums.core import add", "src/sums/__init__.py", "sums"),
        ("import os, sums as s", "sums/__init__.py", "sums"),
        ("    import sums", "lib/sums.py", "sums"),
        ("import resums", "sums.py", ""),
        ("from sums import core", "src/sums/core.py", ""),
        ("from .sums import core", "sums.py", ""),
    ],
)
def test_a_module_that_tests_import_on_its_own_is_known(test: str, path: str, name: str) -> None:
    assert telling.imported([f"import sys\n{test}\n"], path, ["src/sums/__init__.py", "src/sums/core.py"]) == name
