"""Verbs that take a session's work."""

from __future__ import annotations

import argparse

from app.cli.base.session_place import named
from app.cli.grammar.verb import Group

GROUP = Group("take the work")
verb = GROUP.verb


@verb("merge", "cli.verbs.merge:merge", "bring a session's work into your branch; its checks run on the result first")
def merge(p: argparse.ArgumentParser) -> None:
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


@verb("pr", "cli.verbs.pr:pr", "push a session's work and open a request for review with gh or glab")
def pr(p: argparse.ArgumentParser) -> None:
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


@verb("open", "cli.verbs.open:opened", "open your shell or editor in a session's worktree", json=False)
def open_(p: argparse.ArgumentParser) -> None:
    p.add_argument("id", metavar="ID", help="session id, the beginning of one, or its name")
    how = p.add_mutually_exclusive_group()
    how.add_argument("--editor", action="store_true", help="in $VISUAL or $EDITOR instead of a shell")
    how.add_argument("--path", action="store_true", help="only print the folder")


@verb("export", "cli.verbs.export:export", "write a session into one file that can be checked and read anywhere")
def export(p: argparse.ArgumentParser) -> None:
    named(p)
    p.add_argument(
        "file", metavar="FILE", nargs="?", default="", help="to make (default: NAME-ID.watchfloor.tar, in this folder)"
    )
    p.add_argument(
        "--thin",
        action="store_true",
        help="commits since its start only, which need its repository to be unpacked (default: all their history)",
    )
    p.add_argument(
        "--checkpoints",
        action="store_true",
        help="its checkpoints and kept work, too: they hold files that git ignores, such as .env (default: its branch)",
    )
