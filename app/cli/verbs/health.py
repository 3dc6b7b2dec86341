"""Verbs that check: verify, doctor, supervisor."""

from __future__ import annotations

import argparse
import itertools
import platform
import subprocess
import sys
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from app.cli.base import bundle_source, exits
from app.cli.base.arguments import Refused
from app.cli.base.context import Context
from app.cli.base.output import emit, safe, say
from app.cli.verbs import export
from app.client.replies import ask
from harness.bundle import payloads
from harness.domain import endpoints
from harness.domain.problems import HOLD_STRICTLY
from harness.eventlog.framing import LogError
from harness.eventlog.reader import read
from harness.eventlog.reader import verify as verify_log
from harness.events.types import SessionIntent, decode
from harness.protocol.client import SupervisorError, Unreachable
from harness.protocol.config import api_key
from harness.protocol.config import config as configuration
from harness.protocol.paths import FolderError, ensure_private
from harness.protocol.session_names import OtherHost, SessionName
from harness.views.replies import ApprovalList, Invariants, LimitHeld, SandboxTested, Status
from harness.views.session_views import TroubleView

SANDBOX_SECONDS = 60


def verify(ctx: Context, args: argparse.Namespace) -> int:
    """Works without a supervisor: it reads logs and the payloads that they name, or the file of an exported session."""
    if args.id and (file := bundle_source.file_of(args.id)) is not None:
        return export.verify(file, as_json=args.json)
    found = [path for root in (ctx.folders.sessions, ctx.folders.archive) for path in sorted(root.glob("*/log"))]
    if args.id:
        try:
            wanted = SessionName.parse(args.id).own()
        except OtherHost as exc:
            raise Refused(str(exc)) from exc
        found = [p for p in found if p.parent.name.startswith(wanted)] or [p for p in found if _name(p) == wanted]
        if not found and Path(args.id).is_file():
            return export.verify(Path(args.id), as_json=args.json)
        if not found:
            return _not_found(args.id)
    else:
        found += [path for path in (ctx.folders.ledger, ctx.folders.memory, ctx.folders.grants) if path.is_dir()]
    bad = 0
    for path in found:
        name = path.parent.name if path.name == "log" else path.name
        report = verify_log(path)
        at = report.problem
        problem = f"{at.file} at byte {at.offset}, record {at.seq}: {at.why}" if at else ""
        lost = _lost(path) if report.ok and path.name == "log" else ()
        whole = report.ok and not lost
        bad += not whole
        if args.json:
            emit(
                {
                    "log": name,
                    "ok": whole,
                    "records": report.records,
                    "last_seq": report.head,
                    "hash": report.hash,
                    "problem": problem or "; ".join(lost),
                }
            )
        else:
            say(f"{name}  {'ok' if whole else 'DAMAGED'}  {report.records} records  {safe(problem or report.hash)}")
            for one in lost:
                say(f"  {safe(one)}")
    if not found and not args.json:
        say("no logs yet")
    return exits.NO if bad else exits.OK


def _name(log: Path) -> str:
    """What a session was called at its launch; empty when its log does not say."""
    try:
        first = (decode(one).body for one in itertools.islice(read(log), 5))  # its keeper's start stands before it
        return next((body.name for body in first if isinstance(body, SessionIntent)), "")
    except (LogError, OSError, msgspec.DecodeError):
        return ""


def _lost(log: Path) -> tuple[str, ...]:
    """What is wrong with the payloads that a session's log names."""
    try:
        return tuple(payloads.wrong(log, log.with_name("blobs")))
    except (LogError, OSError, msgspec.DecodeError) as exc:
        return (f"its payloads cannot be looked at: {exc}",)


def _not_found(name: str) -> int:
    from app.cli.base.output import warn

    warn(f"watchfloor: no session {name!r}\nlist them with: watchfloor ls")
    return exits.NOT_FOUND


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's report: ``level`` ok, warning or bad."""

    level: str
    what: str
    detail: str


def _sandbox() -> Finding:
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-s", "-m", "harness.executor.selftest", "--json"],
            capture_output=True,
            timeout=SANDBOX_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        result = msgspec.json.decode(done.stdout, type=SandboxTested)
    except (OSError, msgspec.DecodeError, subprocess.TimeoutExpired) as exc:
        return Finding("bad", "sandbox", f"the self-test could not run: {exc}")
    bwrap = f"bwrap {result.version or '?'} at {result.bwrap or '?'}, Landlock ABI {result.landlock_abi}"
    if result.ok:
        return Finding("ok", "sandbox", f"{bwrap}, {len(result.tests)} acts tried")
    return Finding("bad", "sandbox", f"tools refuse to run: {result.why}")


def _held(hold: LimitHeld, *, strict: bool) -> Finding:
    """What limits one resource of a call on this machine; nothing at all is a warning, since tools still run, unless
    limits are to be held strictly.
    """
    strength = "the kernel refuses more: " if hold.hard else ""
    lacks = f"; cannot be held strictly here, which needs {hold.needs}" if hold.needs else ""
    said = f"{hold.limit}; {strength}{hold.how}{lacks}"
    if strict and lacks:
        return Finding("bad", f"limit: {hold.what}", f"{said} ({HOLD_STRICTLY})")
    return Finding("ok" if hold.holds else "warning", f"limit: {hold.what}", said)


def _strict(ctx: Context) -> bool:
    try:
        return configuration.load(ctx.folders).limits.strict
    except configuration.ConfigError:
        return False


def _folders(ctx: Context) -> list[Finding]:
    findings = []
    for folder in (ctx.folders.state, ctx.folders.runtime):
        try:
            ensure_private(folder)
            findings.append(Finding("ok", "folder", str(folder)))
        except FolderError as exc:
            findings.append(Finding("bad", "folder", str(exc)))
    return findings


def _configuration(ctx: Context) -> list[Finding]:
    try:
        cfg = configuration.load(ctx.folders)
        key = api_key.credential(cfg)
    except configuration.ConfigError as exc:
        return [Finding("bad", "configuration", str(exc))]
    where = str(cfg.file) if cfg.file.exists() else f"{cfg.file} (not there: defaults)"
    missing = f"no key for {api_key.base_url(cfg)}: set {cfg.model.api_key_env} or model.api_key_file"
    return [
        Finding("ok", "configuration", where),
        Finding("ok", "key", f"for {key.base_url}") if key else Finding("warning", "key", missing),
    ]


def _fleet(ctx: Context) -> list[Finding]:
    try:
        with ctx.connect() as client:
            status = ask(client, Status, "status")
            broken = ask(client, Invariants, "invariants").violations
            requests = len(ask(client, ApprovalList, "approvals").approvals)
    except (Unreachable, FolderError, SupervisorError) as exc:
        return [Finding("bad", "supervisor", str(exc))]
    found = [Finding("ok", "supervisor", f"answers; {status.fleet.sessions} sessions")]
    found += _right_now(status, requests)
    # the supervisor's: it and its tools may live in another cgroup than we
    strict = _strict(ctx)
    found += [_held(hold, strict=strict) for hold in status.sandbox.limits]
    found += [Finding("bad", f"invariant {v.id}", f"{v.sid} {v.text}".strip()) for v in broken]
    return found if broken else [*found, Finding("ok", "invariants", "all hold")]


def _right_now(status: Status, requests: int) -> list[Finding]:
    """What is wrong in the running fleet at this moment, each with what happens next by itself and what can be done."""
    fleet = status.fleet
    troubles = status.troubles
    now = datetime.now(UTC)
    found = [
        Finding("bad" if at.state == endpoints.PERSON else "warning", "endpoint", endpoints.sentence(at, now))
        for at in fleet.endpoints
    ]
    found += [Finding("bad" if t.person else "warning", t.about, told(t)) for t in troubles]
    known = [t.cause for t in troubles if t.cause] + [t.headline for t in troubles if not t.cause]
    rest = [p for p in status.problems if not any(cause in p for cause in known)]
    found += [Finding("warning", "the fleet", text) for text in rest]
    if requests:
        waits = "1 request waits" if requests == 1 else f"{requests} requests wait"
        found.append(Finding("warning", "the queue", f"{waits} for your answer: watchfloor approvals"))
    return found or [Finding("ok", "right now", "nothing holds any session up")]


def told(found: TroubleView) -> str:
    """One trouble as a sentence or three: what is wrong and why, what comes next by itself, what can be done."""
    why = f" ({found.cause})" if found.cause else ""
    command = f": {found.command}" if found.command else ""
    todo = f" You can: {found.do}{command}." if found.do else ""
    return f"{found.headline}{why}. Next: {found.next}.{todo}"


def doctor(ctx: Context, args: argparse.Namespace) -> int:
    findings = [Finding("ok", "python", f"{platform.python_version()} at {sys.executable}")]
    findings += [*_folders(ctx), *_configuration(ctx), _sandbox(), *_fleet(ctx)]
    for f in findings:
        if args.json:
            emit(asdict(f))
        else:
            say(f"{f.level:>8}  {safe(f.what, 40):<20} {safe(f.detail)}")
    return exits.NO if any(f.level == "bad" for f in findings) else exits.OK
