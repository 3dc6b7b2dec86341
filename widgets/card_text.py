"""What an approval card says, as text. Pure: built from the action alone; the agent's claim comes last, apart and
labelled.

Every line is safe display text. Each argument and each script line stands by itself, so that two different actions
never read the same; the hash of the whole action, computed here from what is shown, closes the account.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from rich.cells import chop_cells

from harness.events import tools, trouble
from harness.events.action import (
    Action,
    BadAction,
    CheckAction,
    ExecAction,
    FileAction,
    PushAction,
    RecordAction,
    ShellAction,
    Wire,
    action_hash,
    from_wire,
)
from harness.events.cap import Cap
from harness.events.effect import NETWORK, NO_UNDO, PUSH_FORCE, UNFENCED, Effect
from harness.events.request import Request
from harness.events.untrusted import to_display, to_display_lines
from harness.events.views import NOT_COMPARED, NOT_SHOWN, ApprovalView
from harness.events.words import usd
from widgets.patch import code_display, patch_display, roles

CLAIM = "CLAIMED BY THE AGENT (not verified)"
WILL_RUN = "WILL RUN"
WORDS = "THE AGENT'S WORDS (the end of its reply)"
CHANGED = "ASKED AGAIN: WHAT CHANGED SINCE YOU DECIDED"
_CONTINUED = "    ↪ "
_RISKS = {"low": "LOW RISK", "medium": "MEDIUM RISK", "high": "HIGH RISK", "critical": "CRITICAL"}
_KINDS: dict[str, str] = {
    Request.TOOL: "asks to leave the fence",
    Request.CAP: "has reached a cap",
    Request.AUTH: "and all that use its key cannot log in",
    Request.ENDPOINT: "and all that use its key are refused",
    Request.IN_DOUBT: "started something and nobody knows whether it happened",
    Request.QUESTION: "asks you",
    Request.REFUSAL: "was refused by the model",
    Request.RESTART: "has failed and waits for you",
    Request.PROTECTED: "changed files that decide whether its work is done",
    Request.PLAN: "wrote a plan from its goal, to be worked on once you accept it",
    Request.GATE: "has come to a gate of its plan",
}


@dataclass(frozen=True, slots=True)
class CardLine:
    """One line of a card: safe text, and its role (badge, head, label, run, text, dim, warn, add, remove, hunk, claim,
    rule).
    """

    text: str
    role: str = "text"


def card_lines(view: ApprovalView) -> list[CardLine]:
    """The whole card, in the order in which it should be read."""
    risk = _RISKS.get(view.risk, to_display(view.risk).upper())
    out = [CardLine(f" {risk} ", "badge-" + (view.risk if view.risk in _RISKS else "critical"))]
    out.append(
        CardLine(f"{to_display(view.session_name)} {_KINDS.get(view.kind, 'asks: ' + to_display(view.kind))}", "head")
    )
    action = _action(view.action)
    if view.kind != Request.TOOL or action is None:
        out += [CardLine(line) for line in to_display_lines(view.title)]
    if action is None:
        if view.kind == Request.TOOL:
            out.append(CardLine("What it would run cannot be read. Deny it.", "warn"))
        out += [*_details(view.detail), *_next(view.kind)]
        out += _hashes(view)
    else:
        if view.kind == Request.TOOL:
            out += _changed_since(view.detail)
            out += [CardLine("• " + text, "warn") for text in consequences(action)]
            out += [CardLine("• " + text, "warn") for text in left_out(view.diff)]
        else:
            out += [*_details(view.detail), *_next(view.kind)]
        out += [CardLine(""), *will_run(action, WILL_RUN if view.kind == Request.TOOL else "WAS TO RUN")]
        out += [CardLine(""), *_reach(action), *_preconditions(action)]
        out += _rule(view)
        out += _fine_print(action)
        out += _hashes(view)
    if words := view.detail.get("asks"):
        out += [
            CardLine(""),
            CardLine(WORDS, "claim-head"),
            *(CardLine("┊ " + line, "claim") for line in to_display_lines(str(words))),
        ]
    if view.diff:
        out += [CardLine(""), CardLine("CHANGES", "label"), *diff_lines(view.diff)]
    if view.claim:
        out += [CardLine(""), CardLine("┄" * 24, "rule"), CardLine(CLAIM, "claim-head")]
        out += [CardLine("┊ " + line, "claim") for line in to_display_lines(view.claim)]
    return out


def shown_text(view: ApprovalView) -> str:
    """The card as one text, whatever the width it is drawn in."""
    return "\n".join(line.text for line in card_lines(view))


def shown_hash(view: ApprovalView) -> str:
    """SHA-256 (hex) of the card's text: what a decision's record says was seen."""
    return sha256(shown_text(view).encode()).hexdigest()


def wrap(line: CardLine, width: int) -> list[tuple[str, str]]:
    """(mark, text) for each row of one line: nothing is cut off, continued rows carry a mark that is not part of the
    text.
    """
    first = chop_cells(line.text, max(1, width))
    if len(first) <= 1:
        return [("", line.text)]
    rest = line.text[len(first[0]) :]
    return [("", first[0]), *((_CONTINUED, part) for part in chop_cells(rest, max(1, width - len(_CONTINUED))))]


def _action(wire: Wire | None) -> Action | None:
    """The action behind a card; None when there is none, or it cannot be read."""
    try:
        return from_wire(wire) if wire is not None else None
    except BadAction:
        return None


def consequences(action: Action) -> list[str]:
    """What leaves the fence, one sentence an effect."""
    writes = tools.writes_file(action.tool)
    found = [_consequence(effect, writes) for effect in action.effects] or ["It stays inside the fence."]
    why = action.unprotected
    return [*found, f"Why it cannot be undone: {to_display(why)}."] if why else found


def _consequence(effect: Effect, writes: bool) -> str:
    shown = to_display(effect.what or "")
    if effect == NETWORK:
        return (
            "It can reach any host, including services on this machine's loopback. What it sends cannot be taken back."
        )
    if effect.host is not None:
        return f"It can reach {_host_words(effect.host)}. What it sends cannot be taken back."
    if effect == UNFENCED:
        return "It runs without a fence: with all your rights, on all your files."
    if effect == PUSH_FORCE:
        return "It can overwrite commits on the remote."
    if effect.publishes:
        return f"It publishes to {shown}. Others can see it at once."
    if effect.is_outside:
        return f"It {'writes' if writes else 'reads or writes'} {shown}, outside its worktree."
    if effect == NO_UNDO:
        return "What it changes in its worktree cannot be undone: the state before it cannot be kept."
    return to_display(str(effect))


def _host_words(host: str) -> str:
    """A named host, with the ports that it means."""
    return to_display(host) + ("" if ":" in host.rpartition("]")[2] else " at ports 80 and 443")


def will_run(action: Action, label: str = WILL_RUN) -> list[CardLine]:
    """Exactly what runs: each argument, or each script line, or the file tool and its input, and where."""
    tool = to_display(action.tool)
    if isinstance(action, ExecAction | PushAction):
        out = _arguments(f"{label}  {tool}", action.argv)
    elif isinstance(action, ShellAction | CheckAction):
        out = _script(f"{label}  {tool}", action.script)
    elif isinstance(action, RecordAction):
        out = [CardLine(f"{label}  {tool}, of what Watchfloor keeps itself", "label"), *_inputs(action)]
    else:
        out = _file(f"{label}  {tool}", action)
    if (blob := action.input_blob) is not None:
        out.append(CardLine(f"  input of {blob.bytes} bytes, SHA-256 {to_display(blob.sha)}", "dim"))
    if isinstance(action, PushAction):
        url = action.to.url
        out.append(CardLine(f"  remote  “{to_display(action.remote)}”  {to_display(url)}", "run"))
        out += _letters(url + action.remote)
        for new, ref, old in action.to.refspecs:
            out.append(CardLine(f"  {to_display(new)} → {to_display(ref)}, now {to_display(old)}", "run"))
    out.append(CardLine(f"  in  “{to_display(action.cwd)}”", "run"))
    return out


def _arguments(head: str, argv: Sequence[str]) -> list[CardLine]:
    out = [CardLine(f"{head}, {len(argv)} argument{'s' if len(argv) != 1 else ''}, no shell", "label")]
    width = len(str(len(argv) - 1))
    for i, part in enumerate(argv):
        out += [CardLine(f"  {i:>{width}}  “{to_display(part)}”", "run"), *_letters(part)]
    return out


def _script(head: str, script: str) -> list[CardLine]:
    lines = script.split("\n")
    out = [CardLine(f"{head}, a shell script of {len(lines)} line{'s' if len(lines) != 1 else ''}", "label")]
    width = len(str(len(lines)))
    for i, text in enumerate(lines, 1):
        out += [CardLine(f"  {i:>{width}} │{code_display(text)}", "run"), *_letters(text)]
    return out


def _file(head: str, action: FileAction) -> list[CardLine]:
    out = [
        CardLine(head, "label"),
        CardLine(f"  “{to_display(action.path)}”", "run"),
        *_letters(action.path),
    ]
    out += _inputs(action)
    if action.content_sha is not None:
        out.append(CardLine(f"  SHA-256 of the new text  {to_display(action.content_sha)}", "dim"))
    return out


def _inputs(action: Action) -> list[CardLine]:
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


def _reach(action: Action) -> list[CardLine]:
    fence = action.fence
    out = [CardLine("MAY REACH", "label")]
    if not fence.fenced:
        out.append(CardLine("  everything you can: no fence", "warn"))
    hosts = [to_display(host) for host in fence.hosts]
    said = "yes" if fence.network else "no"
    if hosts:
        said = f"only {', '.join(hosts)}"
    warn = "warn" if fence.network or hosts else "text"
    out.append(CardLine(f"  network  {said}   access  {to_display(action.access)}", warn))
    if isinstance(action, PushAction):
        out += _push_reach(action)
    out += [CardLine(f"  writes  “{to_display(path)}”") for path in fence.write]
    out += [CardLine(f"  outside  “{to_display(path)}”", "warn") for path in action.outside]
    return out


def _push_reach(action: PushAction) -> list[CardLine]:
    """What of the user's takes part in a push: git itself, address rewrites, and the hooks of a remote on this
    machine.
    """
    out = [
        CardLine(
            "  git runs outside the fence, as you, with your own git credentials; no hook of your repository runs",
            "warn",
        )
    ]
    address = action.to.named.address if action.to.named is not None else ""
    local = action.to.local
    if local is not None:
        runs = [to_display(name) for name in (*local.hooks, *local.programs)]
        said = f"its hooks and programs run as you: {', '.join(runs)}" if runs else "it has no hooks"
        out.append(
            CardLine(
                f"  the remote is a folder of this machine, “{to_display(local.folder)}”; {said}",
                "warn",
            )
        )
    elif address and address != action.to.url:
        out.append(
            CardLine(
                f"  the address is written “{to_display(address)}”; your git configuration leads it to the one shown"
                " above",
                "warn",
            )
        )
    if action.note:
        out.append(CardLine(f"  {to_display(action.note)}", "dim"))
    return out


def _fine_print(action: Action) -> list[CardLine]:
    """What is the same for nearly every action of a session: shown last, because it is bound by the decision all the
    same.
    """
    out = [CardLine("FINE PRINT", "label")]
    out += [CardLine(f"  reads  “{to_display(path)}”", "dim") for path in action.fence.read]
    for bind in action.fence.binds:
        out.append(CardLine("  bound  " + "  ".join(f"“{to_display(part)}”" for part in bind), "dim"))
    pairs = "  ".join(f"{to_display(name)}=“{to_display(value)}”" for name, value in sorted(action.env.items()))
    out.append(CardLine(f"  environment  {pairs or 'empty'}", "dim"))
    out.append(CardLine(f"  stopped after {action.timeout_s} s", "dim"))
    return out


def _preconditions(action: Action) -> list[CardLine]:
    pre = action.pre
    if pre is None:
        return []
    out = [CardLine("CHECKED AGAIN JUST BEFORE IT RUNS", "label")]
    for name, value in sorted(pre.items()):
        if isinstance(value, dict):
            out += [
                CardLine(f"  {to_display(str(name))}  “{to_display(str(key))}”  {to_display(str(item))}", "dim")
                for key, item in sorted(value.items())
            ]
        else:
            out.append(CardLine(f"  {to_display(str(name))}  {to_display(str(value))}", "dim"))
    return out


def _rule(view: ApprovalView) -> list[CardLine]:
    if not view.rule and not view.reason:
        return []
    return [
        CardLine("WHY YOU ARE ASKED", "label"),
        CardLine(f"  rule {to_display(view.rule)}: {to_display(view.reason)}"),
    ]


def _hashes(view: ApprovalView) -> list[CardLine]:
    """The hash of what was sent, whether or not all of it can be read."""
    if view.action is None:
        return []
    try:
        here = action_hash(view.action)
    except (ValueError, TypeError) as exc:
        return [CardLine(f"The action has no valid form ({to_display(str(exc))}). Deny it.", "warn")]
    if view.action_hash and here != view.action_hash:
        return [
            CardLine(
                f"What is shown (hash {here}) is not what was asked (hash {to_display(view.action_hash)}). Deny it.",
                "warn",
            )
        ]
    return [CardLine(f"  action hash  {here}", "dim")]


def _changed_since(detail: Mapping[str, Any]) -> list[CardLine]:
    """Why a call that was decided on is asked about again: what is no longer as it was shown then."""
    changed = [line for text in _list(detail.get("changed")) for line in to_display_lines(str(text))]
    return (
        [CardLine(CHANGED, "label"), *(CardLine("  " + line, "warn") for line in changed), CardLine("")]
        if changed
        else []
    )


def _next(kind: str) -> list[CardLine]:
    """What becomes of the session while nobody answers."""
    return (
        []
        if kind == Request.TOOL
        else [
            CardLine(""),
            CardLine("UNTIL YOU ANSWER", "label"),
            CardLine("  " + to_display(trouble.requested(kind).next)),
        ]
    )


def _details(detail: Mapping[str, Any]) -> list[CardLine]:
    cap = Cap.of(detail.get("cap"))
    money = cap is not None and cap.in_usd
    out = []
    for name, value in sorted((name, value) for name, value in detail.items() if name != "asks"):
        shown = str(value)
        if name == "part":
            shown = trouble.part(shown)
        elif money and name in ("used", "limit", "need") and isinstance(value, int):
            shown = usd(value)
        lines = to_display_lines(shown)
        out += [CardLine(f"  {to_display(str(name))}  {lines[0]}"), *(CardLine(f"    {line}") for line in lines[1:])]
    return out


def left_out(diff: str) -> list[str]:
    """What the changes below do not show, one sentence each; nothing for nearly every card."""
    marks = {
        NOT_SHOWN: "Not all of what it changes is on this card",
        NOT_COMPARED: "What it changes is not shown in its place",
    }
    return [
        f"{words}: {to_display(line[len(mark) :])}."
        for line in diff.split("\n")
        for mark, words in marks.items()
        if line.startswith(mark)
    ]


def diff_lines(diff: str) -> list[CardLine]:
    """A unified diff as card lines."""
    lines = diff.split("\n")
    names = {"add": "add", "remove": "remove", "hunk": "hunk", "context": "text"}
    made = [(line, names.get(role, "dim")) for line, role in zip(lines, roles(lines), strict=True)]
    return [
        CardLine("  " + patch_display(line), "warn" if line.startswith((NOT_SHOWN, NOT_COMPARED)) else role)
        for line, role in made
    ]


def _list(value: object) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else []
