"""Which folder a state folder is: the comparison as a table, the mark on a real disk."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from harness.protocol import identity
from harness.protocol.connection import frames
from harness.protocol.identity import Mark, judge, same_folder
from harness.protocol.paths import FolderError, Folders

HOME = Mark("m1", "b1", "/home/u/state", 7, 99, 1000, 1001)


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({}, False),
        ({"boot": "b2"}, False),
        ({"boot": "b2", "device": 8, "filesystem": 5}, False),
        ({"device": 8}, False),  # the same file system, mounted anew
        ({"machine": ""}, False),
        ({"device": 8, "filesystem": 5}, True),
        ({"machine": "m2"}, True),
        ({"machine": "m2", "path": "/other"}, True),
        ({"path": "/mnt/state"}, True),
        ({"path": "/copy", "inode": 5, "mark": 6}, True),
        ({"inode": 5, "mark": 6}, True),
        ({"inode": 5}, True),
        ({"mark": 6}, True),  # a backup that was unpacked into the same folder
        ({"mark": 0}, True),
    ],
)
def test_judge(changed: dict[str, object], refused: bool) -> None:
    found = judge(HOME, HOME._replace(**changed))
    assert (found is not None) == refused
    if found is not None:
        assert HOME.path in found.why
        assert "watchfloor adopt" in found.hint
        assert found.moved == (changed.keys() == {"path"}), "only then are the processes that it names its own"


def test_a_machine_without_an_id_is_not_another_one() -> None:
    unnamed = HOME._replace(machine="")
    assert judge(unnamed, HOME) is None
    assert same_folder(unnamed, HOME)


def state(path: Path) -> Path:
    path.mkdir()
    identity.write(path)
    return path


def test_the_mark_on_disk(tmp_path: Path) -> None:
    home = state(tmp_path / "state")
    assert identity.look(home) is None
    raw = json.loads((home / identity.NAME).read_text())
    assert {"machine", "path", "device", "inode", "mark"} <= raw.keys()
    assert Path("/etc/machine-id").exists() is False or Path("/etc/machine-id").read_text().strip() not in json.dumps(
        raw
    ), "the machine's id itself stays here"
    assert (home / identity.NAME).stat().st_ino == raw["mark"]
    assert (home / identity.NAME).stat().st_mode & 0o777 == 0o600
    (tmp_path / "link").symlink_to(home)
    assert identity.look(tmp_path / "link") is None, "another way to the same folder"


def test_copies_and_moves_on_disk(tmp_path: Path) -> None:
    home = state(tmp_path / "state")
    shutil.copytree(home, tmp_path / "copy")
    assert identity.look(tmp_path / "copy") is not None
    assert identity.look(home) is None
    home.rename(tmp_path / "moved")
    assert identity.look(tmp_path / "moved") is not None
    (tmp_path / "copy").rename(home)
    assert identity.look(home) is not None
    shutil.rmtree(home)
    (tmp_path / "moved").rename(home)
    assert identity.look(home) is None, "moved away and back again"


def test_files_restored_into_the_same_folder(tmp_path: Path) -> None:
    home = state(tmp_path / "state")
    mark = (home / identity.NAME).read_bytes()
    (home / "keeps-the-old-inode").hardlink_to(home / identity.NAME)
    (home / identity.NAME).unlink()
    (home / identity.NAME).write_bytes(mark)
    assert identity.look(home) is not None


@pytest.mark.parametrize("text", ["", "{}", "[]", "not json", '{"fleet": 1}'])
def test_a_damaged_mark_is_said(tmp_path: Path, text: str) -> None:
    home = state(tmp_path / "state")
    (home / identity.NAME).write_text(text)
    found = identity.look(home)
    assert found is not None
    assert identity.NAME in found.why


def folders(root: Path, runtime: Path) -> Folders:
    root.mkdir(exist_ok=True)
    runtime.mkdir(exist_ok=True)
    return Folders(root, runtime, root)


def test_a_runtime_folder_has_one_fleet(tmp_path: Path) -> None:
    one = folders(tmp_path / "one", tmp_path / "run")
    two = folders(tmp_path / "two", tmp_path / "run")
    identity.claim_runtime(one)
    identity.claim_runtime(one)
    with pytest.raises(FolderError, match="belongs to the fleet in"):
        identity.claim_runtime(two)
    shutil.rmtree(one.state)
    identity.claim_runtime(two)
    with pytest.raises(FolderError):
        identity.claim_runtime(folders(tmp_path / "one", tmp_path / "run"))


def test_a_folder_replaced_under_its_processes_is_said_with_their_numbers(tmp_path: Path) -> None:
    home = folders(tmp_path / "state", tmp_path / "run")
    identity.claim_runtime(home)
    home.keeper_sockets.mkdir()
    before = identity.who(home.state)
    home.state.rename(tmp_path / "old")
    home.state.mkdir()
    with frames.listen(home.supervisor_socket), frames.listen(home.keeper_sockets / "abcdefghij.sock"):
        with pytest.raises(FolderError) as caught:
            identity.claim_runtime(home)
        for told in (str(caught.value), identity.replaced(before, home)):
            assert "was replaced by another one" in told
            assert f"process {os.getpid()}" in told
            assert f"kill {os.getpid()}" in told
            assert "WATCHFLOOR_RUNTIME" not in told
    assert identity.replaced(identity.who(tmp_path / "old"), home) == "", "another path is another fleet"
    identity.claim_runtime(home)
    assert identity.replaced(identity.who(home.state), home) == ""


def test_a_runtime_folder_inside_came_along(tmp_path: Path) -> None:
    home = tmp_path / "state"
    identity.claim_runtime(folders(home, home / "run"))
    shutil.copytree(home, tmp_path / "copy")
    identity.claim_runtime(folders(tmp_path / "copy", tmp_path / "copy" / "run"))


def test_who_answers_is_compared(tmp_path: Path) -> None:
    one = state(tmp_path / "one")
    two = state(tmp_path / "two")
    assert identity.other_fleet(identity.who(one), one) == ""
    assert identity.other_fleet(identity.who(one), two) == os.path.realpath(one)
    gone = tmp_path / "not-there-yet"
    assert identity.other_fleet(identity.who(one), gone) == os.path.realpath(one), "a folder that is yet to be made"
    told = identity.who(two)
    two.rename(tmp_path / "moved")
    assert identity.other_fleet(told, two) == "", "its own, which is gone"
