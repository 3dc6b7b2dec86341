"""What the pages for developers name is there: files, names in them, rooms."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("docs/codebase.md", "docs/where-do-i-add.md", "CONTRIBUTING.md")
_FILE = re.compile(r"`([\w/.-]+\.(?:py|toml|md|sh))`(?: \(`(\w+)`)?")
"""A file as a page names it, perhaps with the first name in it that is meant."""


@cache
def files() -> dict[str, Path]:
    folders = ("app", "widgets", "harness", "tests", "docs")
    found = [*(path for folder in folders for path in (ROOT / folder).rglob("*.*")), *ROOT.glob("*.*")]
    return {f"/{path.relative_to(ROOT)}": path for path in found}


def meant(name: str) -> list[Path]:
    """The files that a page may mean by this path, whose beginning it may leave out."""
    return [path for known, path in files().items() if known.endswith(f"/{name}")]


@cache
def defined(path: Path) -> set[str]:
    """Every name that a module gives to something."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_file_that_a_page_names_is_there_and_so_is_what_it_names_in_it(page: str) -> None:
    named = _FILE.findall((ROOT / page).read_text("utf-8"))
    assert len(named) > 5
    assert not [name for name, _ in named if not meant(name) and name not in WRITTEN]
    for name, inside in named:
        if inside and name.endswith(".py"):
            assert any(inside in defined(path) for path in meant(name)), f"{name} has no {inside}"


@pytest.mark.parametrize("page", PAGES[1:])
def test_every_name_that_a_page_for_doing_names_is_one_of_ours(page: str) -> None:
    """A word in backticks that is spelled as code is: with an underscore or a capital letter."""
    ours = {name for path in files().values() if path.suffix == ".py" for name in (path.stem, *defined(path))}
    said = re.findall(r"`([A-Za-z_][\w.]*)(?:\([^`]*\))?`", (ROOT / page).read_text("utf-8"))
    code = {name for name in said if re.search("[A-Z_]", name) and not _FILE.fullmatch(f"`{name}`")}
    assert not [name for name in code if not ours.issuperset(name.split("."))]


def test_every_hop_of_the_walks_says_where_it_leads() -> None:
    """Of the three walks from file to file: each file with the name in it that is meant, each of which is there."""
    page = (ROOT / PAGES[0]).read_text("utf-8")
    walks = page[page.index("## Three walks") : page.index("## Rules of the house")]
    hops = re.findall(r"^\d\. .*", walks, re.MULTILINE)
    assert len(hops) == 20
    assert not [hop for hop in hops if not all(inside for _, inside in _FILE.findall(hop))]


WRITTEN = {"config.toml", "policy.toml", "AGENTS.md"}
"""Files that are no part of the repository."""


def test_every_room_of_the_house_is_on_the_page() -> None:
    page = (ROOT / PAGES[0]).read_text("utf-8")
    rooms = [path.parent for path in (ROOT / "harness").glob("*/__init__.py")]
    assert len(rooms) > 12
    assert not [room.name for room in rooms if f"harness/{room.name}`" not in page]
    inside = [path.parent.name for path in (ROOT / "harness/supervisor").glob("*/__init__.py")]
    assert not [name for name in inside if f"`{name}/`" not in page]
