"""Days that pass while the machine is off: everything a fleet wrote is dated earlier, so its processes, with clocks of
their own, find what they would find then. No clock is set, and nothing of the product knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

from harness.eventlog import head_marker
from harness.eventlog.framing import GENESIS, TRAILER, closed, hash_of, is_header
from harness.linux.proc import boot_id
from tests.fleetlib import Fleet, power_off

_DAY = re.compile(rb'(?<=")(20\d\d-\d\d-\d\d)(?=["T])')
_PREV = re.compile(rb'(?<="prev":")[0-9a-f]{32}')
EARLIER_BOOT = b"00000000-0000-4000-8000-000000000000"


def pass_while_off(f: Fleet, days: int) -> None:
    """Cut the power, and let so many days go by; nobody is started again."""
    power_off(f)
    for log in _logs(f):
        _date_back(log, days)
    for path in f.folders.state.glob("sessions/*"):
        for cache in (*path.glob("snapshots/*"), *path.glob("memory/*"), path / "keeper.json"):
            cache.unlink(missing_ok=True)  # bound to the hashes of records that are dated otherwise now
    f.folders.state.joinpath("ledger.anchor").unlink(missing_ok=True)
    for path in f.folders.state.glob("index.sqlite*"):
        path.unlink()


def _logs(f: Fleet) -> Iterator[Path]:
    known = [f.folders.ledger, f.folders.memory, f.folders.grants]
    yield from (path for path in [*known, *f.folders.sessions.glob("*/log")] if path.is_dir())


def _date_back(log: Path, days: int) -> None:
    """Write a log anew with every date that many days earlier, of another boot, with checksums and chain made anew."""
    here = boot_id().encode()
    chain = GENESIS
    for path in sorted(log.glob("*.jsonl")):
        made = []
        for line in path.read_bytes().splitlines(keepends=True):
            body = line[:-TRAILER].replace(here, EARLIER_BOOT)
            body = _DAY.sub(lambda found: _earlier(found[1], days), body)
            if is_header(line):
                body = _PREV.sub(chain.hex().encode(), body)
            whole, chain = closed(body, chain)
            made.append(whole)
        path.write_bytes(b"".join(made))
    known = head_marker.load(log)
    if known is not None:
        (log / head_marker.FILE).write_bytes(head_marker.encode(known._replace(hash=_hash_at(log, known.seq))))


def _hash_at(log: Path, seq: int) -> bytes:
    start = b'{"v":1,"seq":%d,' % seq
    lines = (line for path in sorted(log.glob("*.jsonl")) for line in path.read_bytes().splitlines(keepends=True))
    return next(hash_of(line) for line in lines if line.startswith(start))


def _earlier(day: bytes, days: int) -> bytes:
    return (date.fromisoformat(day.decode()) - timedelta(days=days)).isoformat().encode()
