"""Policy and configuration as they are in force: reloaded when their files change, the last good ones kept when a file
is bad.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from watchdog.events import FileSystemEvent, FileSystemEventHandler
from watchdog.observers import Observer

from harness.linux import durable, own_file
from harness.policy.policy_file import Policy, PolicyError, default_policy, parse_policy
from harness.protocol.config import config as configuration
from harness.protocol.config.config import Config, ConfigError
from harness.protocol.paths import Folders
from harness.supervisor.base.threads import at_home

POLL_SECONDS = 5.0
_Mark = tuple[int, int, int]


def _mark(path: Path) -> _Mark:
    try:
        st = path.stat()
    except OSError:
        return (0, 0, 0)
    return (st.st_ino, st.st_size, st.st_mtime_ns)


class Settings:
    """``policy`` and ``config`` in force; ``problems`` says what is wrong with their files, by name."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._good = folders.state / "last-good"
        self.problems: dict[str, str] = {}
        self.policy: Policy = default_policy()
        self.config: Config = Config(file=folders.config_file)
        self._marks: dict[Path, _Mark] = {}
        self._subscribers: list[Callable[[], None]] = []

    def subscribe(self, changed: Callable[[], None]) -> None:
        """Call ``changed`` after each reload, good or bad, and when the key file is another."""
        self._subscribers.append(changed)

    def check(self) -> None:
        """Reload what changed on disk since the last look (a few stats when nothing did); a key file is only looked at,
        for others read it.
        """
        changed = False
        for path, load in (
            (self._folders.policy_file, self._load_policy),
            (self._folders.config_file, self._load_config),
        ):
            mark = _mark(path)
            if self._marks.get(path) != mark:
                first = path not in self._marks
                self._marks[path] = mark
                load(first)
                changed = True
        key = Path(os.path.expanduser(self.config.model.api_key_file)) if self.config.model.api_key_file else None
        if key is not None and self._marks.get(key) != (mark := _mark(key)):
            self._marks[key] = mark
            changed = True
        if self._look_who_may(key) or changed:
            for subscriber in self._subscribers:
                subscriber()

    def _look_who_may(self, key: Path | None) -> bool:
        """Say which of these files others than the user may change, or, of the key, read; True when that is news."""
        writable = ((self._folders.policy_file, stat.S_IWOTH), (self._folders.config_file, stat.S_IWOTH))
        readable = () if key is None else ((key, stat.S_IWOTH | stat.S_IROTH),)
        found = [who for path, bits in (*writable, *readable) if (who := own_file.exposed(path, bits)) is not None]
        told = "; ".join(f"every user of this machine has access to {who}" for who in dict.fromkeys(found))
        if told == self.problems.get("exposed", ""):
            return False
        self.problems.pop("exposed", None)
        if told:
            self.problems["exposed"] = told
        return True

    def _load_policy(self, first: bool) -> None:
        path = self._folders.policy_file
        try:
            self.policy = self._parse_policy(path, str(path))
        except PolicyError as exc:
            self.problems["policy"] = f"{exc}; {self._in_force(path, first)}"
            if first:
                with contextlib.suppress(PolicyError):
                    self.policy = self._parse_policy(self._good / path.name, f"last good copy of {path}")
            return
        self.problems.pop("policy", None)
        self._keep(path)

    @staticmethod
    def _parse_policy(path: Path, source: str) -> Policy:
        try:
            return parse_policy(own_file.text(path), source)
        except FileNotFoundError:
            return default_policy()
        except (OSError, UnicodeDecodeError) as exc:
            raise PolicyError(source, 1, "", f"cannot be read: {exc}") from exc

    def _load_config(self, first: bool) -> None:
        path = self._folders.config_file
        try:
            self.config = configuration.load(self._folders)
        except ConfigError as exc:
            self.problems["config"] = f"{exc}; {self._in_force(path, first)}"
            copy = self._good / path.name
            if first and copy.exists():
                with contextlib.suppress(ConfigError, OSError, UnicodeDecodeError):
                    self.config = configuration.parse(path, own_file.text(copy))
            return
        self.problems.pop("config", None)
        self._keep(path)

    def _in_force(self, path: Path, first: bool) -> str:
        """What holds in place of a file that is wrong."""
        if first and not (self._good / path.name).exists():
            return "none was ever good here, so the built-in one is in force"
        return "the last good one stays in force"

    def _keep(self, path: Path) -> None:
        """A bad file must not loosen anything after a restart either, so the last good text is kept beside the
        state.
        """
        target = self._good / path.name
        try:
            self._good.mkdir(mode=0o700, exist_ok=True)
            self._copy(path, target)
        except OSError as exc:  # what is in force stays in force
            self.problems["last-good"] = f"no copy of {path} can be kept in {self._good}: {exc.strerror or exc}"
        else:
            self.problems.pop("last-good", None)

    @staticmethod
    def _copy(path: Path, target: Path) -> None:
        try:
            text = own_file.read(path)
        except FileNotFoundError:
            target.unlink(missing_ok=True)
            return
        durable.swap_file(target, text)


class _Wake(FileSystemEventHandler):
    def __init__(self, loop: asyncio.AbstractEventLoop, wake: asyncio.Event) -> None:
        self._loop = loop
        self._wake = wake

    def on_any_event(self, event: FileSystemEvent) -> None:
        if event.event_type in ("opened", "closed_no_write"):
            return  # our own reading would wake us for ever
        with contextlib.suppress(RuntimeError):  # the loop may be closing
            self._loop.call_soon_threadsafe(self._wake.set)


async def follow(settings: Settings, folder: Path) -> None:
    """Keep ``settings`` current until cancelled: inotify wakes us, a slow poll is the truth."""
    wake = asyncio.Event()
    observer: object = None
    try:
        observer = Observer()
        observer.schedule(_Wake(asyncio.get_running_loop(), wake), str(folder), recursive=False)
        observer.start()
    except OSError as exc:
        settings.problems["watch"] = (
            f"changes of {folder} are seen within {POLL_SECONDS:.0f} s only: {exc.strerror or exc}"
        )
        observer = None
    try:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(POLL_SECONDS):
                    await wake.wait()
                await asyncio.sleep(0.05)  # an editor saves in several steps
            wake.clear()
            settings.check()
    finally:
        if observer is not None:
            observer.stop()
            await at_home(observer.join, 2)
