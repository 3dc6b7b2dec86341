"""The vault's own process: one per session that works, forked from its keeper, gone after a while without work.
Standard library only.

Requests and answers are frames (`harness.protocol.frames`) on an inherited socket. ``{id, op, …}`` → ``{id, ok:
true, …}`` or ``{id, ok: false, error: {code, message}}`` with code ``no_space`` (try again when there is room),
``expired``, ``too_large``, ``damaged`` or ``io``.

| op | arguments | answer |
| --- | --- | --- |
| ``take`` | ``roots, label, full, since?, worked?`` | ``snapshot, changed, left_out, left_out_names, difference?,
  worked?, worked_names?`` |
| ``look`` | ``action`` | ``seen`` |
| ``export`` | ``roots, label, head, ground, since`` | ``snapshot, changed, names, left_out, whole`` |
| ``bring_back`` | ``roots, snapshot, label, exact`` | ``before, written, removed, refused`` |
| ``list`` | – | ``marks: [{id, label, ts, changed, left_out}]``, ``stored`` |

Any request may carry ``limits`` (`harness.vault.limits`), which count from then on. ``roots`` are ``[[letter, path,
[hidden names]], …]``. ``difference`` lists what is another thing than in snapshot ``since``; ``worked`` counts the
names that were worked on since the snapshot of that name, ``worked_names`` are the first files of them. Any request may
carry an ``action``; the answer, an error too, then has in ``seen`` what `precheck.observe` says of it just after:
reading what an action names may take long, so it is done here, where nobody waits.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import sys
import traceback
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from harness.events.action import from_wire
from harness.hands import precheck
from harness.linux import kernel
from harness.linux.scarce import scarce
from harness.linux.spares import Spares
from harness.protocol import frames
from harness.vault import entries, limits
from harness.vault.export import EXPORT, Frame
from harness.vault.limits import Limits
from harness.vault.packs import DamagedPack
from harness.vault.scan import Root, TreeTooLarge
from harness.vault.vault import Expired, Vault

IDLE_S = 60.0
SETTLED_S = 2.0
_SENTENCES = 50
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def serve(sock: socket.socket, folder: Path) -> NoReturn:
    """Answer until the keeper is gone or nobody asked for a minute; never returns."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    server = _Server(folder)
    decoder = frames.Decoder()
    waits = select.poll()
    waits.register(sock, select.POLLIN)
    sock.setblocking(True)
    spares = Spares()
    settled = True
    while True:
        if not waits.poll((IDLE_S if settled else SETTLED_S) * 1000):
            if settled:
                os._exit(0)
            settled = True
            server.tidy()
            continue
        data = sock.recv(1 << 16)
        if not data:
            os._exit(0)
        for body in decoder.feed(data):
            sock.sendall(frames.encode(server.answer(frames.parse(body))))
            server.tidy(overdue=True)
            spares.used()
            settled = False


class _Server:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._limits = limits.load(folder)
        self._vault: Vault | None = None

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Carry out one request; every failure is a value."""
        reply = self._answer(request)
        return (
            reply if request.get("action") is None else reply | {"seen": precheck.observe(from_wire(request["action"]))}
        )

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        number = request.get("id")
        try:
            return {"id": number, "ok": True, **self._do(request)}
        except Expired as exc:
            error = {"code": "expired", "message": str(exc)}
        except TreeTooLarge as exc:
            error = {"code": "too_large", "message": str(exc)}
        except DamagedPack as exc:
            self._vault = None
            error = {"code": "damaged", "message": f"the stored states are damaged: {exc}"}
        except OSError as exc:
            code = "scarce" if scarce(exc) else "io"
            code = "no_space" if exc.errno in _FULL else code
            error = {"code": code, "message": f"{exc.strerror or exc}" + (f" ({exc.filename})" if exc.filename else "")}
        return {"id": number, "ok": False, "error": error}

    def _do(self, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("limits") is not None:
            self._within(limits.from_wire(request["limits"]))
        op = request.get("op")
        if op == "look":
            return {}
        vault = self._vault
        if vault is None:
            vault = Vault(self._folder, self._limits)
            self._vault = vault
        roots = [
            Root(letter.encode(), path, frozenset(n.encode() for n in hidden))
            for letter, path, hidden in request.get("roots", [])
        ]
        if op == "take":
            taken = vault.take(
                roots, str(request["label"]), full=bool(request.get("full")), since=str(request.get("since") or "")
            )
            reply: dict[str, Any] = {
                "snapshot": taken.id,
                "changed": taken.changed,
                "left_out": taken.left_out,
                "left_out_names": list(taken.left_out_names),
            }
            if (since := request.get("since")) is not None:
                reply["difference"] = _difference(vault, str(since), request.get("only"))
            if worked := request.get("worked"):
                reply["worked"], reply["worked_names"] = vault.worked_since(str(worked))
            return reply
        if op == "export":
            frame = Frame(str(request["head"]).encode(), str(request["ground"]).encode(), str(request["since"]))
            kept, made = vault.export(roots, str(request["label"]), frame, self._folder.with_name(EXPORT))
            return {"snapshot": kept.id, "changed": kept.changed, **asdict(made)}
        if op == "bring_back":
            exact = frozenset(letter.encode() for letter in request["exact"])
            before, done = vault.bring_back(roots, str(request["snapshot"]), str(request["label"]), exact)
            refused = [f"{name}: {why}" for name, why in done.refused[:_SENTENCES]]
            return {
                "before": before.id,
                "written": done.written,
                "removed": done.removed,
                "refused": refused,
                "refused_count": len(done.refused),
            }
        if op == "list":
            marks = [
                {"id": m.id, "label": m.label, "ts": m.ts, "changed": m.changed, "left_out": m.left_out}
                for m in vault.marks()
            ]
            return {"marks": marks, "stored": vault.stored}
        raise DamagedPack(f"there is no operation {op!r}")

    def _within(self, wanted: Limits) -> None:
        """These limits count from now on, also for a vault that starts later without any."""
        if wanted == self._limits:
            return
        limits.save(self._folder, wanted)
        self._limits = wanted
        if self._vault is not None:
            self._vault.close()
            self._vault = None

    def tidy(self, *, overdue: bool = False) -> None:
        """Stay within the budget; a failure only means more room is used."""
        try:
            if self._vault is not None:
                self._vault.tidy(overdue=overdue)
        except (OSError, DamagedPack):
            traceback.print_exc(file=sys.stderr)
            self._vault = None


def _difference(vault: Vault, since: str, only: object) -> list[str]:
    try:
        changes = vault.since(since)
    except Expired:
        return ["the state that was shown is no longer kept, so it cannot be compared"]
    if isinstance(only, str):
        changes = [c for c in changes if c.path.startswith(only.encode())]
    said = [entries.sentence(c) for c in changes[:_SENTENCES]]
    if len(changes) > _SENTENCES:
        said.append(f"and {len(changes) - _SENTENCES} more names")
    return said
