"""The file tools that look for something: which files there are, and which lines match. Standard library only."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterator

from harness.domain.text import fields
from harness.executor import paging
from harness.executor.confined_paths import PathError, Root
from harness.executor.file_tool import Given, Places, Result, ToolError

MAX_LISTED = 1000
MAX_WALKED = 200_000
MAX_MATCHES = 300
MAX_SEARCHED = 8 << 20
SKIPPED = frozenset({".git"})
GENERATED = frozenset(
    {"node_modules", "__pycache__", ".venv", ".tox", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".hypothesis"}
)


def list_files(given: Given, places: Places) -> Result:
    root, start = _start(given, places)
    glob = fields.text(given, "glob", "")
    match = _glob(glob) if glob else None
    found: list[str] = []
    walked = 0
    for path, is_generated in _walk(root, start):
        walked += 1
        if walked > MAX_WALKED:
            break
        shown = places.shown(root, path)
        if is_generated and match is None:
            found.append(f"{shown}/ (not entered)")
        elif not is_generated and (match is None or match(shown)):
            found.append(shown)
    found.sort()
    notes: list[str] = []
    if len(found) > MAX_LISTED:
        notes.append(f"({len(found) - MAX_LISTED} more; narrow it with path or glob)")
    if walked > MAX_WALKED:
        notes.append(f"(stopped after {MAX_WALKED} files; narrow it with path)")
    return Result("\n".join([*found[:MAX_LISTED], *notes]) or "(no files)")


def _start(given: Given, places: Places) -> tuple[Root, str]:
    path = fields.text(given, "path", "") or "."
    root, relative = places.find(path)
    start = root.canonical(relative)
    if start is None:
        raise ToolError(f"{path} does not exist")
    return root, start


def _walk(root: Root, start: str) -> Iterator[tuple[str, bool]]:
    """Files beneath ``start`` as (path relative to the root, is a folder of generated files); links are not
    followed.
    """
    fd = root.open(start, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            yield start, False
            return
        for folder, folders, names, here_fd in os.fwalk(".", dir_fd=fd, follow_symlinks=False):
            here = os.path.normpath(os.path.join(start, folder))
            prefix = "" if here == "." else here + "/"
            links = {
                name for name in folders if stat.S_ISLNK(os.stat(name, dir_fd=here_fd, follow_symlinks=False).st_mode)
            }
            for name in (*names, *links):
                yield prefix + name, False
            for name in folders:
                if name in GENERATED and name not in links:
                    yield prefix + name, True
            folders[:] = sorted(
                name for name in folders if name not in SKIPPED and name not in GENERATED and name not in links
            )
    finally:
        os.close(fd)


def _glob(pattern: str) -> Callable[[str], bool]:
    """A predicate on relative paths: ``**`` crosses folders, ``{a,b}`` means either, a pattern without ``/`` matches
    file names.
    """
    by_name = "/" not in pattern
    expression = ""
    at = 0
    depth = 0
    pattern = pattern.removeprefix("./")
    while at < len(pattern):
        char = pattern[at]
        if pattern.startswith("**/", at):
            expression += "(?:[^/]+/)*"
            at += 3
            continue
        if pattern.startswith("**", at):
            expression += ".*"
            at += 2
            continue
        closing = pattern.find("]", at + 2) if char == "[" else -1
        if closing > 0:
            body = pattern[at + 1 : closing].replace("\\", "\\\\").replace("[", "\\[").replace("&&", "\\&\\&")
            expression += f"[^{body[1:]}]" if body[0] in "!^" else f"[{body}]"
            at = closing + 1
            continue
        if char == "{" and "}" in pattern[at:]:
            expression = expression + "(?:"
            depth = depth + 1
        elif char == "}" and depth:
            expression = expression + ")"
            depth = depth - 1
        elif char == "," and depth:
            expression += "|"
        else:
            expression += {"*": "[^/]*", "?": "[^/]"}.get(char, re.escape(char))
        at += 1
    try:
        compiled = re.compile(expression + ")" * depth, re.DOTALL)
    except paging.BAD_PATTERN as exc:
        raise ToolError(f"the glob {pattern!r} cannot be understood: {exc}") from exc
    if by_name:
        return lambda path: compiled.fullmatch(path.rpartition("/")[2]) is not None
    return lambda path: compiled.fullmatch(path) is not None


def search(given: Given, places: Places) -> Result:
    root, start = _start(given, places)
    program = next((f"{folder}/rg" for folder in places.path if os.access(f"{folder}/rg", os.X_OK)), None)
    lines, more = (
        _ripgrep(program, given, places, root, start) if program else _python_search(given, places, root, start)
    )
    if more:
        lines.append(f"(stopped at {MAX_MATCHES} matches; narrow it with path or glob)")
    return Result("\n".join(lines) or "(no matches)")


def _ripgrep(program: str, given: Given, places: Places, root: Root, start: str) -> tuple[list[str], bool]:
    argv = [
        program,
        "--no-config",
        "--color=never",
        "--no-heading",
        "--with-filename",
        "--line-number",
        "--sort=path",
        "--hidden",
        "--glob=!.git",
    ]
    argv += ["--max-columns=400", "--max-columns-preview", f"--max-filesize={MAX_SEARCHED}"]
    if glob := fields.text(given, "glob", ""):
        argv.append(f"--glob={glob}")
    argv += ["--regexp", fields.text(given, "pattern"), "--", places.shown(root, start)]
    import subprocess  # here, because the other tools need not wait for it

    lines: list[str] = []
    from_folder = places.folder and root is places.root
    os.fchdir(root.open(places.folder, os.O_RDONLY | os.O_DIRECTORY) if from_folder else root.fd)
    with subprocess.Popen(
        argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={}
    ) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        for raw in child.stdout:
            if len(lines) == MAX_MATCHES:
                child.kill()
                return lines, True
            lines.append(raw.decode("utf-8", "replace").rstrip("\n").removeprefix("./"))
        said = child.stderr.read(4096).decode("utf-8", "replace").strip()
    if child.returncode > 1 and not lines:
        raise ToolError(f"search: {said or 'ripgrep failed'}")
    return lines, False


def _python_search(given: Given, places: Places, root: Root, start: str) -> tuple[list[str], bool]:
    try:
        expression = re.compile(fields.text(given, "pattern"))
    except paging.BAD_PATTERN as exc:
        raise ToolError(f"search: the pattern is not a valid regular expression: {exc}") from exc
    glob = fields.text(given, "glob", "")
    match = _glob(glob) if glob else None
    lines: list[str] = []
    for path in sorted(path for path, is_generated in _walk(root, start) if not is_generated):
        shown = places.shown(root, path)
        if match is not None and not match(shown):
            continue
        try:
            data = root.read(path, MAX_SEARCHED)
        except PathError:
            continue  # links, pipes and huge files are not searched, as ripgrep does
        if b"\0" in data[:8192]:
            continue
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            if expression.search(line):
                if len(lines) == MAX_MATCHES:
                    return lines, True
                lines.append(f"{shown}:{number}:{line[:400]}")
    return lines, False
