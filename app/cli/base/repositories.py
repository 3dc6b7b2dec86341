"""The repository that a path is in, as far as its files tell; no git is started."""

from __future__ import annotations

from pathlib import Path


def top_of(folder: Path) -> Path | None:
    """The top of the repository or worktree that the folder is in."""
    return next((one for one in (folder, *folder.parents) if (one / ".git").exists()), None)


def common(top: Path) -> Path:
    """What all worktrees of a repository share; of a folder that is none itself."""
    git = top / ".git"
    try:
        if git.is_file():
            git = top / git.read_text("utf-8").removeprefix("gitdir:").strip()
            git = git / (git / "commondir").read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError, ValueError):
        pass
    return git.resolve()
