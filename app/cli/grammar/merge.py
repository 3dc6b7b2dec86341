"""The grammar of the verbs that take a session's work."""

from __future__ import annotations

import argparse


def add_diff(p: argparse.ArgumentParser) -> None:
    p.add_argument("id", metavar="ID", help="session id, the beginning of one, or its name")
    p.add_argument("--stat", action="store_true", help="only the files, with the lines added and removed in each")


def add_why(p: argparse.ArgumentParser) -> None:
    p.add_argument("file", metavar="FILE[:LINE]", help="a file of a repository or of a session's worktree")
    p.add_argument(
        "--session",
        metavar="ID",
        default="",
        help="only this session, a removed one too (default: all of the repository)",
    )
    p.add_argument("--all", action="store_true", help="all changes on record (default: the newest 10)")


def add_merge(p: argparse.ArgumentParser) -> None:
    p.add_argument("id", metavar="ID", help="session id, the beginning of one, or its name")
    how = p.add_mutually_exclusive_group()
    how.add_argument("--squash", action="store_true", help="as one commit")
    how.add_argument("--rebase", action="store_true", help="its commits anew on the branch, without a merge commit")
    how.add_argument(
        "--resolve",
        action="store_true",
        help="have the agent bring the branch into its work, after conflicts or failing checks; -m are words to it",
    )
    p.add_argument("--into", metavar="BRANCH", default="", help="into this branch (default: what the checkout shows)")
    p.add_argument("--repo", metavar="DIR", default="", help="checkout to merge in (default: where it was launched)")
    p.add_argument("-m", "--message", metavar="TEXT", default="", help="message of the commit that is made")
    p.add_argument("--commit", action="store_true", help="first commit what the session left in no commit")
    p.add_argument("--no-checks", action="store_true", help="do not run its checks on the result first")


def add_open(p: argparse.ArgumentParser) -> None:
    p.add_argument("id", metavar="ID", help="session id, the beginning of one, or its name")
    how = p.add_mutually_exclusive_group()
    how.add_argument("--editor", action="store_true", help="in $VISUAL or $EDITOR instead of a shell")
    how.add_argument("--path", action="store_true", help="only print the folder")


def add_pr(p: argparse.ArgumentParser) -> None:
    p.add_argument("id", metavar="ID", help="session id, the beginning of one, or its name")
    p.add_argument("--remote", metavar="NAME", default="origin", help="remote of the repository (default: origin)")
    p.add_argument(
        "--as",
        dest="branch",
        metavar="BRANCH",
        default="",
        help="its name there (default: the session's)",
    )
    p.add_argument("--into", metavar="BRANCH", default="", help="branch that it is to go into (default: the forge's)")
    p.add_argument(
        "--repo",
        metavar="OWNER/NAME",
        default="",
        help="repository, where the remote's address names none",
    )
    p.add_argument("--with", dest="program", choices=("gh", "glab"), default="", help="which program opens it")
    p.add_argument("--title", metavar="TEXT", default="", help="title (default: its commit's, or of its goal)")
    p.add_argument("--draft", action="store_true", help="open it as a draft")
    p.add_argument("--commit", action="store_true", help="first commit what the session left in no commit")
    p.add_argument("--force", action="store_true", help="replace the branch there, as long as it stands as it was seen")
    # for the review on the screen, which knows what was read there, and what was said would be sent
    p.add_argument("--seen", metavar="HASH", default="", help=argparse.SUPPRESS)
    p.add_argument("--shown", metavar="HASH", default="", help=argparse.SUPPRESS)
    only = p.add_mutually_exclusive_group()
    only.add_argument("--push-only", action="store_true", help="push the branch, and open nothing")
    only.add_argument("--dry-run", action="store_true", help="show what would be pushed and opened; nothing is sent")
