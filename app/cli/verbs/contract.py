"""The verb that prints the contract which planner and evaluator agreed on before a session's work."""

from __future__ import annotations

import argparse

from app.cli.base import exits
from app.cli.base.context import Context
from app.cli.base.output import emit, safe, say, warn
from app.cli.verbs import archive
from app.client import records
from harness.eventlog import blobs
from harness.eventlog.framing import LogError
from harness.protocol.client import Client
from harness.protocol.paths import SessionFolder


def show(ctx: Context, args: argparse.Namespace) -> int:
    """Exit code 0 when one stands, 1 while it is being agreed on or cannot be read; 4 for a session without one."""
    with ctx.look() as client:
        state, folder = archive.state(client, args.id)
        contract = state.contract
        if contract.wanted is None:
            warn("watchfloor: it works without a contract; launch a session with --review")
            return exits.NOT_FOUND
        agreed = contract.agreed
        if agreed is None:
            warn("watchfloor: no contract stands yet; watchfloor logs tells how far it is")
            return exits.NO
        asks = isinstance(client, Client) and not records.readable(client.transport, folder)
        on_disk = SessionFolder(folder, ctx.folders.session(folder.name).keeper_socket)
        try:
            if asks and isinstance(client, Client):
                data = records.AskedRecords(client, folder.name, -1).payload(agreed.text.sha)
            else:
                data = blobs.get(on_disk.blobs, agreed.text.sha)
        except LogError as exc:
            warn(f"watchfloor: the contract cannot be read: {safe(str(exc))}")
            return exits.NO
    text = data.decode("utf-8", "replace")
    if args.json:
        emit({"sha": agreed.text.sha, "text": text, "drafts": agreed.drafts, "objections": agreed.objections})
        return exits.OK
    for line in text.split("\n"):
        say(safe(line))
    for objection in agreed.objections:
        say(f"not met: {safe(objection)}")
    return exits.OK
