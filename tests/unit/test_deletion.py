"""Which names a script deletes, as far as its text says so."""

from __future__ import annotations

import pytest

from harness.policy.deletion import deleted_in, names
from harness.workspace.facts.gather import parse_shell

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
    # where the person's home is
    "rm -rf ~/.cache/x ~ ~/'a b'": ["/home/ann/.cache/x", "/home/ann", "/home/ann/a b"],
    'rm $HOME/x "$HOME/y" ${HOME}/z "${HOME}"': ["/home/ann/x", "/home/ann/y", "/home/ann/z", "/home/ann"],
    "cd ~ && rm x": ["/home/ann/x"],
    "cd ~/src && rm -r x": ["/home/ann/src/x"],
    "rm '~/x' \\~/y a~": ["~/x", "~/y", "a~"],
    # no deletion
    "echo rm a": [],
    "xargs rm": [],
    "rm": [],
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_names_of_a_script(script: str) -> None:
    assert list(deleted_in(script, parse_shell(script), "/home/ann").names) == SCRIPTS[script]


UNKNOWN = {
    "rm a": [],
    'rm é $x/a *.log "$(pwd)" ~bob/x ~"a" ~$x': ["$x/a", "*.log", '"$(pwd)"', "~bob/x", '~"a"', "~$x"],
    "cd $x && rm a /b 'c d'": ["a", "'c d'"],
    "rm ${HOME%/*}/x ${HOME:-/} ${#HOME} ~/*": ["${HOME%/*}/x", "${HOME:-/}", "${#HOME}", "~/*"],
    # another home than the person's
    "HOME=/x; rm ~/a": ["~/a"],
    "read HOME; rm $HOME/a": ["$HOME/a"],
    "source ./env; rm ~/a": ["~/a"],
    "$x; rm ~/a": ["~/a"],
}


@pytest.mark.parametrize("script", UNKNOWN)
def test_words_that_only_a_run_turns_into_names_are_told_as_they_are_written(script: str) -> None:
    assert list(deleted_in(script, parse_shell(script), "/home/ann").unknown) == UNKNOWN[script]


def test_a_home_that_the_shell_would_part_into_words_is_not_guessed() -> None:
    script = 'rm $HOME/x "$HOME/y" ~/z'
    found = deleted_in(script, parse_shell(script), "/home/ann b")
    assert (list(found.names), list(found.unknown)) == (["/home/ann b/y", "/home/ann b/z"], ["$HOME/x"])
    assert deleted_in("rm ~/x", parse_shell("rm ~/x"), "").unknown == ("~/x",)


def test_no_depth_of_a_script_is_too_much() -> None:
    tree: dict[str, object] = {
        "Type": "CallExpr",
        "Args": [{"Parts": [{"Type": "Lit", "Value": w}]} for w in ("rm", "/a")],
    }
    for _ in range(100_000):
        tree = {"Type": "Subshell", "Stmts": [{"Cmd": tree}]}
    assert deleted_in("", tree, "").names == ("/a",)


def test_a_command_of_its_own_means_each_word_as_it_is() -> None:
    assert names(["rm", "-r", "a*", "$X", "~"]) == ["a*", "$X", "~"]
    assert names(["echo", "rm", "a"]) == names([]) == names(None) == []
