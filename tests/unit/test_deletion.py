"""Which names a script deletes, as far as its text says so."""

from __future__ import annotations

import pytest

from harness.policy.deletion import names, names_in
from harness.workspace.gather_facts import parse_shell

SCRIPTS = {
    "rm -rf /a b": ["/a", "b"],
    "rm a -r -- -b": ["a", "-b"],
    "rm -f 'a b' \"c d\" e\\ f": ["a b", "c d", "e f"],
    "/bin/rm a; rmdir b && unlink c": ["a", "b", "c"],
    "if test -e a; then rm a; fi; for x in 1 2; do rm $x b*; done": ["a"],
    "f() { rm a; }; f | (rm b) > $(rm c)": ["a", "b", "c"],
    "rm a; rm a": ["a"],
    "cd /at && rm a /b && echo": ["/at/a", "/b"],
    "cd sub && if true; then rm a; fi": ["sub/a"],
    # where it runs is not known: what is absolute still is
    "cd sub; rm a /b": ["/b"],
    "cd sub || rm a": [],
    "(cd sub && rm a); rm b": [],
    "cd $X && rm a": [],
    "cd - && rm a": [],
    "cd -P && rm a": [],
    "cd a b && rm c": [],
    "cd a && cd b && rm c": [],
    "pushd a && rm b": [],
    "$CMD && rm a /b": ["/b"],
    "cd a* && rm b": [],
    "! cd a && rm b": [],
    # no deletion
    "echo rm a": [],
    "xargs rm": [],
    "rm": [],
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_names_of_a_script(script: str) -> None:
    assert names_in(parse_shell(script)) == SCRIPTS[script]


def test_no_depth_of_a_script_is_too_much() -> None:
    tree: dict[str, object] = {
        "Type": "CallExpr",
        "Args": [{"Parts": [{"Type": "Lit", "Value": w}]} for w in ("rm", "/a")],
    }
    for _ in range(100_000):
        tree = {"Type": "Subshell", "Stmts": [{"Cmd": tree}]}
    assert names_in(tree) == ["/a"]


def test_a_command_of_its_own_means_each_word_as_it_is() -> None:
    assert names(["rm", "-r", "a*", "$X", "~"]) == ["a*", "$X", "~"]
    assert names(["echo", "rm", "a"]) == names([]) == names(None) == []
