"""What a check reads, compared with the commit that the session began from: what is gone, ignored now, or stubbed.
Blocking.

Facts for whoever reads the verdict or the change; nothing is put back by them, since moving and deleting files is work.
All raise WorkspaceError.
"""

from __future__ import annotations

import os.path
from collections.abc import Collection, Iterator, Sequence

from harness.checks.check_scripts import Named, simple_commands
from harness.checks.protected_files import Rules
from harness.domain.steered import Steered
from harness.domain.text.formatting import counted
from harness.projections.state.protected_files import some
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.protected import check_inputs
from harness.workspace.tree.scan import GITLINK, Seen, View, folders_of, item_name, look

_WALKS = frozenset({"rg", "ruff", "flake8", "mypy", "pyright", "pylint", "bandit", "black", "isort", "eslint", "find"})
"""Programs that read the files of a whole tree where nothing else is named."""
_WALK_MORE = frozenset({"prettier", "biome", "stylelint", "tsc", "shellcheck", "yamllint", "codespell", "vulture"})
_TYPES = frozenset({"mypy", "pyright", "basedpyright", "pyre", "pytype", "ty"})
"""Programs that read a stub in place of the module beside it."""
_MOST = 12


def facts(tree: Worktree, commands: Sequence[str], rules: Rules) -> list[Steered]:
    """What these checks read and do not find as it was at the start; ``rules`` say what is put back before they run."""
    run = check_inputs.run_by(tree, Rules(tuple(commands)))
    with look(tree, tree.base) as view:
        base = {path for path, entry in view.entries.items() if entry.mode != GITLINK}
        folders = folders_of(base)
        named = {name for name in _words(run) if name in base or name in folders}
        walks = _walks(run)
        if not (named or walks):
            return []
        seen = view.walk()
        kept = check_inputs.guarded(tree, rules)
        gone = base - set(seen.tracked) - kept
        found = [*_gone(named, gone, base), *(_gone_anywhere(gone) if walks and not named - {""} else [])]
        found += _ignored(view, seen, base)
        if _TYPES & set(_words(run)):
            found += _stubbed(base, seen)
    return found[:_MOST]


def _words(run: Named) -> Iterator[str]:
    """The words of all that the checks come to run, as paths of the worktree."""
    for words in (words for text in run.texts for words in simple_commands(text)):
        yield from (os.path.normpath(word.partition("::")[0]) for word in words if word and not word.startswith("-"))


def _walks(run: Named) -> bool:
    for words in (words for text in run.texts for words in simple_commands(text)):
        if (_WALKS | _WALK_MORE) & set(words):
            return True
        if "grep" in words and any(word.startswith("-") and "r" in word.lower() for word in words):
            return True
    return False


def _gone(named: Collection[str], gone: Collection[str], base: Collection[str]) -> Iterator[Steered]:
    for name in sorted(named):
        if name in gone:
            yield Steered(name, 0, "a check reads it, and it is not there any more")
            continue
        below = [path for path in base if path.startswith(f"{name}/")]
        lost = sorted(set(below) & set(gone))
        if lost and len(lost) == len(below):
            yield Steered(name, 0, f"a check reads it, and none of its {len(below)} files is there any more")
        elif lost:
            yield Steered(
                name, 0, f"a check reads it, and {len(lost)} of its {len(below)} files are gone: {some(lost)}"
            )


def _gone_anywhere(gone: Collection[str]) -> Iterator[Steered]:
    if gone:
        yield Steered(
            ".", 0, f"a check reads the whole tree, and of the files of the start {some(sorted(gone))} are gone"
        )


def _ignored(view: View, seen: Seen, base: Collection[str]) -> Iterator[Steered]:
    """Files of the start that rules which are new or changed tell programs to leave out."""
    rules = [path for path in (*seen.tracked, *seen.untracked) if item_name(path) == ".gitignore"]
    changed = view.differences(Seen({path: seen.tracked[path] for path in rules if path in seen.tracked})).different
    other = sorted(path for path in rules if path not in base or path in changed)
    left_out = sorted(view.scratch.ignored(path for path in base if path in seen.tracked)) if other else []
    if left_out:
        count = counted(len(left_out), "file")
        told = f"{count} of the start ignored now, which checks may leave out: {some(left_out)}"
        yield Steered(other[0], 0, told)


def _stubbed(base: Collection[str], seen: Seen) -> Iterator[Steered]:
    new = sorted(path for path in seen.untracked if path.endswith(".pyi") and path.removesuffix("i") in base)
    for path in new:
        yield Steered(path, 0, f"is new, and a check reads it in place of {item_name(path).removesuffix('i')}")
