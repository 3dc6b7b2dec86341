"""What each process loads, proved in a fresh interpreter: the screen stays out of the harness, the SDK out of the
command line. And no file imports itself by way of others.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Mapping, Set
from pathlib import Path

import pytest

HEAVY = ("textual", "rich", "anthropic", "httpx2", "pydantic", "aiohttp")


def loaded_by(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint('\\n'.join(sorted({{m.split('.')[0] for m in sys.modules}})))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def modules_by(statement: str) -> set[str]:
    return printed_by(f"{statement}\nprint('\\n'.join(sorted(sys.modules)))")


def printed_by(code: str) -> set[str]:
    """The words that it prints in an interpreter of its own."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys\n{code}"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


HARNESS = [
    (
        "harness.events.types, harness.projections.apply, harness.views.session_views, harness.eventlog.writer,"
        " harness.eventlog.reader,"
        " harness.eventlog.index"
    ),
    "harness.protocol.client, harness.protocol.config.config",
    "harness.keeper.main, harness.keeper.fork_server",
    "harness.supervisor.main, harness.supervisor.guardian, harness.supervisor.upkeep.invariants",
    "harness.policy.decide, harness.budget.ledger, harness.workspace.tree.worktrees",
]


@pytest.mark.parametrize("names", HARNESS)
def test_harness_loads_no_screen(names: str) -> None:
    assert not loaded_by(f"import {names}") & {"textual", "rich"}


def test_supervisor_loads_no_sdk() -> None:
    assert "anthropic" not in loaded_by("import harness.supervisor.main")


def test_command_line_loads_neither_sdk_nor_screen() -> None:
    assert not loaded_by(
        "import app.main, app.cli.verbs.sessions, app.cli.verbs.queue, app.cli.verbs.health,"
        " app.cli.grammar.parser; app.cli.grammar.parser.build()"
    ) & set(HEAVY)


def test_screen_loads_no_sdk() -> None:
    assert not loaded_by("import app.shell.tui") & {"anthropic", "httpx2", "aiohttp", "aiosqlite", "git"}


def test_the_first_paint_waits_for_nothing_that_reads_records() -> None:
    loaded = modules_by("import app.shell.tui, app.shell.watch_app, app.screens.floor")
    assert not loaded & {
        "harness.events.types",
        "harness.reports.describe",
        "harness.projections.apply",
        "widgets.log.log_rows",
    }
    assert not loaded & {"ctypes", "harness.domain.text.secret_scan"}


def test_settings_are_read_for_a_supervisor_that_is_started_not_for_one_that_answers() -> None:
    assert not modules_by("import app.client.start_supervisor") & {
        "harness.protocol.config.config",
        "harness.protocol.config.api_key",
    }


def test_what_the_first_paint_loads_makes_no_dataclass_where_a_struct_may_stand() -> None:
    """Each costs some 0.3 ms when it is loaded, a struct a fiftieth of that."""
    found = (
        "print('\\n'.join({c.__module__ for m in list(sys.modules.values()) for c in vars(m).values()"
        " if isinstance(c, type) and '__dataclass_fields__' in vars(c)}))"
    )
    made_by = printed_by(f"import app.shell.tui, app.shell.watch_app, app.screens.floor\n{found}")
    ours = {name for name in made_by if name.split(".")[0] in ("app", "widgets", "harness")}
    assert ours <= {"harness.protocol.config.credential", "harness.protocol.paths"}, (
        "what keepers load too, or holds a key"
    )


def test_keeper_is_standard_library_only() -> None:
    allowed = {"harness", "site", "sitecustomize", "usercustomize", "distutils-precedence"}
    foreign = {
        m
        for m in loaded_by(
            "import harness.keeper.main, harness.keeper.fork_server, harness.executor.spawn,"
            " harness.executor.preconditions"
        )
        if m not in sys.stdlib_module_names
    }
    assert {m for m in foreign if not m.startswith(("_", "__"))} <= allowed


def test_keeper_loads_no_decoder_of_bodies() -> None:
    loaded = modules_by("import harness.keeper.main")
    assert not loaded & {
        "harness.events.types",
        "harness.projections.apply",
        "harness.views.session_views",
        "asyncio",
        "msgspec",
    }


def test_the_exchange_and_its_blocking_shell_are_standard_library_without_a_loop() -> None:
    loaded = modules_by(
        "import harness.protocol.connection.exchange, harness.protocol.connection.blocking,"
        " harness.protocol.connection.transport,"
        " harness.protocol.session_names"
    )
    assert not loaded & {"asyncio", "msgspec"}
    assert {m for m in loaded if m.startswith("harness.")} <= {
        "harness.protocol",
        "harness.protocol.session_names",
        "harness.protocol.connection",
        *(f"harness.protocol.connection.{name}" for name in ("exchange", "blocking", "transport", "frames")),
    }


def graph() -> dict[str, set[str]]:
    """Which file imports which, wherever in it that stands."""
    root = Path(__file__).resolve().parents[2]
    paths = {
        ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path
        for folder in ("app", "widgets", "harness")
        for path in (root / folder).rglob("*.py")
    }
    made: dict[str, set[str]] = {}
    for name, path in paths.items():
        wanted: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                wanted |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                whole = {f"{node.module}.{alias.name}" for alias in node.names}
                wanted |= whole if whole <= paths.keys() else {*whole, str(node.module)}
        made[name] = {one for one in wanted if one in paths} - {name}
    return made


def circles(imports: Mapping[str, Set[str]]) -> set[str]:
    """What imports itself by any way: whatever is left when those are taken away, again and again, that import nothing
    of what is left, or that nothing of it imports.
    """
    left = {name: set(wanted) for name, wanted in imports.items()}
    while True:
        asked = {one for wanted in left.values() for one in wanted}
        gone = {name for name, wanted in left.items() if not wanted or name not in asked}
        if not gone:
            return set(left)
        left = {name: wanted - gone for name, wanted in left.items() if name not in gone}


@pytest.mark.slow
def test_no_files_import_each_other_in_a_circle() -> None:
    """Also not from within a function, or for the sake of types alone."""
    found = graph()
    assert len(found) > 700
    assert not circles(found)


def test_the_search_knows_a_circle() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == {"b", "c"}
    assert circles({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == set()
