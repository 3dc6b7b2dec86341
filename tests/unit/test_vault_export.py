"""A kept state as a commit: whatever agents do to their files, the commit holds what lies there, by its own steps or at
once.
"""

from __future__ import annotations

import os
import random
import stat
import subprocess
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.executor.git_names import refused_by_git
from harness.vault.export import Frame, quoted
from tests.unit.test_vault_states import Ground, meddle

HEAD = b"commit refs/heads/made\ncommitter A <a@b> 0 +0000\ndata 0\n\n"
MODES = {"100755", "100644", "120000"}


def git(repo: Path, *args: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["git", "-C", str(repo), *args], input=stdin, check=True, capture_output=True).stdout


def lying(work: Path) -> dict[bytes, tuple[str, bytes]]:
    """What a commit of the folder has to hold."""
    found: dict[bytes, tuple[str, bytes]] = {}
    for here, _, names in os.walk(os.fsencode(work)):
        for name in names + [n for n in os.listdir(here) if os.path.islink(os.path.join(here, n))]:
            path = os.path.join(here, name)
            mode = os.lstat(path).st_mode
            key = os.path.relpath(path, os.fsencode(work))
            if stat.S_ISLNK(mode):
                found[key] = ("120000", os.readlink(path))
            elif stat.S_ISREG(mode):
                found[key] = ("100755" if mode & stat.S_IXUSR else "100644", Path(os.fsdecode(path)).read_bytes())
    return found


def held(repo: Path) -> dict[bytes, tuple[str, bytes]]:
    """What the newest commit holds."""
    found = {}
    for row in git(repo, "ls-tree", "-r", "-z", "refs/heads/made").split(b"\0")[:-1]:
        about, _, path = row.partition(b"\t")
        mode, _, oid = about.decode().split(" ")
        assert mode in MODES
        found[path] = (mode, git(repo, "cat-file", "blob", oid))
    return found


@settings(max_examples=12, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 4))
def test_a_commit_holds_what_lies_there(pick: random.Random, steps: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        ground = Ground(Path(folder))
        (ground.work / 'a b\n"c\\').write_text("odd name")
        repo = Path(folder) / "repo"
        subprocess.run(["git", "init", "-q", "--bare", str(repo)], check=True, capture_output=True)
        out = Path(folder) / "stream"
        since = ""
        tree = ""
        for _ in range(steps):
            for _ in range(pick.randrange(1, 12)):
                meddle(ground.work, pick)
            line = f'M 040000 {tree} ""\n'.encode() if tree else b""
            taken, done = ground.vault.export(ground.roots, "x", Frame(HEAD, line, since), out)
            assert done.whole == (not since)
            git(repo, "fast-import", "--quiet", "--done", "--force", stdin=out.read_bytes())
            assert held(repo) == {name: value for name, value in lying(ground.work).items() if _kept(name)}
            since = taken.id
            tree = git(repo, "rev-parse", "refs/heads/made^{tree}").decode().strip()
        ground.again()
        ground.vault.export(ground.roots, "x", Frame(HEAD, b"", ""), out)
        git(repo, "fast-import", "--quiet", "--done", "--force", stdin=out.read_bytes())
        assert git(repo, "rev-parse", "refs/heads/made^{tree}").decode().strip() == tree


def _kept(name: bytes) -> bool:
    return not any(refused_by_git(part) for part in os.fsdecode(name).split("/"))


def test_what_git_takes_into_no_commit_stays_out_and_what_is_too_large_is_counted(tmp_path: Path) -> None:
    from harness.vault.limits import VaultLimits

    ground = Ground(tmp_path, VaultLimits(file_bytes=1000))
    for name in ("nested/.git/config", "nested/.GIT/x", ".venv/lib/x.py", "kept.txt", "sub/__pycache__/y.pyc"):
        (ground.work / name).parent.mkdir(parents=True, exist_ok=True)
        (ground.work / name).write_text("x")
    (ground.work / "large.bin").write_bytes(bytes(5000))
    os.mkfifo(ground.work / "pipe")
    os.symlink("/etc/passwd", ground.work / ".gitmodules")
    repo = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", "--bare", str(repo)], check=True, capture_output=True)
    _, done = ground.vault.export(ground.roots, "x", Frame(HEAD, b"", ""), tmp_path / "stream")
    git(repo, "fast-import", "--quiet", "--done", stdin=(tmp_path / "stream").read_bytes())
    assert set(held(repo)) == {b"kept.txt"}
    assert (done.names, done.left_out) == (1, 1)


def test_a_path_is_quoted_as_git_reads_it() -> None:
    assert quoted(b'a "b"\\\nc') == b'"a \\"b\\"\\\\\\nc"'
