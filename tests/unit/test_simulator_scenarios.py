"""The shipped scenarios, played with real tools on the real demo repository; and the user's own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.simulator import demo, library
from harness.simulator.script import Turn, reply
from tests.unit.simulator_process import Simulator, play, running


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulator]:
    with running() as simulator:
        yield simulator


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    demo.make(tmp_path / "repo", tmp_path / "remote.git")
    return tmp_path / "repo"


def suite(repo: Path) -> str:
    done = subprocess.run(
        ["python3", "-m", "unittest", "-q"],
        cwd=repo,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    return "OK" if done.returncode == 0 and "skipped" not in done.stderr else done.stderr[-60:]


def git(repo: Path, *args: str) -> str:
    return subprocess.run(["git", *args], cwd=repo, check=True, capture_output=True, text=True).stdout.strip()


def test_the_demo_repository_has_work_to_do(repo: Path) -> None:
    assert "failures=6, skipped=9" in suite(repo)
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "rev-parse", "main") == git(repo, "ls-remote", "origin", "refs/heads/main").split()[0]


def test_features(sim: Simulator, repo: Path) -> None:
    played = play(sim.client(), repo, "Implement everything that SPEC.md asks for.")
    assert suite(repo) == "OK"
    assert git(repo, "status", "--porcelain") == ""
    assert "implemented" in played.text
    assert len(played.errors) == 3, "it meets the baseline's failure, its own, and the one that is not its own"


def test_repair(sim: Simulator, repo: Path) -> None:
    played = play(sim.client(), repo, "A failing test stands in this repository.")
    assert "OK (skipped=9)" in suite(repo)
    assert git(repo, "diff", "--stat", "HEAD~1").startswith("tally/split.py")
    assert played.text.startswith("Repaired")
    again = play(sim.client(), repo, "A failing test stands in this repository, again.")
    assert again.tools == ["exec"]
    assert "nothing to repair" in again.text


def test_push(sim: Simulator, repo: Path) -> None:
    played = play(sim.client(), repo, "Add an entry to the changelog and push it as refs/heads/docs/x")
    assert played.text.startswith("Pushed to `docs/x`")
    assert git(repo, "ls-remote", "origin", "refs/heads/docs/x").split()[0] == git(repo, "rev-parse", "HEAD")


def test_push_denied(sim: Simulator, repo: Path) -> None:
    played = play(
        sim.client(),
        repo,
        "Add an entry to the changelog and push it as refs/heads/docs/x",
        deny=("push", "not on a Friday"),
    )
    assert "I do not push" in played.text
    assert "not on a Friday" in played.text
    assert git(repo, "ls-remote", "origin", "refs/heads/docs/x") == ""


def test_survey_never_ends(sim: Simulator, repo: Path) -> None:
    played = play(sim.client(), repo, "Make a survey of this code base.", limit=30)
    assert played.turns == 30
    assert played.errors == []
    assert (repo / "NOTES.md").read_text().count("## ") >= 12


def test_unknown_goal_changes_nothing(sim: Simulator, repo: Path) -> None:
    played = play(sim.client(), repo, "Make me a sandwich.")
    assert "simulated model" in played.text
    assert git(repo, "status", "--porcelain") == ""


@pytest.mark.parametrize("mark", ["list 2", "write 2", "flood 2", "sleep 0", "say hello", "canary"])
def test_marked(sim: Simulator, tmp_path: Path, mark: str) -> None:
    (tmp_path / "a.py").write_text("def a(): ...\n")
    played = play(sim.client(), tmp_path, f"[[sim {mark}]]", limit=6)
    assert played.turns <= 5
    assert played.text


def conversation(turns: int) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = [{"role": "user", "content": "hello there"}]
    for i in range(turns):
        messages += [{"role": "assistant", "content": "…"}, {"role": "user", "content": f"README {i}"}]
    return messages


def test_own_scenarios(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        'name = "greet"\npattern = "hello"\n[[turn]]\ntext = "Looking."\ncalls = [{ tool = "list_files", input = {}'
        ' }]\nfaults = [{ kind = "overloaded" }]\n[[turn]]\nunless = "README 0"\ntext = "Hello."\n[[turn]]\nunless ='
        ' "absent"\notherwise = "No."\ntext = "never"\n'
    )
    (tmp_path / "b.py").write_text(
        "import re\nfrom harness.simulator.script import Scenario, say\ndef play(goal):\n    yield say('mine')\n"
        "SCENARIOS = [Scenario('mine', re.compile('special'), play)]\n"
    )
    found = library.load(tmp_path)
    scenario = found.choose("say hello there")
    assert scenario.name == "greet"
    assert found.choose("special").name == "mine"
    assert found.choose("anything else").name == "fallback"
    assert [reply(scenario, conversation(n)).text for n in range(4)] == [
        "Looking.",
        "Hello.",
        "No.",
        "There is nothing left for me to do here.",
    ]
    assert isinstance(reply(found.choose("special"), conversation(0)), Turn)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.toml", "name = 3"),
        ("a.toml", 'name = "x"\npattern = "("\nturn = [{}]'),
        ("a.toml", 'name = "x"\npattern = "x"\nturn = [{ texxt = "" }]'),
        ("a.py", "1/0"),
        ("a.py", ""),
    ],
)
def test_bad_scenarios_are_named(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(library.LibraryError, match=name):
        library.load(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "harness.simulator", "--scenarios", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert name in done.stderr
