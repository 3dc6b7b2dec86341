"""What the two verbs understand that begin work: ``launch``, and ``continue`` for a session that has ended."""

from __future__ import annotations

import argparse

from app.cli.base.session_place import named
from harness.domain.cap import Cap
from harness.protocol.config.choices import FRESH, JUDGE_AT, MOST_EVIDENCE_ROUNDS

_COUNT = "N"
_CAPS = {
    Cap.SESSION_USD: ("X", 'hard cap in USD, or "none"', 'new hard cap in USD; +X = so much more; "none" = no cap'),
    Cap.SESSION_TOKENS: (_COUNT, "hard cap in tokens", "new hard cap in tokens, or +N"),
    Cap.SESSION_WALL: (
        "T",
        "hard cap in wall time, such as 90m or 8h",
        "new hard cap in wall time such as 90m, or +2h; the time since the end does not count",
    ),
    Cap.SESSION_CALLS: (_COUNT, "hard cap in tool calls", "new hard cap in tool calls, or +N"),
}
"""The caps of a session: what each is given, and its help at a launch and for a session that goes on."""


def add_launch(launch: argparse.ArgumentParser) -> None:
    """A goal, what decides that it is reached, who works on it, and what that may cost."""
    _goal(launch)
    _deciding(launch)
    _who(launch)
    _caps(launch)


def _goal(launch: argparse.ArgumentParser) -> None:
    launch.add_argument("--repo", metavar="DIR", default=".", help="git repository to work on (default: here)")
    launch.add_argument(
        "--branch", metavar="NAME", help="begin from this branch, tag or commit (default: what the checkout shows)"
    )
    goal = launch.add_mutually_exclusive_group(required=True)
    goal.add_argument("--goal", metavar="TEXT", help="what to achieve")
    goal.add_argument("--goal-file", metavar="F", help="file that says what to achieve (- for standard input)")
    _repeated(launch, "--check", "CMD", "command that must exit with 0 for the session to be done")
    launch.add_argument(
        "--plan",
        metavar="FILE",
        default="",
        help="plan in the repository (feature_list.json, prd.json): its criteria are checked, and passes is set by it",
    )
    launch.add_argument(
        "--fresh",
        choices=FRESH,
        default="",
        help="with a plan: begin a context anew for each task, for each claim that it is done, or never",
    )
    launch.add_argument(
        "--plan-from-goal",
        metavar="FILE",
        nargs="?",
        const="feature_list.json",
        default="",
        help="it first writes a plan from the goal (default: feature_list.json), which you accept or send back",
    )
    launch.add_argument(
        "--no-criterion", action="store_true", help="nothing decides when it is done but its agent's word; do not ask"
    )
    launch.add_argument(
        "--evidence-rounds",
        metavar="N",
        type=int,
        choices=range(MOST_EVIDENCE_ROUNDS + 1),
        help="where nothing decides: ask its agent so often for evidence that it is done (default: 1, as configured)",
    )
    launch.add_argument("--yes-plan", action="store_true", help="with --plan-from-goal: accept the plan unseen")


def _deciding(launch: argparse.ArgumentParser) -> None:
    """Gates, and which files decide."""
    _repeated(
        launch,
        "--gate",
        "PHASE=WHY",
        'a phase of the plan that begins only with your word; why may say "above $5": from that sum on, or "on:'
        ' external message, delete": each such call asks (also: production write)',
    )
    _repeated(
        launch,
        "--phrase",
        "TEXT=CMD",
        "criteria of the plan in these words, such as 'Tests pass=make test', are decided by this command, in this"
        " repository from now on; 'Tests pass=' takes that back",
    )
    launch.add_argument(
        "--accept-phrases",
        default="",
        metavar="HASH",
        help="let the repository's .watchfloor/phrases.toml count, by the digest of what you read; a launch names it",
    )
    _repeated(launch, "--protect", "PATTERN", "further files that decide whether it is done, such as docs/spec/**")
    _repeated(
        launch,
        "--may-change",
        "PATTERN",
        "files that it may change although they are protected (tests, their configuration, CI)",
    )
    launch.add_argument(
        "--may-change-tests", action="store_true", help="it may change anything, tests included: the same as '**'"
    )


def _who(launch: argparse.ArgumentParser) -> None:
    """Its name, its judges, its role and its model."""
    launch.add_argument("--name", metavar="N", help="short name (default: made from the goal)")
    launch.add_argument(
        "--review",
        action="store_true",
        help="first a planner writes a contract that the evaluator agrees to; then the work, and --judge by it",
    )
    launch.add_argument(
        "--judge", action="store_true", help="done only when a judge, who knows nothing but the work, is satisfied too"
    )
    launch.add_argument(
        "--judge-model",
        metavar="M",
        default="",
        help="with a judge of this model (default: its role's, else the same)",
    )
    launch.add_argument(
        "--judge-cycles",
        metavar="N",
        type=int,
        choices=range(1, 21),
        default=0,
        help="it looks at most so often (default: 3; 20 at most)",
    )
    launch.add_argument(
        "--judge-at",
        choices=JUDGE_AT,
        default="",
        help="with a plan: the judge looks at each task as well, or only at the end (default: end)",
    )
    launch.add_argument("--role", metavar="NAME", default="", help="role of the agent (default: coder); see: roles")
    launch.add_argument("--model", metavar="M", help="model (default: the role's, else the configuration's)")


def _caps(launch: argparse.ArgumentParser) -> None:
    for cap, (metavar, words, _) in _CAPS.items():
        launch.add_argument(cap.option, metavar=metavar, type=int if metavar == _COUNT else str, help=words)


def add_continue(go_on: argparse.ArgumentParser) -> None:
    """Which session, and what is different from now on."""
    named(go_on)
    go_on.add_argument("text", metavar="TEXT", nargs="?", default="", help="what the agent should do now")
    go_on.add_argument(
        "--rounds",
        metavar="N",
        help="how often failing checks may send it back (default: as before; counted anew)",
    )
    _repeated(go_on, "--check", "CMD", "one more command that must exit with 0")
    go_on.add_argument(
        "--replace-checks", action="store_true", help="the given checks hold instead of the earlier ones"
    )
    go_on.add_argument(
        "--fresh",
        action="store_true",
        help="begin anew with a hand-off from the log in place of the conversation; a session that has not ended too",
    )
    for cap, (metavar, _, words) in _CAPS.items():
        go_on.add_argument(cap.option, metavar=metavar, help=words)


def _repeated(verb: argparse.ArgumentParser, name: str, what: str, words: str) -> None:
    """An option that may be given more than once."""
    verb.add_argument(name, metavar=what, action="append", default=[], help=f"{words}; may be repeated")
