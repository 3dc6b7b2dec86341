"""A session in one file: what is not as it was written is found, and nothing is written where it does not belong."""

from __future__ import annotations

import io
import tarfile
from hashlib import sha256
from pathlib import Path
from zlib import crc32

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.bundle import plain_tar, session_bundle
from harness.eventlog import framing, head_marker
from harness.eventlog.reader import verify
from harness.eventlog.writer import LogWriter
from harness.events import types
from harness.protocol.session_names import is_session_id

SID = "abcdefghij"
PAYLOAD = b"a long result\n" * 40


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A small bundle of two records, one of which names a payload."""
    folder = tmp_path_factory.mktemp("made")
    sha = sha256(PAYLOAD).hexdigest()
    log = LogWriter.open(folder / "log", SID)
    log.append("harness.note", {"level": "info", "text": "begun"}, actor="test")
    ended = {"call_id": "c1.0", "status": "ok", "preview": "", "output": {"sha": sha, "bytes": len(PAYLOAD)}}
    log.append("tool.ended", ended, actor="test")
    log.commit(sync=True)
    log.close()
    report = verify(folder / "log")
    file = io.BytesIO()
    writer = session_bundle.Writer(file, SID)
    for path in sorted((folder / "log").iterdir()):
        writer.add(f"log/{path.name}", io.BytesIO(path.read_bytes()), path.stat().st_size)
    writer.add(f"blobs/{sha[:2]}/{sha}", io.BytesIO(PAYLOAD), len(PAYLOAD))
    writer.add(session_bundle.LEDGER, io.BytesIO(b""), 0)
    writer.close(
        session_bundle.Manifest(sid=SID, name="one", records=report.records, head=report.head, hash=report.hash)
    )
    return file.getvalue()


def found(data: bytes, folder: Path) -> bool:
    """True when it is said to be as it was written."""
    file = folder / "b.watchfloor.tar"
    file.write_bytes(data)
    try:
        return session_bundle.check(file).ok
    except session_bundle.NotABundle:
        return False


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("checked")


def test_what_was_written_checks_and_a_common_tar_reads_it(whole: bytes, place: Path) -> None:
    assert found(whole, place)
    with tarfile.open(fileobj=io.BytesIO(whole)) as tar:
        names = [name.removeprefix(f"watchfloor-{SID}/") for name in tar.getnames()]
        readme = tar.extractfile(f"watchfloor-{SID}/README")
        assert readme is not None
        assert b"watchfloor verify" in readme.read()
    assert names[-2:] == [session_bundle.MANIFEST, session_bundle.SEAL]


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_a_change_of_any_byte_is_found(whole: bytes, place: Path, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(whole) - 1))
    other = data.draw(st.integers(1, 255))
    assert not found(whole[:at] + bytes([whole[at] ^ other]) + whole[at + 1 :], place)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_bytes_that_are_gone_or_new_are_found(whole: bytes, place: Path, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(whole)))
    more = data.draw(st.binary(min_size=1, max_size=600))
    assert not found(whole[:at] + more + whole[at:], place)
    assert not found(whole[: data.draw(st.integers(0, len(whole) - 1))], place)


def resealed(members: dict[str, bytes], sid: str = SID) -> bytes:
    """What a forger makes, who knows the form and counts the hash of the file anew."""
    body = b"".join(
        plain_tar.header(name, len(text)) + text + bytes(-len(text) % 512) for name, text in members.items()
    )
    return body + session_bundle.ending(sid, sha256(body).hexdigest())


def members(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {
            m.name: file.read()
            for m in tar
            if (file := tar.extractfile(m)) is not None and not m.name.endswith(session_bundle.SEAL)
        }


def test_counting_the_hash_of_the_file_anew_hides_no_change(whole: bytes, place: Path) -> None:
    parts = members(whole)
    assert resealed(parts) == whole
    for name, text in parts.items():
        if text and not name.endswith(session_bundle.MANIFEST):
            assert not found(resealed({**parts, name: text[:-2] + b"?" + text[-1:]}), place), name
        rest = {other: kept for other, kept in parts.items() if other != name}
        assert not found(resealed(rest), place), f"{name} is missing"


@pytest.mark.parametrize(
    "name", ["../out", "/etc/out", f"watchfloor-{SID}/../../out", f"watchfloor-{SID}/log/../../out", "other/log/head"]
)
def test_a_name_that_leads_elsewhere_is_refused_and_nothing_is_written(whole: bytes, tmp_path: Path, name: str) -> None:
    file = tmp_path / "b.watchfloor.tar"
    file.write_bytes(resealed({**members(whole), name: b"x"}))
    target = tmp_path / "deep" / "er"
    target.mkdir(parents=True)
    with pytest.raises(session_bundle.NotABundle, match="holds"):
        session_bundle.unpack(file, target)
    assert not [p for p in tmp_path.rglob("out*")]


KINDS = {
    tarfile.LNKTYPE: "hard link",
    tarfile.SYMTYPE: "symbolic link",
    tarfile.CHRTYPE: "device",
    tarfile.BLKTYPE: "device",
    tarfile.DIRTYPE: "folder",
    tarfile.FIFOTYPE: "named pipe",
    tarfile.CONTTYPE: "contiguous",
    tarfile.XHDTYPE: "extended header",
    tarfile.XGLTYPE: "global extended header",
    tarfile.GNUTYPE_LONGNAME: "long name",
    tarfile.GNUTYPE_LONGLINK: "long name of a link",
    tarfile.GNUTYPE_SPARSE: "sparse file",
}


def other_member(kind: bytes, size: int, form: int = tarfile.GNU_FORMAT) -> bytes:
    """A header with a name that a bundle has and a right checksum, of a kind and a size that none has."""
    info = tarfile.TarInfo(f"watchfloor-{SID}/log/000002.jsonl")
    info.type = kind
    info.size = size
    info.mode = 0o600
    return info.tobuf(form)


def sparse(real: int) -> bytes:
    """An old GNU sparse member that says it has ``real`` bytes, and has none."""
    block = bytearray(other_member(tarfile.GNUTYPE_SPARSE, 0))
    block[386:398] = b"%011o\0" % real
    block[398:410] = b"%011o\0" % 0
    block[483:495] = b"%011o\0" % real
    block[148:156] = b" " * 8
    block[148:156] = b"%06o\0 " % sum(block)
    return bytes(block)


LONG = other_member(tarfile.GNUTYPE_LONGNAME, 1) + b"a".ljust(512, b"\0")


def refused(data: bytes, folder: Path, match: str) -> None:
    """It is refused with these words, and nothing is written anywhere."""
    file = folder / "b.watchfloor.tar"
    file.write_bytes(data)
    target = folder / "target"
    target.mkdir(exist_ok=True)
    with pytest.raises(session_bundle.NotABundle, match=match):
        session_bundle.unpack(file, target)
    assert [p for p in folder.rglob("*") if p not in (file, target)] == []


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_plain_file_is_refused_by_its_name(whole: bytes, tmp_path: Path, kind: bytes) -> None:
    refused(other_member(kind, 0) + whole, tmp_path, KINDS[kind])
    refused(other_member(kind, 2**40) + whole, tmp_path, KINDS[kind])


def test_a_sparse_member_writes_nothing(whole: bytes, tmp_path: Path) -> None:
    refused(sparse(200 << 20) + whole, tmp_path, "sparse file")


def test_a_pax_header_that_makes_the_next_member_sparse_is_not_interpreted(whole: bytes, tmp_path: Path) -> None:
    info = tarfile.TarInfo(f"watchfloor-{SID}/log/000002.jsonl")
    info.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0", "GNU.sparse.realsize": str(200 << 20)}
    refused(info.tobuf(tarfile.PAX_FORMAT) + whole, tmp_path, "extended header")


def test_a_chain_of_long_names_is_refused_at_the_first(whole: bytes, tmp_path: Path) -> None:
    refused(LONG * 3000, tmp_path, "long name")


@pytest.mark.parametrize("size", [2**40, 8 * 2**30 - 1, 1 << 20])
def test_a_member_larger_than_the_file_is_refused(whole: bytes, tmp_path: Path, size: int) -> None:
    form = tarfile.USTAR_FORMAT if size < 8 * 2**30 else tarfile.GNU_FORMAT
    refused(other_member(tarfile.REGTYPE, size, form) + whole, tmp_path, "holds")


def remade(whole: bytes, sid: str, root: str = SID, **other: object) -> bytes:
    """The bundle with another id in manifest and root, sealed anew."""
    parts = members(whole)
    about = msgspec.json.decode(parts.pop(f"watchfloor-{SID}/{session_bundle.MANIFEST}"))
    about |= {"sid": sid, **other}
    parts = {name.replace(SID, root, 1): text for name, text in parts.items()}
    return resealed({**parts, f"watchfloor-{root}/{session_bundle.MANIFEST}": msgspec.json.encode(about)}, root)


@pytest.mark.parametrize(
    "sid",
    ["/etc", "..", "../../out", "", ".", "abc", "abcdefghi/", "ABCDEFGHIJ", "x" * 300, "a\0bcdefghi", "abcdefghik"],
)
def test_a_manifest_of_another_session_than_the_folder_is_refused(whole: bytes, tmp_path: Path, sid: str) -> None:
    file = tmp_path / "b.watchfloor.tar"
    target = tmp_path / "target"
    target.mkdir()
    file.write_bytes(remade(whole, sid))
    with pytest.raises(session_bundle.NotABundle, match="its manifest is that of"):
        session_bundle.unpack(file, target)


@settings(max_examples=60, deadline=None)
@given(root=st.from_regex(r"\A[a-zA-Z0-9._-]{0,14}\Z") | st.from_regex(r"\A[a-z0-9]{10}\Z"))
def test_a_folder_is_of_a_session_or_refused(whole: bytes, place: Path, root: str) -> None:
    file = place / "root.watchfloor.tar"
    file.write_bytes(remade(whole, root, root))
    if is_session_id(root):
        checked = session_bundle.check(file)
        assert checked.manifest is not None
        assert checked.manifest.sid == root
    else:
        with pytest.raises(session_bundle.NotABundle):
            session_bundle.check(file)
        with pytest.raises(ValueError, match="no session's id"):
            session_bundle.Writer(io.BytesIO(), root)


def test_nothing_follows_the_seal_and_none_is_before_the_end(whole: bytes, tmp_path: Path) -> None:
    early = whole[: -4 * 512] + session_bundle.ending(SID, sha256(whole[: -4 * 512]).hexdigest())[:1024]
    file = tmp_path / "b.watchfloor.tar"
    for data in (early + session_bundle.ending(SID, sha256(early).hexdigest()), whole + bytes(512), whole + whole):
        file.write_bytes(data)
        with pytest.raises(session_bundle.NotABundle, match="it holds 'watchfloor-abcdefghij/sha256'"):
            session_bundle.check(file)


NUMBERS = ("records", "head", "spent_nano", "tokens", "requests", "format")


@settings(max_examples=60, deadline=None)
@given(name=st.sampled_from(NUMBERS), digits=st.integers(19, 5000), sign=st.sampled_from(["", "-"]))
def test_a_number_that_nobody_can_reckon_with_is_refused(
    whole: bytes, place: Path, name: str, digits: int, sign: str
) -> None:
    file = place / "number.watchfloor.tar"
    file.write_bytes(remade(whole, SID, **{name: msgspec.Raw(f"{sign}{'9' * digits}".encode())}))
    with pytest.raises(session_bundle.NotABundle, match="manifest"):
        session_bundle.check(file)


@pytest.mark.parametrize("depth", [2_000, 300_000])
def test_what_is_nested_without_end_is_refused_or_found(whole: bytes, tmp_path: Path, depth: int) -> None:
    deep = msgspec.Raw(b"[" * depth + b"]" * depth)
    file = tmp_path / "b.watchfloor.tar"
    file.write_bytes(remade(whole, SID, more=deep))
    with pytest.raises(session_bundle.NotABundle, match="manifest"):
        session_bundle.check(file)
    line = framing.closed(b'{"v":1,"segment":1,"sid":' + bytes(deep), framing.GENESIS)[0]
    record = b'{"seq":0,"ts":"","type":"tool.proposed","actor":"a","gen":0,"data":{"call_id":' + bytes(deep) + b"}}"
    with pytest.raises(framing.BadLine):
        framing.parse_mark(line)
    with pytest.raises(msgspec.DecodeError):
        types.decode(record)


@given(st.binary(max_size=60))
def test_an_anchor_of_any_bytes_anchors_nothing_or_a_record(
    tmp_path_factory: pytest.TempPathFactory, text: bytes
) -> None:
    folder = tmp_path_factory.getbasetemp()
    body = b"1 " + text.ljust(60, b" ")[:60] + b" "
    (folder / head_marker.FILE).write_bytes(body + b"%08x\n" % crc32(body))
    known = head_marker.load(folder)
    assert known is None or head_marker.encode(known) == (folder / head_marker.FILE).read_bytes()


def mutated(whole: bytes, data: st.DataObject) -> bytes:
    """A bundle with hostile members, whose headers or manifest were changed at some places, with right checksums and
    sealed anew, or not.
    """
    kinds = st.sampled_from([*KINDS, tarfile.REGTYPE])
    sizes = st.sampled_from([0, 1, 513, 2**32, 2**40, 2**62])
    hostile = (
        st.builds(other_member, kinds, sizes) | st.builds(sparse, st.sampled_from([0, 4 << 20])) | st.just(LONG * 990)
    )
    before = b"".join(data.draw(st.lists(hostile, max_size=2)))
    made = bytearray(before + whole)
    heads = [at for at in range(0, len(made) - 512, 512) if made[at : at + 11] == b"watchfloor-"]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.sampled_from(heads))
        field, size = data.draw(
            st.sampled_from([(0, 100), (124, 12), (156, 1), (157, 100), (257, 8), (345, 155), (386, 110)])
        )
        new = data.draw(
            st.binary(max_size=size)
            | st.sampled_from([b"%011o\0" % 2**32, b"\x80" + b"\xff" * 11, *KINDS, b"../../x\0", b"/etc/x\0"])
        )[:size]
        made[at + field : at + field + len(new)] = new
        if data.draw(st.booleans()):
            made[at + 148 : at + 156] = b" " * 8
            made[at + 148 : at + 156] = b"%06o\0 " % sum(made[at : at + 512])
    if data.draw(st.booleans()):
        begin = made.rfind(b'"sid"')
        where = data.draw(st.integers(0, 400)) + begin
        new = data.draw(
            st.binary(max_size=30) | st.sampled_from([b'"sid":"/etc",', b'"\\ud800"', b"1e999", b"-1", b"[" * 500])
        )
        made[where : where + len(new)] = new
    if data.draw(st.booleans()):
        made[-2048:] = session_bundle.ending(SID, sha256(bytes(made[:-2048])).hexdigest())
    return bytes(made)


@settings(max_examples=400, deadline=None)
@given(st.data())
@pytest.mark.slow
def test_whatever_was_changed_it_is_refused_or_found_and_never_more_is_written_than_it_has(
    whole: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    changed = mutated(whole, data)
    top = tmp_path_factory.mktemp("fuzz")
    file = top / "b.watchfloor.tar"
    file.write_bytes(changed)
    target = top / "deep" / "target"
    target.mkdir(parents=True)
    try:
        checked = session_bundle.unpack(file, target)
    except session_bundle.NotABundle:
        pass
    else:
        assert checked.manifest is not None
        assert is_session_id(checked.manifest.sid)
    assert {p for p in top.rglob("*") if target not in p.parents} == {file, target, target.parent}
    assert sum(p.stat().st_size for p in target.rglob("*") if p.is_file()) <= len(changed)
