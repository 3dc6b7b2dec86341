"""Verbs that look after the fleet."""

from __future__ import annotations

import argparse

from app.cli.grammar.verb import Group, nothing

GROUP = Group("care for the fleet")
verb = GROUP.verb


verb("doctor", "cli.verbs.health:doctor", "check this machine and this fleet")(nothing)


@verb(
    "verify",
    "cli.verbs.health:verify",
    "check the event logs and their payloads, or a file made by export: framing, checksums, chain",
)
def verify(p: argparse.ArgumentParser) -> None:
    p.add_argument("id", metavar="ID", nargs="?", help="a session's id or name, or a file (default: all logs)")


@verb("supervisor", "cli.verbs.supervisor:supervisor", "start, stop or look at the supervisor")
def supervisor(p: argparse.ArgumentParser) -> None:
    p.add_argument("what", metavar="start|stop|status", choices=("start", "stop", "status"))
    p.add_argument(
        "--sessions", choices=("leave", "stop"), default="leave", help="with stop: what becomes of the sessions"
    )


@verb("service", "cli.verbs.service:verb", "let the fleet go on by itself after a reboot")
def service(p: argparse.ArgumentParser) -> None:
    p.add_argument("what", metavar="install|remove|status", choices=("install", "remove", "status"))


verb("adopt", "cli.verbs.adopt:adopt", "take over a state folder that was copied, moved or put back from a backup")(
    nothing
)
