"""Exporting a session: its log, payloads, rows of the ledger, plan and commits in one file to check anywhere.

Run as a process of its own (``python -P -s -m harness.workspace.export.session_export``, an `ExportOrder` as JSON on
standard input, an `ExportMade` or ``{"error": …}`` on standard output), because a long log takes a while and nobody
else should wait for it. It only reads what it exports: a session may go on meanwhile, and the bundle holds what was on
record when it began.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from harness.budget.ledger_types import Reserved, Settled, Unknown, decode
from harness.bundle import payloads, session_bundle
from harness.domain.export_order import ExportMade, ExportOrder
from harness.domain.text.formatting import counted
from harness.eventlog import head_marker, reader
from harness.eventlog.framing import BadLine, LogError
from harness.eventlog.regular_files import opened
from harness.events import types
from harness.projections.apply import fold
from harness.projections.state.session_state import SessionState
from harness.protocol.paths import CHECKPOINTS
from harness.workspace.export.checkpoint_store import Store
from harness.workspace.git.errors import GitFailed, WorkspaceError
from harness.workspace.git.run import Git, open_repository
from harness.workspace.git.scratch import scratch
from harness.workspace.tree import preserved
from harness.workspace.tree.worktrees import open_worktree

_CHUNK = 1 << 20


class CannotExport(Exception):
    """Nothing was made; the message says why."""


def export(order: ExportOrder) -> ExportMade:
    """Make the bundle, check it, and only then give it its name. Raises CannotExport, LogError, OSError."""
    folder = Path(order.session)
    target = Path(order.file)
    sid = folder.name
    if os.path.lexists(target):
        raise CannotExport(f"{target} is there already; give another name")
    if not target.parent.is_dir():
        raise CannotExport(f"there is no folder {target.parent}")
    with TemporaryDirectory(prefix=".watchfloor-export-", dir=target.parent) as made:
        stage = Path(made)
        log = stage / "log"
        _copied(folder / "log", log)
        report = reader.verify(log)
        if report.problem is not None:
            raise CannotExport(f"its log is damaged: {report.problem.why}; see: watchfloor verify {sid}")
        wanted: set[str] = set()
        state = fold(_records(log, wanted))
        notes: list[str] = []
        refs = _commits(folder, state, stage / session_bundle.WORK, order, notes)
        draft = stage / "draft"
        with draft.open("xb") as file:
            found = _Content(state, report, wanted, refs, notes)
            missing = _filled(session_bundle.Writer(file, sid), folder, stage, order, found)
            file.flush()
            os.fsync(file.fileno())
        checked = session_bundle.check(draft)
        if not checked.ok:
            raise CannotExport(f"what was made does not check, so nothing is left: {checked.problems[0]}")
        draft.chmod(0o600)
        size = draft.stat().st_size
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        draft.replace(target)
    return ExportMade(
        file=str(target),
        bytes=size,
        seal=checked.seal,
        records=report.records,
        payloads=len(wanted) - len(missing),
        commits=len(refs),
        notes=tuple(notes),
    )


@dataclass(frozen=True, slots=True)
class _Content:
    """What was found to go into a bundle; ``notes`` are added to."""

    state: SessionState
    report: reader.Report
    wanted: AbstractSet[str]
    refs: Sequence[str]
    notes: list[str]


def _filled(writer: session_bundle.Writer, folder: Path, stage: Path, order: ExportOrder, found: _Content) -> list[str]:
    """Write everything into the bundle and close it; the payloads that were not there."""
    state = found.state
    sid = folder.name
    for path in sorted((stage / "log").iterdir()):
        _add(writer, f"log/{path.name}", path)
    missing = [sha for sha in sorted(found.wanted) if not _payload(writer, folder / "blobs", sha)]
    _ledger(writer, Path(order.ledger), sid)
    if state.plan is not None:
        plan = msgspec.json.format(msgspec.json.encode(state.plan))
        writer.add(session_bundle.PLAN, BytesIO(plan), len(plan))
    if found.refs:
        _add(writer, session_bundle.WORK, stage / session_bundle.WORK)
    if missing:
        found.notes.append(f"{len(missing)} payloads that the log names were not there")
    writer.close(
        session_bundle.Manifest(
            sid=sid,
            name=state.name,
            repo=state.intent.repo if state.intent is not None else "",
            branch=state.created.branch if state.created is not None else "",
            made=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            program=version("watchfloor"),
            records=found.report.records,
            head=found.report.head,
            hash=found.report.hash,
            spent_nano=state.spent_nano,
            tokens=state.usage.total,
            requests=state.requests,
            commits=tuple(found.refs),
            missing=tuple(missing),
            notes=tuple(found.notes),
        )
    )
    return missing


def _copied(log: Path, target: Path) -> None:
    """What is on record now: the anchor first, so that the log can only be further; whole lines only."""
    target.mkdir(mode=0o700)
    known = head_marker.load(log)
    numbers = reader.segments(log)
    for number in numbers:
        copy = target / reader.segment_name(number)
        with opened(log / copy.name) as source, copy.open("xb") as to:
            left = os.fstat(source.fileno()).st_size
            while left and (data := source.read(min(_CHUNK, left))):
                to.write(data)
                left -= len(data)
        if number == numbers[-1]:
            os.truncate(copy, _whole_lines(copy))
    if known is not None:
        (target / head_marker.FILE).write_bytes(head_marker.encode(known))


def _whole_lines(path: Path) -> int:
    """Bytes up to the end of the last whole line."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        at = size
        while at:
            begin = max(0, at - _CHUNK)
            file.seek(begin)
            found = file.read(at - begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            at = begin
    return 0


def _records(log: Path, wanted: set[str]) -> Iterator[types.Record]:
    for line in reader.read(log):
        record = types.decode(line)
        wanted.update(ref.sha for ref in payloads.named(record.body))
        yield record


def _add(writer: session_bundle.Writer, path: str, file: Path) -> None:
    with opened(file) as source:
        writer.add(path, source, os.fstat(source.fileno()).st_size)


def _payload(writer: session_bundle.Writer, blobs: Path, sha: str) -> bool:
    """False when it is not there."""
    try:
        _add(writer, f"blobs/{sha[:2]}/{sha}", blobs / sha[:2] / sha)
    except FileNotFoundError:
        return False
    return True


def _ledger(writer: session_bundle.Writer, ledger: Path, sid: str) -> None:
    """The rows about this session as they stand in the ledger, each with its number and its checksum there."""
    rows = b"".join(_rows(reader.read(ledger), sid)) if ledger.is_dir() else b""
    writer.add(session_bundle.LEDGER, BytesIO(rows), len(rows))


def _rows(lines: Iterable[bytes], sid: str) -> Iterator[bytes]:
    ours: set[str] = set()
    for line in lines:
        row = decode(line)
        if isinstance(row, Reserved) and row.sid == sid:
            ours.add(row.reservation)
            yield line + b"\n"
        elif isinstance(row, (Settled, Unknown)) and row.reservation in ours:
            yield line + b"\n"


def _commits(folder: Path, state: SessionState, target: Path, order: ExportOrder, notes: list[str]) -> list[str]:
    """The branch of a session, and what else is ordered, as a git bundle; the refs in it, none when there is none."""
    if state.intent is None or state.created is None:
        return []
    try:
        try:
            common = open_worktree(folder / "git" / "private").common
        except WorkspaceError:
            common = open_repository(Path(state.intent.repo)).common
        git = Git(common)
        store = Store(folder.name, folder / CHECKPOINTS)
        refs = git.text("for-each-ref", "--format=%(refname)", f"refs/heads/{state.created.branch}").split()
        if not refs:
            notes.append("its branch is not there any more, so it is not in it")
        own = store.standing()
        kept = sorted(own) + preserved.standing(git, folder.name)
        if kept and order.checkpoints:
            notes.append(
                f"{counted(len(kept), 'ref')} of checkpoints and kept work are in it: these hold files that git"
                " ignores, too, such as .env; look before you give it away"
            )
            refs += kept
        elif kept:
            notes.append(
                f"{counted(len(kept), 'ref')} of checkpoints and kept work are not in it, because these hold files that"
                " git ignores, too, such as .env; --checkpoints takes them"
            )
        if not refs:
            return []
        since = [f"^{state.created.base}"] if order.thin else []
        with scratch(common, target.parent, store.objects) as made:
            held = [(ref, Git(store.folder) if ref in own else git) for ref in refs]
            named = "".join(f"create {ref} {repository.commit(ref)}\n" for ref, repository in held)
            made.git.run("update-ref", "--stdin", stdin=named.encode("utf-8", "surrogateescape"))
            if order.thin and not made.git.text("rev-list", "-n1", *refs, *since, "--"):
                notes.append("nothing was committed since its start, so no commits are in it")
                return []
            heads = [ref for ref in refs if ref.startswith("refs/heads/")]
            if heads:  # without it a clone of the bundle checks nothing out
                made.git.run("symbolic-ref", "HEAD", heads[0])
            tips = ["HEAD", *refs] if heads else refs
            made.git.run("bundle", "create", "--quiet", str(target), *tips, *since)
    except (WorkspaceError, GitFailed, OSError) as exc:
        notes.append(f"no commits are in it: {exc}")
        return []
    return refs


def main() -> int:
    try:
        order = msgspec.json.decode(sys.stdin.buffer.read(), type=ExportOrder)
        reply = msgspec.json.encode(export(order))
    except (CannotExport, LogError, BadLine, ValueError, EOFError) as exc:
        reply = msgspec.json.encode({"error": str(exc)})
    except OSError as exc:
        where = f"{exc.filename}: " if exc.filename else ""
        reply = msgspec.json.encode({"error": f"{where}{exc.strerror or exc}"})
    with contextlib.suppress(BrokenPipeError):  # who asked is gone; what was made is whole all the same
        os.write(1, reply)
    return 0


if __name__ == "__main__":
    sys.exit(main())
