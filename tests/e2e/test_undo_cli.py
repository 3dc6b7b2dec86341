"""Undo from the command line, on a real session: a destroyed file comes back, and so does the state that was undone."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from app.cli.base.context import Context
from app.cli.verbs.undo import undo
from harness.protocol.client import Unreachable
from tests.fleetlib import fleet, play

pytestmark = pytest.mark.sandbox


def test_what_was_destroyed_comes_back_and_the_undo_is_undone() -> None:
    with fleet() as f:
        steps = play(
            [("write_file", {"path": "mine.txt", "content": "untracked\n"})],
            [("exec", {"argv": ["sh", "-c", "rm -rf mine.txt notes.txt src; echo new > other.txt"]})],
            [("exec", {"argv": ["ls"]})],
            "Done.",
        )
        sid = f.launch(steps, name="eraser")
        f.wait_state(sid, "done")
        worktree = Path(f.row(sid)["worktree"])
        assert not (worktree / "mine.txt").exists()
        listed = f.run("undo", "eraser", "--list").stdout
        assert "rm -rf mine.txt" in listed
        assert "MiB" in listed
        points = f.json("undo", sid, "--list")
        assert [p["tool"] for p in points] == ["exec", "exec", "write_file"]
        assert points[1]["changed"] >= 4
        said = f.run("undo", sid).stdout
        assert f"before {points[1]['call_id']}" in said
        assert "brought back" in said
        assert (worktree / "mine.txt").read_text() == "untracked\n"
        assert (worktree / "src" / "a.txt").read_text() == "alpha\n"
        assert not (worktree / "other.txt").exists()
        back = said.rstrip().rsplit(" ", 1)[1]
        (again,) = f.json("undo", sid, "--to", back)
        assert again["to"] == back
        assert not (worktree / "mine.txt").exists()
        assert (worktree / "other.txt").read_text() == "new\n"
        (first,) = f.json("undo", sid, "--to", points[2]["call_id"])
        assert first["to"] == points[2]["call_id"]
        assert not (worktree / "mine.txt").exists()
        assert (worktree / "notes.txt").exists()
        assert f.violations() == []


def test_what_cannot_be_undone_has_its_exit_code_and_words() -> None:
    with fleet() as f:
        sid = f.launch(play([("exec", {"argv": ["ls"]})], "Done."))
        f.wait_state(sid, "done")
        nothing = f.run("undo", sid, check=False)
        assert nothing.returncode == 4
        assert "nothing to undo" in nothing.stderr
        unknown = f.run("undo", sid, "--to", "c99999.0", check=False)
        assert unknown.returncode == 4
        assert "--list" in unknown.stderr
        assert f.run("undo", "nosuch", check=False).returncode == 4
        assert f.run("undo", sid, "--list", "--to", "c1.0", check=False).returncode == 2
        assert json.loads(f.run("undo", sid, "--list", "--json").stdout.splitlines()[0])["changed"] == 0


class Lost:
    """A client whose supervisor goes before it answers."""

    def __enter__(self) -> Lost:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing is held."""

    def wait_up_to(self, seconds: float) -> None:
        """It does not wait."""

    def call(self, op: str, **arguments: object) -> dict[str, object]:
        raise Unreachable("the supervisor closed the connection", "look before you ask again")


@pytest.mark.parametrize(("to", "words"), [(None, "watchfloor undo eraser --list"), ("c18.0", "look before you ask")])
def test_a_lost_answer_says_how_no_second_call_is_taken_back(to: str | None, words: str) -> None:
    asked = argparse.Namespace(id="eraser", to=to, list=False, json=False)
    with pytest.raises(Unreachable, match=words):
        undo(cast(Context, SimpleNamespace(connect=Lost)), asked)
