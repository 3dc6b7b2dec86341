"""Why a check that passes says little all the same: what the agent made of the work that it is about. Blocking."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Collection, Iterator

from harness.events.ratchet import some
from harness.plan import broken, check_settings, telling
from harness.plan.broken import PYTHON
from harness.plan.patterns import fits
from harness.plan.protected import CONFIGURATION, IN_PARTS, TESTS, Rules
from harness.workspace.decisive import HEAD, at_start
from harness.workspace.errors import TooMuchToRead
from harness.workspace.ground import Ground
from harness.workspace.look import View, look
from harness.workspace.private import Worktree

MAX_FILE = 1 << 20
"""Bytes of a file of the work that is read."""
MAX_FILES = 400
"""Changed files that are read."""
_BUILDS = re.compile(r"\bcargo\b")
_DOCTESTS = re.compile(r"\bdoctest")


def of(tree: Worktree, rules: Rules, commands: Collection[str], tests: Collection[str]) -> str:
    """Why these commands say little, in words; empty when nothing speaks for that. ``tests`` are texts of tests.

    Raises WorkspaceError, OSError.
    """
    builds = any(_BUILDS.search(text) for text in commands)
    doctests = any(_DOCTESTS.search(text) for text in commands)
    told: list[str] = []
    asked = broken.asked(commands)
    looks = ""
    loose = ""
    other = ""
    data = ""
    silent = ""
    reads = bool(telling.checkers(commands))
    with look(tree, tree.base) as view:
        names = [path for path in view.entries if fits(path, TESTS)]
        for path, now in _changed(view, rules, tests, texts=doctests):
            before = at_start(tree, path) if path in view.entries else ""
            if builds or not path.endswith(".rs"):
                told += [f"{name} in {path}" for name in telling.changed(path, before, now, doctests=doctests)]
            if not path.endswith(telling.WORK):
                if not data and telling.reads(tests, path):
                    data = f"{path}, which tests name, is not what it was at the start"
                continue
            if path in view.entries and path.endswith(PYTHON) and not other and not now and _gone(view.ground, path):
                name = telling.imported((*tests, *commands), path, view.entries)
                other = name and f"{path}, which tests import as {name}, is gone, so that they pass on another copy"
            silent = silent or (_silenced(path, before, now) if reads else "")
            if not data and telling.uses(tests, path) and (name := telling.values_gone(before, now, tests)):
                data = f"{name} in {path}, which tests go through, does not hold all that it did at the start"
            if not looks and path not in asked and (word := telling.looks(before, now, names)):
                looks = f"{path} looks for what tests it ({word})"
            if not loose and telling.assertions_changed(before, now) and telling.uses(tests, path):
                loose = f"assertions in {path}, which tests use, are others than at the start"
    return f"tests are others than at the start: {some(told)}" if told else other or loose or looks or data or silent


def left_out(tree: Worktree, rules: Rules, accepted: Collection[str], commands: Collection[str]) -> str:
    """Of commands that have the work itself read: what of it the agent had them leave out, in words; empty when that
    is nothing. Raises WorkspaceError, OSError.
    """
    programs = telling.checkers(commands)
    if not programs:
        return ""
    with look(tree, tree.base) as view:
        for name in sorted(set(os.listdir(tree.root)) - set(view.entries) - set(accepted)):
            says = name not in IN_PARTS or check_settings.of(name, _text(view.ground, name).encode())
            named = name in (*IN_PARTS, "tox.ini") or any(program in name for program in programs)
            if says and named and fits(name, (*CONFIGURATION, *rules.protect)) and not fits(name, rules.free):
                return f"{name}, which says how to check, is new"
        for path, now in _changed(view, rules, ()):
            if told := _silenced(path, at_start(tree, path) if path in view.entries else "", now):
                return told
    return ""


def _silenced(path: str, before: str, now: str) -> str:
    word = telling.silences(before, now if len(before) < HEAD // 2 else now[: len(before)])
    return f"{path} tells who checks it to leave something out ({word})" if word else ""


def changed(tree: Worktree) -> frozenset[str]:
    """Files of the work in Python that are not what they were at the start, or new, but for its tests. Raises
    WorkspaceError, OSError.
    """
    with look(tree, tree.base) as view:
        try:
            seen = view.walk()
        except TooMuchToRead:
            return frozenset()
        found = {*view.differences(seen).different, *seen.untracked}
    return frozenset(path for path in found if path.endswith(PYTHON) and path.isprintable() and not fits(path, TESTS))


def _changed(view: View, rules: Rules, tests: Collection[str], *, texts: bool = False) -> Iterator[tuple[str, str]]:
    """Files of the work that are not what they were, with their text, empty where they are gone; and data of the start
    that tests name, and its ``texts``.
    """
    try:
        seen = view.walk()
    except TooMuchToRead:
        return
    found = view.differences(seen)
    paths = sorted({*found.different, *found.gone, *seen.untracked})
    works = [
        path
        for path in paths
        if path.endswith(telling.WORK)
        or (path in view.entries and (telling.reads(tests, path) or (texts and path.endswith(telling.TEXTS))))
    ]
    mine = [path for path in works if not fits(path, (*TESTS, *rules.free))]
    for path in mine[:MAX_FILES]:
        yield path, _text(view.ground, path)


def _gone(ground: Ground, path: str) -> bool:
    """A link on the way is not followed, so what it leads to does not count."""
    try:
        ground.read(path, MAX_FILE)
    except OSError as exc:
        return exc.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
    return False


def _text(ground: Ground, path: str) -> str:
    try:
        return ground.read(path, MAX_FILE).decode()
    except (OSError, UnicodeDecodeError):
        return ""
