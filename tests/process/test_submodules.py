"""Submodules in a session: their files and a git of their own from the person's clone, and their commits back there."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.domain.denied import Denied
from harness.workspace.clone.repository_notes import look
from harness.workspace.git.errors import CannotKeep, MovesSubmodule, UnsavedWork
from harness.workspace.git.run import head_commit, open_repository
from harness.workspace.merge import checkout, merge
from harness.workspace.merge.merge import MergeRequest, MergeResult, commit_all
from harness.workspace.private_git.private_gitdir import Worktree, publish
from harness.workspace.tree import remove
from harness.workspace.tree.diff import diff
from harness.workspace.tree.worktrees import Start, create
from tests.fleetlib import fleet, play, wait_for
from tests.process.test_workspace_worktrees import agent, git, repository, session


def notes(repo: Path) -> str:
    found = open_repository(repo)
    return "\n".join(look(found, head_commit(found)))


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    """A repository with a submodule that has one itself."""
    inner = repository(tmp_path / "inner", **{"deep.txt": "deep\n"})
    lib = repository(tmp_path / "lib", **{"lib.py": "x = 1\n", ".gitignore": "*.log\n"})
    git(lib, "submodule", "--quiet", "add", str(inner), "inner")
    git(lib, "commit", "-qm", "inner")
    repo = repository(tmp_path / "repo")
    git(repo, "submodule", "--quiet", "add", str(lib), "vendor/lib")
    git(repo, "submodule", "--quiet", "update", "--init", "--recursive")
    git(repo, "commit", "-qm", "lib")
    return repo


@pytest.mark.sandbox
def test_submodules_are_filled_from_the_clone_and_cost_nobody_a_word(tmp_path: Path, nested: Path) -> None:
    assert "2 submodules (vendor/lib, vendor/lib/inner): their files are in" in notes(nested)
    tree = session(tmp_path, nested)
    assert (tree.dirty, (tree.root / "vendor/lib/inner/deep.txt").read_text()) == (0, "deep\n")
    assert agent(tree, "git status --porcelain; git add -A; git diff --cached --name-only") == ""
    assert agent(tree, "cat vendor/lib/lib.py; echo b >b; git add -A; git commit -qm b") == "x = 1\n"
    publish(tree)
    assert [one.path for one in diff(tree).files] == ["b"]
    agent(tree, "git -C vendor/lib checkout -q -- . && echo 'x = 2' >vendor/lib/lib.py")
    with pytest.raises(UnsavedWork) as refused:
        remove.remove(tree, "s1")
    assert refused.value.files == ["vendor/lib/lib.py"]
    with pytest.raises(CannotKeep, match=r"vendor/lib/lib\.py is in a submodule"):
        commit_all(tree, "all")


def test_a_session_works_with_its_submodules(nested: Path) -> None:
    with fleet() as f:
        script = "cp vendor/lib/lib.py y; cd vendor/lib; echo n >n; git add n; git commit -qm n; cd ../..; git add -A"
        turn = [("shell", {"script": f"{script}; git commit -qm y"})]
        sid = f.launch(play(turn, "Done."), repo=nested, checks=("test -f vendor/lib/inner/deep.txt", "test -f y"))
        f.wait_state(sid, "done")
        out = f.run("merge", sid)
        assert f"vendor/lib: bring to its new commit with git -C {nested} submodule update" in out.stdout
        update(nested)
        assert (nested / "vendor/lib/n").read_text() == "n\n"
        assert (nested / "y").read_text() == "x = 1\n"
        f.run("rm", sid)


def test_a_submodule_that_the_clone_lacks_is_named_with_what_to_do(tmp_path: Path, nested: Path) -> None:
    git(tmp_path, "clone", "-q", str(nested), "clone")
    assert "1 submodule (vendor/lib) not in your clone" in notes(tmp_path / "clone")
    assert not list((session(tmp_path, tmp_path / "clone").root / "vendor/lib").iterdir())


@pytest.mark.parametrize("name", ["../../outside", "/etc", "x/../../y", "linked"])
def test_a_submodules_name_leads_nowhere_but_below(tmp_path: Path, nested: Path, name: str) -> None:
    (nested / ".git" / "modules" / "linked").symlink_to(tmp_path / "lib" / ".git")
    text = f'[submodule "{name}"]\n\tpath = vendor/lib\n\turl = ext::touch {tmp_path}/ran\n\tupdate = !touch x\n'
    (nested / ".gitmodules").write_text(text)
    git(nested, "commit", "-qam", "hostile")
    tree = session(tmp_path, nested)
    assert not list((tree.root / "vendor/lib").iterdir())
    assert not (tmp_path / "ran").exists()


def commit_in(tree: Worktree, path: str = "vendor/lib", word: str = "two") -> str:
    """The agent commits in a submodule and then, upwards, in all above; the submodule's commit."""
    folders = [path, *(str(one) for one in Path(path).parents)]
    lines = [
        f"cd {path} && echo '# {word}' >>new.txt && git add new.txt && git commit -qm {word} && git rev-parse HEAD"
    ]
    lines += [f"(cd $ROOT/{one} && git add -A && git commit -qm {word})" for one in folders[1:] if one != "vendor"]
    return agent(tree, "ROOT=$PWD; " + " && ".join(lines)).strip()


def merged(tree: Worktree) -> None:
    wish = MergeRequest("merge", tree.repo)
    seen, place = merge.survey(tree, "s1", wish)
    assert place is not None
    assert seen.uncommitted == ()
    found = merge.make(tree, place, seen.head, wish, "s1", "goal", merge.Rules(), None)
    assert isinstance(found, MergeResult)
    (tree.private.parent / "m").mkdir(exist_ok=True)
    merge.lay_out(tree, found.commit, tree.private.parent / "m" / "tree")
    checkout.move(place, place.onto, found.commit, "m1", tree.private.parent)


def update(repo: Path) -> None:
    """As a person does, with no network and no other repository to fetch from."""
    for name in ("lib", "inner"):
        (repo.parent / name).rename(repo.parent / f"{name}-away")
    git(repo, "submodule", "--quiet", "update", "--recursive")


@pytest.mark.sandbox
def test_git_works_inside_a_submodule(tmp_path: Path, nested: Path) -> None:
    tree = session(tmp_path, nested)
    assert agent(tree, "cd vendor/lib && git status --porcelain && git log --format=%s origin/main") == "inner\none\n"
    out = agent(
        tree, "cd vendor/lib && echo 'x = 2' >lib.py && git diff --stat && git status --short; git -C ../.. status -s"
    )
    assert out.count("lib.py") == 2
    assert out.endswith(" m vendor/lib\n")
    assert agent(tree, "git submodule status --recursive").count("vendor/lib") == 2
    assert [one.path for one in diff(tree).files] == ["vendor/lib/lib.py"]


@pytest.mark.sandbox
@pytest.mark.parametrize("path", ["vendor/lib", "vendor/lib/inner"])
def test_commits_inside_are_kept_and_merged_and_the_clone_needs_no_network(
    tmp_path: Path, nested: Path, path: str
) -> None:
    tree = session(tmp_path, nested)
    made = commit_in(tree, path)
    publish(tree)
    assert "+Subproject commit" in diff(tree).patch
    assert agent(tree, "git status --porcelain") == ""
    merged(tree)
    assert (tree.private.parent / "m" / "tree" / path / "new.txt").read_text() == "# two\n"
    update(nested)
    assert git(nested / path, "rev-parse", "HEAD") == made
    assert git(nested, "status", "--porcelain") == ""
    remove.remove(tree, "s1")
    git(nested / path, "fsck", "--strict")
    git(nested / path, "gc", "-q", "--prune=now")
    assert git(nested / path, "cat-file", "-t", made) == "commit"


@pytest.mark.sandbox
def test_a_commit_that_no_commit_of_the_repository_names_is_kept_too(tmp_path: Path, nested: Path) -> None:
    tree = session(tmp_path, nested)
    first = agent(tree, "cd vendor/lib && echo a >a && git add a && git commit -qm a && git rev-parse HEAD").strip()
    publish(tree)
    other = agent(
        tree,
        "cd vendor/lib && git checkout -q -b x HEAD~ && echo b >b && git add b && git commit -qm b && git rev-parse x",
    ).strip()
    with pytest.raises(UnsavedWork, match=r"vendor/lib/b"):
        remove.remove(tree, "s1")
    assert remove.remove(tree, "s1", force_keep=True)
    assert {git(nested / "vendor/lib", "cat-file", "-t", one) for one in (first, other)} == {"commit"}
    refs = git(nested / "vendor/lib", "for-each-ref", "--format=%(objectname)", "refs/watchfloor/work/")
    assert {*refs.split()} == {first, other}


@pytest.mark.sandbox
def test_a_fork_has_the_commits_of_its_parents_submodules(tmp_path: Path, nested: Path) -> None:
    tree = session(tmp_path, nested)
    made = commit_in(tree)
    head = publish(tree).head
    place = (tmp_path / "state/worktrees/s2", "watchfloor/s2", tmp_path / "state/sessions/s2/git/private")
    fork = create(nested, *place, Start(tree.base, head, head))
    assert agent(fork, "git status --porcelain; git -C vendor/lib rev-parse HEAD").strip() == made
    commit_in(fork, word="three")
    publish(fork)
    remove.remove(tree, "s1", pushed=[head])
    merged(fork)
    update(nested)
    assert (nested / "vendor/lib/new.txt").read_text() == "# two\n# three\n"


@pytest.mark.sandbox
def test_a_submodule_that_git_did_not_absorb_has_its_commits_back_too(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    repository(repo / "lib", **{"lib.py": "x = 1\n"})
    git(repo, "add", "lib")
    git(repo, "commit", "-qm", "embedded")
    assert "1 submodule (lib): their files are in" in notes(repo)
    tree = session(tmp_path, repo)
    made = commit_in(tree, "lib")
    publish(tree)
    merged(tree)
    assert git(repo / "lib", "cat-file", "-t", made) == "commit"


@pytest.mark.sandbox
def test_a_commit_that_the_clone_cannot_have_is_not_merged(tmp_path: Path, nested: Path) -> None:
    tree = session(tmp_path, nested)
    agent(tree, f"git update-index --cacheinfo 160000,{'5' * 40},vendor/lib && git commit -qm gone")
    head = publish(tree).head
    wish = MergeRequest("merge", tree.repo)
    _, place = merge.survey(tree, "s1", wish)
    assert place is not None
    with pytest.raises(MovesSubmodule, match="which your clone has not"):
        merge.make(tree, place, head, wish, "s1", "goal", merge.Rules(), None)


@pytest.mark.sandbox
def test_a_git_that_the_agent_puts_there_itself_is_work_and_runs_nothing(tmp_path: Path, nested: Path) -> None:
    tree = session(tmp_path, nested)
    agent(tree, "cd vendor/lib && rm .git && git init -q && git add -A && git config core.fsmonitor 'touch ran'")
    publish(tree)
    with pytest.raises(UnsavedWork, match=r"vendor/lib/"):
        remove.remove(tree, "s1")
    assert not list(tree.root.rglob("ran"))


@pytest.mark.sandbox
@pytest.mark.parametrize("part", ["modules", "modules/0", "modules/0/objects"])
def test_a_link_in_place_of_its_git_takes_nothing_from_elsewhere(tmp_path: Path, nested: Path, part: str) -> None:
    tree = session(tmp_path, nested)
    other = repository(tmp_path / "other", secret="secret")
    secret = git(other, "rev-parse", "HEAD")
    elsewhere = {"modules": tmp_path / "m", "modules/0": other / ".git", "modules/0/objects": other / ".git/objects"}
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "0").symlink_to(other / ".git")
    agent(tree, f"cd $(git rev-parse --git-dir) && echo {secret} >modules/0/HEAD && mv {part} away")
    (tree.private / part).symlink_to(elsewhere[part])
    publish(tree)
    with pytest.raises(AssertionError):
        git(nested / "vendor/lib", "cat-file", "-t", secret)


@pytest.mark.sandbox
def test_a_session_that_is_denied_something_sees_no_objects_of_submodules(tmp_path: Path, nested: Path) -> None:
    place = (tmp_path / "state/worktrees/s1", "watchfloor/s1", tmp_path / "state/sessions/s1/git/private")
    tree = create(nested, *place, denied=Denied(paths=("vendor/lib/lib.py",)))
    assert (tree.root / "vendor/lib/inner/deep.txt").is_file()
    assert not (tree.root / "vendor/lib/lib.py").exists()
    assert not (tree.root / "vendor/lib/.git").exists()


def test_an_undo_takes_back_a_commit_in_a_submodule_and_loses_none(nested: Path) -> None:
    with fleet() as f:
        script = "cd vendor/lib; echo n >n; git add n; git commit -qm n; git rev-parse HEAD >../../made; cd ../.."
        sid = f.launch(play([("shell", {"script": f"{script}; git add .; git commit -qm y"})], "Done."), repo=nested)
        root = Path(f.wait_state(sid, "done")["worktree"])
        made = (root / "made").read_text().strip()
        f.run("undo", sid)
        assert not (root / "vendor/lib/n").exists()
        assert git(nested / "vendor/lib", "cat-file", "-t", made) == "commit"
        wait_for("the branch is back, too", lambda: "Subproject" not in f.run("diff", sid).stdout)
