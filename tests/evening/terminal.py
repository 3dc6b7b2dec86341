"""A person's shell in a real tmux, on a server of its own: keys go in, the screen is read, nothing else."""

from __future__ import annotations

import shlex
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from tests.e2e.terminal import HUMAN_S, see_one, wait_for

AFTER_TEXT_S = 1.2
READABLE_S = 0.6
"""How long a person looks before going on, where the screen says something new."""


class Terminal:
    """``looked`` is called with the screen, its colours included, at each moment that `look` names."""

    def __init__(
        self, root: Path, size: tuple[int, int], env: dict[str, str], at: Path, looked: Callable[[str, str], None]
    ) -> None:
        self.socket = root / "tmux.sock"
        self._env = env | {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        self._looked = looked
        settings = root / "tmux.conf"
        settings.write_text("set -g status off\nset -g escape-time 0\nset -g default-terminal tmux-256color\n")
        prompt = root / "bashrc"
        prompt.write_text(r"PS1='\W $ '" + "\n")
        width, height = map(str, size)
        shell = shlex.join(("bash", "--rcfile", str(prompt), "-i"))
        self.tmux("-f", str(settings), "new-session", "-d", "-x", width, "-y", height, "-c", str(at), shell)

    def tmux(self, *arguments: str) -> str:
        """One tmux command; its output."""
        done = subprocess.run(
            ["tmux", "-S", str(self.socket), *arguments], env=self._env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def screen(self) -> str:
        return self.tmux("capture-pane", "-p")

    def see(self, *texts: str, timeout: float = 60.0) -> None:
        """Wait until all of these are on screen."""
        wait_for(f"seeing {texts}", lambda: all(text in self.screen for text in texts), lambda: self.screen, timeout)

    def see_one(self, *texts: str) -> str:
        """Wait until one of these is on screen; which."""
        return see_one(lambda: self.screen, texts)

    def gone(self, text: str) -> None:
        """Wait until this is not on screen any more."""
        wait_for(f"{text!r} going away", lambda: text not in self.screen, lambda: self.screen)

    def at_prompt(self) -> None:
        """Wait until the shell waits for a command."""
        wait_for("the prompt", lambda: self.screen.rstrip().endswith("$"), lambda: self.screen)

    def type(self, text: str) -> None:
        """Type text; a person's next key comes after it, as what comes at once is a paste."""
        self.tmux("send-keys", "-l", "--", text)
        time.sleep(AFTER_TEXT_S)

    def press(self, *keys: str) -> None:
        """Press keys (tmux's names), as fast as a person does."""
        for key in keys:
            self.tmux("send-keys", key)
            time.sleep(HUMAN_S)

    def write(self, line: str) -> None:
        """Type a line and enter."""
        self.type(line)
        self.press("Enter")

    def look(self, caption: str) -> None:
        """A moment that is kept, with what it shows in words."""
        time.sleep(READABLE_S)
        self._looked(caption, self.tmux("capture-pane", "-e", "-p"))

    def attached(self) -> None:
        """Wait until somebody looks at it."""
        wait_for("a client", lambda: self.tmux("list-clients").strip(), lambda: self.screen)

    def close(self) -> None:
        """End the shell and all that runs in it."""
        subprocess.run(["tmux", "-S", str(self.socket), "kill-server"], env=self._env, capture_output=True, check=False)
