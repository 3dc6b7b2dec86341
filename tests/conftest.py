"""What holds for every test: no property is judged by the time an example takes, and several workers begin with what
takes longest.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("watchfloor", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("watchfloor")

_LONGEST_FIRST = ("faults", "e2e", "process", "tui", "unit")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Each worker gets an equal share of every folder, the slowest first, so that none is left alone with them at the
    end. Modules that start something for all of their tests stay whole: each worker that had a part of one would start
    it again.
    """
    rank = {name: number for number, name in enumerate(_LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(item.path.parent.name, -1))
    together: dict[object, list[pytest.Item]] = {}
    for item in items:
        together.setdefault(item if item.path.parent.name == "unit" else item.path, []).append(item)
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    shares: list[list[pytest.Item]] = [[] for _ in range(workers)]
    for whole in sorted(together.values(), key=lambda whole: rank.get(whole[0].path.parent.name, -1)):
        min(shares, key=len).extend(whole)
    items[:] = [item for share in shares for item in share]
