"""What `watchfloor memory` understands."""

from __future__ import annotations

import argparse


def add(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of memory to its parser."""
    verbs = parser.add_subparsers(dest="what", metavar="WHAT", required=True)

    def verb(name: str, text: str, *, place: str = "") -> argparse.ArgumentParser:
        p = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        p.add_argument("--json", action="store_true", help="print JSON")
        if place:
            whose = p.add_mutually_exclusive_group()
            whose.add_argument("--repo", metavar="DIR", help=f"of the repository that this folder is in ({place})")
            whose.add_argument("--session", metavar="ID", help="of one session")
            whose.add_argument("--user", action="store_true", help="yours, in every repository")
        return p

    listed = verb("ls", "list what is remembered, and the lessons that wait for you", place="default: everything")
    listed.add_argument("--decided", action="store_true", help="show accepted and rejected lessons too")
    found = verb("search", "find memories by words", place="default: everywhere")
    found.add_argument("words", metavar="WORDS", nargs="+")
    for name, text in (
        ("show", "print one memory whole"),
        ("history", "every version of one memory: who said it, when, and what became of it"),
    ):
        verb(name, text, place="default: wherever the key is").add_argument("key", metavar="KEY")
    written = verb("set", "remember a text under a key", place="default: here")
    written.add_argument("key", metavar="KEY")
    written.add_argument("text", metavar="TEXT", help="what to remember (- for standard input)")
    written.add_argument("--days", metavar="N", type=int, help="forget it after so many days")
    gone = verb("rm", "forget a memory; its versions stay and can be brought back", place="default: wherever it is")
    gone.add_argument("key", metavar="KEY")
    back = verb(
        "rollback",
        "bring an earlier version of a memory back; the next request of every session shows that",
        place="default: wherever the key is",
    )
    back.add_argument("key", metavar="KEY")
    back.add_argument(
        "--to", metavar="N", type=int, help="version to bring back; 0 = none (default: the one before the newest)"
    )
    for changing in (written, gone, back):
        changing.add_argument(
            "--if-sha", metavar="SHA", help='only if this is the hash of what stands there ("" = nothing does)'
        )
        changing.add_argument("--why", metavar="TEXT", default="", help="kept with the version")
    accept = verb("accept", "let a lesson be remembered")
    reject = verb("reject", "refuse a lesson; saying it again does not bring it in")
    for deciding in (accept, reject):
        deciding.add_argument("lesson", metavar="LESSON", help='id of the lesson, as "watchfloor memory ls" gives it')
        deciding.add_argument("--why", metavar="TEXT", default="", help="kept with the decision")
