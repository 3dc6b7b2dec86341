"""Repositories as people have them: what a session gets otherwise than its owner is said, and the rest works."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.events import types as t
from harness.workspace.clone.repository_notes import look
from harness.workspace.git.errors import NotARepository, PartialClone
from harness.workspace.git.run import head_commit, open_repository
from harness.workspace.private_git.private_gitdir import publish
from harness.workspace.tree import worktrees
from harness.workspace.tree.diff import diff
from tests.fleetlib import fleet, play
from tests.process.test_workspace_worktrees import agent, git, repository, session


def notes(repo: Path) -> str:
    found = open_repository(repo)
    return "\n".join(look(found, head_commit(found)))


def test_a_plain_repository_needs_no_word(tmp_path: Path) -> None:
    assert not notes(repository(tmp_path / "repo"))


def test_what_a_session_gets_otherwise_is_said_a_line_each(tmp_path: Path) -> None:
    lib = repository(tmp_path / "lib")
    repo = repository(tmp_path / "origin")
    git(repo, "submodule", "--quiet", "add", str(lib), "vendor/lib")
    (repo / ".gitattributes").write_text("# *.raw filter=lfs\n*.bin filter=lfs diff=lfs -text\n")
    (repo / "x.bin").write_text("version https://git-lfs.github.com/spec/v1\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "two")
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repo}", "shallow")
    git(tmp_path, "clone", "-q", "--shared", str(repo), "shared")
    assert "1 submodule (vendor/lib): their files are in" in notes(repo)
    assert "1 file (x.bin) behind the filter lfs, and what they hold is not in your clone" in notes(repo)
    assert "shallow clone" in notes(tmp_path / "shallow")
    assert f"borrows objects from {repo}/.git/objects" in notes(tmp_path / "shared")


def test_a_sparse_checkout_is_said_and_stays_sparse(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    for folder in ("in", "out"):
        (repo / folder).mkdir()
        (repo / folder / "f").write_text(folder)
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "two")
    git(repo, "sparse-checkout", "set", "in")
    assert "sparse" in notes(repo)
    tree = session(tmp_path, repo)
    assert sorted(path.name for path in tree.root.iterdir()) == [".git", "a.txt", "in"]


@pytest.mark.sandbox
def test_a_shared_configuration_that_says_bare_is_that_of_a_work_tree_inside(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    git(repo, "config", "extensions.worktreeConfig", "true")
    git(repo, "config", "core.bare", "true")
    git(repo, "config", "--worktree", "core.bare", "false")
    (repo / "mine").write_text("mine")
    tree = session(tmp_path, repo)
    assert (tree.repo, tree.dirty) == (repo, 1)
    agent(tree, "echo b > b.txt; git add b.txt; git commit -qm two; git status --porcelain")
    assert publish(tree).moved
    assert git(repo, "show", f"{tree.branch}:b.txt") == "b"


@pytest.mark.sandbox
def test_a_work_tree_that_the_configuration_names_is_not_the_sessions(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--separate-git-dir", "kept.git", "repo")
    repo = tmp_path / "repo"
    git(repo, "config", "core.worktree", str(repo))
    (repo / "a.txt").write_text("a\n")
    git(repo, "add", ".")
    git(repo, "commit", "-qm", "one")
    tree = session(tmp_path, repo)
    assert agent(tree, "git rev-parse --show-toplevel").strip() == str(tree.root)


def test_a_worktree_whose_links_are_relative_is_begun_from_and_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo = repository(tmp_path / "repo")
    git(repo, "worktree", "add", "-q", "../beside")
    (tmp_path / "beside" / ".git").write_text("gitdir: ../repo/.git/worktrees/beside\n")
    (repo / ".git" / "worktrees" / "beside" / "gitdir").write_text("../../../../beside/.git\n")
    tree = session(tmp_path, tmp_path / "beside")
    (tree.root / ".git").write_text(f"gitdir: ../../../repo/.git/worktrees/{tree.admin.name}\n")
    monkeypatch.chdir("/")
    assert worktrees.admin_of(tree.root, tree.common) == tree.admin
    (tree.admin / "gitdir").write_text("../../../../state/worktrees/s1/.git\n")
    assert not worktrees.unmovable(tree.private, tree.root)


@pytest.fixture
def partial(tmp_path: Path) -> Path:
    """A clone without blobs that lacks those of ``origin/other``."""
    origin = repository(tmp_path / "origin")
    git(origin, "config", "uploadpack.allowFilter", "true")
    git(origin, "checkout", "-q", "-b", "other")
    (origin / "far.txt").write_text("far\n")
    git(origin, "add", ".")
    git(origin, "commit", "-qm", "far")
    git(origin, "checkout", "-q", "main")
    git(tmp_path, "clone", "-q", "--filter=blob:none", f"file://{origin}", "clone")
    return tmp_path / "clone"


def test_a_partial_clone_names_the_command_that_brings_a_branchs_files(tmp_path: Path, partial: Path) -> None:
    found = open_repository(partial)
    assert look(found, head_commit(found)) == []
    far = git(partial, "rev-parse", "origin/other")
    with pytest.raises(PartialClone, match="lacks 1 object of commit") as refused:
        look(found, far)
    command = str(refused.value).rpartition(": ")[2].split()
    assert command[:3] == ["git", "-C", str(partial)]
    git(partial, *command[3:])
    assert look(found, far) == []
    place = (tmp_path / "state" / "w" / "s1", "watchfloor/s1", tmp_path / "state" / "s" / "s1" / "git" / "private")
    assert (worktrees.create(partial, *place, at=far).root / "far.txt").read_text() == "far\n"


def test_a_form_of_repository_that_this_git_does_not_know_is_named(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    git(repo, "config", "core.repositoryFormatVersion", "1")
    git(repo, "config", "extensions.tomorrow", "true")
    with pytest.raises(NotARepository, match=r"tomorrow.*install a newer git"):
        head_commit(open_repository(repo))


def test_a_session_of_a_subfolder_runs_there() -> None:
    with fleet() as f:
        repo = f.repository()
        api = repo / "packages" / "api"
        api.mkdir(parents=True)
        (api / "sub").mkdir()
        (api / "sub" / "f").write_text("f\n")
        (api / "marker").write_text("here\n")
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "api")
        (repo / "new").mkdir()
        out = f.run(
            "launch",
            "--repo",
            str(api),
            "--check",
            "test -f marker",
            "--goal",
            play(
                [("write_file", {"path": "made", "content": "here too\n"}), ("search", {"pattern": "here"})],
                [("list_files", {"glob": "m*"}), ("read_file", {"path": "../../packages/api/marker"})],
                [("shell", {"script": "pwd", "cwd": "../.."}), ("shell", {"script": "pwd", "cwd": "sub"})],
                [("shell", {"script": "echo x >y; git add .; git commit -qm y; pwd"})],
                "Done.",
            ),
        )
        assert "launched from packages/api: commands and checks run there" in out.stdout + out.stderr
        sid = f.json("ls")[0]["sid"]
        row = f.wait_state(sid, "done")
        assert row["folder"] == "packages/api"
        assert f.run("open", sid, "--path").stdout.strip() == f"{row['worktree']}/packages/api"
        said = [r.body for r in f.records(sid)]
        assert any(isinstance(b, t.ToolEnded) and b.preview.strip().endswith("/packages/api") for b in said)
        assert any(isinstance(b, t.UserMessage) and "in the folder packages/api" in b.text for b in said)
        gave = [b.preview.strip() for b in said if isinstance(b, t.ToolEnded)]
        assert "made:1:here too\nmarker:1:here" in gave
        assert "made\nmarker" in gave
        assert "1\there" in gave
        assert row["worktree"] in gave
        assert f"{row['worktree']}/packages/api/sub" in gave
        f.run("merge", sid)
        assert (api / "y").read_text() == "x\n"
        late = f.run("launch", "--repo", str(repo / "new"), "--goal", play("Done."))
        assert "commands and checks run at the top" in late.stdout + late.stderr


@pytest.mark.sandbox
def test_a_repository_of_sha256_is_worked_in_and_merged(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q", "-b", "main", "--object-format=sha256")
    lib = tmp_path / "lib"
    lib.mkdir()
    git(lib, "init", "-q", "-b", "main", "--object-format=sha256")
    for folder in (lib, repo):
        (folder / "a.txt").write_text("a\n")
        git(folder, "add", ".")
        git(folder, "commit", "-qm", "one")
    git(repo, "submodule", "--quiet", "add", str(lib), "lib")
    git(repo, "commit", "-qm", "lib")
    tree = session(tmp_path, repo)
    assert len(tree.base) == 64
    agent(tree, "cd lib && echo b >b && git add b && git commit -qm b && cd .. && git add -A && git commit -qm b")
    assert agent(tree, "git status --porcelain; git stash list") == ""
    assert publish(tree).moved
    made = git(repo, "rev-parse", f"{tree.branch}:lib")
    assert git(repo / "lib", "cat-file", "-t", made) == "commit"
    assert diff(tree).files


def test_a_repository_with_refs_in_tables_is_named_with_what_to_do(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    git(repo, "config", "core.repositoryFormatVersion", "1")
    git(repo, "config", "extensions.refStorage", "reftable")
    with pytest.raises(NotARepository, match=r"refstorage.*install a newer git"):
        head_commit(open_repository(repo))


def test_a_launch_through_a_link_and_from_inside_a_submodule() -> None:
    with fleet() as f:
        repo = f.repository()
        api = repo / "packages" / "api"
        api.mkdir(parents=True)
        (api / "marker").write_text("here\n")
        lib = repository(repo.parent / "lib")
        git(repo, "submodule", "--quiet", "add", str(lib), "vendor/lib")
        git(repo, "add", "-A")
        git(repo, "commit", "-qm", "api")
        link = repo.parent / "link"
        link.symlink_to(api)
        linked = f.launch(play("Done."), repo=link, checks=("test -f marker",))
        inside = f.launch(play("Done."), repo=repo / "vendor" / "lib", checks=("test -f a.txt", "git log -1"))
        assert f.wait_state(linked, "done")["folder"] == "packages/api"
        assert "folder" not in f.wait_state(inside, "done")
        f.run("rm", linked)
        f.run("rm", inside)
