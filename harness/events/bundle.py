"""One session in one file: a plain tar whose last members are a manifest and the hash of all bytes before it.

What is in it and why it is built so: decision 048. A bundle may come from anybody, so its names are held against the
few that exist, its sizes against the file's, and nothing is written outside the folder that is given.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import msgspec

from harness.events import reader, types
from harness.events.body import BlobRef
from harness.events.framing import LogError, parse_mark, whole
from harness.events.regular import opened

FORMAT = 1
MANIFEST = "manifest.json"
SEAL = "sha256"
LEDGER = "ledger.jsonl"
PLAN = "plan.json"
WORK = "work.bundle"
SUFFIX = ".watchfloor.tar"
_NAMES = re.compile(
    r"log/(head|\d{6}\.jsonl)|blobs/([0-9a-f]{2})/(\2[0-9a-f]{62})|ledger\.jsonl|plan\.json|work\.bundle|README"
)
_ROOT = re.compile(r"watchfloor-[a-z0-9]{1,40}")
_BLOCK = 512
_TAIL = 4 * _BLOCK
"""Header and content of the seal, and the two empty blocks that end a tar."""
_CHUNK = 1 << 20
_MOST_MANIFEST = 256 << 20
README = """One session of Watchfloor, as it was exported.

Check it:   watchfloor verify FILE
Read it:    watchfloor logs FILE, watchfloor brief FILE, watchfloor score FILE

log/           its events, one JSON object a line, chained by hashes
blobs/         payloads too large for a line, named by their SHA-256
ledger.jsonl   what its requests reserved and cost
plan.json      its plan as the log says it stands
work.bundle    commits of its work: git clone FILE, or git fetch FILE 'refs/*:refs/from/*'
manifest.json  what is here, with sizes and SHA-256
sha256         the SHA-256 of all bytes of the file before it
"""


class NotABundle(LogError):
    """The file is no bundle that can be read; the message says what is wrong."""


class Part(msgspec.Struct, frozen=True):
    """One file of the bundle: its path below the root, bytes, SHA-256 in hex."""

    path: str
    bytes: int
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
    records: int = 0
    head: int = -1
    hash: str = ""
    spent_nano: int = 0
    tokens: int = 0
    requests: int = 0
    commits: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    parts: tuple[Part, ...] = ()
    format: int = FORMAT


@dataclass(frozen=True, slots=True)
class Checked:
    """Outcome of `check`: ``seal`` is the hash of the file, ``problems`` what is wrong, a sentence each."""

    manifest: Manifest | None
    seal: str
    problems: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return self.manifest is not None and not self.problems


def _header(name: str, size: int) -> bytes:
    """The same for the same name and size, whoever makes it and when."""
    info = tarfile.TarInfo(name)
    info.size, info.mode = size, 0o600
    return info.tobuf(tarfile.USTAR_FORMAT, "utf-8", "strict")


def _end(sid: str, seal: str) -> bytes:
    """The last bytes of a bundle whose other bytes have this hash."""
    text = seal.encode() + b"\n"
    return _header(f"watchfloor-{sid}/{SEAL}", len(text)) + text.ljust(3 * _BLOCK, b"\0")


class Writer:
    """Writes a bundle from the beginning to its end: `add` each file, then `close`."""

    def __init__(self, file: IO[bytes], sid: str) -> None:
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
        self._put(_header(f"watchfloor-{self._sid}/{path}", size))
        own = sha256()
        left = size
        while left:
            data = source.read(min(_CHUNK, left))
            if not data:
                raise EOFError(f"{path} became shorter while it was read")
            own.update(data)
            self._put(data)
            left -= len(data)
        self._put(bytes(-size % _BLOCK))
        return own.hexdigest()

    def _put(self, data: bytes) -> None:
        self._all.update(data)
        self._file.write(data)

    def close(self, manifest: Manifest) -> str:
        """Write the manifest, with the parts that were added, and the seal; returns the seal."""
        data = msgspec.json.format(msgspec.json.encode(msgspec.structs.replace(manifest, parts=tuple(self._parts))))
        self._member(MANIFEST, BytesIO(data), len(data))
        seal = self._all.hexdigest()
        self._file.write(_end(self._sid, seal))
        return seal


def check(file: Path) -> Checked:
    """Whether every byte is as it was written, and the log and its payloads are whole. Raises NotABundle, OSError."""
    with TemporaryDirectory(prefix="watchfloor-verify-") as folder:
        return unpack(file, Path(folder))


def unpack(file: Path, folder: Path) -> Checked:
    """`check`, and put ``log`` and ``blobs`` into an empty folder. Raises NotABundle, OSError."""
    problems: list[str] = []
    with opened(file) as source:
        seal, end = _sealed(source)
        found: dict[str, Part] = {}
        manifest: Manifest | None = None
        root = ""
        try:
            with tarfile.open(fileobj=source, mode="r:") as tar:
                for member in tar:
                    root, path = _place(member, root)
                    if path == SEAL:
                        break
                    if path in found or manifest is not None:
                        problems.append(f"{path} stands where nothing should")
                        continue
                    stream = tar.extractfile(member)
                    assert stream is not None
                    if path == MANIFEST:
                        manifest = _manifest(stream.read(_MOST_MANIFEST))
                        continue
                    kept = path.startswith(("log/", "blobs/", LEDGER))
                    found[path] = _taken(stream, path, folder / path if kept else None)
        except tarfile.TarError as exc:
            problems.append(f"its members cannot be read to the end: {exc}")
    if manifest is None:
        raise NotABundle(f"{file.name} is no whole bundle of a session: " + ("; ".join(problems) or "no manifest"))
    if manifest.format > FORMAT:
        raise NotABundle(f"{file.name} was made by a newer version (format {manifest.format}); upgrade Watchfloor")
    if end != _end(manifest.sid, seal):
        problems.append("bytes were changed since it was written: the hash of the whole file is another one")
    problems += _compared(manifest, found)
    problems += _log(manifest, folder, found)
    return Checked(manifest, seal, tuple(problems))


def _sealed(source: IO[bytes]) -> tuple[str, bytes]:
    """The hash of all before the last bytes, and these."""
    source.seek(0, 2)
    left = source.tell() - _TAIL
    source.seek(0)
    own = sha256()
    while left > 0:
        data = source.read(min(_CHUNK, left))
        own.update(data)
        left -= len(data)
    end = source.read()
    source.seek(0)
    return own.hexdigest(), end


def _place(member: tarfile.TarInfo, root: str) -> tuple[str, str]:
    """(root, path below it) of a member. Raises NotABundle on one that no bundle has."""
    here, _, path = member.name.partition("/")
    known = path in (MANIFEST, SEAL) or _NAMES.fullmatch(path)
    if not (member.isreg() and _ROOT.fullmatch(here) and here == (root or here) and known):
        raise NotABundle(f"this is no bundle of a session: it holds {member.name[:200]!r}")
    return here, path


def _manifest(data: bytes) -> Manifest:
    try:
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as exc:
        raise NotABundle(f"its manifest cannot be read: {exc}") from exc


def _taken(stream: IO[bytes], path: str, target: Path | None) -> Part:
    own = sha256()
    size = 0
    if target is not None:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(target or "/dev/null", "wb") as out:
        while data := stream.read(_CHUNK):
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
            sid = str(parse_mark(first.readline()).get("sid", ""))
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
        wanted = {ref.sha for line in reader.read(log) for ref in named(types.decode(line).body)}
    except msgspec.DecodeError as exc:
        yield f"a record of the log cannot be understood: {exc}"
        return
    for sha in sorted(wanted - set(manifest.missing)):
        if f"blobs/{sha[:2]}/{sha}" not in found:
            yield f"payload {sha[:12]}… is named by the log and missing"
    ledger = folder / LEDGER
    if ledger.is_file() and not all(map(whole, ledger.read_bytes().splitlines(keepends=True))):
        yield "a row of the ledger is damaged"


def named(value: object) -> Iterator[BlobRef]:
    """Every payload that a record's body names."""
    if isinstance(value, BlobRef):
        yield value
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from named(getattr(value, name))
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from named(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from named(item)
