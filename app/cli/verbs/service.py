"""The verb ``service``: let the fleet go on after a reboot, by systemd where the user has one, else by cron."""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

from app import service
from app.cli.base import exits
from app.cli.base.arguments import Refused
from app.cli.base.context import Context
from app.cli.base.output import emit, safe, say
from app.service import Service
from harness.protocol.client import Mute, Unreachable
from harness.protocol.config import api_key
from harness.protocol.config import config as configuration
from harness.protocol.paths import ensure_private

_ANSWER_S = 30


def verb(ctx: Context, args: argparse.Namespace) -> int:
    """``service install|remove|status``."""
    made = describe(ctx)
    if args.what == "status":
        return _status(ctx, made, args)
    how = _how()
    words = _install(ctx, made, how) if args.what == "install" else _remove(made)
    installed = args.what == "remove" or how != "by hand"
    if args.json:
        emit({"how": how, "done": installed, "text": words})
    else:
        for line in words:
            say(safe(line))
    return exits.OK if installed else exits.NO


def describe(ctx: Context) -> Service:
    """This fleet's service: the guardian, with the folders and where programs are found named, and no key."""
    f = ctx.folders
    env = {"WATCHFLOOR_STATE": str(f.state), "WATCHFLOOR_RUNTIME": str(f.runtime), "WATCHFLOOR_CONFIG": str(f.config)}
    if path := _path():
        env["PATH"] = path
    command = (sys.executable, "-P", "-s", "-m", "harness.supervisor.guardian")
    return Service(command, env, f.state, f.supervisor_log, "WATCHFLOOR_STATE" not in os.environ)


def _path() -> str:
    """This shell's PATH as a boot can use it: git or bwrap may lie where neither systemd nor cron looks."""
    entries = os.environ.get("PATH", "").split(os.pathsep)
    return os.pathsep.join(
        dict.fromkeys(e for e in entries if os.path.isabs(e) and e.isprintable() and os.path.isdir(e))
    )


def _run(*command: str, stdin: str = "") -> subprocess.CompletedProcess[str] | None:
    """None when there is no such program, or it does not answer.

    Texts go in and out as the bytes they are, whatever their encoding.
    """
    given = stdin.encode("utf-8", "surrogateescape")
    env = os.environ | {"LC_ALL": "C"}
    try:
        done = subprocess.run(command, capture_output=True, timeout=_ANSWER_S, check=False, input=given, env=env)
    except (OSError, subprocess.TimeoutExpired):
        return None
    out, err = (text.decode("utf-8", "surrogateescape") for text in (done.stdout, done.stderr))
    return subprocess.CompletedProcess(command, done.returncode, out, err)


def _user_systemd() -> bool:
    done = _run("systemctl", "--user", "show-environment")
    return done is not None and done.returncode == 0


def _table() -> str | None:
    """The user's crontab; None without cron.

    Raises Refused when it cannot be read: what is written over it would be lost.
    """
    if shutil.which("crontab") is None:
        return None
    done = _run("crontab", "-l")
    if done is not None and done.returncode == 0:
        return done.stdout
    if done is not None and "no crontab for" in done.stderr:
        return ""
    raise Refused(
        "your crontab cannot be read, so it is left as it is:"
        f" {(done.stderr.strip() if done else '') or 'crontab -l does not answer'}"
    )


def _how() -> str:
    if _user_systemd():
        return "systemd"
    return "cron" if _table() is not None else "by hand"


def _unit_path(s: Service) -> Path:
    root = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(root) / "systemd" / "user" / s.unit


def _install(ctx: Context, s: Service, how: str) -> list[str]:
    try:
        unit = service.unit_text(s)
        line = service.cron_line(s)
    except service.Unfit as exc:
        raise Refused(str(exc)) from exc
    ensure_private(ctx.folders.state)
    if how == "systemd":
        words = _with_systemd(s, unit)
    elif how == "cron":
        words = _with_cron(ctx, s)
    else:
        folder = ctx.folders.state / "service"
        ensure_private(folder)
        (folder / s.unit).write_text(unit, "utf-8")
        (folder / "crontab.line").write_text(line + "\n", "utf-8")
        words = [
            "nothing was installed: this user has neither a systemd of its own (systemctl --user) nor a crontab",
            f"with systemd: copy {folder / s.unit} to {_unit_path(s)}, then: systemctl --user enable --now {s.unit}",
            f"with cron: add the line in {folder / 'crontab.line'} by: crontab -e",
            "with anything else that starts programs: let it run, as you, what follows @reboot in that line",
        ]
    return [
        *words,
        "what was running goes on by itself then, without a terminal; what was paused or stopped stays so",
        *_about_key(ctx),
    ]


def _with_systemd(s: Service, unit: str) -> list[str]:
    path = _unit_path(s)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(unit, "utf-8")
    for command in (("daemon-reload",), ("enable", "--now", s.unit)):
        done = _run("systemctl", "--user", *command)
        if done is None or done.returncode != 0:
            raise Refused(
                f"{path} is written, but systemctl --user {' '.join(command)} failed:"
                f" {done.stderr.strip() if done else 'no answer'}"
            )
    return [f"installed as {path}, enabled and started", *_about_lingering()]


def _about_lingering() -> list[str]:
    done = _run("loginctl", "show-user", str(os.getuid()), "--property=Linger", "--value")
    if done is not None and done.stdout.strip() == "yes":
        return ["lingering is on: it starts with the machine, before you log in, and stays when you log out"]
    return [
        (
            "lingering is off: systemd starts it at your first login and ends everything of yours, agents too, at your"
            " last logout"
        ),
        "to let it start with the machine and outlive your logins: loginctl enable-linger",
    ]


def _with_cron(ctx: Context, s: Service) -> list[str]:
    runtime = os.path.realpath(ctx.folders.runtime)
    if runtime.startswith("/run/user/"):
        raise Refused(
            f"cron starts it before you log in, and {runtime} exists only while you are logged in; "
            f"set WATCHFLOOR_RUNTIME={ctx.folders.state / 'run'} in your shell's profile, then install again"
        )
    _write_table(service.with_line(_table() or "", s))
    return [
        "there is no systemd of your own here, so a line in your crontab starts it after each boot (see: crontab -l)"
    ]


def _write_table(table: str) -> None:
    done = _run("crontab", "-", stdin=table)
    if done is None or done.returncode != 0:
        raise Refused(f"crontab refused the new table: {done.stderr.strip() if done else 'no answer'}")


def _about_key(ctx: Context) -> list[str]:
    """A service has no shell's environment, and its text holds no key: only a key file answers after a boot."""
    try:
        config = configuration.load(ctx.folders)
        if config.model.api_key_file and api_key.credential(config, {}) is not None:
            return [
                f"the key is read from {config.model.api_key_file} (model.api_key_file); the service's text holds none"
            ]
    except configuration.ConfigError as exc:
        return [f"after a boot there will be no key: {exc}"]
    return [
        (
            f"after a boot there is no {config.model.api_key_env} of a shell, so sessions would wait and ask once for a"
            " key: put it alone into a file"
        ),
        (
            f'that only you can read (chmod 600) and name it in {config.file}: [model] api_key_file = "…"; the'
            " service's text holds no key"
        ),
    ]


def _remove(s: Service) -> list[str]:
    words = []
    path = _unit_path(s)
    if path.exists():
        _run("systemctl", "--user", "disable", s.unit)
        path.unlink()
        _run("systemctl", "--user", "daemon-reload")
        words.append(f"removed {path}")
    try:
        table = _table()
    except Refused as exc:
        if not words:
            raise
        return [*words, str(exc)]
    if table is not None and (kept := service.without_line(table, s)) != table:
        _write_table(kept)
        words.append("removed its line from your crontab")
    return (
        [*words, "what runs now goes on; nothing starts it after a boot"]
        if words
        else ["there was no service of this fleet"]
    )


def _status(ctx: Context, s: Service, args: argparse.Namespace) -> int:
    unit = _unit_path(s)
    told = []
    trouble = ""
    try:
        table = _table()
    except Refused as exc:
        table = None
        trouble = str(exc)
    if unit.exists():
        for what in ("is-enabled", "is-active"):
            done = _run("systemctl", "--user", what, s.unit)
            told.append(done.stdout.strip() if done is not None and done.stdout.strip() else "unknown")
    by_cron = table is not None and service.has_line(table, s)
    installed = bool(told) or by_cron
    try:
        with ctx.reach() as client:
            running = f"a supervisor runs (process {client.hello.get('pid')})"
    except Mute as exc:
        running = str(exc)
    except Unreachable:
        running = "no supervisor runs"
    if args.json:
        emit(
            {
                "installed": installed,
                "unit": str(unit) if told else "",
                "systemd": told,
                "cron": by_cron,
                "running": running,
            }
        )
        return exits.OK if installed else exits.NO
    if told:
        say(f"systemd: {safe(str(unit))}: {', '.join(told)}")
        for line in _about_lingering():
            say(line)
    if trouble:
        say(safe(trouble))
    if by_cron:
        say("cron: a line in your crontab starts it after each boot")
    if not installed:
        say(
            "not installed: after a reboot nothing goes on until you run a command; to change that: watchfloor service"
            " install"
        )
    say(safe(running))
    for line in _about_key(ctx) if installed else []:
        say(safe(line))
    return exits.OK if installed else exits.NO
