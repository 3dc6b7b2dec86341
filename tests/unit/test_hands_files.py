"""The file tools on real files: what the model reads, and that no path, link or race leads out of the worktree."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.executor import confined_paths, files, search_tools
from harness.executor.file_tool import Places, Result, ToolError
from harness.linux import kernel


@pytest.fixture
def ground(tmp_path: Path) -> Path:
    root = tmp_path / "worktree"
    root.mkdir()
    (tmp_path / "secret").write_text("host secret\n")
    return root


def call(root: Path, tool: str, outside: dict[str, tuple[str, str]] | None = None, **value: Any) -> Result:
    with contextlib.closing(confined_paths.Root(str(root))) as opened:
        return files.run(tool, value, Places(opened, outside or {}))


def failure(root: Path, tool: str, **value: Any) -> str:
    with pytest.raises(ToolError) as caught:
        call(root, tool, **value)
    return str(caught.value)


def test_reading_is_numbered_and_pages(ground: Path) -> None:
    (ground / "a").write_text("".join(f"line {n}\n" for n in range(1, 6)))
    assert (
        call(ground, "read_file", path="a", offset=2, limit=2).text
        == "     2\tline 2\n     3\tline 3\n(lines 2 to 3 of 5; go on with offset 4)"
    )
    assert call(ground, "read_file", path=str(ground / "a")).text.endswith("     5\tline 5")
    assert "has only 5 lines" in failure(ground, "read_file", path="a", offset=9)


@pytest.mark.parametrize(
    ("line", "count"),
    [("line {}", 1500), ("", 1500), ("{} " + "é" * 300, 100), ("\U0001f980" * 3000, 5), ("x" * 5000, 20)],
    ids=range(5),
)
def test_a_long_file_comes_in_whole_lines_that_all_reach_the_model(ground: Path, line: str, count: int) -> None:
    """Going on as the last line says shows every line exactly once, and nothing is longer than what a keeper passes on
    whole.
    """
    (ground / "long").write_text("".join(line.format(n) + "\n" for n in range(1, count + 1)))
    offset = 1
    seen = []
    while offset:
        text = call(ground, "read_file", path="long", offset=offset).text
        assert len(text.encode()) < files.SHOWN_BYTES
        *lines, last = text.split("\n")
        if offset == 1 or last.startswith("("):
            found = re.fullmatch(rf"\(lines (\d+) to (\d+) of {count}(?:; go on with offset (\d+))?\)", last)
            assert found is not None, last
            assert (int(found[1]), int(found[2])) == (offset, offset + len(lines) - 1)
            seen += [int(shown.split("\t")[0]) for shown in lines]
            assert found[3] is None or int(found[3]) == seen[-1] + 1
            offset = int(found[3] or 0)
    assert seen == list(range(1, count + 1))


@pytest.mark.parametrize("unit", ["abcdefghij", "añ日🦊\t"])
def test_every_part_of_a_line_of_two_megabytes_can_be_read(ground: Path, unit: str) -> None:
    whole = unit * (2_000_000 // len(unit.encode()))
    (ground / "wide.json").write_text(f"first\n{whole}\nlast\n", newline="")
    begun = call(ground, "read_file", path="wide.json", offset=2).text.split("\n")[0]
    found = re.fullmatch(r" {5}2\t(.*) … \(\+(\d+) characters: offset 2, column (\d+)\)", begun)
    assert found is not None, begun[-200:]
    assert len(found[1]) + int(found[2]) == len(whole)
    parts = [found[1]]
    column = int(found[3])
    while column:
        text = call(ground, "read_file", path="wide.json", offset=2, column=column).text
        assert len(text.encode()) < files.SHOWN_BYTES
        line, where = text.split("\n")
        parts.append(line.removeprefix("     2\t"))
        told = re.fullmatch(
            rf"\(line 2 of 3, characters (\d+) to (\d+) of {len(whole)}; go on with (column|offset) (\d+)\)", where
        )
        assert told is not None, where
        assert (int(told[1]), int(told[2])) == (column, column + len(parts[-1]) - 1)
        column = int(told[4]) if told[3] == "column" else 0
    assert "".join(parts) == whole
    assert int(told[4]) == 3
    beyond = failure(ground, "read_file", path="wide.json", offset=1, column=6)
    assert "line 1 has only 5 characters; column 6 is beyond its end" in beyond


def test_reading_odd_files(ground: Path) -> None:
    (ground / "empty").touch()
    (ground / "binary").write_bytes(b"\x7fELF\0\0")
    (ground / "latin").write_bytes(b"caf\xe9\n")
    (ground / "long").write_text("x" * 5000)
    (ground / "many").write_text("0123456789\n" * 50_000)
    os.mkfifo(ground / "pipe")
    assert call(ground, "read_file", path="empty").text == "(the file is empty)"
    assert "binary file of 6 bytes" in failure(ground, "read_file", path="binary")
    assert call(ground, "read_file", path="latin").text == "     1\tcaf\ufffd"
    assert "(+3100 characters: offset 1, column 1901)" in call(ground, "read_file", path="long").text
    assert "named pipe" in failure(ground, "read_file", path="pipe")
    assert "is a folder" in failure(ground, "read_file", path=".")
    assert "does not exist" in failure(ground, "read_file", path="nothing")


def test_writing_creates_folders_and_keeps_modes(ground: Path) -> None:
    result = call(ground, "write_file", path="a/b/c.sh", content="one\ntwo")
    assert result.text == "created a/b/c.sh (2 lines, 7 bytes)"
    assert result.files_changed == ("a/b/c.sh",)
    os.chmod(ground / "a/b/c.sh", 0o755)
    assert call(ground, "write_file", path="a/b/c.sh", content="").text.startswith("replaced")
    assert (ground / "a/b/c.sh").stat().st_mode & 0o777 == 0o755
    assert sorted(os.listdir(ground / "a/b")) == ["c.sh"]
    assert "is a file, not a folder" in failure(ground, "write_file", path="a/b/c.sh/d", content="")
    assert "is a folder" in failure(ground, "write_file", path="a", content="")


@pytest.mark.parametrize(
    ("before", "content", "said"),
    [
        (b"a\nb\nc\n", "a\nB\nc\n", "(3 lines, 6 bytes; +1 -1 at 2)"),
        (b"a\nb\n", "a\nb\n", "(2 lines, 4 bytes; +0 -0)"),
        (b"a\n", "1\n2\n3\na\n4\n", "(5 lines, 10 bytes; +4 -0 at 1, 2, 3)"),
        (b"a\na\n", "", "(0 lines, 0 bytes; +0 -2)"),
        (b"a\0\n", "a\n", "(1 lines, 2 bytes)"),
        (b"", "a\n", "(1 lines, 2 bytes; +1 -0 at 1)"),
    ],
)
def test_writing_a_file_that_is_there_says_what_it_changed(
    ground: Path, before: bytes, content: str, said: str
) -> None:
    (ground / "f (2 lines, 3 bytes; +9 -9 at 1)").write_bytes(before)
    result = call(ground, "write_file", path="f (2 lines, 3 bytes; +9 -9 at 1)", content=content)
    assert result.text == f"replaced f (2 lines, 3 bytes; +9 -9 at 1) {said}"


def test_a_link_inside_is_followed_and_stays(ground: Path) -> None:
    (ground / "real").write_text("old\n")
    (ground / "link").symlink_to("real")
    assert call(ground, "edit_file", path="link", old="old", new="new").files_changed == ("real",)
    assert (ground / "link").is_symlink()
    assert (ground / "real").read_text() == "new\n"
    (ground / "folder").mkdir()
    (ground / "way").symlink_to("folder")
    call(ground, "write_file", path="way/x", content="1")
    assert (ground / "folder/x").read_text() == "1"


@pytest.mark.parametrize(
    "path",
    [
        "../secret",
        "/etc/passwd",
        "a/../../secret",
        "link",
        "way/secret",
        "/proc/self/root/etc/passwd",
        "loop",
        "magic/secret",
    ],
)
def test_nothing_outside_is_reached(ground: Path, path: str) -> None:
    (ground / "link").symlink_to("../secret")
    (ground / "way").symlink_to(ground.parent)
    (ground / "magic").symlink_to("/proc/self/cwd")
    (ground / "loop").symlink_to("loop")
    for tool, more in (("read_file", {}), ("write_file", {"content": "x"}), ("edit_file", {"old": "host", "new": "x"})):
        assert re.search("outside|leads out|does not exist|moved out", failure(ground, tool, path=path, **more))
    assert (ground.parent / "secret").read_text() == "host secret\n"
    assert failure(ground, "list_files", path=path)
    assert failure(ground, "search", path=path, pattern="secret")


def test_only_the_granted_outside_path_is_reached(ground: Path) -> None:
    secret = str(ground.parent / "secret")
    granted = {secret: (str(ground.parent), "secret")}
    assert "host secret" in call(ground, "read_file", granted, path=secret).text
    assert call(ground, "write_file", granted, path=secret, content="new\n").files_changed == (secret,)
    with pytest.raises(ToolError, match="outside the worktree"):
        call(ground, "read_file", granted, path=str(ground.parent / "other"))


def test_editing(ground: Path) -> None:
    (ground / "a").write_bytes(b"one\ntwo\ntwo\n\xff\n")
    assert "lines 2, 3" in failure(ground, "edit_file", path="a", old="two", new="2")
    assert call(ground, "edit_file", path="a", old="two", new="2", all=True).text == "edited a (2 places)"
    assert call(ground, "edit_file", path="a", old="one\n2", new="1\n2").text == "edited a (line 1)"
    assert (ground / "a").read_bytes() == b"1\n2\n2\n\xff\n"
    (ground / "dos").write_bytes(b"a\r\nb\r\n")
    call(ground, "edit_file", path="dos", old="a\nb", new="c\nd")
    assert (ground / "dos").read_bytes() == b"c\r\nd\r\n"
    (ground / "indented").write_text("    def f():\n        pass\n")
    assert "Line 1 has the same first line" in failure(
        ground, "edit_file", path="indented", old="def f():\n    pass", new="x"
    )


@settings(max_examples=60, deadline=None)
@given(
    st.text(alphabet="ab\n\r", max_size=12),
    st.text(alphabet="ab\n", min_size=1, max_size=3),
    st.text(alphabet="xy", max_size=3),
)
def test_an_edit_replaces_exactly_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, before: str, old: str, new: str
) -> None:
    root = tmp_path_factory.mktemp("edit")
    (root / "f").write_bytes(before.encode())
    try:
        call(root, "edit_file", path="f", old=old, new=new)
    except ToolError:
        assert (root / "f").read_bytes() == before.encode()
    else:
        after = (root / "f").read_bytes().decode()
        dos_old = old.replace("\n", "\r\n")
        dos_new = new
        assert after in (before.replace(old, new, 1), before.replace(dos_old, dos_new, 1))


def test_listing_leaves_out_what_nobody_reads(ground: Path) -> None:
    for name in ("a.py", "src/b.py", "src/c.ts", "src/deep/d.py", ".git/HEAD", "node_modules/x/y.js"):
        (ground / name).parent.mkdir(parents=True, exist_ok=True)
        (ground / name).touch()
    (ground / "away").symlink_to("/etc")
    assert call(ground, "list_files").text.split("\n") == [
        "a.py",
        "away",
        "node_modules/ (not entered)",
        "src/b.py",
        "src/c.ts",
        "src/deep/d.py",
    ]
    assert call(ground, "list_files", glob="*.py").text.split("\n") == ["a.py", "src/b.py", "src/deep/d.py"]
    assert call(ground, "list_files", glob="src/*.{py,ts}").text.split("\n") == ["src/b.py", "src/c.ts"]
    assert call(ground, "list_files", glob="**/[b-d].py", path="src").text.split("\n") == ["src/b.py", "src/deep/d.py"]
    assert call(ground, "list_files", path="src/deep").text == "src/deep/d.py"
    assert call(ground, "list_files", glob="*.rs").text == "(no files)"
    assert "cannot be understood" in failure(ground, "list_files", glob="[z-a]")


def test_a_long_listing_is_cut_and_says_so(ground: Path) -> None:
    for number in range(search_tools.MAX_LISTED + 5):
        (ground / f"f{number:05}").touch()
    lines = call(ground, "list_files").text.split("\n")
    assert len(lines) == search_tools.MAX_LISTED + 1
    assert lines[-1] == "(5 more; narrow it with path or glob)"


@pytest.mark.parametrize("engine", ["ripgrep", "python"])
def test_search(ground: Path, engine: str) -> None:
    places = Places(
        confined_paths.Root(str(ground)), {}, () if engine == "python" else ("/usr/local/bin", "/usr/bin", "/bin")
    )
    if engine == "ripgrep" and not any(os.access(f"{folder}/rg", os.X_OK) for folder in places.path):
        pytest.skip("ripgrep is not installed")
    (ground / "src").mkdir()
    (ground / "src/a.py").write_text("import os\nx = os.getcwd()\n")
    (ground / "b.txt").write_text("import nothing\n")
    (ground / ".hidden").write_text("import hidden\n")
    (ground / "binary").write_bytes(b"import\0")
    (ground / "away").symlink_to("../secret")

    def search(**value: Any) -> str:
        return files.run("search", value, places).text

    assert sorted(search(pattern=r"^import \w+").split("\n")) == [
        ".hidden:1:import hidden",
        "b.txt:1:import nothing",
        "src/a.py:1:import os",
    ]
    assert search(pattern=r"os\.getcwd", path="src") == "src/a.py:2:x = os.getcwd()"
    assert search(pattern="import", glob="*.txt") == "b.txt:1:import nothing"
    assert search(pattern="host secret") == "(no matches)"
    (ground / "many").write_text("match\n" * (search_tools.MAX_MATCHES + 10))
    assert search(pattern="^match$").split("\n")[-1].startswith(f"(stopped at {search_tools.MAX_MATCHES} matches")
    with pytest.raises(ToolError, match="search"):
        search(pattern="(unclosed")


@pytest.mark.parametrize(
    ("tool", "value"),
    [
        ("read_output", {"call": "c1.0", "grep": "^(a+)+$"}),
        ("search", {"pattern": "^(a+)+$"}),
        ("list_files", {"glob": "*a" * 40}),
    ],
)
def test_a_pattern_that_would_go_on_for_years_is_ended(
    ground: Path, monkeypatch: pytest.MonkeyPatch, tool: str, value: dict[str, Any]
) -> None:
    monkeypatch.setattr(files, "PATIENCE_S", 0.05)
    many = "a" * 200 + "b"
    (ground / many).write_text(f"{many}\n")
    before = signal.getsignal(signal.SIGVTALRM)
    places = Places(confined_paths.Root(str(ground)), {}, (), f"{many}\n".encode())
    with pytest.raises(ToolError, match=f"{tool}: ended after 0.05 seconds of processor time"):
        files.run(tool, value, places)
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0, 0)
    assert signal.getsignal(signal.SIGVTALRM) == before


@pytest.mark.parametrize("pattern", ["(" * 3000 + ")" * 3000, "a{99999999999}"])
@pytest.mark.parametrize(("tool", "key"), [("read_output", "grep"), ("search", "pattern")])
def test_a_pattern_that_is_too_much_is_told(ground: Path, tool: str, key: str, pattern: str) -> None:
    (ground / "a.txt").write_text("a\n")
    places = Places(confined_paths.Root(str(ground)), {}, (), b"a\n")
    with pytest.raises(ToolError, match="not a valid regular expression"):
        files.run(tool, {"call": "c1.0", key: pattern}, places)


def test_a_glob_that_is_nested_too_deep_is_told(ground: Path) -> None:
    assert "cannot be understood" in failure(ground, "list_files", glob="{" * 3000 + "}" * 3000)


SWAPPER = """
import ctypes, sys
libc = ctypes.CDLL(None)
print("swapping", flush=True)
RENAME_EXCHANGE = 2  # atomic, as fast as the kernel can
while libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), RENAME_EXCHANGE) == 0:
    pass
"""


@pytest.mark.parametrize("engine", ["openat2", "walk"])
def test_a_link_swapped_in_at_any_moment_leads_nowhere(
    ground: Path, engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "walk":

        def none(*_args: Any) -> int:
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr(kernel, "openat2", none)
    outside = ground.parent / "outside"
    outside.mkdir()
    (outside / "f").write_text("host secret\n")
    (ground / "spot" / "entry").mkdir(parents=True)
    (ground / "link").symlink_to(outside)
    names = [str(ground / "spot" / "entry"), str(ground / "link")]
    swapper = subprocess.Popen([sys.executable, "-c", SWAPPER, *names], stdout=subprocess.PIPE, text=True)
    assert swapper.stdout is not None
    assert swapper.stdout.readline() == "swapping\n"
    tries = {"read": 0, "written": 0}
    try:
        attempts = 0
        while attempts < 300 or not tries["written"]:
            attempts += 1
            for tool, value in (("read_file", {}), ("write_file", {"content": "from inside"})):
                try:
                    result = call(ground, tool, path="spot/entry/f", **value)
                except ToolError:
                    continue
                assert "host secret" not in result.text
                tries["written" if tool == "write_file" else "read"] += 1
    finally:
        assert swapper.poll() is None
        swapper.kill()
        swapper.communicate()
    assert tries["written"] > 0
    assert [path.name for path in outside.iterdir()] == ["f"]
    assert (outside / "f").read_text() == "host secret\n"


def test_the_walk_without_openat2_follows_no_link(ground: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_args: Any) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(kernel, "openat2", none)
    (ground / "real").write_text("x\n")
    (ground / "link").symlink_to("real")
    assert call(ground, "write_file", path="deep/er/f", content="y").files_changed == ("deep/er/f",)
    assert call(ground, "read_file", path="deep/er/f").text == "     1\ty"
    assert "symbolic link" in failure(ground, "read_file", path="link")
    (ground / "way").symlink_to(ground.parent)
    assert "symbolic link" in failure(ground, "read_file", path="way/secret")


def test_a_reader_never_sees_half_a_file(ground: Path) -> None:
    contents = {"a" * 200_000, "b" * 100_000}
    call(ground, "write_file", path="f", content="a" * 200_000)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            for content in contents:
                call(ground, "write_file", path="f", content=content)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(200):
            assert (ground / "f").read_text() in contents
    finally:
        stop.set()
        writer.join()
