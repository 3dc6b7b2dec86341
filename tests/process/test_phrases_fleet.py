"""Phrases bound at a launch: asked for at a terminal, kept for the repository, and read by ``spec check``, too."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import time

import pytest

from harness.events import types as t
from tests.fleetlib import COMMAND, Fleet, fleet, git, play

pytestmark = pytest.mark.sandbox
PLAN = {"features": [{"id": "a", "title": "a", "passes": False, "criteria": ["Tests pass"]}]}
OWN = '"Tests pass" = "test -e made.txt"\n'


def planned(f: Fleet, **files: str) -> str:
    repo = f.repository()
    for name, text in {"plan.json": json.dumps(PLAN), **files}.items():
        (repo / name).parent.mkdir(exist_ok=True)
        (repo / name).write_text(text)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "a plan")
    return str(repo)


def at_a_terminal(f: Fleet, answers: dict[str, str], *words: str) -> str:
    """All that a command says at a terminal where each question that holds a key is answered with its value."""
    ours, theirs = pty.openpty()
    try:
        asked = subprocess.Popen([COMMAND, *words], env=f.env, stdin=theirs, stdout=theirs, stderr=theirs)
        os.close(theirs)
        said = b""
        left = dict(answers)
        deadline = time.monotonic() + 60
        while asked.poll() is None or select.select([ours], [], [], 0)[0]:
            assert time.monotonic() < deadline, said
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    said += os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
            for question in [one for one in left if one.encode() in said]:
                os.write(ours, left.pop(question).encode() + b"\n")
        assert asked.wait(timeout=30) == 0, said
        assert not left, said
        return said.decode()
    finally:
        os.close(ours)


def bound(f: Fleet, sid: str) -> dict[str, str]:
    return next(dict(r.body.phrases) for r in f.records(sid) if isinstance(r.body, t.SessionIntent))


def launch(f: Fleet, repo: str, *more: str) -> str:
    (made,) = f.json("launch", "--repo", repo, "--goal", play("Done."), "--plan", "plan.json", *more)
    return str(made["sid"])


def test_a_phrase_is_asked_for_once_at_a_terminal_and_counts_from_then_on() -> None:
    with fleet() as f:
        repo = planned(f, Makefile="test:\n\ttest -e made.txt\n")
        assert f.run("spec", "check", f"{repo}/plan.json", check=False).returncode == 1
        words = ("launch", "--repo", repo, "--goal", play("Done."), "--plan", "plan.json", "--name", "asked")
        said = at_a_terminal(f, {"make test": ""}, *words)
        assert "Tests pass" in said
        (asked,) = [row["sid"] for row in f.json("ls") if row["name"] == "asked"]
        assert bound(f, asked) == {"Tests pass": "make test"}
        assert bound(f, launch(f, repo)) == {"Tests pass": "make test"}, "and no question where nobody can answer"
        assert f.run("spec", "check", f"{repo}/plan.json").returncode == 0
        assert bound(f, launch(f, repo, "--phrase", "Tests pass=")) == {}
        assert bound(f, launch(f, repo)) == {}


def test_a_repositorys_own_phrases_are_shown_and_count_after_a_yes() -> None:
    with fleet() as f:
        repo = planned(f, **{".watchfloor/phrases.toml": OWN})
        assert bound(f, launch(f, repo)) == {}
        words = ("launch", "--repo", repo, "--goal", play("Done."), "--plan", "plan.json")
        said = at_a_terminal(f, {"[y/N]": "y"}, *words)
        assert "test -e made.txt" in said
        assert bound(f, launch(f, repo)) == {"Tests pass": "test -e made.txt"}
        assert f.run("spec", "check", f"{repo}/plan.json").returncode == 0
