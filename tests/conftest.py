"""What holds for every test: no property is judged by the time an example takes, and several workers begin with what
takes longest.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from tests.fleetlib import Fleet

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # a shell that begins them in the background has them ignore ctrl+c, and with them each program that one is sent to
    signal.signal(signal.SIGINT, signal.default_int_handler)

gc.disable()  # what is loaded and collected stays

settings.register_profile("watchfloor", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("watchfloor")

_HERE = Path(__file__).parent
_LONGEST = (
    "process/test_gates_fleet",
    "process/test_ratchet",
    "process/test_money_fleet",
    "process/test_supervisor_life",
    "tui/test_help_bar",
    "process/test_plan_fleet",
    "process/test_pull_fleet",
    "process/test_clock_set",
    "tui/test_app_session",
    "e2e/test_paste",
    "faults/test_copied_state",
    "process/test_supervisor_binding",
    "tui/test_app_floor",
    "e2e/test_bad_input",
    "faults/test_swaps",
    "process/test_frozen",
    "process/test_ground",
    "process/test_soak_suite",
    "faults/test_undo_kill",
    "process/test_judge_kills",
    "faults/test_kill_matrix",
    "e2e/test_promises",
    "e2e/test_demo_headless",
    "tui/test_app_taking",
    "tui/test_app_queue",
    "process/test_ratchet_trials",
    "faults/test_special_files_fleet",
    "process/test_supervisor_continue",
    "process/test_parks",
    "faults/test_house_defects",
    "faults/test_stop_leaves_nothing",
    "tui/test_app_fleet",
    "faults/test_disk_full_fleet",
    "process/test_judge_fleet",
    "e2e/test_evening_tmux",
    "process/test_merge_fleet",
)
"""Modules that a worker must not begin last: the others would wait for it. Their order is that of their time."""
_THEN = ("faults", "e2e", "process", "tui", "unit")


def _rank(path: Path) -> tuple[int, int]:
    folder = path.parent.name
    name = f"{folder}/{path.stem}"
    longest = _LONGEST.index(name) if name in _LONGEST else len(_LONGEST)
    return longest, _THEN.index(folder) if folder in _THEN else -1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Workers take a module at a time (``--dist loadfile``), in this order."""
    items.sort(key=lambda item: _rank(item.path))


def pytest_collection_finish() -> None:
    """Let nobody look for garbage again among what is there for good."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Let each worker of a whole run begin with other modules: what one has translated the others only load."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if not worker or [Path(given).resolve() for given in session.config.args] != [_HERE]:
        return
    modules = sorted(_HERE.glob("*/test_*.py"))
    first = len(modules) * int(worker.removeprefix("gw")) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    for module in (*modules[first:], *modules[:first]):
        with contextlib.suppress(Exception, pytest.skip.Exception):  # said when it is collected
            importlib.import_module(f"{_HERE.name}.{module.parent.name}.{module.stem}")


@pytest.fixture(scope="module")
def started() -> Iterator[Fleet]:
    """A fleet that the tests of a module share, each in its own part of it (`fleetlib.apart`)."""
    from tests.fleetlib import fleet

    with fleet() as made:
        made.run("supervisor", "start")
        yield made
