"""The verbs that read a file made elsewhere: whatever it is, they end with a refusal and its exit code, and move
nothing out of their own folder.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from app import main
from app.cli.base import bundle_source, exits
from app.cli.base.arguments import Refused
from harness.bundle import session_bundle
from harness.eventlog import framing
from harness.eventlog.reader import verify

SID = "abcdefghij"
VERBS = ("logs", "brief", "score", "verify")


@pytest.fixture(autouse=True)
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("STATE", "RUNTIME", "CONFIG"):
        monkeypatch.setenv(f"WATCHFLOOR_{name}", str(tmp_path / name.lower()))
    return tmp_path


def made(folder: Path, data: bytes) -> Path:
    """A whole bundle of one record with this data, whatever it is."""
    log = folder / "log"
    log.mkdir()
    head, chain = framing.encode_header(1, SID, framing.GENESIS, 0)
    text = head + framing.encode_event(0, "2026-01-01T00:00:00Z", "tool.proposed", "test", 0, data, chain)[0]
    (log / "000001.jsonl").write_bytes(text)
    report = verify(log)
    file = folder / "one.watchfloor.tar"
    with file.open("wb") as out:
        writer = session_bundle.Writer(out, SID)
        writer.add("log/000001.jsonl", io.BytesIO(text), len(text))
        writer.close(session_bundle.Manifest(sid=SID, records=report.records, head=report.head, hash=report.hash))
    return file


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_that_is_not_there_is_refused(places: Path, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main([verb, str(places / "none.watchfloor.tar")]) == exits.REFUSED
    assert "cannot be read: No such file" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
def test_a_file_of_another_form_is_refused(places: Path, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = places / "other.watchfloor.tar"
    file.write_bytes(bytes(4096))
    assert main.main([verb, str(file)]) == exits.NO
    assert "is no whole bundle of a session" in capsys.readouterr().err


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("data", [b"[]", b"", b'{"args":' + b"[" * 5000 + b"]" * 5000 + b"}"])
def test_a_record_that_nobody_understands_is_said(
    places: Path, verb: str, data: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    code = main.main([verb, str(made(places, data))])
    told = capsys.readouterr()
    assert code == exits.NO, told.err
    assert "cannot be understood" in told.out + told.err


@pytest.mark.parametrize("sid", ["", ".", "..", "../../victim", "abcdefghi/", "ABCDEFGHIJ"])
def test_a_shelf_is_only_made_of_what_is_a_session_id(places: Path, monkeypatch: pytest.MonkeyPatch, sid: str) -> None:
    absolute = str(places / "victim")

    def unpacked(file: Path, folder: Path) -> session_bundle.Checked:
        return session_bundle.Checked(session_bundle.Manifest(sid=sid or absolute), "", ())

    monkeypatch.setattr(session_bundle, "unpack", unpacked)
    with (
        pytest.raises(session_bundle.NotABundle, match="is no session's id"),
        bundle_source.reader(places / "f.watchfloor.tar"),
    ):
        pass
    assert not (places / "victim").exists()


def test_no_space_to_unpack_is_a_refusal(places: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(file: Path, folder: Path) -> session_bundle.Checked:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(session_bundle, "unpack", full)
    with pytest.raises(Refused, match="No space left"), bundle_source.reader(places / "f.watchfloor.tar"):
        pass
