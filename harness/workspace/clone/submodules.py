"""The submodules of a commit, taken from the person's clone. Blocking; nothing that a repository configures runs, and
nothing is fetched.

A session gets the files of its submodules at the recorded commits, and a git of its own in each (`submodule_git`). The
clone has a submodule where git absorbed it (``modules/<name>``), or as a repository in its place in the checkout.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.workspace.clone import submodule_git
from harness.workspace.git import commit_files
from harness.workspace.git.commit_files import Entry
from harness.workspace.git.errors import GitFailed
from harness.workspace.git.run import Git, Repository, common_of, entries, open_repository
from harness.workspace.git.scratch import scratch

MOST = 500
_DEEPEST = 8
_PATH = re.compile(r"submodule\.(.+)\.path", re.DOTALL)
_GITLINK = b"160000 "
_AS_THEY_LIE = "* -text -ident -filter -working-tree-encoding -crlf\n"
_PLAINLY = (("core.autocrlf", "false"), ("core.protectHFS", "true"), ("core.protectNTFS", "false"))


@dataclass(frozen=True, slots=True)
class Submodule:
    """One at ``path`` from the top; ``git_dir`` is where the clone has its commit, None when it has not."""

    path: str
    commit: str
    git_dir: Path | None


def files(repo: Path, commit: str) -> dict[str, Entry]:
    """The files of the submodules of a commit, by their paths from the top. Raises GitFailed."""
    found: dict[str, Entry] = {}
    if not repo.is_dir():
        return found
    for one in find(open_repository(repo), commit):
        if one.git_dir is not None:
            found |= {f"{one.path}/{path}": entry for path, entry in commit_files.of(one.git_dir, one.commit).items()}
    return found


def find(repository: Repository, commit: str, links: dict[str, str] | None = None) -> list[Submodule]:
    """The submodules of a commit, and theirs, those above first; at most `MOST`. ``links`` is what is known of the
    first of them. Raises GitFailed.
    """
    found: list[Submodule] = []
    git_dir = repository.git_dir
    root = None if repository.bare else repository.root
    pending = [("", git_dir, commit, links_of(git_dir, commit) if links is None else links, 0)]
    while pending and len(found) < MOST:
        above, owner, at, below, deep = pending.pop(0)
        for path, oid, place in _below(owner, at, below, root / above if root is not None else None):
            one = Submodule(f"{above}{path}", oid, place)
            found.append(one)
            if place is not None and deep < _DEEPEST:
                pending.append((f"{one.path}/", place, oid, links_of(place, oid), deep + 1))
    return found[:MOST]


def links_of(git_dir: Path, commit: str, paths: Sequence[str] = ()) -> dict[str, str]:
    """The commits of the submodules of a commit, by their paths; only of those that are named, if any. Raises
    GitFailed.
    """
    return links_in(Git(git_dir).run("ls-tree", "-r", "-z", "--full-tree", commit, "--", *paths).split(b"\0"))


def links_in(rows: list[bytes]) -> dict[str, str]:
    """The same, of what ``git ls-tree -z`` wrote."""
    pairs = (row.partition(b"\t") for row in rows if row.startswith(_GITLINK))
    return {os.fsdecode(path): about.split(b" ")[2].decode() for about, _, path in pairs}


def _below(
    git_dir: Path, commit: str, links: dict[str, str], checkout: Path | None
) -> Iterator[tuple[str, str, Path | None]]:
    named = _names(Git(git_dir), commit) if links else {}
    stores = tuple(dict.fromkeys((git_dir / "modules", common_of(git_dir) / "modules")))
    for path, oid in links.items():
        places = [(store, named[path]) for store in stores if path in named]
        if checkout is not None:
            places.append((checkout, f"{path}/.git"))
        yield path, oid, next((store / name for store, name in places if _has(store, name, oid)), None)


def _names(git: Git, commit: str) -> dict[str, str]:
    """What ``.gitmodules`` calls the submodule at a path; a name that leads anywhere but below is none."""
    status, text = git.call("cat-file", "blob", f"{commit}:.gitmodules", ok=(0, 128))
    try:
        listed = () if status else entries(text)
    except GitFailed:
        return {}
    pairs = ((_PATH.fullmatch(name), value) for name, value in listed)
    found = {value: match[1] for match, value in pairs if match is not None and value}
    return {path: name for path, name in found.items() if not {"", ".", ".."} & {*name.split("/")} and "\0" not in name}


def _has(store: Path, name: str, oid: str) -> bool:
    """Whether a git directory lies there, in its own place and with no link in the way, that has the commit."""
    real = Path(os.path.realpath(store))
    place = real / name
    if os.path.realpath(place) != str(place) or not (place / "HEAD").is_file() or not (place / "objects").is_dir():
        return False
    try:
        return Git(place).commit(oid) == oid
    except GitFailed:
        return False


def fill(
    repository: Repository, commit: str, root: Path, beside: Path, equipped: tuple[Path, Path] | None = None
) -> None:
    """Lay the files of the submodules into the worktree ``root``, wherever git left an empty folder for them;
    ``beside`` is a folder of ours. What cannot be filled stays empty. ``equipped`` are a session's private git
    directory and git's record of the worktree: then they get a git of their own there. Raises GitFailed, OSError.
    """
    laid: list[tuple[str, Path, str, bytes]] = []
    for one in find(repository, commit):
        place = root / one.path
        if one.git_dir is None or os.path.realpath(place) != str(place) or not place.is_dir():
            continue
        with scratch(one.git_dir, beside) as made:
            git = replace(made.git, work_tree=place, extra=(*made.git.extra, *_PLAINLY))
            (git.git_dir / "info" / "attributes").write_text(_AS_THEY_LIE, "ascii")
            git.run("read-tree", one.commit)
            if not any(place.iterdir()):
                git.run("checkout-index", "--all", "--quiet", "--index")
                for below in links_of(one.git_dir, one.commit):
                    (place / below).mkdir(parents=True, exist_ok=True)
            laid.append((one.path, one.git_dir, one.commit, (git.git_dir / "index").read_bytes()))
    if equipped is not None:
        submodule_git.equip(root, *equipped, laid)
