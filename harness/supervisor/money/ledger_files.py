"""The ledger's files: opened, checked against their anchor, and rebuilt from the sessions' logs when something of them
is gone. Blocking.

The anchor (``state/ledger.anchor``) says how far the ledger went and what every session had spent; it is written when
the ledger is opened and closed and before a session is removed, so that neither a lost ledger nor a removed session
ever lowers what counts as spent.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.budget.evidence import Books, Evidence, missing, speaks_of_money
from harness.budget.ledger import Ledger, NotReserved
from harness.budget.ledger_types import LedgerRecord, Raised, Reserved, Settled, decode, to_wire
from harness.domain.text.formatting import counted, usd
from harness.eventlog.framing import BadLine, LogError, hash_of
from harness.eventlog.reader import DamagedLog, read
from harness.eventlog.regular_files import opened
from harness.eventlog.writer import LogWriter
from harness.events import types as t
from harness.linux.durable import replace_file, sync_folder

LEDGER_ID = "ledger"
_BATCH = 1000


class Anchor(msgspec.Struct, frozen=True):
    """``head`` and ``hash`` of the ledger's last record then; ``spent`` by session and day: nano-USD and tokens.

    ``building``: not finished.
    """

    head: int = -1
    hash: str = ""
    spent: dict[str, dict[str, tuple[int, int]]] = {}
    building: bool = False


@dataclass(slots=True)
class Opened:
    """A ledger ready for use, in ``folder``.

    ``notes`` say what had to be mended, one sentence each; ``sources`` where a session's prices came from.
    """

    folder: Path
    log: LogWriter
    ledger: Ledger = field(default_factory=Ledger)
    sources: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def anchor_of(folder: Path) -> Path:
    """The anchor of the ledger in ``folder``: beside it, so that both do not go together."""
    return folder.with_name(f"{folder.name}.anchor")


def drop_anchor(folder: Path, log: LogWriter, ledger: Ledger, *, building: bool = False) -> None:
    """Write down durably how far the ledger goes and what was spent. Raises OSError."""
    spent: dict[str, dict[str, tuple[int, int]]] = {}
    for (sid, day), account in ledger.parts.items():
        if account.spent_nano or account.spent_tokens:
            spent.setdefault(sid, {})[day] = (account.spent_nano, account.spent_tokens)
    _write(folder, Anchor(log.written, log.hash, spent, building))


def _write(folder: Path, anchor: Anchor) -> None:
    replace_file(anchor_of(folder), msgspec.json.encode(anchor))


def _anchor(folder: Path) -> Anchor | None:
    try:
        with opened(anchor_of(folder)) as file:
            return msgspec.json.decode(file.read(), type=Anchor)
    except (FileNotFoundError, BadLine, msgspec.DecodeError):
        return None


def open_ledger(folder: Path, sessions: Path) -> Opened:
    """Open the ledger in ``folder``. One that is missing, cut short, replaced or damaged is completed from the logs
    below ``sessions``; a damaged one is kept beside the new one. Raises LogError (busy, newer, no space), OSError.
    """
    anchor = _anchor(folder)
    good: list[LedgerRecord] = []
    try:
        made, fits = _replayed(folder, anchor, good)
    except (DamagedLog, NotReserved, msgspec.DecodeError) as exc:
        anchor = msgspec.structs.replace(anchor or Anchor(), building=True)
        _write(folder, anchor)  # should we fall now, the next start completes what we began
        aside = _set_aside(folder)
        fits = False
        made = Opened(folder, LogWriter.open(folder, LEDGER_ID))
        made.notes.append(f"the ledger was damaged ({exc}) and is kept as {aside}")
    try:
        if made.log.head < 0:
            _append(made, good)
        if not fits or made.log.head < 0 or (anchor is not None and anchor.building):
            _complete(made, sessions, anchor)
        try:
            drop_anchor(folder, made.log, made.ledger)
        except OSError as exc:
            made.notes.append(f"{anchor_of(folder)} cannot be written: {exc.strerror or exc}")
    except BaseException:
        made.log.close()
        raise
    return made


def _replayed(folder: Path, anchor: Anchor | None, good: list[LedgerRecord]) -> tuple[Opened, bool]:
    """The ledger as its records say, and whether it holds the anchor's record; ``good`` collects the records, also when
    this raises.
    """
    made = Opened(folder, LogWriter.open(folder, LEDGER_ID))
    fits = anchor is None or anchor.head < 0
    try:
        for seq, line in enumerate(read(folder)):
            record = decode(line)
            if anchor is not None and seq == anchor.head:
                fits = hash_of(line).hex() == anchor.hash
            if record is not None:
                _apply(made, record)
                good.append(record)
    except BaseException:
        made.log.close()
        raise
    return made, fits


def replay(folder: Path) -> tuple[Ledger, dict[str, str]]:
    """A ledger as its records say, and where each session's prices came from; nothing is mended or written. Raises
    LogError, OSError, msgspec.DecodeError, NotReserved.
    """
    ledger = Ledger()
    sources: dict[str, str] = {}
    for line in read(folder):
        if (record := decode(line)) is not None:
            _take(ledger, sources, record)
    return ledger, sources


def _apply(made: Opened, record: LedgerRecord) -> None:
    _take(made.ledger, made.sources, record)


def _take(ledger: Ledger, sources: dict[str, str], record: LedgerRecord) -> None:
    ledger.apply(record)
    if isinstance(record, Reserved):
        sources[record.sid] = record.source


def _append(made: Opened, records: list[LedgerRecord]) -> None:
    for start in range(0, len(records), _BATCH):
        for record in records[start : start + _BATCH]:
            kind, data = to_wire(record)
            made.log.append(kind, data, actor="supervisor")
        made.log.commit(True)
    for record in records:
        _apply(made, record)


def _set_aside(folder: Path) -> Path:
    number = 1
    while (aside := folder.with_name(f"{folder.name}.damaged-{number}")).exists():
        number += 1
    folder.rename(aside)
    sync_folder(folder.parent)
    return aside


def _complete(made: Opened, sessions: Path, anchor: Anchor | None) -> None:
    """Add what the sessions' logs and the anchor know of and this ledger does not."""
    known = set[str]()
    decided = set[str]()
    for line in read(made.folder) if made.log.head >= 0 else ():
        record = decode(line)
        if isinstance(record, Reserved):
            known.add(record.reservation)
        elif isinstance(record, Raised):
            decided.add(record.decision)
    least = {
        (sid, day): spent
        for sid, days in (anchor.spent if anchor is not None else {}).items()
        for day, spent in days.items()
    }
    spent = {key: (a.spent_nano, a.spent_tokens) for key, a in made.ledger.parts.items()}
    logs = [evidence_of(path / "log", path.name) for path in _folders(sessions)]
    lacks = missing(Books(known, made.ledger.open, decided, spent), logs, least)
    if not lacks:
        return
    _append(made, lacks)
    amount = made.ledger.fleet.spent_nano - sum(nano for nano, _ in spent.values())
    where = f"the logs of {counted(len(logs), 'session')}"
    made.notes.append(
        f"the ledger lacked {usd(amount)} of what was spent; it was counted again from {where}, so all caps hold"
    )


def _folders(sessions: Path) -> list[Path]:
    return (
        sorted(p for p in sessions.iterdir() if not p.name.startswith(".") and (p / "log").is_dir())
        if sessions.is_dir()
        else []
    )


def evidence_of(log: Path, sid: str) -> Evidence:
    """What one session's log says about money; as far as it can be read, when it is damaged."""
    found = Evidence(sid)
    try:
        for line in read(log):
            if speaks_of_money(line):
                found.take(t.decode(line))
    except (LogError, OSError, msgspec.DecodeError):
        found.whole = False
    return found


def settlement_of(folder: Path, reservation: str) -> Settled | None:
    """How that reservation was settled at last, by the ledger's own records. Raises LogError, OSError."""
    name = reservation.encode()
    found = [record for line in read(folder) if name in line and isinstance(record := decode(line), Settled)]
    return next((one for one in reversed(found) if one.reservation == reservation), None)
