"""What is on record of a call, from the log or from a blob that a record names."""

from __future__ import annotations

import base64
import json

from harness.domain.actions.action import Action, BadAction, from_wire
from harness.domain.text.fields import Wire
from harness.eventlog import blobs
from harness.events import types as t
from harness.protocol.keeper_requests import PutBlob
from harness.supervisor.base.threads import at_home
from harness.supervisor.fleet.call_records import OpenCall
from harness.supervisor.fleet.session import Session


async def input_of(session: Session, proposed: t.ToolProposed) -> object:
    """The whole input of a proposal, from the log or its blob; None when it cannot be read."""
    if proposed.input_blob is None:
        return proposed.input
    raw = await at_home(blobs.get, session.folder.blobs, proposed.input_blob.sha)
    try:
        return json.loads(raw)
    except ValueError:
        return None


async def stored_action(session: Session, known: OpenCall) -> Wire | None:
    """The judged action of an open call as it is recorded, from the log or its blob."""
    j = known.judged
    if j is None:
        return None
    if j.action is not None:
        return j.action
    if j.action_blob is None:
        return None
    found = json.loads(await at_home(blobs.get, session.folder.blobs, j.action_blob.sha))
    return found if isinstance(found, dict) else None


async def action_of(session: Session, known: OpenCall) -> Action | None:
    """The judged action of an open call; None when there is none, or what is recorded is none."""
    stored = await stored_action(session, known)
    try:
        return from_wire(stored) if stored is not None else None
    except BadAction:
        return None


async def put_blob(session: Session, data: bytes, media: str) -> t.BlobRef:
    """Store a payload beside the log, durable before any record names it."""
    stored = await session.keeper().ask(PutBlob(base64.b64encode(data).decode("ascii")))
    return t.BlobRef(stored.sha, stored.bytes, media)
