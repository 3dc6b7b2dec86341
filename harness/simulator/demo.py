"""``python -m harness.simulator.demo REPO REMOTE``: the demo's repository as a real git repository, with a bare remote
to push to.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parent / "demo_repo"


def git(folder: Path, *args: str) -> None:
    """The user's own git configuration (hooks, signing, templates) must not reach the demo."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
    subprocess.run(
        ["git", *args],
        cwd=folder,
        check=True,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def make(repo: Path, remote: Path) -> None:
    """Create both. Raises OSError when a folder cannot be made, CalledProcessError when git fails."""
    shutil.copytree(SOURCE, repo, ignore=shutil.ignore_patterns("__pycache__"))
    remote.mkdir(parents=True)
    git(remote, "init", "-q", "--bare", "-b", "main")
    git(repo, "init", "-q", "-b", "main")
    git(repo, "config", "user.name", "Watchfloor demo")
    git(repo, "config", "user.email", "demo@watchfloor.invalid")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "Tally 0.2.0")
    git(repo, "remote", "add", "origin", str(remote))
    git(repo, "push", "-q", "origin", "main")


def main() -> int:
    """Exit codes: 0 made, 2 could not."""
    parser = argparse.ArgumentParser(prog="python -m harness.simulator.demo", description=make.__doc__)
    parser.add_argument("repo", type=Path)
    parser.add_argument("remote", type=Path)
    args = parser.parse_args()
    try:
        make(args.repo.absolute(), args.remote.absolute())
    except subprocess.CalledProcessError as exc:
        print(f"git failed: {exc.stderr.decode('utf-8', 'replace').strip()}", file=sys.stderr)
        return 2
    except OSError as exc:
        print(f"cannot make the demo repository: {exc}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
