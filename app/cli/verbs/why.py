"""The verb ``why``: who changed a file, in which call, for what reason, and who let it. Read from the disk: it starts
nothing, and tells of running, ended and removed sessions alike.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from app.cli.base import exits
from app.cli.base.arguments import Usage
from app.cli.base.context import Context
from app.cli.base.output import emit, safe, say, warn
from app.cli.base.repositories import common, top_of
from app.client import provenance
from harness.domain.text.formatting import local
from harness.eventlog.framing import LogError
from harness.eventlog.index import OffsetIndex
from harness.events import types as t
from harness.events.work.merge_events import MERGED
from harness.protocol.client import SupervisorError
from harness.reports.why import Change
from harness.views.why_views import Blamed, BlameOrder, Taken

_LINE = re.compile(r"(.+):(\d{1,9})", re.DOTALL)
_MODULE = "harness.workspace.git.blame"
_BLAME_S = 90
_FIRST = 16
"""Records within which a log says what it is of."""
_MOST = 10
_SEARCHED = 500
"""Changes that are looked through for a line."""
_SAID = 300


@dataclass(frozen=True, slots=True)
class Known:
    """A session as its folder tells of it."""

    sid: str
    folder: Path
    intent: t.SessionIntent


@dataclass(frozen=True, slots=True)
class Place:
    """What is asked about: a file of a repository, or of one session's worktree."""

    path: str
    top: Path | None = None
    sid: str = ""


def why(ctx: Context, args: argparse.Namespace) -> int:
    """Newest first. Exit code 1 when no session on record changed the file."""
    file, line = _named(args.file)
    sessions = list(_sessions(ctx))
    place = _place(ctx, file)
    wanted = args.session or place.sid
    chosen = _one(sessions, wanted) if wanted else _of_repository(sessions, place, file)
    paths = list(dict.fromkeys((place.path, file)))
    found: list[tuple[Known, Change]] = []
    blamed = _blamed(place, file, chosen, line) if line else None
    for known in chosen:
        found += [(known, change) for change in _changes(known, paths, blamed, _SEARCHED if args.all else _MOST)]
    found.sort(key=lambda pair: pair[1].ts, reverse=True)
    shown = found if args.all else found[:_MOST]
    if args.json:
        for known, change in shown:
            emit({"sid": known.sid, "name": known.intent.name, "file": place.path, **msgspec.to_builtins(change)})
    else:
        _say_line(blamed, line)
        for known, change in shown:
            _say(known, change)
        if not shown:
            say(f"no session on record changed {safe(place.path)}")
        elif len(found) >= _MOST and not args.all:
            say("older changes: --all")
    return exits.OK if shown else exits.NO


# -- what is meant ------------------------------------------------------------------------------------


def _named(given: str) -> tuple[str, int]:
    found = _LINE.fullmatch(given)
    if found is None or Path(given).exists():
        return given, 0
    if int(found[2]) == 0:
        raise Usage("lines are counted from 1")
    return found[1], int(found[2])


def _place(ctx: Context, file: str) -> Place:
    """The file by its path from the top of its repository or worktree."""
    whole = Path(file)
    parent = (Path.cwd() / whole).parent.resolve() if whole.name not in ("..", "") else (Path.cwd() / whole).resolve()
    at = parent / whole.name
    worktrees = ctx.folders.worktrees.resolve()
    if at.is_relative_to(worktrees):
        sid, *rest = at.relative_to(worktrees).parts
        if rest:
            return Place("/".join(rest), sid=sid)
    top = top_of(parent)
    return Place(_text(at.relative_to(top).as_posix()) if top is not None else _text(file), top)


def _text(path: str) -> str:
    """A path as records spell it."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _sessions(ctx: Context) -> Iterator[Known]:
    """All that have a log here, removed ones too."""
    roots = (ctx.folders.sessions, ctx.folders.archive)
    folders = sorted(p for root in roots if root.is_dir() for p in root.iterdir() if not p.name.startswith("."))
    for folder in folders:
        try:
            log = OffsetIndex(folder / "log")
        except (LogError, OSError) as exc:
            warn(f"watchfloor: {folder.name}: its log cannot be read: {exc}")
            continue
        try:
            lines = log.lines(0, _FIRST)
        finally:
            log.close()
        intent = next((body for body in map(_body, lines) if isinstance(body, t.SessionIntent)), None)
        if intent is not None:
            yield Known(folder.name, folder, intent)


def _body(line: bytes) -> t.Body | None:
    try:
        return t.decode(line).body
    except msgspec.DecodeError:
        return None


def _one(sessions: list[Known], wanted: str) -> list[Known]:
    """The session that is named. Raises SupervisorError."""
    fits = (
        [one for one in sessions if one.sid == wanted]
        or [one for one in sessions if one.intent.name == wanted]
        or [one for one in sessions if one.sid.startswith(wanted)]
    )
    if len(fits) == 1:
        return fits
    told = f"{wanted!r} fits {len(fits)} sessions" if fits else f"no session {wanted!r}"
    raise SupervisorError("ambiguous" if fits else "not_found", told, "list them with: watchfloor ls, ls --archived")


def _of_repository(sessions: list[Known], place: Place, file: str) -> list[Known]:
    """Those of the repository that the file is in. Raises Usage."""
    if place.top is None:
        raise Usage(f"{file} is in no git repository here; name the session: --session ID")
    own = common(place.top)
    return [one for one in sessions if _common_of(one) == own]


# -- its changes --------------------------------------------------------------------------------------


def _changes(known: Known, paths: list[str], blamed: Blamed | None, most: int) -> list[Change]:
    """The newest of one session, or those that made a line. Raises LogError, OSError."""
    found = provenance.changes(known.folder, paths, _SEARCHED if blamed is not None else most)
    return found if blamed is None else _of_line(found, blamed)


def _of_line(found: list[Change], blamed: Blamed) -> list[Change]:
    """Those that became the commit of the line, of them those that wrote its text; without such a commit, those that
    wrote the text.
    """
    commit = blamed.commit
    own = [one for one in found if commit and any(_names(fact.text, commit) for fact in one.facts)]
    own += [one for one in found if one not in own and commit and one.commit == commit]
    if not own and commit and not blamed.merged:
        return []
    return provenance.that_wrote(own or found, blamed.text) or own


def _names(text: str, commit: str) -> bool:
    return any(len(word) >= 7 and commit.startswith(word) for word in text.split())


def _blamed(place: Place, file: str, sessions: list[Known], line: int) -> Blamed:
    """By the session's branch when one session is meant and it still has one, else as the checkout shows it. Raises
    Usage when nobody can tell which commit the line comes from.
    """
    orders = []
    if len(sessions) == 1 and (place.sid or place.top is None or common(place.top) != _common_of(sessions[0])):
        intent = sessions[0].intent
        orders.append(BlameOrder(intent.repo, _text(file) if place.top else place.path, line, branch=intent.branch))
    elif place.top is not None:
        orders.append(BlameOrder(str(place.top), place.path, line, merges=tuple(_merges(sessions))))
        if len(sessions) == 1:
            orders.append(BlameOrder(str(place.top), place.path, line, branch=sessions[0].intent.branch))
    problem = "a line is looked for in a repository or in one session: --session ID"
    for order in orders:
        blamed = _asked(order)
        if not blamed.problem:
            return blamed
        problem = blamed.problem
    raise Usage(problem)


def _asked(order: BlameOrder) -> Blamed:
    done = subprocess.run(
        [sys.executable, "-P", "-s", "-m", _MODULE],
        input=msgspec.json.encode(order),
        capture_output=True,
        timeout=_BLAME_S,
        check=False,
    )
    if done.returncode != 0:
        return Blamed(problem=done.stderr.decode("utf-8", "replace").strip())
    return msgspec.json.decode(done.stdout, type=Blamed)


def _common_of(known: Known) -> Path:
    return common(Path(known.intent.repo))


def _merges(sessions: list[Known]) -> Iterator[Taken]:
    """Merges near the end of each log."""
    for known in sessions:
        log = OffsetIndex(known.folder / "log")
        try:
            lines = log.lines(len(log) - _SEARCHED, len(log))
        finally:
            log.close()
        for body in (_body(raw) for raw in lines if b'"type":"merge.ended"' in raw[:200]):
            if isinstance(body, t.MergeEnded) and body.outcome == MERGED:
                yield Taken(body.onto, body.commit)


# -- said ---------------------------------------------------------------------------------------------


def _say_line(blamed: Blamed | None, line: int) -> None:
    if blamed is not None:
        where = f"commit {blamed.commit[:12]}" if blamed.commit else "not committed yet"
        say(f"line {line}, {where}: {safe(blamed.text, _SAID)}")


def _say(known: Known, change: Change) -> None:
    say(
        f"{safe(local(change.ts, '%Y-%m-%d %H:%M:%S'))}  {safe(known.intent.name, 24)} ({known.sid})"
        f"  #{change.seq} {safe(change.did, _SAID)}"
    )
    for fact in change.facts:
        say(f"    {fact.what:<8} #{fact.seq:<6} {safe(provenance.claimed(fact), _SAID)}")
