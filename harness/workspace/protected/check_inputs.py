"""Which files of the commit that a worktree began from decide whether work is done, by its own text. Blocking.

All raise GitFailed.
"""

from __future__ import annotations

import functools
import os
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

from harness.checks import check_settings, runner_config
from harness.checks.check_scripts import Named, named
from harness.checks.protected_files import CONFIGURATION, EXPECTED, IN_PARTS, TESTS, Rules, chosen, helps, may_help
from harness.domain.path_patterns import fits
from harness.workspace.git import commit_files
from harness.workspace.git.run import Git
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree.scan import GITLINK, item_name

MAX_DECIDING = 500
"""Tests and check scripts that are asked which data they name."""
MAX_ASKED = 100
"""Files of configuration that are asked what they have loaded."""
HEAD = 64 << 10
"""Bytes of a file that are read."""
_LOADS = ("conftest.py", *(one for one in CONFIGURATION if not one.endswith("/**")))
_NO_PACKAGE = frozenset(
    {"sh", "bash", "dash", "env", "make", "git", "grep", "sed", "awk", "diff", "cmp", "cat", "find", "test", "timeout"}
)
"""Programs of a system that no package brings into an environment."""
_NODE = frozenset({"node", "npm", "npx"})
"""Those that no package brings beside the others of Node."""
_SYSTEM = "/usr/local/bin:/usr/bin:/bin"


_KEPT = 16
"""Sessions whose files that decide are remembered: a commit stays what it is, and is asked about after each call."""


@functools.lru_cache(maxsize=_KEPT)
def guarded(tree: Worktree, rules: Rules) -> frozenset[str]:
    """Those files and symbolic links of the base that decide."""
    base = [path for path, entry in commit_files.of(tree.common, tree.base).items() if entry.mode != GITLINK]
    run = run_by(tree, rules)
    more = _helpers(tree, base) | _compared(tree, base, run) | _loaded(tree, base, run) | tests_by_name(tree, base, run)
    return chosen(base, rules, run, more)


def run_by(tree: Worktree, rules: Rules) -> Named:
    """What the checks come to run and read in."""
    return named(rules.commands, lambda path: at_start(tree, path))


def at_start(tree: Worktree, path: str) -> str:
    """The beginning of a file of the base, as text; empty when it has none."""
    return _text_of(str(tree.common), tree.base, path)


@functools.lru_cache(maxsize=512)
def _text_of(common: str, commit: str, path: str) -> str:
    _, text = Git(Path(common)).call("cat-file", "blob", f"{commit}:{path}", ok=(0, 128), limit=HEAD)
    return text[:HEAD].decode("utf-8", "replace")


def excuses(tree: Worktree, protected: Collection[str]) -> bool:
    """Whether a protected file of the base says itself that tests are skipped or expected to fail."""
    said = Git(tree.common).run("grep", "-lziE", "skip|xfail|expectedFailure", tree.base, "--", ok=(0, 1))
    names = said.decode("utf-8", "surrogateescape").split("\0")
    return not set(protected).isdisjoint(name.partition(":")[2] for name in names)


def tests_by_name(tree: Worktree, base: Collection[str], run: Named) -> frozenset[str]:
    """Tests in Python whose names say nothing: a check or the configuration of a runner says that they are some."""
    runs = runner_config.running(run.texts)
    forms = (*runner_config.looked_for(runs), *runner_config.names(text for _, text in _configuration(tree, base)))
    files = [path for path in base if path.endswith(".py") and not fits(path, TESTS)]
    named_by = runner_config.aimed(files, runs) | runner_config.asked(runs)
    asked = [path for path in sorted(files) if path in named_by or fits(path, forms)][:MAX_DECIDING]
    return frozenset(path for path in asked if runner_config.only_tests(at_start(tree, path)))


def stands_before(root: Path, path: str) -> bool:
    """Whether a program of the worktree would be found in the place of one of the system."""
    name = item_name(path)
    if in_environment(root, path) and name not in (_NO_PACKAGE | _NODE if _of_node(path) else _NO_PACKAGE):
        return False
    return shutil.which(name, path=f"{_SYSTEM}:{os.environ.get('PATH', '')}") is not None


def in_environment(root: Path, path: str) -> bool:
    """Whether a file lies among the programs of an environment, which work may make for itself."""
    return _of_node(path) or os.path.lexists(root / os.path.dirname(path) / ".." / "pyvenv.cfg")


def _of_node(path: str) -> bool:
    return os.path.dirname(path).endswith("node_modules/.bin")


def _helpers(tree: Worktree, base: Collection[str]) -> frozenset[str]:
    """Files outside the folders of tests that help them."""
    return frozenset(path for path in base if may_help(path) and helps(at_start(tree, path)))


def _compared(tree: Worktree, base: Collection[str], run: Named) -> frozenset[str]:
    """Data that is expected, by its name, where a check or a test names it."""
    found = [path for path in base if EXPECTED.search(path)]
    if not found:
        return frozenset()
    deciding = [path for path in sorted(base) if fits(path, TESTS) or path in run.runs][:MAX_DECIDING]
    texts = [*run.texts, *(at_start(tree, path) for path in deciding)]
    return frozenset(path for path in found if any(path.rpartition("/")[2] in text for text in texts))


def _loaded(tree: Worktree, base: Collection[str], run: Named) -> frozenset[str]:
    """What a runner loads beside the tests because its command or its configuration says so."""
    found = runner_config.files(runner_config.commands(run.texts), "", base)
    for path, text in _configuration(tree, base):
        found |= runner_config.files([text], path.rpartition("/")[0], base)
    return frozenset(found)


def _configuration(tree: Worktree, base: Collection[str]) -> Iterator[tuple[str, str]]:
    """Files that say how to check, with what of their text does."""
    asked = [path for path in sorted(base) if fits(path, _LOADS)]
    for path in asked[:MAX_ASKED]:
        text = at_start(tree, path)
        if (name := item_name(path)) in IN_PARTS:
            parts = check_settings.of(name, text.encode())
            text = parts.decode() if parts is not None else ""
        yield path, text
