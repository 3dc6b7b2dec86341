"""Verbs of the queue, and of the rules that are made of its requests."""

from __future__ import annotations

import argparse

from app.cli.grammar.verb import Group

GROUP = Group("decide")
verb = GROUP.verb
_SINCE = "only what happened since this time (2026-11-22T08:00) or this long ago (90m, 2d)"


@verb("approvals", "cli.verbs.queue:approvals", "list what waits for you, or print the whole card of one request")
def approvals(p: argparse.ArgumentParser) -> None:
    p.add_argument(
        "id", metavar="ID", nargs="?", help="approval id: print its card, with the hash that approving it takes"
    )
    p.add_argument(
        "--whole",
        action="store_true",
        help="with ID: all that would change, where the card shows only its beginning and end",
    )
    p.add_argument("--facts", action="store_true", help="with ID: also the facts that are not unusual")
    p.add_argument("--names", action="store_true", help="only ids, one a line; starts nothing")


@verb("approve", "cli.verbs.queue:approve", "let a waiting action run, exactly as it was shown")
def approve(p: argparse.ArgumentParser) -> None:
    p.add_argument("ids", metavar="ID", nargs="+", help="approval ids; several only of low and medium risk")
    p.add_argument(
        "--hash",
        metavar="HASH",
        help='for high and critical risk: the hash at the end of "watchfloor approvals ID" (12 digits or more)',
    )
    p.add_argument("--edit", metavar="JSON", help="run this edited tool input instead")
    p.add_argument("--raise-to", metavar="X", help="for a cap: the new cap (USD for money, a number or time otherwise)")
    p.add_argument("--finish", action="store_true", help="for a cap: let it finish up with one last reply")
    p.add_argument("--choose", metavar="OPTION", help="any other option the request lists")


@verb("deny", "cli.verbs.queue:deny", "refuse a waiting action, with the reason")
def deny(p: argparse.ArgumentParser) -> None:
    p.add_argument("ids", metavar="ID", nargs="+", help="approval ids")
    p.add_argument("reason", metavar="REASON", help="why; the agents read it")


@verb("reject", "cli.verbs.queue:reject", "refuse a waiting action; the agent reads the reason")
def reject(p: argparse.ArgumentParser) -> None:
    p.add_argument("ids", metavar="ID", nargs="+", help="approval ids")
    p.add_argument("--reason", metavar="TEXT", required=True, help="why; the agents read it")


@verb(
    "answer",
    "cli.verbs.queue:answer",
    "answer a question; for another request the text is its result, and nothing runs",
)
def answer(p: argparse.ArgumentParser) -> None:
    p.add_argument("id", metavar="ID", help="approval id")
    p.add_argument(
        "text",
        metavar="TEXT",
        nargs="?",
        help="the answer, or the number of one that is offered; with --option what you add to it",
    )
    p.add_argument("--option", metavar="N", type=int, help="choose the Nth of the answers that a question offers")


@verb("defer", "cli.verbs.queue:defer", "put a request at the end of the queue")
def defer(p: argparse.ArgumentParser) -> None:
    p.add_argument("ids", metavar="ID", nargs="+", help="approval ids")


@verb("receipts", "cli.verbs.receipts:receipts", "what became of each request that you were asked, the newest first")
def receipts(p: argparse.ArgumentParser) -> None:
    p.add_argument("id", metavar="ID", nargs="?", default="", help="a session, or one request by its id (default: all)")
    p.add_argument("--since", metavar="T", help=_SINCE)


@verb("grant", "cli.verbs.grants:grant", "make a rule of a request, so that what is like it runs without asking")
def grant(p: argparse.ArgumentParser) -> None:
    p.add_argument("id", metavar="APPROVAL", help="id of the request, as listed by: watchfloor approvals")
    p.add_argument(
        "--scope",
        choices=("session", "repository", "fleet"),
        default="session",
        help="whose requests it covers (default: this session's)",
    )
    p.add_argument("--expires", metavar="D", default="24h", help="how long it holds, up to 30d (default: 24h)")
    p.add_argument("--count", metavar="N", type=int, default=20, help="how many calls it lets run (default: 20)")
    p.add_argument(
        "--first",
        metavar="N",
        type=int,
        default=0,
        help="of a command only the first N words are fixed; plain words may follow (default: all of it is fixed)",
    )
    p.add_argument("--under", metavar="DIR", default="", help="any file in this folder (for reading outside)")
    p.add_argument("--typed", metavar="NAME", default="", help="name of its session: needed for what is critical")
    p.add_argument("--hash", metavar="HEX", help="hash from the end of its card: needed for high and critical risk")
    p.add_argument("--preview", action="store_true", help="make nothing; show what it would have covered")


@verb("grants", "cli.verbs.grants:grants", "list the rules that let requests through, and what each let run")
def grants(p: argparse.ArgumentParser) -> None:
    p.add_argument("id", metavar="RULE", nargs="?", default="", help="all of one rule, with each of its uses")
    p.add_argument("--all", action="store_true", help="also those that were revoked, have expired or are used up")


@verb("revoke", "cli.verbs.grants:revoke", "take a rule back; what it covered asks again")
def revoke(p: argparse.ArgumentParser) -> None:
    p.add_argument("id", metavar="RULE", help="id of the rule, as listed by: watchfloor grants")
    p.add_argument("--why", metavar="TEXT", default="", help="kept with the revocation")
