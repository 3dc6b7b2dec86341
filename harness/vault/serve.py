"""The vault's own process: one per session that works, forked from its keeper, gone after a while without work.
Standard library only.
"""

from __future__ import annotations

import errno
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from harness.domain.actions.action import from_wire
from harness.executor import preconditions
from harness.linux import kernel
from harness.linux.scarce import scarce
from harness.linux.spares import Spares
from harness.protocol.connection import frames
from harness.protocol.connection.op import reader
from harness.vault import entries, limits
from harness.vault.export import EXPORT, Frame
from harness.vault.limits import VaultLimits
from harness.vault.packs import DamagedPack
from harness.vault.scan import Root, TreeTooLarge
from harness.vault.vault import Expired, Vault
from harness.vault.vault_ops import (
    BringBack,
    Export,
    KeptRoot,
    KeptState,
    ListStates,
    Observe,
    Observed,
    StateBroughtBack,
    StateExported,
    StateList,
    StateTaken,
    Take,
    VaultFailure,
)

IDLE_S = 60.0
SETTLED_S = 2.0
_SENTENCES = 50
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

_VaultOp = Take | Observe | Export | BringBack | ListStates
_VaultReply = StateTaken | Observed | StateExported | StateBroughtBack | StateList | VaultFailure
_readers: dict[str, Callable[[Mapping[str, object]], _VaultOp]] = {
    Take.OP: reader(Take),
    Observe.OP: reader(Observe),
    Export.OP: reader(Export),
    BringBack.OP: reader(BringBack),
    ListStates.OP: reader(ListStates),
}


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

    def answer(self, request: Mapping[str, object]) -> dict[str, object]:
        """Carry out one request; every failure is a value."""
        op = _readers[str(request.get("op"))](request)
        reply = self._answer(op, request.get("limits"))
        if isinstance(op, Take | Observe) and op.action is not None:
            reply = _with(reply, preconditions.observe(from_wire(op.action)))
        number = request.get("id")
        if isinstance(reply, VaultFailure):
            return {"id": number, "ok": False, "error": reply}
        return {"id": number, "ok": True, **frames.members(reply)}

    def _answer(self, op: _VaultOp, within: object) -> _VaultReply:
        try:
            if within is not None:
                self._within(limits.from_wire(within))
            return self._do(op)
        except Expired as exc:
            return VaultFailure("expired", str(exc))
        except TreeTooLarge as exc:
            return VaultFailure("too_large", str(exc))
        except DamagedPack as exc:
            self._vault = None
            return VaultFailure("damaged", f"the stored states are damaged: {exc}")
        except OSError as exc:
            code = "scarce" if scarce(exc) else "io"
            code = "no_space" if exc.errno in _FULL else code
            return VaultFailure(code, f"{exc.strerror or exc}" + (f" ({exc.filename})" if exc.filename else ""))

    def _do(self, op: _VaultOp) -> _VaultReply:
        if isinstance(op, Observe):
            return Observed()
        vault = self._vault
        if vault is None:
            vault = Vault(self._folder, self._limits)
            self._vault = vault
        match op:
            case Take():
                return _take(vault, op)
            case Export():
                frame = Frame(op.head.encode(), op.ground.encode(), op.since)
                kept, made = vault.export(
                    _roots(op.roots), op.label, frame, self._folder.with_name(EXPORT), writers=op.writers
                )
                return StateExported(kept.id, kept.changed, made.names, made.left_out, made.whole)
            case BringBack():
                exact = frozenset(letter.encode() for letter in op.exact)
                before, done = vault.bring_back(_roots(op.roots), op.snapshot, op.label, exact)
                refused = tuple(f"{name}: {why}" for name, why in done.refused[:_SENTENCES])
                return StateBroughtBack(before.id, done.written, done.removed, refused, len(done.refused))
            case ListStates():
                marks = tuple(KeptState(m.id, m.label, m.ts, m.changed, m.left_out) for m in vault.marks())
                return StateList(marks, vault.stored)

    def _within(self, wanted: VaultLimits) -> None:
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


def _with(reply: _VaultReply, seen: dict[str, object]) -> _VaultReply:
    return replace(reply, seen=seen) if isinstance(reply, StateTaken | Observed | VaultFailure) else reply


def _roots(roots: tuple[KeptRoot, ...]) -> list[Root]:
    return [Root(root.letter.encode(), root.path, frozenset(name.encode() for name in root.hidden)) for root in roots]


def _take(vault: Vault, op: Take) -> StateTaken:
    taken = vault.take(_roots(op.roots), op.label, full=op.full, since=op.since or "", writers=op.writers)
    reply = StateTaken(taken.id, taken.changed, taken.left_out, taken.left_out_names)
    if op.since is not None:
        reply = replace(reply, difference=tuple(_difference(vault, op.since, op.only)))
    if op.worked:
        worked, names = vault.worked_since(op.worked)
        reply = replace(reply, worked=worked, worked_names=tuple(names))
    return reply


def _difference(vault: Vault, since: str, only: str | None) -> list[str]:
    try:
        changes = vault.since(since)
    except Expired:
        return ["the state that was shown is no longer kept, so it cannot be compared"]
    if only is not None:
        changes = [c for c in changes if c.path.startswith(only.encode())]
    said = [entries.sentence(c) for c in changes[:_SENTENCES]]
    if len(changes) > _SENTENCES:
        said.append(f"and {len(changes) - _SENTENCES} more names")
    return said
