"""What the verbs about rules understand."""

from __future__ import annotations

from app.cli.base.session_place import Verb


def add(verb: Verb) -> None:
    """Add ``grants``, ``grant`` and ``revoke``."""
    listed = verb("grants", "list the rules that let requests through, and what each let run", json=True)
    listed.add_argument("id", metavar="RULE", nargs="?", default="", help="all of one rule, with each of its uses")
    listed.add_argument("--all", action="store_true", help="also those that were revoked, have expired or are used up")
    made = verb("grant", "make a rule of a request, so that what is like it runs without asking", json=True)
    made.add_argument("id", metavar="APPROVAL", help="id of the request, as listed by: watchfloor approvals")
    made.add_argument(
        "--scope",
        choices=("session", "repository", "fleet"),
        default="session",
        help="whose requests it covers (default: this session's)",
    )
    made.add_argument("--expires", metavar="D", default="24h", help="how long it holds, up to 30d (default: 24h)")
    made.add_argument("--count", metavar="N", type=int, default=20, help="how many calls it lets run (default: 20)")
    made.add_argument(
        "--first",
        metavar="N",
        type=int,
        default=0,
        help="of a command only the first N words are fixed; plain words may follow (default: all of it is fixed)",
    )
    made.add_argument("--under", metavar="DIR", default="", help="any file in this folder (for reading outside)")
    made.add_argument("--typed", metavar="NAME", default="", help="name of its session: needed for what is critical")
    made.add_argument("--hash", metavar="HEX", help="hash from the end of its card: needed for high and critical risk")
    made.add_argument("--preview", action="store_true", help="make nothing; show what it would have covered")
    gone = verb("revoke", "take a rule back; what it covered asks again", json=True)
    gone.add_argument("id", metavar="RULE", help="id of the rule, as listed by: watchfloor grants")
    gone.add_argument("--why", metavar="TEXT", default="", help="kept with the revocation")
