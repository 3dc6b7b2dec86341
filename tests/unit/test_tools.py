"""The tool table: what the model is told and which inputs are refused with a sentence it can act on."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.executor import files
from harness.tools import registry, validation
from harness.tools.tool import REVERSIBLE

GOOD: list[tuple[str, dict[str, Any]]] = [
    ("read_file", {"path": "a.py"}),
    ("read_file", {"path": "a.py", "offset": 1, "limit": 20, "why": "to see"}),
    ("read_file", {"path": "a.json", "offset": 3, "column": 1901}),
    ("write_file", {"path": "a", "content": ""}),
    ("edit_file", {"path": "a", "old": "x", "new": "", "all": True}),
    ("list_files", {}),
    ("search", {"pattern": "x", "glob": "*.py"}),
    ("read_output", {"call": "c12.0", "grep": "Error", "offset": 3, "limit": 9}),
    ("memory", {"action": "write", "scope": "repository", "key": "tests", "text": "make test", "if_sha": ""}),
    ("history", {"grep": "Error", "type": "tool.ended", "from": 0, "limit": 9}),
    ("exec", {"argv": ["true"], "access": "network", "timeout_s": 5, "cwd": "src"}),
    ("shell", {"script": "true", "access": "network", "hosts": ["pypi.org", "127.0.0.1:8080"]}),
    ("shell", {"script": "echo hi"}),
    ("plan", {"action": "replan", "text": "there is none", "steps": ["ask"], "why": "to go on"}),
    ("shell", {"script": "make train", "job": True, "limit_s": 86400}),
    ("job", {"action": "wait", "job": "j1", "until": "epoch *", "after_s": 60}),
    ("job", {"action": "wait", "at": "2026-11-24T09:30+01:00"}),
    ("job", {"action": "status"}),
    ("check", {"command": "pytest -q"}),
    ("ask_person", {"question": "Keep it?", "options": ["yes", "no"], "why": "it is public"}),
]
BAD: list[tuple[str, Any, str]] = [
    ("nothing", {}, "no tool named"),
    ("read_file", [], "must be an object"),
    ("read_file", {}, "'path' is missing"),
    ("read_file", {"path": 3}, "must be a string"),
    ("read_file", {"path": ""}, "is empty"),
    ("read_file", {"path": "a\0b"}, "NUL"),
    ("read_file", {"path": "a", "offset": 0}, "at least 1"),
    ("read_file", {"path": "a", "column": 0}, "at least 1"),
    ("read_file", {"path": "a", "limit": True}, "whole number"),
    ("read_file", {"path": "a", "limt": 2}, "unknown field 'limt'"),
    ("write_file", {"path": "a", "content": "\ud800"}, "surrogate"),
    ("write_file", {"path": "a", "content": "x" * (validation.MAX_CONTENT + 1)}, "over the limit"),
    ("edit_file", {"path": "a", "old": "", "new": "x"}, "old is empty"),
    ("edit_file", {"path": "a", "old": "x", "new": "x"}, "the same"),
    ("edit_file", {"path": "a", "old": "x", "new": "y", "all": "yes"}, "true or false"),
    ("read_output", {"offset": 1}, "'call' is missing"),
    ("memory", {"scope": "user"}, "'action' is missing"),
    ("memory", {"action": "write", "scope": "all"}, "one of session, repository, user"),
    ("history", {"limit": 101}, "between 1 and 100"),
    ("exec", {"argv": []}, "non-empty list"),
    ("exec", {"argv": "ls"}, "non-empty list"),
    ("exec", {"argv": [""]}, "program name is empty"),
    ("exec", {"argv": ["a", "b\0"]}, "NUL"),
    ("exec", {"argv": ["a"], "hosts": ["pypi.org"]}, 'only together with access "network"'),
    ("shell", {"script": "a", "access": "unsandboxed", "hosts": ["pypi.org"]}, 'only together with access "network"'),
    ("exec", {"argv": ["a"], "access": "network", "hosts": ["pypi.org."]}, "not a host name"),
    ("exec", {"argv": ["a"], "access": "network", "hosts": ["a\0.b"]}, "not a host name"),
    ("exec", {"argv": ["a"], "access": "network", "hosts": []}, "non-empty list"),
    ("exec", {"argv": ["a"], "access": "network", "hosts": [f"h{n}.a" for n in range(33)]}, "at most 32"),
    ("exec", {"argv": ["a"], "access": "root"}, "one of sandbox, network, unsandboxed"),
    ("exec", {"argv": ["a"], "timeout_s": 999999}, "between 1 and 3600"),
    ("shell", {"script": "  "}, "script is empty"),
    ("exec", {"argv": ["a"], "limit_s": 9}, "together with job: true"),
    ("exec", {"argv": ["a"], "job": True, "timeout_s": 9}, "a job has limit_s"),
    ("job", {"action": "cancel", "until": "x"}, "with the action wait"),
    ("job", {"action": "status", "at": "2026-11-24T09:30Z"}, "with the action wait"),
    ("job", {"action": "wait", "at": "2026-11-24T09:30"}, "with its zone"),
    ("job", {"action": "wait", "at": "tomorrow"}, "with its zone"),
    ("job", {"action": "wait", "at": "2026-11-24T09:30Z", "after_s": 3}, "give one of them"),
    ("job", {"action": "begin"}, "one of status, wait, cancel"),
    ("shell", {"script": "x" * (validation.MAX_SCRIPT + 1)}, "over the limit"),
    ("check", {"command": " "}, "non-empty string"),
    ("ask_person", {"options": ["a"]}, "'question' is missing"),
    ("ask_person", {"question": " \n"}, "question is empty"),
    ("ask_person", {"question": "?" * 4001}, "over the limit of 4000"),
    ("ask_person", {"question": "a?", "options": []}, "non-empty list"),
    ("ask_person", {"question": "a?", "options": [str(n) for n in range(10)]}, "at most 9 options"),
    ("ask_person", {"question": "a?", "options": ["a\nb"]}, "one line"),
    ("ask_person", {"question": "a?", "options": ["a", " a"]}, "the same"),
    ("ask_person", {"question": "a?", "options": ["\ud800"]}, "surrogate"),
]


@pytest.mark.parametrize(("tool", "value"), GOOD)
def test_good_input_passes(tool: str, value: dict[str, Any]) -> None:
    assert validation.validate(tool, value) is None


@pytest.mark.parametrize(("tool", "value", "words"), BAD)
def test_bad_input_is_named(tool: str, value: Any, words: str) -> None:
    problem = validation.validate(tool, value)
    assert problem is not None
    assert words in problem


@given(
    st.sampled_from([*registry.TABLE, "check", "other"]),
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
    ),
)
def test_no_input_makes_validation_fail(tool: str, value: Any) -> None:
    """Whatever a model sends: a sentence that says what is wrong, or an input that has what the tool needs and nothing
    else.
    """
    problem = validation.validate(tool, value)
    if problem is None:
        needed, known = (
            ({"command"}, {"command"})
            if tool == "check"
            else (set(registry.TABLE[tool].required), {*registry.TABLE[tool].properties, "why"})
        )
        assert needed <= set(value) <= known
    else:
        assert problem.startswith((f"{tool}: ", "there is no tool named")) or tool in problem


def test_definitions_are_what_the_interface_takes() -> None:
    definitions = [tool.definition() for tool in registry.TABLE.values()]
    assert [d["name"] for d in definitions] == [
        "read_file",
        "write_file",
        "edit_file",
        "list_files",
        "search",
        "read_output",
        "memory",
        "history",
        "exec",
        "shell",
        "plan",
        "ask_person",
        "job",
    ]
    assert json.dumps(definitions) == json.dumps([tool.definition() for tool in registry.TABLE.values()])
    for definition in definitions:
        schema = definition["input_schema"]
        assert schema["additionalProperties"] is False
        assert set(schema["required"]) <= set(schema["properties"])
        assert "why" in schema["properties"]
        assert "why" not in schema["required"]


def test_effect_classes() -> None:
    assert registry.effect_class("read_file") == registry.effect_class("search") == "read"
    assert registry.effect_class("read_file", "outside") == "read"
    assert registry.effect_class("edit_file") == "reversible"
    assert registry.effect_class("edit_file", "outside") == "irreversible"
    assert registry.effect_class("exec") == registry.effect_class("check") == "contained"
    assert (
        registry.effect_class("shell", "network")
        == registry.effect_class("exec", "unsandboxed")
        == registry.effect_class("exec", "push")
        == "irreversible"
    )


def test_every_file_tool_of_the_table_is_implemented_and_no_other() -> None:
    assert files.TOOLS.keys() == {name for name, tool in registry.ALL.items() if tool.kind == "file"} - {registry.JOB}


def test_what_writes_a_file_is_no_reader_and_names_a_path() -> None:
    for name, tool in registry.ALL.items():
        if registry.writes_file(name):
            assert tool.effect == REVERSIBLE
            assert "path" in tool.required
    assert registry.runs("check")
    assert not any(registry.runs(name) or registry.writes_file(name) for name in ("read_file", "", "spell"))
