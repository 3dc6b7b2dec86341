"""Phrases of a project that a person binds to commands."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from harness.events.launch_wish import LaunchWish
from harness.plan import criteria, phrases
from harness.plan.formats import flipped, read
from harness.supervisor.errors import OpError
from harness.supervisor.sessions.launch_request import check

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
    wish = LaunchWish(repo=str(repo), goal="g", plan="prd.json")
    offered = check(wish)
    assert offered.checks == ()
    told = [note for note in offered.notes if "--phrase" in note]
    assert told == [
        "3 criteria “Typecheck passes”: no command decides; bind it with --phrase 'Typecheck passes=npm run typecheck'",
        "2 criteria “Tests pass”: no command decides; bind it with --phrase 'Tests pass=npm test'",
    ]
    given = LaunchWish(repo=str(repo), goal="g", plan="prd.json", phrases={"Tests pass": "npm test -- all"})
    made = check(given, {"Typecheck passes": "npm run typecheck", "Tests pass": "npm test"})
    assert made.checks == ("npm test -- all", "npm run typecheck")
    assert not [note for note in made.notes if "--phrase" in note]
    with pytest.raises(OpError, match="phrase"):
        check(LaunchWish(repo=str(repo), goal="g", plan="prd.json", phrases={"Tests pass": ""}))
