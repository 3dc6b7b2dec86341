"""Entry point of ``watchfloor``: parse, run one verb, turn every failure into a message and an exit code."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code (see `app.cli.base.exits`)."""
    try:
        if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:  # as `app.entry` left it
            signal.signal(signal.SIGINT, signal.default_int_handler)
        return _main(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


def _main(argv: Sequence[str]) -> int:
    from app.cli.base import exits, output, streams

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
    from app.cli.grammar import parser

    return parser.build().whole(argv)


def _code_of(exc: Exception) -> int | None:
    from app.cli.base import exits
    from app.cli.base.arguments import Refused, Usage
    from app.input.keymap import KeymapError
    from harness.eventlog.framing import LogError
    from harness.protocol.client import SupervisorError, Unreachable
    from harness.protocol.config.config import ConfigError
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
    from app.cli.base import context, exits, output
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
    from app.cli.base import exits, output
    from app.cli.base.context import Context
    from app.terminal import check

    assert isinstance(ctx, Context)
    if why := check.lacking():
        output.warn(
            f"watchfloor: {why}, so no screen can be shown; without one use: watchfloor ls (see watchfloor --help)"
        )
        return exits.USAGE
    sid: str | None = None
    with ctx.connect() as client:
        if session is not None:
            from app.client.replies import ask
            from harness.views.replies import SessionShown

            sid = ask(client, SessionShown, "session", sid=session).row.sid
    from app.shell import tui

    return tui.run(ctx.folders, session=sid)


def _carry_out(ctx: object, args: argparse.Namespace | SimpleNamespace) -> int:
    from importlib import import_module

    from app.cli.grammar.registry import VERBS

    module, _, function = VERBS[args.verb].run.partition(":")
    verb: Callable[..., int] = getattr(import_module(f"app.{module}"), function)
    return verb(ctx, args)


if __name__ == "__main__":
    sys.exit(main())
