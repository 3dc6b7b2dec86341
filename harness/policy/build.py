"""Building the canonical action: what is judged, hashed, shown and run. Pure: everything about the world comes in
`Facts`.

The agent's own words about the call (``why``) never enter the action; they are shown apart, as its claim.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from harness.events.action import canonical
from harness.policy import push, shell
from harness.policy.effects import NO_UNDO, Outcome, effects_of, outcome
from harness.policy.facts import Facts

FILE_TOOLS = frozenset({"read_file", "write_file", "edit_file", "list_files", "search"})
WRITING_TOOLS = frozenset({"write_file", "edit_file"})
ACCESS = ("fence", "network", "unfenced")

__all__ = ["build_action", "effects_of"]


def build_action(
    sid: str,
    call_id: str,
    tool_use_id: str,
    tool: str,
    input: Mapping[str, Any],  # noqa: A002 -- the word of the contract and of the model's protocol
    facts: Facts,
    *,
    input_blob: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The action of one proposed call, with the fields of ``docs/architecture.md``.

    Total on validated input: what cannot be allowed to happen at all (a path below ``.git``, a working folder outside
    the worktree, a push that is not understood) gets the field ``refused``, a sentence for the agent, which `judge`
    denies. ``input_blob`` ({sha, bytes}) stands in for an input too large to be repeated in the log.
    """
    asked = {k: v for k, v in input.items() if k != "why"}
    found = outcome(tool, asked, facts)
    action: dict[str, Any] = {
        "v": 1,
        "session": sid,
        "call": call_id,
        "tool": tool,
        "tool_use_id": tool_use_id,
        "kind": found.kind,
        "input_sha": hashlib.sha256(canonical(asked)).hexdigest(),
        "cwd": found.cwd,
        "timeout_s": _timeout(asked.get("timeout_s"), facts.timeout_s),
        "access": found.access,
        "output_bytes": facts.output_bytes,
        "env": dict(facts.open_env if found.access in ("unfenced", "push") else facts.env),
        "fence": _fence(found, facts),
        "effects": list(found.effects),
    }
    if input_blob is not None:
        action["input_blob"] = dict(input_blob)
    else:
        action["input"] = (
            {**asked, "argv": push.clean_argv(asked["argv"], facts.remotes)}
            if found.kind == "push" and "argv" in asked
            else asked
        )
    action.update(_what(tool, asked, found, facts))
    if found.outside:
        action["outside"] = list(found.outside)
    if found.refused:
        action["refused"] = found.refused
    if found.effects or facts.snapshot:
        action["pre"] = _world(found, facts)
    if facts.unprotected and NO_UNDO in found.effects:
        action["unprotected"] = facts.unprotected
    try:
        canonical(action).decode("utf-8")
    except UnicodeDecodeError:
        # Such a name would change on its way through JSON, and then what is hashed would not be what is stored.
        action = _readable(action)
        action["refused"] = (
            "a file name involved is not valid UTF-8, which cannot be recorded faithfully; rename it first"
        )
    return action


def _world(found: Outcome, facts: Facts) -> dict[str, Any]:
    """What must still be so when it starts: the world that the decision was given in."""
    pre: dict[str, Any] = {
        "files": dict(sorted(facts.hashes.items())),
        "head": facts.head,
        "worktree": dict(facts.identity),
    }
    if found.kind in ("exec", "shell", "check"):
        pre["cwd"] = dict(facts.cwd_identity)
        if facts.program:
            pre["program"] = dict(facts.program)
        if facts.snapshot:
            pre["snapshot"] = facts.snapshot
    if found.kind == "push" and facts.target is not None and facts.target.seen is not None:
        pre["url"] = facts.target.seen
    return pre


def _readable(value: Any) -> Any:
    """The same structure with lone surrogates written out."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, dict):
        return {_readable(k): _readable(v) for k, v in value.items()}
    return [_readable(v) for v in value] if isinstance(value, list) else value


def _timeout(asked: object, limit: int) -> int:
    return min(asked, limit) if isinstance(asked, int) and not isinstance(asked, bool) and asked > 0 else limit


def _fence(found: Outcome, facts: Facts) -> dict[str, Any]:
    named = {"hosts": list(found.hosts)} if found.hosts else {}
    return {
        "worktree": facts.worktree,
        "read": list(facts.fence.read),
        "write": list(facts.fence.write),
        "binds": [list(b) for b in facts.fence.binds],
        "network": found.access in ("network", "push", "unfenced") and not found.hosts,
        "fenced": found.access != "unfenced",
        **named,
    }


def _what(tool: str, asked: Mapping[str, Any], found: Outcome, facts: Facts) -> dict[str, Any]:
    if found.kind == "file":
        fields: dict[str, Any] = {"path": found.path}
        if tool in WRITING_TOOLS:
            content = asked.get("content", asked.get("new", ""))
            fields["content_sha"] = hashlib.sha256(str(content).encode("utf-8", "surrogatepass")).hexdigest()
        return fields
    if found.kind == "push":
        argv = push.clean_argv(
            asked["argv"] if "argv" in asked else shell.only_command(facts.tree) or [], facts.remotes
        )
        return {"argv": argv, **found.push}
    if found.kind == "exec":
        return {"argv": list(asked["argv"])}
    return {"script": asked["command"] if found.kind == "check" else asked["script"]}
