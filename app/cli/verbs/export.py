"""The verb ``export``, and the check of what it made."""

from __future__ import annotations

import argparse
import subprocess
from pathlib import Path

import msgspec

from app.cli.base import bundle_source, exits
from app.cli.base.arguments import Refused
from app.cli.base.context import Context
from app.cli.base.output import emit, safe, say
from app.cli.verbs import archive
from app.client import export_request
from harness.bundle import session_bundle
from harness.domain.text.formatting import usd


def export(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.look() as client:
        found = archive.session(client, args.id)
    folder = found.folder
    if not folder.is_dir():
        raise Refused(f"{folder} cannot be read from here; export it on the machine where it is")
    name = found.shown.row.name if found.shown is not None else ""
    target = Path(args.file or export_request.file_name(name, folder.name))
    done = subprocess.run(
        export_request.COMMAND,
        input=export_request.order(ctx.folders, folder, target, thin=args.thin, checkpoints=args.checkpoints),
        stdout=subprocess.PIPE,
        check=False,
    )
    try:
        made = export_request.made_of(done.stdout)
    except export_request.NotExported as exc:
        raise Refused(f"{safe(str(exc))}") from exc
    if args.json:
        emit(msgspec.to_builtins(made))
        return exits.OK
    say(safe(export_request.told(made)))
    for note in made.notes:
        say(f"note: {safe(note)}")
    say(f"sha256 {made.seal}")
    say("whoever gets it checks it with: watchfloor verify FILE, and compares that hash with yours")
    return exits.OK


def verify(file: Path, *, as_json: bool) -> int:
    """Print what is in a bundle, and everything that is wrong with it. Raises NotABundle, Refused."""
    with bundle_source.reading(file):
        checked = session_bundle.check(file)
    about = checked.manifest
    assert about is not None
    if as_json:
        shown = {**msgspec.to_builtins(about), "parts": len(about.parts)}
        found = {"ok": checked.ok, "sha256": checked.seal, "problems": checked.problems}
        emit({"file": str(file), **found, "about": shown})
        return exits.OK if checked.ok else exits.NO
    say(f"{safe(file.name)}  {'ok' if checked.ok else 'DAMAGED'}  {len(about.parts)} parts  sha256 {checked.seal}")
    say(f"{safe(about.name)} ({safe(about.sid)}) of {safe(about.repo)}, exported {safe(about.made)}")
    say(f"{about.records:,} records, {about.requests:,} requests, {about.tokens:,} tokens, {usd(about.spent_nano)}")
    for ref in about.commits:
        say(f"  {safe(ref)}")
    for note in about.notes:
        say(f"note: {safe(note)}")
    for problem in checked.problems:
        say(f"wrong: {safe(problem)}")
    return exits.OK if checked.ok else exits.NO
