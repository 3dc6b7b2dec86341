"""A role that denies paths and branches, from its file to what the agent, a job, a check and a fork can read."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from harness.events import types as t
from tests.fleetlib import Fleet, fleet, make_repository, play

pytestmark = pytest.mark.timeout(300)
HUSH = "hush-hush"
FILES = {"secrets/x.txt": f"{HUSH}\n", "deep/key.pem": f"{HUSH}\n", "a.txt": "open\n"}
ROLE = 'tools = ["*"]\nprompt = "Work."\ndeny_paths = ["secrets/", "*.pem"]\ndeny_branches = ["payroll"]\n'
LOOK = "cat secrets/x.txt deep/key.pem; git show HEAD:secrets/x.txt; git show payroll:a.txt; find . -name '*.pem'"


@pytest.fixture(scope="module")
def f() -> Iterator[Fleet]:
    with fleet() as made:
        roles = made.folders.config / "roles"
        roles.mkdir()
        (roles / "outsider.toml").write_text(ROLE)
        (roles / "broken.toml").write_text(ROLE.replace('"secrets/"', '"/secrets/"'))
        make_repository(made.root / "repo", FILES)
        git(made, "branch", "payroll")
        yield made


def git(f: Fleet, *args: str) -> str:
    command = ["git", "-C", str(f.root / "repo"), *args]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def previews(f: Fleet, sid: str) -> str:
    return "\n".join(r.body.preview for r in f.records(sid) if isinstance(r.body, t.ToolEnded))


def test_calls_jobs_and_checks_read_nothing_of_it_and_the_work_keeps_it(f: Fleet) -> None:
    goal = play(
        [("shell", {"script": LOOK}), ("read_file", {"path": "secrets/x.txt"}), ("search", {"pattern": HUSH})],
        [("shell", {"script": "echo more >> a.txt; git add -A; git commit -qm more; git status --porcelain"})],
        [("shell", {"script": f"{LOOK}; echo over", "job": True})],
        [("job", {"action": "wait"})],
        "Done.",
    )
    check = "test ! -e secrets && ! git cat-file -e HEAD:deep/key.pem && grep -q more a.txt"
    sid = f.launch(goal, checks=(check,), more=("--role", "outsider"))
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], row["verified"]) == ("done", True), row["detail"]
    seen = previews(f, sid)
    said = [b.text for b in (r.body for r in f.records(sid)) if isinstance(b, t.HarnessNote)]
    assert any("denies it the paths secrets/, *.pem and the branches payroll" in text for text in said)
    assert HUSH not in seen
    assert "the role of this session denies secrets/x.txt (deny_paths)" in seen
    assert any("denies you the paths secrets/, *.pem and the branches payroll" in str(r.body) for r in f.records(sid))
    branch = row["branch"]
    assert git(f, "diff", "--name-only", f"HEAD...{branch}").split() == ["a.txt"]
    assert HUSH in git(f, "show", f"{branch}:secrets/x.txt")
    assert f.violations() == []

    f.run("checkpoint", sid)
    look = play([("shell", {"script": "cat secrets/x.txt; git status --porcelain"})], "Done.")
    child = str(f.json("fork", sid, "--goal", look)[0]["sid"])
    f.wait_state(child, "done", "failed", "waiting")
    assert HUSH not in previews(f, child), "it has the role of the session that it goes on from"
    (kept,) = (f.folders.session(sid).root / "checkpoints.git").glob("refs/watchfloor/checkpoints/*/1")
    borrowing = f"--git-dir={f.folders.session(sid).root / 'checkpoints.git'}"
    assert HUSH in git(f, borrowing, "show", f"{kept.read_text().strip()}:secrets/x.txt"), "nobody deleted it"


def test_a_role_that_cannot_be_used_says_where(f: Fleet) -> None:
    done = f.run("launch", "--repo", str(f.root / "repo"), "--goal", "x", "--role", "broken", check=False)
    assert done.returncode != 0
    for word in ("broken.toml", "deny_paths", "inside the repository"):
        assert word in done.stderr
