"""A shell or an editor of the person's in a session's worktree."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from app.cli.base import exits
from app.cli.base.arguments import Refused, Usage
from app.cli.base.context import Context
from app.cli.base.output import safe, say
from app.client.replies import ask
from harness.linux import programs
from harness.views.replies import SessionShown


def opened(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.look() as client:
        row = ask(client, SessionShown, "session", sid=args.id).row
    folder = Path(row.worktree)
    inner = folder / row.folder
    if not row.worktree or folder.is_symlink() or not folder.is_dir():
        raise Refused(
            f"{safe(row.name)} has no worktree here; its commits are on branch {safe(row.branch)} of {safe(row.repo)}"
        )
    if inner.is_dir() and inner.resolve().is_relative_to(folder.resolve()):
        folder = inner
    if args.path:
        print(folder)
        return exits.OK
    command = command_of(os.environ, editor=args.editor)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise Usage("there is no terminal to open it in; --path prints the folder instead")
    if not row.ended:
        say(f"{safe(row.name)} has not ended: its agent may change these files too")
    say(f"{safe(str(folder))}: what you start here runs as you, outside the sandbox; exit comes back")
    try:
        return exits.OK if subprocess.call(command, cwd=folder) == 0 else exits.NO
    except OSError as exc:
        raise Refused(f"{command[0]} cannot be started: {exc.strerror}") from exc


def command_of(env: Mapping[str, str], *, editor: bool) -> list[str]:
    """What is started: the person's shell, or the editor on the folder. Raises Usage when it is none or is found
    through the folder that it would be started in.
    """
    name = "EDITOR" if editor else "SHELL"
    given = (env.get("VISUAL") or env.get("EDITOR") or "") if editor else env.get("SHELL") or "/bin/sh"
    try:
        command = shlex.split(given)
    except ValueError as exc:
        raise Usage(f"{name} is no command: {exc}") from exc
    if not command:
        raise Usage(f"{name} is not set")
    if "/" in command[0] and not command[0].startswith("/"):
        raise Usage(f"{name} is {command[0]}, which would be looked for in the worktree; give its whole path")
    found = programs.which(command[0], env.get("PATH", os.defpath))
    if not found:
        raise Usage(f"{name} is {command[0]}, and there is no such program")
    return [found, *command[1:], "."] if editor else [found, *command[1:]]
