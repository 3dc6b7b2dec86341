"""The bombs once more as a user without rights, where the kernel binds other limits than for root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.sandbox
ROOT = Path(__file__).parents[2]
NOBODY = 65534
NEEDED = "import pytest, tests.faults.test_bombs"
CHOSEN = "fork_bomb or shared_pages or all_memory or one_huge_file or system_v"
AS_NOBODY = [
    "setpriv",
    f"--reuid={NOBODY}",
    f"--regid={NOBODY}",
    "--clear-groups",
    "--inh-caps=-all",
    "--bounding-set=-all",
    "--no-new-privs",
    "env",
]


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that nobody may use (what pytest makes, only we may)."""
    folder = Path(tempfile.mkdtemp(prefix="watchfloor-nobody-", dir="/var/tmp"))
    os.chown(folder, NOBODY, NOBODY)
    yield folder
    shutil.rmtree(folder)


def interpreter(folder: Path) -> str:
    """A Python with our packages that nobody may run: the one of this test, or the same files under another name when
    it lies in a closed home.
    """
    if runs([sys.executable, "-E", "-c", NEEDED]):
        return sys.executable
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    ours = Path(os.path.realpath(sys.base_prefix))
    copy = folder / "python"
    library = copy / "lib" / version
    (copy / "bin").mkdir(parents=True)
    os.link(ours / "bin" / version, copy / "bin" / version)
    leave = shutil.ignore_patterns(
        "site-packages", "test", "idlelib", "tkinter", "__pycache__", "ensurepip", "config-*"
    )
    shutil.copytree(ours / "lib" / version, library, ignore=leave, copy_function=os.link)
    for shared in (ours / "lib").glob("libpython*"):
        os.link(shared, copy / "lib" / shared.name)
    python = str(copy / "bin" / version)
    place = subprocess.run(
        [*AS_NOBODY, python, "-E", "-c", "import site; print(site.getsitepackages()[0])"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout.strip()
    os.makedirs(place, exist_ok=True)
    Path(place, "ours.pth").write_text(f"{ROOT}\n{os.path.dirname(os.path.dirname(pytest.__file__))}\n")
    return python


def runs(argv: list[str]) -> bool:
    return subprocess.run([*AS_NOBODY, *argv], check=False, capture_output=True).returncode == 0


@pytest.mark.skipif(
    os.geteuid() != 0, reason="only root can become somebody else; as a user the bombs themselves are this test"
)
def test_the_bombs_end_with_their_call_for_a_user_too(open_folder: Path) -> None:
    try:
        python = interpreter(open_folder)
    except OSError as exc:
        pytest.skip(f"no Python can be shown to another user: {exc}")
    if not runs([python, "-E", "-c", NEEDED]):
        pytest.skip("the code lies where another user may not read it")
    arguments = [
        "-m",
        "pytest",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "-rs",
        f"--basetemp={open_folder}/t",
        "-k",
        CHOSEN,
        "tests/faults/test_bombs.py",
    ]
    environment = {"PATH": "/usr/bin:/bin", "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(open_folder)}
    done = subprocess.run(
        [*AS_NOBODY, python, *arguments], cwd=ROOT, env=environment, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
    assert "skipped" not in done.stdout, done.stdout
