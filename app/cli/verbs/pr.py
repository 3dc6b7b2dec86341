"""Sending a session's work to a remote, and having it reviewed there."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from app.cli.base import exits
from app.cli.base.arguments import Refused
from app.cli.base.context import Context
from app.cli.base.output import emit, safe, say
from app.client.replies import ask
from app.review import forge, publishing, pull_text
from app.review.forge import Forge, NoForge
from harness.domain.text.formatting import counted
from harness.events.work import pull_events as p
from harness.linux.proc import descendants
from harness.projections.state.merging import named
from harness.projections.state.publishing import PullView
from harness.protocol.client import Client
from harness.reports.receipts import Receipts
from harness.views.pull_views import Pulled, PullLooked, SecretsFound

_PATIENCE_S = 600.0
_PROGRAM_S = 180.0
_WORDS = 600
_ASKED = ("remote", "branch", "commit", "force", "seen")


def pr(ctx: Context, args: argparse.Namespace) -> int:
    """Nothing is pushed before it is known that a request can be opened, and what stands in it."""
    wish: dict[str, object] = {name: getattr(args, name) for name in _ASKED} | {"sid": args.id}
    with ctx.connect() as client, tempfile.TemporaryDirectory(prefix="watchfloor-") as folder:
        client.wait_up_to(_PATIENCE_S)
        view = ask(client, PullLooked, "pull_look", **wish).pull
        wish["address"] = view.url
        opener = None if args.push_only else _opener(args, view, Path(folder))
        if args.shown:
            _hold_to_what_was_shown(client, args, view, opener)
        if args.commit and opener is not None and not args.dry_run:
            _text(client, args, view)
            view = ask(client, PullLooked, "pull_look", **wish, ready=True).pull
            wish["seen"] = view.seen
        title, body = _text(client, args, view) if opener is not None else ("", "")
        if args.dry_run:
            _preview(args, view, opener, title, body)
            return exits.OK
        try:
            ended = ask(client, Pulled, "pull", **wish)
        except KeyboardInterrupt:
            say(
                f"the push goes on without you, and nothing is opened; what came of it: watchfloor logs {safe(args.id)}"
            )
            raise
        if ended.outcome != p.PUSHED:
            return _not_pushed(args, ended)
        if opener is None:
            _told(args, ended, "", "")
            return exits.OK
        command = opener.command(head=view.branch, base=args.into, title=title, body=body, draft=args.draft)
        return _request(client, args, ended, opener, _opened(opener, command, folder))


def _request(client: Client, args: argparse.Namespace, ended: Pulled, opener: Forge, came: tuple[int, str]) -> int:
    """Tell what became of the request for what was pushed; on record when it was opened."""
    view = ended.pull
    code, output = came
    address = forge.address_in(output)
    if code == 0:
        client.call("pull_opened", sid=view.sid, branch=view.branch, address=address, program=opener.program)
        _told(args, ended, address, "opened")
        return exits.OK
    if forge.stands_already(output) and address:
        _told(args, ended, address, "there already; it has the new commits")
        return exits.OK
    said = safe(" ".join(output.split()), _WORDS) or f"it ended with code {code}"
    say(f"pushed to {safe(view.branch)} at {safe(view.remote)}, but {opener.program} opened no request:")
    say(f"  {said}")
    return exits.NO


def _opener(args: argparse.Namespace, view: PullView, folder: Path) -> Forge:
    """Who opens the request, in ``folder``, which is laid out for it."""
    try:
        chosen = forge.choose(view.url, args.repo, args.program, forge.present(os.environ))
        forge.lay_out(folder, view.url)
    except NoForge as exc:
        raise Refused(f"nothing was pushed: {safe(str(exc), _WORDS)}") from exc
    return chosen


def _text(client: Client, args: argparse.Namespace, view: PullView) -> tuple[str, str]:
    """Title and body; but for a title that was given they are displayed safely already. Raises Refused."""
    found = ask(client, Receipts, "receipts", sid=view.sid).receipts

    def finder(texts: Sequence[str]) -> list[list[str]]:
        return ask(client, SecretsFound, "pull_secrets", texts=list(texts)).found

    try:
        return pull_text.title(view, args.title, finder), pull_text.body(view, found, finder)
    except pull_text.SecretTitle as exc:
        raise Refused(f"nothing was pushed: {exc}") from exc


def _opened(opener: Forge, command: list[str], folder: str) -> tuple[int, str]:
    """What the program said, in the empty repository of ours."""
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=forge.environment(os.environ),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
    except OSError as exc:
        return exits.REFUSED, f"{opener.path} cannot be started: {exc.strerror}"
    try:
        output, _ = process.communicate(timeout=_PROGRAM_S)
    except subprocess.TimeoutExpired as exc:
        _end(process)
        said = (exc.stdout or b"").decode("utf-8", "replace")
        why = f"{opener.program} did not end within {_PROGRAM_S:.0f} s; see at the forge whether it opened one"
        return exits.REFUSED, f"{why}. {said}"
    except KeyboardInterrupt:
        _end(process)
        say(f"the work is pushed, and {opener.program} was stopped; see at the forge whether it opened a request")
        raise
    return process.returncode, output.decode("utf-8", "replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """It and what it started: a program that hangs often waits for another one."""
    for pid in (*descendants(process.pid), process.pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    process.wait()


def _hold_to_what_was_shown(client: Client, args: argparse.Namespace, view: PullView, opener: Forge | None) -> None:
    """Raises Refused when a preview would say something else than the one that a person read."""
    title, body = _text(client, args, view) if opener is not None else ("", "")
    if args.shown != publishing.named("\n".join(_lines(args, view, opener, title, body))):
        where = f"{safe(view.branch)} at {safe(view.remote)}, which is {safe(view.url)}"
        raise Refused(f"nothing was pushed: what would be sent is not what you read any more; it would go to {where}")


def _preview(args: argparse.Namespace, view: PullView, opener: Forge | None, title: str, body: str) -> None:
    if args.json:
        emit(
            {
                "branch": view.branch,
                "remote": view.remote,
                "url": view.url,
                "head": view.head,
                "files": view.loose,
                "title": title,
                "body": body,
            }
        )
        return
    for line in _lines(args, view, opener, title, body):
        say(line)


def _lines(args: argparse.Namespace, view: PullView, opener: Forge | None, title: str, body: str) -> list[str]:
    """A preview of all that would be sent."""
    count = counted(view.count, "commit")
    lines = [f"would push {count} to {safe(view.branch)} at {safe(view.remote)} ({safe(view.url)})"]
    if view.loose:
        lines.append(f"would first commit {counted(len(view.loose), 'file')}: {safe(named(view.loose), _WORDS)}")
    if opener is not None:
        into = f" into {safe(args.into)}" if args.into else ""
        what = "a draft" if args.draft else "a request"
        lines.append(f"would have {opener.program} open {what} at {safe(opener.repository)}{into}:")
        lines += [safe(args.title) or title, "", *body.split("\n")]
    return lines


def _wire(ended: Pulled) -> dict[str, object]:
    """How it ended, as data."""
    made: dict[str, object] = msgspec.to_builtins(ended)
    del made["pull"]
    return made


def _not_pushed(args: argparse.Namespace, ended: Pulled) -> int:
    if args.json:
        emit(_wire(ended))
    else:
        say(f"not pushed to {safe(ended.branch)} at {safe(ended.remote)}, {safe(ended.outcome)}")
        say(f"  {safe(ended.why, _WORDS)}")
    return exits.NO


def _told(args: argparse.Namespace, ended: Pulled, address: str, how: str) -> None:
    if args.json:
        emit(_wire(ended) | {"address": address})
        return
    say(f"pushed {safe(ended.head[:12])} to {safe(ended.branch)} at {safe(ended.remote)}")
    if how:
        say(f"request {how}: {safe(address, 300) or 'it named no address'}")
