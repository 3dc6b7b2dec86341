"""Verbs that change what sessions do, or take it back."""

from __future__ import annotations

import argparse

from app.cli.base.session_place import named
from app.cli.grammar.verb import Group

GROUP = Group("steer")
verb = GROUP.verb


def wished(p: argparse.ArgumentParser) -> None:
    """Arguments of pause, resume and stop."""
    p.add_argument("ids", metavar="ID", nargs="+", help="session ids, beginnings of them, or names")
    p.add_argument("--reason", metavar="TEXT", default="", help="kept in the log")


@verb("say", "cli.verbs.sessions:message", "send a message to the agent for its next turn")
def say(p: argparse.ArgumentParser) -> None:
    named(p)
    p.add_argument("text", metavar="TEXT")


verb("pause", "cli.verbs.sessions:desire", "pause sessions at their next turn")(wished)
verb("resume", "cli.verbs.sessions:desire", "let paused sessions go on")(wished)
verb("stop", "cli.verbs.sessions:desire", "end sessions; their work stays, and only continue resumes it")(wished)


@verb(
    "snooze",
    "cli.verbs.alarms:snooze",
    "put the alarms of sessions off for a while, or those that failed or stand still; they come back",
)
def snooze(p: argparse.ArgumentParser) -> None:
    p.add_argument("ids", metavar="ID", nargs="+", help="session ids, beginnings of them, or names")
    p.add_argument("--for", dest="stretch", metavar="TIME", default="1h", help="such as 30m or 8h (default: 1h)")


verb("compact", "cli.verbs.compact:compact", "have a session's context summarised before its next turn")(named)


@verb("checkpoint", "cli.verbs.checkpoints:make", "keep a session's work as it is now: files, git state, plan")
def checkpoint(p: argparse.ArgumentParser) -> None:
    named(p)
    p.add_argument("--label", metavar="TEXT", default="", help="what it is for")


@verb(
    "restore",
    "cli.verbs.checkpoints:restore",
    "bring a session's work back to a checkpoint; what is there now is kept first",
)
def restore(p: argparse.ArgumentParser) -> None:
    named(p)
    p.add_argument("checkpoint", metavar="CHECKPOINT", help="as listed by: watchfloor checkpoints ID")


@verb(
    "undo",
    "cli.verbs.undo:undo",
    "bring a session's worktree back to what it was before a call; this can itself be undone",
)
def undo(p: argparse.ArgumentParser) -> None:
    named(p)
    p.add_argument(
        "--to",
        metavar="CALL",
        help="the state just before this call, or before this undo (default: the newest call that changed something)",
    )
    p.add_argument("--list", action="store_true", help="only list the states that can be had back, newest first")


@verb(
    "rm",
    "cli.verbs.sessions:remove",
    "archive ended sessions: their worktrees go, logs and costs stay; never unsaved work",
)
def rm(p: argparse.ArgumentParser) -> None:
    p.add_argument("ids", metavar="ID", nargs="+", help="session ids, beginnings of them, or names")
    p.add_argument(
        "--force",
        action="store_true",
        help="remove even what cannot be examined or kept: what is in its worktree is deleted",
    )
    p.add_argument(
        "--keep-as-ref",
        action="store_true",
        help="keep unsaved and unpushed work as refs/watchfloor/kept/ID in the repository, then remove",
    )


@verb("purge", "cli.verbs.archive:purge", "delete the log and payloads of archived sessions for good")
def purge(p: argparse.ArgumentParser) -> None:
    p.add_argument("ids", metavar="ID", nargs="+", help="whole ids, or names, as in: watchfloor ls --archived")
    p.add_argument("--yes", action="store_true", help="do not ask; needed where there is no terminal to ask at")
