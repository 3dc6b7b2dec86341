"""A session in one file: what is not as it was written is found, and nothing is written where it does not belong."""

from __future__ import annotations

import io
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.events import bundle
from harness.events.log import LogWriter
from harness.events.reader import verify

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
    writer = bundle.Writer(file, SID)
    for path in sorted((folder / "log").iterdir()):
        writer.add(f"log/{path.name}", io.BytesIO(path.read_bytes()), path.stat().st_size)
    writer.add(f"blobs/{sha[:2]}/{sha}", io.BytesIO(PAYLOAD), len(PAYLOAD))
    writer.add(bundle.LEDGER, io.BytesIO(b""), 0)
    writer.close(bundle.Manifest(sid=SID, name="one", records=report.records, head=report.head, hash=report.hash))
    return file.getvalue()


def found(data: bytes, folder: Path) -> bool:
    """True when it is said to be as it was written."""
    file = folder / "b.watchfloor.tar"
    file.write_bytes(data)
    try:
        return bundle.check(file).ok
    except bundle.NotABundle:
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
    assert names[-2:] == [bundle.MANIFEST, bundle.SEAL]


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


def resealed(members: dict[str, bytes]) -> bytes:
    """What a forger makes, who knows the form and counts the hash of the file anew."""
    body = b"".join(bundle._header(name, len(text)) + text + bytes(-len(text) % 512) for name, text in members.items())
    return body + bundle._end(SID, sha256(body).hexdigest())


def members(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return {
            m.name: file.read()
            for m in tar
            if (file := tar.extractfile(m)) is not None and not m.name.endswith(bundle.SEAL)
        }


def test_counting_the_hash_of_the_file_anew_hides_no_change(whole: bytes, place: Path) -> None:
    parts = members(whole)
    assert resealed(parts) == whole
    for name, text in parts.items():
        if text and not name.endswith(bundle.MANIFEST):
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
    with pytest.raises(bundle.NotABundle, match="holds"):
        bundle.unpack(file, target)
    assert not [p for p in tmp_path.rglob("out*")]


def test_a_link_in_it_is_refused(whole: bytes, tmp_path: Path) -> None:
    info = tarfile.TarInfo(f"watchfloor-{SID}/log/000002.jsonl")
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    file = tmp_path / "b.watchfloor.tar"
    file.write_bytes(info.tobuf(tarfile.USTAR_FORMAT) + whole)
    with pytest.raises(bundle.NotABundle, match="holds"):
        bundle.check(file)
