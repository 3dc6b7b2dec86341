"""What an action would do, in words and to the letter. Pure: built from the action alone.

Every line is safe display text; two different actions never read the same.
"""

from __future__ import annotations

import shlex
import unicodedata
from collections.abc import Collection, Sequence

from harness.domain.actions.action import (
    Action,
    CheckAction,
    ExecAction,
    FileAction,
    PushAction,
    RecordAction,
    ShellAction,
)
from harness.domain.actions.effect import NETWORK, NO_UNDO, PUSH_FORCE, UNSANDBOXED, Effect
from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import counted
from harness.tools import registry
from widgets.card.card_line import CardLine
from widgets.diff.patch import code_display

WILL_RUN = "WILL RUN"
_SENT = "What it sends cannot be taken back."
_SHA = 12


def wants(action: Action) -> str:
    """What it asks for, as it follows the session's name."""
    effects = action.effects
    if isinstance(action, PushAction):
        return "wants to push to " + to_display(action.remote or action.to.url)
    if UNSANDBOXED in effects:
        return "wants to run outside the sandbox, with all your rights"
    if isinstance(action, FileAction) and action.outside:
        verb = "write" if registry.writes_file(action.tool) else "read"
        return f"wants to {verb} a file outside its worktree"
    if any(effect == NETWORK or effect.host is not None for effect in effects):
        return "wants to use the network"
    return "asks to leave the sandbox" if effects else "asks before it goes on"


def consequences(action: Action, told: Collection[Effect] = ()) -> list[str]:
    """What leaves the sandbox, a sentence each; ``told`` are effects that the card says elsewhere."""
    writes = registry.writes_file(action.tool)
    plain = [effect for effect in action.effects if effect.host is not None and not _names_port(effect.host)]
    found = [] if action.effects else ["It stays inside the sandbox."]
    for effect in action.effects:
        if effect in told or effect in plain[1:]:
            continue
        found.append(_reaches(plain) if effect in plain else _consequence(effect, writes))
    why = action.unprotected
    return [*found, f"Why it cannot be undone: {to_display(why)}."] if why else found


def named_by(action: Action) -> frozenset[Effect]:
    """The effects of which all is said where the card names what is wanted, and what runs."""
    if isinstance(action, PushAction):
        return frozenset()
    alone = isinstance(action, FileAction) and action.outside == (action.path,)
    return frozenset(
        effect
        for effect in action.effects
        if effect == UNSANDBOXED or (alone and effect.is_outside and effect.what == action.outside[0])
    )


def _reaches(plain: Sequence[Effect]) -> str:
    hosts = ", ".join(to_display(effect.host or "") for effect in plain)
    return f"It can reach {hosts} at ports 80 and 443. {_SENT}"


def _consequence(effect: Effect, writes: bool) -> str:
    shown = to_display(effect.what or "")
    if effect == NETWORK:
        return f"It can reach any host, including services on this machine's loopback. {_SENT}"
    if effect.host is not None:
        return f"It can reach {to_display(effect.host)}. {_SENT}"
    if effect == UNSANDBOXED:
        return "It runs outside the sandbox, with all your rights."
    if effect == PUSH_FORCE:
        return "It can overwrite commits on the remote."
    if effect.publishes:
        return f"It publishes to {shown}. Others see it at once."
    if effect.is_outside:
        return f"It {'writes' if writes else 'reads or writes'} {shown}, outside its worktree."
    if effect == NO_UNDO:
        return "What it changes in its worktree cannot be undone: the state before it cannot be kept."
    return to_display(str(effect))


def _names_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]


def will_run(
    action: Action, label: str = WILL_RUN, *, compared: bool = False, told: Collection[str] = ()
) -> list[CardLine]:
    """Exactly what runs: the command, the script, or the file tool and its input, and where.

    ``compared``: what a file tool writes is shown as a comparison already; ``told``: refs of which is said already what
    comes there, and in place of what.
    """
    tool = to_display(action.tool)
    if isinstance(action, ExecAction | PushAction):
        out = _command(f"{label}  {tool}", action.argv)
    elif isinstance(action, ShellAction | CheckAction):
        out = _script(f"{label}  {tool}", action.script)
    elif isinstance(action, RecordAction):
        out = [CardLine(f"{label}  {tool}, of what Watchfloor keeps itself", "label"), *inputs(action)]
    else:
        out = [CardLine(f"{label}  {tool}  “{to_display(action.path)}”", "run"), *_letters(action.path)]
        out += [] if compared else [*content_hash(action), *inputs(action)]
    if (blob := action.input_blob) is not None:
        out.append(CardLine(f"  input of {blob.bytes} bytes, SHA-256 {to_display(blob.sha)}", "dim"))
    if isinstance(action, PushAction):
        url = action.to.url
        out.append(CardLine(f"  to  {to_display(url)}", "run"))
        out += _letters(url + action.remote)
        for new, ref, old in action.to.refspecs:
            if ref not in told:
                out.append(CardLine(f"  {_short(new)} → {to_display(ref)}, now {_short(old)}", "run"))
    if action.job:
        beside = "changes no file" if UNSANDBOXED in action.effects else "may change every file that it uses"
        text = f"  as a job: it goes on after its call, for up to {action.timeout_s:,} s; meanwhile its agent {beside}"
        out.append(CardLine(text, "warn"))
    if action.cwd != action.sandbox.worktree:
        out.append(CardLine(f"  in  “{to_display(action.cwd)}”", "run"))
    return out


def _short(commit: str) -> str:
    """The beginning of a commit's name; the whole is among the facts."""
    return to_display(commit[:_SHA])


def _command(head: str, argv: Sequence[str]) -> list[CardLine]:
    """One line, quoted as a shell would need it; each argument by itself is among the facts."""
    return [CardLine(f"{head}  {to_display(shlex.join(argv))}", "run"), *_letters("".join(argv))]


def arguments(argv: Sequence[str]) -> list[CardLine]:
    """Each argument by itself, numbered."""
    out = [CardLine(f"EACH ARGUMENT BY ITSELF ({len(argv)})", "label")]
    width = len(str(len(argv) - 1))
    for i, part in enumerate(argv):
        out += [CardLine(f"  {i:>{width}}  “{to_display(part)}”", "run"), *_letters(part)]
    return out


def _script(head: str, script: str) -> list[CardLine]:
    lines = script.split("\n")
    return [CardLine(f"{head}, a shell script of {counted(len(lines), 'line')}", "label"), *numbered(lines)]


def numbered(lines: Sequence[str], first: int = 1) -> list[CardLine]:
    """Lines of a script by their numbers, the first of which is ``first``."""
    width = len(str(first + len(lines) - 1))
    out = []
    for i, text in enumerate(lines, first):
        out += [CardLine(f"  {i:>{width}} │{code_display(text)}", "run"), *_letters(text)]
    return out


def content_hash(action: FileAction) -> list[CardLine]:
    """What names the text that a file tool was given."""
    if action.content_sha is None:
        return []
    return [CardLine(f"  SHA-256 of the new text  {to_display(action.content_sha)}", "dim")]


def inputs(action: Action) -> list[CardLine]:
    """What was given beside the path."""
    given = sorted((action.input or {}).items())
    return [line for name, value in given if name != "path" for line in _value(name, value)]


def _value(name: str, value: object) -> list[CardLine]:
    if isinstance(value, str) and "\n" in value:
        lines = value.split("\n")
        return [
            CardLine(f"  {to_display(name)}, {len(lines)} lines", "dim"),
            *(CardLine(f"  │{code_display(line)}", "run") for line in lines),
        ]
    return [CardLine(f"  {to_display(name)}  “{to_display(str(value))}”", "run")]


def _letters(text: str) -> list[CardLine]:
    """Name the letters that only look like plain ones."""
    strange = list(dict.fromkeys(ch for ch in text if not ch.isascii() and ch.isalnum()))
    if not strange:
        return []
    named = ", ".join(
        f"{to_display(ch)} U+{ord(ch):04X} {unicodedata.name(ch, 'unnamed').lower()}" for ch in strange[:6]
    )
    more = f" and {len(strange) - 6} more" if len(strange) > 6 else ""
    return [CardLine(f"      ▲ not plain ASCII: {named}{more}", "warn")]
