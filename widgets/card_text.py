"""What an approval card says, as text. Pure: built from the action alone; the agent's claim comes last, apart and
labelled.

Every line is safe display text. Each argument and each script line stands by itself, so that two different actions
never read the same; the hash of the whole action, computed here from what is shown, closes the account.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from rich.cells import chop_cells

from harness.events import trouble
from harness.events.action import action_hash
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
_KINDS = {
    "tool": "asks to leave the fence",
    "cap": "has reached a cap",
    "auth": "and all that use its key cannot log in",
    "endpoint": "and all that use its key are refused",
    "in_doubt": "started something and nobody knows whether it happened",
    "question": "asks you",
    "refusal": "was refused by the model",
    "restart": "has failed and waits for you",
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
    action = view.action
    if view.kind != "tool" or action is None:
        out += [CardLine(line) for line in to_display_lines(view.title)]
    if action is None:
        if view.kind == "tool":
            out.append(CardLine("What it would run cannot be read. Deny it.", "warn"))
        out += [*_details(view.detail), *_next(view.kind)]
    else:
        if view.kind == "tool":
            out += _changed_since(view.detail)
            out += [CardLine("• " + text, "warn") for text in consequences(action)]
            out += [CardLine("• " + text, "warn") for text in left_out(view.diff)]
        else:
            out += [*_details(view.detail), *_next(view.kind)]
        out += [CardLine(""), *will_run(action, WILL_RUN if view.kind == "tool" else "WAS TO RUN")]
        out += [CardLine(""), *_reach(action), *_preconditions(action)]
        out += _rule(view)
        out += _fine_print(action)
        out += _hashes(view, action)
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


def consequences(action: Mapping[str, Any]) -> list[str]:
    """What leaves the fence, one sentence an effect."""
    writes = action.get("tool") in ("write_file", "edit_file")
    found = [_consequence(str(effect), writes) for effect in _list(action.get("effects"))] or [
        "It stays inside the fence."
    ]
    why = action.get("unprotected")
    return [*found, f"Why it cannot be undone: {to_display(str(why))}."] if why is not None else found


def _consequence(effect: str, writes: bool) -> str:
    name, _, rest = effect.partition(":")
    shown = to_display(rest)
    if effect == "network":
        return (
            "It can reach any host, including services on this machine's loopback. What it sends cannot be taken back."
        )
    if name == "network":
        return f"It can reach {_host_words(rest)}. What it sends cannot be taken back."
    if effect == "unfenced":
        return "It runs without a fence: with all your rights, on all your files."
    if effect == "push-force":
        return "It can overwrite commits on the remote."
    if name == "push":
        return f"It publishes to {shown}. Others can see it at once."
    if name == "outside":
        return f"It {'writes' if writes else 'reads or writes'} {shown}, outside its worktree."
    if effect == "no-undo":
        return "What it changes in its worktree cannot be undone: the state before it cannot be kept."
    return to_display(effect)


def _host_words(host: str) -> str:
    """A named host, with the ports that it means."""
    return to_display(host) + ("" if ":" in host.rpartition("]")[2] else " at ports 80 and 443")


def will_run(action: Mapping[str, Any], label: str = WILL_RUN) -> list[CardLine]:
    """Exactly what runs: each argument, or each script line, or the file tool and its input, and where."""
    tool = to_display(str(action.get("tool", "?")))
    out: list[CardLine] = []
    if isinstance(action.get("argv"), list):
        argv = _list(action["argv"])
        out.append(CardLine(f"{label}  {tool}, {len(argv)} argument{'s' if len(argv) != 1 else ''}, no shell", "label"))
        width = len(str(len(argv) - 1))
        for i, part in enumerate(argv):
            out += [CardLine(f"  {i:>{width}}  “{to_display(str(part))}”", "run"), *_letters(str(part))]
    elif "script" in action:
        lines = str(action["script"]).split("\n")
        out.append(
            CardLine(f"{label}  {tool}, a shell script of {len(lines)} line{'s' if len(lines) != 1 else ''}", "label")
        )
        width = len(str(len(lines)))
        for i, text in enumerate(lines, 1):
            out += [CardLine(f"  {i:>{width}} │{code_display(text)}", "run"), *_letters(text)]
    else:
        out.append(CardLine(f"{label}  {tool}", "label"))
        out += [
            CardLine(f"  “{to_display(str(action.get('path', '')))}”", "run"),
            *_letters(str(action.get("path", ""))),
        ]
        given = action.get("input")
        for name, value in sorted(given.items()) if isinstance(given, dict) else ():
            if name != "path":
                out += _value(str(name), value)
        if "content_sha" in action:
            out.append(CardLine(f"  SHA-256 of the new text  {to_display(str(action['content_sha']))}", "dim"))
    blob = action.get("input_blob")
    if isinstance(blob, dict):
        out.append(
            CardLine(
                f"  input of {to_display(str(blob.get('bytes')))} bytes, SHA-256 {to_display(str(blob.get('sha')))}",
                "dim",
            )
        )
    if "url" in action or "remote" in action:
        out += [
            CardLine(
                f"  remote  “{to_display(str(action.get('remote', '')))}”  {to_display(str(action.get('url', '')))}",
                "run",
            )
        ]
        out += _letters(str(action.get("url", "")) + str(action.get("remote", "")))
        for spec in _list(action.get("refspecs")):
            new, ref, old = (
                ([str(part) for part in spec] + ["", "", ""])[:3]
                if isinstance(spec, (list, tuple))
                else (str(spec), "", "")
            )
            out.append(CardLine(f"  {to_display(new)} → {to_display(ref)}, now {to_display(old)}", "run"))
    out.append(CardLine(f"  in  “{to_display(str(action.get('cwd', '')))}”", "run"))
    return out


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


def _reach(action: Mapping[str, Any]) -> list[CardLine]:
    fence = action.get("fence")
    fence = fence if isinstance(fence, dict) else {}
    out = [CardLine("MAY REACH", "label")]
    fenced = fence.get("fenced", action.get("access") != "unfenced")
    if not fenced:
        out.append(CardLine("  everything you can: no fence", "warn"))
    network = bool(fence.get("network"))
    hosts = [to_display(str(host)) for host in _list(fence.get("hosts"))]
    said = "yes" if network else "no"
    if hosts:
        said = f"only {', '.join(hosts)}"
    warn = "warn" if network or hosts else "text"
    out.append(CardLine(f"  network  {said}   access  {to_display(str(action.get('access', '')))}", warn))
    if action.get("kind") == "push":
        out += _push_reach(action)
    for what, paths in (("writes", fence.get("write")), ("outside", action.get("outside"))):
        out += [
            CardLine(f"  {what}  “{to_display(str(path))}”", "warn" if what == "outside" else "text")
            for path in _list(paths)
        ]
    return out


def _push_reach(action: Mapping[str, Any]) -> list[CardLine]:
    """What of the user's takes part in a push: git itself, address rewrites, and the hooks of a remote on this
    machine.
    """
    out = [
        CardLine(
            "  git runs outside the fence, as you, with your own git credentials; no hook of your repository runs",
            "warn",
        )
    ]
    named = action.get("named")
    address = str(named.get("address", "")) if isinstance(named, dict) else ""
    local = action.get("local")
    if isinstance(local, dict):
        runs = [to_display(str(name)) for what in ("hooks", "programs") for name in _list(local.get(what))]
        said = f"its hooks and programs run as you: {', '.join(runs)}" if runs else "it has no hooks"
        out.append(
            CardLine(
                f"  the remote is a folder of this machine, “{to_display(str(local.get('folder', '')))}”; {said}",
                "warn",
            )
        )
    elif address and address != action.get("url"):
        out.append(
            CardLine(
                f"  the address is written “{to_display(address)}”; your git configuration leads it to the one shown"
                " above",
                "warn",
            )
        )
    if action.get("note"):
        out.append(CardLine(f"  {to_display(str(action['note']))}", "dim"))
    return out


def _fine_print(action: Mapping[str, Any]) -> list[CardLine]:
    """What is the same for nearly every action of a session: shown last, because it is bound by the decision all the
    same.
    """
    fence = action.get("fence")
    fence = fence if isinstance(fence, dict) else {}
    out = [CardLine("FINE PRINT", "label")]
    out += [CardLine(f"  reads  “{to_display(str(path))}”", "dim") for path in _list(fence.get("read"))]
    for bind in _list(fence.get("binds")):
        if isinstance(bind, (list, tuple)):
            out.append(CardLine("  bound  " + "  ".join(f"“{to_display(str(part))}”" for part in bind), "dim"))
    env = action.get("env")
    if isinstance(env, dict):
        pairs = "  ".join(f"{to_display(str(name))}=“{to_display(str(value))}”" for name, value in sorted(env.items()))
        out.append(CardLine(f"  environment  {pairs or 'empty'}", "dim"))
    out.append(CardLine(f"  stopped after {to_display(str(action.get('timeout_s', '?')))} s", "dim"))
    return out


def _preconditions(action: Mapping[str, Any]) -> list[CardLine]:
    pre = action.get("pre")
    if not isinstance(pre, dict):
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


def _hashes(view: ApprovalView, action: dict[str, Any]) -> list[CardLine]:
    try:
        here = action_hash(action)
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
        if kind == "tool"
        else [
            CardLine(""),
            CardLine("UNTIL YOU ANSWER", "label"),
            CardLine("  " + to_display(trouble.requested(kind).next)),
        ]
    )


def _details(detail: Mapping[str, Any]) -> list[CardLine]:
    money = str(detail.get("cap", "")).endswith("usd")
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
