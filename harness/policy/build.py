"""Building the canonical action: what is judged, hashed, shown and run. Pure: everything about the world comes in
`Facts`.

The agent's own words about the call (``why``) never enter the action; they are shown apart, as its claim.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from harness.domain.actions.access import SANDBOXED, Access
from harness.domain.actions.action import (
    Action,
    CheckAction,
    ExecAction,
    FileAction,
    InputBlob,
    Profile,
    PushAction,
    RecordAction,
    ShellAction,
    canonical,
    from_wire,
)
from harness.domain.actions.effect import NO_UNDO
from harness.domain.text import fields
from harness.policy import push
from harness.policy.effects import Reach, outcome
from harness.policy.facts import Facts
from harness.tools import registry


def build_action(
    sid: str,
    call_id: str,
    ref: str,
    tool: str,
    input: Mapping[str, object],  # noqa: A002 -- the word of the contract and of the model's protocol
    facts: Facts,
    *,
    input_blob: InputBlob | None = None,
) -> Action:
    """The action of one proposed call.

    Total on validated input: what cannot be allowed to happen at all (a path below ``.git``, a working folder outside
    the worktree, a push that is not understood) gets the field ``refused``, a sentence for the agent, which `judge`
    denies. ``input_blob`` stands in for an input too large to be repeated in the log.
    """
    asked = {k: v for k, v in input.items() if k != "why"}
    found = outcome(tool, asked, facts)
    given = asked
    if found.kind == PushAction.KIND and "argv" in asked:
        given = {**asked, "argv": list(push.clean_argv(fields.texts(asked, "argv"), facts.remotes))}
    common: dict[str, object] = {
        "tool": tool,
        "sandbox": _sandbox(found, facts),
        "session": sid,
        "call": call_id,
        "ref": ref,
        "input_sha": hashlib.sha256(canonical(asked)).hexdigest(),
        "cwd": found.cwd,
        "timeout_s": _limit_s(asked, facts),
        "access": found.access,
        "output_bytes": facts.job_log_bytes if asked.get("job") is True else facts.output_bytes,
        "env": facts.open_env if found.access not in SANDBOXED else facts.env,
        "effects": found.effects,
        "input": given if input_blob is None else None,
        "input_blob": input_blob,
        "outside": found.outside,
        "refused": found.refused,
        "pre": _world(found, facts) if found.effects or facts.snapshot else None,
        "unprotected": facts.unprotected if NO_UNDO in found.effects else "",
    }
    action = _of_kind(tool, asked, found, common)
    wire = action.to_wire()
    try:
        canonical(wire).decode("utf-8")
    except UnicodeDecodeError:
        # Such a name would change on its way through JSON, and then what is hashed would not be what is stored.
        why = "a file name involved is not valid UTF-8, which cannot be recorded faithfully; rename it first"
        return from_wire({**_readable(wire), "refused": why})
    return action


def _of_kind(tool: str, asked: Mapping[str, object], found: Reach, common: dict[str, Any]) -> Action:
    if found.kind == FileAction.KIND:
        return FileAction(path=found.path, content_sha=_content_sha(tool, asked), **common)
    if found.pushed is not None:
        p = found.pushed
        return PushAction(argv=p.argv, remote=p.remote, to=p.to, note=p.note, **common)
    if found.kind == ExecAction.KIND:
        return ExecAction(argv=fields.texts(asked, "argv"), outlives=asked.get("job") is True, **common)
    if found.kind == RecordAction.KIND:
        return RecordAction(**common)
    if found.kind == CheckAction.KIND:
        return CheckAction(script=fields.text(asked, "command"), **common)
    return ShellAction(script=fields.text(asked, "script"), outlives=asked.get("job") is True, **common)


def _content_sha(tool: str, asked: Mapping[str, object]) -> str | None:
    if not registry.writes_file(tool):
        return None
    content = asked.get("content", asked.get("new", ""))
    return hashlib.sha256(str(content).encode("utf-8", "surrogatepass")).hexdigest()


def _world(found: Reach, facts: Facts) -> dict[str, object]:
    """What must still be so when it starts: the world that the decision was given in."""
    pre: dict[str, object] = {
        "files": dict(sorted(facts.hashes.items())),
        "head": facts.head,
        "worktree": dict(facts.identity),
    }
    if found.kind in (ExecAction.KIND, ShellAction.KIND, CheckAction.KIND):
        pre["cwd"] = dict(facts.cwd_identity)
        if facts.program:
            pre["program"] = dict(facts.program)
        if facts.deletes:
            pre["deletes"] = dict(facts.deletes)
        if facts.snapshot:
            pre["snapshot"] = facts.snapshot
    if found.kind == PushAction.KIND and facts.target is not None and facts.target.seen is not None:
        pre["url"] = facts.target.seen
    return pre


def _readable(value: Any) -> Any:
    """The same structure with lone surrogates written out."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_readable(k): _readable(v) for k, v in value.items()}
    return [_readable(v) for v in value] if isinstance(value, list) else value


def _limit_s(asked: Mapping[str, object], facts: Facts) -> int:
    """Seconds after which it is ended; a job that names no limit has the default of jobs."""
    if asked.get("job") is True:
        wanted = asked.get("limit_s")
        return _timeout(facts.job_s if wanted is None else wanted, facts.job_most_s)
    return _timeout(asked.get("timeout_s"), facts.timeout_s)


def _timeout(asked: object, limit: int) -> int:
    return min(asked, limit) if isinstance(asked, int) and not isinstance(asked, bool) and asked > 0 else limit


def _sandbox(found: Reach, facts: Facts) -> Profile:
    return Profile(
        worktree=facts.worktree,
        read=facts.sandbox.read,
        write=facts.sandbox.write,
        binds=facts.sandbox.binds,
        network=found.access in (Access.NETWORK, Access.PUSH, Access.UNSANDBOXED) and not found.hosts,
        sandboxed=found.access != Access.UNSANDBOXED,
        hosts=found.hosts,
    )
