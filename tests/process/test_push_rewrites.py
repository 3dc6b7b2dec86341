"""The user's own address rewrites are applied before a push is shown, and never again; the remote is git on
loopback.
"""

from __future__ import annotations

import itertools
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.domain.actions.action import from_wire
from harness.domain.actions.destination import Destination, Named
from harness.executor import push, remotes
from tests.process.keeperlib import wait_until
from tests.process.pushlib import Ground, git

REF = "refs/heads/x"
WEB = "https://team.invalid/"


@pytest.fixture
def ground(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ground:
    return Ground(tmp_path, monkeypatch)


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


@pytest.fixture
def daemon(ground: Ground) -> Iterator[str]:
    """Address of a git server on loopback that takes pushes into ``base/served``."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    served = ground.base / "served"
    served.mkdir()
    options = [
        f"--base-path={served}",
        "--export-all",
        "--enable=receive-pack",
        "--listen=127.0.0.1",
        f"--port={port}",
        "--reuseaddr",
    ]
    env = {"PATH": os.environ["PATH"], "HOME": str(ground.base)}
    command = ["git", "daemon", *options]
    process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=sys.stderr, start_new_session=True)
    try:
        wait_until("git daemon answers", lambda: _answers(port))
        yield f"git://127.0.0.1:{port}/"
    finally:
        os.killpg(process.pid, 15)
        process.wait()


@pytest.mark.parametrize("kind", ["insteadOf", "pushInsteadOf"])
def test_the_final_address_is_shown_and_is_where_the_push_ends(ground: Ground, daemon: str, kind: str) -> None:
    real = ground.bare(ground.base / "served" / "a" / "x.git")
    other = ground.bare(ground.base / "served" / "b" / "x.git")
    git(ground.repo, "remote", "add", "origin", f"{WEB}x.git")
    ground.rewrite(f"{daemon}a/", WEB, kind)
    ground.rewrite(f"{daemon}b/", f"{daemon}a/")  # what git would do to the final address if it were given plainly
    ground.rewrite(f"{daemon}b/", f"{daemon}a/", "pushInsteadOf")
    ground.rewrite(f"{daemon}b/", "")
    tried = ground.push("origin", f"HEAD:{REF}")
    assert (tried.verdict.verdict, tried.action["url"]) == ("ask", f"{daemon}a/x.git")
    assert "local" not in tried.action
    assert tried.stale == []
    assert tried.outcome is not None
    assert tried.outcome.status == "ok", tried.output
    assert git(real, "rev-parse", REF) == ground.tree.base
    assert git(other, "for-each-ref") == ""
    assert push.probe(from_wire(tried.action)) == "done"


def test_a_pushurl_is_not_rewritten_by_rules_for_pushing(ground: Ground, daemon: str) -> None:
    ground.bare(ground.base / "served" / "x.git")
    git(ground.repo, "remote", "add", "origin", "https://fetch.invalid/x.git")
    git(ground.repo, "config", "remote.origin.pushurl", f"{daemon}x.git")
    ground.rewrite("https://elsewhere.invalid/", daemon, "pushInsteadOf")
    assert ground.judged("origin")[0]["url"] == f"{daemon}x.git"


def test_a_rewrite_that_changes_before_the_push_makes_it_stale_and_stops_it(ground: Ground, daemon: str) -> None:
    for name in ("a", "b"):
        ground.bare(ground.base / "served" / name / "x.git")
    git(ground.repo, "remote", "add", "origin", f"{WEB}x.git")
    ground.rewrite(f"{daemon}a/", WEB)
    action, _ = ground.judged("origin", f"HEAD:{REF}")
    ground.rewrite(f"{daemon}b/", f"{WEB}x")
    assert ground.stale(action) == [f"{ground.home}/.gitconfig has other content than what was approved"]
    outcome, text = ground.run(action)
    assert outcome.status == "refused"
    assert f"now leads to {daemon}b/.git, and was shown as {daemon}a/x.git" in text
    assert push.probe(from_wire(action)) == "unknown"


def test_another_address_in_the_repository_makes_it_stale(ground: Ground, daemon: str) -> None:
    ground.bare(ground.base / "served" / "x.git")
    git(ground.repo, "remote", "add", "origin", f"{daemon}x.git")
    action, _ = ground.judged("origin", f"HEAD:{REF}")
    git(ground.repo, "config", "branch.main.remote", "origin")
    assert ground.stale(action) == []
    git(ground.repo, "remote", "set-url", "origin", "https://me:secret@elsewhere.invalid/x.git")
    assert ground.stale(action) == [
        f"the remote's address was {daemon}x.git and is now https://elsewhere.invalid/x.git"
    ]


def test_a_credential_that_a_rewrite_adds_is_used_and_never_recorded(ground: Ground) -> None:
    ground.rewrite("https://x-token:hunter2@team.invalid/", "work:")
    named = Named("work:x.git", str(ground.repo), configured=True)
    env = {"PATH": os.environ["PATH"], "HOME": str(ground.home)}
    place = remotes.find(named, env, ())
    assert place.url == "https://x-token:hunter2@team.invalid/x.git"
    name, known = push.aimed(place.url, env)
    assert "hunter2" not in " ".join(push.command(name, [["a" * 40, REF, "absent"]], force=False))
    assert known["GIT_ALLOW_PROTOCOL"] == "https"
    shown = Destination(url="https://team.invalid/x.git", refspecs=(), named=named)
    assert push.place_of(shown, env, ()).url == place.url


_TEXT = st.text("ab/:.@", max_size=5)
_RULES = st.lists(st.tuples(_TEXT.filter(bool), _TEXT), max_size=4)


@settings(max_examples=60, deadline=None)
@given(_TEXT.filter(lambda text: bool(text)), _RULES)
def test_addresses_are_rewritten_as_git_rewrites_them(address: str, rules: list[tuple[str, str]]) -> None:
    pairs = [(f"url.{base}.insteadOf", prefix) for base, prefix in rules]
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_COUNT": str(len(pairs)),
        "GIT_DIR": "/nonexistent",
    }
    for number, (key, value) in enumerate(pairs):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    command = ["git", "ls-remote", "--get-url", "--", address]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    entries = [("", f"url.{base}.insteadof", prefix) for base, prefix in rules]
    assert remotes.rewritten(address, entries) == done.stdout.removesuffix("\n")


FORMS = {
    "/srv/x": "/srv/x",
    "file:///srv/%78%2f": "/srv/x/",
    "file://host/x": "/host/x",
    "../x": "../x",
    "x": "x",
    "a/b:c": "a/b:c",
    "https://h/x": None,
    "ssh://h/x": None,
    "h:x": None,
    "me@h:/x": None,
    "[::1]:x": None,
    "file:/x": None,
}


@pytest.mark.parametrize(("url", "path"), FORMS.items())
def test_what_git_takes_for_a_folder(url: str, path: str | None) -> None:
    assert remotes.local_path(url) == path


HELPERS = ("ext::", "fd::", "testgit::", "ext://", "fd://", "s3://")


@pytest.mark.parametrize("url", ["".join(parts) for parts in itertools.product(HELPERS, ("x", "sh -c x"))])
def test_helpers_that_run_programs_are_refused(ground: Ground, url: str) -> None:
    git(ground.repo, "config", "remote.odd.url", url)
    for remote in ("odd", url):
        assert ground.judged(remote)[1].verdict == "deny"
