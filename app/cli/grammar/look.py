"""Verbs that list and print."""

from __future__ import annotations

import argparse

from app.cli.base.session_place import named
from app.cli.grammar.verb import Group, nothing

GROUP = Group("look")
verb = GROUP.verb
_SINCE = "only what happened since this time (2026-11-22T08:00) or this long ago (90m, 2d)"


verb("attach", "", "open the floor on one session", json=False)(named)


@verb("brief", "cli.verbs.brief:brief", "what happened since you looked, and what needs you")
def brief(p: argparse.ArgumentParser) -> None:
    p.add_argument("ids", metavar="ID", nargs="*", help="sessions (default: all)")
    p.add_argument("--since", metavar="T", help=f"{_SINCE}; default: since it was shown here last, at first 24h")
    p.add_argument("--md", action="store_true", help="as Markdown")


@verb("ls", "cli.verbs.sessions:ls", "list the sessions")
def ls(p: argparse.ArgumentParser) -> None:
    p.add_argument("--names", action="store_true", help="only ids and names, one a line; starts nothing")
    p.add_argument("--archived", action="store_true", help="what is kept of removed sessions, with what they cost")


verb("show", "cli.verbs.sessions:show", "show one session")(named)


@verb("logs", "cli.verbs.logs:logs", "print a session's event log")
def logs(p: argparse.ArgumentParser) -> None:
    named(p)
    p.add_argument("-f", "--follow", action="store_true", help="go on as events arrive, until the session has ended")
    p.add_argument("--after", metavar="SEQ", type=int, default=-1, help="only events after this sequence number")
    p.add_argument("--tail", metavar="N", type=int, help="only the last N of them, and with -f what follows")
    p.add_argument(
        "--since",
        metavar="T",
        help="only since a time: 2h, 30m, or 2026-11-22T08:00 (yours without a zone)",
    )
    p.add_argument(
        "--kind",
        metavar="KIND",
        action="append",
        default=[],
        help="only records of this kind (tool, tool.ended) or with this word (says, wants); may be repeated",
    )
    p.add_argument(
        "--payload",
        metavar="SHA",
        default="",
        help="print what is kept beside the log under this SHA-256 instead",
    )


verb("plan", "cli.verbs.plan:show", "show a session's plan: the state of each entry, its evidence, what comes next")(
    named
)


@verb("diff", "cli.verbs.merge:diff", "what a session changed since its start")
def diff(p: argparse.ArgumentParser) -> None:
    p.add_argument("id", metavar="ID", help="session id, the beginning of one, or its name")
    p.add_argument("--stat", action="store_true", help="only the files, with the lines added and removed in each")


@verb("why", "cli.verbs.why:why", "who changed a file, in which call, for what reason, and who let it")
def why(p: argparse.ArgumentParser) -> None:
    p.add_argument("file", metavar="FILE[:LINE]", help="a file of a repository or of a session's worktree")
    p.add_argument(
        "--session",
        metavar="ID",
        default="",
        help="only this session, a removed one too (default: all of the repository)",
    )
    p.add_argument("--all", action="store_true", help="all changes on record (default: the newest 10)")


verb("cost", "cli.verbs.sessions:cost", "what each session has spent against its cap")(nothing)


@verb("score", "cli.verbs.score:score", "how well sessions worked, in figures to compare runs by")
def score(p: argparse.ArgumentParser) -> None:
    p.add_argument("ids", metavar="ID", nargs="*", help="sessions (default: all; with one, what it made as well)")


@verb("jobs", "cli.verbs.jobs:jobs", "list the jobs that run, print what one printed, end one")
def jobs(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "words",
        metavar="WORD",
        nargs="*",
        help="nothing or ID: list what runs; cancel ID JOB: end one; log ID JOB: what it printed",
    )
    p.add_argument("-f", "--follow", action="store_true", help="with log: go on until the job has ended")


verb("checkpoints", "cli.verbs.checkpoints:listed", "list the checkpoints of a session, newest first")(named)
