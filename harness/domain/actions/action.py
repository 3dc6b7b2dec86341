"""The canonical action: one description of one effect, hashed; what was shown is what runs. Standard library only.

In the program an action is one of the frozen kinds below. It is a dict only where it is hashed, recorded or sent: the
canonical form follows RFC 8785 in spirit, with sorted keys, UTF-8, no floats, bytes as base64 by the caller. Whoever
checks a hash checks it on the dict that was stored, and reads that dict with `from_wire` afterwards.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from harness.domain.actions.access import Access
from harness.domain.actions.action_kind import ActionKind
from harness.domain.actions.destination import Destination
from harness.domain.actions.effect import Effect
from harness.domain.text.fields import BadField, Wire, flag, items, number, table, text, texts, words

_DOMAIN = b"watchfloor/action/1\0"
VERSION = 1
TIMEOUT_S = 120
"""Seconds that a call may take whose action does not say."""
OUTPUT_BYTES = 8 << 20
"""Bytes of output that are kept of a call whose action does not say."""


class BadAction(ValueError):
    """A value that is no action; the message names what is missing or of the wrong form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """The sandbox of one call: absolute paths. ``binds`` are (source, destination, ``ro`` | ``rw``) in mount order;
    ``hosts`` the only hosts that it may reach.
    """

    worktree: str
    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()
    binds: tuple[tuple[str, str, str], ...] = ()
    network: bool = False
    sandboxed: bool = False
    hosts: tuple[str, ...] = ()

    @property
    def writable(self) -> bool:
        """Whether anything in it can be written that outlives the call."""
        return bool(self.write) or any(mode == "rw" for _, _, mode in self.binds)

    def to_wire(self) -> Wire:
        wire: Wire = {
            "worktree": self.worktree,
            "read": list(self.read),
            "write": list(self.write),
            "binds": [list(bind) for bind in self.binds],
            "network": self.network,
            "sandboxed": self.sandboxed,
        }
        if self.hosts:
            wire["hosts"] = list(self.hosts)
        return wire

    @classmethod
    def from_wire(cls, wire: Mapping[str, object], cwd: str) -> Profile:
        """Raises BadField. A profile that names no worktree means the first folder it can write, else ``cwd``."""
        write = texts(wire, "write")
        return cls(
            worktree=text(wire, "worktree", "") or (write or (cwd,))[0],
            read=texts(wire, "read"),
            write=write,
            binds=tuple((source, target, mode) for source, target, mode in items(wire, "binds", 3)),
            network=flag(wire, "network", False),
            sandboxed=flag(wire, "sandboxed", False),
            hosts=texts(wire, "hosts"),
        )


@dataclass(frozen=True, slots=True)
class InputBlob:
    """Stands in for an input that is too large to be repeated in the log."""

    sha: str
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Common:
    """What every action says. ``input`` is the model's own, without its claim; ``refused`` is why it can never be
    allowed; ``pre`` is the world that a decision is given in, observed again just before it starts.
    """

    KIND: ClassVar[ActionKind]
    tool: str
    sandbox: Profile
    session: str = ""
    call: str = ""
    ref: str = ""
    input_sha: str = ""
    cwd: str = ""
    timeout_s: int = TIMEOUT_S
    access: Access = Access.SANDBOX
    output_bytes: int = OUTPUT_BYTES
    env: Mapping[str, str] = field(default_factory=dict)
    effects: tuple[Effect, ...] = ()
    input: Mapping[str, object] | None = None
    input_blob: InputBlob | None = None
    outside: tuple[str, ...] = ()
    refused: str = ""
    pre: Mapping[str, object] | None = None
    unprotected: str = ""

    @property
    def kind(self) -> ActionKind:
        return self.KIND

    @property
    def job(self) -> bool:
        """True for a command that outlives its call."""
        return False

    @property
    def world(self) -> Mapping[str, object]:
        """The preconditions by name; empty when it has none."""
        return self.pre or {}

    @property
    def snapshot(self) -> str | None:
        """The state of the worktree that a person was shown; None when nobody was."""
        shown = self.world.get("snapshot")
        return None if shown is None else str(shown)

    def own(self) -> Wire:
        """The fields that only this kind has."""
        raise NotImplementedError

    def to_wire(self) -> Wire:
        """The dict that is hashed and recorded, its keys in the order in which they always stood in the log."""
        wire: Wire = {
            "v": VERSION,
            "session": self.session,
            "call": self.call,
            "tool": self.tool,
            "ref": self.ref,
            "kind": str(self.KIND),
            "input_sha": self.input_sha,
            "cwd": self.cwd,
            "timeout_s": self.timeout_s,
            "access": str(self.access),
            "output_bytes": self.output_bytes,
            "env": dict(self.env),
            "sandbox": self.sandbox.to_wire(),
            "effects": [str(effect) for effect in self.effects],
        }
        if self.input_blob is not None:
            wire["input_blob"] = {"sha": self.input_blob.sha, "bytes": self.input_blob.bytes}
        elif self.input is not None:
            wire["input"] = dict(self.input)
        wire |= self.own()
        if self.outside:
            wire["outside"] = list(self.outside)
        if self.refused:
            wire["refused"] = self.refused
        if self.pre is not None:
            wire["pre"] = dict(self.pre)
        if self.unprotected:
            wire["unprotected"] = self.unprotected
        return wire


@dataclass(frozen=True, slots=True, kw_only=True)
class FileAction(_Common):
    """A file tool. ``path`` is relative to the worktree inside it, else absolute; ``content_sha`` is of the new text
    of a tool that writes.
    """

    KIND = ActionKind.FILE
    path: str
    content_sha: str | None = None

    def own(self) -> Wire:
        sha = {} if self.content_sha is None else {"content_sha": self.content_sha}
        return {"path": self.path, **sha}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecAction(_Common):
    """One program with exact arguments."""

    KIND = ActionKind.EXEC
    argv: tuple[str, ...]
    outlives: bool = False

    @property
    def job(self) -> bool:
        return self.outlives

    def own(self) -> Wire:
        return {"argv": list(self.argv), **({"job": True} if self.outlives else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class ShellAction(_Common):
    """A bash script."""

    KIND = ActionKind.SHELL
    script: str
    outlives: bool = False

    @property
    def job(self) -> bool:
        return self.outlives

    def own(self) -> Wire:
        return {"script": self.script, **({"job": True} if self.outlives else {})}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAction(_Common):
    """A done criterion, which the harness runs: a bash script."""

    KIND = ActionKind.CHECK
    script: str

    def own(self) -> Wire:
        return {"script": self.script}


@dataclass(frozen=True, slots=True, kw_only=True)
class PushAction(_Common):
    """A push. ``argv`` is what was asked for, ``remote`` its name or address, ``note`` a remark for the person."""

    KIND = ActionKind.PUSH
    argv: tuple[str, ...]
    remote: str
    to: Destination
    note: str = ""

    def own(self) -> Wire:
        note = {"note": self.note} if self.note else {}
        return {"argv": list(self.argv), "remote": self.remote, **self.to.to_wire(), **note}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordAction(_Common):
    """A question about, or an addition to, what the harness itself keeps on record: the supervisor answers, and no
    process is started. Its input says all of it.
    """

    KIND = ActionKind.RECORD

    def own(self) -> Wire:
        return {}


Action = FileAction | ExecAction | ShellAction | CheckAction | PushAction | RecordAction


def command_of(action: Action) -> str:
    """What it runs as a shell reads it; empty for what runs no command."""
    match action:
        case ExecAction():
            return shlex.join(action.argv)
        case ShellAction() | CheckAction():
            return action.script
        case _:
            return ""


def from_wire(value: object) -> Action:
    """The action that a recorded or sent dict describes; a field that is missing has the value that it means.

    Raises BadAction when a field that says what runs is missing, or any is of another form.
    """
    if not isinstance(value, dict):
        raise BadAction("the action is no object")
    try:
        return _action(value)
    except BadField as exc:
        raise BadAction(f"the action lacks or misnames {exc}") from exc


def _action(wire: Wire) -> Action:
    if number(wire, "v", VERSION) != VERSION:
        raise BadField("v")
    common = _common(wire)
    match text(wire, "kind"):
        case FileAction.KIND:
            sha = None if wire.get("content_sha") is None else text(wire, "content_sha")
            return FileAction(path=text(wire, "path"), content_sha=sha, **common)
        case ExecAction.KIND:
            argv = texts(wire, "argv")
            if not argv:
                raise BadField("argv")
            return ExecAction(argv=argv, outlives=flag(wire, "job", False), **common)
        case ShellAction.KIND:
            return ShellAction(script=text(wire, "script"), outlives=flag(wire, "job", False), **common)
        case CheckAction.KIND:
            return CheckAction(script=text(wire, "script"), **common)
        case RecordAction.KIND:
            return RecordAction(**common)
        case PushAction.KIND:
            return PushAction(
                argv=texts(wire, "argv"),
                remote=text(wire, "remote", ""),
                to=Destination.from_wire(wire),
                note=text(wire, "note", ""),
                **common,
            )
    raise BadField("kind")


def _common(wire: Wire) -> dict[str, Any]:
    profile = table(wire, "sandbox")
    cwd = text(wire, "cwd", "")
    sandbox = Profile.from_wire(profile, cwd)
    blob = None if wire.get("input_blob") is None else table(wire, "input_blob")
    return {
        "tool": text(wire, "tool"),
        "sandbox": sandbox,
        "session": text(wire, "session", ""),
        "call": text(wire, "call", ""),
        "ref": text(wire, "ref", ""),
        "input_sha": text(wire, "input_sha", ""),
        "cwd": cwd or sandbox.worktree,
        "timeout_s": number(wire, "timeout_s", 0) or TIMEOUT_S,
        "access": _access(text(wire, "access", Access.SANDBOX)),
        "output_bytes": number(wire, "output_bytes", 0) or OUTPUT_BYTES,
        "env": words(wire, "env"),
        "effects": tuple(Effect.parse(spelled) for spelled in texts(wire, "effects")),
        "input": None if wire.get("input") is None else table(wire, "input"),
        "input_blob": None if blob is None else InputBlob(text(blob, "sha"), number(blob, "bytes", 0)),
        "outside": texts(wire, "outside"),
        "refused": text(wire, "refused", ""),
        "pre": None if wire.get("pre") is None else table(wire, "pre"),
        "unprotected": text(wire, "unprotected", ""),
    }


def _access(spelled: str) -> Access:
    try:
        return Access(spelled)
    except ValueError:
        raise BadField("access") from None


def _no_floats(value: object) -> None:
    if isinstance(value, float):
        raise ValueError("an action holds no floating-point numbers")
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError("an action's keys are strings")
            _no_floats(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            _no_floats(item)


def canonical(action: Mapping[str, object]) -> bytes:
    """The bytes that are hashed. Raises ValueError on floats or non-string keys."""
    _no_floats(action)
    return json.dumps(action, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def action_hash(action: Wire) -> str:
    """SHA-256 in hex over the canonical form, domain-separated."""
    return hash_of(canonical(action))


def hash_of(body: bytes) -> str:
    """The hash of an action whose canonical form is ``body``."""
    return hashlib.sha256(_DOMAIN + body).hexdigest()
