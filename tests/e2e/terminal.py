"""A real terminal for the end-to-end tests: the program in tmux (private server), or in a bare pty whose every byte is
kept.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-P", "-m", "tests.e2e.program"]


HUMAN_S = 0.05
"""Between two keys of a person; what decides does not count at machine speed."""


def environment(root: Path, **more: str) -> dict[str, str]:
    """A clean environment in which the fleet lives under ``root`` (as `tests.tui.app_world.folders` lays it out)."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(root),
        "LC_ALL": "C.UTF-8",
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "TEXTUAL_DEBUG": "1",
        "PYTHONPATH": str(REPOSITORY),
        "WATCHFLOOR_STATE": str(root / "state"),
        "WATCHFLOOR_RUNTIME": str(root / "run"),
        "WATCHFLOOR_CONFIG": str(root / "config"),
        **more,
    }


_KEY = re.compile(r"^Key\(key='([^']*)'", re.MULTILINE)


def keys_seen(root: Path) -> list[str]:
    """Every key press that the program under ``root`` understood, from its own input log (`TEXTUAL_DEBUG`)."""
    log = root / "keys.log"
    return _KEY.findall(log.read_text()) if log.exists() else []


def keys_handled(root: Path) -> int:
    """How many key presses the program has dealt with to their end (see `tests.e2e.program`)."""
    log = root / "keys.handled"
    return log.read_text().count("\n") if log.exists() else 0


def wait_for(name: str, condition: Callable[[], object], shown: Callable[[], str], timeout: float = 60.0) -> None:
    """Poll a named condition; on timeout the screen is in the message."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, f"{name} did not come true; the screen:\n{shown()}"
        time.sleep(0.02)


def see_one(shown: Callable[[], str], texts: Sequence[str]) -> str:
    """Wait until one of these is on the screen that is ``shown``; which."""
    seen: list[str] = []

    def found() -> bool:
        screen = shown()
        seen[:] = [text for text in texts if text in screen]
        return bool(seen)

    wait_for(f"one of {texts}", found, shown)
    return seen[0]


class Tmux:
    """One tmux server with one window, on a socket of its own."""

    def __init__(self, root: Path, width: int, height: int, **more: str) -> None:
        self.root = root
        self._socket = root / "tmux.sock"
        self._env = environment(root, **more)
        self._env.pop("COLORTERM")
        (root / "start.sh").write_text(f"cd {root}\n{shlex.join(PROGRAM)}\necho left with $?\nexec sleep 600\n")
        self.run(
            "-f", os.devnull, "new-session", "-d", "-x", str(width), "-y", str(height), "sh", str(root / "start.sh")
        )
        self.run("set", "-g", "escape-time", "0")

    def run(self, *arguments: str) -> str:
        """One tmux command; its output."""
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), *arguments], env=self._env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def screen(self) -> str:
        return self.run("capture-pane", "-p")

    def see(self, *texts: str, timeout: float = 60.0) -> None:
        """Wait until all these texts are on screen."""
        wait_for(f"seeing {texts}", lambda: all(text in self.screen for text in texts), lambda: self.screen, timeout)

    def _key(self, key: str) -> None:
        before = keys_handled(self.root)
        self.run("send-keys", key)
        wait_for(
            f"{key} having its effect",
            lambda: keys_handled(self.root) > before or "left with" in self.screen,
            lambda: self.screen,
        )

    def keys(self, *keys: str) -> None:
        """Press keys (tmux's names) as a person does: each when the one before has had its effect, or the program has
        left, and not faster.
        """
        for key in keys:
            self._key(key)
            time.sleep(HUMAN_S)

    def type(self, text: str) -> None:
        """Letter by letter, as a person types."""
        for letter in text:
            time.sleep(HUMAN_S)
            self.keys("Space" if letter == " " else letter)
        time.sleep(HUMAN_S)

    def help(self) -> None:
        """Open the help, by which all input before it has been dealt with.

        Again and again, because a key right behind a paste belongs to it; none is pressed while the help is painted.
        """

        def helped() -> bool:
            self.run("send-keys", "Escape")
            time.sleep(0.2)
            self.run("send-keys", "F1")
            patience = time.monotonic() + 1
            while not (seen := "esc closes" in self.screen) and time.monotonic() < patience:
                time.sleep(0.05)
            return seen

        wait_for("the help screen", helped, lambda: self.screen)

    def close(self) -> None:
        subprocess.run(
            ["tmux", "-S", str(self._socket), "kill-server"], env=self._env, capture_output=True, check=False
        )


@contextmanager
def in_tmux(root: Path, width: int = 120, height: int = 40, **more: str) -> Iterator[Tmux]:
    """The program running in tmux."""
    made = Tmux(root, width, height, **more)
    try:
        yield made
    finally:
        made.close()


def have_tmux() -> bool:
    return shutil.which("tmux") is not None


class BarePty:
    """The program in a pty that answers nothing; everything it wrote is kept in `output`."""

    def __init__(self, root: Path, width: int, height: int, **more: str) -> None:
        self.output = bytearray()
        self.root = root
        env = environment(root, **more)
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(root)
            os.execve(PROGRAM[0], PROGRAM, env)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.status: int | None = None

    def read(self, seconds: float) -> None:
        """Take in what is written within this time."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0 and self.status is None:
            if not select.select([self._fd], [], [], left)[0]:
                return
            try:
                data = os.read(self._fd, 1 << 16)
            except OSError:
                data = b""
            if not data:
                self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
                return
            self.output += data

    def until(self, name: str, condition: Callable[[bytes], object], timeout: float = 60.0) -> None:
        """Read until a named condition on all output holds."""
        deadline = time.monotonic() + timeout
        while not condition(bytes(self.output)):
            assert time.monotonic() < deadline, (
                f"{name} did not come true; the last output: {bytes(self.output[-2000:])!r}"
            )
            self.read(0.05)

    def send(self, data: bytes) -> None:
        """Type bytes."""
        os.write(self._fd, data)

    def press(self, key: bytes) -> None:
        """Type the bytes of one key and read until it has had its effect, or the program has left."""
        before = keys_handled(self.root)
        self.send(key)
        self.until(f"{key!r} having its effect", lambda _: keys_handled(self.root) > before or self.status is not None)

    def close(self) -> None:
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self._fd)


@contextmanager
def in_pty(root: Path, width: int = 120, height: int = 40, **more: str) -> Iterator[BarePty]:
    """The program running in a bare pty."""
    made = BarePty(root, width, height, **more)
    try:
        yield made
    finally:
        made.close()


_SEQUENCE = re.compile(
    rb"\x1b\[(?P<csi>[0-?]*[ -/]*[@-~])"
    rb"|\x1b\](?P<osc>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    rb"|\x1b(?P<string>[PX^_])[^\x1b]*\x1b\\"
    rb"|\x1b(?P<escape>[ -/]*[0-~])"
    rb"|(?P<control>[\x00-\x1f\x7f])"
)


def sequences(output: bytes) -> set[str]:
    """Every kind of control sequence in a stream: CSI as ``CSI <private><final>`` with the modes, others named; C1
    controls found in the text too.
    """
    found: set[str] = set()
    for match in _SEQUENCE.finditer(output):
        if (csi := match["csi"]) is not None:
            body = csi[:-1].decode("latin-1")
            final = chr(csi[-1])
            found.add(f"CSI {body}{final}" if final in "hlupnct" else f"CSI {final}")
        elif (osc := match["osc"]) is not None:
            found.add(f"OSC {osc.split(b';')[0].decode('latin-1')}")
        elif match["string"] is not None:
            found.add(f"STRING {match['string'].decode('latin-1')}")
        elif match["escape"] is not None:
            found.add(f"ESC {match['escape'].decode('latin-1')}")
        elif match["control"] is not None:
            found.add(f"C0 {match['control'].hex()}")
    found |= {f"C1 {ord(c):02x}" for c in output.decode("utf-8", "replace") if 0x80 <= ord(c) < 0xA0}
    return found
