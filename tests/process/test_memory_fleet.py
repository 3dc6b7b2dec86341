"""Memory in a whole fleet: what a person, sessions and requests make of it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.fleetlib import Fleet, fleet


@pytest.fixture
def house() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def test_a_person_keeps_memories_and_takes_them_back(house: Fleet) -> None:
    repo = str(house.repository())

    def said(*args: str) -> str:
        return house.run("memory", *args).stdout

    assert "nothing is remembered" in said("ls")
    said("set", "build", "make \x1b[31mall", "--repo", repo)
    said("set", "tone", "short answers", "--user", "--days", "3")
    (listed,) = house.json("memory", "ls")
    assert [(m["scope"], m["key"]) for m in listed["memories"]] == [("repository", "build"), ("user", "tone")]
    assert listed["memories"][0]["of"] == f"{repo}/.git"
    assert listed["memories"][1]["newest"]["expires"] > listed["memories"][1]["newest"]["ts"]
    assert "\x1b" not in said("show", "build") + said("ls") + said("history", "build")
    sha = listed["memories"][0]["newest"]["sha"]
    said("set", "build", "make dist", "--repo", repo, "--if-sha", sha)
    late = house.run("memory", "set", "build", "make slow", "--repo", repo, "--if-sha", sha, check=False)
    assert (late.returncode, "look again first" in late.stderr) == (5, True)
    secret = house.run("memory", "set", "login", "password: tr0ub4dor&3", "--user", check=False)
    assert (secret.returncode, "never remembered" in secret.stderr) == (5, True)
    assert "restored, version 3" in said("rollback", "build")
    assert "make" in said("search", "make")
    house.run("supervisor", "stop")
    history = [json.loads(line) for line in said("history", "build", "--json").splitlines()]
    assert [(v["version"], v["op"]) for v in history] == [(3, "restored"), (2, "modified"), (1, "created")]
    said("rm", "build")
    assert "no longer remembered" in said("show", "build")
    assert house.run("memory", "show", "nothing", check=False).returncode == 4
    assert "memory" in house.run("verify").stdout
