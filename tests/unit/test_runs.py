"""What a call outside the sandbox runs of its own worktree stands on its card, and nothing else is claimed to run."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Any

import pytest

from harness.domain.actions.action import Action, ExecAction, Profile, ShellAction
from harness.domain.calls.card_facts import RunFile
from harness.workspace.facts.executed_files import MOST, MOST_LINES, runs


def files(action: Action) -> list[RunFile]:
    return runs(action).files


def given(root: Path) -> Path:
    """A worktree with files that an agent may have made."""
    (root / "tools").mkdir(parents=True)
    for name in ("deploy.sh", "tools/ship.py", "data", "a", "b", "c", "d"):
        (root / name).write_text(f"echo {name}\n")
    return root


def common(root: Path, access: str = "unsandboxed") -> dict[str, Any]:
    return {"sandbox": Profile(worktree=str(root)), "cwd": str(root), "access": access}


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        (["./deploy.sh", "data"], ["deploy.sh"]),
        (["bash", "-eu", "deploy.sh"], ["deploy.sh"]),
        (["/usr/bin/python3.12", "-P", "tools/ship.py", "data"], ["tools/ship.py"]),
        (["sudo", "env", "A=1", "./deploy.sh"], ["deploy.sh"]),
        (["bash", "-c", "./deploy.sh"], ["deploy.sh"]),
        (["sh", "-c", "cd . && ./deploy.sh data"], ["deploy.sh"]),
        (["cat", "./deploy.sh"], []),
        (["bash", "/etc/passwd"], []),
        (["bash", "gone"], []),
        (["bash", "tools"], []),
        (["bash", "a\0b"], []),
        ([""], []),
    ],
)
def test_a_command_runs_its_program_or_what_its_interpreter_is_given(
    tmp_path: Path, argv: list[str], names: list[str]
) -> None:
    root = given(tmp_path / "tree")
    assert [one.path for one in files(ExecAction(tool="exec", argv=tuple(argv), **common(root)))] == names
    assert files(ExecAction(tool="exec", argv=tuple(argv), **common(root, "network"))) == [], "the sandbox holds it"


@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("set -e\ncp ./data /usr/local/bin/data\n./deploy.sh\n", ["deploy.sh"]),
        ("if true; then sudo ./deploy.sh && python3 tools/ship.py; fi", ["deploy.sh", "tools/ship.py"]),
        ("cat data | sh ./deploy.sh", ["deploy.sh"]),
        (". ./deploy.sh", ["deploy.sh"]),
        ('"./deploy.sh"', ["deploy.sh"]),
        ("echo ./deploy.sh; ./deploy.sh; ./deploy.sh", ["deploy.sh"]),
        ("echo hello", []),
    ],
)
def test_a_script_runs_what_each_of_its_commands_does(tmp_path: Path, script: str, names: list[str]) -> None:
    root = given(tmp_path / "tree")
    assert [one.path for one in files(ShellAction(tool="shell", script=script, **common(root)))] == names


def test_a_file_is_shown_as_it_is_and_what_is_left_out_is_said(tmp_path: Path) -> None:
    root = given(tmp_path / "tree")
    outside = tmp_path / "secret"
    outside.write_text("s3cret\n")
    os.symlink(outside, root / "link.sh")
    os.symlink(root / "deploy.sh", root / "own.sh")
    os.mkfifo(root / "pipe.sh")
    (root / "long.sh").write_text("echo\n" * (MOST_LINES + 5))
    (root / "wide.sh").write_text("x" * 100_000 + "\nrm -rf /\n")
    (root / "binary").write_bytes(b"\x7fELF\xff")
    (root / "zero").write_bytes(b"a\0b")

    def of(name: str) -> list[RunFile]:
        return files(ExecAction(tool="exec", argv=(f"./{name}",), **common(root)))

    assert of("deploy.sh") == [RunFile("deploy.sh", ["echo deploy.sh"])]
    assert of("own.sh") == [RunFile("deploy.sh", ["echo deploy.sh"])], "what is behind a link of its own"
    assert of("link.sh") == of("pipe.sh") == []
    (long,) = of("long.sh")
    assert (len(long.lines), long.more, long.whole) == (MOST_LINES, 5, False)
    (wide,) = of("wide.sh")
    assert (wide.lines, wide.more) == ([], 2)
    assert [one.problem for one in (*of("binary"), *of("zero"))] == ["it is no text", "it is no text"]
    for number in range(MOST + 2):
        (root / f"s{number}").write_text("echo\n")
    many = " ; ".join(f"./s{number}" for number in range(MOST + 2))
    found = files(ShellAction(tool="shell", script=many, **common(root)))
    assert [one.path for one in found] == [f"s{number}" for number in range(MOST + 2)]
    assert [one.whole for one in found] == [True] * MOST + [False] * 2, "those that are not shown are named"


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        (["make"], ["Makefile", "tools/build.sh"]),
        (["make", "ship"], ["Makefile", "tools/ship.py", "tools/build.sh"]),
        (["sudo", "make", "-C", "sub", "all"], ["sub/Makefile", "sub/own.sh"]),
        (["sh", "-c", "cd sub && make all"], ["sub/Makefile", "sub/own.sh"]),
        (["npm", "run", "deploy"], ["package.json", "deploy.sh", "lib/common.sh"]),
        (["npm", "test"], ["package.json"]),
        (["./deploy.sh"], ["deploy.sh", "lib/common.sh"]),
        (["make", "-f", "gone.mk"], []),
        (["echo", "make"], []),
    ],
)
def test_what_a_command_comes_to_run_is_followed(tmp_path: Path, argv: list[str], names: list[str]) -> None:
    root = given(tmp_path / "tree")
    for folder in ("sub", "lib"):
        (root / folder).mkdir()
    (root / "Makefile").write_text("build:\n\t@sh tools/build.sh\nship: build\n\tpython3 tools/ship.py\n")
    (root / "tools/build.sh").write_text("echo build\n")
    (root / "sub/Makefile").write_text("all:\n\t./own.sh\n")
    (root / "sub/own.sh").write_text("#!/bin/sh\necho own\n")
    (root / "package.json").write_text('{"scripts": {"deploy": "bash deploy.sh", "test": "jest"}}')
    (root / "deploy.sh").write_text("#!/bin/bash\n. ./lib/common.sh\nupload\n")
    (root / "lib/common.sh").write_text("upload() { scp x host:; }\n")
    assert [one.path for one in files(ExecAction(tool="exec", argv=tuple(argv), **common(root)))] == names


@pytest.mark.slow
def test_following_ends_whatever_the_files_say(tmp_path: Path) -> None:
    """A target that needs all others, a file that includes itself, scripts in a circle, a Makefile that is no file."""
    root = given(tmp_path / "tree")
    targets = " ".join(f"t{number}" for number in range(9000))
    (root / "Makefile").write_text(f"include Makefile\nall: {targets}\n{targets}: all\n\tsh a.sh\n")
    (root / "a.sh").write_text("sh b.sh\n")
    (root / "b.sh").write_text("sh a.sh\nmake\n" + "x" * 100_000)
    found = files(ExecAction(tool="exec", argv=("make",), **common(root)))
    assert [one.path for one in found] == ["Makefile", "a.sh", "b.sh"]
    (root / "Makefile").write_text("V = " + "x" * 100_000 + "\nall:\n\techo " + "$(V)" * 2_000 + "\n\tsh a.sh\n")
    found = files(ExecAction(tool="exec", argv=("make",), **common(root)))
    assert [one.path for one in found] == ["Makefile", "a.sh", "b.sh"]
    (root / "Makefile").unlink()
    os.mkfifo(root / "Makefile")
    assert files(ExecAction(tool="exec", argv=("make",), **common(root))) == []


def test_of_a_long_makefile_the_rule_that_runs_is_shown(tmp_path: Path) -> None:
    head = [f"# line {n}" for n in range(2 * MOST_LINES)]
    rules = ["release: build", "\t./publish --all", "build:", "\tcc a.c", *(f"# end {n}" for n in range(MOST_LINES))]
    (tmp_path / "Makefile").write_text("\n".join([*head, *rules]) + "\n")
    argv = ("make", "-j2", "release")
    (one,) = files(ExecAction(tool="exec", argv=argv, **common(tmp_path)))
    assert (one.first, one.lines[:2]) == (2 * MOST_LINES + 1, ["release: build", "\t./publish --all"])
    assert (len(one.lines), one.more) == (MOST_LINES, 2 * MOST_LINES + 4)
    (tmp_path / "Makefile").write_text("\n".join([*head, *rules[:4]]) + "\n")
    (one,) = files(ExecAction(tool="exec", argv=argv, **common(tmp_path)))
    assert one.lines[-4:] == rules[:4], "near its end as much as fits is shown before it"
    assert (one.first, len(one.lines), one.more) == (MOST_LINES + 5, MOST_LINES, MOST_LINES + 4)
    (tmp_path / "Makefile").write_text("\n".join([*head[:9], *rules[:4]]) + "\n")
    (one,) = files(ExecAction(tool="exec", argv=argv, **common(tmp_path)))
    assert (one.first, one.more) == (1, 0), "what fits is shown whole, from its top"


NAMED = [
    (["python3", "-m", "pkg"], ["pkg/__init__.py", "pkg/__main__.py"]),
    (["python3", "-mpkg.sub"], ["pkg/sub.py", "pkg/__init__.py"]),
    (["python3", "-W", "error", "-c", "import lib; lib.go()"], ["lib/__init__.py"]),
    (["python3", "-c", "from pkg.sub import x"], ["pkg/sub.py", "pkg/__init__.py"]),
    (["python3", "pkg"], ["pkg/__main__.py"]),
    (["node", "."], ["package.json", "start.js"]),
    (["node", "-e", "require('./start')"], ["start.js"]),
    (["perl", "-Ilib", "-MX", "-e", "1"], ["lib/X.pm"]),
    (["ruby", "-I", "lib", "-rtool", "-e", "1"], ["lib/tool.rb"]),
    (["env", "-C", "sub", "./run.sh"], ["sub/run.sh"]),
    (["env", "--chdir=sub", "sh", "run.sh"], ["sub/run.sh"]),
    (["sh", "-c", "cd sub; ./run.sh"], ["sub/run.sh"]),
    (["find", ".", "-name", "x", "-exec", "sh", "deploy.sh", ";"], ["deploy.sh"]),
    (["find", ".", "-exec", "sub/run.sh", "{}", ";"], ["sub/run.sh"]),
    (["xargs", "-n1", "sh", "deploy.sh"], ["deploy.sh"]),
    (["timeout", "5", "python3", "tools/ship.py"], ["tools/ship.py"]),
    (["git", "-c", "alias.x=!sh deploy.sh", "x"], ["deploy.sh"]),
    (["xargs", "sh"], []),
    (["pytest"], []),
    (["git", "push"], []),
    (["systemctl", "restart", "data"], []),
]


def with_modules(root: Path) -> Path:
    """A worktree with what programs load by a name."""
    root = given(root)
    for folder in ("pkg", "lib", "sub"):
        (root / folder).mkdir()
    for name in ("pkg/__init__.py", "pkg/__main__.py", "pkg/sub.py", "lib/__init__.py", "lib/X.pm", "lib/tool.rb"):
        (root / name).write_text("1\n")
    (root / "sub/run.sh").write_text("make -f other.mk\n")
    (root / "sub/run.sh").chmod(0o755)
    (root / "package.json").write_text('{"main": "./start"}')
    (root / "start.js").write_text("1\n")
    return root


@pytest.mark.parametrize(("argv", "names"), NAMED)
def test_what_is_loaded_is_named_and_never_taken_for_all_that_runs(
    tmp_path: Path, argv: list[str], names: list[str]
) -> None:
    """Code loads what nobody names: a list that is not known to be whole is not said to be."""
    root = with_modules(tmp_path / "tree")
    found = runs(ExecAction(tool="exec", argv=tuple(argv), **common(root)))
    assert sorted(one.path for one in found.files) == sorted(names)
    assert not found.only
    script = runs(ShellAction(tool="shell", script=shlex.join(argv), **common(root)))
    assert {one.path for one in script.files} >= set(names)
    assert not script.only


@pytest.mark.parametrize(
    ("script", "only"),
    [
        ("echo hello", True),
        ("rm -rf build && cp ./data /usr/local/bin/ ; /bin/ls | wc -l", True),
        ("#!/bin/sh\n# it says so\nset -e\nmkdir -p x\n", True),
        ("./deploy.sh data", True),
        ("sh deploy.sh", True),
        ("cd tools && ./deploy.sh", False),
        ("./circle.sh", False),
        ("./python.sh", False),
        ("sh -c 'echo x'", False),
        ("sh gone.sh", False),
        ("echo $(./deploy.sh)", False),
        ("echo `./deploy.sh`", False),
        ("PATH=. ls", False),
        ("ls() { sh a; }", False),
        ("'e'val ls", False),
        ("./ls", False),
        ("echo 'x", False),
        ("rm x; pytest", False),
        ("ls & node .", False),
        ("ls\nnode .", False),
        ("cat <(sh a)", False),
    ],
)
def test_nothing_else_runs_only_where_each_command_is_known_to_run_nothing(
    tmp_path: Path, script: str, only: bool
) -> None:
    root = given(tmp_path / "tree")
    (root / "circle.sh").write_text("./circle.sh\n")
    (root / "python.sh").write_text("#!/usr/bin/env python3\nls\n")
    (root / "ls").write_text("#!/bin/sh\nmake\n")
    assert runs(ShellAction(tool="shell", script=script, **common(root))).only is only
    for path in (".", f"/bin:{root}/tools", "/bin::/usr/bin"):
        own = {**common(root), "env": {"PATH": path}}
        assert not runs(ShellAction(tool="shell", script=script, **own)).only, "a program of its own by such a name"
