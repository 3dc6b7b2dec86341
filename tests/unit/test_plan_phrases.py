"""Phrases of a project that a person binds to commands."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.plan import specification
from harness.plan.files import criteria, phrases
from harness.plan.files.criteria import Criterion
from harness.plan.files.formats import flipped, read
from harness.protocol.config import project_phrases
from harness.supervisor.base.errors import OpError
from harness.supervisor.sessions.begin import phrase_bindings
from harness.supervisor.sessions.begin.launch_request import check, phrases_of
from harness.supervisor.sessions.begin.phrase_bindings import Known
from harness.views.launch_request import LaunchRequest

PLAN = json.dumps(
    {
        "userStories": [
            {"id": n, "title": n, "passes": False, "acceptanceCriteria": [text, "Typecheck passes"]}
            for n, text in (("a", "Tests pass"), ("b", "All tests should pass."), ("c", "The page is blue"))
        ]
    }
).encode()


@pytest.mark.parametrize(
    "text",
    [
        "Tests pass",
        "tests pass.",
        "All tests pass",
        "The tests should pass",
        "Tests must pass",
        "All tests are passing",
        "Ensure tests pass successfully",
        "Tests succeed",
        "Verify that all existing tests pass without errors",
        "Test passes",
    ],
)
def test_ways_to_write_a_phrase_are_one(text: str) -> None:
    assert phrases.normal(text) == "test pass"


@pytest.mark.parametrize(
    "text", ["Unit tests pass", "Tests pass twice", "Tests do not pass", "The test is green paint"]
)
def test_another_phrase_is_another(text: str) -> None:
    assert phrases.normal(text) != "test pass"


def test_a_bound_phrase_is_decided_and_the_others_are_counted() -> None:
    plan = read(PLAN)
    assert phrases.unbound(plan) == [("Typecheck passes", 3), ("Tests pass", 2)]
    made = phrases.bound(plan, {"tests PASS": "make test"})
    assert [len(criteria.commands(entry.criteria)) for entry in made.entries] == [1, 1, 0]
    assert criteria.commands(made.entries[1].criteria)[0].command == "make test"
    assert made.entries[1].criteria[0] == "All tests should pass, decided by `make test`"
    assert phrases.unbound(made) == [("Typecheck passes", 3)]
    assert flipped(made, {0: True}).text == flipped(plan, {0: True}).text
    assert phrases.bound(plan, {}) == plan


def test_what_is_decided_already_is_not_bound() -> None:
    data = json.dumps([{"title": "a", "passes": False, "steps": ["`npm test` passes"]}]).encode()
    assert phrases.bound(read(data), {"npm test passes": "true"}) == read(data)


@pytest.mark.parametrize(
    ("text", "files", "command"),
    [
        ("Tests pass", {"package.json": '{"scripts": {"test": "x"}}'}, "npm test"),
        (
            "Typecheck passes",
            {"package.json": '{"scripts": {"type-check": "x"}}', "pnpm-lock.yaml": ""},
            "pnpm run type-check",
        ),
        ("Type check passes", {"package.json": "{}", "tsconfig.json": ""}, "npx tsc --noEmit"),
        ("Lint passes", {"Makefile": "lint:\n\truff\ntest := 1\n"}, "make lint"),
        ("Tests pass", {"Makefile": "test := 1\n"}, ""),
        ("Tests pass", {"pyproject.toml": "[tool.pytest.ini_options]\n"}, "pytest"),
        ("Tests pass", {"Cargo.toml": ""}, "cargo test"),
        ("Build succeeds", {"go.mod": ""}, "go build ./..."),
        ("Tests pass", {"package.json": "[", "pyproject.toml": "["}, ""),
        ("The page is blue", {"Cargo.toml": ""}, ""),
    ],
)
def test_a_guess_comes_from_the_files_of_the_project(text: str, files: dict[str, str], command: str) -> None:
    texts = {name: text for name, text in files.items() if name in phrases.FILES}
    assert phrases.guess(text, set(files), texts) == command


@pytest.mark.parametrize("command", ["make test", "test `cat a` = b", "`x`", "a\nb"])
def test_any_command_can_decide_a_sentence(command: str) -> None:
    for text in (criteria.decided_by("It is so", command), criteria.run(command)):
        found = criteria.parse(text)
        assert isinstance(found, criteria.Criterion)
        assert found.command == command


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    (tmp_path / "prd.json").write_bytes(PLAN)
    (tmp_path / "package.json").write_text('{"scripts": {"test": "x", "typecheck": "x"}}')
    for words in (["init", "-q"], ["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, timeout=60)
    return tmp_path


def test_a_launch_counts_what_is_not_bound_and_offers_a_guess_and_binds_what_is_given(repo: Path) -> None:
    wish = LaunchRequest(repo=str(repo), goal="g", plan="prd.json")
    offered = check(wish)
    assert offered.checks == ()
    told = [note for note in offered.notes if "--phrase" in note]
    assert told == [
        "3 criteria “Typecheck passes”: no command decides; bind it with --phrase 'Typecheck passes=npm run typecheck'",
        "2 criteria “Tests pass”: no command decides; bind it with --phrase 'Tests pass=npm test'",
    ]
    given = LaunchRequest(repo=str(repo), goal="g", plan="prd.json", phrases={"Tests pass": "npm test -- all"})
    made = check(given, Known(configured={"Typecheck passes": "npm run typecheck", "Tests pass": "npm test"}))
    assert made.checks == ("npm test -- all", "npm run typecheck")
    assert not [note for note in made.notes if "--phrase" in note]
    with pytest.raises(OpError, match="phrase"):
        check(LaunchRequest(repo=str(repo), goal="g", plan="prd.json", phrases={" ": "make"}))


def asked(repo: Path, **more: Any) -> LaunchRequest:
    return LaunchRequest(repo=str(repo), goal="g", plan="prd.json", **more)


def keep(request: LaunchRequest, known: Known) -> None:
    checked = check(request, known)
    assert phrase_bindings.keep_for(checked.common, request, checked.bound, known) == ""


def test_what_a_launch_binds_holds_for_its_repository_until_it_is_taken_back(repo: Path, tmp_path: Path) -> None:
    known = Known(tmp_path / "state")
    assert known.state is not None
    known.state.mkdir()
    first = asked(repo, phrases={"Tests pass": "npm test"})
    keep(first, known)
    assert check(asked(repo), known).checks == ("npm test",)
    other = tmp_path / "other"
    subprocess.run(["git", "clone", "-q", str(repo), str(other)], check=True, timeout=60)
    assert check(asked(other), known).checks == (), "another clone is another project"
    back = asked(repo, phrases={"Tests pass": ""})
    assert check(back, known).checks == ()
    keep(back, known)
    assert check(asked(repo), known).checks == ()


def test_what_was_kept_and_cannot_be_read_is_named_and_not_overwritten(repo: Path, tmp_path: Path) -> None:
    known = Known(tmp_path / "state")
    assert known.state is not None
    known.state.mkdir()
    given = asked(repo, phrases={"Tests pass": "npm test"})
    checked = check(given, known)
    keep(given, known)
    (file,) = known.state.iterdir()
    file.write_bytes(damaged := file.read_bytes()[:-3])
    assert any(str(file) in note for note in check(asked(repo), known).notes)
    with pytest.raises(OpError, match=str(file)):
        check(given, known)
    assert str(file) in phrase_bindings.keep_for(checked.common, given, checked.bound, known)
    assert file.read_bytes() == damaged


def of_its_own(repo: Path, text: str) -> None:
    (repo / ".watchfloor").mkdir(exist_ok=True)
    (repo / project_phrases.FILE).write_text(text)
    for words in (["add", "."], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "b"]):
        subprocess.run(["git", *words], cwd=repo, check=True, timeout=60)


def test_a_repositorys_own_phrases_count_once_a_person_named_what_they_read(repo: Path, tmp_path: Path) -> None:
    known = Known(tmp_path / "state")
    assert known.state is not None
    known.state.mkdir()
    of_its_own(repo, '"Tests pass" = "true"\n')
    met = check(asked(repo), known)
    assert met.checks == ()
    seen = phrases_of(asked(repo), known)
    assert (seen.offered, seen.bound) == ({"Tests pass": "true"}, {})
    assert any(seen.file[:12] in note for note in met.notes)
    for wrong in (seen.file[:11], "0" * 64):
        with pytest.raises(OpError, match="accept-phrases"):
            check(asked(repo, accept_phrases=wrong), known)
    given = asked(repo, accept_phrases=seen.file[:12])
    made = check(given, known)
    assert made.checks == ("true",)
    keep(given, known)
    assert check(asked(repo), known).checks == ("true",)
    assert check(asked(repo), Known(known.state, {"Tests pass": "make test"})).checks == ("make test",)
    of_its_own(repo, '"Tests pass" = "echo other"\n')
    assert check(asked(repo), known).checks == (), "other bytes are accepted anew"


@pytest.mark.parametrize(
    "text", ["[", '"Tests pass" = 1', '"Tests pass" = ""', '[a]\n"x" = "y"', '"Tests pass" = "a\\u0000"']
)
def test_a_file_of_phrases_that_cannot_be_used_says_so_and_binds_nothing(repo: Path, text: str) -> None:
    of_its_own(repo, text)
    made = check(asked(repo))
    assert made.checks == ()
    assert any(project_phrases.FILE in note and "none of it counts" in note for note in made.notes)
    assert not phrases_of(asked(repo), Known()).offered


def test_a_specification_is_read_with_the_same_phrases() -> None:
    lines = specification.look(
        b"## Acceptance criteria\n- Tests pass\n- It is nice\n", {"tests pass.": "make test"}
    ).lines
    assert [isinstance(line.found, Criterion) for line in lines] == [True, False]
    found = specification.look(PLAN, {"Typecheck passes": "make types"}).lines
    assert [line.found.command for line in found if isinstance(line.found, Criterion)] == ["make types"] * 3
