"""Entry point of ``watchfloor``: parse, run one verb, turn every failure into a message and an exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


VERBS = {
    "launch": ("cli.sessions", "launch"),
    "ls": ("cli.sessions", "ls"),
    "show": ("cli.sessions", "show"),
    "logs": ("cli.logs", "logs"),
    "say": ("cli.sessions", "message"),
    "compact": ("cli.compact", "compact"),
    "contract": ("cli.contract", "show"),
    "diff": ("cli.merge", "diff"),
    "why": ("cli.why", "why"),
    "merge": ("cli.merge", "merge"),
    "pr": ("cli.pull", "pr"),
    "open": ("cli.open", "opened"),
    "cost": ("cli.sessions", "cost"),
    "pause": ("cli.sessions", "desire"),
    "resume": ("cli.sessions", "desire"),
    "stop": ("cli.sessions", "desire"),
    "snooze": ("cli.alarms", "snooze"),
    "rm": ("cli.sessions", "remove"),
    "purge": ("cli.archive", "purge"),
    "approvals": ("cli.queue", "approvals"),
    "approve": ("cli.queue", "approve"),
    "reject": ("cli.queue", "reject"),
    "deny": ("cli.queue", "deny"),
    "answer": ("cli.queue", "answer"),
    "defer": ("cli.queue", "defer"),
    "grants": ("cli.grants", "grants"),
    "grant": ("cli.grants", "grant"),
    "revoke": ("cli.grants", "revoke"),
    "undo": ("cli.undo", "undo"),
    "jobs": ("cli.jobs", "jobs"),
    "checkpoints": ("cli.checkpoints", "listed"),
    "checkpoint": ("cli.checkpoints", "make"),
    "restore": ("cli.checkpoints", "restore"),
    "fork": ("cli.checkpoints", "fork"),
    "score": ("cli.score", "score"),
    "brief": ("cli.brief", "brief"),
    "receipts": ("cli.receipts", "receipts"),
    "continue": ("cli.going_on", "go_on"),
    "plan": ("cli.plan", "show"),
    "spec": ("cli.spec", "check"),
    "memory": ("cli.memory", "memory"),
    "policy": ("cli.policy", "policy"),
    "roles": ("cli.roles", "roles"),
    "judge": ("cli.judge", "judge"),
    "verify": ("cli.health", "verify"),
    "export": ("cli.export", "export"),
    "doctor": ("cli.health", "doctor"),
    "supervisor": ("cli.supervise", "supervisor"),
    "adopt": ("cli.adopt", "adopt"),
    "service": ("cli.service", "verb"),
    "completion": ("cli.extras", "completion"),
    "keys": ("cli.extras", "keys"),
    "demo": ("demo", "run"),
}
"""Verb → its module below `app` and the function there: a verb loads only what it needs."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code (see `app.cli.exits`)."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as `app.entry` left it
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return _main(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _main(argv: Sequence[str]) -> int:
    from app.cli import exits, output, streams

    streams.ready()
    try:
        try:
            return _run(_parse(argv))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        streams.drop_output()
        return exits.OK
    except streams.OutputLost as exc:
        streams.drop_output()
        output.warn(f"watchfloor: {exc}")
        return exits.OUTPUT
    except Exception as exc:
        if _interrupted(exc):
            raise KeyboardInterrupt from exc
        from harness.protocol.client import Hinted

        known = _code_of(exc)
        if known is None:
            import traceback

            # an error may quote anything, so Python must not print it itself
            output.warn(traceback.format_exc().rstrip())
            return exits.DEFECT
        output.warn(f"watchfloor: {exc.lines if isinstance(exc, Hinted) else exc}")
        return known


def _interrupted(exc: BaseException) -> bool:
    """Whether an interrupt is behind it: one that comes while a class is made is raised as an error of that."""
    seen: BaseException | None = exc
    while seen is not None and not isinstance(seen, KeyboardInterrupt):
        seen = seen.__cause__
    return seen is not None


def _parse(argv: Sequence[str]) -> argparse.Namespace | SimpleNamespace:
    """The arguments; opening the floor needs no grammar, which would cost a tenth of its start."""
    if not argv:
        return SimpleNamespace(version=False, verb=None)
    from app.cli import parser

    return parser.build().whole(argv)


def _code_of(exc: Exception) -> int | None:
    from app.cli import exits
    from app.cli.given import Refused, Usage
    from app.keymap import KeymapError
    from harness.events.framing import LogError
    from harness.protocol.client import SupervisorError, Unreachable
    from harness.protocol.config import ConfigError
    from harness.protocol.paths import FolderError

    if isinstance(exc, Usage):
        return exits.USAGE
    if isinstance(exc, Refused):
        return exits.REFUSED
    if isinstance(exc, (Unreachable, FolderError)):
        return exits.UNREACHABLE
    if isinstance(exc, (ConfigError, KeymapError)):
        return exits.CONFIG
    if isinstance(exc, LogError):
        return exits.NO
    if isinstance(exc, SupervisorError):
        return exits.NOT_FOUND if exc.code in ("not_found", "ambiguous") else exits.REFUSED
    return None


def _run(args: argparse.Namespace | SimpleNamespace) -> int:
    from app.cli import context, exits, output
    from harness.protocol import paths

    if args.version:
        from importlib.metadata import version

        output.say(f"watchfloor {version('watchfloor')}")
        return exits.OK
    ctx = context.make(paths.resolve())
    if args.verb in (None, "attach"):
        return _screen(ctx, getattr(args, "id", None))
    return _carry_out(ctx, args)


def _screen(ctx: object, session: str | None) -> int:
    from app import terminal
    from app.cli import exits, output
    from app.cli.context import Context

    assert isinstance(ctx, Context)
    if why := terminal.lacking():
        output.warn(
            f"watchfloor: {why}, so no screen can be shown; without one use: watchfloor ls (see watchfloor --help)"
        )
        return exits.USAGE
    sid: str | None = None
    with ctx.connect() as client:
        if session is not None:
            from app.replies import ask
            from harness.events.replies import SessionShown

            sid = ask(client, SessionShown, "session", sid=session).row.sid
    from app import tui

    return tui.run(ctx.folders, session=sid)


def _carry_out(ctx: object, args: argparse.Namespace | SimpleNamespace) -> int:
    from importlib import import_module

    module, function = VERBS[args.verb]
    verb: Callable[..., int] = getattr(import_module(f"app.{module}"), function)
    return verb(ctx, args)


if __name__ == "__main__":
    sys.exit(main())
