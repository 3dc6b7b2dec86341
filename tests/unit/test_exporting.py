"""Which commits of a session go into its file: its branch, and only when it is said what holds ignored files, too."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from harness.bundle import session_bundle
from harness.domain.export_order import ExportMade, ExportOrder
from harness.eventlog.writer import LogWriter
from harness.workspace.export.session_export import export
from tests.fleetlib import git

SID = "abcdefghij"
OTHER = "abcdefghik"
BRANCH = "refs/heads/agent/one"
HIDDEN = [
    f"refs/watchfloor/kept/{SID}",
    f"refs/watchfloor/kept/{SID}-2",
]


@pytest.fixture
def session(tmp_path: Path) -> Path:
    """The folder of a session whose repository has its branch, kept work twice, and those of another."""
    repo = tmp_path / "repo"
    repo.mkdir()
    git(repo, "init", "-q")
    who = ("-c", "user.name=a", "-c", "user.email=a@b.invalid")
    git(repo, *who, "commit", "-q", "--allow-empty", "-m", "base")
    base = git(repo, "rev-parse", "HEAD").strip()
    git(repo, "update-ref", BRANCH, base)
    (repo / ".env").write_text("TOKEN=never-to-be-seen\n")
    git(repo, "add", "-f", ".env")
    git(repo, *who, "commit", "-q", "-m", "with what is ignored")
    for ref in (
        *HIDDEN,
        f"refs/watchfloor/checkpoints/{OTHER}/1",
        f"refs/watchfloor/kept/{SID}x",
        "refs/heads/agent/x",
    ):
        git(repo, "update-ref", ref, "HEAD")
    folder = tmp_path / "sessions" / SID
    log = LogWriter.open(folder / "log", SID)
    about = {"worktree": str(tmp_path / "tree"), "branch": BRANCH.removeprefix("refs/heads/")}
    intent = {"name": "one", "goal": "g", "repo": str(repo), "model": "m", **about}
    log.append("session.intent", intent, actor="supervisor")
    log.append("session.created", {"base": base, **about}, actor="supervisor")
    log.commit(sync=True)
    log.close()
    return folder


def exported(session: Path, *, checkpoints: bool = False) -> tuple[ExportMade, session_bundle.Manifest, str]:
    """What was made, its manifest, and every file that its commits hold."""
    file = session.parent.parent / "out.watchfloor.tar"
    ledger = session / "no-ledger"
    made = export(ExportOrder(session=str(session), ledger=str(ledger), file=str(file), checkpoints=checkpoints))
    checked = session_bundle.check(file)
    assert checked.ok
    assert checked.manifest is not None
    clone = session.parent.parent / "clone"
    clone.mkdir()
    git(clone, "init", "-q")
    bundled = clone / "work.bundle"
    with tarfile.open(file) as tar:
        work = tar.extractfile(f"watchfloor-{SID}/{session_bundle.WORK}")
        assert work is not None
        bundled.write_bytes(work.read())
    git(clone, "fetch", "-q", str(bundled), "refs/*:refs/from/*")
    return made, checked.manifest, git(clone, "log", "--all", "--name-only", "--format=")


def test_only_the_branch_is_in_it_and_what_is_left_out_is_said(session: Path) -> None:
    made, manifest, files = exported(session)
    assert manifest.commits == (BRANCH,)
    assert ".env" not in files
    assert made.notes == manifest.notes
    (note,) = manifest.notes
    assert "2 refs of checkpoints and kept work are not in it" in note
    assert "--checkpoints" in note


def test_checkpoints_and_every_kept_work_are_in_it_when_it_is_said(session: Path) -> None:
    made, manifest, files = exported(session, checkpoints=True)
    assert manifest.commits == (BRANCH, *HIDDEN)
    assert ".env" in files
    assert made.notes == manifest.notes
    (note,) = manifest.notes
    assert "2 refs" in note
    assert "hold files that git ignores" in note
    assert "look before you give it away" in note
