"""What a plain deletion takes away, and when nothing is claimed about one."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.domain.actions.action import ExecAction, Profile, ShellAction
from harness.policy.deletion import MOST
from harness.workspace.facts.deletion_effects import Gone, going


def unsandboxed(root: Path, *argv: str, kept: bool = True) -> ExecAction:
    pre = {"snapshot": "abc"} if kept else {}
    sandbox = Profile(worktree=str(root))
    return ExecAction(tool="exec", sandbox=sandbox, cwd=str(root), access="unsandboxed", argv=argv, pre=pre)


def test_each_name_is_looked_at_and_what_else_has_it_is_said(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    (root / "build" / "deep").mkdir(parents=True)
    for name in ("build/a", "build/deep/b", "plain", "-odd"):
        (root / name).write_text("x")
    outside = tmp_path / "outside"
    outside.write_text("x")
    os.symlink(outside, root / "link")
    os.symlink(tmp_path, root / "out")
    gone = going(
        unsandboxed(root, "/bin/rm", "-rf", "build", "plain", "link", "out/outside", "gone", str(outside), "--", "-odd")
    )
    found = gone.going
    assert (gone.more, gone.unknown) == (0, [])
    undo = "undo brings it back, unless it is too large to be kept"
    assert [(os.path.relpath(one.path, root), one.what, one.kept) for one in found] == [
        ("build", "a folder with 2 files", undo),
        ("plain", "a file", undo),
        ("link", "a link", undo),
        ("../outside", "a file", ""),
        ("gone", "not there now", "so nothing goes"),
        ("../outside", "a file", ""),
        ("-odd", "a file", undo),
    ]
    os.link(outside, tmp_path / "second")
    (linked,) = going(unsandboxed(root, "rm", str(outside))).going
    assert linked.kept == "its content has 1 other name on this disk (a hard link)"
    found = going(unsandboxed(root, "rm", "-rf", "plain", ".", kept=True)).going
    assert [one.kept for one in found] == [undo, ""], "the worktree itself is more than undo brings back"
    assert [one.kept for one in going(unsandboxed(root, "rm", "plain", kept=False)).going] == [""]
    assert going(unsandboxed(root, "rm", *(f"n{n}" for n in range(MOST + 3)))).more == 3
    assert going(unsandboxed(root, "rm", "a\0b")).going[0].what == "cannot be looked at (a name that cannot be)"


@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("rm -r build", ["build"]),
        ("rm *.o", []),
        ("rm $HOME/x", []),
        ("rm a; rm b", ["a", "b"]),
        ("cd sub && rm a", ["a"]),
        ("echo rm a", []),
    ],
)
def test_plain_words_are_understood_wherever_in_a_script(tmp_path: Path, script: str, names: list[str]) -> None:
    sandbox = Profile(worktree=str(tmp_path))
    action = ShellAction(tool="shell", sandbox=sandbox, cwd=str(tmp_path), access="unsandboxed", script=script)
    assert [os.path.basename(one.path) for one in going(action).going] == names


def test_the_home_of_the_run_is_looked_into_and_what_only_a_run_knows_is_said(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    script = "rm -rf ~/work; rm -f *.log " + " ".join(f"$x{n}" for n in range(MOST))
    action = ShellAction(
        tool="shell",
        sandbox=Profile(worktree=str(tmp_path)),
        cwd=str(tmp_path),
        access="unsandboxed",
        script=script,
        env={"HOME": str(tmp_path)},
    )
    gone = going(action)
    assert [(one.path, one.what) for one in gone.going] == [(f"{tmp_path}/work", "a folder with 0 files")]
    assert (gone.unknown[:2], len(gone.unknown), gone.unknown_more) == (["*.log", "$x0"], MOST, 1)


def test_the_first_files_of_a_folder_are_named(tmp_path: Path) -> None:
    for name in ("b/deep/z", "b/a", *(f"m/{n}" for n in range(20))):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    found = going(unsandboxed(tmp_path, "rm", "-r", "b", "m", "b/a")).going
    assert [one.files for one in found] == [["a", "deep/z"], ["0", "1", "10", "11", "12", "13", "14", "15"], []]
    assert found[1].what == "a folder with 20 files"


def test_a_call_inside_the_sandbox_is_not_looked_at(tmp_path: Path) -> None:
    sandbox = Profile(worktree=str(tmp_path), sandboxed=True)
    action = ExecAction(tool="exec", sandbox=sandbox, cwd=str(tmp_path), argv=("rm", "x"), access="network")
    assert going(action) == Gone([], 0, [], 0)


def test_what_goes_is_named_where_the_kernel_finds_it(tmp_path: Path) -> None:
    for name in ("tree", "near/keep", "far/inner", "far/keep"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "far/keep/file").write_text("x")
    os.symlink(tmp_path / "far/inner", tmp_path / "near/link")
    (one,) = going(unsandboxed(tmp_path / "tree", "rm", "-r", f"{tmp_path}/near/link/../keep/")).going
    assert (one.path, one.what) == (f"{tmp_path}/far/keep", "a folder with 1 file")
