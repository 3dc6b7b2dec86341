"""What `watchfloor policy` understands."""

from __future__ import annotations

import argparse


def add(parser: argparse.ArgumentParser) -> None:
    """Add the verbs of policy to its parser."""
    verbs = parser.add_subparsers(dest="what", metavar="WHAT", required=True)

    def verb(name: str, text: str) -> argparse.ArgumentParser:
        p = verbs.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        p.add_argument("--json", action="store_true", help="print JSON")
        return p

    check = verb("check", "say whether a file is a policy, and what is wrong at which line")
    check.add_argument("file", metavar="FILE", nargs="?", help="the file (default: yours; - for standard input)")
    check.add_argument("--repository", action="store_true", help="as a repository's own, which can only tighten")
    explained = verb("explain", "say what the policy in force makes of an action, and which rules and effects decide")
    explained.add_argument(
        "action", metavar="ACTION", help="id of an open request, or - for an action as JSON (as logs have it)"
    )
    tried = verb("try", "say what another policy would have changed over all calls on record")
    tried.add_argument("file", metavar="FILE", help="the policy to try (- for standard input)")
