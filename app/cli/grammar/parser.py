"""The command line's grammar: every verb, its arguments and its help."""

from __future__ import annotations

import argparse
import contextlib
import functools
from collections.abc import Sequence
from typing import NoReturn

from app.cli.base.arguments import EMPTY
from app.cli.base.session_place import Verb, named
from app.cli.grammar import brief, grants, jobs, launch, memory, merge, overview, policy
from harness.domain.text.display_safe import to_display

DESCRIPTION = "A terminal control room for long-running AI agents. Without a verb it opens the floor."
EPILOG = (
    "exit codes: 0 done · 1 the answer is no · 2 wrong usage, no terminal · 3 no supervisor or folder unusable · 4 not"
    " found · 5 refused · 6 bad configuration · 70 our bug · 74 the output cannot be written"
)


_REQUIRED = "the following arguments are required: "
_FEW = 20
_OF_REQUESTS = ("approve", "reject", "deny", "answer", "defer")


class Parser(argparse.ArgumentParser):
    """Quotes wrong arguments as display text: a script may have put anything there."""

    def error(self, message: str) -> NoReturn:
        if message.startswith(_REQUIRED) and "ID" in message.removeprefix(_REQUIRED).split(", "):
            verb = self.prog.rpartition(" ")[2]
            message += f"; list them with: watchfloor {'approvals' if verb in _OF_REQUESTS else 'ls'}"
        super().error(to_display(message))

    def _check_value(self, action: argparse.Action, value: object) -> None:
        # of fifty words the one that was meant says more than all of them
        known = list(map(str, action.choices or ()))
        if len(known) <= _FEW or str(value) in known:
            super()._check_value(action, value)
            return
        import difflib

        near = difflib.get_close_matches(str(value), known, n=3)
        meant = f"did you mean {' or '.join(near)}?" if near else f"see them with: {self.prog} --help"
        raise argparse.ArgumentError(action, f"there is no {value!r}; {meant}")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> object:
        # argparse drops this value, as if it ended the options, and gives an empty list in its place
        if action.option_strings and action.nargs is None and arg_strings == ["--"]:
            return self._get_value(action, "--")
        # an empty value (a variable that is not set) would quietly mean the default
        may_be_left_out = bool(action.option_strings) or action.nargs in ("?", "*")
        if may_be_left_out and action.dest != "text" and not all(given.strip() for given in arg_strings):
            raise argparse.ArgumentError(action, "is empty" if action.option_strings and action.required else EMPTY)
        return super()._get_values(action, arg_strings)


class Grammar(Parser):
    """The whole: its help lists the verbs by what a person wants to do."""

    def __init__(self) -> None:
        super().__init__(prog="watchfloor", description=DESCRIPTION, epilog=EPILOG)
        self.told: dict[str, str] = {}
        self.of: dict[str, argparse.ArgumentParser] = {}

    def whole(self, argv: Sequence[str]) -> argparse.Namespace:
        """The arguments; what no verb knows is said with the usage of its verb."""
        made, rest = self.parse_known_args(argv)
        verb = self.of.get(made.verb or "", self)
        if rest and verb is not self and "--" not in argv:
            # a word that may be left out and stands behind an option is given to nobody, and looked for once more
            with contextlib.suppress(TypeError):  # raised for a verb that has verbs of its own
                again, rest = verb.parse_known_intermixed_args(argv[argv.index(made.verb) + 1 :])
                vars(made).update(vars(again))
        if rest:
            verb.error(f"unrecognized arguments: {' '.join(rest)}")
        return made

    def format_help(self) -> str:
        about = self._get_formatter()
        about.add_text(self.description)
        end = self._get_formatter()
        end.add_text("watchfloor VERB --help says more of each.")
        end.add_text(self.epilog)
        usage = f"usage: {self.prog} [--version] [VERB …]\n"
        return "\n".join([usage, about.format_help(), overview.text(self.told), end.format_help()])


@functools.cache
def build() -> Grammar:
    """The whole grammar; one for all who ask."""
    parser = Grammar()
    parser.add_argument("--version", action="store_true", help="print the version and leave")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)

    def verb(name: str, text: str, *, json: bool = False) -> argparse.ArgumentParser:
        parser.told[name] = text
        about = text[0].upper() + text[1:]
        p = verbs.add_parser(name, help=text, description=about if about.endswith("?") else f"{about}.")
        parser.of[name] = p
        if json:
            p.add_argument("--json", action="store_true", help="print JSON")
        return p

    _demo(verb)
    launch.add_launch(verb("launch", "start an agent on a repository", json=True))
    _looking(verb)
    _deciding(verb)
    _saying(verb)
    launch.add_continue(
        verb("continue", "take an ended session up again, with more rounds, budget, words or another check", json=True)
    )
    _taking(verb)
    _wishing(verb)
    _undoing(verb)
    _telling(verb)
    _keeping(verb)
    _removing(verb)
    _checking(verb)
    _preparing(verb)
    _serving(verb)
    return parser


def _demo(verb: Verb) -> None:
    """The demo."""
    demo = verb("demo", "play four agents against a local model server: no key, no network")
    demo.add_argument(
        "--headless", action="store_true", help="no screen; approve the push, check everything, print JSON lines"
    )
    demo.add_argument(
        "--long", action="store_true", help="one agent and a plan of 42 entries, with what days bring, in some minutes"
    )
    demo.add_argument("--attach", action="store_true", help="come back to the newest demo that is still running")
    demo.add_argument("--stop", action="store_true", help="stop every running demo")
    demo.add_argument("--keep", action="store_true", help="keep the headless demo's folders")
    demo.add_argument(
        "--speed",
        type=_seconds,
        default=None,
        help="seconds of thinking a turn (default: watchable on a screen, none when headless)",
    )


def _looking(verb: Verb) -> None:
    """What lists sessions and prints logs."""
    ls = verb("ls", "list the sessions", json=True)
    ls.add_argument("--names", action="store_true", help="only ids and names, one a line; starts nothing")
    ls.add_argument("--archived", action="store_true", help="what is kept of removed sessions, with what they cost")
    named(verb("show", "show one session", json=True))

    logs = verb("logs", "print a session's event log", json=True)
    named(logs)
    logs.add_argument("-f", "--follow", action="store_true", help="go on as events arrive, until the session has ended")
    logs.add_argument("--after", metavar="SEQ", type=int, default=-1, help="only events after this sequence number")
    logs.add_argument("--tail", metavar="N", type=int, help="only the last N of them, and with -f what follows")
    logs.add_argument(
        "--since",
        metavar="T",
        help="only since a time: 2h, 30m, or 2026-11-22T08:00 (yours without a zone)",
    )
    logs.add_argument(
        "--kind",
        metavar="KIND",
        action="append",
        default=[],
        help="only records of this kind (tool, tool.ended) or with this word (says, wants); may be repeated",
    )
    logs.add_argument(
        "--payload",
        metavar="SHA",
        default="",
        help="print what is kept beside the log under this SHA-256 instead",
    )


def _deciding(verb: Verb) -> None:
    """The queue, and what decides its requests."""
    approvals = verb("approvals", "list what waits for you, or print the whole card of one request", json=True)
    approvals.add_argument(
        "id", metavar="ID", nargs="?", help="approval id: print its card, with the hash that approving it takes"
    )
    approvals.add_argument(
        "--whole",
        action="store_true",
        help="with ID: all that would change, where the card shows only its beginning and end",
    )
    approvals.add_argument("--facts", action="store_true", help="with ID: also the facts that are not unusual")
    approvals.add_argument("--names", action="store_true", help="only ids, one a line; starts nothing")
    approve = verb("approve", "let a waiting action run, exactly as it was shown", json=True)
    approve.add_argument("ids", metavar="ID", nargs="+", help="approval ids; several only of low and medium risk")
    approve.add_argument(
        "--hash",
        metavar="HASH",
        help='for high and critical risk: the hash at the end of "watchfloor approvals ID" (12 digits or more)',
    )
    approve.add_argument("--edit", metavar="JSON", help="run this edited tool input instead")
    approve.add_argument(
        "--raise-to", metavar="X", help="for a cap: the new cap (USD for money, a number or time otherwise)"
    )
    approve.add_argument("--finish", action="store_true", help="for a cap: let it finish up with one last reply")
    approve.add_argument("--choose", metavar="OPTION", help="any other option the request lists")
    reject = verb("reject", "refuse a waiting action; the agent reads the reason", json=True)
    reject.add_argument("ids", metavar="ID", nargs="+", help="approval ids")
    reject.add_argument("--reason", metavar="TEXT", required=True, help="why; the agents read it")
    deny = verb("deny", "refuse a waiting action, with the reason", json=True)
    deny.add_argument("ids", metavar="ID", nargs="+", help="approval ids")
    deny.add_argument("reason", metavar="REASON", help="why; the agents read it")
    answer = verb(
        "answer", "answer a question; for another request the text is its result, and nothing runs", json=True
    )
    answer.add_argument("id", metavar="ID", help="approval id")
    answer.add_argument(
        "text",
        metavar="TEXT",
        nargs="?",
        help="the answer, or the number of one that is offered; with --option what you add to it",
    )
    answer.add_argument("--option", metavar="N", type=int, help="choose the Nth of the answers that a question offers")
    defer = verb("defer", "put a request at the end of the queue", json=True)
    defer.add_argument("ids", metavar="ID", nargs="+", help="approval ids")


def _saying(verb: Verb) -> None:
    """Words to an agent."""
    say = verb("say", "send a message to the agent for its next turn", json=True)
    named(say)
    say.add_argument("text", metavar="TEXT")

    named(verb("compact", "have a session's context summarised before its next turn", json=True))


def _taking(verb: Verb) -> None:
    """What a session cost and changed, and taking its work."""
    verb("cost", "what each session has spent against its cap", json=True)
    merge.add_diff(verb("diff", "what a session changed since its start", json=True))
    merge.add_why(verb("why", "who changed a file, in which call, for what reason, and who let it", json=True))
    merge.add_open(verb("open", "open your shell or editor in a session's worktree"))
    merge.add_merge(
        verb("merge", "bring a session's work into your branch; its checks run on the result first", json=True)
    )
    merge.add_pr(verb("pr", "push a session's work and open a request for review with gh or glab", json=True))


def _wishing(verb: Verb) -> None:
    """What is wanted of sessions and their alarms."""
    for name, text in (
        ("pause", "pause sessions at their next turn"),
        ("resume", "let paused sessions go on"),
        ("stop", "end sessions; their work stays, and only continue takes it up again"),
    ):
        p = verb(name, text, json=True)
        p.add_argument("ids", metavar="ID", nargs="+", help="session ids, beginnings of them, or names")
        p.add_argument("--reason", metavar="TEXT", default="", help="kept in the log")
    snooze = verb(
        "snooze",
        "put the alarms of sessions off for a while, or those that failed or stand still; they come back",
        json=True,
    )
    snooze.add_argument("ids", metavar="ID", nargs="+", help="session ids, beginnings of them, or names")
    snooze.add_argument("--for", dest="stretch", metavar="TIME", default="1h", help="such as 30m or 8h (default: 1h)")


def _undoing(verb: Verb) -> None:
    """Going back to an earlier state."""
    undo = verb(
        "undo", "bring a session's worktree back to what it was before a call; this can itself be undone", json=True
    )
    named(undo)
    undo.add_argument(
        "--to",
        metavar="CALL",
        help="the state just before this call, or before this undo (default: the newest call that changed something)",
    )
    undo.add_argument("--list", action="store_true", help="only list the states that can be had back, newest first")


def _telling(verb: Verb) -> None:
    """How it went, what happened, rules and jobs."""
    score = verb("score", "how well sessions worked, in figures to compare runs by", json=True)
    score.add_argument("ids", metavar="ID", nargs="*", help="sessions (default: all; with one, what it made as well)")
    brief.add_brief(verb("brief", "what happened since you looked, and what needs you", json=True))
    brief.add_receipts(verb("receipts", "what became of each request that you were asked, the newest first", json=True))
    grants.add(verb)
    jobs.add(verb("jobs", "list the jobs that run, print what one printed, end one", json=True))


def _keeping(verb: Verb) -> None:
    """Checkpoints, and what begins from them."""
    named(verb("checkpoints", "list the checkpoints of a session, newest first", json=True))
    checkpoint = verb("checkpoint", "keep a session's work as it is now: files, git state, plan", json=True)
    named(checkpoint)
    checkpoint.add_argument("--label", metavar="TEXT", default="", help="what it is for")
    restore = verb("restore", "bring a session's work back to a checkpoint; what is there now is kept first", json=True)
    named(restore)
    restore.add_argument("checkpoint", metavar="CHECKPOINT", help="as listed by: watchfloor checkpoints ID")
    fork = verb("fork", "begin another session from a session's checkpoint: its files, commits and plan", json=True)
    named(fork)
    fork.add_argument("--at", metavar="CHECKPOINT", default="", help="where to begin (default: the work as it is now)")
    fork.add_argument("--goal", metavar="TEXT", default="", help="another goal (default: the same)")
    fork.add_argument("--name", metavar="N", default="", help="short name (default: made from the goal)")


def _seconds(text: str) -> float:
    """A number of seconds. Raises ArgumentTypeError for one that nobody can wait for."""
    with contextlib.suppress(ValueError):
        if 0 <= (value := float(text)) <= 3600:
            return value
    raise argparse.ArgumentTypeError(f"{to_display(text)!r} is no number of seconds from 0 to 3600")


def _removing(verb: Verb) -> None:
    """What ends a session's traces."""
    rm = verb("rm", "archive ended sessions: their worktrees go, logs and costs stay; never unsaved work", json=True)
    rm.add_argument("ids", metavar="ID", nargs="+", help="session ids, beginnings of them, or names")
    rm.add_argument(
        "--force",
        action="store_true",
        help="remove even what cannot be examined or kept: what is in its worktree is deleted",
    )
    rm.add_argument(
        "--keep-as-ref",
        action="store_true",
        help="keep unsaved and unpushed work as refs/watchfloor/kept/ID in the repository, then remove",
    )
    purge = verb("purge", "delete the log and payloads of archived sessions for good", json=True)
    purge.add_argument("ids", metavar="ID", nargs="+", help="whole ids, or names, as in: watchfloor ls --archived")
    purge.add_argument("--yes", action="store_true", help="do not ask; needed where there is no terminal to ask at")


def _checking(verb: Verb) -> None:
    """Opening one session, checking logs, and files made of them."""
    named(verb("attach", "open the floor on one session"))
    verify = verb(
        "verify",
        "check the event logs and their payloads, or a file made by export: framing, checksums, chain",
        json=True,
    )
    verify.add_argument("id", metavar="ID", nargs="?", help="a session's id or name, or a file (default: all logs)")
    export = verb("export", "write a session into one file that can be checked and read anywhere", json=True)
    named(export)
    export.add_argument(
        "file", metavar="FILE", nargs="?", default="", help="to make (default: NAME-ID.watchfloor.tar, in this folder)"
    )
    export.add_argument(
        "--thin",
        action="store_true",
        help="commits since its start only, which need its repository to be unpacked (default: all their history)",
    )
    export.add_argument(
        "--checkpoints",
        action="store_true",
        help="its checkpoints and kept work, too: they hold files that git ignores, such as .env (default: its branch)",
    )


def _preparing(verb: Verb) -> None:
    """What is prepared before work: plans, specifications, policy, memory, judges, roles."""
    named(verb("plan", "show a session's plan: the state of each entry, its evidence, what comes next", json=True))
    named(verb("contract", "print what planner and evaluator agreed on before the work", json=True))
    spec = verb("spec", "read a specification before an agent does: what of it can no machine decide?", json=True)
    spec.add_argument("what", metavar="check", choices=("check",), help="its only act")
    spec.add_argument("file", metavar="FILE", help="feature_list.json, prd.json, or a text whose lists are criteria")
    policy.add(verb("policy", "check a policy, explain a verdict, try a file over the past"))
    memory.add(verb("memory", "what agents and you remember beyond one conversation: look, change, accept, undo"))
    judge = verb("judge", "hold a model's judgement against results that are known to be bad or good", json=True)
    judge.add_argument("what", metavar="calibrate", choices=("calibrate",), help="its only act")
    judge.add_argument(
        "--model",
        metavar="M",
        default="",
        help="model that judges (default: the role's, else configured)",
    )
    judge.add_argument("--role", metavar="NAME", default="evaluator", help="role that judges (default: evaluator)")
    judge.add_argument("--most-usd", metavar="X", default="2", help="it spends at most so much (default: 2)")
    judge.add_argument(
        "--only", metavar="RESULT", action="append", default=[], help="only this result; may be repeated"
    )
    roles = verb("roles", "list the roles, or print one: prompt, model, tools, limits, rules", json=True)
    roles.add_argument("name", metavar="NAME", nargs="?", default="", help="print this role's file")


def _serving(verb: Verb) -> None:
    """This machine and this fleet."""
    verb("doctor", "check this machine and this fleet", json=True)
    supervisor = verb("supervisor", "start, stop or look at the supervisor", json=True)
    supervisor.add_argument("what", metavar="start|stop|status", choices=("start", "stop", "status"))
    supervisor.add_argument(
        "--sessions", choices=("leave", "stop"), default="leave", help="with stop: what becomes of the sessions"
    )
    verb("adopt", "take over a state folder that was copied, moved or put back from a backup", json=True)
    service = verb("service", "let the fleet go on by itself after a reboot", json=True)
    service.add_argument("what", metavar="install|remove|status", choices=("install", "remove", "status"))
    completion = verb("completion", "print a completion script for your shell")
    completion.add_argument("shell", metavar="bash|zsh|fish|tcsh", choices=("bash", "zsh", "fish", "tcsh"))
    keys = verb("keys", "print the key table")
    keys.add_argument("--markdown", action="store_true", help="as a Markdown table")
