"""Criteria that a machine decides, and what is wrong with the others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checks import check_scripts
from harness.plan import specification
from harness.plan.files.criteria import (
    FILE,
    FORMS,
    REQUEST,
    RUNS,
    Criterion,
    Problem,
    commands,
    parse,
    problems,
    spoken,
)
from harness.plan.files.formats import BadPlan

DECIDED = {
    "Run `npm test` - exits with code 0": (RUNS, "npm test"),
    "Running `make check` exits with code 0.": (RUNS, "make check"),
    "`cargo test` passes": (RUNS, "cargo test"),
    "`pytest -q`": (RUNS, "pytest -q"),
    "npm run typecheck passes": (RUNS, "npm run typecheck"),
    "pytest tests/test_a.py succeeds": (RUNS, "pytest tests/test_a.py"),
    "Run `./broken` - exits with code 3": (RUNS, "( ./broken ); test $? -eq 3"),
    "Run `app --version` prints `1.2`": (RUNS, "( app --version ) 2>&1 | grep -qF -- 1.2"),
    'File `src/a.py` contains "def add"': (FILE, "grep -qF -- 'def add' src/a.py"),
    "The file README.md contains `Usage`": (FILE, "grep -qF -- Usage README.md"),
    "File `a.py` does not contain `print(`": (FILE, "test -f a.py && ! grep -qF -- 'print(' a.py"),
    "File docs/guide.md exists": (FILE, "test -e docs/guide.md"),
    "`old.py` no longer exists": (FILE, "! test -e old.py"),
    "File `x` contains `y`": (FILE, "grep -qF -- y x"),
    'The file "a b" does not contain "y"': (FILE, "test -f 'a b' && ! grep -qF -- y 'a b'"),
    "File `LICENSE` exists": (FILE, "test -e LICENSE"),
    "Folder `dist` exists": (FILE, "test -e dist"),
    "File `dist/app.js` exists and is not empty": (FILE, "test -s dist/app.js"),
    "Run `pytest -q` and check that it exits 0.": (RUNS, "pytest -q"),
    "Running `make lint` reports no errors": (RUNS, "make lint"),
    "`make` exits with a non-zero code": (RUNS, "! ( make )"),
}


@pytest.mark.parametrize("text", DECIDED)
def test_what_a_machine_decides_becomes_a_command(text: str) -> None:
    found = parse(text)
    assert isinstance(found, Criterion), found
    assert (found.kind, found.command) == DECIDED[text]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Works correctly",
        "The page looks good",
        "Typecheck passes",
        "All tests pass",
        "Verify in browser using dev-browser skill",
        "Handles errors properly",
        "The code is clean and fast",
        "GET https://example.com/ returns 200",
        "Run `x` - prints 5 lines",
        "Run `npm test` - exits with code 0 within 3 seconds",
        "`npm test` passes on Windows",
        "`make` fails with TypeError",
        "Run `a` exits 0.5",
        "`curl -s localhost/u` returns 200",
        "`Button` shows `Save`",
        "The table `users` has a column `email`",
        "GET /u returns 200 with 3 items",
        "With `./serve` running, GET https://example.com/ returns 200",
        "File /etc/passwd contains `root`",
        "Priority visible without hovering or clicking",
    ],
)
def test_what_none_decides_is_said_with_a_better_wording(text: str) -> None:
    found = parse(text)
    assert isinstance(found, Problem), found
    assert found.why
    assert found.instead
    assert "File `PATH` exists" not in found.hint


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("File X contains Y", 'File `X` contains "Y"'),
        ("the file README contains the word sum.", 'File `README` contains "the word sum"'),
        ("File `a.py` does not contain print", 'File `a.py` does not contain "print"'),
    ],
)
def test_a_file_whose_name_or_text_ends_nowhere_is_worded_so_that_it_is_decided(text: str, hint: str) -> None:
    found = parse(text)
    assert isinstance(found, Problem)
    assert found.hint == hint
    assert isinstance(parse(hint), Criterion)


@pytest.mark.parametrize(
    "text",
    ["GET `/u` returns HTTP 200 OK", "HTTP GET /u returns `200`", "A GET request to /u responds with status 200"],
)
def test_a_request_may_be_worded_in_other_ways(text: str) -> None:
    one = parse(text)
    other = parse("GET /u returns 200")
    assert isinstance(one, Criterion)
    assert isinstance(other, Criterion)
    assert one.command.partition("\n")[2] == other.command.partition("\n")[2]


@pytest.mark.parametrize("form", FORMS)
def test_each_form_that_is_advised_is_decided(form: str) -> None:
    assert isinstance(parse(form.replace("PORT", "80")), Criterion)


def test_what_names_a_command_and_says_too_much_is_worded_with_the_command() -> None:
    found = parse("All unit tests pass (`npm test`)")
    assert isinstance(found, Problem)
    assert found.hint == "Run `npm test` - exits with code 0"


@pytest.mark.parametrize("url", ["/u", ":8000/u", "http://localhost:3000/u"])
def test_a_request_that_names_no_server_is_asked_of_what_the_repository_starts(url: str, tmp_path: Path) -> None:
    found = parse(f"GET {url} returns 200")
    assert isinstance(found, Criterion), found
    assert found.kind == REQUEST
    assert spoken(found.command) == found.text
    assert not check_scripts.named([found.command], lambda _: "").runs, (
        "whose failure is the agent's first task, to repair"
    )
    ran = subprocess.run(["bash", "-c", found.command], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout) == (1, "init.sh starts what serves this, and there is none\n")


@pytest.mark.parametrize("part", ["`", "a/", "file `a ", "- ", "Run `x` exits with "])
def test_a_sentence_that_has_no_end_is_none(part: str) -> None:
    found = parse(part * (1 << 20))
    assert isinstance(found, Problem)
    assert "over 4,000" in found.why


@given(st.text(max_size=200))
def test_any_sentence_is_one_or_the_other(text: str) -> None:
    found = parse(text)
    assert found.text == text
    assert len(commands([text])) + len(problems([text])) == 1


def test_a_command_is_told_as_it_is_unless_it_was_made_of_a_request() -> None:
    assert spoken("# a comment\nmake test") == "# a comment\nmake test"
    assert spoken("make test") == "make test"


def shell(folder: Path, text: str) -> int:
    found = parse(text)
    assert isinstance(found, Criterion), found
    return subprocess.run(["bash", "-c", found.command], cwd=folder, capture_output=True, timeout=60).returncode


def test_the_commands_decide(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("it's $HOME\n")
    (tmp_path / "a.txt").write_text("it's $HOME\n")
    held = [
        "Run `true` - exits with code 0",
        "Run `exit 3` - exits with code 3",
        "Run `false` fails",
        "Run `echo one two` prints `e t`",
        'File a.txt contains "it\'s $HOME"',
        "File a.txt does not contain `two`",
        "File a.txt exists",
        "File b.txt does not exist",
        "Run `true` prints nothing",
        "Run `echo one; exit 3` exits with code 3, prints `one`",
        "`echo one; echo two` passes and prints `one` and prints `two`",
    ]
    assert [shell(tmp_path, text) for text in held] == [0] * len(held)
    broken = [
        "Run `false` - exits with code 0",
        "Run `exit 2` - exits with code 3",
        "Run `true` fails",
        "Run `echo one` prints `two`",
        "File a.txt contains `two`",
        "File b.txt does not contain `two`",
        "File b.txt exists",
        "File a.txt does not exist",
        "Run `echo one >&2` prints nothing",
        "Run `echo one; exit 3` passes and prints `one`",
        "Run `echo one` exits with code 0 and prints `one` and prints `two`",
    ]
    assert all(shell(tmp_path, text) != 0 for text in broken)


def test_a_request_is_asked_of_what_is_served_for_it(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("Hello")
    port = 20_000 + hash(str(tmp_path)) % 20_000
    serve = f"With `python3 -m http.server {port} --bind 127.0.0.1` running,"
    found = parse(f"{serve} GET :{port}/page.html returns 200")
    assert isinstance(found, Criterion)
    assert found.kind == REQUEST
    assert shell(tmp_path, f"{serve} GET :{port}/page.html returns 200 and contains `Hello`") == 0
    assert shell(tmp_path, f"{serve} GET :{port}/page.html returns 200 and contains `Bye`") != 0
    assert shell(tmp_path, f"{serve} GET :{port}/none returns 404") == 0


@pytest.mark.parametrize("name", ["http/__init__.py", "email/__init__.py"])
def test_a_request_loads_nothing_of_where_it_runs(name: str, tmp_path: Path) -> None:
    """What a worker leaves there in the place of a module would answer for the server."""
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("open('loaded', 'w')\nraise SystemExit(0)\n")
    (tmp_path / "page.html").write_text("Hello")
    port = 20_000 + hash(str(tmp_path)) % 20_000
    serve = f"With `python3 -I -m http.server {port} --bind 127.0.0.1` running,"
    assert shell(tmp_path, f"{serve} GET :{port}/page.html returns 200") == 0
    assert not (tmp_path / "loaded").exists()


MARKDOWN = b"""# Sums
- an item about nothing
## Acceptance criteria
- [ ] Run `make test` - exits with code 0
- [x] It works
```
- not an item
```
1. File `README.md` contains "sum"
"""


def test_a_text_is_read_by_its_lists() -> None:
    lines = specification.check(MARKDOWN)
    assert [(line.where, isinstance(line.found, Criterion)) for line in lines] == [
        ("line 4", True),
        ("line 5", False),
        ("line 9", True),
    ]
    assert [line.where for line in specification.check(b"- It works\n")] == ["line 1"]
    assert specification.check(b"no list\n") == []


def test_a_plan_is_read_by_its_entries() -> None:
    plan = b"""{"userStories": [
     {"id": "US-1", "title": "A", "acceptanceCriteria": ["Run `x` - exits with code 0", "ok"], "passes": false},
     {"id": "US-2", "title": "B", "acceptanceCriteria": [], "passes": false}]}"""
    lines = specification.check(plan)
    assert [(line.where, isinstance(line.found, Criterion)) for line in lines] == [
        ("US-1", True),
        ("US-1", False),
        ("US-2", False),
    ]
    with pytest.raises(BadPlan):
        specification.check(b"[1")
    with pytest.raises(BadPlan):
        specification.check(b"\xff")


def test_better_words_are_looked_for_only_when_somebody_reads_them() -> None:
    for text in ("it works well", "Run `t` - it is nice"):
        found = parse(text)
        assert isinstance(found, Problem)
        assert (found.advice, bool(found.instead)) == ("", True)
