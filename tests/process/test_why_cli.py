"""Why a file is as it is, on the command line: of sessions that run, ended, were merged and removed, and of lines."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fleetlib import fleet, git, play, wait_for

pytestmark = pytest.mark.sandbox


def _facts(change: dict[str, Any]) -> dict[str, str]:
    return {fact["what"]: fact["text"] for fact in change["facts"]}


def test_a_file_and_its_lines_from_the_launch_to_the_archive() -> None:
    with fleet() as f:
        write = ("write_file", {"path": "made.txt", "content": "one\ntwo\n", "why": "the goal wants it"})
        more = ("shell", {"script": "echo three >> made.txt"})
        commit = ("shell", {"script": "git add -A; git commit -qm made"})
        sid = f.launch(play("I begin.", [write], [more], [commit], "Done."), checks=("test -e made.txt",), name="maker")
        f.wait_state(sid, "done")
        wait_for("its commit is known", lambda: "work.committed" in [r.type for r in f.records(sid)])
        repo = f.repository()
        of = ("--session", sid)
        command, first = f.json("why", "made.txt", *of)
        assert (command["did"], first["did"]) == ("echo three >> made.txt", "write made.txt")
        assert _facts(first)["why"] == "the goal wants it"
        assert "made" in _facts(first)["commit"]
        assert [one["did"] for one in f.json("why", "made.txt:2", *of)] == ["write made.txt"]
        assert [one["did"] for one in f.json("why", "made.txt:3", *of)] == ["echo three >> made.txt"]
        assert f.run("why", "made.txt:9", *of, check=False).returncode == 2
        assert f.run("why", "src/a.txt", *of, check=False).returncode == 1
        f.run("merge", sid, "--squash", "-m", "taken")
        for _ in range(2):
            told = f.json("why", str(repo / "made.txt"))
            assert [one["did"] for one in told] == [command["did"], first["did"]]
            assert "merged" in _facts(told[0])
            assert [one["did"] for one in f.json("why", f"{repo}/made.txt:2")] == ["write made.txt"]
            if sid in f.run("ls", "--names").stdout:
                f.run("rm", sid)
        f.run("supervisor", "stop")
        said = f.run("why", str(repo / "made.txt"))
        assert "the agent says: the goal wants it" in said.stdout
        assert "rule inside-the-sandbox" in said.stdout
        assert git(repo, "log", "-1", "--format=%s").strip() == "taken"
