"""Starting the fleet with the machine: the texts of a systemd user unit and of a crontab line.

Pure: who installs them is `app.cli.verbs.service`.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_MARK = "# added by: watchfloor service install,"


@dataclass(frozen=True, slots=True)
class Service:
    """What is started: the supervisor's guardian, for one state folder.

    ``env`` holds folders and PATH only, never a key.
    """

    command: tuple[str, ...]
    env: Mapping[str, str]
    state: Path
    log: Path
    own: bool
    """The state folder is the user's default one."""

    @property
    def unit(self) -> str:
        """The unit's name; a fleet in another folder has one of its own."""
        if self.own:
            return "watchfloor.service"
        return f"watchfloor-{hashlib.sha256(str(self.state).encode()).hexdigest()[:8]}.service"

    @property
    def mark(self) -> str:
        """What ends this fleet's line in a crontab; the shell takes it for a comment."""
        return f"{_MARK} {hashlib.sha256(str(self.state).encode()).hexdigest()[:8]}"


class Unfit(ValueError):
    """A path that cannot stand in a unit or a crontab; the message names it."""


def _plain(text: str) -> str:
    if any(ord(c) < 32 or ord(c) == 127 for c in text):
        raise Unfit(f"{text!r} holds a control character and cannot be named in a service")
    return text


def _systemd(text: str) -> str:
    """One quoted word of a unit file: its specifiers, variables and quotes taken literally."""
    escaped = _plain(text).replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'


def _argument(text: str) -> str:
    return _systemd(text).replace("$", "$$")


def unit_text(s: Service) -> str:
    """The systemd user unit.

    Stopping it ends the supervisor only: keepers live on, as they do without it. Raises Unfit.
    """
    env = "".join(f"Environment={_systemd(f'{name}={value}')}\n" for name, value in sorted(s.env.items()))
    return (
        "[Unit]\n"
        f"Description=Watchfloor: the supervisor of the agents in {_plain(str(s.state)).replace('%', '%%')}\n"
        "Documentation=man:systemd.service(5)\n"
        "\n"
        "[Service]\n"
        "Type=exec\n"
        f"ExecStart={' '.join(_argument(word) for word in s.command)}\n"
        f"{env}"
        "# Only the guardian is signalled: it lets the supervisor leave in order, and the sessions' keepers stay.\n"
        "KillMode=process\n"
        "TimeoutStopSec=60\n"
        "Restart=on-failure\n"
        "RestartSec=10\n"
        "# 3: it refuses to run here and says why; 4: another one runs already.\n"
        "RestartPreventExitStatus=3 4\n"
        "Delegate=yes\n"
        "OOMPolicy=continue\n"
        f"StandardOutput=append:{_plain(str(s.log)).replace('%', '%%')}\n"
        "StandardError=inherit\n"
        "\n"
        "[Install]\n"
        "WantedBy=default.target\n"
    )


def cron_line(s: Service) -> str:
    """The crontab line that starts it after a boot. Raises Unfit."""
    words = ["env", *(f"{name}={value}" for name, value in sorted(s.env.items())), *s.command]
    command = (
        f"{' '.join(shlex.quote(_plain(word)) for word in words)} >>{shlex.quote(_plain(str(s.log)))} 2>&1 {s.mark}"
    )
    return "@reboot " + command.replace("%", "\\%")  # cron reads a bare per cent sign as the end of the command


def with_line(table: str, s: Service) -> str:
    """The crontab with this fleet's line, once. Raises Unfit."""
    kept = without_line(table, s)
    return kept + ("" if not kept or kept.endswith("\n") else "\n") + cron_line(s) + "\n"


def without_line(table: str, s: Service) -> str:
    """The crontab without this fleet's line; everything else as it was."""
    return "".join(line for line in table.splitlines(keepends=True) if not line.rstrip().endswith(s.mark))


def has_line(table: str, s: Service) -> bool:
    return any(line.rstrip().endswith(s.mark) for line in table.splitlines())
