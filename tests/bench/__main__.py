"""``make bench``: measure every figure beside its yardstick and print one table.

``ONLY=name`` runs one; ``BENCH_JSON=FILE`` also writes one JSON object a line.
"""

from __future__ import annotations

import argparse
import os
import sys
import traceback

from tests.bench import (  # noqa: F401
    append,
    biglog,
    calls,
    context,
    decisions,
    fleet_costs,
    keys,
    listing,
    long_session,
    paint,
    turns,
    undo,
    wake,
)
from tests.bench.table import BENCHES, Figure, emit, machine, markdown


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=sorted(BENCHES))
    chosen = parser.parse_args().only
    print(machine(), flush=True)
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
