"""The machine facts of an action in groups: a person reads them the first time, and again when one is unusual. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from harness.domain.actions.action import Action, ExecAction, FileAction, PushAction
from harness.domain.calls.card_facts import CardNotes, Fact
from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import counted
from widgets.card.card_action import arguments, content_hash, inputs
from widgets.card.card_line import CardLine

_FILES = "files"
_FIRST = "FACTS: nothing of this kind was approved before"
_PLAIN = re.compile(r"[A-Za-z0-9_@%+:,./-]+")


@dataclass(frozen=True, slots=True)
class Facts:
    """The lines that have to be seen before anything is approved, with what stands above them (``words``), and the
    others, with what stands in their place while they are folded (``rest``).
    """

    needed: tuple[CardLine, ...]
    others: tuple[CardLine, ...]
    words: str
    rest: str


def facts(action: Action, notes: CardNotes | None, *, runs: bool, closing: Collection[CardLine]) -> Facts:
    """``notes`` say what is unusual; without them all of it has to be seen.

    ``runs``: a decision lets it run; ``closing`` are lines that stand last and never count.
    """
    unusual = set(Fact) if notes is None else set(notes.unusual)
    if notes is None and not runs:
        unusual = set()
    needed: list[CardLine] = []
    others: list[CardLine] = []
    for fact, lines in groups(action):
        (needed if fact in unusual else others).extend(lines)
    if isinstance(action, FileAction):
        others += [*content_hash(action), *inputs(action)]
    if isinstance(action, PushAction):
        others += commits(action)
    others += closing
    first = notes is None or notes.first
    words = _FIRST if first else "FACTS: those that differ from what you approved before"
    return Facts(tuple(needed), tuple(others), words, _rest(len(others), notes, begun=bool(needed)))


def _rest(count: int, notes: CardNotes | None, *, begun: bool) -> str:
    """What is said of the facts that nobody has to read; ``begun``: others stand above them."""
    words = f"{counted(count, 'more line' if begun else 'line')} of facts"
    if notes is None:
        return words
    if notes.routine:
        return f"{words}, same shape as {notes.before:,} approved before"
    if begun and not notes.first:
        return f"{words}, as you approved them before"
    return f"{words}, nothing unusual" + ("" if begun else "; the first of its kind")


def commits(action: PushAction) -> list[CardLine]:
    """The whole names of the commits of a push."""
    return [
        CardLine(f"  {to_display(new)} → {to_display(ref)}, now {to_display(old)}", "dim")
        for new, ref, old in action.to.refspecs
    ]


def groups(action: Action) -> list[tuple[Fact, list[CardLine]]]:
    """The facts of an action by their groups, in the order in which they are read."""
    found = [(Fact.ARGUMENTS, arguments(action.argv))] if isinstance(action, ExecAction | PushAction) else []
    found.append((Fact.PLACE, [CardLine("RUNS IN", "label"), CardLine(f"  “{to_display(action.cwd)}”")]))
    found.append((Fact.REACH, _reach(action)))
    if isinstance(action, PushAction):
        found.append((Fact.DESTINATION, _push_reach(action)))
    found += [
        (Fact.FOLDERS, _folders(action)),
        (Fact.WORLD, _preconditions(action)),
        (Fact.ENVIRONMENT, _environment(action)),
        (Fact.LIMITS, [CardLine(f"  stopped after {action.timeout_s} s", "dim")]),
    ]
    return found


def _reach(action: Action) -> list[CardLine]:
    sandbox = action.sandbox
    hosts = [to_display(host) for host in sandbox.hosts]
    said = "yes" if sandbox.network else "no"
    if hosts:
        said = f"only {', '.join(hosts)}"
    warn = "warn" if sandbox.network or hosts else "text"
    out = [CardLine(f"MAY REACH  network  {said}   access  {to_display(action.access)}", warn)]
    if not sandbox.sandboxed:
        out.append(CardLine("  everything you can: no sandbox", "warn"))
    return out + [CardLine(f"  outside  “{to_display(path)}”", "warn") for path in action.outside]


def _push_reach(action: PushAction) -> list[CardLine]:
    """What of the user's takes part in a push: git itself, address rewrites, and the hooks of a remote on this
    machine.
    """
    out = [
        CardLine(
            "  git runs as you, with your credentials; no hook of yours",
            "warn",
        )
    ]
    address = action.to.named.address if action.to.named is not None else ""
    local = action.to.local
    if local is not None:
        runs = [to_display(name) for name in (*local.hooks, *local.programs)]
        said = f"its hooks and programs run as you: {', '.join(runs)}" if runs else "it has no hooks"
        where = "" if local.folder == action.to.url else f", “{to_display(local.folder)}”"
        out.append(CardLine(f"  the remote is a folder of this machine{where}; {said}", "warn"))
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


def _folders(action: Action) -> list[CardLine]:
    sandbox = action.sandbox
    out = [CardLine(f"  writes  “{to_display(path)}”") for path in sandbox.write]
    out += [CardLine(f"  reads  “{to_display(path)}”", "dim") for path in sandbox.read]
    for bind in sandbox.binds:
        out.append(CardLine("  bound  " + "  ".join(f"“{to_display(part)}”" for part in bind), "dim"))
    return out


def _environment(action: Action) -> list[CardLine]:
    # the short ones first, which leaves the fewest rows half empty
    pairs = " ".join(sorted((f"{_bare(name)}={_bare(value)}" for name, value in action.env.items()), key=_by_length))
    return [CardLine(f"  environment  {pairs or 'empty'}", "dim")]


def _by_length(text: str) -> tuple[int, str]:
    return len(text), text


def _bare(text: str) -> str:
    """Text that reads in one way only as it is, any other in quotation marks."""
    return text if _PLAIN.fullmatch(text) else f"“{to_display(text)}”"


def _preconditions(action: Action) -> list[CardLine]:
    pre = action.pre
    if pre is None:
        return []
    out = [CardLine("CHECKED AGAIN JUST BEFORE IT RUNS", "label")]
    for name, value in sorted(pre.items()):
        if isinstance(value, dict) and name != _FILES:
            out.append(CardLine(f"  {to_display(str(name))}  {_told(value)}", "dim"))
        elif isinstance(value, dict):
            alike: dict[str, list[str]] = {}
            for key, item in sorted(value.items()):
                alike.setdefault(to_display(str(item)), []).append(str(key))
            out += [
                CardLine(f"  {to_display(str(name))}  {_by_folder(keys)}  {item}", "dim")
                for item, keys in alike.items()
            ]
        else:
            out.append(CardLine(f"  {to_display(str(name))}  {to_display(str(value))}", "dim"))
    return out


def _told(values: Mapping[str, object]) -> str:
    """What names one thing of the world, in a line."""
    return "  ".join(f"{_bare(str(key))} {_bare(str(item))}" for key, item in sorted(values.items()))


def _by_folder(paths: Sequence[str]) -> str:
    """These paths, several of one folder with its name said once."""
    folders: dict[str, list[str]] = {}
    for path in paths:
        folder, slash, _ = path.rpartition("/")
        folders.setdefault(folder + slash, []).append(path)
    return " ".join(_of_folder(folder, within) for folder, within in folders.items())


def _of_folder(folder: str, paths: Sequence[str]) -> str:
    if len(paths) == 1 or not folder:
        return " ".join(f"“{to_display(path)}”" for path in paths)
    names = " ".join(f"“{to_display(path[len(folder) :])}”" for path in paths)
    return f"in “{to_display(folder)}” {names},"
