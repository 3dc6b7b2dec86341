"""The vendor's memory tool on a session's own memories: the six commands do to keys what they would do to files."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.memory import files
from harness.memory.changes import MemoryRequest, NotRemembered
from harness.memory.model import Memories
from harness.memory.records import Actor, Origin, Place, Scope
from harness.tools import memory_files, registry, validation
from tests.memorychain import broken

MINE = Place(Scope.SESSION, "s1")
NOW = "2026-11-22T10:00:00.000Z"


def wish(call: str) -> MemoryRequest:
    return MemoryRequest(MINE, "", Origin(Actor.AGENT, NOW, "s1", call))


def do(m: Memories, command: str, call: str, **more: Any) -> str:
    """One call, its entries applied; the answer, which for what is refused begins with a minus."""
    asked = {"command": command, **more}
    assert validation.validate(registry.MEMORY, asked) is None
    if command == "view":
        return files.view(m, MINE, asked, NOW)
    try:
        done = files.change(m, wish(call), asked)
    except NotRemembered as exc:
        return f"-{exc}"
    for entry in done.entries:
        m.apply(entry)
    return done.text


def now(m: Memories) -> dict[str, str]:
    return {w.key: w.text for w in m.at([MINE], NOW)}


NAMES = st.sampled_from(("a", "b", "d/a", "d/b", "d/e/c"))
FOLDERS = st.sampled_from(("a", "d", "d/e", "x", "d/a"))
TEXT = st.sampled_from(("one\n", "one\ntwo\n", "two", "one one"))
COMMANDS = st.one_of(
    st.tuples(st.just("create"), NAMES, TEXT),
    st.tuples(st.just("str_replace"), NAMES, TEXT),
    st.tuples(st.just("insert"), NAMES, st.integers(0, 3)),
    st.tuples(st.just("delete"), FOLDERS, st.none()),
    st.tuples(st.just("rename"), FOLDERS, FOLDERS),
)


def as_files(disk: dict[str, str], command: str, name: str, more: Any) -> dict[str, str] | None:
    """What the command does to files; None when it is refused."""
    below = {key for key in disk if key == name or key.startswith(f"{name}/")}
    if command == "create":
        parents = {name[:i] for i, c in enumerate(name) if c == "/"}
        return None if below or parents & disk.keys() else disk | {name: more}
    if command == "str_replace":
        held = disk.get(name, "")
        return disk | {name: held.replace("one", "1")} if held.count("one") == 1 else None
    if command == "insert":
        lines = disk.get(name, "").splitlines()
        if name not in disk or more > len(lines):
            return None
        return disk | {name: "\n".join([*lines[:more], "put", *lines[more:]]) + "\n"}
    if command == "delete":
        return {k: v for k, v in disk.items() if k not in below} if below else None
    inside = f"{more}/".startswith(f"{name}/")
    there = any(key == more or key.startswith(f"{more}/") for key in disk)
    under = any(more.startswith(f"{key}/") for key in disk)
    if not below or inside or there or under:
        return None
    return {(more + k[len(name) :] if k in below else k): v for k, v in disk.items()}


@settings(max_examples=300, deadline=None)
@given(st.lists(COMMANDS, max_size=12))
def test_commands_do_to_keys_what_they_do_to_files(steps: list[tuple[str, str, Any]]) -> None:
    m = Memories()
    disk = dict[str, str]()
    for number, (command, name, more) in enumerate(steps):
        path = f"/memories/{name}"
        call = f"c{number}.0"
        told = {
            "create": lambda p=path, c=call, t=more: do(m, "create", c, path=p, file_text=t),
            "str_replace": lambda p=path, c=call: do(m, "str_replace", c, path=p, old_str="one", new_str="1"),
            "insert": lambda p=path, c=call, n=more: do(m, "insert", c, path=p, insert_line=n, insert_text="put"),
            "delete": lambda p=path, c=call: do(m, "delete", c, path=p),
            "rename": lambda p=path, c=call, n=more: do(m, "rename", c, old_path=p, new_path=f"/memories/{n}"),
        }[command]()
        then = as_files(disk, command, name, more)
        assert told.startswith("-") is (then is None), (command, name, more, told)
        disk = disk if then is None else then
        assert now(m) == disk
    for memory in m.by_key.values():
        assert not broken(memory.versions)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 5), st.sampled_from(("delete", "rename")))
def test_a_call_that_was_cut_off_goes_on_where_it_was_and_does_nothing_twice(kept: int, command: str) -> None:
    """Any beginning of what a call adds may be all that reached the disk."""
    m = Memories()
    for name in ("d/a", "d/b", "d/e/c"):
        do(m, "create", f"c-{name}", path=f"/memories/{name}", file_text=name)
    asked = {"delete": {"path": "/memories/d"}, "rename": {"old_path": "/memories/d", "new_path": "/memories/x"}}
    given_ = {"command": command, **asked[command]}
    first = files.change(m, wish("c9.0"), given_)
    for entry in first.entries[:kept]:
        m.apply(entry)
    again = files.change(m, wish("c9.0"), given_)
    assert again.text == first.text
    for entry in again.entries:
        m.apply(entry)
    wanted = {"x/a": "d/a", "x/b": "d/b", "x/e/c": "d/e/c"} if command == "rename" else {}
    assert now(m) == wanted
    assert files.change(m, wish("c9.0"), given_).entries == ()


def test_what_is_there_is_shown_as_the_vendors_tool_shows_it() -> None:
    m = Memories()
    assert do(m, "view", "c1.0", path="/memories").endswith("\n0B\t/memories")
    for name in ("notes.md", "d/a", "d/e/deep"):
        do(m, "create", f"c-{name}", path=f"/memories/{name}", file_text="one\ntwo\nthree")
    assert do(m, "view", "c2.0", path="/memories/").split("\n")[1:] == [
        "39B\t/memories",
        "26B\t/memories/d/",
        "13B\t/memories/d/a",
        "13B\t/memories/d/e/",
        "13B\t/memories/notes.md",
    ]
    whole = do(m, "view", "c3.0", path="/memories/notes.md")
    assert (
        whole == "Here's the content of /memories/notes.md with line numbers:\n     1\tone\n     2\ttwo\n     3\tthree"
    )
    part = do(m, "view", "c4.0", path="/memories/notes.md", view_range=[2, -1])
    assert part.split("\n")[1:] == ["     2\ttwo", "     3\tthree"]
    edited = do(m, "str_replace", "c5.0", path="/memories/notes.md", old_str="two", new_str="2")
    assert edited.split("\n")[1:] == ["     1\tone", "     2\t2", "     3\tthree"]
    with pytest.raises(NotRemembered, match="does not exist"):
        do(m, "view", "c6.0", path="/memories/gone")
    for refused in (
        do(m, "create", "c7.0", path="/memories/notes.md", file_text="x"),
        do(m, "create", "c8.0", path="/memories/key", file_text="password: tr0ub4dor&3"),
        do(m, "create", "c9.0", path="/memories/big", file_text="x" * 9000),
        do(m, "create", "c10.0", path="/memories/" + "n" * 130, file_text="x"),
        do(m, "delete", "c11.0", path="/memories"),
    ):
        assert refused.startswith("-")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ({"command": "look", "path": "/memories"}, "must be one of"),
        ({"command": ["view"], "path": "/memories"}, "must be one of"),
        ({"command": "view"}, "needs the field 'path'"),
        ({"command": "view", "path": "/memories", "key": "x"}, "no field 'key'"),
        ({"command": "view", "path": "/etc/passwd"}, "begins with /memories"),
        ({"command": "view", "path": "/memories/../../etc"}, "is . or .."),
        ({"command": "view", "path": "/memoriesx"}, "begins with /memories"),
        ({"command": "view", "path": "/memories//x"}, "empty part"),
        ({"command": "view", "path": "/memories/x", "view_range": [1]}, "two line numbers"),
        ({"command": "view", "path": "/memories/x", "view_range": [True, 2]}, "two line numbers"),
        ({"command": "create", "path": "/memories/x", "file_text": 3}, "must be a string"),
        ({"command": "create", "path": "/memories/x", "file_text": "\ud800"}, "surrogate"),
        ({"command": "create", "path": "/memories/x", "file_text": "\0"}, "NUL"),
        ({"command": "insert", "path": "/memories/x", "insert_line": -1, "insert_text": ""}, "whole number"),
        ({"command": "insert", "path": "/memories/x", "insert_line": True, "insert_text": ""}, "whole number"),
        ({"command": "rename", "old_path": "/memories/x", "new_path": "x"}, "begins with /memories"),
    ],
)
def test_a_command_that_cannot_be_meant_is_told(value: dict[str, Any], why: str) -> None:
    assert memory_files.meant(value)
    problem = validation.validate(registry.MEMORY, value)
    assert problem is not None
    assert why in problem
