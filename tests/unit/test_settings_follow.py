"""Whoever is told to end ends, also when what it waits for comes at that moment."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from watchdog.events import FileModifiedEvent, FileSystemEventHandler

from harness.protocol.paths import Folders
from harness.supervisor.base import settings


class Observer:
    """Hands on what a test says that changed."""

    handler: FileSystemEventHandler

    def schedule(self, handler: FileSystemEventHandler, _path: str, *, recursive: bool) -> None:
        assert not recursive
        Observer.handler = handler

    def start(self) -> None: ...

    def stop(self) -> None: ...

    def join(self, _seconds: float) -> None: ...


@pytest.mark.parametrize("turns", range(6))
def test_following_the_settings_ends_when_it_is_cancelled_as_they_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    monkeypatch.setattr(settings, "Observer", Observer)
    folders = Folders(tmp_path / "state", tmp_path / "run", tmp_path / "config")
    for folder in (folders.state, folders.config):
        folder.mkdir(mode=0o700)

    async def ends() -> bool:
        task = asyncio.create_task(settings.follow(settings.Settings(folders), folders.config))
        for _ in range(5):
            await asyncio.sleep(0)
        Observer.handler.dispatch(FileModifiedEvent(str(folders.config_file)))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        _, left = await asyncio.wait({task}, timeout=2)
        task.cancel()
        return not left

    assert asyncio.run(ends())
