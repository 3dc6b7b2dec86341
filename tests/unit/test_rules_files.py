"""Files of rules behind links and with imports: followed inside the worktree, within limits; the rest is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.brain.context.project_rules import MOST_BYTES, layer, news
from harness.events import types as t
from harness.projections.state import project_rules
from harness.reports.describe import describe
from harness.supervisor.calls.repository.project_rules import left_out, read
from harness.supervisor.sessions.begin import launch_request
from harness.workspace.git.run import Git
from harness.workspace.tree.project_rules_files import MOST_BROUGHT_IN, MOST_READ, MOST_SHOWN
from tests.fleetlib import git, make_repository


def write(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_link_inside_the_worktree_is_followed_and_its_folder_counts_for_imports(tmp_path: Path) -> None:
    root = write(tmp_path, {"docs/rules.md": "Rules.\n@style.md\n@top.md\n", "docs/style.md": "S", "top.md": "T"})
    (root / "AGENTS.md").symlink_to("docs/rules.md")
    (root / "sub").mkdir()
    (root / "sub" / "CLAUDE.md").symlink_to("../AGENTS.md")
    (root / "linked").symlink_to("docs")
    (root / "via").symlink_to("linked/rules.md")
    for path in ("AGENTS.md", "via", "linked/rules.md", "sub/CLAUDE.md"):
        found = read(root, path)
        assert (found.real, found.text) == ("docs/rules.md", "Rules.\n@style.md\n@top.md\n")
        assert found.parts[0].path == "docs/style.md"
    assert read(root, "sub/CLAUDE.md").left_out == ["top.md: not there"]
    assert [part.path for part in read(root, "AGENTS.md").parts] == ["docs/style.md", "top.md"]


def test_imports_are_relative_to_the_file_that_names_them(tmp_path: Path) -> None:
    files = {
        "CLAUDE.md": "See @docs/a.md, and (not @docs/none)\n",
        "docs/a.md": "A @../b.md @sub/c.md.",
        "b.md": "B",
        "docs/sub/c.md": "C",
    }
    found = read(write(tmp_path, files), "CLAUDE.md")
    assert [(part.path, part.by) for part in found.parts] == [
        ("docs/a.md", "CLAUDE.md"),
        ("b.md", "docs/a.md"),
        ("docs/sub/c.md", "docs/a.md"),
    ]
    assert found.left_out == []
    shown = layer([found])
    for text in ("A @../b.md", "--- b.md (1 bytes, brought in by docs/a.md) ---\nB\n", "--- docs/sub/c.md"):
        assert text in shown
    assert "B\n--- end of b.md" in news(found)


IN_CODE = """\
`@code.md` and ``a ` @code.md``

```md
@code.md
~~~
@code.md
```
~~~~
@code.md
~~~
@code.md
~~~~

    @code.md

mail me@code.md \\@code.md x@code.md
@types/node @org/package @ @. @code
"""


def test_nothing_in_code_and_no_address_is_an_import(tmp_path: Path) -> None:
    root = write(
        tmp_path, {"CLAUDE.md": IN_CODE + "a ` alone\n\n- one\n\n    @yes.md\n\n`\n", "code.md": "C", "yes.md": "Y"}
    )
    found = read(root, "CLAUDE.md")
    assert [part.path for part in found.parts] == ["yes.md"]
    assert found.left_out == []


def test_a_sandbox_without_an_end_goes_to_the_end(tmp_path: Path) -> None:
    root = write(tmp_path, {"CLAUDE.md": "@a.md\n````\n@b.md\n```\n@b.md\n", "a.md": "A", "b.md": "B"})
    assert [part.path for part in read(root, "CLAUDE.md").parts] == ["a.md"]


def test_what_is_left_out_is_said_with_its_reason(tmp_path: Path) -> None:
    root = write(tmp_path / "w", {"docs/x.md": "x", "loop.md": "@CLAUDE.md", "nul.md": "a\0b"})
    (tmp_path / "secret.md").write_text("secret")
    with open(root / "huge.md", "wb") as file:
        file.truncate(MOST_READ + 1)
    os.mkfifo(root / "pipe.md")
    (root / "out.md").symlink_to("../secret.md")
    (root / "abs.md").symlink_to(tmp_path / "secret.md")
    (root / "self.md").symlink_to("self.md")
    (root / "folder.md").symlink_to("docs")
    names = [
        "~/mine.md",
        "/etc/passwd",
        "../secret.md",
        "out.md",
        "abs.md",
        "self.md",
        "folder.md",
        "pipe.md",
        "huge.md",
        "nul.md",
        "none.md",
        "loop.md",
    ]
    write(root, {"CLAUDE.md": "\n".join(f"@{name}" for name in names)})
    found = read(root, "CLAUDE.md")
    assert found.left_out == [
        "~/mine.md: outside the worktree",
        "/etc/passwd: outside the worktree",
        "../secret.md: outside the worktree",
        "out.md: outside the worktree",
        "abs.md: outside the worktree",
        "self.md: a link that leads to itself",
        "folder.md: no file",
        "pipe.md: no file",
        "huge.md: larger than 1 MiB",
        "nul.md: no text",
        "none.md: not there",
        "CLAUDE.md: brings itself in",
    ]
    assert "secret" not in layer([found]).replace("secret.md", "")
    said = describe(t.Record(1, "", "", 0, found)).summary
    assert "left out: ~/mine.md: outside the worktree; " in said


def test_depth_and_size_are_bounded(tmp_path: Path) -> None:
    chain = {f"{n}.md": f"deep {n} @{n + 1}.md" for n in range(8)}
    found = read(write(tmp_path / "deep", {"CLAUDE.md": "@0.md", **chain}), "CLAUDE.md")
    assert [part.path for part in found.parts] == ["0.md", "1.md", "2.md", "3.md", "4.md"]
    assert found.left_out == ["5.md: deeper than 5 imports"]
    wide = {f"{n}.md": f"{n}" * 5000 for n in range(9)}
    root = write(tmp_path / "wide", {"CLAUDE.md": " ".join(f"@{name}" for name in wide), **wide})
    found = read(root, "CLAUDE.md")
    assert sum(len(part.text) for part in found.parts) == MOST_BROUGHT_IN
    assert found.left_out[-1] == "8.md: what is brought in has 16 KiB already"
    assert len(layer([found]).encode()) <= MOST_BYTES + 1200


def test_the_same_file_is_shown_once_however_often_it_is_named(tmp_path: Path) -> None:
    root = write(
        tmp_path, {"AGENTS.md": "The rules.", "CLAUDE.md": "@AGENTS.md\n@a.md @b.md", "a.md": "@b.md", "b.md": "B"}
    )
    both = [read(root, "AGENTS.md"), read(root, "CLAUDE.md")]
    assert layer(both).count("The rules.") == 1
    assert [part.path for part in both[1].parts] == ["AGENTS.md", "a.md", "b.md"]
    assert both[1].left_out == []


def test_a_file_that_was_brought_in_or_linked_to_is_read_again_when_it_changes(tmp_path: Path) -> None:
    root = write(tmp_path, {"CLAUDE.md": "@docs/a.md", "docs/a.md": "A", "docs/r.md": "R"})
    (root / "AGENTS.md").symlink_to("docs/r.md")
    rules = project_rules.Rules().at_start(["AGENTS.md", "CLAUDE.md"])
    for path in rules.due:
        rules = rules.taken(read(root, path))
    assert rules.edited(["docs/other.md"]).due == ()
    assert rules.edited(["docs/a.md"]).due == ("CLAUDE.md",)
    assert rules.seen_changed(["docs/r.md"]).due == ("AGENTS.md",)


def test_a_launch_says_what_of_the_rules_is_left_out(tmp_path: Path) -> None:
    repo = make_repository(
        tmp_path / "repo", {"docs/rules.md": "Rules @~/mine.md", "CLAUDE.md": "@none.md @docs/rules.md"}
    )
    (repo / "AGENTS.md").symlink_to("docs/rules.md")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "link")
    (repo / "none.md").write_text("in no commit")
    checked = launch_request.check(launch_request.LaunchRequest(repo=str(repo), goal="x"))
    assert list(checked.notes) == [
        "AGENTS.md leaves out ~/mine.md: outside the worktree",
        "CLAUDE.md leaves out none.md: not there; ~/mine.md: outside the worktree",
    ]
    for path in ("AGENTS.md", "CLAUDE.md"):
        (repo / path).unlink()
    (repo / "CLAUDE.md").symlink_to("/etc/passwd")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "away")
    assert left_out(Git(repo / ".git"), "HEAD") == ["CLAUDE.md leaves out CLAUDE.md: outside the worktree"]


@given(st.text(alphabet="@`~ab/.\n \\-", max_size=200))
def test_no_text_breaks_the_reading_of_imports(text: str) -> None:
    class OneFile:
        def link_at(self, path: str) -> str | None:
            return None

        def read(self, path: str, limit: int) -> bytes:
            return text.encode()

    from harness.workspace.tree import project_rules_files

    found = project_rules_files.read(OneFile(), "CLAUDE.md")
    assert len(found.parts) <= 20
    assert sum(len(part.text) for part in found.parts) <= MOST_BROUGHT_IN + MOST_SHOWN


@pytest.mark.parametrize("name", ["AGENTS.md", "a/CLAUDE.md"])
def test_rules_that_are_links_are_known_of_a_commit(tmp_path: Path, name: str) -> None:
    from harness.supervisor.calls.repository.project_rules import known
    from harness.workspace.tree import worktrees

    repo = make_repository(tmp_path / "repo", {"rules.md": "R", "a/x": "x"})
    (repo / name).symlink_to(os.path.relpath(repo / "rules.md", (repo / name).parent))
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "link")
    tree = worktrees.create(repo, tmp_path / "w" / "s1", "watchfloor/s1", tmp_path / "s1" / "private")
    assert known(tree) == [name]
    assert read(tree.root, name).text == "R"
