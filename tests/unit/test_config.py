"""config.toml: values, defaults, and errors that name file, line and key."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.settings import amounts
from harness.protocol.config import api_key, credential, sections
from harness.protocol.config import config as c
from harness.protocol.paths import FolderError, Folders, ensure_private, resolve
from harness.tools import registry
from harness.vault.limits import VaultLimits

FILE = Path("/conf/config.toml")


def test_values_are_read() -> None:
    cfg = c.parse(
        FILE,
        '[model]\ndefault = "claude-haiku-5-5"\nbase_url = "http://127.0.0.1:1/"\n[caps]\nsession_usd = "2.50"\nday_usd'
        ' = 10\nsession_wall = "8h"\n[sandbox]\nread = ["/opt/x"]\n[sandbox.env]\nLANG = "C"\n[ui]\ntheme ='
        ' "light"\n[ui.keys]\n"floor.queue" = "f5"\n',
    )
    assert (cfg.model.default, cfg.caps.session_usd, cfg.caps.day_usd, cfg.caps.session_wall) == (
        "claude-haiku-5-5",
        2_500_000_000,
        10 * amounts.NANO,
        28800,
    )
    assert cfg.sandbox.read == ("/opt/x",)
    assert cfg.sandbox.env == {"LANG": "C"}
    assert cfg.ui.keys == {"floor.queue": "f5"}
    assert api_key.base_url(cfg, {}) == "http://127.0.0.1:1"


def test_false_lifts_a_cap() -> None:
    assert c.parse(FILE, "[caps]\nday_usd = false\n").caps.day_usd is None


def test_a_section_that_had_another_name_is_refused_with_its_new_one() -> None:
    with pytest.raises(c.ConfigError, match=r"line 1: fence: is called sandbox now; write \[sandbox\]"):
        c.parse(FILE, '[fence]\nread = ["/opt/x"]\n')


@pytest.mark.parametrize(
    ("text", "line", "key"),
    [
        ("[model]\ndefault = 3\n", 2, "model.default"),
        ("\n[caps]\nsession_usd = 1\nsesion_tokens = 5\n", 4, "caps.sesion_tokens"),
        ("[caps]\nsession_tokens = -1\n", 2, "caps.session_tokens"),
        ("[caps]\nsession_usd = true\n", 2, "caps.session_usd"),
        ('[caps]\nsession_wall = "soon"\n', 2, "caps.session_wall"),
        ("[sandbox]\nread = [1]\n", 2, "sandbox.read"),
        ('[sandbox]\nread = ["/"]\n', 2, "sandbox.read"),
        ('[sandbox]\nread = ["~"]\n', 2, "sandbox.read"),
        ('[sandbox]\npath = ["bin"]\n', 2, "sandbox.path"),
        ("[model]\ncontext_tokens = 19999\n", 2, "model.context_tokens"),
        ("[model]\nevidence_rounds = 21\n", 2, "model.evidence_rounds"),
        ("[modell]\n", 1, "modell"),
        ('[model]\ndefault = "a\n', 2, ""),
        ("model = 3\n", 1, "model"),
        (f"model = {'[' * 20_000}", 1, ""),
        ('[limits]\nmemory = "9999999999TiB"\n', 2, "limits.memory"),
        ("[limits]\nfile = 9223372036854775808\n", 2, "limits.file"),
        ("[limits]\nstrict = 1\n", 2, "limits.strict"),
        ("[plan]\nsetup_s = 3601\n", 2, "plan.setup_s"),
        ("[hooks]\nseconds = 3601\n", 2, "hooks.seconds"),
    ],
)
def test_errors_name_file_line_and_key(text: str, line: int, key: str) -> None:
    with pytest.raises(c.ConfigError) as caught:
        c.parse(FILE, text)
    assert (caught.value.line, caught.value.key) == (line, key)
    assert str(FILE) in str(caught.value)
    assert f"line {line}" in str(caught.value)


def test_a_setting_asks_for_no_more_time_than_the_sandbox_gives() -> None:
    assert sections.LONGEST_RUN_S == registry.MAX_TIMEOUT_S


@given(st.integers(0, 10**15))
def test_usd_round_trip(nano: int) -> None:
    assert amounts.usd_to_nano(f"{nano // amounts.NANO}.{nano % amounts.NANO:09d}") == nano
    assert amounts.usd_to_nano(amounts.usd_typed(nano)) == nano


@given(st.text(max_size=12) | st.text("0123456789.$ -+_,eE", max_size=12))
def test_usd_rejects_or_is_exact(text: str) -> None:
    try:
        value = amounts.usd_to_nano(text)
    except ValueError:
        return
    assert value == Decimal(text.strip().removeprefix("$")) * amounts.NANO >= 0


@pytest.mark.parametrize("text", ["1000000000.01", "9" * 20, "9" * 6000, "\u0661\u0660"])
def test_an_amount_that_nobody_can_mean_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"more than the most that can be counted|is not an amount in USD"):
        amounts.usd_to_nano(text)


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("day_usd = 1e300", "more than the most that can be counted"),
        ('session_usd = "9999999999"', "more than the most that can be counted"),
        ("fleet_tokens = 1" + 18 * "0" + "1", "between 0 and 1,000,000,000,000,000,000, or false for none, not 1"),
    ],
)
def test_a_cap_that_nobody_can_mean_is_refused(setting: str, says: str) -> None:
    with pytest.raises(c.ConfigError, match=says):
        c.parse(FILE, f"[caps]\n{setting}\n")


@pytest.mark.parametrize("text", ["99999999999d", "9" * 5000 + "h", "101d 876000h"])
def test_a_stretch_of_time_that_nobody_can_mean_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="longer than a hundred years"):
        amounts.seconds(text)


def test_key_belongs_to_its_endpoint(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("sk-1\n")
    cfg = c.parse(FILE, f'[model]\nbase_url = "http://h"\napi_key_file = "{key}"\n')
    assert api_key.credential(cfg, {"ANTHROPIC_API_KEY": "other"}) == credential.Credential("http://h", "sk-1")
    assert "sk-1" not in repr(api_key.credential(cfg, {}))
    key.write_text("sk-22\n")
    assert api_key.credential(cfg, {}) == credential.Credential("http://h", "sk-22"), (
        "a key that was replaced counts at once"
    )
    assert api_key.credential(c.parse(FILE, ""), {}) is None


@pytest.mark.parametrize("kind", ["pipe", "folder", "endless"])
def test_what_is_no_file_in_the_place_of_one_is_said_and_not_waited_for(tmp_path: Path, kind: str) -> None:
    folders = Folders(tmp_path / "state", tmp_path / "run", tmp_path)
    key = tmp_path / "key"
    for path in (folders.config_file, key):
        _put(path, kind)
    with pytest.raises(c.ConfigError, match=r"config\.toml.* cannot be read"):
        c.load(folders)
    with pytest.raises(c.ConfigError, match=r"api_key_file: .*key cannot be read"):
        api_key.credential(c.parse(tmp_path / "c.toml", f'[model]\napi_key_file = "{key}"\n'), {})


def _put(path: Path, kind: str) -> None:
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")


def test_folders_move_together(tmp_path: Path) -> None:
    f = resolve({"WATCHFLOOR_STATE": str(tmp_path / "s"), "WATCHFLOOR_CONFIG": str(tmp_path / "c")})
    assert f.runtime == tmp_path / "s" / "run"
    assert f.config_file == tmp_path / "c" / "config.toml"


def test_private_folder_is_closed_and_links_are_refused(tmp_path: Path) -> None:
    open_folder = tmp_path / "open"
    open_folder.mkdir(mode=0o755)
    ensure_private(open_folder)
    assert open_folder.stat().st_mode & 0o777 == 0o700
    (tmp_path / "link").symlink_to(open_folder)
    with pytest.raises(FolderError, match="symbolic link"):
        ensure_private(tmp_path / "link")
    (tmp_path / "file").write_text("")
    with pytest.raises(FolderError, match="cannot use folder"):
        ensure_private(tmp_path / "file" / "sub")


def test_folders_type() -> None:
    assert Folders(Path("/s"), Path("/r"), Path("/c")).session("abc").keeper_socket == Path("/r/keepers/abc.sock")


@pytest.mark.parametrize(
    "url",
    [
        "https://user:hunter2@h/",
        "https://hunter2@h",
        "ftp://h",
        "h:80",
        "https://",
        "https://h:99999",
        "https://h/?key=hunter2",
        "https://h#x",
        "https://h/\x1b",
        "http://h b",
    ],
)
def test_an_address_that_would_leak_or_cannot_work_is_refused_without_quoting_it(url: str) -> None:
    with pytest.raises(c.ConfigError) as error:
        c.parse(FILE, f'[model]\ndefault = "m"\nbase_url = {json.dumps(url)}\n')
    assert (error.value.line, error.value.key) == (3, "model.base_url")
    assert "hunter2" not in str(error.value)
    with pytest.raises(c.ConfigError) as error:
        api_key.credential(c.parse(FILE, ""), {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "k"})
    assert "hunter2" not in str(error.value)


def test_the_sandbox_may_not_show_what_is_watchfloors_own(tmp_path: Path) -> None:
    folders = Folders(tmp_path / "a" / "state", tmp_path / "b" / "run", tmp_path / "c" / "config")
    folders.config.mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    for path in (
        tmp_path,
        tmp_path / "a",
        tmp_path / "link",
        folders.state / "sessions",
        folders.runtime,
        folders.config,
        tmp_path / "keys",
    ):
        folders.config_file.write_text(
            f'[model]\napi_key_file = "{tmp_path}/keys/k"\n[sandbox]\nread = ["/opt/x", "{path}"]\n'
        )
        with pytest.raises(c.ConfigError, match="Watchfloor's own") as error:
            c.load(folders)
        assert (error.value.line, error.value.key) == (4, "sandbox.read")
    folders.config_file.write_text(f'[sandbox]\nread = ["{tmp_path}/d"]\n')
    assert c.load(folders).sandbox.read == (f"{tmp_path}/d",)


@pytest.mark.parametrize("key", ["sk canary", "sk-canary\nsk-canary", "sk-canary\x7f", "sk-canary\u2028x"])
def test_a_key_that_cannot_be_one_is_refused_without_quoting_it(key: str) -> None:
    with pytest.raises(c.ConfigError) as error:
        api_key.credential(c.parse(FILE, ""), {"ANTHROPIC_API_KEY": key})
    assert "canary" not in str(error.value)


def test_jobs_have_times_a_size_and_a_number(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    config = c.parse(file, '[jobs]\nlimit = "2h 30m"\nlongest = "30d"\nat_once = 2\nlog = "32MiB"\ngrace = 5\n')
    assert (config.jobs.limit, config.jobs.longest, config.jobs.log) == (9000, 30 * 86_400, 32 << 20)
    assert (config.jobs.at_once, config.jobs.grace) == (2, 5)
    for wrong in ("at_once = 65", 'limit = "0s"', 'log = "1MiB"', "grace = true", 'longest = "soon"'):
        with pytest.raises(c.ConfigError, match=r"config.toml, line 2: jobs\."):
            c.parse(file, f"[jobs]\n{wrong}\n")


def test_a_stopped_process_is_waited_for_between_ten_seconds_and_a_week(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    assert c.parse(file, "").processes.stopped == 60
    assert c.parse(file, '[processes]\nstopped = "10s"\n').processes.stopped == 10
    assert c.parse(file, '[processes]\nstopped = "7d"\n').processes.stopped == 7 * 86_400
    for wrong in ('"9s"', "604801", "false", '"soon"', "12.5"):
        with pytest.raises(c.ConfigError, match=r"config.toml, line 2: processes\.stopped"):
            c.parse(file, f"[processes]\nstopped = {wrong}\n")


def test_undo_limits_are_sizes_and_a_number(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    config = c.parse(file, '[undo]\nfile_bytes = "1MiB"\nnames = 20\nhistory_bytes = 4096\n')
    assert config.undo.to_wire() == {"file_bytes": 1 << 20, "tree_bytes": 4 << 30, "names": 20, "history_bytes": 4096}
    assert asdict(VaultLimits()) == c.parse(file, "").undo.to_wire(), "the vault's own defaults are the same"
    for wrong in ('file_bytes = "5%"', "names = -1", 'names = "many"', "tree_bytes = false", "other = 1"):
        with pytest.raises(c.ConfigError, match=r"config.toml, line 2: undo\."):
            c.parse(file, f"[undo]\n{wrong}\n")


def test_alarms_have_times_amounts_and_numbers_and_can_be_switched_off(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    config = c.parse(
        file, '[alarms]\nsilent = "2h"\nno_progress_usd = "2.50"\nminute_usd = 0.5\nsame_failure = false\n'
    )
    assert config.alarms == sections.AlarmsConfig(7200, 2_500_000_000, 500_000_000, None)
    for wrong in (
        'silent = "soon"',
        "silent = 0",
        "minute_usd = true",
        'no_progress_usd = "much"',
        "same_failure = -1",
    ):
        with pytest.raises(c.ConfigError, match=r"config.toml, line 2: alarms\."):
            c.parse(file, f"[alarms]\n{wrong}\n")


def test_notices_have_a_command_and_stretches_of_time(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    config = c.parse(
        file,
        '[notify]\ncommand = ["apprise", "-t", "floor"]\ndesktop = false\ndwell = 0\ncool_down = "5m"\nagain = false\n',
    )
    assert config.notify == sections.NotifyConfig(("apprise", "-t", "floor"), False, "bell", 0, 300, None)
    more = c.parse(file, '[notify]\napprise = "~/apprise.yml"\ntitle = false\n').notify
    assert (more.apprise, more.title) == (str(Path.home() / "apprise.yml"), False)
    for wrong in (
        'command = "mail me"',
        'apprise = "apprise.yml"',
        'apprise = ["ntfy://topic"]',
        "apprise = true",
        "title = 1",
        'command = [""]',
        'command = ["a\\u0000b"]',
        "desktop = 1",
        'screen = "loud"',
        'dwell = "soon"',
        "dwell = -1",
        "cool_down = 0",
        "cool_down = false",
        'again = "1s"',
        'again = "30d"',
    ):
        with pytest.raises(c.ConfigError, match=r"config.toml, line 2: notify\."):
            c.parse(file, f"[notify]\n{wrong}\n")
