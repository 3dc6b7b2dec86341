"""What keeping the state before a call costs: time and processes of a snapshot, room on the disk, and a call with it
beside one without.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness.vault.limits import VaultLimits
from harness.vault.scan import Root
from harness.vault.vault import Vault
from tests.bench.table import Figure, bench, percentile, ratio
from tests.process.keeperlib import keepers
from tests.process.undolib import GIT, Session, repository

FILES = 10_000
CHANGED = 10
SNAPSHOTS = 1000
ROUNDS = 40
CALLS = 15
TURNS = 3


def _tree(root: Path) -> list[Path]:
    """Ten thousand small files in two hundred folders."""
    pick = random.Random(5)
    made = []
    for number in range(FILES):
        path = root / f"pkg{number % 200:03d}" / f"mod{number:05d}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(pick.randbytes(pick.randrange(200, 4000)))
        made.append(path)
    return made


def _change(files: list[Path], pick: random.Random) -> int:
    """Ten files get other content; how many bytes that is."""
    size = 0
    for path in pick.sample(files, CHANGED):
        size += path.write_bytes(pick.randbytes(pick.randrange(200, 4000)))
    return size


def _vault_pids(keeper: int) -> set[str]:
    return set(Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split())


@bench("undo-snapshot")
def snapshot() -> list[Figure]:
    """Through a real keeper's socket, as the gate asks for it; git works on the same tree with an index of its own."""
    took = []
    git = []
    children = set[str]()
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as base, keepers(Path(base)) as fleet:
        session = Session(fleet, repository(Path(base) / "repo", {"README.md": "x\n"}))
        files = _tree(session.root)
        pick = random.Random(6)
        env = {**GIT, "GIT_DIR": f"{base}/private.git", "GIT_WORK_TREE": str(session.root)}
        subprocess.run(["git", "init", "-q", "--bare", f"{base}/private.git"], env=GIT, check=True)
        subprocess.run(["git", "add", "-A"], env=env, cwd=session.root, check=True)
        session.link.call("snapshot", label="first")
        for _ in range(ROUNDS):
            _change(files, pick)
            start = time.perf_counter()
            session.link.call("snapshot", label="round")
            took.append((time.perf_counter() - start) * 1e3)
            children |= _vault_pids(session.pid)
            start = time.perf_counter()
            subprocess.run(["git", "add", "-A"], env=env, cwd=session.root, check=True)
            git.append((time.perf_counter() - start) * 1e3)
    ok = percentile(took, 0.5) <= 15 and ratio(took, git) <= 1
    return [
        Figure(
            "snapshot before a call, 10,000 files, 10 changed",
            "ms",
            took,
            "≤ 15 ms, ≤ 1×",
            ok,
            git,
            "`git add -A` into a private index",
            ratio(took, git),
        ),
        Figure(
            f"processes for {ROUNDS} of these snapshots", "", [float(len(children))], "≤ 2 each", len(children) <= 2
        ),
    ]


@bench("undo-disk")
def disk() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as base:
        work = Path(base) / "work"
        pick = random.Random(7)
        files = _tree(work)
        vault = Vault(Path(base) / "vault", VaultLimits())
        roots = (Root(b"w", str(work)),)
        vault.take(roots, "first")
        first = vault.stored
        changed = 0
        for number in range(SNAPSHOTS):
            changed += _change(files, pick)
            vault.take(roots, f"c{number}.0")
        grown = vault.stored - first
        vault.close()
    figure = f"disk for {SNAPSHOTS:,} snapshots, 10 of 10,000 files changed each"
    return [
        Figure(
            figure,
            "MB",
            [grown / 1e6],
            "≤ 2×",
            grown <= 2 * changed,
            [changed / 1e6],
            "the changed bytes",
            grown / changed,
        )
    ]


_ONE_CALL = r"""
import os, sys, time
from pathlib import Path
tree, base, work, rounds = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4])
sys.path.insert(0, tree)
from harness.sandbox import bubblewrap
from harness.protocol.paths import Folders, ensure_private
from harness.keeper import main
from tests.process.keeperlib import Link, action, allowed
sid = "benchsess0"
folders = Folders(base / "state", base / "run", base / "config")
for path in (folders.state, folders.runtime, folders.config, folders.state / "sessions"):
    ensure_private(path)
folder = folders.session(sid)
(folder.root / "git").mkdir(parents=True, mode=0o700)
folder.root.chmod(0o700)
(folder.root / "git" / "workspace.json").write_text('{"root": "%s"}' % work)
read, write = os.pipe()
pid = os.fork()
if pid == 0:
    os.close(read)
    try:
        main.serve(folder, sid, lambda me: os.close(write))
    finally:
        os._exit(0)
os.close(write)
os.read(read, 1)
link = Link(folder.keeper_socket)
link.hello("supervisor", epoch=1)
link.call("subscribe", after=-1)
files = sorted(work.rglob("*.py"))[:10]
def ended(call_id):
    lines = (line for push in link.pushes if push["push"] == "events" for line in push["lines"])
    return any('"tool.ended"' in line and call_id in line for line in lines)
profile = bubblewrap.profile(str(work), [], [], [])
if not isinstance(profile, dict):  # as it is at the commit that is the yardstick
    profile = profile.to_wire()
for number in range(rounds + 1):
    for path in files:
        path.write_bytes(path.read_bytes() + b"x")
    call_id = f"c{number}.0"
    env = bubblewrap.environment(str(work))
    what = action(work, call_id, ["true"], sid=sid, access="sandbox", env=env, sandbox=profile, pre={})
    link.append(*allowed(what))
    link.pushes.clear()
    start = time.perf_counter()
    link.call("execute", call_id=call_id)
    while not ended(call_id):
        link.read_some()
    if number:
        print((time.perf_counter() - start) * 1e3, flush=True)
link.send("shutdown")
os.waitpid(pid, 0)
"""
_BEFORE = "2b62f36"
"""The last commit whose calls keep no state: the yardstick."""


@bench("undo-call")
def call() -> list[Figure]:
    """One sandboxed ``true`` from `execute` to the record of its end, now and as it was before anything was kept, by
    turns, in a tree of 10,000 files.
    """
    here = Path(__file__).parents[2]
    now: list[float] = []
    then: list[float] = []
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as base:
        old = Path(base) / "old"
        subprocess.run(
            ["git", "worktree", "add", "-q", "--detach", str(old), _BEFORE], cwd=here, check=True, capture_output=True
        )
        try:
            work = Path(base) / "work"
            _tree(work)
            for turn in range(TURNS):
                for tree, took in ((old, then), (here, now)):
                    took += _calls(tree, Path(base) / f"{turn}{tree.name}", work)
        finally:
            subprocess.run(
                ["git", "worktree", "remove", "--force", str(old)], cwd=here, check=True, capture_output=True
            )
    name = "a sandboxed call in 10,000 files, 10 changed"
    return [
        Figure(
            name, "ms", now, "≤ 1.2×", ratio(now, then) <= 1.2, then, f"the same call at {_BEFORE}", ratio(now, then)
        )
    ]


def _calls(tree: Path, base: Path, work: Path) -> list[float]:
    base.mkdir()
    command = [sys.executable, "-P", "-s", "-E", "-c", _ONE_CALL, str(tree), str(base), str(work), str(CALLS)]
    done = subprocess.run(command, cwd="/", check=True, capture_output=True, text=True, timeout=120)
    return [float(line) for line in done.stdout.split()]
