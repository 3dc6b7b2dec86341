"""The verbs of memory. Texts and keys are the agents': everything shown passes the display function."""

from __future__ import annotations

import argparse
import os
import shlex
from typing import TypeVar

import msgspec

from app.cli.base import exits
from app.cli.base.arguments import text_of
from app.cli.base.context import Context
from app.cli.base.output import age, emit, safe, say, table
from app.client.replies import ask
from harness.domain.text.formatting import repository
from harness.views.memory_views import (
    MemoriesFound,
    MemoriesShown,
    MemoryVersions,
    MemoryView,
    MemoryWritten,
    VersionView,
)

T = TypeVar("T")
_LINE = 200


def memory(ctx: Context, args: argparse.Namespace) -> int:
    what = {
        "ls": _ls,
        "search": _search,
        "show": _show,
        "history": _history,
        "set": _set,
        "rm": _change,
        "rollback": _change,
        "accept": _decide,
        "reject": _decide,
    }
    return what[args.what](ctx, args)


def _place(args: argparse.Namespace) -> dict[str, str]:
    if args.user:
        return {"scope": "user"}
    if args.session is not None:
        return {"scope": "session", "of": args.session}
    return {} if args.repo is None else {"scope": "repository", "of": os.path.abspath(args.repo)}


def _ask(ctx: Context, kind: type[T], op: str, **arguments: object) -> T:
    with ctx.connect() as client:
        return ask(client, kind, op, **arguments)


# -- looking -----------------------------------------------------------------------------------------


def _ls(ctx: Context, args: argparse.Namespace) -> int:
    reply = _ask(ctx, MemoriesShown, "memories", **_place(args), decided=args.decided)
    if args.json:
        emit(msgspec.to_builtins(reply))
        return exits.OK
    lessons = reply.lessons
    _print(ctx, reply.memories, "nothing is remembered yet")
    if lessons:
        say()
        rows = [
            (
                safe(x.lesson),
                "waits" if x.state == "pending" else safe(x.state),
                _whose(x.scope, x.of),
                safe(x.key),
                ("forget it" if x.removes else safe(x.text, _LINE)),
            )
            for x in lessons
        ]
        for line in table(("LESSON", "STATE", "WHOSE", "KEY", "TEXT"), rows, width=max(ctx.width, 80)):
            say(line)
    if any(x.state == "pending" for x in lessons):
        say("accept one: watchfloor memory accept LESSON; refuse it: watchfloor memory reject LESSON")
    return exits.OK


def _print(ctx: Context, memories: list[MemoryView], nothing: str) -> None:
    if not memories:
        say(nothing)
        return
    rows = [
        (
            _whose(x.scope, x.of),
            safe(x.key),
            str(x.newest.version),
            age(x.newest.ts),
            safe(x.newest.by),
            safe(x.newest.text, _LINE),
        )
        for x in memories
    ]
    for line in table(("WHOSE", "KEY", "V", "AGE", "BY", "TEXT"), rows, width=max(ctx.width, 80)):
        say(line)


def _search(ctx: Context, args: argparse.Namespace) -> int:
    reply = _ask(ctx, MemoriesFound, "memory_search", **_place(args), query=" ".join(args.words))
    if args.json:
        emit(msgspec.to_builtins(reply))
        return exits.OK
    _print(ctx, reply.memories, "nothing was found")
    return exits.OK


def _one(ctx: Context, args: argparse.Namespace) -> MemoryVersions:
    return _ask(ctx, MemoryVersions, "memory_history", **_place(args), key=args.key)


def _show(ctx: Context, args: argparse.Namespace) -> int:
    found = _one(ctx, args).memory
    if args.json:
        emit(msgspec.to_builtins(found))
        return exits.OK
    newest = found.newest
    say(f"{safe(found.key)} · {_whose(found.scope, found.of)} · version {newest.version}, {age(newest.ts)} ago")
    say(f"{safe(newest.by)}{_why(newest)} · sha {newest.sha or 'none'}{_until(newest)}")
    if not found.live:
        say("it is no longer remembered")
        return exits.OK
    say()
    for line in newest.text.split("\n"):
        say(safe(line))
    return exits.OK


def _history(ctx: Context, args: argparse.Namespace) -> int:
    reply = _one(ctx, args)
    found = reply.memory
    versions = reply.versions
    if args.json:
        for version in versions:
            emit({name: getattr(version, name) for name in version.__struct_fields__})
        return exits.OK
    say(f"{safe(found.key)} · {_whose(found.scope, found.of)}{'' if found.live else ' · no longer remembered'}")
    rows = [
        (str(v.version), v.op, age(v.ts), safe(v.by), v.sha[:12] or "-", safe(v.text, _LINE) + _why(v))
        for v in versions
    ]
    for line in table(("V", "WHAT", "AGE", "BY", "SHA", "TEXT"), rows, width=max(ctx.width, 80)):
        say(line)
    say(f"bring one back: watchfloor memory rollback {shlex.quote(safe(found.key))} --to V (0 = none)")
    return exits.OK


def _why(version: VersionView) -> str:
    return f" ({safe(version.why, _LINE)})" if version.why else ""


def _until(version: VersionView) -> str:
    return f" · until {safe(version.expires[:16])}" if version.expires else ""


def _whose(scope: str, of: str) -> str:
    """Whose memory it is, in a word or two: a repository by the folder that its git folder is in."""
    if scope != "repository":
        return f"session {safe(of)}" if scope == "session" else "you"
    return safe(repository(of))


# -- changing ----------------------------------------------------------------------------------------


def _set(ctx: Context, args: argparse.Namespace) -> int:
    place = _place(args) or {"scope": "repository", "of": os.getcwd()}
    text = text_of("-") if args.text == "-" else args.text
    days = {} if args.days is None else {"days": args.days}
    return _done(
        args,
        _ask(ctx, MemoryWritten, "memory_set", **place, key=args.key, text=text, why=args.why, **days, **_if(args)),
    )


def _change(ctx: Context, args: argparse.Namespace) -> int:
    given = {**_place(args), "key": args.key, "why": args.why, **_if(args)}
    if args.what == "rm":
        return _done(args, _ask(ctx, MemoryWritten, "memory_remove", **given))
    to = {} if args.to is None else {"to": args.to}
    return _done(args, _ask(ctx, MemoryWritten, "memory_rollback", **given, **to))


def _if(args: argparse.Namespace) -> dict[str, str]:
    return {} if args.if_sha is None else {"if_sha": args.if_sha}


def _decide(ctx: Context, args: argparse.Namespace) -> int:
    return _done(args, _ask(ctx, MemoryWritten, f"lesson_{args.what}", lesson=args.lesson, why=args.why))


def _done(args: argparse.Namespace, reply: MemoryWritten) -> int:
    if args.json:
        emit(msgspec.to_builtins(reply))
        return exits.OK
    written = reply.written
    for version in written:
        say(f"{version.op}, version {version.version}" + (f", sha {version.sha}" if version.sha else ""))
    if not written:
        say("rejected: it will not be remembered" if args.what == "reject" else "it says so already")
    return exits.OK
