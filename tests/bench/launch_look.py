"""What a launch looks at in a repository of 50,000 files with 40 submodules, beside git listing its files."""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from harness.workspace.clone.repository_notes import look
from harness.workspace.git.run import Git, head_commit, open_repository
from tests.bench.table import Figure, bench
from tests.fleetlib import git, make_repository

_FOLDERS = 500
_FILES = 100
_SUBMODULES = 40
_REACH_S = 1.0


def _large(root: Path) -> Path:
    lib = make_repository(root / "lib")
    repo = make_repository(root / "repo")
    git(repo, "config", "gc.auto", "0")
    for folder in range(_FOLDERS):
        (repo / f"d{folder}").mkdir()
        for file in range(_FILES):
            (repo / f"d{folder}" / f"f{file}").write_text(f"{folder} {file}\n")
    at = git(lib, "rev-parse", "HEAD").strip()
    names = [f"s{number}" for number in range(_SUBMODULES)]
    for name in names:
        shutil.copytree(lib / ".git", repo / ".git" / "modules" / name)
    lines = [f'[submodule "{name}"]\n\tpath = {name}\n\turl = ../lib\n' for name in names]
    (repo / ".gitmodules").write_text("".join(lines))
    git(repo, "add", "-A")
    links = "".join(f"160000 {at}\t{name}\n" for name in names)
    subprocess.run(["git", "update-index", "--index-info"], cwd=repo, input=links, text=True, check=True)
    git(repo, "commit", "-q", "-m", "large")
    return repo


def _timed(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


@bench("launch_look")
def launch_look() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as root:
        repository = open_repository(_large(Path(root)))
        commit = head_commit(repository)
        found = look(repository, commit)
        took = [_timed(lambda: look(repository, commit)) for _ in range(5)]
        plain = Git(repository.git_dir)
        listed = [_timed(lambda: plain.run("ls-tree", "-r", "-z", "--full-tree", commit)) for _ in range(5)]
    assert found[0].startswith(f"{_SUBMODULES} submodules")
    name = "look at a launch, 50,000 files and 40 submodules, beyond git's own listing"
    beyond = [one - statistics.median(listed) for one in took]
    return [Figure(name, "s", beyond, "≤ 1.0 s", max(beyond) <= _REACH_S, listed, "git ls-tree")]
