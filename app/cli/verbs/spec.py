"""The verb that reads a specification before an agent does: which of its criteria no machine can decide."""

from __future__ import annotations

import argparse
from pathlib import Path

from app.cli.base import exits, repositories
from app.cli.base.arguments import Usage, bytes_of
from app.cli.base.context import Context
from app.cli.base.output import emit, safe, say, warn
from harness.linux import own_file
from harness.plan import specification
from harness.plan.files.criteria import FORMS, Criterion, Problem
from harness.plan.files.formats import MAX_BYTES, BadPlan
from harness.protocol.config import config as configuration
from harness.protocol.config import project_phrases


def check(ctx: Context, args: argparse.Namespace) -> int:
    """Exit code 0 when there are criteria, a machine decides each, and nothing like one was left unread; else 1."""
    try:
        seen = specification.look(bytes_of(args.file, MAX_BYTES), _phrases(ctx, args.file))
    except BadPlan as exc:
        raise Usage(f"{args.file}: {exc}") from exc
    lines = seen.lines
    bad = [line for line in lines if isinstance(line.found, Problem)]
    code = exits.NO if bad or seen.unread or not lines else exits.OK
    if args.json:
        for line in lines:
            place = {"where": line.where, "under": line.under} if line.under else {"where": line.where}
            emit({**place, "text": line.found.text, **_verdict(line.found)})
        for text in (*seen.unread, *seen.notes):
            warn(f"watchfloor: {text}")
        return code
    for line in lines:
        if isinstance(line.found, Problem):
            under = f" ({safe(line.under, 80)})" if line.under else ""
            say(f"{safe(line.where)}{under}: {safe(line.found.text, 300)}")
            say(f"    {safe(line.found.why, 300)}")
            if line.found.hint:
                say(f"    better: {safe(line.found.hint, 300)}")
    if not lines:
        say("it holds no criterion")
    if bad or not lines:
        say("\n    ".join(["a machine decides what is worded like one of these:", *FORMS]))
    for text in seen.unread:
        say(f"not read: {safe(text, 300)}")
    for text in seen.notes:
        say(safe(text, 600))
    if lines:
        say(f"{len(lines) - len(bad)} of {len(lines)} criteria are decided by a command, a file or a request")
    return code


def _phrases(ctx: Context, file: str) -> dict[str, str]:
    """What phrases are bound to in the repository that the file is in; its own file of them as it lies there."""
    configured = configuration.load(ctx.folders).plan.phrases
    here = Path.cwd() if file == "-" else (Path.cwd() / file).parent
    top = repositories.top_of(here)
    if top is None:
        return configured
    own: dict[str, str] = {}
    project = project_phrases.Project()
    try:
        project = project_phrases.load(ctx.folders.state, repositories.common(top))
        data = own_file.read(top / project_phrases.FILE, project_phrases.MOST_BYTES)
        own = project_phrases.bindings(data) if project.counts(data) else {}
    except FileNotFoundError:
        pass
    except (OSError, ValueError, project_phrases.Unreadable) as exc:
        warn(f"watchfloor: {exc}")
    return project_phrases.counting(own, configured, project)


def _verdict(found: Criterion | Problem) -> dict[str, object]:
    if isinstance(found, Problem):
        return {"decided": False, "why": found.why, "instead": found.instead}
    return {"decided": True, "kind": found.kind, "command": found.command}
