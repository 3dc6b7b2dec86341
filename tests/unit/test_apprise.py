"""Apprise is called with a fixed command line that holds no target and no word of an agent."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from harness.protocol.config.sections import NotifyConfig
from harness.supervisor.upkeep import notifying
from harness.views.notifications import Notice, Want

NOTICE = Notice((Want("a1", "fix-login", "question"), Want("a2", "ship", "tool", "high")), True, False)


async def test_it_gets_the_notice_on_its_input_and_its_targets_from_the_persons_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record = tmp_path / "record"
    program = tmp_path / "apprise"
    program.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        f"json.dump([sys.argv[1:], sys.stdin.read()], open({str(record)!r}, 'w'))\n"
    )
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    argv, text = notifying.message(NOTICE, NotifyConfig(apprise="/home/me/apprise.yml"))
    await notifying.send(argv, text, urgent=True)
    args, body = json.loads(record.read_text())
    assert args[:4] == ["--config", "/home/me/apprise.yml", "--title", "Watchfloor: 2 things need you"]
    assert args[4:] == ["--notification-type", "warning", "--input-format", "text"]
    assert body == "ship: asks to do something (high risk)\nfix-login: asks you something\n"


def test_a_command_of_ones_own_comes_first() -> None:
    argv, _ = notifying.message(NOTICE, NotifyConfig(command=("own",), apprise="/home/me/apprise.yml"))
    assert argv == ["own"]


def test_where_it_is_not_installed_that_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    with pytest.raises(notifying.NotSent, match=r"pip install 'watchfloor\[apprise\]'"):
        notifying.message(NOTICE, NotifyConfig(apprise="/home/me/apprise.yml"))
