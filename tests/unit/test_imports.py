"""What each process loads, proved in a fresh interpreter: the screen stays out of the harness, the SDK out of the
command line.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("textual", "rich", "anthropic", "httpx2", "pydantic", "aiohttp")


def loaded_by(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint('\\n'.join(sorted({{m.split('.')[0] for m in sys.modules}})))"
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def modules_by(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint('\\n'.join(sorted(sys.modules)))"
    return set(
        subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )


HARNESS = [
    (
        "harness.events.types, harness.events.fold, harness.events.views, harness.events.log, harness.events.reader,"
        " harness.events.offsets"
    ),
    "harness.protocol.client, harness.protocol.config",
    "harness.session.main, harness.session.keeper_nursery",
    "harness.supervisor.main, harness.supervisor.guardian, harness.supervisor.upkeep.invariants",
    "harness.policy.judge, harness.budget.ledger, harness.workspace.worktrees",
]


@pytest.mark.parametrize("names", HARNESS)
def test_harness_loads_no_screen(names: str) -> None:
    assert not loaded_by(f"import {names}") & {"textual", "rich"}


def test_supervisor_loads_no_sdk() -> None:
    assert "anthropic" not in loaded_by("import harness.supervisor.main")


def test_command_line_loads_neither_sdk_nor_screen() -> None:
    assert not loaded_by(
        "import app.main, app.cli.sessions, app.cli.queue, app.cli.health, app.cli.parser; app.cli.parser.build()"
    ) & set(HEAVY)


def test_screen_loads_no_sdk() -> None:
    assert not loaded_by("import app.tui") & {"anthropic", "httpx2", "aiohttp", "aiosqlite", "git"}


def test_keeper_is_standard_library_only() -> None:
    allowed = {"harness", "site", "sitecustomize", "usercustomize", "distutils-precedence"}
    foreign = {
        m
        for m in loaded_by(
            "import harness.session.main, harness.session.keeper_nursery, harness.hands.spawn, harness.hands.precheck"
        )
        if m not in sys.stdlib_module_names
    }
    assert {m for m in foreign if not m.startswith(("_", "__"))} <= allowed


def test_keeper_loads_no_decoder_of_bodies() -> None:
    loaded = modules_by("import harness.session.main")
    assert not loaded & {"harness.events.types", "harness.events.fold", "harness.events.views", "asyncio", "msgspec"}


def test_the_exchange_and_its_blocking_shell_are_standard_library_without_a_loop() -> None:
    loaded = modules_by(
        "import harness.protocol.exchange, harness.protocol.blocking, harness.protocol.transport,"
        " harness.protocol.session_names"
    )
    assert not loaded & {"asyncio", "msgspec"}
    assert {m for m in loaded if m.startswith("harness.")} <= {
        "harness.protocol",
        *(f"harness.protocol.{name}" for name in ("exchange", "blocking", "transport", "frames", "session_names")),
    }
