"""The vault against a real folder: whatever happens between two snapshots, hints and a full look agree, and every state
comes back.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import random
import shutil
import stat
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.vault import entries, trees
from harness.vault.limits import VaultLimits
from harness.vault.scan import Root, TreeTooLarge
from harness.vault.vault import Expired, Vault

EXACT = frozenset({b"w"})


class Ground:
    """A worktree and its vault."""

    def __init__(self, base: Path, limits: VaultLimits | None = None, history: int = 1 << 30) -> None:
        self.work = base / "work"
        self.store = base / "vault"
        self.work.mkdir(parents=True)
        self.limits = replace(limits or VaultLimits(), history_bytes=history)
        self.vault = Vault(self.store, self.limits)
        self.roots = (Root(b"w", str(self.work), frozenset({b".git"})),)

    def take(self, label: str = "x", *, full: bool = False, since: str = "", writers: tuple[int, ...] = ()) -> str:
        return self.vault.take(self.roots, label, full=full, since=since, writers=writers).id

    def again(self) -> None:
        """As after the vault's process ended."""
        self.vault.close()
        self.vault = Vault(self.store, self.limits)

    def back(self, snapshot: str) -> list[tuple[str, str]]:
        return self.vault.bring_back(self.roots, snapshot, "undo", EXACT)[1].refused


def dump(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything that an undo promises to bring back: kinds, modes, contents, targets."""
    found: dict[str, tuple[object, ...]] = {}
    for here, folders, files in os.walk(folder):
        for name in folders + files:
            path = Path(here, name)
            info = path.lstat()
            key = os.path.relpath(path, folder)
            if stat.S_ISLNK(info.st_mode):
                found[key] = ("link", os.readlink(path))
            elif stat.S_ISREG(info.st_mode):
                found[key] = ("file", stat.S_IMODE(info.st_mode), path.read_bytes())
            else:
                found[key] = (stat.S_IFMT(info.st_mode), stat.S_IMODE(info.st_mode))
    return found


def meddle(work: Path, pick: random.Random) -> None:
    """One act of the kind that agents do to their files."""
    every = [Path(here, name) for here, folders, files in os.walk(work) for name in folders + files]
    folders = [work, *(p for p in every if p.is_dir() and not p.is_symlink())]
    files = [p for p in every if p.is_file() and not p.is_symlink()]
    new = pick.choice(folders) / f"n{pick.randrange(12)}"
    if new.is_fifo():  # writing into one would wait for a reader
        return
    act = pick.randrange(13)
    with contextlib.suppress(OSError):  # what cannot be done (into itself, over a folder) is simply not done
        if act <= 2:
            new.write_bytes(pick.randbytes(pick.choice([0, 1, 100, 5000])))
        elif act == 3:
            new.mkdir()
        elif act == 4:
            new.symlink_to(pick.choice(["n1", "../x", "/etc", "n2"]))
        elif act == 5 and files:
            pick.choice(files).write_bytes(b"other")
        elif act == 6 and files:
            with open(pick.choice(files), "ab") as file:
                file.write(b"more\n")
        elif act == 7 and files:
            pick.choice(files).unlink()
        elif act == 8 and len(folders) > 1:
            shutil.rmtree(pick.choice(folders[1:]))
        elif act == 9 and every:
            pick.choice(every).rename(new)
        elif act == 10 and files:
            pick.choice(files).chmod(pick.choice([0o600, 0o755, 0o444, 0o000]))
        elif act == 11 and files:
            os.link(pick.choice(files), work / new.name)
        elif act == 12:
            os.mkfifo(new)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), acts=st.integers(1, 8), rounds=st.integers(1, 6))
def test_every_state_comes_back(tmp_path_factory: pytest.TempPathFactory, seed: int, acts: int, rounds: int) -> None:
    ground = Ground(tmp_path_factory.mktemp("g"))
    pick = random.Random(seed)
    states = [(ground.take("start"), dump(ground.work))]
    for _ in range(rounds):
        for _ in range(acts):
            meddle(ground.work, pick)
        by_hints = ground.take()
        assert ground.take(full=True) == by_hints, "a full look finds nothing that the hints did not"
        if pick.randrange(3) == 0:
            ground.again()
            assert ground.take() == by_hints, "nor does a vault that starts anew"
        states.append((by_hints, dump(ground.work)))
    pick.shuffle(states)
    for snapshot, seen in states:
        assert ground.back(snapshot) == []
        assert dump(ground.work) == seen
    shutil.rmtree(ground.work.parent)


def test_permissions_of_one_name_of_a_file_leave_the_other_name_alone(tmp_path_factory: pytest.TempPathFactory) -> None:
    ground = Ground(tmp_path_factory.mktemp("g"))
    (ground.work / "one").write_text("same")
    (ground.work / "two").write_text("same")
    (ground.work / "two").chmod(0o444)
    before = ground.take()
    seen = dump(ground.work)
    (ground.work / "one").unlink()
    os.link(ground.work / "two", ground.work / "one")
    ground.take()
    assert ground.back(before) == []
    assert dump(ground.work) == seen


def through_a_known_name(w: Path, name: Path) -> None:
    name.unlink()


def through_a_name_that_another_takes(w: Path, name: Path) -> None:
    (w / "c").write_text("another")
    os.replace(w / "c", name)


def through_a_name_that_moves_into_a_new_folder(w: Path, name: Path) -> None:
    (w / "new").mkdir()
    os.rename(name, w / "new" / "f")
    (w / "new" / "f").unlink()


@pytest.mark.parametrize(
    "vanish", [through_a_known_name, through_a_name_that_another_takes, through_a_name_that_moves_into_a_new_folder]
)
@pytest.mark.parametrize("name", ["known", "unknown", "brief/name"])
def test_a_write_through_a_name_that_is_gone_is_seen_under_the_other(
    tmp_path: Path, name: str, vanish: Callable[[Path, Path], None]
) -> None:
    """The kernel tells of one name only, and by the time of the look that name may be gone, bear another file or never
    have been known.
    """
    ground = Ground(tmp_path)
    w = tmp_path / "work"
    (w / "a").write_text("one")
    os.link(w / "a", w / "known")
    # a stamp that young is looked at again anyway
    while time.time_ns() - (w / "a").stat().st_ctime_ns <= 2 * trees.SETTLING_NS:
        time.sleep(0.01)
    before = ground.take(full=True)
    if name != "known":
        (w / name).parent.mkdir(exist_ok=True)
        os.link(w / "a", w / name)
    (w / name).write_text("two")
    vanish(w, w / name)
    if "/" in name:
        shutil.rmtree((w / name).parent)
    by_hints = ground.take()
    assert ground.take(full=True) == by_hints
    assert b"w/a" in [change.path for change in ground.vault.since(before)]


def test_a_state_after_an_undo_comes_back_too(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    (ground.work / "a").write_text("one")
    first = ground.take()
    (ground.work / "a").unlink()
    (ground.work / "b").write_text("two")
    before, _ = ground.vault.bring_back(ground.roots, first, "undo", EXACT)
    assert (ground.work / "a").read_text() == "one"
    assert ground.back(before.id) == []
    assert sorted(p.name for p in ground.work.iterdir()) == ["b"]


def test_what_is_too_large_is_named_and_never_touched(tmp_path: Path) -> None:
    ground = Ground(tmp_path, VaultLimits(file_bytes=1000))
    large = ground.work / "large.bin"
    small = ground.work / "small"
    small.write_text("kept")
    with open(large, "wb") as file:
        file.truncate(1 << 40)
    taken = ground.vault.take(ground.roots, "x")
    assert (taken.left_out, taken.left_out_names) == (1, ("large.bin",))
    large.unlink()
    small.unlink()
    (ground.work / "new.bin").write_bytes(bytes(5000))
    refused = ground.back(taken.id)
    assert small.read_text() == "kept"
    assert sorted(name for name, _ in refused) == ["large.bin", "new.bin"]
    assert (ground.work / "new.bin").stat().st_size == 5000, "what is not kept is not removed"


def test_the_whole_tree_has_a_budget_and_small_files_go_first(tmp_path: Path) -> None:
    ground = Ground(tmp_path, VaultLimits(tree_bytes=2500))
    for number, size in enumerate((1000, 900, 2000, 10)):
        (ground.work / str(number)).write_bytes(bytes([number]) * size)
    assert ground.vault.take(ground.roots, "x").left_out_names == ("2",)


def test_too_many_names_are_refused_and_leave_the_vault_usable(tmp_path: Path) -> None:
    ground = Ground(tmp_path, VaultLimits(names=10))
    ground.take()
    for number in range(20):
        (ground.work / str(number)).touch()
    with pytest.raises(TreeTooLarge, match="more than 10 names"):
        ground.take()
    for number in range(15):
        (ground.work / str(number)).unlink()
    assert ground.take() != ""


def test_history_has_a_budget_and_the_newest_states_stay(tmp_path: Path) -> None:
    ground = Ground(tmp_path, history=200_000)
    taken = []
    for number in range(60):
        (ground.work / "a").write_bytes(random.Random(number).randbytes(10_000))
        taken.append((ground.take(), dump(ground.work)))
        ground.vault.tidy()
    assert ground.vault.stored < 600_000
    with pytest.raises(Expired, match="no longer kept"):
        ground.back(taken[0][0])
    for snapshot, seen in (taken[-1], taken[-5], taken[-2]):
        assert ground.back(snapshot) == []
        assert dump(ground.work) == seen
    ground.again()
    assert ground.back(taken[-3][0]) == []
    assert dump(ground.work) == taken[-3][1]


def test_a_torn_pack_loses_only_what_was_not_acknowledged(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    (ground.work / "a").write_text("one")
    first = ground.take()
    pack = next(ground.store.glob("*.pack"))
    whole = pack.stat().st_size
    (ground.work / "a").write_text("two")
    second = ground.take()
    size = pack.stat().st_size
    ground.vault.close()
    data = pack.read_bytes()
    for cut in range(whole, size, 7):
        pack.write_bytes(data[:cut])
        ground.vault = Vault(ground.store)
        assert [m.id for m in ground.vault.marks()] == [first]
        assert pack.stat().st_size == whole, "the tail is cut before anything is added"
        ground.vault.close()
    pack.write_bytes(data)
    ground.vault = Vault(ground.store)
    assert [m.id for m in ground.vault.marks()] == [first, second]


def test_differences_name_what_changed_and_nothing_else(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    for name in ("same", "content", "mode", "gone", "kind"):
        (ground.work / name).write_text(name)
    first = ground.take()
    os.utime(ground.work / "same")
    (ground.work / "content").write_text("other")
    (ground.work / "mode").chmod(0o755)
    (ground.work / "gone").unlink()
    (ground.work / "kind").unlink()
    (ground.work / "kind").symlink_to("same")
    (ground.work / "new").touch()
    ground.take()
    said = [entries.sentence(change) for change in ground.vault.since(first)]
    assert said == [
        "content has other content",
        "gone is gone",
        "kind is another kind of thing (file, folder, link)",
        "mode has other permissions",
        "new did not exist and now does",
    ]


def test_a_link_never_leads_an_undo_outside(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    beside = tmp_path / "beside"
    beside.mkdir()
    (beside / "file").write_text("mine")
    (ground.work / "sub").mkdir()
    (ground.work / "sub" / "file").write_text("kept")
    first = ground.take()
    shutil.rmtree(ground.work / "sub")
    (ground.work / "sub").symlink_to(beside)
    assert ground.back(first) == []
    assert (ground.work / "sub" / "file").read_text() == "kept"
    assert not (ground.work / "sub").is_symlink()
    assert (beside / "file").read_text() == "mine"


def test_a_large_file_is_compared_by_what_is_known_of_it(tmp_path: Path) -> None:
    """Also in the first moments after a change, when a second one could hide behind the clock's tick."""
    ground = Ground(tmp_path, VaultLimits(file_bytes=1000))
    large = ground.work / "large.bin"
    for number in range(20):
        large.write_bytes(bytes([number]) * 5000)
        info = large.stat()
        shown = ground.take(full=True)
        assert ground.take(full=True) == shown, "it was not touched"
        assert ground.vault.since(shown) == []
        large.write_bytes(bytes([number + 100]) * 5000)
        os.utime(large, ns=(info.st_atime_ns, info.st_mtime_ns))
        ground.take(full=True)
        assert [entries.sentence(c) for c in ground.vault.since(shown)] == ["large.bin has other content"]


def test_a_file_that_grows_and_shrinks_does_not_use_up_the_budget(tmp_path: Path) -> None:
    ground = Ground(tmp_path, VaultLimits(file_bytes=1000, tree_bytes=3000))
    for number in range(8):
        (ground.work / "file").write_bytes(bytes([number]) * 900)
        assert ground.vault.take(ground.roots, "x").left_out == 0
        (ground.work / "file").write_bytes(bytes(5000))
        assert ground.vault.take(ground.roots, "x").left_out == 1


def test_paths_longer_than_a_system_call_takes_are_kept_and_come_back(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    at = os.open(ground.work, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("x" * 200, dir_fd=at)
        below = os.open("x" * 200, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    try:
        with open(os.open("leaf", os.O_WRONLY | os.O_CREAT, dir_fd=at), "w") as file:
            file.write("first")
        shown = ground.take(full=True)
        with open(os.open("leaf", os.O_WRONLY | os.O_TRUNC, dir_fd=at), "w") as file:
            file.write("other")
        ground.take(full=True)
        assert [(c.how, c.path[-5:]) for c in ground.vault.since(shown)] == [("content", b"/leaf")]
        assert ground.back(shown) == []
        with open(os.open("leaf", os.O_RDONLY, dir_fd=at)) as file:
            assert file.read() == "first"
        for _ in range(70):
            os.mkdir("x" * 200, dir_fd=at)
            below = os.open("x" * 200, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = below
        with pytest.raises(TreeTooLarge, match="too long"):
            ground.take(full=True)
    finally:
        os.close(at)


def test_names_of_any_bytes_are_told_apart_in_a_difference(tmp_path: Path) -> None:
    ground = Ground(tmp_path)
    for name in (b"odd\xff", b"odd\xfe"):
        with open(os.fsencode(ground.work) + b"/" + name, "wb"):
            shown = ground.take(full=True)
    assert shown == ground.take(full=True)
    os.unlink(os.fsencode(ground.work) + b"/odd\xfe")
    ground.take(full=True)
    assert [entries.sentence(c) for c in ground.vault.since(shown)] == ["odd\\xfe is gone"]


def test_what_is_written_through_an_old_mapping_is_noticed(tmp_path: Path) -> None:
    """A page that is dirty already is written without another time of change."""
    ground = Ground(tmp_path)
    (ground.work / "file").write_bytes(b"a" * 100)
    with open(ground.work / "file", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[0] = 66
        info = os.stat(ground.work / "file")
        while ground.take() != ground.take() or time.time_ns() - info.st_ctime_ns < 100_000_000:
            continue  # until its stamp is believed
        shown = ground.take(full=True)
        ground.again()
        assert ground.take(full=True, since=shown) == shown
        view[0] = 67
        ground.take(full=True, since=shown)
        assert [(c.path, c.how) for c in ground.vault.since(shown)] == [(b"w/file", "content")]


@pytest.mark.parametrize("how", ["held", "closed before it writes", "gone", "gone while nobody watched", "shrunk"])
def test_the_state_before_a_call_holds_what_was_written_through_a_mapping(tmp_path: Path, how: str) -> None:
    """A page that is dirty already is written without another time of change, and no hint tells of it."""
    ground = Ground(tmp_path)
    (ground.work / "file").write_bytes(b"a" * 100)
    lives = not how.startswith("gone")
    with contextlib.ExitStack() as writer:
        file = writer.enter_context(open(ground.work / "file", "r+b"))
        if how == "shrunk":
            file.truncate(50)
        view = writer.enter_context(mmap.mmap(file.fileno(), 0))
        if how == "closed before it writes":
            file.close()
        view[0] = 66
        info = os.stat(ground.work / "file")
        while ground.take() != ground.take() or time.time_ns() - info.st_ctime_ns < 100_000_000:
            continue  # until its stamp is believed
        if how == "gone while nobody watched":
            ground.again()
        view[0] = 67
        before = ground.take(writers=(os.getpid(),)) if lives else ""
    before = before or ground.take()
    assert os.stat(ground.work / "file").st_ctime_ns == info.st_ctime_ns, "nothing tells of it"
    (ground.work / "file").write_bytes(b"c")
    ground.take()
    assert ground.back(before) == []
    assert (ground.work / "file").read_bytes()[:2] == b"Ca"


def test_a_file_renamed_over_or_linked_in_after_it_was_mapped_is_read(tmp_path: Path) -> None:
    """Neighbours of a mapping: the name changes, or a file without one gets a name, or its times are set back."""
    ground = Ground(tmp_path)
    for name in ("over", "back"):
        (ground.work / name).write_bytes(b"a" * 100)
    ground.take()
    with open(ground.work / "new", "w+b") as file:
        file.truncate(100)
        with mmap.mmap(file.fileno(), 0) as view:
            os.rename(ground.work / "new", ground.work / "over")
            ground.take()
            view[0] = 67
    nameless = os.open(ground.work, os.O_TMPFILE | os.O_RDWR, 0o600)
    os.ftruncate(nameless, 100)
    with mmap.mmap(nameless, 0) as view:
        view[0] = 68
        os.link(f"/proc/self/fd/{nameless}", ground.work / "linked", src_dir_fd=nameless, follow_symlinks=True)
        ground.take()
        view[1] = 68
    os.close(nameless)
    info = os.stat(ground.work / "back")
    with open(ground.work / "back", "r+b") as file, mmap.mmap(file.fileno(), 0) as view:
        view[0] = 69
    os.utime(ground.work / "back", ns=(info.st_atime_ns, info.st_mtime_ns))
    before = ground.take()
    kept = {name: (ground.work / name).read_bytes() for name in ("over", "linked", "back")}
    assert (kept["over"][:1], kept["linked"][:2], kept["back"][:1]) == (b"C", b"DD", b"E")
    for name in kept:
        (ground.work / name).unlink()
    ground.take()
    assert ground.back(before) == []
    assert {name: (ground.work / name).read_bytes() for name in kept} == kept
