"""Files that git keeps otherwise than they lie in a worktree: those behind a filter, as LFS has them. Blocking.

No program of a filter ever runs outside the sandbox. What is on this machine is laid into a session's worktree: the
objects of LFS, which are found and checked by their names, and for any other filter the files of the person's checkout
that git knows to be unchanged. Inside, the session's git has filters of ours (`filter_clean.sh`, `filter_smudge.sh`):
for LFS they do all by themselves, for any other they know what was laid and run the person's own command for the rest,
in the sandbox. They are required: what cannot be cleaned cannot be added.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from harness.domain.denied import NOTHING, Denied
from harness.linux import durable, safe_files
from harness.workspace.git import commit_files, index_stamps, shown_config
from harness.workspace.git.run import Git, Repository
from harness.workspace.git.scratch import scratch
from harness.workspace.git.untrusted_dir import Ground

LFS = "lfs"
RULES = ".gitattributes"
FOLDER = "filters"
"""Beside the private git directory: what a session's filters know, which nothing in the sandbox can write."""
MADE = "filtered"
"""Beside it: what they made, which the agent can write."""
OBJECTS = "lfs-objects"
"""Where the sandbox shows the clone's LFS objects; an empty folder outside."""
_POINTER = re.compile(
    rb"version https://git-lfs\.github\.com/spec/v1\n(?:ext-[^\n]*\n)*oid sha256:([0-9a-f]{64})\nsize (\d{1,15})\n"
)
_FILES = ("100644", "100755")
_MOST_BYTES = 1 << 20
"""Of a committed form; what is larger stands for nothing else."""
_CHUNK = 1 << 20
_SECRET = re.compile(r"pass|secret|token|key|credential", re.IGNORECASE)
_SCRIPTS = {what: Path(__file__).with_name(f"filter_{what}.sh") for what in ("clean", "smudge")}


class Pointer(NamedTuple):
    """What a committed form of LFS says of the content."""

    sha: str
    size: int


@dataclass(frozen=True, slots=True)
class Covered:
    """A file of a commit that goes through a filter; ``content`` is where this machine has it as it is to lie in a
    worktree, None when it has not.
    """

    path: str
    mode: str
    oid: str
    filter: str
    committed: bytes = b""
    content: Path | None = None


def pointer(data: bytes) -> Pointer | None:
    """The LFS pointer that these bytes are."""
    found = _POINTER.fullmatch(data)
    return Pointer(found[1].decode(), int(found[2])) if found is not None else None


def configured(git_dir: Path) -> dict[str, dict[str, str]]:
    """The filters that the person's own git has settings for, by name: it leaves files as they are for any other."""
    listed = Git(git_dir, personal=True).call("config", "--list", "-z")[1].decode("utf-8", "surrogateescape")
    found: dict[str, dict[str, str]] = {}
    for entry in listed.split("\0"):
        key, _, value = entry.partition("\n")
        name, _, what = key.removeprefix("filter.").rpartition(".")
        if key.startswith("filter.") and name:
            found.setdefault(name, {})[what] = value
    return found


def store(common: Path) -> Path:
    """Where a clone keeps the objects of LFS."""
    said = dict(Git(common).configured()).get("lfs.storage") or "lfs"
    return Path(os.path.realpath(common / said)) / "objects"


def _object(objects: Path, sha: str) -> Path:
    return objects / sha[:2] / sha[2:4] / sha


def behind(repository: Repository, commit: str, folder: Path, names: Iterable[str]) -> list[Covered]:
    """The files of a commit that go through one of these filters, and where their content is. ``folder`` is ours.
    Raises GitFailed, OSError.
    """
    wanted = {*names}
    listed = commit_files.of(repository.common, commit)
    paths = [path for path, entry in listed.items() if entry.mode in _FILES]
    with scratch(repository.common, folder) as made:
        made.git.run("read-tree", commit)
        told = attributes(made.git, paths, "--cached")
        found = [Covered(path, *listed[path], name) for path, name in told.items() if name in wanted]
        texts = _blobs(made.git, [one.oid for one in found])
    objects = store(repository.common)
    lying = _lying(repository, {one.oid for one in found if one.filter != LFS})
    return [
        Covered(one.path, one.mode, one.oid, one.filter, texts[one.oid], _content(one, texts[one.oid], objects, lying))
        for one in found
        if one.oid in texts
    ]


def ruled(repository: Repository, oids: Sequence[str]) -> bool:
    """Whether rules, by their objects, or those of the repository itself name a filter: most name none, and asking
    about each file costs time.
    """
    texts = [*_blobs(Git(repository.common), oids).values()]
    with contextlib.suppress(OSError):
        texts.append(safe_files.read_beneath(repository.common, "info/attributes", _MOST_BYTES))
    return any(b"filter" in text for text in texts)


def attributes(git: Git, paths: Sequence[str], *how: str) -> dict[str, str]:
    """The filters that attributes name, by path. Raises GitFailed."""
    asked = b"".join(os.fsencode(path) + b"\0" for path in paths)
    said = git.run("check-attr", *how, "-z", "--stdin", "filter", stdin=asked).decode("utf-8", "surrogateescape")
    fields = said.split("\0")
    pairs = zip(fields[::3], fields[2::3], strict=False)
    return {path: name for path, name in pairs if name not in ("unspecified", "unset", "set", "")}


def _content(one: Covered, text: bytes, objects: Path, lying: Mapping[str, Path]) -> Path | None:
    if one.filter != LFS:
        return None if b"\0" in text else lying.get(one.oid)  # a pointer is text; what is not may be encrypted
    named = pointer(text)
    if named is None:
        return None
    place = _object(objects, named.sha)
    try:
        info = place.stat()
    except OSError:
        return None
    return place if stat.S_ISREG(info.st_mode) and info.st_size == named.size else None


def _lying(repository: Repository, oids: set[str]) -> dict[str, Path]:
    """Files of the person's checkout that git knows to be these objects, untouched since."""
    found: dict[str, Path] = {}
    if not oids or repository.bare:
        return found
    for path, stamp in index_stamps.read(repository.git_dir / "index", len(next(iter(oids))) // 2).items():
        place = repository.root / path
        if stamp.oid in oids and os.path.realpath(place) == str(place):
            try:
                info = place.lstat()
            except OSError:
                continue
            if stat.S_ISREG(info.st_mode) and stamp.fits(info):
                found[stamp.oid] = place
    return found


def _blobs(git: Git, oids: Sequence[str]) -> dict[str, bytes]:
    """Those of the objects that are small enough to stand for others. Raises GitFailed."""
    asked = "".join(f"{oid}\n" for oid in dict.fromkeys(oids)).encode()
    if not asked:
        return {}
    sizes = git.run("cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=asked).decode().split("\n")
    pairs = (line.partition(" ") for line in sizes)
    small = [oid for oid, _, size in pairs if size.isdigit() and int(size) <= _MOST_BYTES]
    out = git.run("cat-file", "--batch", "--buffer", stdin="".join(f"{oid}\n" for oid in small).encode())
    found: dict[str, bytes] = {}
    at = 0
    for oid in small:
        line = out.index(b"\n", at)
        size = int(out[at:line].rsplit(b" ", 1)[1])
        found[oid] = out[line + 1 : line + 1 + size]
        at = line + 2 + size
    return found


# -- a session -------------------------------------------------------------------------------------


def lay(
    repository: Repository, commit: str, root: Path, ours: Path, admin: Path | None, denied: Denied = NOTHING
) -> None:
    """Lay the content of filtered files into the folder ``root`` wherever their committed form lies there. ``ours`` is
    the session's folder; with ``admin``, git's record of the worktree, it gets the filters that know what was laid.
    Raises GitFailed, OSError.
    """
    own = configured(repository.git_dir)
    known = own | {LFS: own.get(LFS, {})}
    listed = commit_files.of(repository.common, commit)
    rules = [entry.oid for path, entry in listed.items() if path.rpartition("/")[2] == RULES]
    covered = behind(repository, commit, ours, known) if ruled(repository, rules) else []
    if admin is not None and (own or covered):  # others need none
        _write_filters(ours, known)
    seen = [one for one in covered if not denied.path(one.path)]
    laid = [one for one in seen if _laid(one, root, ours, remember=admin is not None, linked=not denied)]
    for one in seen if admin is not None else ():
        if one.content is None and one.filter != LFS:
            _remember_as_it_is(ours, one)
    if laid and admin is not None:  # an entry without a stamp: git compares the content, by the filter
        rows = "".join(f"{one.mode} {one.oid}\t{one.path}\0" for one in laid)
        Git.of(admin).run("update-index", "-z", "--index-info", stdin=rows.encode("utf-8", "surrogateescape"))


def _laid(one: Covered, root: Path, ours: Path, *, remember: bool, linked: bool) -> bool:
    place = root / one.path
    if one.content is None or os.path.realpath(place) != str(place) or not place.is_file():
        return False
    with tempfile.NamedTemporaryFile(prefix="laid-", dir=ours) as made:
        sha = _copied(one.content, Path(made.name))
        named = pointer(one.committed) if one.filter == LFS else None
        if named is not None and named.sha != sha:
            return False  # a damaged object
        if remember:
            _remember(ours, one, sha, Path(made.name), linked=linked)
        if place.read_bytes() == one.committed:
            shutil.copyfile(made.name, place)
    return True


def _copied(source: Path, target: Path) -> str:
    """Copy a file and return the SHA-256 of what was copied. Raises OSError."""
    made = hashlib.sha256()
    with open(source, "rb") as file, open(target, "wb") as out:
        while chunk := file.read(_CHUNK):
            made.update(chunk)
            out.write(chunk)
    return made.hexdigest()


def _remember(ours: Path, one: Covered, sha: str, content: Path, *, linked: bool) -> None:
    folder = ours / FOLDER
    (folder / "known" / sha).write_bytes(one.committed)
    (folder / "oids" / one.oid).touch()
    raw = folder / "raw" / hashlib.sha256(one.committed).hexdigest()
    raw.unlink(missing_ok=True)
    if one.filter == LFS and linked:
        raw.symlink_to(_object(Path("..", "..", OBJECTS), sha))
    else:
        shutil.copyfile(content, raw)


def _remember_as_it_is(ours: Path, one: Covered) -> None:
    """What lies there in its committed form is that form, and no program has to say so."""
    name = hashlib.sha256(one.committed).hexdigest()
    for known in ("known", "raw"):
        (ours / FOLDER / known / name).write_bytes(one.committed)


def _write_filters(ours: Path, known: Mapping[str, Mapping[str, str]]) -> None:
    for name in ("known", "oids", "raw"):
        (ours / FOLDER / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in (ours / MADE, ours / OBJECTS):
        folder.mkdir(mode=0o700, exist_ok=True)
    for what, script in _SCRIPTS.items():
        durable.swap_file(ours / FOLDER / f"{what}.sh", script.read_bytes())
    text = "".join(_section(name, settings) for name, settings in known.items())
    durable.swap_file(ours / FOLDER / "config", text.encode("utf-8", "surrogateescape"))


def _section(name: str, settings: Mapping[str, str]) -> str:
    lines = f"[filter {shown_config.quoted(name)}]\n\trequired = true\n"
    for what in _SCRIPTS:
        own = settings.get(what, "cat" if what == "smudge" else "false")
        shown = "false" if _SECRET.search(own) else own
        command = (
            f"d=${{GIT_CONFIG_GLOBAL%/gitconfig}}; lfs={'1' if name == LFS else ''}; own() {{ {shown}\n}}; "
            f'. "$d/{FOLDER}/{what}.sh"'
        )
        lines += f"\t{what} = {shown_config.quoted(command)}\n"
    return lines


def binds(ours: Path, common: Path, denied: Denied) -> list[tuple[str, str, str]]:
    """What the session's filters need in the sandbox; the clone's LFS objects only where nothing is denied."""
    if not (ours / FOLDER).is_dir():
        return []
    listed = [(f"{ours}/{FOLDER}", f"{ours}/{FOLDER}", "ro"), (f"{ours}/{MADE}", f"{ours}/{MADE}", "rw")]
    if not denied and (objects := store(common)).is_dir():
        listed.append((str(objects), f"{ours}/{OBJECTS}", "ro"))
    return listed


def stands_for(ours: Path, sha: str, oid: str) -> bool:
    """Whether content with this SHA-256 is what a filter makes the object ``oid`` of: as it was laid, or as the agent's
    own git cleaned it, which is believed of no object that was laid.
    """
    try:
        text = safe_files.read_beneath(ours / FOLDER, f"known/{sha}", _MOST_BYTES)
    except OSError:
        try:
            text = safe_files.read_beneath(ours / MADE, f"new/{sha}", _MOST_BYTES)
        except OSError:
            return False
        named = pointer(text)
        if named is not None and named.sha != sha:
            return False
        if named is None and (ours / FOLDER / "oids" / oid).exists():
            return False
    return commit_files.blob_id(text, len(oid)) == oid


def carry(ours: Path, common: Path, before: str, head: str) -> None:
    """Bring the LFS objects that new commits name from the session's store into the clone's, each by its own digest.
    Raises GitFailed, OSError.
    """
    made = ours / MADE
    if not (made / "lfs").is_dir():
        return
    git = Git(common)
    rows = git.names("diff-tree", "-r", "-z", "--raw", "--no-renames", before, head)[::2]
    fields = [row.lstrip(":").split(" ") for row in rows]
    texts = _blobs(git, [field[3] for field in fields if field[1] in _FILES])
    for named in filter(None, map(pointer, texts.values())):
        place = _object(store(common), named.sha)
        if not place.exists():
            _carried(made, named, place, stat.S_IMODE((common / "objects").stat().st_mode))


def _carried(made: Path, named: Pointer, place: Path, mode: int) -> None:
    with contextlib.ExitStack() as opened:
        try:
            ground = opened.enter_context(Ground(made))
            source = opened.enter_context(open(ground.file(str(_object(Path("lfs"), named.sha))), "rb"))
        except OSError:
            return
        place.parent.mkdir(mode=mode, parents=True, exist_ok=True)
        out = opened.enter_context(tempfile.NamedTemporaryFile(prefix=".watchfloor-", dir=place.parent, delete=False))
        digest = hashlib.sha256()
        left = named.size
        while left > 0 and (chunk := source.read(min(_CHUNK, left))):
            left -= len(chunk)
            digest.update(chunk)
            out.write(chunk)
    if not left and digest.hexdigest() == named.sha:
        os.chmod(out.name, mode & 0o444)
        os.replace(out.name, place)
    else:
        os.unlink(out.name)


def advice(folder: Path, worktree: Path | None, into: Path, path: str, oid: str, commit: str, text: bytes) -> str:
    """How a person brings a filtered file into their checkout without putting raw content where git keeps a pointer,
    or a pointer where nobody has the content. ``folder`` is the session's, with its private git directory.
    """
    if pointer(text) is not None or (folder / FOLDER / "oids" / oid).exists():
        return ""
    target = shlex.quote(f"{into}/{path}")
    git = f"git -C {shlex.quote(str(into))}"
    there = worktree is not None and (worktree / path).is_file()
    source = f"cp {shlex.quote(f'{worktree}/{path}')}" if there else f"{git} show {shlex.quote(f'{commit}:{path}')} >"
    return f"{source} {target}, then {git} add {shlex.quote(path)} and commit it"
