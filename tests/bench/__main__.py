"""``make bench``: measure every figure beside its yardstick and print one table.

``ONLY=name`` runs one; ``BENCH_JSON=FILE`` also writes one JSON object a line.
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from tests import bench
from tests.bench.table import BENCHES, Figure, emit, machine, markdown

_PROGRAMS = (
    "app.shell.tui, app.shell.watch_app, app.screens.floor, app.cli.verbs.sessions, harness.supervisor.main,"
    " harness.supervisor.guardian,"
    " harness.keeper.fork_server, harness.brain.brain_fork_server, harness.budget.prices, genai_prices"
)
"""Loaded once beforehand: whoever compiles its modules itself keeps 10 MB of that."""


@contextmanager
def compiled() -> Iterator[None]:
    """Programs find their modules compiled, ours as those of the libraries: as installed, whatever the environment
    says. The bytecode goes into a folder of its own.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory(prefix="wf-bench-pyc-") as folder:
        os.environ["PYTHONPYCACHEPREFIX"] = folder
        subprocess.run([sys.executable, "-P", "-c", f"import {_PROGRAMS}"], check=True)
        yield


def main() -> int:
    for module in pkgutil.iter_modules(bench.__path__):
        if module.name != "__main__":
            importlib.import_module(f"{bench.__name__}.{module.name}")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=sorted(BENCHES))
    chosen = parser.parse_args().only
    print(machine(), flush=True)
    with compiled():
        return measure(chosen)


def measure(chosen: str | None) -> int:
    figures: list[Figure] = []
    broken = 0
    for name, fn in BENCHES.items():
        if chosen and name != chosen:
            continue
        print(f"… {name}", file=sys.stderr, flush=True)
        try:
            measured = fn()
        except Exception:
            traceback.print_exc()
            broken += 1
            continue
        figures += measured
        if target := os.environ.get("BENCH_JSON"):
            emit(measured, target)
    print(markdown(figures))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
