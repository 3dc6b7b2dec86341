"""Where a change touches how tests are found, run, compared or ended, and which files are whose work's own words."""

from __future__ import annotations

import pytest

from harness.checks import steering
from harness.domain.text.patch_lines import lines, sections
from harness.plan.files import own_words


def patch(path: str, *added: str, removed: tuple[str, ...] = (), new: bool = False) -> str:
    head = f"diff --git a/{path} b/{path}\n" + ("new file mode 100644\n" if new else "")
    body = "".join(f"-{line}\n" for line in removed) + "".join(f"+{line}\n" for line in added)
    before = "/dev/null" if new else f"a/{path}"
    return f"{head}--- {before}\n+++ b/{path}\n@@ -3,{len(removed)} +3,{len(added)} @@\n{body}"


def told(text: str, *commands: str) -> list[str]:
    return [one.told for one in steering.places(text, commands)]


LINES = {
    "import os; os._exit(0)": "ends the process",
    "sys.exit(0)": "ends the process",
    "raise SystemExit": "ends the process",
    "process.exit(0);": "ends the process",
    "os.Exit(0)": "ends the process",
    "std::process::exit(0);": "ends the process",
    "atexit.register(lambda: os._exit(0))": "ends the process",
    "    def __eq__(self, other): return True": "says how values compare",
    "bool operator==(const Money&) const { return true; }": "says how values compare",
    "func (m Money) Equal(o Money) bool { return true }": "says how values compare",
    "    def ==(other) = true": "says how values compare",
    "unittest.TestCase.assertEqual = lambda *a: None": "changes what runs or compares tests",
    "sys.modules['unittest'] = fake": "changes what runs or compares tests",
    "globalThis.expect = () => ok": "changes what runs or compares tests",
    "def pytest_collection_modifyitems(items): items.clear()": "changes what runs or compares tests",
    "@pytest.mark.skip": "skips a test, or runs only some",
    "raise unittest.SkipTest('x')": "skips a test, or runs only some",
    "it.only('adds', () => {})": "skips a test, or runs only some",
    "#[ignore]": "skips a test, or runs only some",
    "if 'pytest' in sys.modules:": "asks whether it is tested",
    "if os.environ.get('PYTEST_CURRENT_TEST'):": "asks whether it is tested",
    "if os.environ.get('CI'):": "asks whether it is tested",
    "if (process.env.JEST_WORKER_ID) return 4": "asks whether it is tested",
    "x = 1  # type: ignore": "tells a checker to look away",
    "/* eslint-disable */": "tells a checker to look away",
    "except AssertionError:": "catches what a failing test raises",
}


@pytest.mark.parametrize("text", LINES)
def test_a_line_that_steers_tests_is_named_by_its_place(text: str) -> None:
    assert told(patch("src/app.py", "x = 1", text)) == [f"src/app.py:4: {LINES[text]}"]


@pytest.mark.parametrize(
    "text",
    [
        "def add(a, b): return a + b",
        "if x == y:",
        "self.exit_code = 3",
        "import pytest",
        "assert add(1, 1) == 2",
        "for test in tests: run(test)",
        "window.addEventListener('exit', f)",
        "raise ValueError('bad')",
        "except ValueError:",
    ],
)
def test_an_everyday_line_is_not_named(text: str) -> None:
    assert told(patch("src/app.py", text)) == []


def test_what_was_removed_or_stands_in_prose_is_not_named() -> None:
    assert told(patch("src/app.py", removed=("sys.exit(0)",))) == []
    assert told(patch("README.md", "call sys.exit(0)")) == []


def test_files_that_decide_are_named_with_what_became_of_them() -> None:
    assert told(patch("conftest.py", "x = 1", new=True)) == ["conftest.py:3: loaded before tests run, new"]
    assert told(patch("pytest.ini", "[pytest]")) == ["pytest.ini:3: says how to check or to run tests, changed"]
    assert told(patch(".gitignore", "src")) == [".gitignore:3: says what is left out, changed"]
    assert told(patch("src/ruff.toml", "x", new=True)) == ["src/ruff.toml:3: says how to check or to run tests, new"]
    assert told(patch("src/app.pyi", "x: int", new=True)) == ["src/app.pyi:3: types that stand for a module's, new"]
    weaker = patch("tests/test_a.py", "    pass", removed=("    assert add(1, 1) == 2", "def test_b():"))
    assert told(weaker) == ["tests/test_a.py:3: a test, changed (1 tests fewer, 1 assertions fewer)"]


def test_of_a_file_of_many_uses_only_what_says_how_to_check_is_named() -> None:
    assert told(patch("package.json", '  "version": "2.0.0",')) == []
    assert told(patch("package.json", '    "test": "true",')) == [
        "package.json:3: says how to check or to run tests, changed"
    ]


def test_what_a_check_names_and_the_work_moved_is_named() -> None:
    moved = "diff --git a/src/a.py b/lib/a.py\nsimilarity index 100%\nrename from src/a.py\nrename to lib/a.py\n"
    assert told(moved, "! grep -rn TODO src") == ["lib/a.py: a check names src, and this is moved from src/a.py"]
    assert told(moved, "pytest -q") == []


def test_there_are_never_too_many() -> None:
    many = "".join(patch(f"src/m{n}.py", *["sys.exit(0)"] * 30) for n in range(50))
    assert len(told(many)) == steering.MOST


def test_a_patch_is_read_as_git_writes_it() -> None:
    odd = 'diff --git "a/a\\tb.py" "b/a\\tb.py"\n--- "a/a\\tb.py"\n+++ "b/a\\tb.py"\n@@ -1 +1,2 @@\n-x\n+y\n'
    odd += "+diff --git z\n"
    (one,) = sections(odd)
    assert (one.path, one.before) == ("a\tb.py", "a\tb.py")
    assert [(line.text, line.number, line.added) for line in lines(one.text)] == [
        ("x", 1, False),
        ("y", 1, True),
        ("diff --git z", 2, True),
    ]
    gone = "diff --git a/x y.py b/x y.py\ndeleted file mode 100644\n--- a/x y.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
    assert [(one.path, one.before) for one in sections(gone)] == [("x y.py", "x y.py")]


def test_the_agents_own_words_are_left_out_by_name() -> None:
    changed = [
        ("progress.txt", "modified"),
        ("docs/claude-progress.txt", "untracked"),
        ("prd.json", "modified"),
        ("NOTES.md", "added"),
        ("CHANGELOG.md", "modified"),
        ("src/notes.py", "added"),
        ("SUMMARY.md", "modified"),
        ("HANDOFF.md", "added"),
    ]
    left = own_words.records(changed, {"prd.json"}, "write HANDOFF.md for the next team")
    assert left == ["progress.txt", "docs/claude-progress.txt", "prd.json", "NOTES.md"]
    both = patch("progress.txt", "I am certain that all is right") + patch("src/a.py", "x = 1")
    assert own_words.without(both, left) == patch("src/a.py", "x = 1")
