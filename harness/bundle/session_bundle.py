"""One session in one file: a plain tar whose last members are a manifest and the hash of all bytes before it.

What is in it and why it is built so: decision 048. A bundle may come from anybody, so only the one form of tar that we
write is read, its names are held against the few that exist, its session against the form of a session's id, and
nothing is written outside the folder that is given, nor more than the file has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Annotated

import msgspec

from harness.bundle import payloads, plain_tar
from harness.bundle.plain_tar import BLOCK, CHUNK, header
from harness.eventlog import reader
from harness.eventlog.framing import MAX_LINE, LogError, parse_mark, whole
from harness.eventlog.regular_files import opened
from harness.events import types

FORMAT = 1
MANIFEST = "manifest.json"
SEAL = "sha256"
LEDGER = "ledger.jsonl"
PLAN = "plan.json"
WORK = "work.bundle"
SUFFIX = ".watchfloor.tar"
_NAMES = re.compile(
    r"log/(head|[0-9]{6}\.jsonl)|blobs/([0-9a-f]{2})/(\2[0-9a-f]{62})|ledger\.jsonl|plan\.json|work\.bundle|README"
)
_ROOT = re.compile(r"watchfloor-([a-z0-9]{10})")
"""The folder that all is in: named after the session, whose id is ten characters."""
_TAIL = 4 * BLOCK
"""Header and content of the seal, and the two empty blocks that end a tar."""
_MOST_MANIFEST = 256 << 20
README = """One session of Watchfloor, as it was exported.

Check it:   watchfloor verify FILE
Read it:    watchfloor logs FILE, watchfloor brief FILE, watchfloor score FILE

log/           its events, one JSON object a line, chained by hashes
blobs/         payloads too large for a line, named by their SHA-256
ledger.jsonl   what its requests reserved and cost
plan.json      its plan as the log says it stands
work.bundle    commits of its work: git clone work.bundle, or git fetch work.bundle 'refs/*:refs/from/*'
manifest.json  what is here, with sizes and SHA-256
sha256         the SHA-256 of all bytes of the file before it
"""


class NotABundle(LogError):
    """The file is no bundle that can be read; the message says what is wrong."""


Count = Annotated[int, msgspec.Meta(ge=-1, le=2**63 - 1)]
"""A number of a manifest: as large as a file or a sum of money can be, so that it can be reckoned with."""


class Part(msgspec.Struct, frozen=True):
    """One file of the bundle: its path below the root, bytes, SHA-256 in hex."""

    path: str
    bytes: Count
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What a bundle holds. ``head`` and ``hash`` are those of the log's last record, money is in nano-USD, ``missing``
    are payloads that the log names and that were not there, ``notes`` say what else was left out and why.
    """

    sid: str
    name: str = ""
    repo: str = ""
    branch: str = ""
    made: str = ""
    program: str = ""
    records: Count = 0
    head: Count = -1
    hash: str = ""
    spent_nano: Count = 0
    tokens: Count = 0
    requests: Count = 0
    commits: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    format: Count = FORMAT


@dataclass(frozen=True, slots=True)
class Checked:
    """Outcome of `check`: ``seal`` is the hash of the file, ``problems`` what is wrong, a sentence each."""

    manifest: Manifest | None
    seal: str
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return self.manifest is not None and not self.problems


def ending(sid: str, seal: str) -> bytes:
    """The last bytes of a bundle whose other bytes have this hash."""
    text = seal.encode() + b"\n"
    return header(f"watchfloor-{sid}/{SEAL}", len(text)) + text.ljust(3 * BLOCK, b"\0")


class Writer:
    """Writes a bundle from the beginning to its end: `add` each file, then `close`."""

    def __init__(self, file: IO[bytes], sid: str) -> None:
        """Raises ValueError when ``sid`` is no session's id."""
        if not _ROOT.fullmatch(f"watchfloor-{sid}"):
            raise ValueError(f"{sid[:40]!r} is no session's id")
        self._file = file
        self._sid = sid
        self._all = sha256()
        self._parts: list[Part] = []
        self.add("README", BytesIO(README.encode()), len(README.encode()))

    def add(self, path: str, source: IO[bytes], size: int) -> None:
        """The first ``size`` bytes of ``source``.

        Raises ValueError on a size that no tar has or a path that no bundle has, EOFError when there are fewer.
        """
        if not _NAMES.fullmatch(path):
            raise ValueError(f"{path!r} belongs into no bundle")
        self._parts.append(Part(path, size, self._member(path, source, size)))

    def _member(self, path: str, source: IO[bytes], size: int) -> str:
        self._put(header(f"watchfloor-{self._sid}/{path}", size))
        own = sha256()
        left = size
        while left:
            data = source.read(min(CHUNK, left))
            if not data:
                raise EOFError(f"{path} became shorter while it was read")
            own.update(data)
            self._put(data)
            left -= len(data)
        self._put(bytes(-size % BLOCK))
        return own.hexdigest()

    def _put(self, data: bytes) -> None:
        self._all.update(data)
        self._file.write(data)

    def close(self, manifest: Manifest) -> str:
        """Write the manifest, with the parts that were added, and the seal; returns the seal."""
        data = msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(manifest, parts=tuple(self._parts))))
        self._member(MANIFEST, BytesIO(data), len(data))
        seal = self._all.hexdigest()
        self._file.write(ending(self._sid, seal))
        return seal


def check(file: Path) -> Checked:
    """Whether every byte is as it was written, and the log and its payloads are whole. Raises NotABundle, OSError."""
    with TemporaryDirectory(prefix="watchfloor-verify-") as folder:
        return unpack(file, Path(folder))


def unpack(file: Path, folder: Path) -> Checked:
    """`check`, and put ``log`` and ``blobs`` into an empty folder. Raises NotABundle, OSError.

    The manifest's ``sid`` is a session's id, whatever else is wrong.
    """
    try:
        with opened(file) as source:
            sid, manifest, found, seal, end = _parts(plain_tar.Reader(source), folder)
    except plain_tar.NotPlain as exc:
        raise NotABundle(f"{file.name} is no whole bundle of a session: {exc}") from exc
    if manifest.sid != sid:
        raise NotABundle(f"{file.name}: its manifest is that of {manifest.sid[:40]!r}, its folder that of {sid}")
    if manifest.format > FORMAT:
        raise NotABundle(f"{file.name} was made by a newer version (format {manifest.format}); upgrade Watchfloor")
    problems: list[str] = []
    if end != ending(sid, seal):
        problems.append("bytes were changed since it was written: the hash of the whole file is another one")
    problems += _compared(manifest, found)
    problems += _log(manifest, folder, found)
    return Checked(manifest, seal, tuple(problems))


def _parts(tar: plain_tar.Reader, folder: Path) -> tuple[str, Manifest, dict[str, Part], str, bytes]:
    """(session, manifest, what was found, hash of all before the last bytes, these). Raises NotPlain, OSError."""
    found: dict[str, Part] = {}
    manifest: Manifest | None = None
    root = ""
    while tar.left > _TAIL:
        name, size = tar.member()
        root, path = _place(name, root)
        if path in found or manifest is not None:
            raise plain_tar.NotPlain(f"it holds {name!r} where nothing should be")
        if path == MANIFEST:
            manifest = _manifest(b"".join(tar.content(_manifest_size(size))))
        else:
            kept = path.startswith(("log/", "blobs/", LEDGER))
            found[path] = _taken(tar.content(size), path, folder / path if kept else None)
    if manifest is None:
        raise plain_tar.NotPlain("it has no manifest")
    seal = tar.seal
    return root.removeprefix("watchfloor-"), manifest, found, seal, tar.read(_TAIL)


def _place(name: str, root: str) -> tuple[str, str]:
    """(root, path below it) of a member. Raises NotPlain on one that no bundle has, the seal before the end too."""
    here, _, path = name.partition("/")
    known = path == MANIFEST or _NAMES.fullmatch(path)
    if not (_ROOT.fullmatch(here) and here == (root or here) and known):
        raise plain_tar.NotPlain(f"it holds {name!r}")
    return here, path


def _manifest_size(size: int) -> int:
    if size > _MOST_MANIFEST:
        raise plain_tar.NotPlain(f"its manifest has {size:,} bytes, more than {_MOST_MANIFEST:,}")
    return size


def _manifest(data: bytes) -> Manifest:
    try:
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
        raise plain_tar.NotPlain(f"its manifest cannot be read: {exc}") from exc


def _taken(pieces: Iterable[bytes], path: str, target: Path | None) -> Part:
    own = sha256()
    size = 0
    if target is not None:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(target or "/dev/null", "wb") as out:
        for data in pieces:
            own.update(data)
            size += len(data)
            out.write(data)
    return Part(path, size, own.hexdigest())


def _compared(manifest: Manifest, found: dict[str, Part]) -> Iterator[str]:
    listed = {part.path: part for part in manifest.parts}
    for path, part in found.items():
        known = listed.get(path)
        if known is None:
            yield f"{path} is not in the manifest"
        elif part != known:
            yield f"{path} is not what the manifest says: {part.bytes:,} bytes of SHA-256 {part.sha256[:12]}…"
        if path.startswith("blobs/") and not path.endswith(part.sha256):
            yield f"{path} does not have the hash of its name"
    yield from (f"{path} is missing" for path in listed if path not in found)


def _log(manifest: Manifest, folder: Path, found: dict[str, Part]) -> Iterator[str]:
    log = folder / "log"
    if not (log / reader.segment_name(1)).is_file():
        yield "there is no log"
        return
    with (log / reader.segment_name(1)).open("rb") as first:
        try:
            sid = str(parse_mark(first.readline(MAX_LINE + 1)).get("sid", ""))
        except LogError:
            sid = ""
    if sid != manifest.sid:
        yield f"the log is that of {sid[:40]!r}, the manifest that of {manifest.sid[:40]!r}"
    report = reader.verify(log)
    if report.problem is not None:
        at = report.problem
        yield f"the log is damaged: {Path(at.file).name} at byte {at.offset}, record {at.seq}: {at.why}"
        return
    if (report.records, report.head, report.hash) != (manifest.records, manifest.head, manifest.hash):
        yield f"the log ends at record {report.head}, the manifest says {manifest.head}, or another one"
    try:
        wanted = {ref.sha for line in reader.read(log) for ref in payloads.named(types.decode(line).body)}
    except msgspec.DecodeError as exc:
        yield f"a record of the log cannot be understood: {exc}"
        return
    for sha in sorted(wanted - set(manifest.missing)):
        if f"blobs/{sha[:2]}/{sha}" not in found:
            yield f"payload {sha[:12]}… is named by the log and missing"
    ledger = folder / LEDGER
    if ledger.is_file() and not all(map(whole, ledger.read_bytes().splitlines(keepends=True))):
        yield "a row of the ledger is damaged"
