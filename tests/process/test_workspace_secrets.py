"""What people keep in a repository's git directory stays theirs: no tool inside the sandbox reads a token from it, and
git works all the same.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from harness.workspace.git import shown_config
from harness.workspace.git.run import open_repository
from tests.process.test_workspace_worktrees import agent, git, repository, session

CANARY = "hunter2canary"
SETTINGS = {
    "remote.origin.url": f"https://me:{CANARY}@host.invalid/x.git",
    "remote.origin.pushurl": f"https://{CANARY}@host.invalid/x.git",
    "remote.origin.fetch": "+refs/heads/*:refs/remotes/origin/*",
    "remote.origin.proxy": f"http://me:{CANARY}@proxy.invalid",
    "branch.main.remote": f"https://{CANARY}@host.invalid/x.git",
    "http.https://host.invalid/.extraHeader": f"AUTHORIZATION: basic {CANARY}",
    f"url.https://{CANARY}@host.invalid/.insteadOf": "https://host.invalid/",
    "credential.helper": f"!echo password={CANARY}",
    "core.sshCommand": f"ssh -i {CANARY}",
    "sendemail.smtpPass": CANARY,
    "my.own": CANARY,
    "user.signingKey": CANARY,
}


@pytest.mark.sandbox
def test_no_credential_of_the_repository_is_readable_inside(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    for key, value in SETTINGS.items():
        git(repo, "config", key, value)
    git(repo, "config", "user.name", 'Me "quoted" \\ # ;')
    git(repo, "config", "user.email", "me@here")
    modules = repo / ".git" / "modules" / "sub"
    modules.mkdir(parents=True)
    (modules / "config").write_text(f'[remote "origin"]\n\turl = https://{CANARY}@host.invalid/y.git\n')
    tree = session(tmp_path, repo)
    common = repo / ".git"
    out = agent(
        tree,
        f"grep -rs {CANARY} {common} {tree.private.parent} . && echo LEAK; git config --list --show-origin; git remote"
        " -v; set -e; echo x > x; git add x; git commit -qm x; git log -1 --format=%s; cat $(git config --list"
        " --show-origin | sed -n 's,^file:\\([^\\t]*\\).*,\\1,p' | sort -u | grep ^/)",
    )
    assert CANARY not in out
    assert "LEAK" not in out
    assert "https://host.invalid/x.git" in out
    assert "remote.origin.fetch=+refs/heads/*:refs/remotes/origin/*" in out
    assert 'user.name=Me "quoted" \\ # ;' in out
    git(repo, "config", "remote.late.url", f"https://{CANARY}@late.invalid/")
    out = agent(tree, "git remote -v")  # a configuration that changed is read again
    assert "https://late.invalid/" in out
    assert CANARY not in out
    assert git(repo, "config", "my.own") == CANARY


def test_the_shown_form_reads_back_as_git_reads_the_real_one(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo")
    values = [
        "plain",
        " blanks ",
        'quo"te',
        "back\\slash",
        "tab\there",
        "new\nline",
        "#no ;comment",
        "ünï \udcff".encode("utf-8", "surrogateescape").decode("latin-1"),
        "",
    ]
    for number, value in enumerate(values):
        git(repo, "config", f'branch.we"ird\\ {number}.description', value)
    with (repo / ".git" / "config").open("a") as file:
        file.write("[core]\n\tnoValue\n")
    safe = tmp_path / "safe"
    safe.write_bytes(shown_config.shown(open_repository(repo).git, repo / ".git" / "config"))
    listed = [
        subprocess.run(["git", "config", "--file", str(f), "--list", "-z"], check=True, capture_output=True).stdout
        for f in (repo / ".git" / "config", safe)
    ]
    shown = [one for one in listed[0].split(b"\0") if not one.startswith(b"core.bare\n")]
    assert shown == listed[1].split(b"\0"), "all but what the repository says of its own checkout"
    assert listed[1].count(b"description") == len(values)
