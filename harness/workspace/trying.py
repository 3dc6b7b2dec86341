"""What the trial of a check finds in the worktree: files of ours over its tests, seen in that call alone. Blocking.

Nothing is written to the worktree. A file is laid over one that lies there as a regular file, reached through no link.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from harness.plan import broken, inline, python_tests
from harness.plan.counts import runs_tests
from harness.plan.patterns import fits
from harness.plan.protected import TESTS, Rules
from harness.plan.scripts import Named, named
from harness.plan.trials import ALONE, BROKEN, FRESH, START, Case, picks, runs_all
from harness.workspace import merging, unsure
from harness.workspace.decisive import at_start, run_by, tests_by_name
from harness.workspace.discard import discard
from harness.workspace.ground import Ground, Kind
from harness.workspace.look import paths
from harness.workspace.private import Worktree

Bind = tuple[str, str, str]
MAX_TEST = 1 << 20
"""Bytes of a test file that is made to fail; a larger one is left as it is."""
MAX_START = 60_000
"""Characters up to which a file of the base was read whole."""
MAX_LOOKED = 3000
"""Test files that are read."""
MAX_FILES = 200
"""Test files that are made to fail, evenly chosen: each is one more mount."""
MAX_NEW = 200_000
"""New names that are looked through for new tests."""
_NOT_ENTERED = frozenset({"node_modules", "__pycache__", "build", "dist", "venv"})
_EXTENSIONS = (*broken.PYTHON, *broken.SCRIPT, *broken.RUST)
_MADE = ("node_modules", ".venv", "venv")
_BUILT = "target"
"""Where Rust's tests are built: its builder compares times, so what a trial builds must not stay there."""
_BUILDS = re.compile(r"\bcargo\b")


class TooManyNew(Exception):
    """More new names than are looked through."""


@dataclass(frozen=True, slots=True)
class Found:
    """``new`` are files that a runner of tests would load and the base has not; ``tests`` those of the base, or named
    by the check, that can be made to fail, with their text, ``fresh`` those of the new ones, ``scripts`` what decides
    without a runner, ``around`` the texts of all of the base's in Python, ``named``: the check itself names them.
    ``hides``: the base has tests of that kind. ``examples``: those of ``scripts`` that decide by examples in them.
    """

    new: tuple[str, ...]
    tests: dict[str, str]
    fresh: dict[str, str]
    scripts: dict[str, str]
    around: tuple[str, ...]
    named: bool = False
    hides: bool = False
    unseen: bool = False
    examples: frozenset[str] = frozenset()


def case(tree: Worktree, rules: Rules, accepted: Collection[str], command: str, *, counted: bool) -> Case:
    """What there is to try this check with; ``counted``: its output told of tests. Raises WorkspaceError, OSError."""
    run = run_by(tree, Rules((command,)))
    texts = (command, *run.texts)
    if not counted and not any(runs_tests(text) for text in texts):
        plain = _plain(tree, command, run)
        why = unsure.of(tree, rules, texts, ()) if plain.runs else unsure.left_out(tree, rules, accepted, texts)
        return replace(plain, unsure=plain.unsure or why)
    found = look(tree, rules, accepted, command)
    made = ""
    if found.named or any(runs_all(text) for text in texts):
        base = set(paths(tree))
        made = next((name for name in _programs(run) if name not in base and os.path.lexists(tree.root / name)), "")
    return Case(
        unseen=found.unseen,
        runs=True,
        hides=found.hides and bool(found.new),
        breaks=bool(found.tests),
        fresh=bool(found.fresh),
        told=bool(found.tests) and all(path.endswith(broken.RUST) for path in found.tests),
        whole=any(path.endswith(broken.PYTHON) for path in found.tests),
        sure=_sure(found),
        made=made,
        picks=any(picks(text) for text in texts),
        unsure=_script_changed(tree, command, run) or unsure.of(tree, rules, texts, found.around),
    )


def _sure(found: Found) -> frozenset[int]:
    spared = python_tests.skippers(found.around)
    sure = [python_tests.sure(path, text, spared) for path, text in found.tests.items() if path.endswith(".py")]
    return frozenset().union(*sure)


def _plain(tree: Worktree, command: str, run: Named) -> Case:
    """The case of a check that is no test runner."""
    base = set(paths(tree))
    programs = sorted({*run.runs, *_programs(run), *_direct(command)})
    own = next((path for path in programs if path not in base and _is_file(tree, path)), "")
    if own:
        return Case(unsure=f"{own}, which decides, is no file of yours")
    if other := _script_changed(tree, command, run):
        return Case(unsure=other)
    if _scripts(tree, command, run, base) or inline.code_of(command):
        return Case(runs=True, breaks=True)
    shared = inline.shares((command, *run.texts), lambda path: os.path.lexists(tree.root / path))
    return Case(unsure=f"{shared} runs it in one process with the code that it is about" if shared else "")


def _programs(run: Named) -> list[str]:
    """What runs a check, or is read into the shell that does, where it lies in the worktree."""
    return sorted({*run.programs, *run.reads, *(f"{top}/{name}" for top in run.path for name in run.used)})


def _other(tree: Worktree, path: str, now: str) -> bool:
    """Whether a file is not what it was, as far as the base's is read."""
    before = at_start(tree, path)
    return now[: len(before)] != before or (len(now) != len(before) < MAX_START)


def _direct(command: str) -> set[str]:
    """The scripts that a command names itself, where it ends as they do."""
    if set("|`$<") & set(command):
        return set()
    return named((command,), lambda _: "", every=True).runs


def _scripts(tree: Worktree, command: str, run: Named, base: set[str]) -> dict[str, str]:
    """Scripts in Python that decide, and files whose examples do, with their text."""
    with Ground(tree.root) as ground:
        paths = sorted(base & (run.runs | _direct(command) | inline.doctested(run.texts)))
        texts = {path: text for path in paths if (text := _text(ground, path))}
    examples = inline.doctested(run.texts)
    return {path: text for path, text in texts.items() if path in examples or inline.is_python(path, text)}


def _script_changed(tree: Worktree, command: str, run: Named) -> str:
    """In words that a script which the command names itself was changed, where that is nobody's business else."""
    with Ground(tree.root) as ground:
        mine = sorted(_direct(command) & set(paths(tree)) - run.runs)
        other = next((path for path in mine if _other(tree, path, _text(ground, path))), "")
    return f"{other}, which decides, is not what it was at the start" if other else ""


def _is_file(tree: Worktree, path: str) -> bool:
    return os.path.isfile(tree.root / path)


def look(tree: Worktree, rules: Rules, accepted: Collection[str], command: str) -> Found:
    """Which files a trial of this check is made of. What a person let the agent change is taken as it is now.

    Raises WorkspaceError, OSError.
    """
    base = set(paths(tree))
    run = run_by(tree, Rules((command,)))
    texts = run.texts
    target = tree.root / _BUILT
    builds = any(_BUILDS.search(text) for text in texts) and target.is_dir() and not target.is_symlink()
    known = {path for path in base if _may_break(path, builds=builds)} | tests_by_name(tree, base, run)
    known = {path for path in known if not fits(path, rules.free)}
    new: list[str] = []
    hidden = False
    with Ground(tree.root) as ground:
        tests = {path: text for path in sorted(known)[:MAX_LOOKED] if (text := _text(ground, path))}
        if not any(path.endswith(_EXTENSIONS) and fits(path, TESTS) for path in accepted):
            try:
                found = {path for path in _walk(tree, ground, base) if not fits(path, rules.free)}
                found -= broken.aimed(found, texts, folders=False)  # what a check asks for by name is to be written
                new = sorted(path for path in found if _of_tests(ground, base, found, path))
            except TooManyNew:
                hidden = True
        asked = {path: text for path in broken.asked(texts) - base if (text := _text(ground, path))}
        made = {path: text for path in new if _is_text(path) and (text := _text(ground, path))}
    tests |= {path: text for path, text in asked.items() if broken.breakable(path, text)}
    named = broken.aimed(tests, texts)
    aimed = [path for path in sorted(named or tests) if broken.breakable(path, tests[path])]
    fresh = [path for path, text in sorted(made.items()) if broken.breakable(path, text)]
    return Found(
        new=tuple(path for path in new if _is_text(path)),
        tests={path: tests[path] for path in aimed[:: 1 + len(aimed) // MAX_FILES]},
        scripts=_scripts(tree, command, run, base),
        examples=frozenset(inline.doctested(texts)),
        fresh={path: made[path] for path in fresh[:: 1 + len(fresh) // MAX_FILES]},
        hides=bool({_kind(path) for path in known} & {_kind(path) for path in new}),
        around=tuple(text for path, text in tests.items() if path.endswith(broken.PYTHON)),
        named=bool(named),
        unseen=hidden or not all(_is_text(path) for path in new),
    )


def lay_out(tree: Worktree, found: Found, kind: str, word: str, folder: Path) -> list[Bind]:
    """Write what a trial of this kind finds into the new folder ``folder``; what is to be laid where, in mount order.
    Raises WorkspaceError, OSError.
    """
    clear(folder)
    folder.mkdir(mode=0o700, parents=True)
    root = str(tree.root)
    empty = folder / "empty"
    empty.write_bytes(b"")
    hidden = [(str(empty), f"{root}/{path}", "ro") for path in found.new]
    if kind == ALONE:
        return hidden
    whole_bodies = kind in (BROKEN, FRESH)
    make: Callable[[str, str, str, frozenset[str]], str] = broken.bare
    if whole_bodies:
        make = partial(broken.broken, mine=unsure.changed(tree))
    spared = python_tests.skippers(found.around)
    tests = found.fresh if kind == FRESH else found.tests
    made = {path: text for path, body in tests.items() if (text := make(path, body, word, spared))}
    for path, body in found.scripts.items():
        if path not in made:
            if path in found.examples:
                made[path] = inline.wrong_example(path, body if whole_bodies else "", word)
            else:
                made[path] = inline.failing(body, word) if whole_bodies else inline.bare(word, body)
    if kind == START:
        whole = folder / "tree"
        merging.lay_out(tree, tree.base, whole)
        for path, text in made.items():
            (whole / path).parent.mkdir(parents=True, exist_ok=True)
            (whole / path).write_text(text, "utf-8")
        (whole / ".git").touch()
        more = [name for name in _MADE if (tree.root / name).is_dir() and not os.path.lexists(whole / name)]
        for name in more:
            (whole / name).mkdir()
        return [(str(whole), root, "rw"), *((f"{root}/{name}", f"{root}/{name}", "ro") for name in more)]
    binds = [] if kind == FRESH else hidden
    if any(path.endswith(broken.RUST) for path in made):
        (folder / _BUILT).mkdir()
        binds.append((str(folder / _BUILT), f"{root}/{_BUILT}", "rw"))
    for index, (path, text) in enumerate(made.items()):
        (folder / str(index)).write_text(text, "utf-8")
        if text.startswith("#!"):
            (folder / str(index)).chmod(0o755)
        binds.append((str(folder / str(index)), f"{root}/{path}", "ro"))
    return binds


def _may_break(path: str, *, builds: bool) -> bool:
    """Whether a file of the base may hold tests: in Rust they also stand beside what they test."""
    if path.endswith(broken.RUST):
        return builds
    return path.endswith(_EXTENSIONS) and fits(path, TESTS)


def _kind(path: str) -> str:
    return "script" if path.endswith(broken.SCRIPT) else path.rpartition(".")[2]


def clear(folder: Path) -> None:
    """The files of a trial that is over are not needed any more."""
    with contextlib.suppress(OSError):
        discard(folder)


def _is_text(path: str) -> bool:
    return path.isascii() or path.encode("utf-8", "replace").decode() == path


def _text(ground: Ground, path: str) -> str:
    try:
        return ground.read(path, MAX_TEST).decode()
    except (OSError, UnicodeDecodeError):
        return ""


def _walk(tree: Worktree, ground: Ground, base: set[str]) -> Iterator[str]:
    """New files that a runner of Python's tests loads by itself, by the names at which they lie; links are followed
    inside the worktree. Folders that runners leave out are entered only where tests lie, by a link, or as packages.

    Raises TooManyNew.
    """
    left = MAX_NEW
    folders = [""]
    linked: set[str] = set()
    seen: set[str] = set()
    while folders:
        folder = folders.pop()
        if folder in seen:
            continue
        seen.add(folder)
        try:
            items = ground.items(folder)
        except OSError:
            continue
        name = folder.rpartition("/")[2]
        made = name in _NOT_ENTERED or name.startswith(".")
        entered = folder in linked or fits(folder, TESTS) or any(item.name == "__init__.py" for item in items)
        if made and not entered:
            continue
        for item in items:
            path = f"{folder}/{item.name}" if folder else item.name
            at = _leads_to(tree, path) if item.kind is Kind.LINK else path
            left -= path not in base
            if left < 0:
                raise TooManyNew
            if item.kind is Kind.FOLDER:
                folders.append(at)
            elif item.kind is Kind.LINK and at and os.path.isdir(tree.root / at):
                if at not in linked:
                    linked.add(at)
                    seen.discard(at)
                    folders.append(at)
            elif at and at not in base and broken.collected(path):
                yield at


def _of_tests(ground: Ground, base: set[str], found: set[str], path: str) -> bool:
    """False for a package that may be one of the work itself: no test lies in it, or others speak of it."""
    folder, _, name = path.rpartition("/")
    if name != "__init__.py" or fits(path, TESTS):
        return True
    inside = [one for one in found if one.startswith(f"{folder}/") and not one.endswith("/__init__.py")]
    word = re.compile(rf"\b{re.escape(folder.rpartition('/')[2])}\b")
    others = [one for one in sorted(base)[:MAX_LOOKED] if one.endswith(".py") and not fits(one, TESTS)]
    return bool(inside) and not any(word.search(_text(ground, one)) for one in others)


def _leads_to(tree: Worktree, path: str) -> str:
    """Where a link leads inside the worktree; empty when it leads out of it, or nowhere."""
    root = os.path.realpath(tree.root)
    real = os.path.realpath(tree.root / path)
    return os.path.relpath(real, root) if real.startswith(f"{root}/") and os.path.exists(real) else ""
