"""Which supervisors the note of a stop names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from harness.protocol import stop_mark
from harness.protocol.paths import STOPPING


def serves(runtime: Path, pid: int) -> None:
    (runtime / "supervisor.json").write_text(json.dumps({"pid": pid}))


def test_a_stop_while_another_one_starts_names_the_last_and_the_new_one(tmp_path: Path) -> None:
    serves(tmp_path, 7)
    stop_mark.write(tmp_path, 9)
    assert stop_mark.names_last(tmp_path)
    assert stop_mark.names(tmp_path, 9)
    serves(tmp_path, 9)
    assert stop_mark.names_last(tmp_path)


def test_one_that_serves_later_is_not_named(tmp_path: Path) -> None:
    serves(tmp_path, 7)
    assert not stop_mark.names_last(tmp_path)
    stop_mark.write(tmp_path)
    assert stop_mark.names_last(tmp_path)
    serves(tmp_path, 77)
    assert not stop_mark.names_last(tmp_path)


@pytest.mark.parametrize("last", ["", "[]", "{}", '{"pid": "7"}', '{"pid": null}', "\udcff7"])
def test_without_a_last_supervisor_no_one_was_asked_to_stop(tmp_path: Path, last: str) -> None:
    (tmp_path / "supervisor.json").write_bytes(last.encode("utf-8", "surrogateescape"))
    stop_mark.write(tmp_path)
    assert not stop_mark.names_last(tmp_path)
    (tmp_path / STOPPING).write_bytes(b"\xff 7")
    serves(tmp_path, 7)
    assert not stop_mark.names_last(tmp_path)
